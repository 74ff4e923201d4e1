//! Inputs that are nearly a known format: each is read, or refused with a message that says what it is.

use crate::support::runner;
use std::fs;

/// What becomes of an input.
enum Outcome {
    /// The input is read as these folded stacks, and nothing is skipped.
    Read(&'static str),
    /// The input is read as these folded stacks. Lines are skipped and counted, which is an error under `--strict`.
    Skipping(&'static str),
    /// It is refused; the message has these words.
    Refused(&'static [&'static str]),
}

use Outcome::{Read, Refused, Skipping};

fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
    units.flat_map(|unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

/// A text with this in front of each line that isn't empty.
fn indented(text: &str, indent: &str) -> Vec<u8> {
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") })
        .collect::<String>()
        .into_bytes()
}

fn marked(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").into_bytes()
}

const FOLDED: &str = "main;a 5\r\nmain;b 6\r\n";
const FOLDED_READ: Outcome = Read("main;a 5\nmain;b 6\n");

const SCRIPT: &str =
    "t 7 [001] 1.000002: 3 cycles:u: \r\n\t    55d0 f+0x1 (/bin/x)\r\n\t    55e0 main+0x1 (/bin/x)\r\n\r\n";
const SCRIPT_READ: Outcome = Read("t;main;f 3\n");

const CPUPROFILE: &str = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"children":[2]},{"id":2,"callFrame":{"functionName":"foo","scriptId":"1","url":"/a.js","lineNumber":1,"columnNumber":1}}],"startTime":0,"endTime":3000,"samples":[2,2],"timeDeltas":[1000,1000]}"#;

const SPEEDSCOPE: &str = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"sampled","name":"x","unit":"none","startValue":0,"endValue":3,"samples":[[0],[0,1]],"weights":[2,1]}]}"#;

const CALLGRIND: &str = "version: 1\r\nevents: Ir\r\n\r\nfl=a.c\r\nfn=main\r\n1 30\r\n";

fn inputs() -> Vec<(&'static str, Vec<u8>, Outcome)> {
    vec![
        ("folded stacks with a mark", marked(FOLDED), FOLDED_READ),
        ("folded stacks in UTF-16", utf16(FOLDED, true, false), FOLDED_READ),
        ("folded stacks in big-endian UTF-16", utf16(FOLDED, true, true), FOLDED_READ),
        ("UTF-16 without a mark", utf16(FOLDED, false, false), Refused(&["UTF-16", "iconv"])),
        (
            "UTF-16 without a mark, in another language",
            utf16("main;größe;läuft 5\nmain;déjà 6\n", false, false),
            Refused(&["UTF-16", "iconv"]),
        ),
        ("big-endian UTF-16 without a mark", utf16(&SCRIPT.replace(" f+", " é+"), false, true), Refused(&["UTF-16"])),
        ("UTF-32", b"\xff\xfe\0\0m\0\0\0".to_vec(), Refused(&["UTF-32", "iconv"])),
        ("perf script with a mark", marked(SCRIPT), SCRIPT_READ),
        ("perf script in UTF-16", utf16(SCRIPT, true, false), SCRIPT_READ),
        ("a .cpuprofile with a mark", marked(CPUPROFILE), Read("JavaScript;foo 2000000\n")),
        ("a .cpuprofile in UTF-16", utf16(CPUPROFILE, true, false), Read("JavaScript;foo 2000000\n")),
        ("a speedscope file with a mark", marked(SPEEDSCOPE), Read("a 2\na;b 1\n")),
        ("a speedscope file in UTF-16", utf16(SPEEDSCOPE, true, true), Read("a 2\na;b 1\n")),
        ("a callgrind file with a mark", marked(CALLGRIND), Read("main 30\n")),
        ("a callgrind file in UTF-16", utf16(CALLGRIND, true, false), Read("main 30\n")),
        ("folded stacks behind comments", b"# austin: 3.3.0\n# interval: 100\nmain;a 5\n".to_vec(), Read("main;a 5\n")),
        ("indented folded stacks", b"   main;a 5\n   main;b 6\n".to_vec(), FOLDED_READ),
        ("folded stacks with a weight below zero", b"main;a -5\nmain;b 6\n".to_vec(), Skipping("main;b 6\n")),
        (
            "Rust's names by the rules of C++",
            b"main;a::Vec$LT$T$GT$::f::h0123456789abcdef 5\n".to_vec(),
            Read("main;a::Vec<T>::f 5\n"),
        ),
        (
            "folded stacks with fractions, one too small",
            b"main;a 0.5\nmain;b 0.0000004\nmain;c 1e-9\nmain;d 0.000001\n".to_vec(),
            Skipping("main;a 0.5\nmain;d 0.000001\n"),
        ),
        ("a callgrind file whose object comes before the events", b"ob=/bin/x\nfl=a.c\nevents: Ir\nfn=main\n1 30\n".to_vec(), Read("main 30\n")),
        ("a callgrind file without its head", b"fl=a.c\nfn=main\n1 30\n+2 5\n".to_vec(), Refused(&["callgrind", "events:"])),
        (
            "a callgrind file whose head has no events",
            b"cmd: x\nob=(1) x\nfn=(1) main\n0x400 1 30\n".to_vec(),
            Refused(&["callgrind", "events:"]),
        ),
        (
            "perf script with few digits in its times",
            b"t 7 1.5: 3 cycles:u: \n\t    55d0 f+0x1 (/bin/x)\n\nt 7 [001] 2.0: 4 cycles:u: \n\t    55e0 g+0x1 (/bin/x)\n\n".to_vec(),
            Read("t;f 3\nt;g 4\n"),
        ),
        (
            "perf script with few digits in its times, quoted",
            b"> t 7/8 1.25: 3 cycles: \n> \t    55d0 f+0x1 (/bin/x)\n>\n".to_vec(),
            Read("t;f 3\n"),
        ),
        ("an indented callgrind file", indented(CALLGRIND, "    "), Read("main 30\n")),
        ("a callgrind file indented by a tab, behind an empty line", [b"\n".to_vec(), indented(CALLGRIND, "\t")].concat(), Read("main 30\n")),
        ("an indented callgrind file in UTF-16", utf16(&String::from_utf8(indented(CALLGRIND, "  ")).unwrap(), true, false), Read("main 30\n")),
        (
            "an indented text of sample",
            indented("Analysis of sampling app (pid 7) every 1 millisecond\nCall graph:\n    5 Thread_1\n      5 main  (in app) + 4  [0x1004]\n        2 f  (in app) + 8  [0x1008]\n\nTotal number in stack:\n", "    "),
            Read("app;main 3\napp;main;f 2\n"),
        ),
        ("quoted folded stacks", b"> main;a 5\n> main;b 6\n".to_vec(), FOLDED_READ),
        ("folded stacks quoted twice", b">> main;a 5\r\n> > main;b 6\r\n>>\r\n".to_vec(), FOLDED_READ),
        ("quoted folded stacks in UTF-16", utf16("> main;a 5\r\n> main;b 6\r\n", true, false), FOLDED_READ),
        (
            "quoted folded stacks behind the mail's text",
            b"On Monday, Ann wrote:\n> main;a 5\n> main;b 6\n> main;b 1\n".to_vec(),
            Skipping("main;a 5\nmain;b 7\n"),
        ),
        ("a name that starts like a quote", b"> main;a 5\nmain;b 6\nmain;c> 1\n".to_vec(), Read("> main;a 5\nmain;b 6\nmain;c> 1\n")),
        (
            "quoted perf script",
            SCRIPT.lines().map(|line| format!("> {line}\n")).collect::<String>().into_bytes(),
            SCRIPT_READ,
        ),
        (
            "perf script quoted without blanks",
            SCRIPT.lines().map(|line| format!(">{line}\n")).collect::<String>().into_bytes(),
            SCRIPT_READ,
        ),
        (
            "quoted callgrind",
            CALLGRIND.lines().map(|line| format!("> {line}\n")).collect::<String>().into_bytes(),
            Read("main 30\n"),
        ),
        ("folded stacks with exponents", b"main;a 1.5e-05\nmain;b 2e+1\nmain 3E0\n".to_vec(), Read("main 3\nmain;a 0.000015\nmain;b 20\n")),
        ("whole weights with exponents", b"main;a 1e3\nmain;b 1.5e1\n".to_vec(), Read("main;a 1000\nmain;b 15\n")),
        ("names that end like exponents", b"main;a 1e3 5\nmain;e5 6\n".to_vec(), Read("main;a 1e3 5\nmain;e5 6\n")),
        ("stacks of one frame", b"main 5\n[unknown] 6\n".to_vec(), Read("[unknown] 6\nmain 5\n")),
        ("weights with a unit", b"main;a 5ms\nmain;b 6ms\n".to_vec(), Refused(&["not plain numbers", "NUMBER"])),
        ("stacks that uniq -c counted", b"      5 main;a\n      6 main;b\n".to_vec(), Refused(&["in front", "awk"])),
        ("Austin's full metrics", b"# austin: 3.6.0\n# mode: full\nP1;T0:5;m:f:3 10,0,4096\n".to_vec(), Refused(&["three metrics"])),
        ("an answer of DevTools", br#"{"id":1,"result":{"profile":{"nodes":[{"id":1,"callFrame":{}}]}}}"#.to_vec(), Refused(&["jq"])),
        ("a GHC eventlog", b"hdrb\0\0\0\x0ahetb".to_vec(), Refused(&["GHC eventlog", "hs-speedscope"])),
        ("jfr print", b"jdk.ExecutionSample {\n  startTime = 10:00\n  stackTrace = [\n".to_vec(), Refused(&["jfrconv"])),
        ("phpspy's stacks", b"0 foo /a.php:5\n1 <main> /a.php:-1\n\n".to_vec(), Refused(&["phpspy"])),
        ("VTune's report with semicolons", b"Function Stack;CPU Time:Self;Module\nmain;0.5;a.out\n".to_vec(), Refused(&["comma"])),
        (
            "Visual Studio's report with decimal commas and a negative time",
            b"Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,\n1,\"main\",1,100.00,50.00,\"1,000.00\",500.00,\"a.exe\",\n2,\"f\",1,\"25,00\",\"25,00\",\"250,00\",\"250,00\",\"a.exe\",\n2,\"g\",1,25.00,-25.00,250.00,-250.00,\"a.exe\",\n".to_vec(),
            Skipping("main 500000000\n"),
        ),
        ("bpftrace's maps with keys", b"@stacks[123, a.out, \n    read+5\n    main+7\n]: 12\n".to_vec(), Refused(&["stackcollapse-bpftrace"])),
        (
            "callgrind with an older keyword",
            b"version: 1\ncreator: callgrind-3\nevents: Ir\nrec=x\nfrfn=a\nfn=main\n1 5\n".to_vec(),
            Read("main 5\n"),
        ),
        ("callgrind with a nameless function", b"events: Ir\nfn=\n1 3\nfn=main\n1 5\n".to_vec(), Read("[unknown] 3\nmain 5\n")),
        ("callgrind with more costs than events", b"events: Ir\nfn=main\n1 5 6 7\n2 1\n".to_vec(), Skipping("main 6\n")),
        ("cg_diff's two commands", b"cmd: ./a x; ./b\nevents: Ir\nfl=a.c\nfn=main\n1 5\n".to_vec(), Read("a;main 5\n")),
        (
            "cg_diff's two commands without arguments",
            b"cmd: ./a; ./b\nevents: Ir\nfl=a.c\nfn=main\n1 5\n".to_vec(),
            Read("a;main 5\n"),
        ),
        (
            "a speedscope file with fractions and no unit",
            SPEEDSCOPE.replace("\"weights\":[2,1]", "\"weights\":[0.25,0.125]").into_bytes(),
            Read("a 0.25\na;b 0.125\n"),
        ),
        ("folded stacks behind a title", b"my profile\nmain;a 5\nmain 1\n".to_vec(), Skipping("main 1\nmain;a 5\n")),
        ("folded stacks with a torn line", b"main;a 5\nmain;b\nmain;c 1\n".to_vec(), Skipping("main;a 5\nmain;c 1\n")),
        ("folded stacks with fractions", b"main;a 10.5\nmain;b 4.25\nmain 1\n".to_vec(), Read("main 1\nmain;a 10.5\nmain;b 4.25\n")),
        ("a difference", b"main;a 120 140\nmain;b 80 30\nmain 5 0\n".to_vec(), Refused(&["two counts", "--diff BEFORE AFTER"])),
        ("a difference with fractions", b"main;a 1.5 140\nmain;b 80 30.25\n".to_vec(), Refused(&["--diff"])),
        ("folded stacks with an empty name", b"main;;a 5\n;b 1\n".to_vec(), Read("[unknown];b 1\nmain;[unknown];a 5\n")),
        ("names that end with a number", b"main;Worker 3 5\nmain;idle 6\n".to_vec(), Read("main;Worker 3 5\nmain;idle 6\n")),
        (
            "perf script without times",
            b"shop 4711/4712 cpu-clock:\n\t          401136 pack+0x6 (/bin/shop)\n\n".to_vec(),
            Read("shop;pack 1\n"),
        ),
        (
            "perf script of one line without times",
            b"            shop  4712 cpu-clock:           401136 pack+0x6 (/bin/shop)\n".to_vec(),
            Read("shop;pack 1\n"),
        ),
        (
            "perf script's frames alone",
            b"\n\t          401136 pack\n\t          401200 [unknown]\n\n\n\t          401136 pack\n\n".to_vec(),
            Read("[unknown];pack 1\npack 1\n"),
        ),
        (
            "perf script without times and objects",
            b"shop 4711 cycles: \n\t  401136 pack\n\t  401200 main\n\nshop 4711 cycles: \n\t  401200 main\n\n".to_vec(),
            Read("shop;main 1\nshop;main;pack 1\n"),
        ),
        (
            "perf script without times and objects, with periods, through expand",
            b" 4711     250000 cycles: \n                  401136 pack\n                  401200 main\n\n".to_vec(),
            Read("main;pack 250000\n"),
        ),
        (
            "perf script of one line without times and objects",
            b"            shop  4711 cycles:            401136 pack\n            shop  4711 cycles:            401136 pack\n".to_vec(),
            Read("shop;pack 2\n"),
        ),
        (
            "perf script of one line without times, commands and objects",
            b" 4711 cycles:  ffffffff81000010 pack\n 4712 cycles:      7f1234567890 pack\n".to_vec(),
            Read("pack 2\n"),
        ),
        (
            "perf script of one line without times and threads",
            b"            shop cycles:      7f1234567890 pack (/bin/shop)\n  shop-version-1 cycles:      7f1234567890 pack (/bin/shop)\n".to_vec(),
            Read("shop-version-1;pack 1\nshop;pack 1\n"),
        ),
        (
            "perf script's frames alone, without objects",
            b"\n\t    7f1234567890 pack\n\t          401200 main\n\n\n\t          401200 main\n\n".to_vec(),
            Read("main 1\nmain;pack 1\n"),
        ),
        (
            "perf script's addresses through expand",
            b"shop 4711 cycles: \n        ffffffff81000010\n            7f1234567890\n                  401200\n\n".to_vec(),
            Read("shop;[unknown];[unknown];[unknown] 1\n"),
        ),
        (
            "perf scripts with marks, joined",
            format!("\u{feff}{SCRIPT}\u{feff}{SCRIPT}").into_bytes(),
            Read("t;main;f 6\n"),
        ),
        ("folded stacks with marks, joined", format!("\u{feff}{FOLDED}\u{feff}{FOLDED}").into_bytes(), Read("main;a 10\nmain;b 12\n")),
        ("folded stacks with tabs", b"main;a\t5\nmain;b\t6\n".to_vec(), FOLDED_READ),
        ("a difference with tabs", b"main;a\t120\t140\nmain;b\t80\t30\n".to_vec(), Refused(&["--diff"])),
        (
            "folded stacks with a weight beyond all numbers",
            b"main;a 99999999999999999999999\nmain;b 6\n".to_vec(),
            Skipping("main;b 6\n"),
        ),
        (
            "perf script through expand",
            b"t 7 1.000002: 3 cycles:u: \n            55d0 f+0x1 (/bin/x)\n            55e0 main+0x1 (/bin/x)\n\n".to_vec(),
            SCRIPT_READ,
        ),
        (
            "perf script without indents",
            b"t 7 1.000002: 3 cycles:u:\n55d0 f+0x1 (/bin/x)\n55e0 main+0x1 (/bin/x)\n\n".to_vec(),
            SCRIPT_READ,
        ),
        (
            "perf script with source lines, without indents",
            b"t 7 1.000002: 3 cycles:u:\n55d0 f+0x1 (/bin/x)\na.c:12\n55e0 main+0x1 (/bin/x)\n/src/main.c:3 (inlined)\n\n".to_vec(),
            Read("t;main;f 3\n"),
        ),
        (
            "perf script with an empty symbol",
            b"t 7 1.000002: 3 cycles:u:\n\t55d0  (/bin/x)\n\t55e0 main+0x1 (/bin/x)\n\n".to_vec(),
            Read("t;main;[x] 3\n"),
        ),
        ("perf report's text", b"# Samples: 4\n# Overhead  Command\n".to_vec(), Refused(&["perf report", "perf.data itself"])),
        ("perf stat's text", b"\n Performance counter stats for 'true':\n".to_vec(), Refused(&["perf stat"])),
        (
            "perf script -D",
            b"\n0x150@perf.data [0x50]: event: 10\n.\n. ... raw event: size 80 bytes\n0 0x150 [0x50]: PERF_RECORD_MMAP2 -1/0\n".to_vec(),
            Refused(&["perf script -D", "perf.data itself"]),
        ),
        ("ftrace's text", b"# tracer: nop\n#\n".to_vec(), Refused(&["ftrace", "perf record"])),
        ("gprof's report", b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n".to_vec(), Refused(&["gprof"])),
        ("pprof's text", b"File: app\nType: cpu\nShowing nodes accounting for 1.2s\n".to_vec(), Refused(&["pprof -top"])),
        ("a JVM's thread dump", b"Full thread dump OpenJDK (21):\n".to_vec(), Refused(&["async-profiler"])),
        ("gdb's backtrace", b"#0  0x00007f1b in poll () from /lib/libc.so.6\n".to_vec(), Refused(&["perf record -g -p PID"])),
        ("BCC's profile", b"Sampling at 49 Hertz of all threads by user stack.\n".to_vec(), Refused(&["-f"])),
        ("a page", marked("<!DOCTYPE html><html></html>"), Refused(&["page (HTML)"])),
        ("gperftools' waits", b"--- contentionz 1 ---\nformat: java\n".to_vec(), Refused(&["contention", "pprof -proto"])),
        ("gperftools' threads", marked("--- threadz 1 ---\n"), Refused(&["threads", "pprof -proto"])),
        ("Go's heap as text", b"heap profile: 1: 2 [3: 4] @ heap/1048576\n".to_vec(), Refused(&["Go text profile", "without the debug"])),
        ("pprof -raw", b"PeriodType: cpu nanoseconds\nPeriod: 1\nSamples:\n".to_vec(), Refused(&["-raw", ".pb.gz"])),
        ("bpftrace's JSON", b"{\"type\": \"map\", \"data\": {\"@\": {\"main\": 5}}}\n".to_vec(), Refused(&["bpftrace"])),
        ("offcputime", b"Tracing off-CPU time (us) of all threads by user stack.\n".to_vec(), Refused(&["offcputime", "-f"])),
        ("callgrind_annotate", b"--------------------\nProfile data file 'callgrind.out.1'\n".to_vec(), Refused(&["callgrind.out"])),
        ("valgrind's XML", b"<?xml version=\"1.0\"?>\n<valgrindoutput>\n".to_vec(), Refused(&["valgrind"])),
        ("the contents of Instruments' trace", b"<?xml version=\"1.0\"?>\n<trace-toc><run number=\"1\"/>".to_vec(), Refused(&["--xpath"])),
        ("trace events one a line", b"{\"name\":\"a\",\"ph\":\"X\",\"ts\":0,\"dur\":5,\"pid\":1,\"tid\":1}\n".to_vec(), Refused(&["jq -s"])),
        ("stackprof's JSON", b"{\"version\":1.2,\"mode\":\"wall\",\"interval\":1000,\"samples\":4,\"gc_samples\":0}".to_vec(), Refused(&["stackprof", "--stackcollapse"])),
        ("GHC's JSON", b"{\n\"program\": \"x\",\n\"arguments\": [],\n\"rts_arguments\": [\"-pj\"]}".to_vec(), Refused(&["GHC", "+RTS -p"])),
        ("Firefox's old recordings", b"{\"label\":\"\",\"duration\":1.5,\"markers\":[],\"profile\":{}}".to_vec(), Refused(&["Firefox", "profiler.firefox.com"])),
        ("Safari's timeline", b"{\"version\":1,\"recording\":{\"instrumentTypes\":[]}}".to_vec(), Refused(&["Web Inspector"])),
        ("a copy from Instruments", b"Weight\tSelf Weight\t\tSymbol Name\n4.93 s  100.0%\t0 s\t \tstart\n".to_vec(), Refused(&["Instruments", "xctrace export"])),
        ("the same in UTF-16", utf16("Running Time\tSelf (ms)\t\tSymbol Name\r\n1.0ms\t0\t \tmain\r\n", true, false), Refused(&["Instruments"])),
        ("pmcstat's call graph", b"@ inst_retired.any [35 samples]\n\n20.86%  [7]  main @ /bin/x\n".to_vec(), Refused(&["pmcstat", "stackcollapse-pmc.pl"])),
        ("VTune's gprof-cc report", b"Index  % CPU Time:Total  CPU Time:Self  Name\n-----\n".to_vec(), Refused(&["VTune", "top-down"])),
        ("gprof's call graph", b"\nindex  % time    self  children called     name\n".to_vec(), Refused(&["gprof report"])),
        ("HPROF", b"JAVA PROFILE 1.0.1, created now\n".to_vec(), Refused(&["HPROF", "async-profiler"])),
        ("simpleperf's protobuf", b"SIMPLEPERF\x01\0X\0\0\0".to_vec(), Refused(&["simpleperf", "perf.data"])),
        ("V8's log as JSON", b"{\n  \"code\": [{\"name\":\"/bin/node\",\"type\":\"SHARED_LIB\"}]}".to_vec(), Refused(&["--preprocess", "--cpu-prof"])),
        ("an old V8 log", b"shared-library,\"/bin/node\",0x1000,0x2000\n".to_vec(), Refused(&["V8 log", "--cpu-prof"])),
        ("other JSON with a mark", marked("{\"a\": 1}"), Refused(&["JSON"])),
    ]
}

#[test]
fn near_misses_are_read_or_named() {
    let dir = tempfile::tempdir().unwrap();
    for (at, (name, bytes, outcome)) in inputs().into_iter().enumerate() {
        let file = dir.path().join(format!("{at}.txt"));
        fs::write(&file, bytes).unwrap();
        let strict = runner::jitgraft(&["collapse", "-q", "--strict"], &file);
        let output = runner::jitgraft(&["collapse"], &file);
        let (folded, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        match outcome {
            Read(wanted) => {
                assert_eq!(folded, wanted, "{name}: {said}");
                assert!(strict.status.success(), "{name}: {said}");
            }
            Skipping(wanted) => {
                assert_eq!(folded, wanted, "{name}: {said}");
                assert!(said.contains("skipped") && !strict.status.success(), "{name}: {said}");
            }
            Refused(words) => {
                assert!(!output.status.success() && folded.is_empty(), "{name}: {folded}");
                for word in words {
                    assert!(said.contains(word), "{name}: no {word} in {said}");
                }
            }
        }
        // A flame graph is drawn of the same input in another way.
        let drawn = runner::jitgraft(&["flamegraph", "-q", "-o", "/dev/null"], &file);
        assert_eq!(drawn.status.success(), output.status.success(), "{name}");
    }
}

#[test]
fn callgrind_files_with_a_mark_are_named_as_such() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes, encoding) in [
        ("callgrind.out.1", marked(CALLGRIND), "UTF-8"),
        ("callgrind.out.2", utf16(CALLGRIND, true, false), "UTF-16"),
        ("callgrind.out.3", utf16(CALLGRIND, true, true), "UTF-16"),
    ] {
        let file = dir.path().join(name);
        fs::write(&file, bytes).unwrap();
        let out = dir.path().join("named");
        let output = runner::jitgraft(&["callgrind", "-o", out.to_str().unwrap()], &file);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("byte order mark") && said.contains(encoding), "{said}");
        assert!(!out.exists(), "{name}");
    }
}
