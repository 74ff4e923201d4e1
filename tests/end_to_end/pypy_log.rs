//! A recording of PyPy that has neither dump nor map: PyPy's log names its loops and bridges, and the calls that were
//! traced through. The expected name of each sample is found by a second reader of the log, which shares no code with
//! `src/`.

use crate::support::tool;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tool::run;

const LOG: &str = "pypy-11175.log";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-pypy").join(name)
}

/// The recording and, if it is wanted, the log beside it, in a directory of their own.
fn unpacked(with_log: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::read(fixture("perf.data.zst")).unwrap();
    fs::write(dir.path().join("perf.data"), zstd::decode_all(&packed[..]).unwrap()).unwrap();
    if with_log {
        fs::copy(fixture(LOG), dir.path().join(LOG)).unwrap();
    }
    dir
}

/// A loop or bridge, as the log has it.
#[derive(Debug)]
struct Trace {
    /// Its number or guard: `Loop 2` or `0x7f…`.
    id: String,
    block: u64,
    start: u64,
    end: u64,
    /// The outermost call of the first place that is reported.
    first: Option<String>,
    /// Offsets in the block. For each, the calls around the instruction there, outermost first.
    places: Vec<(u64, Vec<String>)>,
}

fn field(line: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(line.trim().strip_prefix(name)?.strip_prefix(": 0x")?, 16).ok()
}

/// `Loop 2` or the guard.
fn id(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    if words[0] == "Loop" { words[..2].join(" ") } else { words[4].to_owned() }
}

/// Reads the whole log line by line, without our reader.
fn traces(log: &str) -> Vec<Trace> {
    let mut traces: Vec<Trace> = Vec::new();
    let (mut of, mut open): (Option<usize>, Vec<String>) = (None, Vec::new());
    let mut at_guard = BTreeMap::<String, Vec<String>>::new();
    for line in log.lines() {
        if let Some((head, _)) = line.split_once(" has address ") {
            traces.push(Trace { id: id(head), block: 0, start: 0, end: 0, first: None, places: Vec::new() });
        } else if let Some(trace) = traces.last_mut().filter(|_| line.starts_with(' ')) {
            trace.block = field(line, "gc table").unwrap_or(trace.block);
            trace.start = field(line, "function").or(field(line, "jump target")).unwrap_or(trace.start);
            trace.end = field(line, "end").unwrap_or(trace.end);
        } else if line.contains("{jit-log-opt-") {
            (of, open) = (None, Vec::new());
        } else if let Some(head) = line.strip_prefix("# ") {
            of = traces.iter().rposition(|trace| trace.id == id(head));
            // A bridge goes on in the calls that its guard is in.
            open = at_guard.get(&id(head)).cloned().unwrap_or_default();
            traces[of.unwrap()].places.push((0, open.clone()));
        } else if let Some(point) = line.strip_prefix("debug_merge_point(") {
            let depth: usize = point.split(',').next().unwrap().parse().unwrap();
            assert!(depth <= open.len(), "calls are missing before {line}");
            open.truncate(depth);
            open.push(point.split('\'').nth(1).unwrap().to_owned());
            traces[of.unwrap()].first.get_or_insert(open[0].clone());
        } else if let Some((offset, operation)) = line.strip_prefix('+').and_then(|line| line.split_once(':')) {
            let offset = offset.parse().unwrap();
            let places = &mut traces[of.unwrap()].places;
            places.push((offset, open.clone()));
            if let Some((_, guard)) = operation.split_once("descr=<Guard") {
                at_guard.insert(guard.split('>').next().unwrap().to_owned(), open.clone());
            }
            if operation.starts_with(" leave_portal_frame") {
                open.pop();
                places.push((offset, open.clone()));
            }
        }
    }
    traces
}

/// `points;/tmp/small/fix/work.py:12-14~#18 FOR_ITER` as `points work.py:14 #18 FOR_ITER`.
fn name(place: &str) -> String {
    let (function, rest) = place.split_once(';').unwrap();
    let (path, rest) = rest.split_once(':').unwrap();
    let (lines, at) = rest.split_once('~').unwrap();
    format!("{function} {}:{} {at}", path.rsplit('/').next().unwrap(), lines.split('-').nth(1).unwrap())
}

/// The functions at an address, outermost first.
fn functions(traces: &[Trace], addr: u64) -> Option<String> {
    let trace = traces.iter().rfind(|trace| (trace.start..trace.end).contains(&addr))?;
    let first = trace.first.as_ref()?;
    let ending = if trace.id.starts_with("0x") { " bridge" } else { "" };
    let here = trace.places.iter().rfind(|(offset, _)| trace.block + offset <= addr);
    let inlined = here.iter().flat_map(|(_, places)| places.iter().skip(1));
    let inlined = inlined.map(|place| place.split(';').next().unwrap().to_owned());
    Some(std::iter::once(name(first) + ending).chain(inlined).collect::<Vec<_>>().join(";"))
}

#[test]
fn every_sample_in_a_loop_or_bridge_is_called_as_a_second_reader_calls_it() {
    let traces = traces(&fs::read_to_string(fixture(LOG)).unwrap());
    assert_eq!(traces.len(), 3);
    let dir = unpacked(true);
    let samples = run("perf", &["script", "-i", "perf.data", "-F", "ip,sym,dso"], dir.path());
    let (mut expected, mut nameless) = (BTreeMap::<String, u64>::new(), 0);
    for sample in samples.lines().filter(|line| line.contains("perf-11175.map") || line.contains("//anon")) {
        assert!(sample.contains("[unknown]"), "perf names it without the log: {sample}");
        let addr = u64::from_str_radix(sample.split_whitespace().next().unwrap(), 16).unwrap();
        match functions(&traces, addr) {
            Some(functions) => *expected.entry(format!("pypy3;{functions}")).or_default() += 1,
            None => nameless += 1,
        }
    }
    assert_eq!(nameless, 0, "samples outside of all that the log tells of");
    assert!(expected.len() >= 5 && expected.values().sum::<u64>() > 1000, "{expected:?}");

    let folded = run(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "--weight", "samples", "perf.data"], dir.path());
    let rows = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
    let of_python = rows
        .filter(|(stack, _)| stack.contains(".py:"))
        .map(|(stack, count)| (stack.to_owned(), count.parse().unwrap()));
    assert_eq!(of_python.collect::<BTreeMap<String, u64>>(), expected);
}

#[test]
fn without_the_log_there_are_not_names_and_with_it_doctor_states_whence_they_are() {
    let jitgraft = env!("CARGO_BIN_EXE_jitgraft");
    let lonely = unpacked(false);
    let folded = run(jitgraft, &["collapse", "perf.data"], lonely.path());
    assert!(!folded.contains(".py:"), "{folded}");
    let doctor = run(jitgraft, &["doctor", "perf.data"], unpacked(true).path());
    assert!(doctor.contains("PyPy log") && doctor.contains("names 1,050 frames"), "{doctor}");
}

#[test]
fn perf_shows_the_names_after_inject_with_the_machine_code_of_the_log() {
    let dir = unpacked(true);
    run(env!("CARGO_BIN_EXE_jitgraft"), &["inject", "-i", "perf.data", "-o", "perf.jit.data"], dir.path());
    let text = run("perf", &["script", "--no-inline", "-F", "ip,sym,dso", "-i", "perf.jit.data"], dir.path());
    let named = |name: &str| text.lines().filter(|line| line.contains(name) && line.contains("/jitted-")).count();
    assert_eq!(named("points work.py:14 #18 FOR_ITER") + named("points work.py:15 #24 LOAD_FAST bridge"), 1050);
    let listing = run(env!("CARGO_BIN_EXE_jitgraft"), &["annotate", "perf.data"], dir.path());
    assert!(listing.contains("points work.py:14 #18 FOR_ITER"), "{listing}");
}
