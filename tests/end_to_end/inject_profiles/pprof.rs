//! pprof profiles.

use super::protobuf::{Field, Value, all, encode, number, parse};
use super::recorded::Recorded;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

// Fields of profile.proto.
const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;
/// A field of a location.
const MAPPING_ID: u64 = 2;
const ADDRESS: u64 = 3;
const LINE: u64 = 4;
/// No field of any message: what a later version may have.
const UNKNOWN: u64 = 77;

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn text(profile: &[Field], at: u64) -> String {
    String::from_utf8(all(profile, STRING).nth(at as usize).unwrap().to_vec()).unwrap()
}

/// The profile as an agent leaves it that cannot name JIT code: its locations are in no mapping and have no function,
/// and the functions and their names are gone. Some fields are in it unknown to all readers.
fn stripped(bytes: &[u8]) -> Vec<u8> {
    let profile = parse(bytes);
    let is_jit = |mapping: &[Field]| {
        let file = text(&profile, number(mapping, 5));
        file.contains("jitted-") || file.contains("/perf-")
    };
    let mappings = all(&profile, MAPPING).map(parse).filter(|mapping| is_jit(mapping));
    let jit: HashSet<u64> = mappings.map(|mapping| number(&mapping, 1)).collect();
    let functions_of = |location: &[Field]| all(location, LINE).map(|line| number(&parse(line), 1)).collect::<Vec<_>>();
    let locations: Vec<Vec<Field>> = all(&profile, LOCATION).map(parse).collect();
    let (of_jit, others): (Vec<_>, Vec<_>) =
        locations.iter().partition(|location| jit.contains(&number(location, MAPPING_ID)));
    let kept: HashSet<u64> = others.into_iter().flat_map(|location| functions_of(location)).collect();
    let gone: HashSet<u64> = of_jit.into_iter().flat_map(|location| functions_of(location)).collect();
    let functions = all(&profile, FUNCTION).map(parse);
    let (left, lost): (Vec<_>, Vec<_>) =
        functions.partition(|function| kept.contains(&number(function, 1)) || !gone.contains(&number(function, 1)));
    let names = |functions: &[Vec<Field>]| -> HashSet<u64> {
        functions.iter().flat_map(|function| [2, 3, 4].map(|tag| number(function, tag))).collect()
    };
    let lost_ids: HashSet<u64> = lost.iter().map(|function| number(function, 1)).collect();
    let lost_names: HashSet<u64> = names(&lost).difference(&names(&left)).copied().filter(|at| *at > 0).collect();
    let mut strings = 0;
    let mut out: Vec<Field> = Vec::new();
    for (tag, value) in &profile {
        let inner = |value: &Value| parse(value.bytes());
        let value = match *tag {
            FUNCTION if lost_ids.contains(&number(&inner(value), 1)) => continue,
            LOCATION if jit.contains(&number(&inner(value), MAPPING_ID)) => {
                let left = inner(value).into_iter().filter(|(tag, _)| ![MAPPING_ID, LINE].contains(tag));
                let unknown = (UNKNOWN, Value::Bytes(b"unknown".to_vec()));
                Value::Bytes(encode(&left.chain([unknown]).collect::<Vec<_>>()))
            }
            STRING => {
                strings += 1;
                if lost_names.contains(&(strings - 1)) { Value::Bytes(b"-".to_vec()) } else { value.clone() }
            }
            _ => value.clone(),
        };
        out.push((*tag, value));
    }
    let behind_types = out.iter().take_while(|(tag, _)| *tag == 1).count();
    out.insert(behind_types, (UNKNOWN, Value::Fixed(vec![1; 8])));
    encode(&out)
}

/// The functions of all locations, innermost first, by the location's number: (address, names).
fn named(bytes: &[u8]) -> BTreeMap<u64, (u64, Vec<String>)> {
    let profile = parse(bytes);
    let functions: BTreeMap<u64, u64> =
        all(&profile, FUNCTION).map(parse).map(|function| (number(&function, 1), number(&function, 2))).collect();
    let name = |line: &[u8]| text(&profile, functions[&number(&parse(line), 1)]);
    let locations = all(&profile, LOCATION).map(parse);
    let of = |location: &[Field]| (number(location, ADDRESS), all(location, LINE).map(name).collect());
    locations.map(|location| (number(&location, 1), of(&location))).collect()
}

/// A profile of a recording, by our own export, and the same without its JIT names.
fn exported(recorded: &Recorded) -> (Vec<u8>, Vec<u8>) {
    recorded.jitgraft(&["export", "--jit-names", "raw", "perf.data", "-o", "whole.pb.gz"]);
    let whole = unpacked(&recorded.read("whole.pb.gz"));
    let bare = stripped(&whole);
    recorded.write("bare.pb.gz", &packed(&bare));
    (whole, bare)
}

/// Without the fields that later versions may have.
fn known(message: Vec<Field>) -> Vec<Field> {
    message.into_iter().filter(|(tag, _)| *tag != UNKNOWN).collect()
}

/// The values of each field, in their order: what was there is there; locations got lines, and functions and strings
/// came behind. Unknown fields are gone.
fn assert_only_named(bare: &[u8], injected: &[u8]) {
    let (before, after) = (known(parse(bare)), parse(injected));
    for field in 1..=UNKNOWN {
        let values = |message: &[Field]| -> Vec<Value> {
            message.iter().filter(|(tag, _)| *tag == field).map(|(_, value)| value.clone()).collect()
        };
        let (before, after) = (values(&before), values(&after));
        let (kept, new) = after.split_at(before.len());
        assert!(new.is_empty() || [FUNCTION, STRING].contains(&field), "{field}: {new:?}");
        for (before, after) in before.iter().zip(kept) {
            if field == LOCATION && before != after {
                let (before, after) = (known(parse(before.bytes())), parse(after.bytes()));
                assert!(all(&before, LINE).next().is_none());
                assert_eq!(before, after[..before.len()]);
                assert!(after[before.len()..].iter().all(|(tag, _)| *tag == LINE));
            } else {
                assert_eq!(before, after);
            }
        }
    }
}

#[test]
fn locations_have_the_names_that_perf_shows_after_inject() {
    for recorded in Recorded::all() {
        let (whole, bare) = exported(&recorded);
        let by_perf = recorded.names_by_perf();
        let said = recorded.jitgraft(&["inject", "-i", "bare.pb.gz", "-o", "injected.pb.gz"]);
        let injected = unpacked(&recorded.read("injected.pb.gz"));
        assert_only_named(&bare, &injected);
        assert!(said.contains("unknown fields skipped; the first one: field 77 of Profile"), "{said}");
        let (whole, bare, injected) = (named(&whole), named(&bare), named(&injected));
        let (mut named, mut left, mut shown) = (0, 0, 0);
        for (id, (address, names)) in &injected {
            if !bare[id].1.is_empty() {
                assert_eq!(names, &bare[id].1);
            } else if names.is_empty() {
                // Memory in which no code was: our export calls it after what it lies in.
                assert!(whole[id].1[0].starts_with('['), "{address:#x} is {:?}", whole[id].1);
                left += 1;
            } else {
                assert_eq!(names, &whole[id].1, "{address:#x}: {said}");
                named += 1;
                let by_perf = by_perf.get(address);
                assert!(
                    by_perf.is_none_or(|by_perf| by_perf.contains(names.last().unwrap())),
                    "{names:?}, perf: {by_perf:?}"
                );
                shown += usize::from(by_perf.is_some());
            }
        }
        assert!(named > 3 && shown > 2, "{named} named, {shown} of them seen by perf: {said}");
        assert!(said.contains(" unnamed addresses (") && left < 9, "{named}, {left}: {said}");
        assert!(!said.contains("clock"), "{said}");
    }
}

#[test]
fn addresses_that_had_several_functions_are_counted() {
    let recorded = Recorded::of_tiers();
    exported(&recorded);
    let said = recorded.jitgraft(&["inject", "-i", "bare.pb.gz", "-o", "injected.pb.gz"]);
    assert!(said.contains("named addresses held several functions over time"), "{said}");
}

#[test]
fn a_profile_stays_as_packed_as_it_was_and_twice_is_once() {
    let recorded = Recorded::all().next().unwrap();
    let (_, bare) = exported(&recorded);
    recorded.write("plain.pb", &bare);
    recorded.jitgraft(&["inject", "-i", "plain.pb", "-o", "plain.out.pb"]);
    recorded.jitgraft(&["inject", "-i", "bare.pb.gz", "-o", "once.pb.gz"]);
    let said = recorded.jitgraft(&["inject", "-i", "once.pb.gz", "-o", "twice.pb.gz"]);
    assert_eq!(recorded.read("plain.out.pb"), unpacked(&recorded.read("once.pb.gz")));
    assert!(recorded.read("once.pb.gz") == recorded.read("twice.pb.gz"), "{said}");
    assert!(said.contains("named 0 of 1 unnamed addresses"), "what is in no code: {said}");
    recorded.write("bare.pb.zst", &zstd::encode_all(&bare[..], 3).unwrap());
    recorded.jitgraft(&["inject", "-i", "bare.pb.zst", "-o", "out.pb.zst"]);
    assert_eq!(zstd::decode_all(&recorded.read("out.pb.zst")[..]).unwrap(), recorded.read("plain.out.pb"));
}

/// Without the labels that give the process.
fn without_labels(bytes: &[u8]) -> Vec<u8> {
    let mut profile = parse(bytes);
    for (tag, value) in &mut profile {
        if *tag == SAMPLE {
            let sample: Vec<Field> = parse(value.bytes()).into_iter().filter(|(tag, _)| *tag != 3).collect();
            *value = Value::Bytes(encode(&sample));
        }
    }
    encode(&profile)
}

#[test]
fn the_file_that_names_code_states_whose_the_samples_are_if_they_do_not() {
    let recorded = Recorded::all().next().unwrap();
    let (whole, bare) = exported(&recorded);
    recorded.write("bare.pb", &without_labels(&bare));
    recorded.hide_names("elsewhere");
    let said = recorded.jitgraft(&["inject", "-i", "bare.pb", "-o", "left.pb"]);
    assert!(said.contains("the profile does not state their process"), "{said}");
    assert_eq!(recorded.read("left.pb"), recorded.read("bare.pb"));
    let names = format!("elsewhere/{}", recorded.names);
    recorded.jitgraft(&["inject", "-i", "bare.pb", "-o", "by-name.pb", "--jitdump", &names]);
    let (by_name, whole) = (named(&recorded.read("by-name.pb")), named(&whole));
    let differing: Vec<_> = by_name.iter().filter(|(id, named)| named.1 != whole[id].1).collect();
    assert!(differing.len() < 9 && differing.iter().all(|(_, named)| named.1.is_empty()), "in no code: {differing:?}");
    std::fs::rename(recorded.path(&names), recorded.path("dump")).unwrap();
    recorded.jitgraft(&["inject", "-i", "bare.pb", "-o", "by-pid.pb", "--jitdump", "dump@4711"]);
    assert_eq!(recorded.read("by-pid.pb"), recorded.read("by-name.pb"));
}

#[test]
fn options_for_recordings_are_refused() {
    let recorded = Recorded::all().next().unwrap();
    exported(&recorded);
    for flag in [
        "--relocate",
        "--drop-bad-chain-entries",
        "--convert-callchain",
        "--all-functions",
        "--cache",
        "-b",
        "--image-dir=.",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["inject", flag, "-i"]).arg(recorded.path("bare.pb.gz")).arg("-o").arg(recorded.path("out"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("only works with perf.data"), "{flag}: {said}");
        assert!(!recorded.path("out").exists());
    }
}

/// The counts of Go's own tool: function → flat.
fn top(recorded: &Recorded, file: &str) -> BTreeMap<String, String> {
    let mut command = Command::new("go");
    command
        .args(["tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-symbolize=none", "-unit=ns"])
        .arg(recorded.path(file));
    command.env("HOME", recorded.path(".")).env("PPROF_TMPDIR", recorded.path("."));
    let output = command.stdin(Stdio::null()).output().expect("go is needed: tests/run.sh --all installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let flat = words.next().unwrap().to_owned();
        (words.skip(4).collect::<Vec<_>>().join(" "), flat)
    };
    rows.map(row).collect()
}

#[test]
#[ignore = "needs go: tests/run.sh --all"]
fn go_reads_the_profile_before_and_after() {
    for recorded in Recorded::all() {
        exported(&recorded);
        recorded.jitgraft(&["inject", "-i", "bare.pb.gz", "-o", "injected.pb.gz"]);
        let [whole, bare, injected] = ["whole.pb.gz", "bare.pb.gz", "injected.pb.gz"].map(|file| top(&recorded, file));
        // Samples outside of code have the name of their memory in our export, and none in the others.
        let named = |top: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let is_named = |name: &str| !name.starts_with(['[', '<', '0']);
            top.iter().filter(|(name, _)| is_named(name)).map(|(name, flat)| (name.clone(), flat.clone())).collect()
        };
        assert_eq!(named(&injected), named(&whole));
        assert!(named(&bare).len() < named(&whole).len());
    }
}
