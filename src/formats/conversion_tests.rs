//! Conversions between all pairs of formats that hold functions with their files keep functions and weights.

use super::{FORMATS, named};
use crate::contract::format::{Read, ReadOptions, WriteOptions};
use crate::error::Warnings;
use crate::model::stacks::{Frame, FrameKind, FunctionStart, Profile, Row, Track, Unit, Weight};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

/// A function: its name, its file, and the line where it starts.
type FunctionKey = (String, String, u32);

/// The self weight of each function of the first event.
fn facts(profile: &Profile, has_starts: bool) -> BTreeMap<FunctionKey, i64> {
    let text = |id| String::from_utf8_lossy(profile.name_of(id)).into_owned();
    let mut facts = BTreeMap::new();
    for (row, weight) in profile.series[0].signed_rows(Weight::Period) {
        for (depth, id) in profile.frames_up(row.stack).enumerate() {
            let frame = profile.frame_of(id);
            let start = if has_starts { frame.start.line } else { 0 };
            let own =
                facts.entry((text(frame.name), frame.start.file.map(text).unwrap_or_default(), start)).or_insert(0);
            *own += if depth == 0 { weight } else { 0 };
        }
    }
    facts
}

/// callgrind's files have calls, not stacks: a function that only calls is lost where recursion hides its callers.
fn kept(format: &str, mut facts: BTreeMap<FunctionKey, i64>) -> BTreeMap<FunctionKey, i64> {
    if format == "callgrind" {
        facts.retain(|_, own| *own != 0);
    }
    facts
}

fn write(profile: &Profile, format: &str) -> Vec<u8> {
    let mut out = Vec::new();
    (named(format).unwrap().write.unwrap().run)(profile, &WriteOptions::default(), &mut out).unwrap();
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

/// The formats that keep functions with their files, and whether they keep the lines where these start.
const KEEPING: [(&str, bool); 5] =
    [("pprof", true), ("otlp", true), ("firefox", true), ("callgrind", false), ("speedscope", false)];

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(17),
        ..ProptestConfig::with_cases(24)
    })]

    /// From each format to each other: the same functions with the same weights.
    #[test]
    fn conversions_keep_functions(stacks in prop::collection::vec((prop::collection::vec(0usize..6, 1..5), 1u64..1000), 1..12)) {
        let mut profile = Profile::new();
        let series = profile.series_named("cpu", Unit::Nanos);
        let track = profile.track(Track { comm: b"t".to_vec(), ..Track::default() });
        for (functions, weight) in &stacks {
            let mut stack = None;
            for function in functions {
                let name = profile.name([&b"init"[..], b"run", b"(anonymous)"][function % 3]);
                let file = Some(profile.name([&b"src/a.py"[..], b"src/b.py"][function / 3]));
                let start = FunctionStart { file, line: 10 * (*function as u32 + 1), column: 0 };
                let frame = Frame { file, start, ..Frame::new(name, FrameKind::User) };
                let frame = profile.frame(frame);
                stack = Some(profile.stack(stack, frame));
            }
            profile.push(series, Row { track, stack, weight: weight * 1_000_000, count: 1, time: None });
        }
        for (first, first_starts) in KEEPING {
            let once = read(&write(&profile, first), first);
            prop_assert_eq!(&kept(first, facts(&once, first_starts)), &kept(first, facts(&profile, first_starts)), "{}", first);
            for (second, second_starts) in KEEPING {
                let twice = read(&write(&once, second), second);
                let has_starts = first_starts && second_starts;
                let (found, wanted) = (facts(&twice, has_starts), facts(&profile, has_starts));
                let estimated = if first == "callgrind" { first } else { second };
                prop_assert_eq!(kept(estimated, found), kept(estimated, wanted), "{} to {}", first, second);
            }
        }
    }
}
