use super::*;
use crate::contract::unsymbolized::NamedCall;
use crate::model::{Addr, FrameAddr, Pid};
use prost::encoding::{self, encode_varint};

fn message(tag: u8, inside: &[u8]) -> Vec<u8> {
    let mut out = vec![tag * 8 + 2];
    encode_varint(inside.len() as u64, &mut out);
    out.extend(inside);
    out
}

fn number(tag: u8, number: u64) -> Vec<u8> {
    let mut out = vec![tag * 8];
    encode_varint(number, &mut out);
    out
}

const STRINGS: [&str; 8] = ["", "samples", "count", "pid", "//anon", "/bin/a", "known", "note"];

fn location(id: u64, mapping: u64, address: u64, lines: &[u8]) -> Vec<u8> {
    let mapping = if mapping > 0 { number(2, mapping) } else { Vec::new() };
    message(4, &[&number(1, id), &mapping[..], &number(3, address), lines].concat())
}

fn sample(locations: &[Vec<u8>], pid: Option<u64>) -> Vec<u8> {
    let label = pid.map(|pid| message(3, &[number(1, 3), number(3, pid)].concat())).unwrap_or_default();
    message(2, &[locations.concat(), message(2, &[1]), label].concat())
}

/// Encodes location IDs in packed form, as most writers do.
fn ids(ids: &[u8]) -> Vec<u8> {
    message(1, ids)
}

/// A profile with locations 1 (in memory), 2 (in a file), 3 (in memory, named) and 4 (without a mapping).
fn profile(samples: &[Vec<u8>]) -> Vec<u8> {
    let types = message(1, &[number(1, 1), number(2, 2)].concat());
    let mapping = |id: u64, file: u64| message(3, &[number(1, id), number(5, file)].concat());
    let function = message(5, &[number(1, 9), number(2, 6), number(3, 6)].concat());
    let named = message(4, &number(1, 9));
    let locations = [
        location(1, 1, 0x1000, &[]),
        location(2, 2, 0x1000, &[]),
        location(3, 1, 0x1008, &named),
        location(4, 0, 0x2000, &[]),
    ];
    let strings: Vec<u8> = STRINGS.iter().flat_map(|text| message(6, text.as_bytes())).collect();
    [types, samples.concat(), mapping(1, 4), mapping(2, 5), locations.concat(), function, strings, number(12, 5)]
        .concat()
}

/// Opens a profile, which must not be damaged.
fn open_whole(bytes: &[u8]) -> Box<dyn Unsymbolized + '_> {
    let mut warnings = Warnings::new();
    let profile = open(bytes, &mut warnings).unwrap();
    assert!(warnings.is_empty());
    profile
}

/// Rewrites a profile with the names that `names` returns.
fn add_names(bytes: &[u8], names: &dyn Fn(BareAddress) -> Vec<NamedCall<'static>>) -> Vec<u8> {
    let (mut profile, mut out) = (open_whole(bytes), Vec::new());
    let addresses: Vec<BareAddress> = profile.addresses().to_vec();
    profile.write(&|index| names(addresses[index]), &mut out).unwrap();
    out
}

fn call(name: &'static str, file: &'static str, line: u32) -> NamedCall<'static> {
    NamedCall { name: name.as_bytes(), file: file.as_bytes(), line }
}

fn ip(pid: Option<i32>, addr: u64) -> BareAddress {
    BareAddress { pid: pid.map(Pid), file: None, addr: FrameAddr::Ip(Addr(addr)) }
}

fn caller(pid: Option<i32>, addr: u64) -> BareAddress {
    BareAddress { pid: pid.map(Pid), file: None, addr: FrameAddr::Return(Addr(addr)) }
}

/// The functions of each sample as our reader sees them: `name:line`, innermost frame first.
fn stacks(bytes: &[u8]) -> Vec<String> {
    let profile =
        crate::formats::pprof::read(bytes, &crate::contract::format::ReadOptions::default(), &mut Warnings::new());
    let profile = profile.unwrap();
    let mut stacks = Vec::new();
    for row in &profile.series[0].rows {
        let mut frames = Vec::new();
        for id in profile.frames_up(row.stack) {
            let frame = profile.frame_of(id);
            frames.push(format!("{}:{}", String::from_utf8_lossy(profile.name_of(frame.name)), frame.line));
        }
        stacks.push(frames.join(" "));
    }
    stacks
}

#[test]
fn asked_is_what_has_no_function_and_no_file() {
    let bytes = profile(&[sample(&[ids(&[1, 2, 3, 4])], Some(77)), sample(&[ids(&[4])], None)]);
    assert_eq!(open_whole(&bytes).addresses(), [ip(None, 0x2000), ip(Some(77), 0x1000), caller(Some(77), 0x2000)]);
}

#[test]
fn a_location_gets_lines_and_all_else_stays() {
    let bytes = profile(&[sample(&[ids(&[1, 2, 3])], Some(77))]);
    let out = add_names(&bytes, &|_| vec![call("inner", "", 0), call("outer", "a.js", 3)]);
    assert!(stacks(&out)[0].starts_with("inner:0 outer:3 "), "{:?}", stacks(&out));
    let before = Tables::read_whole(&bytes).unwrap().profile;
    let mut after = Tables::read_whole(&out).unwrap().profile;
    let lines = [(10, 0), (11, 3)].map(|(function_id, line)| PprofLine { function_id, line, column: 0 });
    assert_eq!(std::mem::take(&mut after.location[0].line), lines);
    let new_functions = after.function.split_off(before.function.len());
    assert_eq!(new_functions.iter().map(|function| function.id).collect::<Vec<_>>(), [10, 11]);
    assert_eq!(after.string_table.split_off(before.string_table.len()), ["inner", "outer", "a.js"]);
    assert_eq!(after, before);
}

#[test]
fn without_names_the_profile_is_encoded_as_it_was() {
    let bytes = profile(&[sample(&[ids(&[1, 4])], Some(77))]);
    assert_eq!(add_names(&bytes, &|_| Vec::new()), bytes);
}

#[test]
fn all_known_fields_are_kept() {
    let numbers = |last: u8| -> Vec<u8> { (1..=last).flat_map(|tag| number(tag, u64::from(tag))).collect() };
    let label = message(3, &numbers(4));
    let sample = message(2, &[message(1, &[1, 2]), message(2, &[1]), label].concat());
    let bare = message(4, &[number(1, 2), number(3, 0x2000)].concat());
    let line = message(4, &numbers(3));
    let location = message(4, &[numbers(3), line, number(5, 1)].concat());
    let flags: Vec<u8> = (7..=10).flat_map(|tag| number(tag, 1)).collect();
    let mapping = message(3, &[numbers(6), flags].concat());
    let facts = (7..=10).chain(12..=12).flat_map(|tag| number(tag, 3)).collect::<Vec<u8>>();
    let bytes = [
        message(1, &numbers(2)),
        sample,
        mapping,
        location,
        bare,
        message(5, &numbers(5)),
        STRINGS.iter().flat_map(|text| message(6, text.as_bytes())).collect(),
        facts[..8].to_vec(),
        message(11, &numbers(2)),
        facts[8..].to_vec(),
        message(13, &[4, 5]),
        number(14, 3),
        number(15, 6),
    ]
    .concat();
    let out = add_names(&bytes, &|_| vec![call("f", "", 0)]);
    let (before, mut after) = (Tables::read_whole(&bytes).unwrap(), Tables::read_whole(&out).unwrap());
    assert_eq!(after.profile.location[1].line.split_off(0).len(), 1);
    after.profile.function.truncate(before.profile.function.len());
    after.profile.string_table.truncate(before.profile.string_table.len());
    assert_eq!((&after.profile, &after.samples), (&before.profile, &before.samples));
    assert_eq!(before.profile.encode_to_vec().len() + 2 + before.samples[0].len(), bytes.len(), "all fields are known");
}

#[test]
fn unknown_fields_are_counted_wherever_they_are() {
    // Field 100: the key 800 as a varint, and a number.
    let unknown = vec![0xa0, 0x06, 7];
    let sample = message(2, &[message(1, &[1]), message(2, &[1]), message(3, &unknown), unknown.clone()].concat());
    let location = message(4, &[number(1, 9), message(4, &unknown), unknown.clone()].concat());
    let tables = [message(3, &unknown), location, message(5, &unknown), message(11, &unknown)].concat();
    let bytes = [profile(&[sample]), tables, unknown].concat();
    let mut warnings = Warnings::new();
    open(&bytes, &mut warnings).unwrap();
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.len() == 1 && said[0].contains("8 unknown fields") && said[0].contains("field 100 of Label"),
        "{said:?}"
    );
}

#[test]
fn named_twice_is_named_once() {
    let bytes = profile(&[sample(&[ids(&[1, 2, 3])], Some(77)), sample(&[ids(&[1])], Some(78))]);
    let by_pid = |address: BareAddress| vec![call(if address.pid == Some(Pid(77)) { "f" } else { "g" }, "", 0)];
    let once = add_names(&bytes, &by_pid);
    assert_eq!(open_whole(&once).addresses(), []);
    assert_eq!(add_names(&once, &by_pid), once);
}

#[test]
fn processes_that_share_a_location_do_not_share_its_name() {
    // Location IDs one by one, as old writers write them, and packed.
    let single = [number(1, 2), number(1, 1)];
    let samples = [
        sample(&[ids(&[1])], Some(77)),
        sample(&single, Some(78)),
        sample(&[ids(&[1])], Some(79)),
        sample(&[ids(&[1])], None),
    ];
    let out = add_names(&profile(&samples), &|address| match address.pid {
        Some(Pid(77 | 79)) => vec![call("f", "a", 1)],
        Some(Pid(78)) => vec![call("g", "a", 2)],
        _ => Vec::new(),
    });
    let stacks = stacks(&out);
    assert_eq!([&stacks[0], &stacks[2]], ["f:1", "f:1"]);
    assert!(stacks[1].ends_with(" g:2") && !stacks[3].contains('f'), "{stacks:?}");
    assert_eq!(Tables::read_whole(&out).unwrap().profile.location.len(), 4 + 2);
}

#[test]
fn a_caller_is_in_what_precedes_its_address() {
    let samples = [sample(&[ids(&[2, 4])], Some(77)), sample(&[ids(&[4])], Some(77))];
    let out = add_names(&profile(&samples), &|address| match address.addr.for_lookup().0 {
        0x1fff => vec![call("before", "", 0)],
        _ => vec![call("at", "", 0)],
    });
    assert!(stacks(&out)[0].ends_with(" before:0") && stacks(&out)[1] == "at:0", "{:?}", stacks(&out));
}

#[test]
fn names_that_are_not_text_become_text() {
    let out =
        add_names(&profile(&[sample(&[ids(&[1])], None)]), &|_| vec![NamedCall { name: b"f\xff", file: b"", line: 0 }]);
    let strings = Tables::read_whole(&out).unwrap().profile.string_table;
    assert_eq!(strings.last().unwrap(), "f\u{fffd}");
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Fields that no version of the format has, of each wire type.
    fn unknown_fields(&mut self) -> Vec<u8> {
        let (mut out, tag) = (Vec::new(), 200 + self.below(1000) as u32);
        for _ in 0..self.below(3) {
            match self.below(4) {
                0 => encoding::uint64::encode(tag, &self.0, &mut out),
                1 => encoding::bytes::encode(tag, &vec![0xaa; self.below(20) as usize], &mut out),
                2 => encoding::fixed64::encode(tag, &self.0, &mut out),
                _ => encoding::fixed32::encode(tag, &(self.0 as u32), &mut out),
            }
        }
        out
    }

    fn sample(&mut self) -> Vec<u8> {
        let places: Vec<u8> = (0..self.below(6)).map(|_| 1 + self.below(4) as u8).collect();
        let pid = [Some(77), Some(78), None][self.below(3) as usize];
        let sample = sample(&[ids(&places), self.unknown_fields()], pid);
        [self.unknown_fields(), sample].concat()
    }
}

#[test]
fn whatever_is_in_a_profile_only_what_is_named_changes() {
    let mut random = Random(7);
    for round in 0..400 {
        let samples: Vec<_> = (0..random.below(8)).map(|_| random.sample()).collect();
        let bytes = [random.unknown_fields(), profile(&samples), random.unknown_fields()].concat();
        let share = random.below(4);
        let mut opened = open(&bytes, &mut Warnings::new()).unwrap();
        let addresses: Vec<BareAddress> = opened.addresses().to_vec();
        let name = |index: usize| {
            let BareAddress { pid, addr, .. } = addresses[index];
            match addr.raw().0.wrapping_add(pid.map_or(0, |pid| pid.0 as u64)) % 4 {
                part if part < share => vec![call("inner", "", 0), call("outer", "a.js", 3)],
                _ => Vec::new(),
            }
        };
        let mut out = Vec::new();
        opened.write(&name, &mut out).unwrap();
        let (before, mut after) = (Tables::read_whole(&bytes).unwrap(), Tables::read_whole(&out).unwrap());
        assert_eq!(before.samples.len(), after.samples.len(), "round {round}");
        for (before, after) in before.samples.iter().zip(&after.samples) {
            let [before, after] = [before, after].map(|sample| PprofSample::decode(*sample).unwrap());
            assert_eq!((before.value, before.label), (after.value, after.label), "round {round}");
            assert_eq!(before.location_id.len(), after.location_id.len(), "round {round}");
        }
        // Locations may have new lines. Copies, functions and strings are new, too.
        let (before, after) = (before.profile, &mut after.profile);
        after.location.truncate(before.location.len());
        for (before, after) in before.location.iter().zip(&mut after.location) {
            after.line.truncate(before.line.len());
        }
        after.function.truncate(before.function.len());
        after.string_table.truncate(before.string_table.len());
        assert_eq!(before, *after, "round {round}");
        let mut left = Warnings::new();
        open(&out, &mut left).unwrap();
        assert!(left.is_empty() || out == bytes, "round {round}: no unknown fields");
    }
}

/// A damaged profile must be refused, or rewritten to something that can be read again.
fn assert_harmless(bytes: &[u8]) {
    let mut warnings = Warnings::new();
    let Ok(mut profile) = open(bytes, &mut warnings) else { return };
    assert!(warnings.iter().count() <= 2);
    let mut out = Vec::new();
    let odd_and_even = |at: usize| if at.is_multiple_of(2) { vec![call("f", "a", 1)] } else { vec![call("g", "", 0)] };
    if profile.write(&odd_and_even, &mut out).is_ok() {
        let again = open(&out, &mut Warnings::new()).unwrap();
        assert!(again.addresses().is_empty(), "all were named");
    }
}

#[test]
fn damage_anywhere_does_no_harm() {
    let samples =
        [sample(&[ids(&[1, 2, 3, 4])], Some(77)), sample(&[number(1, 1)], Some(78)), sample(&[ids(&[4, 1])], None)];
    let bytes = profile(&samples);
    for at in 0..bytes.len() {
        assert_harmless(&bytes[..at]);
        for change in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x55, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            assert_harmless(&damaged);
        }
    }
}
