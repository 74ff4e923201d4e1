//! Conversions between all pairs of formats that jitgraft writes and reads keep what both can hold.

use super::{FORMATS, find_format};
use crate::analysis::label::RootFrame;
use crate::analysis::namesakes::Namesakes;
use crate::contract::format::{Format, Read, ReadOptions, WriteOptions};
use crate::contract::spans::SpanInput;
use crate::error::{Skipped, Warnings};
use crate::model::stacks::{Frame, FrameKind, FunctionStart, Profile, Row, Track, Unit, Weight};
use crate::model::{Pid, Tid};
use crate::test_effort::step;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Identifies a function: name, file, and the line and column where it starts.
type FunctionKey = (String, String, u32, u32);

/// Identifies a thread: name, process ID and thread ID.
type ThreadKey = (String, i32, i32);

/// What must survive the conversion of an event: its total, its sample count, the weight of each thread, and the self
/// and total weight of each function.
#[derive(Debug, Default, PartialEq)]
struct EventFacts {
    total: i64,
    count: u64,
    threads: BTreeMap<ThreadKey, i64>,
    functions: BTreeMap<FunctionKey, (i64, i64)>,
}

/// How a format tells functions of the same name apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Starts {
    /// By the location in their name ([`Namesakes`]).
    InNames,
    /// By their file, and by the position in their name.
    Apart,
    /// By file, line and column.
    All,
}

/// What a format can represent.
#[derive(Clone, Copy)]
struct Kept {
    format: &'static str,
    starts: Starts,
    /// Negative weights. Formats without them omit such samples with a warning.
    negative: bool,
    /// Sample counts in addition to weights.
    counts: bool,
    /// Stacks. Callgrind files contain calls, from which stacks can only be estimated.
    stacks: bool,
    /// Several named events in one file.
    events: bool,
    /// Threads with their IDs.
    threads: bool,
    /// The unit of weights.
    units: bool,
    /// Any character in names. Folded stacks separate frames by `;`, and end with a line.
    any_names: bool,
}

const ALL: Kept = Kept {
    format: "",
    starts: Starts::All,
    negative: true,
    counts: true,
    stacks: true,
    events: true,
    threads: true,
    units: true,
    any_names: true,
};

/// All formats that jitgraft both writes and reads.
const KEEPING: [Kept; 8] = [
    Kept { format: "pprof", ..ALL },
    Kept { format: "otlp", ..ALL },
    Kept { format: "otlp-json", ..ALL },
    Kept { format: "firefox", negative: false, counts: false, events: false, ..ALL },
    Kept { format: "speedscope", negative: false, counts: false, ..ALL },
    Kept {
        format: "callgrind",
        starts: Starts::Apart,
        counts: false,
        stacks: false,
        threads: false,
        units: false,
        ..ALL
    },
    Kept { format: "chrome", starts: Starts::InNames, negative: false, counts: false, events: false, ..ALL },
    Kept {
        format: "folded",
        starts: Starts::InNames,
        negative: false,
        counts: false,
        events: false,
        threads: false,
        units: false,
        any_names: false,
        ..ALL
    },
];

/// What survives a conversion from one format to the other: the intersection of both.
fn intersect(one: Kept, other: Kept) -> Kept {
    Kept {
        format: other.format,
        starts: one.starts.min(other.starts),
        negative: one.negative && other.negative,
        counts: one.counts && other.counts,
        stacks: one.stacks && other.stacks,
        events: one.events && other.events,
        threads: one.threads && other.threads,
        units: one.units && other.units,
        any_names: one.any_names && other.any_names,
    }
}

/// The facts about each event of a profile, limited to what `kept` says. If event names aren't kept, only the first
/// event.
fn facts(profile: &Profile, kept: Kept) -> BTreeMap<String, EventFacts> {
    let text = |id| String::from_utf8_lossy(profile.name_of(id)).into_owned();
    // Trace events are told apart when they are read, by what is in the file.
    let frames = if kept.format == "chrome" { first_event(profile) } else { profile.clone() };
    let namesakes = Namesakes::new(&frames);
    let key = |frame: &Frame| -> FunctionKey {
        let mut name = text(frame.name);
        if kept.starts == Starts::InNames
            && let Some(location) = namesakes.location(&profile.frame_in(&mut frames.clone(), frame))
        {
            name = format!("{name} ({location})");
        }
        if !kept.any_names {
            name = name.replace(';', ":").replace('\n', " ");
        }
        let file = frame.start.file.map(text).unwrap_or_default();
        match kept.starts {
            Starts::InNames => (name, String::new(), 0, 0),
            // callgrind appends the position to names that several functions of a file share.
            Starts::Apart => {
                let shared = ["(anonymous)", "get"].into_iter().find(|shared| name.starts_with(shared));
                (shared.map_or(name, str::to_owned), file, 0, 0)
            }
            Starts::All => (name, file, frame.start.line, frame.start.column),
        }
    };
    let mut all = BTreeMap::new();
    for series in &profile.series[..if kept.events { profile.series.len() } else { 1 }] {
        let mut facts = EventFacts::default();
        let rows = series.signed_rows(Weight::Period).filter(|(_, weight)| kept.negative || *weight > 0);
        for (row, weight) in rows {
            facts.total += weight;
            facts.count += if kept.counts { row.count } else { 0 };
            if kept.threads {
                let Track { comm, pid, tid, .. } = profile.track_of(row.track);
                let ids = (pid.map_or(0, |pid| pid.0), tid.map_or(0, |tid| tid.0));
                let thread = (String::from_utf8_lossy(comm).into_owned(), ids.0, ids.1);
                *facts.threads.entry(thread).or_default() += weight;
            }
            let mut seen = BTreeSet::new();
            for (depth, id) in profile.frames_up(row.stack).enumerate() {
                let key = key(profile.frame_of(id));
                let (own, total) = facts.functions.entry(key.clone()).or_default();
                *own += if depth == 0 { weight } else { 0 };
                *total += if seen.insert(key) && kept.stacks { weight } else { 0 };
            }
        }
        if !kept.stacks {
            // Functions without self weight can get lost, because recursion may hide them as callers.
            facts.functions.retain(|_, (own, _)| *own != 0);
        }
        all.insert(if kept.events { series.name.clone() } else { String::new() }, facts);
    }
    all
}

/// A profile with just those frames that the first event's positive rows have.
fn first_event(profile: &Profile) -> Profile {
    let mut first = Profile::new();
    for row in &profile.series[0].rows {
        for id in profile.frames_up(row.stack) {
            let frame = profile.frame_in(&mut first, profile.frame_of(id));
            first.frame(frame);
        }
    }
    first
}

fn write(profile: &Profile, format: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // The thread isn't a function.
    let options = WriteOptions { by: RootFrame::Nothing, ..WriteOptions::default() };
    (find_format(format).unwrap().write.unwrap().run)(profile, &options, &mut out).unwrap();
    out
}

fn read(bytes: &[u8], format: &str) -> Profile {
    let mut plain = Vec::new();
    let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
    let bytes = match is_packed {
        true => {
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain).unwrap();
            &plain
        }
        false => bytes,
    };
    let (mut warnings, options) = (Warnings::new(), ReadOptions::default());
    let profile = match reader_of(format).read {
        Read::Stacks(read) => read(bytes, &options, &mut warnings).unwrap(),
        Read::Stream(read) => read(&mut &bytes[..], &options, &mut warnings).unwrap(),
        Read::Spans(spans) => (spans.stacks)(SpanInput::whole(bytes), &options, &mut warnings).unwrap(),
        Read::Lines { open, .. } => {
            let mut skipped = Skipped::new("line");
            let mut lines = open(&options, bytes);
            lines.read(bytes, &mut skipped);
            warnings.extend(skipped.into_warning());
            std::mem::take(lines.profile())
        }
        _ => unreachable!(),
    };
    assert!(warnings.is_empty(), "{format}: {:?}", warnings.iter().map(ToString::to_string).collect::<Vec<_>>());
    profile
}

/// The format that reads what this one writes.
fn reader_of(format: &str) -> &'static Format {
    find_format(if format == "otlp-json" { "otlp" } else { format }).unwrap()
}

#[test]
fn every_format_that_is_written_and_read_is_converted() {
    for format in FORMATS {
        let is_read = !matches!(reader_of(format.name).read, Read::No);
        let is_converted = KEEPING.iter().any(|kept| kept.format == format.name);
        assert_eq!(format.write.is_some() && is_read, is_converted, "{}", format.name);
    }
}

#[test]
fn counts_of_equal_stacks_with_weights_of_both_signs_do_not_cancel_out() {
    let mut profile = Profile::new();
    let series = profile.series_named("alloc_space", Unit::Named("bytes".to_owned()));
    let name = profile.name(b"f");
    let frame = profile.frame(Frame::new(name, FrameKind::User));
    let (track, stack) = (profile.track(Track::default()), Some(profile.stack(None, frame)));
    let row = Row { track, stack, weight: 100, count: 3, time: None };
    profile.push(series, row);
    profile.push_negative(series, Row { weight: 40, count: 2, ..row });
    for format in ["pprof", "otlp", "otlp-json"] {
        let facts = facts(&read(&write(&profile, format), format), ALL);
        let EventFacts { total, count, .. } = facts["alloc_space"];
        assert_eq!((total, count), (60, 5), "{format}");
    }
}

/// A sample of the random profiles: event, thread, functions from the outside in, weight and count. All but the last
/// two are indices.
type RandomSample = (usize, usize, Vec<usize>, i64, u64);

fn random_profile(samples: &[RandomSample], has_negative: bool) -> Profile {
    let mut profile = Profile::new();
    let bytes = Unit::Named("bytes".to_owned());
    let events = [("cpu", Unit::Nanos), ("alloc_space", bytes), ("cycles", Unit::Named("cycles".to_owned()))];
    let events = events.map(|(name, unit)| profile.series_named(name, unit));
    let tracks = THREADS.map(|(comm, pid, tid)| {
        profile.track(Track { comm: comm.into(), pid: Some(Pid(pid)), tid: Some(Tid(tid)), ..Track::default() })
    });
    for (at, (event, thread, functions, weight, count)) in samples.iter().enumerate() {
        // The first weights are positive, so that every event has samples even in formats without negative weights.
        // Negative ones have a function of their own: in formats that add up equal stacks, weights and counts of
        // different signs would cancel out. The first event counts time, because trace events only hold times.
        let event = events[if at == 0 { 0 } else { *event }];
        let is_negative = has_negative && at > 2 && weight % 3 == 0;
        let functions = functions.iter().map(|function| FUNCTIONS[*function]);
        let mut stack = None;
        for (name, file, line, column) in functions.chain(is_negative.then_some(("freed", "src/a.py", 30, 0))) {
            let (name, file) = (profile.name(name.as_bytes()), Some(profile.name(file.as_bytes())));
            let start = FunctionStart { file, line, column };
            let frame = profile.frame(Frame { file, start, ..Frame::new(name, FrameKind::User) });
            stack = Some(profile.stack(stack, frame));
        }
        let weight = weight.unsigned_abs() * 1_000_000;
        let row = Row { track: tracks[*thread], stack, weight, count: *count, time: None };
        match is_negative {
            true => profile.push_negative(event, row),
            false => profile.push(event, row),
        }
    }
    profile.series.retain(|series| !series.rows.is_empty());
    profile
}

fn random_samples() -> impl Strategy<Value = Vec<RandomSample>> {
    let functions = prop::collection::vec(0..FUNCTIONS.len(), 1..5);
    prop::collection::vec((0usize..3, 0..THREADS.len(), functions, 1i64..1000, 1u64..5), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(17),
        ..ProptestConfig::with_cases(24 / step(3) as u32)
    })]

    /// Converts a profile between each pair of formats; functions, threads, weights, totals and sample counts must not
    /// change.
    #[test]
    fn conversions_keep_functions(samples in random_samples(), has_negative: bool) {
        let profile = random_profile(&samples, has_negative);
        for first in KEEPING {
            let once = read(&write(&profile, first.format), first.format);
            prop_assert_eq!(facts(&once, first), facts(&profile, first), "{}", first.format);
            #[cfg(feature = "tables")]
            prop_assert_eq!(parquet_facts(&write(&once, "parquet")), facts(&once, ALL), "{} to parquet", first.format);
            for second in KEEPING {
                // Trace events only hold times, and these formats don't say what is one.
                if second.format == "chrome" && !first.units {
                    continue;
                }
                let twice = read(&write(&once, second.format), second.format);
                let kept = intersect(first, second);
                prop_assert_eq!(facts(&twice, kept), facts(&once, kept), "{} to {}", first.format, second.format);
            }
        }
    }

    /// Reads what is written in JSON with code that knows nothing of our readers: functions and totals are there.
    #[test]
    fn json_says_what_the_profile_says(samples in random_samples()) {
        let profile = random_profile(&samples, false);
        let kept = Kept { events: false, ..ALL };
        let EventFacts { total, functions, .. } = facts(&profile, kept).remove("").unwrap();
        let parse = |format: &str| serde_json::from_slice::<Value>(&write(&profile, format)).unwrap();
        let sum = |list: &Value| list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).sum::<f64>();
        let (mut found, mut weights) = (BTreeSet::new(), 0.0);

        let speedscope = parse("speedscope");
        for one in speedscope["profiles"].as_array().unwrap().iter().filter(|one| one["event"] == "cpu") {
            weights += sum(&one["weights"]);
            for index in one["samples"].as_array().unwrap().iter().flat_map(|sample| sample.as_array().unwrap()) {
                let frame = &speedscope["shared"]["frames"][index.as_u64().unwrap() as usize];
                found.insert(json_key(&frame["name"], &frame["file"], &frame["line"], &frame["col"]));
            }
        }
        prop_assert_eq!(weights, total as f64);
        prop_assert!(found.iter().eq(functions.keys()), "{:?} {:?}", found, functions);

        let trace = parse("chrome");
        let spans: Vec<&Value> =
            trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
        let end = |span: &Value| span["ts"].as_f64().unwrap() + span["dur"].as_f64().unwrap();
        let mut outermost = 0.0;
        found.clear();
        for (at, span) in spans.iter().enumerate() {
            let args = &span["args"];
            found.insert(json_key(&span["name"], &args["file"], &args["line"], &args["column"]));
            // Outer spans come first.
            let is_inner = spans[..at].iter().any(|other| {
                other["tid"] == span["tid"] && other["ts"].as_f64() <= span["ts"].as_f64() && end(other) >= end(span)
            });
            outermost += if is_inner { 0.0 } else { span["dur"].as_f64().unwrap() };
        }
        prop_assert_eq!(outermost * 1000.0, total as f64);
        prop_assert!(found.iter().eq(functions.keys()), "{:?} {:?}", found, functions);

        let firefox = parse("firefox");
        found.clear();
        for thread in firefox["threads"].as_array().unwrap() {
            let text = |index: &Value| match index.as_u64() {
                Some(index) => thread["stringArray"][index as usize].clone(),
                None => Value::Null,
            };
            let table = &thread["funcTable"];
            for at in 0..table["length"].as_u64().unwrap() as usize {
                let [name, file] = ["name", "fileName"].map(|column| text(&table[column][at]));
                found.insert(json_key(&name, &file, &table["lineNumber"][at], &table["columnNumber"][at]));
            }
        }
        prop_assert!(functions.keys().all(|function| found.contains(function)), "{:?} {:?}", found, functions);

        let plain = parse("json");
        let rows = plain["events"][0]["stacks"].as_array().unwrap();
        prop_assert_eq!(rows.iter().map(|row| row["weight"].as_i64().unwrap()).sum::<i64>(), total);
    }
}

/// What a Parquet file says, by the reader of the `parquet` crate.
#[cfg(feature = "tables")]
fn parquet_facts(bytes: &[u8]) -> BTreeMap<String, EventFacts> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let text = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        Field::Null => String::new(),
        other => panic!("{other:?} is not text"),
    };
    let number = |field: &Field| match field {
        Field::Int(number) => i64::from(*number),
        Field::Long(number) => *number,
        Field::Null => 0,
        other => panic!("{other:?} is no number"),
    };
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    let mut all: BTreeMap<String, EventFacts> = BTreeMap::new();
    for row in SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap() {
        let cells: BTreeMap<String, Field> = row.unwrap().into_columns().into_iter().collect();
        let list = |name: &str| match &cells[name] {
            Field::ListInternal(list) => list.elements(),
            other => panic!("{name} is {other:?}"),
        };
        let weight = number(&cells["weight"]);
        let facts = all.entry(text(&cells["event"])).or_default();
        facts.total += weight;
        facts.count += number(&cells["count"]) as u64;
        let thread = (text(&cells["comm"]), number(&cells["pid"]) as i32, number(&cells["tid"]) as i32);
        *facts.threads.entry(thread).or_default() += weight;
        let [names, files, lines, columns] = ["functions", "start_files", "start_lines", "start_columns"].map(list);
        let mut seen = BTreeSet::new();
        for at in 0..names.len() {
            let [line, column] = [&lines[at], &columns[at]].map(|field| number(field) as u32);
            let key = (text(&names[at]), text(&files[at]), line, column);
            let (own, total) = facts.functions.entry(key.clone()).or_default();
            *own += if at + 1 == names.len() { weight } else { 0 };
            *total += if seen.insert(key) { weight } else { 0 };
        }
    }
    all
}

fn json_key(name: &Value, file: &Value, line: &Value, column: &Value) -> FunctionKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0) as u32;
    (text(name), text(file), number(line), number(column))
}

/// Name, process and thread ID of threads.
const THREADS: [(&str, i32, i32); 4] = [("node", 7, 7), ("V8 Worker", 7, 9), ("a \"b\" 2", 8, 8), ("日本", 9, 10)];

/// Name, file, line and column of functions. Some share their name with others, some their file, some both.
const FUNCTIONS: [(&str, &str, u32, u32); 17] = [
    ("init", "src/a.py", 10, 0),
    ("init", "src/b.py", 10, 0),
    ("run", "src/a.py", 20, 0),
    ("run", "src/b.py", 7, 0),
    ("main", "src/a.py", 1, 0),
    ("(anonymous)", "src/c.js", 5, 3),
    ("(anonymous)", "src/c.js", 5, 30),
    ("(anonymous)", "src/d.js", 5, 3),
    ("get", "src/c.js", 9, 2),
    ("get", "src/c.js", 9, 40),
    ("get", "lib/c.js", 9, 2),
    ("a;b", "src/e.rb", 3, 0),
    ("operator() const", "x.cpp", 3, 0),
    ("say \"hi\"\\ λ→", "x.cpp", 9, 4),
    ("block 12", "src/e.rb", 4, 0),
    ("[GC]", "gc.c", 4, 0),
    ("<T as X>::f{{closure}}", "x.rs", 1, 1),
];
