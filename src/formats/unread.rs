//! Formats of other profilers that jitgraft recognizes but does not read, and what to do instead for each.

use crate::bytes::protobuf::{FieldValue, Fields};

/// A format that jitgraft recognizes by the start of a file, but doesn't read.
#[derive(Debug)]
pub struct UnreadFormat {
    /// What error messages call an input in this format, with the article: `a gprof report`.
    pub name: &'static str,
    /// What the user can do to get a profile that jitgraft reads. Begins with a verb: `pass …`, `record …`, `export …`.
    pub remedy: &'static str,
    signature: Signature,
}

/// How to recognize a format by the start of a file.
#[derive(Debug)]
enum Signature {
    /// The file starts with these bytes.
    Bytes(&'static [u8]),
    /// The file starts with the first of these words (after white space) and contains the others anywhere after that.
    Words(&'static [&'static str]),
    /// This function recognizes the start of a file, because neither `Bytes` nor `Words` can describe it.
    Is(fn(&[u8]) -> bool),
}

use Signature::{Bytes, Is, Words};

/// All formats that are recognized but not read. If several match, the first one counts.
const UNREAD: &[UnreadFormat] = &[
    UnreadFormat { name: "a table (Parquet)", remedy: TABLE_REMEDY, signature: Bytes(b"PAR1") },
    UnreadFormat { name: "a table (Arrow)", remedy: TABLE_REMEDY, signature: Is(is_arrow) },
    UnreadFormat {
        name: "a diff of two profiles (folded stacks with two counts, as written by difffolded.pl and \
               inferno-diff-folded)",
        remedy: "pass the two original profiles to jitgraft flamegraph --diff BEFORE AFTER or jitgraft report \
                 --diff BEFORE AFTER",
        signature: Is(has_two_counts),
    },
    UnreadFormat {
        name: "a list of stacks with their counts in front (as uniq -c writes them)",
        remedy: "put the count at the end: awk '{n = $1; $1 = \"\"; print substr($0, 2), n}' FILE > x.folded",
        signature: Is(has_counts_in_front),
    },
    UnreadFormat {
        name: "a callgrind file without the line that names its costs (events:)",
        remedy: "if the header was cut off, add a line such as 'events: Ir' at the start, with one name per cost",
        signature: Is(lacks_events),
    },
    UnreadFormat {
        name: "the output of Austin with three metrics per sample (time, idle time and memory)",
        remedy: "record a single metric with austin -i INTERVAL (without --full)",
        signature: Is(|head| head.starts_with(b"# austin: ") && has(head, "\n# mode: full\n")),
    },
    UnreadFormat {
        name: "a binary file of Austin (MOJO)",
        remedy: "convert it with mojo2austin FILE x.folded",
        signature: Bytes(b"MOJ"),
    },
    UnreadFormat {
        name: "text like folded stacks, but with weights that are not plain numbers",
        remedy: "write each line as FRAME;FRAME;FRAME NUMBER",
        signature: Is(has_odd_weights),
    },
    UnreadFormat {
        name: "an OpenTelemetry file with traces, metrics or logs (OTLP)",
        remedy: "jitgraft only reads OpenTelemetry profiles, not traces, metrics or logs",
        signature: Is(is_other_otlp),
    },
    UnreadFormat {
        name: "a Perfetto trace (protobuf)",
        remedy: "convert it to trace events with traceconv json TRACE x.json, or its samples to pprof with traceconv \
                 profile TRACE",
        signature: Is(is_perfetto),
    },
    UnreadFormat {
        name: "a raw Gecko profile from Firefox",
        remedy: "open it on profiler.firefox.com and save it there",
        signature: Is(is_gecko),
    },
    UnreadFormat {
        name: "jitgraft's own JSON output",
        remedy: "pass the profile that the JSON was made from (export to pprof, -o x.pb.gz, for a copy that jitgraft \
                 can read)",
        signature: Is(is_own_json),
    },
    UnreadFormat {
        name: "a V8 heap snapshot",
        remedy: "a heap snapshot has objects but no stacks; record a .cpuprofile with node --cpu-prof",
        signature: Words(&["{\"snapshot\"", "\"node_fields\""]),
    },
    UnreadFormat {
        name: "a V8 heap profile",
        remedy: "record a .cpuprofile with node --cpu-prof, or allocations with npm's pprof package",
        signature: Words(&["{\"head\"", "\"selfSize\""]),
    },
    UnreadFormat {
        name: "a DevTools protocol message that contains a .cpuprofile",
        remedy: "extract the profile with jq '(.result // .params // .).profile' FILE > x.cpuprofile",
        signature: Is(|head| {
            let head = &head[..head.len().min(512)];
            let is_inside = Words(&["{\"profile\":{\"nodes\":["]).fits(head)
                || Words(&["{", "\"result\":{\"profile\":{\"nodes\":["]).fits(head)
                || Words(&["{", "\"params\":{", "\"profile\":{\"nodes\":["]).fits(head);
            is_inside && has(head, "\"callFrame\"")
        }),
    },
    UnreadFormat {
        name: "a V8 log (node --prof)",
        remedy: "record a .cpuprofile with node --cpu-prof (jitgraft uses a V8 log only to name JIT code in a \
                 perf.data of the same run: --jit-log FILE)",
        signature: Is(is_v8_log),
    },
    UnreadFormat {
        name: "a V8 log that node --prof-process --preprocess converted to JSON",
        remedy: "record a .cpuprofile with node --cpu-prof",
        signature: Words(&["{\"code\":[{\"name\":", "\"type\":"]),
    },
    UnreadFormat {
        name: "a recording of Firefox's old performance tool",
        remedy: "record it again with the Firefox Profiler (profiler.firefox.com), and save it there",
        signature: Words(&["{\"label\":", "\"duration\":", "\"markers\":["]),
    },
    UnreadFormat {
        name: "a timeline from Safari's Web Inspector",
        remedy: "sample the process on macOS with sample PID, or record it with xctrace record --template 'Time Profiler'",
        signature: Words(&["{\"version\":", "\"recording\":{", "\"instrumentTypes\":["]),
    },
    UnreadFormat {
        name: "a stackprof profile as JSON",
        remedy: "write folded stacks from the original dump with stackprof --stackcollapse DUMP > x.folded",
        signature: Words(&["{\"version\":", "\"mode\":", "\"interval\":", "\"samples\":", "\"gc_samples\":"]),
    },
    UnreadFormat {
        name: "a GHC profile as JSON (-pj)",
        remedy: "record a text profile with +RTS -p",
        signature: Words(&["{\"program\":", "\"arguments\":[", "\"rts_arguments\":["]),
    },
    UnreadFormat {
        name: "a Pyroscope flame graph (flamebearer JSON)",
        remedy: "download the profile as pprof",
        signature: Is(|head| begins(head, b"{") && has(&head[..head.len().min(512)], "\"flamebearer\"")),
    },
    UnreadFormat {
        name: "a GHC eventlog",
        remedy: "convert it to speedscope's format with hs-speedscope, or record a text profile with +RTS -p",
        signature: Bytes(b"hdrb"),
    },
    UnreadFormat {
        name: "the text output of jfr print",
        remedy: "convert the .jfr file itself with async-profiler's jfrconv -o collapsed x.jfr x.folded",
        signature: Is(|head| head.starts_with(b"jdk.") && has(first_line(head), " {") && has(head, "\n  startTime = ")),
    },
    UnreadFormat {
        name: "text stacks from phpspy",
        remedy: "convert it with stackcollapse-phpspy.pl (phpspy), or record a callgrind file with phpspy -j callgrind",
        signature: Is(is_phpspy),
    },
    UnreadFormat {
        name: "a Java Flight Recorder file",
        remedy: "convert it with async-profiler's jfrconv -o collapsed x.jfr x.folded (or -o pprof)",
        signature: Bytes(b"FLR\0"),
    },
    UnreadFormat {
        name: "an async-profiler HTML page",
        remedy: "record folded stacks with async-profiler -o collapsed, or extract them with jfrconv -o collapsed \
                 x.html x.folded",
        signature: Is(|head| begins(head, b"<!doctype html") && has(head, "async-profiler")),
    },
    UnreadFormat {
        name: "a .NET trace (.nettrace)",
        remedy: "convert it with dotnet-trace convert --format Speedscope x.nettrace",
        signature: Bytes(b"Nettrace"),
    },
    UnreadFormat {
        name: "a Go execution trace",
        remedy: "convert its blocking times to pprof with go tool trace -pprof=TYPE TRACE, or record CPU time with \
                 pprof.StartCPUProfile",
        signature: Is(|head| head.starts_with(b"go 1.") && head.get(..16).is_some_and(|head| has(head, " trace\0"))),
    },
    UnreadFormat {
        name: "a gperftools CPU profile",
        remedy: "convert it with pprof -proto PROGRAM FILE > x.pb.gz (or go tool pprof -proto)",
        signature: Is(is_gperftools),
    },
    UnreadFormat {
        name: "a gperftools or jemalloc heap profile",
        remedy: "convert it with pprof -proto PROGRAM FILE > x.pb.gz (for jemalloc, jeprof --collapsed)",
        signature: Is(|head| {
            let head = head.trim_ascii_start();
            (head.starts_with(b"heap profile:") || head.starts_with(b"heap_v2/")) && !is_go_heap_profile(head)
        }),
    },
    UnreadFormat {
        name: "a text profile of contention, threads or the heap (gperftools or Java)",
        remedy: "convert it with pprof -proto PROGRAM FILE > x.pb.gz (or go tool pprof -proto)",
        signature: Is(is_gperftools_text),
    },
    UnreadFormat {
        name: "Python cProfile statistics",
        remedy: "cProfile statistics have no stacks; record a profile with py-spy record -f speedscope, pyinstrument -r speedscope, \
                 or perf record with python -X perf",
        signature: Is(is_pstats),
    },
    UnreadFormat {
        name: "an Xdebug trace",
        remedy: "record a callgrind profile with xdebug.mode=profile",
        signature: Is(|head| {
            head.starts_with(b"TRACE START [") || head.starts_with(b"Version: ") && has(head, "TRACE START [")
        }),
    },
    UnreadFormat {
        name: "the text output of bpftrace maps",
        remedy: "convert it with stackcollapse-bpftrace.pl (FlameGraph)",
        signature: Is(is_bpftrace),
    },
    UnreadFormat {
        name: "JSON from perf data convert --to-json",
        remedy: "pass perf.data itself",
        signature: Is(is_perf_json),
    },
    UnreadFormat {
        name: "text in UTF-16 without a byte order mark",
        remedy: "convert it with iconv -f UTF-16LE -t UTF-8 FILE > NEW (or UTF-16BE)",
        signature: Is(is_unmarked_utf16),
    },
    UnreadFormat {
        name: "text in UTF-32",
        remedy: "convert it with iconv -f UTF-32 -t UTF-8 FILE > NEW",
        signature: Is(|head| head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff")),
    },
    UnreadFormat {
        name: "a raw dump of perf records (perf script -D)",
        remedy: "pass perf.data itself, or the text of perf script without -D",
        signature: Is(is_raw_dump),
    },
    UnreadFormat {
        name: "the text output of ftrace or trace-cmd",
        remedy: "to get stacks for the same events, record them with perf record -g -e EVENT",
        signature: Is(|head| head.starts_with(b"# tracer: ") || is_trace_cmd(head)),
    },
    UnreadFormat {
        name: "a gprof report",
        remedy: "a gprof report has totals but no stacks; record stacks with perf record -g -- PROGRAM",
        signature: Is(is_gprof),
    },
    UnreadFormat {
        name: "a VTune top-down report that is not comma-separated or lacks the column CPU Time:Self",
        remedy: "export the result with vtune -report top-down -column=\"CPU Time:Self\",Module -format csv \
                 -csv-delimiter comma -r DIR",
        signature: Is(|head| {
            let line = first_line(head);
            let is_readable = line.starts_with(b"Function Stack,") && has(line, "CPU Time:Self");
            (begins(head, b"Function Stack") || begins(head, b"\"Function Stack\"")) && !is_readable
        }),
    },
    UnreadFormat {
        name: "a gprof-like report from VTune or Amplifier (gprof-cc)",
        remedy: "export the result with vtune -report top-down -column=\"CPU Time:Self\",Module -format csv \
                 -csv-delimiter comma -r DIR",
        signature: Is(|head| begins(head, b"Index ") && has(first_line(head), "CPU Time:")),
    },
    UnreadFormat {
        name: "a call graph printed by pmcstat (FreeBSD)",
        remedy: "convert it with stackcollapse-pmc.pl (FlameGraph)",
        signature: Is(|head| {
            let line = first_line(head);
            line.starts_with(b"@ ") && line.ends_with(b" samples]") && has(line, " [")
        }),
    },
    UnreadFormat {
        name: "an HPROF profile from a JVM",
        remedy: "sample stacks with async-profiler -o collapsed, or with perf record and java \
                 -XX:+PreserveFramePointer",
        signature: Bytes(b"JAVA PROFILE 1."),
    },
    UnreadFormat {
        name: "a Sysprof profile",
        remedy: "record the program with perf record -g",
        // Sysprof's capture files start with a magic number in either byte order. Files of old versions start with XML.
        signature: Is(|head| {
            let is_capture = head.starts_with(&[0x5e, 0x97, 0xca, 0xfd]) || head.starts_with(&[0xfd, 0xca, 0x97, 0x5e]);
            is_capture || Words(&["<profile><size>", "<objects>"]).fits(head)
        }),
    },
    UnreadFormat {
        name: "a protobuf report of simpleperf",
        remedy: "pass the perf.data that the report was made from",
        signature: Bytes(b"SIMPLEPERF\x01\0"),
    },
    UnreadFormat {
        name: "a trace from Google Cloud Trace",
        remedy: "a Cloud Trace has spans of a distributed system, not of a program; jitgraft reads trace events, pprof profiles \
                 and OpenTelemetry profiles",
        signature: Words(&["{\"projectId\":", "\"traceId\":", "\"spans\":["]),
    },
    UnreadFormat {
        name: "the text output of pprof -top, -tree, -traces or -raw",
        remedy: "pass the profile that pprof read (.pb.gz)",
        signature: Is(is_pprof_text),
    },
    UnreadFormat {
        name: "a Go text profile (debug=1 or debug=2)",
        remedy: "get it from /debug/pprof/ without the debug parameter",
        signature: Is(|head| {
            let start = &head[..head.len().min(64)];
            let is_mutex = begins(head, b"--- mutex:") || begins(head, b"--- contention:");
            has(start, " profile: total ") || is_go_dump(head) || is_go_heap_profile(head) || is_mutex
        }),
    },
    UnreadFormat {
        name: "a node --prof-process report",
        remedy: "record a .cpuprofile with node --cpu-prof (jitgraft does not read the output of --prof-process \
                 --preprocess either)",
        signature: Words(&["Statistical profiling result from "]),
    },
    UnreadFormat {
        name: "a JVM thread dump",
        remedy: "a thread dump shows a single moment; sample stacks with async-profiler -o collapsed, or with perf \
                 record and java -XX:+PreserveFramePointer",
        signature: Is(|head| has(head, "Full thread dump ")),
    },
    UnreadFormat {
        name: "a gdb or pstack backtrace",
        remedy: "a backtrace shows a single moment; sample stacks with perf record -g -p PID",
        signature: Is(is_backtrace),
    },
    UnreadFormat {
        name: "the text output of BCC's profile or offcputime",
        remedy: "run profile or offcputime with -f, which prints folded stacks",
        signature: Is(|head| {
            let is_tool = head.starts_with(b"Sampling at ") || head.starts_with(b"Tracing off-CPU time (us) ");
            is_tool && has(head, " of ")
        }),
    },
    UnreadFormat {
        name: "bpftrace maps as JSON",
        remedy: "print text (without -f json) and convert it with stackcollapse-bpftrace.pl (FlameGraph)",
        signature: Is(|head| {
            let is_event =
                Words(&["{\"type\":\"attached_probes\""]).fits(head) || Words(&["{\"type\":\"map\""]).fits(head);
            is_event && has(head, "\"data\"")
        }),
    },
    UnreadFormat {
        name: "a call tree as JSON (d3-flame-graph)",
        remedy: "pass the folded stacks that the call tree was made from",
        signature: Is(|head| {
            let head = &head[..head.len().min(512)];
            let is_named = Words(&["{\"name\":", "\"value\":", "\"children\":["]).fits(head);
            is_named && !has(head, "\"ph\"") && !has(head, "\"traceEvents\"")
        }),
    },
    UnreadFormat {
        name: "trace events, one per line",
        remedy: "combine them into one JSON array with jq -s . FILE > x.json",
        signature: Is(|head| {
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let is_event = begins(line, b"{\"")
                && has(line, "\"ph\"")
                && has(line, "\"ts\"")
                && line.trim_ascii_end().ends_with(b"}");
            is_event && !has(line, "\"traceEvents\"")
        }),
    },
    UnreadFormat {
        name: "the table of contents of an Instruments trace",
        remedy: "export the samples with xctrace export --input DIR --xpath \
                 '/trace-toc/run/data/table[@schema=\"time-profile\"]'",
        signature: Is(|head| begins(head, b"<?xml") && has(head, "<trace-toc>")),
    },
    UnreadFormat {
        name: "a call tree copied from Instruments (Deep Copy)",
        remedy: "export the samples with xctrace export --input TRACE --xpath \
                 '/trace-toc/run/data/table[@schema=\"time-profile\"]'",
        signature: Is(is_instruments_copy),
    },
    UnreadFormat {
        name: "a pyinstrument session",
        remedy: "write a speedscope file with pyinstrument -r speedscope",
        signature: Is(|head| {
            let is_session =
                Words(&["{\"session\":{"]).fits(head) || Words(&["{\"start_time\":", "\"sample_count\":"]).fits(head);
            is_session && (has(head, "\"frame_tree\"") || has(head, "\"root_frame\"") || has(head, "\"sample_count\""))
        }),
    },
    UnreadFormat {
        name: "an XHProf or Tideways profile",
        remedy: "this profile has caller/callee pairs but no stacks; record a callgrind profile with \
                 xdebug.mode=profile",
        signature: Is(|head| begins(head, b"{") && has(head, "==>") && has(head, "\"ct\":")),
    },
    UnreadFormat {
        name: "an Android method trace",
        remedy: "record a perf.data with simpleperf record",
        signature: Is(|head| head.starts_with(b"*version\n") || head.starts_with(b"SLOW")),
    },
    UnreadFormat {
        name: "allocations recorded by heaptrack",
        remedy: "convert it with heaptrack_print -F x.folded FILE",
        signature: Is(|head| head.starts_with(b"v ") && has(&head[..head.len().min(256)], "\nX ")),
    },
    UnreadFormat {
        name: "allocations recorded by memray",
        remedy: "show it with memray flamegraph, or record the same calls with perf record -g -e probe_libc:malloc",
        signature: Bytes(b"memray\0"),
    },
    UnreadFormat {
        name: "the text output of perf annotate",
        remedy: "pass perf.data itself to jitgraft annotate",
        signature: Is(|head| begins(head, b"Percent |") && has(&head[..head.len().min(256)], "Disassembly of")),
    },
    UnreadFormat {
        name: "the text output of callgrind_annotate, cg_annotate or ms_print",
        remedy: "pass the profile that the text was made from (callgrind.out.PID or cachegrind.out.PID)",
        signature: Is(is_annotated_by_valgrind),
    },
    UnreadFormat {
        name: "a valgrind report (XML)",
        remedy: "record a profile with valgrind --tool=callgrind",
        signature: Is(|head| begins(head, b"<?xml") && has(head, "<valgrindoutput>")),
    },
    UnreadFormat {
        name: "a massif report",
        remedy: "jitgraft callgrind FILE names the JIT code in a massif report; view its output with ms_print",
        signature: Words(&["desc: ", "time_unit: "]),
    },
    UnreadFormat {
        name: "a DHAT report",
        remedy: "jitgraft callgrind FILE names the JIT code in a DHAT report; view its output with dh_view.html",
        signature: Words(&["{\"dhatFileVersion\""]),
    },
];

const TABLE_REMEDY: &str = "query it with DuckDB or Spark, which can also write folded stacks (see docs/sql.md)";

/// Finds the format of a file that begins with `head`. `None` if it isn't one of the recognized formats.
pub fn recognize(head: &[u8]) -> Option<&'static UnreadFormat> {
    UNREAD.iter().find(|format| format.signature.fits(head))
}

/// Recognizes the output directory of a profiler by the names of the files in it. `None` if the directory isn't that of
/// a profiler we know.
pub fn recognize_directory<'a>(mut files: impl Iterator<Item = &'a [u8]>) -> Option<&'static UnreadFormat> {
    // The two formats below are recognized by the names of files, so their signatures are never compared.
    const VTUNE: &UnreadFormat = &UnreadFormat {
        name: "a VTune result",
        remedy: "export it with vtune -report top-down -column=\"CPU Time:Self\",Module -format csv -csv-delimiter \
                 comma -r DIR",
        signature: Bytes(b""),
    };
    const INSTRUMENTS: &UnreadFormat = &UnreadFormat {
        name: "an Instruments trace",
        remedy: "export the samples with xctrace export --input DIR --xpath \
                 '/trace-toc/run/data/table[@schema=\"time-profile\"]'",
        signature: Bytes(b""),
    };
    files.find_map(|file| match file {
        b"form.template" | b"Trace1.run" => Some(INSTRUMENTS),
        _ if file.ends_with(b".vtune") => Some(VTUNE),
        _ => None,
    })
}

impl Signature {
    /// True if `head`, the start of an input, matches the signature.
    fn fits(&self, head: &[u8]) -> bool {
        match self {
            Bytes(bytes) => head.starts_with(bytes),
            // A list without words would fit every input.
            Words([]) => false,
            Words([first, others @ ..]) => {
                // Programs that write JSON may put blanks between its words, so blanks are ignored.
                let head = remove_whitespace(&head[..head.len().min(4096)]);
                head.starts_with(&remove_whitespace(first.as_bytes()))
                    && others.iter().all(|word| contains(&head, &remove_whitespace(word.as_bytes())))
            }
            Is(fits) => fits(head),
        }
    }
}

fn remove_whitespace(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// True if the input starts with `prefix`, apart from white space before it and the case of ASCII letters.
fn begins(head: &[u8], prefix: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    head.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

fn has(head: &[u8], text: &str) -> bool {
    contains(head, text.as_bytes())
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end()
}

/// True for V8's log. Its first line states V8's version or, up to Chrome 27, the first mapped library.
fn is_v8_log(head: &[u8]) -> bool {
    head.starts_with(b"v8-version,") || head.starts_with(b"shared-library,\"") && has(first_line(head), "\",0x")
}

/// True for gprof's flat profile or call graph (GNU, BSD, AIX), and for the data file that gprof reads.
fn is_gprof(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    head.starts_with(b"gmon\x01")
        || text.starts_with(b"Flat profile:")
        || text.starts_with(b"call graph profile:")
        || text.starts_with(b"index  % time    self")
        || text.starts_with(b"# @(#)") && has(first_line(text), "gprof")
        || text.starts_with(b"granularity: each sample hit covers ")
}

/// True for the table that Instruments copies as text: tabs separate its columns, the last of which is the symbol's
/// name.
fn is_instruments_copy(head: &[u8]) -> bool {
    let line = first_line(head);
    let starts: [&[u8]; 3] = [b"Weight\tSelf Weight\t", b"Running Time\tSelf", b"Bytes Used\tCount\t"];
    starts.iter().any(|start| line.starts_with(start)) && has(line, "\tSymbol Name")
}

/// True for jitgraft's own JSON output. Its first key is `frames` or `about`.
fn is_own_json(head: &[u8]) -> bool {
    const STARTS: [Signature; 3] = [
        Words(&["{\"frames\":[{\"name\":", "\"kind\":\""]),
        Words(&["{\"frames\":[],\"events\":["]),
        Words(&["{\"about\":{", "\"lost\":"]),
    ];
    STARTS.iter().any(|start| start.fits(head))
}

/// True for the difference of two profiles: folded stacks whose lines end with two counts, one from each profile.
fn has_two_counts(head: &[u8]) -> bool {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let (mut lines, mut has_callers) = (0, false);
    for line in whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let mut words = line.rsplitn(3, |byte| matches!(byte, b' ' | b'\t'));
        let (Some(after), Some(before), Some(stack)) = (words.next(), words.next(), words.next()) else { return false };
        if !is_decimal(after) || !is_decimal(before) {
            return false;
        }
        // Lines without a `;` prove nothing: the text may be a table, or folded stacks of single functions whose names
        // end in a number. At least one line must have several frames.
        has_callers |= stack.contains(&b';');
        lines += 1;
    }
    lines > 0 && has_callers
}

/// True for digits with at most one decimal point.
fn is_decimal(word: &[u8]) -> bool {
    let dots = word.iter().filter(|byte| **byte == b'.').count();
    dots <= 1
        && word.first().is_some_and(u8::is_ascii_digit)
        && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// True for UTF-16 text without a byte order mark: every second byte of ASCII characters is zero. Up to a quarter of
/// the characters may be others, as in names of functions in other languages.
fn is_unmarked_utf16(head: &[u8]) -> bool {
    const LOOKED_AT: usize = 256;
    let (pairs, _) = head[..head.len().min(LOOKED_AT)].as_chunks::<2>();
    let little_endian = pairs.iter().filter(|[low, high]| *high == 0 && is_ascii_text(*low)).count();
    let big_endian = pairs.iter().filter(|[high, low]| *high == 0 && is_ascii_text(*low)).count();
    // No text contains the character zero, so two zero bytes show that this isn't text.
    let has_zeros = pairs.contains(&[0, 0]);
    pairs.len() >= 4 && !has_zeros && little_endian.max(big_endian) * 4 >= pairs.len() * 3
}

/// True for the functions of a callgrind file that has lost its headers: names of files, objects and functions, and
/// lines of numbers. The first line that begins like a line of numbers decides.
fn lacks_events(head: &[u8]) -> bool {
    let mut has_function = false;
    for line in head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.starts_with(b"fn=") {
            has_function = true;
        } else if has_function && line.first().is_some_and(|first| first.is_ascii_digit() || b"+-*".contains(first)) {
            // Numbers may be hexadecimal (`0x1f`) or relative to the line before (`+3`, `-3`, `*`).
            return line.iter().all(|byte| byte.is_ascii_hexdigit() || b" x+-*.".contains(byte));
        } else if !line.is_empty() && !line.starts_with(b"#") && !is_callgrind_line(line) {
            return false;
        }
    }
    false
}

/// True for headers and names of a callgrind file.
fn is_callgrind_line(line: &[u8]) -> bool {
    let end = line.iter().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(line.len());
    match line.get(end) {
        Some(b':') => end > 0,
        Some(b'=') => {
            matches!(&line[..end], b"fl" | b"fi" | b"fe" | b"ob" | b"fn" | b"cfn" | b"cfl" | b"cfi" | b"cob" | b"calls")
        }
        _ => false,
    }
}

fn is_ascii_text(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte) || byte.is_ascii_whitespace()
}

/// True for the text of ftrace (`trace-cmd report`), such as `bash-1234  [000] d..2. 123.456789: sched_switch: …`.
fn is_trace_cmd(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(8);
    let mut events = lines.filter(|line| !line.starts_with(b"cpus=") && !line.starts_with(b"#"));
    events.next().is_some_and(is_ftrace_event)
}

/// True for a line such as `bash-1234  [000] d..2. 123.456789: sched_switch: …`: thread, CPU, perhaps flags, time.
fn is_ftrace_event(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (Some(task), Some(cpu)) = (words.next(), words.next()) else { return false };
    let tid = task.rsplit(|byte| *byte == b'-').next().unwrap_or_default();
    let Some(cpu) = cpu.strip_prefix(b"[").and_then(|cpu| cpu.strip_suffix(b"]")) else { return false };
    is_number(tid) && is_number(cpu) && line.contains(&b'-') && words.take(2).any(|word| word.ends_with(b":"))
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

fn is_go_dump(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(b"goroutine ") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(b" [")
}

/// True for a debugger's backtrace: `#0  0x00007f1b in poll () from /lib/libc.so.6`, perhaps after lines about threads.
fn is_backtrace(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').take(16).any(|line| {
        let Some(frame) = line.strip_prefix(b"#0 ").map(<[u8]>::trim_ascii_start) else { return false };
        frame.starts_with(b"0x") && has(frame, " in ") || has(frame, ") from ") || has(frame, ") at ")
    })
}

/// True for a dump of raw records (`perf script -D`). It contains samples too, but in another layout than `perf
/// script`.
fn is_raw_dump(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"0x") && has(head, "raw event: size ")
}

/// True if an input is in a format that jitgraft doesn't read, but that one of its readers would mistake for its own.
pub fn looks_like_another(head: &[u8]) -> bool {
    has_two_counts(head) || is_raw_dump(head)
}

/// True for the Gecko profiler's unprocessed JSON: it lacks the version field that processed profiles have.
fn is_gecko(head: &[u8]) -> bool {
    // Cleopatra, the first viewer for profiles of the Gecko profiler, saved them as JSON that begins like this.
    if Words(&["{\"format\":\"profileJSON"]).fits(head) {
        return true;
    }
    Words(&["{\"meta\"", "\"stackwalk\""]).fits(head) && !has(head, "\"preprocessedProfileVersion\"")
}

/// True for OpenTelemetry's traces, metrics and logs, in JSON or protobuf. JSON has the signal's name as its first key.
/// A protobuf begins with four nested fields with the number 1: the signal's data, a resource, an attribute of the
/// resource, and the attribute's key, which is a word. In a Perfetto trace, the nested fields don't lead to a word.
/// Profiles of OpenTelemetry are recognized before this is called.
fn is_other_otlp(head: &[u8]) -> bool {
    const IN_JSON: [Signature; 3] =
        [Words(&["{\"resourceSpans\""]), Words(&["{\"resourceMetrics\""]), Words(&["{\"resourceLogs\""])];
    if IN_JSON.iter().any(|signal| signal.fits(head)) {
        return true;
    }
    let mut rest = head;
    for _ in 0..4 {
        let Some(inner) = first_message(rest) else { return false };
        rest = inner;
    }
    rest.len() > 2 && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// The content of the first field of a protobuf message, or what exists of it if the bytes end within it. `None` unless
/// the field has the number 1 and holds bytes.
fn first_message(bytes: &[u8]) -> Option<&[u8]> {
    // `cut` returns the first field if the bytes end within it; otherwise `next` returns it.
    match (Fields::new(bytes).cut(), Fields::new(bytes).next()) {
        (Some((1, message)), _) | (None, Some(Ok((1, FieldValue::Bytes(message))))) => Some(message),
        _ => None,
    }
}

/// True for a Perfetto trace: a protobuf list of packets. Each packet is a field with the number 1 that holds a
/// message.
fn is_perfetto(head: &[u8]) -> bool {
    if is_other_otlp(head) {
        return false;
    }
    // A text may begin with a line break, which has the same byte (0x0a) as the start of a packet.
    if head.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace()) {
        return false;
    }
    // A shorter input could have the form of packets by chance.
    let is_long_enough = head.len() >= 16;
    // If the first three packets are plausible, those after them needn't be examined.
    let mut fields = Fields::new(head);
    for _ in 0..3 {
        // `cut` returns the next field if the head ends within it; otherwise `next` returns it.
        let fits = match (fields.cut(), fields.next()) {
            // The head ends within this packet, so there is no other one to examine.
            (Some((1, packet)), _) => return is_long_enough && is_packet(packet, PacketEnd::CutOff),
            (None, Some(Ok((1, FieldValue::Bytes(packet))))) => is_packet(packet, PacketEnd::Complete),
            (None, None) => break,
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    is_long_enough
}

/// Whether a packet ends within the examined start of the input, or is cut off there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketEnd {
    Complete,
    CutOff,
}

/// True if the bytes look like the fields of a Perfetto packet: there is at least one field, and each has a number that
/// packets use. If the packet is cut off, what follows its valid fields is ignored.
fn is_packet(bytes: &[u8], end: PacketEnd) -> bool {
    // Packets had field numbers up to a few hundred by 2025.
    const LARGEST_FIELD: u32 = 999;
    let mut fields = 0;
    for field in Fields::new(bytes) {
        let is_valid = field.is_ok_and(|(number, _)| number <= LARGEST_FIELD);
        if !is_valid {
            return end == PacketEnd::CutOff && fields > 0;
        }
        fields += 1;
    }
    fields > 0
}

/// True for Arrow: a file or Feather file by its magic, or a stream. A stream begins with the bytes FF FF FF FF, the
/// length of its first message, and the offset of that message's root table.
fn is_arrow(head: &[u8]) -> bool {
    if head.starts_with(b"ARROW1") || head.starts_with(b"FEA1") {
        return true;
    }
    let (words, _) = head.as_chunks::<4>();
    let [marker, len, table, ..] = *words else { return false };
    let (len, table) = (u32::from_le_bytes(len), u32::from_le_bytes(table));
    marker == [0xff; 4] && len % 8 == 0 && (8..1 << 24).contains(&len) && (4..256).contains(&table)
}

/// True for Go's text heap profile: its first line ends with `@ heap/` and the sampling rate.
fn is_go_heap_profile(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"heap profile:") && has(line, "] @ heap/")
}

/// True for the text reports of gperftools, such as `--- contentionz 1 ---`.
fn is_gperftools_text(head: &[u8]) -> bool {
    let Some(rest) = head.trim_ascii_start().strip_prefix(b"--- ") else { return false };
    ["contentionz ", "threadz ", "heapz ", "growthz ", "profilez "].iter().any(|name| rest.starts_with(name.as_bytes()))
}

/// True for text that `pprof` prints: it starts with the program's name and the sample type. `pprof -raw` starts with
/// `PeriodType:`.
fn is_pprof_text(head: &[u8]) -> bool {
    if head.starts_with(b"PeriodType: ") {
        return has(head, "\nSamples:\n");
    }
    let has_header = head.starts_with(b"File: ") || head.starts_with(b"Type: ") || head.starts_with(b"Build ID: ");
    if has_header {
        return has(head, "\nShowing nodes accounting for ") || has(head, "\n-----------+--------");
    }
    head.starts_with(b"Showing nodes accounting for ")
}

/// True for the output of `callgrind_annotate`, `cg_annotate` or `ms_print`: a line of dashes, then a known heading.
fn is_annotated_by_valgrind(head: &[u8]) -> bool {
    let Some(rest) = head.trim_ascii_start().strip_prefix(b"--------------------") else { return false };
    let line = rest.split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
    let words = ["Profile data file '", "-- Metadata", "-- Cachegrind profile", "Command:            ", "I1 cache:"];
    words.iter().any(|word| line.starts_with(word.as_bytes()))
}

/// True for a binary profile of gperftools. Its header is five words of 4 or 8 bytes: 0, the number of the other header
/// words (3), the version (0; 1 from Java), the sampling period, 0.
fn is_gperftools(head: &[u8]) -> bool {
    let (words, _) = head.as_chunks::<8>();
    let is_64_bit = words.first_chunk().is_some_and(|header| is_gperftools_header(&header.map(u64::from_le_bytes)));
    let (words, _) = head.as_chunks::<4>();
    let is_32_bit = words
        .first_chunk()
        .is_some_and(|header| is_gperftools_header(&header.map(|word| u32::from_le_bytes(word).into())));
    is_64_bit || is_32_bit
}

fn is_gperftools_header(&[zero, words, version, period, padding]: &[u64; 5]) -> bool {
    zero == 0 && words == 3 && version <= 1 && period > 0 && padding == 0
}

/// True for a Python profile (`cProfile`, `pstats`): a marshalled dictionary whose keys are tuples of three elements.
fn is_pstats(head: &[u8]) -> bool {
    let [dictionary, key, len, ..] = *head else { return false };
    // In marshalled data, the highest bit of an object's type only says that something refers to the object later. So
    // it is masked out.
    dictionary & 0x7f == b'{' && key & 0x7f == b')' && len == 3
}

/// True for JSON from `perf data convert --to-json`, as perf writes it or with its keys sorted (`jq -S`).
fn is_perf_json(head: &[u8]) -> bool {
    Words(&["{\"linux-perf-json-version\""]).fits(head) || Words(&["{\"headers\":{", "\"captured-on\":"]).fits(head)
}

/// True for bpftrace's output of stacks as map keys: `@[` or `@name[PID, COMM,`, the frames, `]: 12`.
fn is_bpftrace(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let is_start =
        |line: &[u8]| line.starts_with(b"@") && has(line, "[") && (line.ends_with(b"[") || line.ends_with(b","));
    lines.any(is_start) && lines.any(|line| has(line, "]: "))
}

/// True for stacks with the count in front: most lines are like `  12 main;work`.
fn has_counts_in_front(head: &[u8]) -> bool {
    let (mut counted, mut others) = (0, 0);
    for line in whole_lines(head) {
        let line = line.trim_ascii();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let count = words.next().unwrap_or_default();
        let is_counted = is_number(count) && has(&line[count.len()..], ";");
        // With a number at its end, the line is an ordinary folded stack whose first function begins with a number. Two
        // numbers at its start are columns of a table, such as HotSpot's list of code.
        let is_other = ends_with_number(line) || words.next().is_some_and(is_number);
        if is_counted && !is_other { counted += 1 } else { others += 1 }
    }
    counted > others
}

/// True for lines such as `main;work 5ms` or `main;work 1,000`: most have a `;`, and their last word starts with a
/// digit but isn't a number. Lines of JSON don't count as such.
fn has_odd_weights(head: &[u8]) -> bool {
    let (mut odd, mut others) = (0, 0);
    for line in whole_lines(head) {
        let word = line.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
        let is_odd = word.first().is_some_and(u8::is_ascii_digit) && !is_decimal(word) && word.len() < line.len();
        let stack = &line[..line.len() - word.len()];
        // A last word with a `;` belongs to the stack and isn't a weight.
        if is_odd && has(stack, ";") && !has(word, ";") && !begins(line, b"{") { odd += 1 } else { others += 1 }
    }
    odd > others
}

/// The complete lines of a head that aren't empty.
fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty())
}

fn ends_with_number(line: &[u8]) -> bool {
    line.rsplit(u8::is_ascii_whitespace).next().is_some_and(is_number)
}

/// True for phpspy's stacks: lines with the frame's depth, its function and `FILE:LINE`, and an empty line after each
/// stack. The first line has depth 0, and a later one depth 1. An unknown line number is -1.
fn is_phpspy(head: &[u8]) -> bool {
    let mut words = first_line(head).split(u8::is_ascii_whitespace);
    let (depth, function, position) = (words.next(), words.next(), words.next());
    let is_frame = depth == Some(b"0") && function.is_some() && words.next().is_none();
    // True for `FILE:LINE`.
    let ends_with_line = |position: &[u8]| {
        let line = memchr::memrchr(b':', position).map_or(&b""[..], |colon| &position[colon + 1..]);
        is_number(line.strip_prefix(b"-").unwrap_or(line))
    };
    is_frame && position.is_some_and(ends_with_line) && has(head, "\n1 ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// For each format, the start of an example file.
    pub(in super::super) const EXAMPLES: &[(&str, &[u8])] = &[
        ("counts in front", b"     12 main;work\n      3 main;idle\n"),
        ("Austin with three metrics", b"# austin: 3.6.0\n# mode: full\nP1;T0:5;m.py:f:3 10012,0,4096\n"),
        ("Austin (MOJO)", b"MOJ\x03\x01"),
        ("weights that are not plain numbers", b"main;work 5ms\nmain;idle 1,250ms\n"),
        (
            "DevTools protocol",
            b"{\"id\":3,\"result\":{\"profile\":{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}}]}}}",
        ),
        ("DevTools protocol", b"{\"profile\": {\"nodes\": [{\"id\":1,\"callFrame\":{}}]}}"),
        ("Pyroscope", b"{\"version\":1,\"flamebearer\":{\"names\":[\"total\",\"a\"],\"levels\":[[0,10,0,0]]}}"),
        ("GHC eventlog", b"hdrb\0\0\0\x0ahetb"),
        ("jfr print", b"jdk.ExecutionSample {\n  startTime = 10:00:00.000\n  stackTrace = [\n    A.f() line: 5\n"),
        ("phpspy", b"0 strlen <internal>:-1\n1 main /a.php:9\n\n"),
        ("VTune top-down report", b"Function Stack\tCPU Time:Self\tModule\nTotal\t0.5\ta.out\n"),
        ("bpftrace", b"Attaching 1 probe...\n\n@stacks[123, a.out, \n    read+5\n    main+7\n]: 12\n"),
        ("a table (Parquet)", b"PAR1\x15\x04\x15\x40\x15"),
        ("a table (Arrow)", b"ARROW1\0\0\xff\xff\xff\xff\xf0\0\0\0\x10\0\0\0"),
        ("a table (Arrow)", b"\xff\xff\xff\xff\xf0\x04\0\0\x10\0\0\0\0\0\x0a\0"),
        (
            "OpenTelemetry",
            b"\x0a\x2f\x0a\x17\x0a\x15\x0a\x0cservice.name\x12\x05\x0a\x03app\x12\x14\x12\x12\x0a\x100123456789abcdef",
        ),
        ("OpenTelemetry", br#"{"resourceSpans": [{"resource": {}, "scopeSpans": []}]}"#),
        ("Perfetto", b"\x0a\x0c\x40\x80\x94\xeb\xdc\x03\x50\x01\x9a\x02\x01\x00\x0a\x04\x18\x01\x50\x01"),
        (
            "Gecko",
            br#"{"meta":{"version":24,"startTime":1.5,"interval":1,"stackwalk":1,"debug":0},"libs":[],"threads":[]}"#,
        ),
        ("Gecko", b"{\n  \"format\": \"profileJSONWithSymbolicationTable,1\",\n  \"meta\": {\n    \"stackwalk\": 1"),
        ("own JSON", br#"{"frames":[{"name":"f","kind":"user"}],"events":[]}"#),
        ("own JSON", br#"{"frames":[],"events":[]}"#),
        ("own JSON", b"{\n  \"about\": {\n  \"command\":[\"php\"], \"lost\": 0 }, \"frames\": []"),
        ("V8 heap snapshot", br#"{"snapshot":{"meta":{"node_fields":["type","name"]}}}"#),
        (
            "V8 heap profile",
            br#"{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0,"id":1,"children":[]}}"#,
        ),
        ("V8 log (node --prof)", b"v8-version,11,3,244,8,-node.20,0\nv8-platform,linux,linux\n"),
        ("V8 log (node --prof)", b"shared-library,\"/opt/node\",0x000b9f20,0x000b9f80\nprofiler,\"begin\",1\n"),
        ("--preprocess", b"{\n  \"code\": [{\"name\":\"/usr/bin/node\",\"type\":\"SHARED_LIB\"}],\n  \"functions\": []"),
        (
            "old performance tool",
            br#"{"label":"a","duration":49.4,"markers":[],"frames":[],"memory":[],"profile":{"libs":[]}}"#,
        ),
        (
            "Web Inspector",
            br#"{"version":1,"recording":{"displayName":"a","startTime":4.1,"instrumentTypes":["timeline-record-type-cpu"]}}"#,
        ),
        ("stackprof", br#"{"version":1.2,"mode":"wall","interval":1000,"samples":4,"gc_samples":0,"frames":{}}"#),
        ("stackprof", b"{\n  \"version\": 1.2,\n  \"mode\": \"object\",\n  \"interval\": 1,\n  \"samples\": 4,\n  \"gc_samples\": 1"),
        ("-pj", b"{\n\"program\": \"x\",\n\"arguments\": [\"x\"],\n\"rts_arguments\": [\"-pj\"],\n"),
        ("Deep Copy", b"Weight\tSelf Weight\t\tSymbol Name\n96.08 Gc  100.0%\t-\t \tapp (7)\n"),
        ("Deep Copy", b"Weight\tSelf Weight\tSymbol Names\n4.93 s  100.0%\t0 s\t   start\n"),
        ("Deep Copy", b"Running Time\tSelf (ms)\t\tSymbol Name\r\n4273.0ms   99.9%\t0\t \tstart\r\n"),
        ("Deep Copy", b"Bytes Used\tCount\t\tSymbol Name\n 429.93 MB     100.0%\t84671\t \tstart\n"),
        ("gprof-cc", b"Index  % CPU Time:Total  CPU Time:Self  CPU Time:Children  Name  Index\n-----  ---\n"),
        ("pmcstat", b"@ inst_retired.any [35705 samples]\n\n20.86%  [7447]     zfs_lz4_compress @ /boot/kernel/zfs.ko\n"),
        ("HPROF", b"JAVA PROFILE 1.0.1, created Fri Dec 18 16:33:00 2009\n\nHeader for -agentlib:hprof\n"),
        ("HPROF", b"JAVA PROFILE 1.0.2\0\0\0\0\x08"),
        ("Sysprof", b"<profile>\n    <size>8267</size>\n    <call_tree>1</call_tree>\n    <objects>\n"),
        ("Sysprof", b"\x5e\x97\xca\xfd\x01\x01\0\0"),
        ("simpleperf", b"SIMPLEPERF\x01\0X\0\0\0*V\x0a\x09cpu-clock"),
        ("Google Cloud Trace", b"{\n  \"projectId\": \"p\",\n  \"traceId\": \"6e\",\n  \"spans\": [\n"),
        ("a gprof report", b"\n\ncall graph profile:\n          The sum of self and descendents is the major sort\n"),
        ("a gprof report", b"index  % time    self  children called     name\n"),
        ("a gprof report", b"# @(#)64\t1.4  com/cmd/stat/gprof/gprof.callg, bos, bos320 7/31/91\n"),
        ("a gprof report", b"\ngranularity: each sample hit covers 4 byte(s) for 0.06% of 17.64 seconds\n"),
        ("Flight Recorder", b"FLR\0\0\x02\0\x01\0\0\0\0"),
        (
            "async-profiler",
            b"<!DOCTYPE html>\n<html lang='en'>\n<a href='https://github.com/async-profiler/async-profiler'>",
        ),
        ("nettrace", b"Nettrace\x14\0\0\0!FastSerialization.1"),
        ("Go execution trace", b"go 1.22 trace\0\0\0\x01\x02"),
        (
            "gperftools CPU profile",
            b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ),
        ("gperftools CPU profile", b"\0\0\0\0\x03\0\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0"),
        ("gperftools or jemalloc", b"heap profile:      1:   1048576 [     1:   1048576] @ heapprofile\n"),
        ("gperftools CPU profile", b"\0\0\0\0\x03\0\0\0\x01\0\0\0\x10\x27\0\0\0\0\0\0"),
        ("gperftools or jemalloc", b"\n heap profile:      4:  1048576 [     4:  1048576] @ growthz\n"),
        ("gperftools or Java", b"--- contentionz 1 ---\nformat: java\nresolution: microseconds\n"),
        ("gperftools or Java", b"--- threadz 1 ---\n\n--- Thread 7f (name: main) stack: ---\n"),
        ("gperftools or Java", b"--- heapz 1 ---\nformat: java\n"),
        ("Go text profile", b"heap profile: 1: 2 [3: 4] @ heap/1048576\n1: 2 [3: 4] @ 0x1 0x2\n"),
        ("Go text profile", b"--- mutex:\ncycles/second=3201000000\nsampling period=1\n"),
        ("Go text profile", b"--- contention:\ncycles/second=3201000000\n 100 10 @ 0xbccc97\n"),
        ("pprof -top", b"PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count cpu/nanoseconds\n"),
        ("pprof -top", b"File: app\nType: cpu\n-----------+-------------------\n      10ms   main.f\n"),
        ("BCC", b"Tracing off-CPU time (us) of all threads by user + kernel stack... Hit Ctrl-C to end.\n"),
        ("bpftrace maps as JSON", b"{\"type\": \"attached_probes\", \"data\": {\"probes\": 1}}\n"),
        ("d3-flame-graph", br#"{"name":"root","value":10,"children":[{"name":"a","value":5}]}"#),
        ("one per line", b"{\"name\":\"a\",\"ph\":\"X\",\"ts\":0,\"dur\":5,\"pid\":1,\"tid\":1}\n{\"name\":\"b\"}\n"),
        ("an Instruments trace", b"<?xml version=\"1.0\"?>\n<trace-toc><run number=\"1\"></run></trace-toc>"),
        ("pyinstrument", br#"{"session": {"start_time": 1, "duration": 1}, "frame_tree": {}}"#),
        ("pyinstrument", br#"{"start_time": 1.5, "duration": 1, "sample_count": 7, "root_frame": {}}"#),
        ("XHProf", br#"{"main()":{"ct":1,"wt":100},"main()==>foo":{"ct":2,"wt":50}}"#),
        ("Android method trace", b"*version\n3\ndata-file-overflow=false\n"),
        ("Android method trace", b"SLOW\x03\0\x20\0"),
        ("heaptrack", b"v 10500 3\nx 5 ./x\nX ./x\nI 1000 10\n"),
        ("memray", b"memray\0\x0a\0\0\0"),
        ("perf annotate", b" Percent |\tSource code & Disassembly of x for cycles (12 samples)\n----\n"),
        ("a callgrind file without", b"fl=a.c\nfn=main\n1 30\n+2 5\n"),
        ("callgrind_annotate", b"----------------------------------------\nProfile data file 'callgrind.out.1' (creator: callgrind-3.19.0)\n"),
        ("callgrind_annotate", b"----------------------------------------\nCommand:            ./x\nMassif arguments:   (none)\n"),
        ("valgrind report (XML)", b"<?xml \
                                    version=\"1.0\"?>\n\n<valgrindoutput>\n<protocolversion>4</protocolversion>\n"),
        ("gperftools or jemalloc", b"heap_v2/524288\n  t*: 28106: 56637512 [0: 0]\n"),
        ("cProfile", b"{\xa9\x03\xda\x07work.py\xe9\x01\0\0\0"),
        ("Xdebug", b"TRACE START [2026-11-22 01:20:00.000000]\n    0.0002     393216   -> {main}() /a.php:0\n"),
        ("Xdebug", b"Version: 3.2.0\nFile format: 4\nTRACE START [2026-11-22 01:20:00.000000]\n"),
        ("bpftrace", b"Attaching 1 probe...\n\n@[\n    read+20\n    main+5\n]: 12\n"),
        ("bpftrace", b"@stacks[\n    read+20\n    main+5\n, node]: 12\n"),
        (
            "perf data convert --to-json",
            b"{\n\t\"linux-perf-json-version\": 1,\n\t\"headers\": {\n\t\t\"header-version\": 1,\n\t\t\"captured-on\": \"2026-11-26\"",
        ),
        (
            "perf data convert --to-json",
            b"{\n  \"headers\": {\n    \"arch\": \"x86_64\",\n    \"captured-on\": \"2026-11-26\",\n    \"cmdline\": [",
        ),
        ("perf data convert --to-json", b"{\"linux-perf-json-version\":1,\"headers\":{\"header-version\":1"),
        ("massif", b"desc: --massif-out-file=massif.out\ncmd: php a.php\ntime_unit: i\n#-----------\nsnapshot=0\n"),
        ("UTF-16", b"m\0a\0i\0n\0;\0a\0 \x005\0\n\0"),
        ("UTF-16", b"\0m\0a\0i\0n\0;\0a\0 \x005\0\n"),
        ("UTF-32", b"\xff\xfe\0\0m\0\0\0a\0\0\0"),
        ("raw dump of perf records", b"\n0x150@perf.data [0x50]: event: 10\n.\n. ... raw event: size 80 bytes\n.  \
                                       0000:  0a 00\n"),
        ("ftrace", b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 4/4   #P:2\n"),
        ("trace-cmd", b"cpus=2\n            bash-1234  [000]   123.456789: sched_switch:   bash:1234 [120] R ==> a:5 [120]\n"),
        ("a gprof report", b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n"),
        ("a gprof report", b"gmon\x01\0\0\0\0\0\0\0"),
        ("pprof -top", b"File: app\nType: cpu\nShowing nodes accounting for 1.20s, 80% of 1.5s total\n"),
        ("Go text profile", b"goroutine profile: total 5\n1 @ 0x43a0d6 0x4067c5\n"),
        ("Go text profile", b"goroutine 1 [running]:\nmain.main()\n\t/a.go:7 +0x1d\n"),
        ("node --prof-process report", b"Statistical profiling result from isolate-0x5-v8.log, (1 ticks, 0 \
                                         unaccounted).\n"),
        ("JVM thread dump", b"2026-11-27 04:11:16\nFull thread dump OpenJDK 64-Bit Server VM (21.0.2):\n"),
        ("gdb", b"Thread 1 (Thread 0x7f (LWP 7) \"a\"):\n#0  0x00007f1b in poll () from /lib/libc.so.6\n#1  main () at a.c:3\n"),
        ("BCC", b"Sampling at 49 Hertz of all threads by user + kernel stack for 5 secs.\n\n    main\n    -   a (7)\n        5\n"),
        ("two counts", b"main;parse 120 140\nmain;render 80 30\nmain 5 0\n"),
        ("two counts", b"# difffolded.pl -n\nmain;parse 12.50 14\n"),
        ("two counts", b"main;parse\t120\t140\nmain;render\t80\t30\n"),
        ("DHAT", b"{\"dhatFileVersion\":2\n,\"mode\":\"heap\"\n"),
    ];

    #[test]
    fn every_row_has_an_example_that_is_not_others() {
        for (name, head) in EXAMPLES {
            let fits: Vec<_> = UNREAD.iter().filter(|format| format.signature.fits(head)).map(|of| of.name).collect();
            assert!(fits.len() == 1 && fits[0].contains(name), "{name}: {fits:?}");
        }
        for format in UNREAD {
            assert!(EXAMPLES.iter().any(|(name, _)| format.name.contains(name)), "{}", format.name);
        }
    }

    #[test]
    fn texts_and_packets_that_are_none_of_them_are_none() {
        let others: [&[u8]; 10] = [
            // HotSpot's list of code: names with `;`, after numbers.
            b"12340:\n126 4 0 java.lang.String.hashCode()I [0x7f, 0x80 - 0x90]\n\
              4 0 0 jdk.internal.misc.Unsafe.get(Ljava/lang/Object;J)Ljava/lang/Object; [0x7f, 0x80 - 0x90]\n\
              7 3 0 java.util.List.get(Ljava/lang/Object;)V [0x7f, 0x80 - 0x90]\n",
            b"",
            b"\n",
            b"\nhello, this is a text that begins with a line break",
            b"\n\nmain;f 3\n",
            b"{}",
            b"{(a) => b}",
            b"version: 1\ncreator: x\n",
            b"@[node",
            &[0; 64],
        ];
        for head in others {
            assert_eq!(recognize(head).map(|format| format.name), None, "{:?}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn directories_are_known_by_their_files() {
        fn name_of_directory(files: &[&'static str]) -> Option<&'static str> {
            recognize_directory(files.iter().map(|file| file.as_bytes())).map(|format| format.name)
        }
        assert_eq!(name_of_directory(&["config", "r000hs.vtune"]), Some("a VTune result"));
        assert_eq!(name_of_directory(&["form.template", "Trace1.run"]), Some("an Instruments trace"));
        assert_eq!(name_of_directory(&["data", "data.0"]), None);
    }
}
