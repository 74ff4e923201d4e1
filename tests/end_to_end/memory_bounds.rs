//! The memory that inputs of the worst shapes take, in every format that is read (docs/performance.md has the bounds).
//!
//! The program runs with `--max-memory`, which ends it where it needs more. Each run is granted a fixed sum and eight
//! bytes for each byte of the input, unpacked; where a table needs more for each thread, function or sample, the row
//! states it. A quick run has inputs of a quarter of the size, and is granted half of the fixed sum.

use crate::support;
mod written;

use crate::support::effort::{is_thorough, step};
use crate::support::runner::formats;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use support::bytes::Order;
use support::jitdump::{JitDump, Load};
use support::perf_data::*;

/// The memory granted for each byte of an input.
const EACH_BYTE: u64 = 8;
/// The memory granted to every run: tables that do not grow, blocks that are read at once.
fn base() -> u64 {
    (16u64 << 20) / step(2) as u64
}

/// How much a run has of what a thorough run has this much of.
fn quantity(count: usize) -> usize {
    count / step(4)
}

/// Threads, and rows that have a function and stack of their own, are entries of several tables, however short the
/// input states them.
const EACH_THREAD: u64 = 1 << 10;
const EACH_FUNCTION: u64 = 3 << 8;
/// Samples that are kept each with its time are rows, however few bytes state them.
const EACH_SAMPLE: u64 = 1 << 6;

/// An input of one shape.
#[derive(Clone)]
struct Shape {
    /// The name of the format.
    format: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
    /// The number of bytes that it has unpacked.
    unpacked: u64,
    threads: u64,
    functions: u64,
    samples: u64,
}

impl Shape {
    fn new(format: &'static str, name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        let unpacked = bytes.len() as u64;
        Self { format, name, bytes, unpacked, threads: 0, functions: 0, samples: 0 }
    }

    fn threads(self, threads: usize) -> Self {
        Self { threads: threads as u64, ..self }
    }

    fn functions(self, functions: usize) -> Self {
        Self { functions: functions as u64, ..self }
    }

    fn samples(self, samples: usize) -> Self {
        Self { samples: samples as u64, ..self }
    }

    fn bound(&self) -> u64 {
        let tables = EACH_THREAD * self.threads + EACH_FUNCTION * self.functions + EACH_SAMPLE * self.samples;
        base() + EACH_BYTE * self.unpacked + tables
    }
}

fn jitgraft(directory: &Path, most: u64, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(words).args(["-q", "--threads", "1", "--max-memory", &most.to_string()]);
    command.current_dir(directory).env("HOME", directory).stdin(Stdio::null()).output().unwrap()
}

/// Runs a command over an input, within its bound.
fn check(directory: &Path, shape: &Shape, words: &[&str]) -> Result<(), String> {
    let output = jitgraft(directory, shape.bound(), words);
    if output.status.success() {
        return Ok(());
    }
    let Shape { format, name, unpacked, .. } = shape;
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{format}, {name}: {words:?} of {unpacked} bytes within {}: {said}", shape.bound()))
}

const WRITTEN: &[&[&str]] = &[&["report"], &["export", "--to", "pprof"], &["export", "--to", "firefox"], &["view"]];

/// Writes each shape in all of [`WRITTEN`], or by turns in one of them if the run is quick. Two shapes at a time.
fn check_all(shapes: Vec<Shape>) {
    let (next, failed) = (Mutex::new(shapes.iter().enumerate()), Mutex::new(Vec::new()));
    let directory = tempfile::tempdir().unwrap();
    let work = || {
        loop {
            let Some((at, shape)) = next.lock().unwrap().next() else { return };
            let (input, out) = (format!("input-{at}"), format!("out-{at}"));
            fs::write(directory.path().join(&input), &shape.bytes).unwrap();
            let count = if is_thorough() { WRITTEN.len() } else { 1 };
            for words in WRITTEN.iter().cycle().skip(at).take(count) {
                let words = [words, &["-i", &input, "-o", &out][..]].concat();
                failed.lock().unwrap().extend(check(directory.path(), shape, &words).err());
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

const LONG: usize = 3_000;

/// Texts of perf script.
fn texts() -> Vec<Shape> {
    let sample = |tid: usize, frames: &mut dyn Iterator<Item = String>| {
        let frames: String = frames.map(|name| format!("\t    401000 {name} (/bin/app)\n")).collect();
        format!("app 7/{tid} 1.000001: 1 cycles: \n{frames}\n")
    };
    let function = |n: usize| format!("function_{n}");
    let threads: String = (0..quantity(20_000)).map(|n| sample(n + 7, &mut [function(n % 100)].into_iter())).collect();
    let distinct: String = (0..quantity(4_000))
        .map(|n| sample(7, &mut (0..20).map(|f| function((n * 7 + f * n) % quantity(4_000)))))
        .collect();
    let deep: String = (0..4).map(|n| sample(7, &mut (0..quantity(20_000)).map(|f| function(f * n)))).collect();
    let long = "n".repeat(LONG);
    let long: String = (0..quantity(1_000)).map(|n| sample(7, &mut [long.clone(), function(n)].into_iter())).collect();
    vec![
        Shape::new("perf-script", "threads", threads).threads(quantity(20_000)),
        Shape::new("perf-script", "distinct stacks", distinct).functions(quantity(4_000)),
        Shape::new("perf-script", "deep stacks", deep).functions(quantity(60_000)),
        Shape::new("perf-script", "a long name", long).functions(quantity(1_000)),
    ]
}

fn spans(events: impl Iterator<Item = String>) -> String {
    let event = |rest: String| format!("{{\"ph\":\"X\",\"pid\":7,{rest}}}");
    format!("[{}]", events.map(event).collect::<Vec<_>>().join(",\n"))
}

fn traces() -> Vec<Shape> {
    let threads = spans((0..quantity(20_000)).map(|n| format!("\"name\":\"f\",\"ts\":{n},\"dur\":1,\"tid\":{n}")));
    let names = spans((0..quantity(40_000)).map(|n| format!("\"name\":\"f{n}\",\"ts\":{},\"dur\":1,\"tid\":7", 2 * n)));
    let nested = spans((0..quantity(20_000)).map(|n| {
        let (block, depth) = (n / 2_000 * 4_000, n % 2_000);
        format!("\"name\":\"f\",\"ts\":{},\"dur\":{},\"tid\":7", block + depth, 4_000 - 2 * depth - 1)
    }));
    let long = "n".repeat(LONG);
    let long =
        spans((0..quantity(1_000)).map(|n| format!("\"name\":\"{long}{n}\",\"ts\":{},\"dur\":1,\"tid\":7", 2 * n)));
    vec![
        Shape::new("chrome", "threads", threads).threads(quantity(20_000)).functions(quantity(20_000)),
        Shape::new("chrome", "names", names).functions(quantity(40_000)),
        Shape::new("chrome", "deep stacks", nested).functions(quantity(20_000)),
        Shape::new("chrome", "long names", long),
    ]
}

fn measureme() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let profiler = measureme::Profiler::new(directory.path().join("names")).unwrap();
    let kind = profiler.alloc_string("Query");
    for n in 0..quantity(30_000) {
        let name = profiler.alloc_string(&*format!("a_function_with_a_name_{n}"));
        let thread = n as u32 % 100;
        drop(profiler.start_recording_interval_event(kind, measureme::EventId::from_label(name), thread));
    }
    drop(profiler);
    fs::read(directory.path().join("names.mm_profdata")).unwrap()
}

/// Call trees of profilers whose formats are read and not written: wide, and deep.
fn trees() -> Vec<Shape> {
    let node = |id: usize, name: &str, more: &str| {
        format!(
            "{{\"id\":{id},\"callFrame\":{{\"functionName\":\"{name}\",\"scriptId\":\"1\",\"url\":\"a.js\",\
             \"lineNumber\":{id},\"columnNumber\":1}},\"hitCount\":1{more}}}"
        )
    };
    let list = |each: &dyn Fn(usize) -> String| (2..quantity(20_000)).map(each).collect::<Vec<_>>().join(",");
    let ids = list(&|n| n.to_string());
    let root = node(1, "(root)", &format!(",\"children\":[{ids}]"));
    let leaves = list(&|n| node(n, &format!("function_{n}"), ""));
    let deltas = list(&|_| "1".to_owned());
    let cpuprofile = format!(
        "{{\"nodes\":[{root},{leaves}],\"startTime\":0,\"endTime\":20000,\"samples\":[{ids}],\"timeDeltas\":[{deltas}]}}"
    );
    let mut dtrace = "CPU     ID                    FUNCTION:NAME\n".to_owned();
    let mut vtune = "Function Stack,CPU Time:Self,Module\nTotal,0,\n".to_owned();
    let mut vsprof = "Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,\
                      Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,\n"
        .to_owned();
    let mut sample = "Analysis of sampling node (pid 4711) every 1 millisecond\nProcess:         node [4711]\n\
                      Path:            /bin/node\nLoad Address:    0x1000\nAnalysis Tool:   /usr/bin/sample\n----\n\n\
                      Call graph:\n    20000 Thread_1   DispatchQueue_1: main\n"
        .to_owned();
    let mut xctrace = "<?xml version=\"1.0\"?>\n<trace-query-result>\n<node xpath='//trace-toc[1]/run[1]/data[1]/\
                       table[1]'><schema name=\"time-profile\"><col><mnemonic>time</mnemonic></col></schema>\n"
        .to_owned();
    for n in 0..quantity(20_000) {
        write!(
            dtrace,
            "\n  node\n              node`function_{n}+0x15\n              node`main+0x20\n               12\n"
        )
        .unwrap();
        writeln!(vtune, "{}function_{n},1,a.out", " ".repeat(1 + n % 50)).unwrap();
        writeln!(vsprof, "{},\"function_{n}\",1,1.00,1.00,1.00,1.00,\"a.exe\",", 1 + n % 50).unwrap();
        writeln!(sample, "    {} 1 function_{n}  (in node) + 20  [0x102af5d14]", "  ".repeat(1 + n % 50)).unwrap();
        writeln!(
            xctrace,
            "<row><sample-time id=\"{0}1\" fmt=\"1\">{n}</sample-time><thread id=\"{0}2\" fmt=\"worker {n} (work, pid: 4711)\"/>\
             <weight id=\"{0}3\" fmt=\"1.00 ms\">1000000</weight><backtrace id=\"{0}4\"><frame id=\"{0}5\" \
             name=\"function_{n}\" addr=\"0x102af5d95\"/></backtrace></row>",
            n + 1
        )
        .unwrap();
    }
    xctrace += "</node>\n</trace-query-result>\n";
    let mut ghcprof = fs::read_to_string("fixtures/ghcprof-ticks/input.prof").unwrap();
    for n in 0..quantity(20_000) {
        let indent = " ".repeat(1 + n % 20);
        let name = format!("{indent}function_{n}");
        writeln!(ghcprof, "{name:<31} Main            queens.hs:9:1-20        {n}           1    0.0    0.0     0.0    0.0      1        16").unwrap();
    }
    vec![
        Shape::new("cpuprofile", "names", cpuprofile).functions(quantity(20_000)),
        Shape::new("dtrace", "names", dtrace).functions(quantity(20_000)),
        Shape::new("vtune", "names", vtune).functions(quantity(20_000)),
        Shape::new("vsprof", "names", vsprof).functions(quantity(20_000)),
        Shape::new("sample", "names", sample).functions(quantity(20_000)),
        Shape::new("xctrace", "threads and names", xctrace).threads(quantity(20_000)).functions(quantity(20_000)),
        Shape::new("ghcprof", "names", ghcprof).functions(quantity(20_000)),
    ]
}

#[test]
fn formats_that_are_only_read_and_trace_events_take_bounded_memory() {
    let mut shapes = [texts(), traces(), trees(), recordings()].concat();
    shapes.push(Shape::new("measureme", "names", measureme()).functions(quantity(30_000)));
    let is_here = |name: &str| shapes.iter().any(|shape| shape.format == name);
    for format in formats().iter().filter(|format| format.is_read && !format.is_written) {
        assert!(is_here(&format.name), "{} has no input", format.name);
    }
    check_all(shapes);
}

/// Recordings of many threads, and of one that runs at many addresses.
fn recordings() -> Vec<Shape> {
    let recording = |each: &dyn Fn(&mut PerfData, u32)| {
        let mut out = PerfData::new(Order::Little, Event::usual());
        out.comm(Stamp::new(7, 1), "app", true);
        out.mmap2(Stamp::new(7, 2), Mmap { addr: 0x40_0000, len: 0x40_0000, pgoff: 0, path: "/nowhere/app" });
        (0..quantity(20_000) as u32).for_each(|n| each(&mut out, n));
        out.into_bytes(Mode::File)
    };
    let threads = recording(&|out, n| {
        let stamp = Stamp { pid: 7, tid: 8 + n, time: 10 + u64::from(n), ..Stamp::default() };
        out.comm(stamp, &format!("worker {n}"), false);
        out.sample(stamp, &[CONTEXT_USER, 0x40_0010]);
    });
    let addresses = recording(&|out, n| {
        let at = 0x40_0000 + 16 * u64::from(n);
        out.sample(Stamp::new(7, 10 + u64::from(n)), &[CONTEXT_USER, at, at + 8]);
    });
    vec![
        Shape::new("perf-data", "threads", threads).threads(quantity(20_000)),
        Shape::new("perf-data", "addresses", addresses).functions(quantity(40_000)),
    ]
}

/// A recording that runs through many versions of one name, with its dump: both are inputs.
fn one_name(directory: &Path) -> Shape {
    let codes = quantity(20_000) as u64;
    let dump_path = directory.join("jit-7.dump");
    let mut out = PerfData::new(Order::Little, Event::usual());
    out.comm(Stamp::new(7, 1), "app", true);
    out.mmap2(Stamp::new(7, 2), Mmap { addr: 0x1000, len: 0x1000, pgoff: 0, path: dump_path.to_str().unwrap() });
    out.mmap2(Stamp::new(7, 3), Mmap { addr: 0x7f00_0000_0000, len: 64 * codes, pgoff: 0, path: "//anon" });
    let mut dump = JitDump::new(7);
    for n in 0..codes {
        let addr = 0x7f00_0000_0000 + 64 * n;
        let name = b"LazyCompile:*one_name_for_all_of_them /srv/app/lib/index.js:1:1";
        dump.load(4, Load { tid: 7, addr, index: n, name, code: &[0x48, 0x89, 0xe5, 0xc3].repeat(4) });
        out.sample(Stamp::new(7, 10 + n), &[CONTEXT_USER, addr]);
    }
    fs::write(&dump_path, &dump.out.bytes).unwrap();
    let mut bytes = out.into_bytes(Mode::File);
    fs::write(directory.join("perf.data"), &bytes).unwrap();
    bytes.extend(&dump.out.bytes);
    Shape::new("perf-data", "one name in many codes", bytes).functions(codes as usize)
}

#[test]
fn one_name_in_many_versions_takes_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
    let shape = one_name(directory.path());
    for words in [&["report"][..], &["inject", "-o", "out"], &["view", "-o", "out"], &["doctor"]] {
        check(directory.path(), &shape, &[words, &["-i", "perf.data"]].concat()).unwrap();
    }
    // A listing holds all instructions that it shows, each with its text: 250 bytes for the three or four of the code.
    let instructions = quantity(20_000) as u64 * 8;
    let listed = Shape { functions: shape.functions + instructions / 2, ..shape };
    for words in [&["annotate", "."][..], &["annotate", ".", "--format", "json"]] {
        check(directory.path(), &listed, &[words, &["-i", "perf.data", "-o", "listing"]].concat()).unwrap();
    }
    let json = fs::read(directory.path().join("listing")).unwrap();
    assert!(json.len() > quantity(10 << 20));
    let read: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(read["all_codes"], quantity(20_000));
    assert_eq!(read["all_functions"], 1);
    assert_eq!(read["listings"].as_array().unwrap().len(), quantity(20_000));
}

/// A map has tables of segments, names and sources, however few bytes it spends on each.
#[test]
fn a_source_map_takes_bounded_memory() {
    let count = quantity(300_000);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("app.js"), "function i(e){return e+1}i(1)\n").unwrap();
    fs::write(at("in.folded"), format!("node;JS:*i {}:1:11 7\n", at("app.js").display())).unwrap();
    let many = |text: &str| text.repeat(count);
    for (what, sources, names, segments, each) in [
        ("segments", String::new(), String::new(), many(",A"), 64),
        ("names", String::new(), many(",\"\""), String::new(), 96),
        ("sources", many(",\"\""), String::new(), String::new(), 256),
    ] {
        let map = format!(
            r#"{{"version":3,"sources":["a.ts"{sources}],"names":["authored"{names}],"mappings":"SAASA{segments}"}}"#
        );
        fs::write(at("app.js.map"), &map).unwrap();
        let most = base() + EACH_BYTE * map.len() as u64 + each * count as u64;
        let output = jitgraft(directory.path(), most, &["collapse", "--source-maps", "auto", "-i", "in.folded"]);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.contains("JS:*authored "), "{what}: {} bytes within {most}: {said}", map.len());
    }
}

/// A recording whose only COMPRESSED record, of 16 to 64 KB, unpacks to this many records of `size` bytes, which are
/// equal.
fn packed(count: usize, mmap_len: u32) -> Vec<u8> {
    const COMPRESSED: u32 = 81;
    let mut record = 9_999_u32.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(4096_u16.to_le_bytes());
    record.resize(4096, 0);
    let body = zstd::bulk::compress(&record.repeat(count), 19).unwrap();
    let mut out = PerfData::new(Order::Little, Event::usual());
    let feature: Vec<u8> = [1, 1, 19, 1, mmap_len].iter().flat_map(|number: &u32| number.to_le_bytes()).collect();
    out.feature(27, feature);
    out.record(COMPRESSED, 0, &body);
    out.into_bytes(Mode::File)
}

#[test]
fn a_compressed_record_is_unpacked_in_pieces_and_to_no_more_than_real_buffers_hold() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    // 48 MiB fit a buffer of 64 MiB, and take less memory than that: zstd keeps 8 MiB. 512 MiB fit none.
    for (count, is_read) in [(12 << 10, true), (128 << 10, false)] {
        let bytes = packed(count, 512 << 20);
        assert!(bytes.len() < 66_000, "{} bytes", bytes.len());
        fs::write(&path, &bytes).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["report", "--threads", "1", "--max-memory", &(24_u64 << 20).to_string(), "-i"]).arg(&path);
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        let refused = said.contains("a compressed record unpacks to more than 67108864 bytes, more than perf");
        assert_eq!(refused, !is_read, "{said}");
        assert!(!said.contains("out of memory"), "{said}");
    }
}

/// A program without a build ID whose debugging information is claimed to be in a file beside it.
fn with_debuglink(directory: &Path) -> PathBuf {
    let program = directory.join("app");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/deep.c");
    fs::write(directory.join("app.debug"), b"any").unwrap();
    let script = format!(
        "gcc -g0 -no-pie -Wl,--build-id=none -o app '{source}' && objcopy --add-gnu-debuglink=app.debug app && strip app"
    );
    let status = Command::new("sh").args(["-c", &script]).current_dir(directory).status().unwrap();
    assert!(status.success(), "gcc and objcopy are needed (tests/run.sh installs them)");
    program
}

/// 60 GB that take a few KB of the disk: their checksum alone took minutes, and twenty gigabytes of memory.
#[test]
fn a_debugging_file_that_is_a_hole_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let program = with_debuglink(directory.path());
    let debugging = directory.path().join("app.debug");
    fs::copy(&program, &debugging).unwrap();
    let mut out = PerfData::new(Order::Little, Event::usual());
    out.comm(Stamp::new(7, 1), "app", true);
    out.mmap2(Stamp::new(7, 2), Mmap { addr: 0x40_1000, len: 0x1000, pgoff: 0x1000, path: program.to_str().unwrap() });
    out.sample(Stamp::new(7, 10), &[CONTEXT_USER, 0x40_1100]);
    fs::write(directory.path().join("perf.data"), out.into_bytes(Mode::File)).unwrap();
    let report = || {
        let mut command = Command::new("prlimit");
        command.arg("--cpu=10").arg(env!("CARGO_BIN_EXE_jitgraft")).args(["report", "-i", "perf.data"]);
        let output = command.current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(report().contains("app.debug: not used: it is not the debugging information of"));
    fs::File::options().write(true).open(&debugging).unwrap().set_len(60 << 30).unwrap();
    let said = report();
    assert!(said.contains("app.debug: not used: it is a sparse file of 64424509440 bytes"), "{said}");
}
