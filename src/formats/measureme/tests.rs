use super::event::{Payload, RawEvent};
use super::profile::MeasuremeFile;
use super::read::stacks;
use crate::analysis::timeline::CallOptions;
use crate::contract::format::ReadOptions;
use crate::contract::spans::{Done, SpanInput};
use crate::error::Warnings;
use proptest::prelude::{Strategy, prop, prop_assert_eq, prop_oneof, proptest};
use std::collections::BTreeMap;

/// Builds a file of any version. Streams are cut into pages of `page` bytes, and pages of different tags alternate.
struct Builder {
    version: u32,
    page: usize,
    streams: [Vec<u8>; 3],
}

impl Builder {
    fn new(version: u32, page: usize) -> Self {
        let stream = |magic: &[u8]| [magic, &version.to_le_bytes()].concat();
        Self { version, page, streams: [stream(b"MMES"), stream(b"MMSD"), stream(b"MMSI")] }
    }

    fn number(&self, value: u64) -> Vec<u8> {
        value.to_le_bytes()[..if self.version == 9 { 8 } else { 4 }].to_vec()
    }

    fn event(&mut self, kind: u64, id: u64, thread: u32, start: u64, end: u64) {
        let upper = (start >> 32 << 16) as u32 | (end >> 32) as u32;
        let mut bytes = [self.number(kind), self.number(id)].concat();
        [thread, start as u32, end as u32, upper].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        self.streams[0].extend(bytes);
    }

    /// Adds a string made of literal texts and references, and returns its ID.
    fn string(&mut self, parts: &[Result<&str, u64>]) -> u64 {
        let address = self.streams[1].len() as u64;
        for part in parts {
            let bytes = match part {
                Ok(text) => text.as_bytes().to_vec(),
                Err(id) => [vec![0xFE], self.number(*id)].concat(),
            };
            self.streams[1].extend(bytes);
        }
        self.streams[1].push(0xFF);
        address + 100_000_003
    }

    fn index(&mut self, virtual_id: u64, id: u64) {
        let entry = [self.number(virtual_id), self.number(id - 100_000_003)].concat();
        self.streams[2].extend(entry);
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = [b"MMPD", &self.version.to_le_bytes()[..]].concat();
        let mut pages = self.streams.each_ref().map(|stream| stream.chunks(self.page));
        loop {
            let before = bytes.len();
            for (tag, pages) in pages.iter_mut().enumerate() {
                if let Some(page) = pages.next() {
                    bytes.push(tag as u8);
                    bytes.extend((page.len() as u32).to_le_bytes());
                    bytes.extend(page);
                }
            }
            if bytes.len() == before {
                return bytes;
            }
        }
    }
}

/// A query with an argument, nested twice in `main`, next to an instant and a number.
fn small(version: u32, page: usize) -> Vec<u8> {
    let mut file = Builder::new(version, page);
    let metadata = file.string(&[Ok(r#"{"cmd":"/bin/rustc it\'s","process_id":7}"#)]);
    let query = file.string(&[Ok("type_of")]);
    let argument = file.string(&[Ok("crate::é")]);
    let event = file.string(&[Err(query), Ok("\x1E"), Err(argument)]);
    let main = file.string(&[Ok("main")]);
    file.index(100_000_001, metadata);
    file.index(5, event);
    file.event(query, 5, 2, 0x1_0000_0001, 0x1_0000_0005);
    file.event(query, 5, 2, 0x1_0000_0007, 0xFFFF_FFFF_FFFF);
    file.event(query, event, 2, 0x1_0000_0006, 0x1_0000_0009);
    file.event(query, main, 2, 0x1_0000_0000, 0x1_0000_000A);
    file.event(query, 5, 2, 42, 0xFFFF_FFFF_FFFE);
    file.bytes()
}

/// All events in file order.
fn events(bytes: &[u8]) -> Vec<RawEvent> {
    let mut events = Vec::new();
    let profile = MeasuremeFile::open(bytes).unwrap();
    profile.for_each_event_reversed(&Done::default(), |event| events.push(event));
    events.reverse();
    events
}

fn folded(bytes: &[u8]) -> (Vec<String>, Warnings) {
    let mut warnings = Warnings::new();
    let profile = stacks(SpanInput::whole(bytes), &ReadOptions::default(), &mut warnings).unwrap();
    let name = |frame| String::from_utf8_lossy(profile.name_of(profile.frame_of(frame).name)).into_owned();
    let line = |row: &crate::model::stacks::Row| {
        let mut names: Vec<_> = profile.frames_up(row.stack).map(name).collect();
        names.reverse();
        format!("{} {}", names.join(";"), row.weight)
    };
    (profile.series[0].rows.iter().map(line).collect(), warnings)
}

#[test]
fn every_version_and_records_across_pages() {
    for version in [8, 9] {
        for page in [1, 3, 7, 24, 31, 40, 1 << 18] {
            let bytes = small(version, page);
            let (lines, warnings) = folded(&bytes);
            assert_eq!(lines, ["main 3", "main;type_of 7"], "version {version}, pages of {page}");
            assert!(warnings.is_empty());
            let profile = MeasuremeFile::open(&bytes).unwrap();
            assert_eq!(profile.metadata.cmd, "/bin/rustc it's");
            let events = events(&bytes);
            assert_eq!(events.len(), 5);
            assert_eq!(events[3].payload, Payload::Interval { start: 0x1_0000_0000, end: 0x1_0000_000A });
            assert_eq!(events[1].payload, Payload::Instant(0x1_0000_0007));
            assert_eq!(events[4].payload, Payload::Integer(42));
            let argument = vec!["crate::é".as_bytes().to_vec()];
            assert_eq!(profile.strings.event(events[0].id), Some((b"type_of".to_vec(), argument)));
        }
    }
    // Version 7 had no integer events, so their marker is an ordinary end time, the latest possible one.
    let bytes = small(7, 40);
    let last = events(&bytes).last().map(|event| event.payload);
    assert_eq!(last, Some(Payload::Interval { start: 42, end: 0xFFFF_FFFF_FFFE }));
}

#[test]
fn other_versions_are_refused_by_name() {
    let error = |version| MeasuremeFile::open(&Builder::new(version, 10).bytes()).unwrap_err().to_string();
    assert!(error(6).contains("version 6 is too old (7 to 9 are supported)"), "{}", error(6));
    assert!(error(10).contains("version 10 is too new"), "{}", error(10));
    let three_files = MeasuremeFile::open(b"MMES\x05\0\0\0").unwrap_err().to_string();
    assert!(three_files.contains("that measureme wrote in file version 5 (versions 7 to 9"), "{three_files}");
}

#[test]
fn a_killed_process_leaves_events_without_names() {
    let mut file = Builder::new(9, 1 << 18);
    file.streams[1].clear();
    file.streams[2].clear();
    file.event(1, 100_000_099, 0, 1, 5);
    let (lines, warnings) = folded(&file.bytes());
    assert_eq!(lines, ["fn#100000099 4"]);
    assert!(warnings.iter().any(|warning| warning.message.contains("string table")));
}

#[test]
fn the_largest_id_is_an_id_like_others() {
    let mut builder = Builder::new(9, 1 << 18);
    let kind = builder.string(&[Ok("kind")]);
    let name = builder.string(&[Ok("f")]);
    builder.event(kind, name, 1, 10, 20);
    builder.event(u64::MAX, u64::MAX, 1, 0, 30);
    let bytes = builder.bytes();
    let warnings = &mut Warnings::new();
    let summary = super::summary::summarize(SpanInput::whole(&bytes), warnings).unwrap();
    assert_eq!(summary.labels.len(), 2, "{:?}", summary.labels);
    super::read::timeline(SpanInput::whole(&bytes), &ReadOptions::default(), warnings).unwrap();
    let unnamed = format!("fn#{}", u64::MAX);
    assert!(folded(&bytes).0.iter().any(|line| line.starts_with(&unnamed)), "{:?}", folded(&bytes).0);
}

#[test]
fn strings_that_refer_to_themselves_end() {
    let mut file = Builder::new(9, 1 << 18);
    let own = 100_000_003 + file.streams[1].len() as u64;
    let id = file.string(&[Ok("a"), Err(own), Err(own), Ok("b")]);
    assert_eq!(id, own);
    file.event(id, id, 0, 1, 5);
    let bytes = file.bytes();
    let profile = MeasuremeFile::open(&bytes).unwrap();
    assert!(profile.strings.text(id).is_some_and(|text| text.starts_with(b"aaaa")));
}

#[test]
fn cut_and_flipped_files_never_panic_and_keep_the_events() {
    let bytes = small(9, 40);
    for len in 8..bytes.len() {
        let mut warnings = Warnings::new();
        let profile = stacks(SpanInput::whole(&bytes[..len]), &ReadOptions::default(), &mut warnings).unwrap();
        let sum: u64 = profile.series[0].rows.iter().map(|row| row.weight).sum();
        assert!([0, 4, 7, 10].contains(&sum), "cut at {len}: {sum}");
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xFF] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let _ = stacks(SpanInput::whole(&bytes), &ReadOptions::default(), &mut Warnings::new());
        }
    }
}

/// A step of a program on several threads: a call, a return, or an event that contradicts the others.
#[derive(Debug, Clone, Copy)]
enum Step {
    Call(u32, usize),
    Return(u32),
    Odd(u32, u64),
}

/// A call that such a program made.
#[derive(Debug)]
struct Call {
    thread: u32,
    name: &'static str,
    /// The index of the call that made this one.
    caller: Option<usize>,
    start: u64,
    end: u64,
}

impl Call {
    fn duration(&self) -> u64 {
        self.end - self.start
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Runs such a program, in which each step takes `tick`. Returns the file that it writes, in small pages, and its
/// calls.
fn run(steps: &[Step], tick: u64) -> (Vec<u8>, Vec<Call>) {
    let mut file = Builder::new(9, 61);
    let ids = NAMES.map(|name| file.string(&[Ok(name)]));
    let mut calls: Vec<Call> = Vec::new();
    // For each thread, the indices of its open calls and of their names.
    let mut open: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    let mut now = 10;
    for step in steps {
        now += tick;
        match *step {
            Step::Call(thread, name) => {
                let stack = open.entry(thread).or_default();
                let caller = stack.last().map(|(call, _)| *call);
                stack.push((calls.len(), name));
                calls.push(Call { thread, name: NAMES[name], caller, start: now, end: now });
            }
            Step::Return(thread) => {
                if let Some((call, name)) = open.entry(thread).or_default().pop() {
                    calls[call].end = now;
                    file.event(1, ids[name], thread, calls[call].start, now);
                }
            }
            Step::Odd(thread, ago) => file.event(1, ids[0], thread, now.saturating_sub(ago), now),
        }
    }
    for (thread, stack) in open {
        for (call, name) in stack.into_iter().rev() {
            now += 1;
            calls[call].end = now;
            file.event(1, ids[name], thread, calls[call].start, now);
        }
    }
    (file.bytes(), calls)
}

/// Self time and number of calls by thread and call path, the innermost function first.
type Sums = BTreeMap<(i32, Vec<String>), (u64, u64)>;

/// What a reader should find. Calls shorter than `min_duration` count as their caller's time.
fn expected_sums(calls: &[Call], min_duration: u64) -> Sums {
    let mut sums = Sums::new();
    for (index, call) in calls.iter().enumerate() {
        let mut counted = Some(index);
        while let Some(at) = counted
            && calls[at].duration() < min_duration
        {
            counted = calls[at].caller;
        }
        let mut path = Vec::new();
        let mut next = counted;
        while let Some(at) = next {
            path.push(calls[at].name.to_owned());
            next = calls[at].caller;
        }
        if counted.is_none() {
            path.push("[shorter]".to_owned());
        }
        let callees = calls.iter().filter(|callee| callee.caller == Some(index));
        let own = call.duration() - callees.map(Call::duration).sum::<u64>();
        let sum = sums.entry((call.thread as i32, path)).or_default();
        sum.0 += own;
        sum.1 += u64::from(counted == Some(index));
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

/// What the reader finds.
fn sums(bytes: &[u8], min_duration: u64) -> Sums {
    let calls = CallOptions { min_duration, ..CallOptions::default() };
    let options = ReadOptions { calls, ..ReadOptions::default() };
    let profile = stacks(SpanInput::whole(bytes), &options, &mut Warnings::new()).unwrap();
    let mut sums = Sums::new();
    for row in profile.series.iter().flat_map(|series| &series.rows) {
        let names = profile.frames_up(row.stack).map(|frame| profile.name_of(profile.frame_of(frame).name));
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let tid = profile.track_of(row.track).tid.unwrap();
        let sum = sums.entry((tid.0, names)).or_default();
        sum.0 += row.weight;
        sum.1 += row.count;
    }
    sums
}

proptest! {
    #[test]
    fn self_times_are_those_of_the_program(
        steps in prop::collection::vec(prop_oneof![
            20 => (0..3u32, 0..3usize).prop_map(|(thread, name)| Step::Call(thread, name)),
            20 => (0..3u32).prop_map(Step::Return),
            1 => (0..3u32, 0..200u64).prop_map(|(thread, ago)| Step::Odd(thread, ago)),
        ], 0..120),
        tick in 0..3u64,
        min_duration in 0..20u64,
    ) {
        let (bytes, calls) = run(&steps, tick);
        let found = sums(&bytes, min_duration);
        let is_odd = steps.iter().any(|step| matches!(step, Step::Odd(..)));
        if !is_odd && tick > 0 {
            prop_assert_eq!(found, expected_sums(&calls, min_duration));
        }
    }
}
