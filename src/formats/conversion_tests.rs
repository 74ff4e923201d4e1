//! Conversions between all pairs of formats that hold functions with their files keep functions and weights.

use super::{FORMATS, find_format};
use crate::contract::format::{Read, ReadOptions, WriteOptions};
use crate::error::Warnings;
use crate::model::stacks::{Frame, FrameKind, FunctionStart, Profile, Row, Track, Unit, Weight};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, BTreeSet};

/// Identifies a function: name, file, and the line and column where it starts.
type FunctionKey = (String, String, u32, u32);

/// What must survive the conversion of an event: its total, its sample count, and the self and total weight of each
/// function.
#[derive(Debug, Default, PartialEq)]
struct EventFacts {
    total: i64,
    count: u64,
    functions: BTreeMap<FunctionKey, (i64, i64)>,
}

/// Which start positions of functions a format keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Starts {
    /// No start positions. But functions of the same name and file that start at different positions stay separate.
    Apart,
    /// Only the positions of functions without a name, which nothing else distinguishes.
    OfNameless,
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
}

/// The formats that keep functions with their source files.
const KEEPING: [Kept; 5] = [
    Kept { format: "pprof", starts: Starts::All, negative: true, counts: true, stacks: true, events: true },
    Kept { format: "otlp", starts: Starts::All, negative: true, counts: true, stacks: true, events: true },
    Kept { format: "firefox", starts: Starts::All, negative: false, counts: false, stacks: true, events: false },
    // speedscope's frames have a single source position. It is the sampled line, except for functions that are only
    // distinguished by where they start.
    Kept {
        format: "speedscope",
        starts: Starts::OfNameless,
        negative: false,
        counts: false,
        stacks: true,
        events: true,
    },
    Kept { format: "callgrind", starts: Starts::Apart, negative: true, counts: false, stacks: false, events: true },
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
    }
}

/// The facts about each event of a profile, limited to what `kept` says. If event names aren't kept, only the first
/// event.
fn facts(profile: &Profile, kept: Kept) -> BTreeMap<String, EventFacts> {
    let text = |id| String::from_utf8_lossy(profile.name_of(id)).into_owned();
    let mut all = BTreeMap::new();
    for series in &profile.series[..if kept.events { profile.series.len() } else { 1 }] {
        let mut facts = EventFacts::default();
        let rows = series.signed_rows(Weight::Period).filter(|(_, weight)| kept.negative || *weight > 0);
        for (row, weight) in rows {
            facts.total += weight;
            facts.count += if kept.counts { row.count } else { 0 };
            let mut seen = BTreeSet::new();
            for (depth, id) in profile.frames_up(row.stack).enumerate() {
                let frame = profile.frame_of(id);
                // callgrind appends the source location to names that several functions share.
                let name = text(frame.name);
                let name = if name.starts_with("(anonymous)") { "(anonymous)".to_owned() } else { name };
                let has_start =
                    kept.starts == Starts::All || kept.starts == Starts::OfNameless && name.starts_with('(');
                let (line, column) = if has_start { (frame.start.line, frame.start.column) } else { (0, 0) };
                let key = (name, frame.start.file.map(text).unwrap_or_default(), line, column);
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

fn write(profile: &Profile, format: &str) -> Vec<u8> {
    let mut out = Vec::new();
    (find_format(format).unwrap().write.unwrap().run)(profile, &WriteOptions::default(), &mut out).unwrap();
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
    let mut warnings = Warnings::new();
    let format = FORMATS.iter().find(|one| one.name == format).unwrap();
    let profile = match format.read {
        Read::Stacks(read) => read(bytes, &ReadOptions::default(), &mut warnings),
        Read::Stream(read) => read(&mut &bytes[..], &ReadOptions::default(), &mut warnings),
        _ => unreachable!(),
    };
    assert!(warnings.is_empty(), "{}: {:?}", format.name, warnings.iter().map(ToString::to_string).collect::<Vec<_>>());
    profile.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(17),
        ..ProptestConfig::with_cases(24)
    })]

    /// Converts a profile between each pair of formats; functions, weights, totals and sample counts must not change.
    #[test]
    fn conversions_keep_functions(
        samples in prop::collection::vec((0usize..3, prop::collection::vec(0usize..8, 1..5), 1i64..1000, 1u64..5), 1..12),
        has_negative: bool,
    ) {
        let mut profile = Profile::new();
        let events = [("cpu", Unit::Nanos), ("alloc_space", Unit::Named("bytes".to_owned())), ("cycles", Unit::Named("cycles".to_owned()))];
        let events = events.map(|(name, unit)| profile.series_named(name, unit));
        let track = profile.track(Track { comm: b"t".to_vec(), ..Track::default() });
        for (at, (event, functions, weight, count)) in samples.iter().enumerate() {
            // The first weights are positive, so that every event has samples even in formats without negative
            // weights. Negative ones have a function of their own: in formats that add up equal stacks, weights and
            // counts of different signs would cancel out.
            let is_negative = has_negative && at > 2 && weight % 3 == 0;
            let functions = functions.iter().map(|function| FUNCTIONS[*function]);
            let mut stack = None;
            for (name, file, line, column) in functions.chain(is_negative.then_some(("freed", "src/a.py", 30, 0))) {
                let (name, file) = (profile.name(name.as_bytes()), Some(profile.name(file.as_bytes())));
                let start = FunctionStart { file, line, column };
                let frame = profile.frame(Frame { file, start, ..Frame::new(name, FrameKind::User) });
                stack = Some(profile.stack(stack, frame));
            }
            let row = Row { track, stack, weight: weight.unsigned_abs() * 1_000_000, count: *count, time: None };
            match is_negative {
                true => profile.push_negative(events[*event], row),
                false => profile.push(events[*event], row),
            }
        }
        profile.series.retain(|series| !series.rows.is_empty());
        for first in KEEPING {
            let once = read(&write(&profile, first.format), first.format);
            prop_assert_eq!(facts(&once, first), facts(&profile, first), "{}", first.format);
            for second in KEEPING {
                let twice = read(&write(&once, second.format), second.format);
                let kept = intersect(first, second);
                prop_assert_eq!(facts(&twice, kept), facts(&profile, kept), "{} to {}", first.format, second.format);
            }
        }
    }
}

/// Name, file, line and column of functions. Some share their name with others, some their file, some both.
const FUNCTIONS: [(&str, &str, u32, u32); 8] = [
    ("init", "src/a.py", 10, 0),
    ("init", "src/b.py", 10, 0),
    ("run", "src/a.py", 20, 0),
    ("run", "src/b.py", 7, 0),
    ("main", "src/a.py", 1, 0),
    ("(anonymous)", "src/c.js", 5, 3),
    ("(anonymous)", "src/c.js", 5, 30),
    ("(anonymous)", "src/d.js", 5, 3),
];
