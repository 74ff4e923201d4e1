//! Reads the log line by line.

use super::lines::{Bracket, bracket, guard_of, head_id, leaves_call, machine_of, merge_point};
use super::machine_code::{Block, MachineCode};
use super::place::Place;
use super::positions::{Operations, Positions};
use super::trace::{MergePointId, MergePoints, Trace, TraceId};
use crate::bytes::digits::{hex, hex_bytes, number};
use crate::bytes::lines::lines;
use crate::error::Error;
use crate::records::jit_logs::{CodeLog, LogClock, LogCode, LogEvent, LogEventKind};
use memchr::memmem;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Name for the helper functions that the backend creates at startup. The log doesn't name them.
const HELPER: &[u8] = b"PyPy helper";

pub(super) fn read(bytes: &[u8]) -> CodeLog {
    let mut reader = PypyLogReader {
        bytes,
        log: CodeLog::new(LogClock::None, "line"),
        time: None,
        code: MachineCode::default(),
        traces: Vec::new(),
        loops: FxHashMap::default(),
        bridges: FxHashMap::default(),
        in_block: FxHashMap::default(),
        guards: FxHashMap::default(),
        points: MergePoints::default(),
        operations: None,
        current: None,
        patched: None,
    };
    lines(bytes).for_each(|(offset, line)| reader.line(line, offset as usize));
    reader.finish()
}

/// The section with a trace's operations that is being read.
#[derive(Debug)]
struct OpenOperations {
    begin: usize,
    trace: Option<usize>,
    at: Option<MergePointId>,
}

#[derive(Debug)]
struct PypyLogReader<'a> {
    bytes: &'a [u8],
    log: CodeLog,
    /// The time of the last line that begins or ends a section.
    time: Option<u64>,
    code: MachineCode,
    traces: Vec<Trace>,
    /// Index of the last trace for each loop number.
    loops: FxHashMap<i64, usize>,
    /// Index of the last bridge for each guard.
    bridges: FxHashMap<u64, usize>,
    /// Index of the trace in each block of machine code.
    in_block: FxHashMap<usize, usize>,
    /// The merge point of each guard.
    guards: FxHashMap<u64, Option<MergePointId>>,
    points: MergePoints,
    operations: Option<OpenOperations>,
    /// The trace of the current backend section; `patched` is another trace that was patched in it.
    current: Option<usize>,
    patched: Option<usize>,
}

impl PypyLogReader<'_> {
    fn line(&mut self, line: &[u8], offset: usize) {
        if let Some(bracket) = bracket(line) {
            self.bracket(bracket, offset);
        } else if self.operations.is_some() {
            self.operation(line, offset);
        } else if let Some(dump) = line.strip_prefix(b"CODE_DUMP @") {
            self.dump(dump, offset);
        } else if let Some(machine) = line.strip_prefix(b"BACKEND ") {
            self.log.machine = self.log.machine.or(machine_of(machine));
        } else if line.starts_with(b"Loop ") || line.starts_with(b"bridge ") {
            self.trace(line, offset);
        } else if line.starts_with(b" ")
            && let Some(trace) = self.current.and_then(|trace| self.traces.get_mut(trace))
            && trace.learn(line)
        {
            self.find_block();
        }
    }

    fn bracket(&mut self, bracket: Bracket<'_>, offset: usize) {
        self.time = Some(bracket.time);
        match (bracket.section, bracket.is_begin) {
            (b"jit-backend", true) => (self.current, self.patched) = (None, None),
            (b"jit-backend", false) => self.end_of_backend(),
            (b"jit-log-opt-loop" | b"jit-log-opt-bridge", true) => {
                self.operations = Some(OpenOperations { begin: offset, trace: None, at: None });
            }
            (b"jit-log-opt-loop" | b"jit-log-opt-bridge", false) => self.end_of_operations(offset),
            _ => {}
        }
    }

    fn end_of_backend(&mut self) {
        let leaves = self.patched.filter(|&other| Some(other) != self.current);
        if let Some(trace) = self.current.and_then(|trace| self.traces.get_mut(trace)) {
            trace.leaves = leaves;
        }
        (self.current, self.patched) = (None, None);
    }

    fn end_of_operations(&mut self, end: usize) {
        let Some(open) = self.operations.take() else { return };
        if let Some(trace) = open.trace.and_then(|trace| self.traces.get_mut(trace)) {
            trace.operations = open.begin..end;
        }
    }

    /// Parses a dump of machine code: `7f82f0f51950 +0  4889…`.
    fn dump(&mut self, dump: &[u8], offset: usize) {
        let mut words = dump.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let mut word = || words.next();
        let start = word().and_then(hex);
        let behind = word().and_then(|word| number::<u64>(word.strip_prefix(b"+")?));
        let code = word().and_then(hex_bytes);
        let (Some(start), Some(behind), Some(code)) = (start, behind, code) else {
            return self.log.skipped.add(Error::new("CODE_DUMP has no address, offset and code").at(offset as u64));
        };
        let Some(start) = start.checked_add(behind) else {
            return self.log.skipped.add(Error::new("CODE_DUMP extends beyond the address space").at(offset as u64));
        };
        if self.code.write(start, code, (offset, self.time)) {
            let of = self.code.block_at(start).and_then(|block| self.in_block.get(&block)).copied();
            self.patched = of.filter(|&trace| Some(trace) != self.current).or(self.patched);
        }
    }

    fn trace(&mut self, line: &[u8], offset: usize) {
        let Some(trace) = Trace::parse(line, offset, self.time) else {
            if memmem::find(line, b" has address ").is_some() {
                self.log.skipped.add(Error::new("a loop or bridge has no addresses").at(offset as u64));
            }
            return;
        };
        let number = self.traces.len();
        match trace.id {
            TraceId::Loop(loop_number, _) => drop(self.loops.insert(loop_number, number)),
            TraceId::Bridge(guard) => drop(self.bridges.insert(guard, number)),
        }
        self.traces.push(trace);
        self.current = Some(number);
        self.find_block();
    }

    fn find_block(&mut self) {
        let Some(number) = self.current else { return };
        let Some(trace) = self.traces.get_mut(number) else { return };
        trace.block = self.code.block_at(trace.code.start);
        if let Some(block) = trace.block {
            self.in_block.insert(block, number);
        }
    }

    fn operation(&mut self, line: &[u8], offset: usize) {
        if let Some((depth, _, text)) = merge_point(line) {
            let Some(open) = &mut self.operations else { return };
            let text = ((offset + text.start) as u64, (offset + text.end) as u64);
            open.at = self.points.push(text, depth, open.at);
            if let Some(trace) = open.trace.and_then(|trace| self.traces.get_mut(trace)) {
                trace.first = trace.first.or(open.at);
            }
        } else if let Some(head) = line.strip_prefix(b"# ") {
            self.operations_head(head, offset + 2);
        } else if let Some(guard) = guard_of(line) {
            let at = self.operations.as_ref().and_then(|open| open.at);
            self.guards.insert(guard, at);
        } else if leaves_call(line)
            && let Some(open) = &mut self.operations
            && let Some(caller) = open.at.and_then(|at| self.points.get(at).caller)
        {
            open.at = Some(caller);
        }
    }

    /// Parses `Loop 1 (…) : loop with 76 ops` or `bridge out of Guard 0x… with 32 ops`.
    fn operations_head(&mut self, head: &[u8], offset: usize) {
        let Some(open) = &mut self.operations else { return };
        open.trace = match head_id(head, offset) {
            Some(TraceId::Loop(number, _)) => self.loops.get(&number).copied(),
            Some(TraceId::Bridge(guard)) => {
                open.at = self.guards.get(&guard).copied().flatten();
                self.bridges.get(&guard).copied()
            }
            None => None,
        };
        if let Some(trace) = open.trace.and_then(|trace| self.traces.get_mut(trace)) {
            trace.begins_in = open.at;
        }
    }

    fn finish(mut self) -> CodeLog {
        self.end_of_backend();
        self.end_of_operations(self.bytes.len());
        self.log.torn = self.bytes.last().is_some_and(|last| *last != b'\n');
        let mut events = self.helpers();
        let (mut operations, mut roots) = (FxHashMap::default(), Vec::with_capacity(self.traces.len()));
        for trace in std::mem::take(&mut self.traces) {
            let (name, root) = self.name(&trace, &roots);
            let positions =
                Operations::of(&trace, trace.block.and_then(|block| Some(self.code.blocks.get(block)?.start)));
            if let Some(code) = self.load(&trace, &name, &positions) {
                events.push(LoggedCodePart { offset: trace.offset, time: trace.time, code });
            }
            operations.insert(positions.entry.start, positions);
            roots.push(root);
        }
        events.sort_by_key(|part| part.offset);
        // On other CPUs, times are the thread's own CPU time.
        let is_ticks = matches!(self.log.machine, Some(3 | 62));
        self.log.clock = if is_ticks { LogClock::Ticks } else { LogClock::None };
        let time = |part: LoggedCodePart| part.time.filter(|_| is_ticks);
        let event = |part: LoggedCodePart| LogEvent { time: time(part), kind: LogEventKind::Load(part.code) };
        self.log.events = events.into_iter().map(event).collect();
        self.log.positions = Some(Box::new(Positions { operations, points: self.points }));
        self.log
    }

    /// The blocks without a loop or bridge.
    fn helpers(&mut self) -> Vec<LoggedCodePart> {
        let name = self.log.texts.intern(HELPER);
        let blocks = self.code.blocks.iter().enumerate().filter(|(number, _)| !self.in_block.contains_key(number));
        let code = |(_, block): (usize, &Block)| {
            let bytes = Some(self.log.texts.push(&block.bytes));
            let code = LogCode { bytes, ..LogCode::new(name, block.start, block.bytes.len() as u64) };
            LoggedCodePart { offset: block.offset, time: block.time, code }
        };
        blocks.map(code).collect()
    }

    fn load(&mut self, trace: &Trace, name: &[u8], positions: &Operations) -> Option<LogCode> {
        let Some(size) = trace.code.end.checked_sub(trace.code.start).filter(|&size| size > 0) else {
            self.log.skipped.add(Error::new("a loop or bridge ends before it begins").at(trace.offset as u64));
            return None;
        };
        let block = trace.block.and_then(|block| self.code.blocks.get(block));
        let bytes = block.and_then(|block| block.at(&trace.code)).map(|bytes| self.log.texts.push(bytes));
        let positions = (positions.entry.start as u64, positions.entry.end as u64);
        let name = self.log.texts.intern(name);
        Some(LogCode { bytes, positions, ..LogCode::new(name, trace.code.start, size) })
    }

    /// The name of a trace, and its root: the location of the loop, or of the outermost call that a bridge continues.
    /// `roots` are the roots of the traces before it.
    fn name(&self, trace: &Trace, roots: &[Option<Vec<u8>>]) -> (Vec<u8>, Option<Vec<u8>>) {
        let text = |range: Range<usize>| self.bytes.get(range).unwrap_or_default();
        match &trace.id {
            TraceId::Loop(number, place) if place.is_empty() => (format!("Loop {number}").into_bytes(), None),
            TraceId::Loop(_, place) => {
                let root = Place::parse(text(place.clone())).name();
                (root.clone(), Some(root))
            }
            TraceId::Bridge(guard) => {
                let root = self.points.chain(trace.first.or(trace.begins_in)).last();
                let root = root.map(|root| Place::parse(text(root.text.0 as usize..root.text.1 as usize)).name());
                let root = root.or_else(|| roots.get(trace.leaves?)?.clone());
                let unknown = || format!("bridge out of Guard {guard:#x}").into_bytes();
                (root.as_ref().map_or_else(unknown, |root| [root, &b" bridge"[..]].concat()), root)
            }
        }
    }
}

/// A code range, and where and when the log describes it.
#[derive(Debug, Clone, Copy)]
struct LoggedCodePart {
    offset: usize,
    time: Option<u64>,
    code: LogCode,
}
