//! Simulates an interpreter with virtual threads that take turns on one processor. It records with the crate measureme,
//! as Miri does: a detached interval for each frame, written when the frame returns. The clock is simulated too, so
//! wall time and active time of every stack are known exactly.
//!
//! Threads switch only when a frame starts or ends. So the time between two events belongs to the thread of the later
//! one.

use super::names::name;
use super::random::Random;
use measureme::{
    EventId, PageTag, RawEvent, SerializationSink, SerializationSinkBuilder, StringId, StringTableBuilder,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The program to simulate.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// The approximate number of recorded frames.
    pub(crate) frames: u64,
    /// The number of virtual threads.
    pub(crate) threads: u32,
    /// The number of functions.
    pub(crate) functions: u64,
    /// True if all threads are recorded with ID 0, as early versions of Miri did.
    pub(crate) one_id: bool,
}

/// The self time of each thread's stacks (root first) in nanoseconds: wall time and active time.
pub(crate) type Truth = BTreeMap<(u32, Vec<u64>), (u64, u64)>;

struct Frame {
    function: u64,
    start: u64,
    active: u64,
    children: u64,
}

/// Writes one profile.
pub(crate) struct Recorder {
    events: SerializationSink,
    strings: StringTableBuilder,
    kind: StringId,
}

impl Recorder {
    /// Starts a profile. Its metadata contains a command line, as rustc writes it.
    pub(crate) fn create(path: &Path, cmd: &str) -> Self {
        let mut file = File::create(path).unwrap();
        file.write_all(b"MMPD\x09\0\0\0").unwrap();
        let sinks = SerializationSinkBuilder::new_from_file(file).unwrap();
        let events = sinks.new_sink(PageTag::Events);
        events.write_bytes_atomic(b"MMES\x09\0\0\0");
        let (data, index) = (sinks.new_sink(PageTag::StringData), sinks.new_sink(PageTag::StringIndex));
        let strings = StringTableBuilder::new(Arc::new(data), Arc::new(index)).unwrap();
        let cmd = cmd.escape_default();
        let counter = r#"{ "name": "wall-time", "units": [["ns", 1]] }"#;
        strings.alloc_metadata(&*format!(
            r#"{{ "start_time": 1700000000000000000, "process_id": 4242, "cmd": "{cmd}", "counter": {counter} }}"#
        ));
        let kind = strings.alloc("frame");
        Self { events, strings, kind }
    }

    /// The ID of a string in the profile.
    pub(crate) fn string(&self, text: &str) -> StringId {
        self.strings.alloc(text)
    }

    /// Writes an event.
    pub(crate) fn record(&self, event: &RawEvent) {
        self.events.write_atomic(32, |bytes| event.serialize(bytes));
    }
}

/// Runs the program. The truth is only collected if asked for, because it is large.
pub(crate) fn run(program: Program, recorder: &Recorder, mut truth: Option<&mut Truth>) {
    let names: Vec<_> = (0..program.functions).map(|f| EventId::from_label(recorder.string(&name(f)))).collect();
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut stacks: Vec<Vec<Frame>> = (0..program.threads).map(|_| Vec::new()).collect();
    let (mut now, mut thread, mut left) = (1000, 0usize, program.frames);
    let mut finish = |thread: usize, stack: &mut Vec<Frame>, now: u64| {
        let path: Vec<u64> = if truth.is_some() { stack.iter().map(|frame| frame.function).collect() } else { vec![] };
        let frame = stack.pop().unwrap();
        let wall = now - frame.start;
        if let Some(caller) = stack.last_mut() {
            caller.children += wall;
        }
        if let Some(truth) = &mut truth {
            let sums = truth.entry((thread as u32, path)).or_default();
            *sums = (sums.0 + wall - frame.children, sums.1 + frame.active);
        }
        let id = if program.one_id { 0 } else { thread as u32 };
        recorder.record(&RawEvent::new_interval(recorder.kind, names[frame.function as usize], id, frame.start, now));
    };
    while left > 0 || stacks.iter().any(|stack| !stack.is_empty()) {
        if random.below(50) == 0 || (left == 0 && stacks[thread].is_empty()) {
            thread = random.below(stacks.len() as u64) as usize;
        }
        let stack = &mut stacks[thread];
        let depth = stack.len() as u64;
        let call = left > 0 && (stack.is_empty() || random.below(16) > depth);
        if stack.is_empty() && !call {
            continue;
        }
        let step = 1 + random.below(400);
        now += step;
        if let Some(top) = stack.last_mut() {
            top.active += step;
        }
        if call {
            left -= 1;
            // As in real programs, a function calls only a few others, mostly the same one, so that stacks repeat.
            let from = stack.last().map_or(thread as u64, |top| top.function);
            let other = if random.below(4) == 0 { random.below(3) } else { 0 };
            let function = (from * 3 + 1 + other) % program.functions;
            stack.push(Frame { function, start: now, active: 0, children: 0 });
        } else {
            finish(thread, stack, now);
        }
    }
}
