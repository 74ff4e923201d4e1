//! Inputs that are nested as deep as nothing is, in each way that a format has: nothing that reads, writes or destroys
//! them goes down by calling itself. A stack that overflows ends the program by a signal.
//!
//! Quick runs are less deep, and their workers have stacks that are as much smaller.

use crate::support::effort::is_thorough;
use crate::support::protobuf::{Value, encode};
use crate::support::runner::formats;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

/// As many levels as no machine's stack holds.
fn deep() -> usize {
    if is_thorough() { 100_000 } else { 4_000 }
}

/// The result of reading an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// A stack has all levels as its frames.
    Whole,
    /// It is read, and its levels are no frames.
    Done,
    /// It is refused: one line.
    Refused,
}

struct Deep {
    name: &'static str,
    bytes: Vec<u8>,
    read: Read,
}

fn case(name: &'static str, read: Read, bytes: impl Into<Vec<u8>>) -> Deep {
    Deep { name, bytes: bytes.into(), read }
}

fn list(of: impl Fn(usize) -> String) -> String {
    (0..deep()).map(of).collect::<Vec<_>>().join(",")
}

fn nested(open: &str, middle: &str, close: &str) -> String {
    [&open.repeat(deep()), middle, &close.repeat(deep())].concat()
}

/// Runs a command over a file in this directory, on the first thread alone or on workers.
fn jitgraft(directory: &Path, words: &[&str], threads: &str) -> Output {
    let stack = if is_thorough() { 2 << 20 } else { 352 << 10 };
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(words).args(["-q", "--threads", threads]).current_dir(directory).env("HOME", directory);
    command.env("RUST_MIN_STACK", stack.to_string()).output().unwrap()
}

/// Reads all of them. The first thread has 8 MB in any case: quick runs leave it out.
fn read_all(cases: Vec<Deep>) {
    let directory = tempfile::tempdir().unwrap();
    let (next, failed) = (Mutex::new(cases.iter().enumerate()), Mutex::new(Vec::new()));
    let threads: &[&str] = if is_thorough() { &["1", "2"] } else { &["2"] };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((at, case)) = next.lock().unwrap().next() else { return };
                    let input = format!("input-{at}");
                    fs::write(directory.path().join(&input), &case.bytes).unwrap();
                    for threads in threads {
                        let output = jitgraft(directory.path(), &["collapse", "-i", &input], threads);
                        failed.lock().unwrap().extend(wrong(case, &output));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The difference between the output and what it should be.
fn wrong(case: &Deep, output: &Output) -> Option<String> {
    let levels =
        output.stdout.split(|byte| *byte == b'\n').map(|line| line.iter().filter(|byte| **byte == b';').count());
    let is_right = match case.read {
        Read::Whole => output.status.success() && levels.max().unwrap_or(0) + 2 >= deep(),
        Read::Done => output.status.success(),
        Read::Refused => output.status.code() == Some(1),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.chars().take(500).collect();
    (!is_right).then(|| format!("{}: {} {said}", case.name, output.status))
}

/// Only the innermost frame has time or cost of its own: otherwise there were a stack for each level.
#[test]
fn texts_and_traces() {
    let last = deep() - 1;
    let end = deep();
    let speedscope = |profile: String| {
        let schema = "https://www.speedscope.app/file-format-schema.json";
        format!(
            r#"{{"$schema":"{schema}","shared":{{"frames":[{{"name":"f"}}]}},"profiles":[{{"unit":"none",{profile}}}]}}"#
        )
    };
    let zeros = list(|_| "0".to_owned());
    let prefixes = list(|at| at.checked_sub(1).map_or_else(|| "null".to_owned(), |caller| caller.to_string()));
    let call_frame = r#""callFrame":{"functionName":"f","url":"","lineNumber":1,"columnNumber":1}"#;
    let nodes = list(|at| {
        let child = if at < last { (at + 2).to_string() } else { String::new() };
        format!(r#"{{"id":{},{call_frame},"hitCount":1,"children":[{child}]}}"#, at + 1)
    });
    let head = (0..deep()).map(|id| format!(r#"{{"id":{id},"functionName":"f","hitCount":1,"children":["#));
    let head: String = head.collect();
    let event = |phase: &str, time: usize, more: &str| {
        format!(r#"{{"name":"f","ph":"{phase}","cat":"c","ts":{time},"pid":1,"tid":1{more}}}"#)
    };
    let parented = |key: &str, at: usize| at.checked_sub(1).map_or_else(String::new, |up| format!(r#","{key}":{up}"#));
    let chunk_nodes = list(|at| {
        let parent = if at > 0 { format!(r#","parent":{at}"#) } else { String::new() };
        format!(r#"{{"id":{}{parent},"callFrame":{{"functionName":"f"}}}}"#, at + 1)
    });
    let profile = r#"{"name":"Profile","ph":"P","id":"1","pid":1,"tid":1,"ts":1,"args":{"data":{"startTime":1}}}"#;
    let frames = list(|at| format!(r#""{at}":{{"name":"f","category":"c"{}}}"#, parented("parent", at)));
    let callgrind = |name: &dyn Fn(usize) -> String| {
        let function = |at: usize| {
            let call = format!("cfn={}\ncalls=1 1\n1 1\n", name(at + 1));
            format!("fn={}\n1 {}\n{}", name(at), u8::from(at == last), if at < last { call } else { String::new() })
        };
        let functions: String = (0..deep()).map(function).collect();
        format!("# callgrind format\nversion: 1\npid: 7\nevents: Ir\n{functions}")
    };
    read_all(vec![
        case("folded", Read::Whole, format!("{}f 1\n", "f;".repeat(last))),
        case("folded, distinct", Read::Whole, format!("{} 1\n", list(|at| format!("f{at}")).replace(',', ";"))),
        case(
            "perf script",
            Read::Whole,
            format!("a 7/7 1.000001: 1 cycles: \n{}\n", "\t401000 f+0x1 (/a)\n".repeat(deep())),
        ),
        case(
            "perf script, inlined",
            Read::Whole,
            format!("a 7/7 1.000001: 1 cycles: \n{}\t401000 g (/a)\n\n", "\t401000 f (inlined)\n".repeat(deep())),
        ),
        case("callgrind", Read::Whole, callgrind(&|at| format!("f{at}"))),
        case("callgrind, recursion", Read::Whole, callgrind(&|at| format!("f'{at}"))),
        case(
            "speedscope, samples",
            Read::Whole,
            speedscope(format!(r#""type":"sampled","samples":[[{zeros}]],"weights":[1]"#)),
        ),
        case(
            "speedscope, events",
            Read::Whole,
            speedscope(format!(
                r#""type":"evented","events":[{},{{"type":"C","frame":0,"at":{}}}]"#,
                list(|_| r#"{"type":"O","frame":0,"at":0}"#.to_owned()),
                end
            )),
        ),
        case(
            "firefox",
            Read::Whole,
            format!(
                r#"{{"meta":{{"preprocessedProfileVersion":58}},"shared":{{"stringArray":["f"],"frameTable":{{"func":[0]}},"funcTable":{{"name":[0]}},"stackTable":{{"frame":[{zeros}],"prefix":[{prefixes}]}}}},"threads":[{{"name":"a","samples":{{"stack":[{last}]}}}}]}}"#
            ),
        ),
        case(
            "cpuprofile",
            Read::Whole,
            format!(r#"{{"nodes":[{nodes}],"startTime":0,"endTime":9,"samples":[{}],"timeDeltas":[1]}}"#, deep()),
        ),
        case(
            "cpuprofile, old",
            Read::Whole,
            format!(r#"{{"head":{head}{},"startTime":0,"endTime":1,"samples":[{last}]}}"#, "]}".repeat(deep())),
        ),
        case("chrome, begins", Read::Whole, format!("[{},{}]", list(|_| event("B", 0, "")), event("i", end, ""))),
        case(
            "chrome, begins and ends",
            Read::Whole,
            format!("[{},{}]", list(|_| event("B", 0, "")), list(|_| event("E", end, ""))),
        ),
        case("chrome, whole", Read::Whole, format!("[{}]", list(|_| event("X", 0, &format!(r#","dur":{end}"#))))),
        case(
            "chrome, by id",
            Read::Done,
            format!("[{},{}]", list(|_| event("b", 0, r#","id":1"#)), list(|_| event("e", end, r#","id":1"#))),
        ),
        case(
            "chrome, stack frames",
            Read::Done,
            format!(
                r#"{{"traceEvents":[{}],"stackFrames":{{{frames}}},"samples":[{{"cpu":0,"tid":1,"ts":1,"name":"c","sf":{last},"weight":1}}]}}"#,
                event("X", 1, r#","dur":2"#)
            ),
        ),
        case(
            "chrome, chunks",
            Read::Done,
            format!(
                r#"[{profile},{{"name":"ProfileChunk","ph":"P","id":"1","pid":1,"tid":1,"ts":2,"args":{{"data":{{"cpuProfile":{{"nodes":[{chunk_nodes}],"samples":[{}]}},"timeDeltas":[5]}}}}}}]"#,
                deep()
            ),
        ),
        case("dtrace", Read::Whole, format!("\n\n{}  1\n", "  a`f+0x1\n".repeat(deep()))),
        case(
            "xctrace",
            Read::Whole,
            format!(
                r#"<trace-query-result><row><backtrace id="1"><frame id="2" name="f"/>{}</backtrace></row>"#,
                r#"<frame ref="2"/>"#.repeat(last)
            ),
        ),
        case(
            "xctrace, rows in rows",
            Read::Done,
            format!(
                "<trace-query-result>{}",
                nested("<row>", r#"<backtrace id="1"><frame id="2" name="f"/></backtrace>"#, "</row>")
            ),
        ),
    ]);
}

/// Values in values that no reader wants: what is skipped is not built.
#[test]
fn members_of_json_that_nobody_reads() {
    let mut cases = Vec::new();
    for junk in [nested("[", "1", "]"), nested("{\"a\":", "1", "}"), "[".repeat(deep())] {
        // What is skipped may be as deep as it likes, if it ends.
        let skipped = if junk.ends_with([']', '}']) { Read::Done } else { Read::Refused };
        cases.extend([
            case("speedscope", skipped, format!(r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","x":{junk},"shared":{{"frames":[]}},"profiles":[]}}"#)),
            case("firefox", skipped, format!(r#"{{"meta":{{"preprocessedProfileVersion":58,"x":{junk}}},"threads":[]}}"#)),
            case("cpuprofile", skipped, format!(r#"{{"nodes":[{{"id":1,"callFrame":{{"functionName":"f"}},"x":{junk}}}],"startTime":0,"endTime":1}}"#)),
            case("otlp", Read::Refused, format!(r#"{{"resourceProfiles":[{{"x":{junk}}}]}}"#)),
            case("nothing", Read::Refused, junk),
        ]);
    }
    read_all(cases);
}

/// A field of a protocol buffer that holds `levels` more of them, each in the one before; `around` are the tags,
/// repeated.
fn message(around: &[u64], levels: usize, inside: &[u8]) -> Vec<u8> {
    // From inside out, each front by itself: the whole is put together once.
    let (mut fronts, mut len) = (Vec::new(), inside.len());
    for level in (0..levels).rev() {
        let mut front = encode(&[(around[level % around.len()], Value::Bytes(Vec::new()))]);
        front.pop();
        let mut rest = len;
        while rest >= 0x80 {
            front.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        front.push(rest as u8);
        len += front.len();
        fronts.push(front);
    }
    fronts.reverse();
    [fronts.concat(), inside.to_vec()].concat()
}

#[test]
fn protocol_buffers() {
    let bytes = |tag: u64, content: Vec<u8>| (tag, Value::Bytes(content));
    let (group, end) = (vec![15 << 3 | 3; deep()], vec![15 << 3 | 4; deep()]);
    let pprof = |locations: usize, lines: usize, more: &[u8]| {
        let line = bytes(4, encode(&[(1, Value::Number(1))]));
        let mut location = vec![(1, Value::Number(1))];
        location.extend(vec![line; lines]);
        let function = encode(&[(1, Value::Number(1)), (2, Value::Number(3))]);
        let sample = encode(&[bytes(1, vec![1; locations]), bytes(2, vec![1])]);
        let mut fields = vec![bytes(1, encode(&[(1, Value::Number(1)), (2, Value::Number(2))])), bytes(2, sample)];
        fields.extend([bytes(4, encode(&location)), bytes(5, function)]);
        fields.extend(["", "cpu", "ns", "f"].map(|text| bytes(6, text.into())));
        [encode(&fields), more.to_vec()].concat()
    };
    let attribute = |value: Vec<u8>| {
        let attribute = encode(&[bytes(1, b"service.name".to_vec()), bytes(2, value)]);
        encode(&[bytes(1, encode(&[bytes(1, encode(&[bytes(1, attribute)]))]))])
    };
    // A list of values (5) has values (1), and one of names (6) pairs (1) with a value (2).
    let (lists, maps) = (message(&[5, 1], deep(), b""), message(&[6, 1, 2], deep(), b""));
    let value = nested(r#"{"arrayValue":{"values":["#, r#"{"stringValue":"x"}"#, "]}}");
    let json = format!(r#"{{"resourceProfiles":[{{"resource":{{"attributes":[{{"key":"k","value":{value}}}]}}}}]}}"#);
    read_all(vec![
        case("pprof, inlined", Read::Whole, pprof(1, deep(), b"")),
        case("pprof, locations", Read::Whole, pprof(deep(), 1, b"")),
        case("pprof, groups", Read::Done, pprof(1, 1, &[group.clone(), end.clone()].concat())),
        case("pprof, open groups", Read::Done, pprof(1, 1, &group)),
        case("otlp, lists", Read::Refused, attribute(lists)),
        case("otlp, maps", Read::Refused, attribute(maps)),
        case("otlp, groups", Read::Refused, [attribute(b"\x0a\x01x".to_vec()), group, end].concat()),
        case("otlp, JSON", Read::Refused, json),
    ]);
}

/// Names that a demangler reads, and those that are only looked at.
#[test]
fn names() {
    let names = [
        format!("_Z1fI{}i{}vv", "1AI".repeat(deep()), "E".repeat(deep() + 1)),
        format!("_Z1f{}i", "P".repeat(deep())),
        format!("_Z1f{}v{}", "F".repeat(deep()), "E".repeat(deep())),
        format!("_Z1fIX{}1EEvv", "nt".repeat(deep())),
        format!("{}1fvE", "_ZZ".repeat(deep())),
        format!("_Z{}1f", "GR".repeat(deep())),
        format!("_Z1fIJ{}{}Evv", "J".repeat(deep()), "E".repeat(deep())),
        format!("_R{}C1a1b", "Nv".repeat(deep())),
        format!("{}C1a", "_RI".repeat(deep())),
        format!("_RMC1a{}e", "R".repeat(deep())),
        format!("_RMC1a{}{}", "T".repeat(deep()), "E".repeat(deep())),
        format!("_ZN{}17h0123456789abcdefE", "1a".repeat(deep())),
        format!("L{}B::f({}", "a/".repeat(deep()), "[".repeat(deep())),
        format!("void [App] A::f({})[Tier0]", nested("class A`1<", "int", ">")),
        nested("f<", "int", ">"),
        nested("(", "f", ")"),
        nested("{", "f", "}"),
    ];
    let text = |name: &String| {
        format!(
            "a 7/7 1.000001: 1 cycles: \n\t401000 {name}+0x1 (/a)\n\t401000 {name} (/tmp/perf-7.map)\n\t401000 main (/a)\n\n"
        )
    };
    read_all(names.iter().map(|name| case("a name", Read::Done, text(name))).collect());
}

/// All that is written, of one stack.
#[test]
fn outputs() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("deep.folded"), format!("{}f 1\nf 3\n", "f;g;".repeat(deep() / 2))).unwrap();
    let written = formats().into_iter().filter(|format| format.is_written).map(|format| format.name);
    let mut jobs: Vec<Vec<String>> = written.map(|name| vec!["export".to_owned(), "--to".to_owned(), name]).collect();
    for job in [
        "report --tree",
        "report --tree --format json",
        "report",
        "report --callees f",
        "view --no-open",
        "merge --to pprof",
    ] {
        jobs.push(job.split(' ').map(str::to_owned).collect());
    }
    for (at, job) in jobs.iter().enumerate() {
        let output = format!("out-{at}");
        let words: Vec<&str> = job.iter().map(|word| &word[..]).chain(["deep.folded", "-o", &output]).collect();
        let done = jitgraft(directory.path(), &words, if at % 2 == 0 { "1" } else { "2" });
        assert!(done.status.success(), "{words:?}: {} {}", done.status, String::from_utf8_lossy(&done.stderr));
    }
}
