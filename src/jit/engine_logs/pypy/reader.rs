//! Reads PyPy's log line by line.

use super::lines::{Bracket, leaves_call, parse_bracket, parse_guard, parse_head, parse_machine, parse_merge_point};
use super::machine_code::{Block, MachineCode};
use super::positions::{Operations, Positions};
use super::source_location::SourceLocation;
use super::trace::{MergePointId, MergePoints, Trace, TraceId};
use crate::bytes::digits::{hex, hex_bytes, number};
use crate::bytes::lines::lines;
use crate::error::Error;
use crate::jit::engine_logs::{CodeLog, LogClock, LogCode};
use memchr::memmem;
use rustc_hash::FxHashMap;

/// Name for the helper functions that the backend creates at startup. The log doesn't name them.
const HELPER: &[u8] = b"PyPy helper";

/// Reads a whole PyPy log.
pub(super) fn read(bytes: &[u8]) -> CodeLog {
    let mut reader = PypyLogReader {
        bytes,
        log: CodeLog::new(LogClock::None, "line"),
        time: None,
        code: MachineCode::default(),
        traces: Vec::new(),
        loops: FxHashMap::default(),
        bridges: FxHashMap::default(),
        traces_by_block: FxHashMap::default(),
        guards: FxHashMap::default(),
        points: MergePoints::default(),
        open_operations: None,
        current_trace: None,
        patched_trace: None,
    };
    for (offset, line) in lines(bytes) {
        reader.read_line(line, offset as usize);
    }
    reader.finish()
}

/// The section with a trace's operations that is being read.
#[derive(Debug)]
struct OpenOperations {
    /// Offset of the section in the log.
    start: usize,
    /// Index of the trace; `None` until the line that names it was read.
    trace: Option<usize>,
    /// The merge point that the current operation belongs to.
    current_point: Option<MergePointId>,
}

#[derive(Debug)]
struct PypyLogReader<'a> {
    bytes: &'a [u8],
    log: CodeLog,
    /// The time of the last line that begins or ends a section.
    time: Option<u64>,
    code: MachineCode,
    /// All traces so far, in the order in which the log announces them.
    traces: Vec<Trace>,
    /// Index of the last trace for each loop number.
    loops: FxHashMap<i64, usize>,
    /// Index of the last bridge for each guard.
    bridges: FxHashMap<u64, usize>,
    /// For each block of machine code that contains a trace, the index of the trace.
    traces_by_block: FxHashMap<usize, usize>,
    /// The last merge point before each guard, by the guard's address.
    guards: FxHashMap<u64, Option<MergePointId>>,
    points: MergePoints,
    /// The section with a trace's operations that is being read; `None` outside of such sections.
    open_operations: Option<OpenOperations>,
    /// Index of the trace that the current backend section describes.
    current_trace: Option<usize>,
    /// Index of another trace whose code was patched in the current backend section: the current trace is a bridge, and
    /// the patch makes that other trace jump to it.
    patched_trace: Option<usize>,
}

impl PypyLogReader<'_> {
    /// Reads one line, which is at `offset` of the log: the start or end of a section, a line of a list of operations,
    /// a dump of machine code, the name of the CPU, or the addresses of a trace. Ignores all other lines.
    fn read_line(&mut self, line: &[u8], offset: usize) {
        if let Some(bracket) = parse_bracket(line) {
            self.read_bracket(bracket, offset);
        } else if self.open_operations.is_some() {
            self.read_operation(line, offset);
        } else if let Some(dump) = line.strip_prefix(b"CODE_DUMP @") {
            self.read_dump(dump, offset);
        } else if let Some(machine) = line.strip_prefix(b"BACKEND ") {
            self.log.machine = self.log.machine.or(parse_machine(machine));
        } else if line.starts_with(b"Loop ") || line.starts_with(b"bridge ") {
            self.read_trace(line, offset);
        } else if line.starts_with(b" ")
            && let Some(trace) = self.current_trace.and_then(|trace| self.traces.get_mut(trace))
            && trace.read_detail(line)
        {
            // The line may have changed where the trace's code begins, so the block with the code is looked up again.
            self.assign_block();
        }
    }

    /// Applies the start or end of a section of the log: `jit-backend` announces a trace and dumps its machine code,
    /// `jit-log-opt-…` lists its operations.
    fn read_bracket(&mut self, bracket: Bracket<'_>, offset: usize) {
        self.time = Some(bracket.time);
        match (bracket.section, bracket.is_begin) {
            (b"jit-backend", true) => (self.current_trace, self.patched_trace) = (None, None),
            (b"jit-backend", false) => self.end_backend(),
            (b"jit-log-opt-loop" | b"jit-log-opt-bridge", true) => {
                self.open_operations = Some(OpenOperations { start: offset, trace: None, current_point: None });
            }
            (b"jit-log-opt-loop" | b"jit-log-opt-bridge", false) => self.end_operations(offset),
            _ => {}
        }
    }

    /// Ends a `jit-backend` section. If another trace's code was patched in the section, the section's trace is a
    /// bridge that leaves that other trace.
    fn end_backend(&mut self) {
        let left_trace = self.patched_trace.filter(|&other| Some(other) != self.current_trace);
        if let Some(trace) = self.current_trace.and_then(|trace| self.traces.get_mut(trace)) {
            trace.left_trace = left_trace;
        }
        (self.current_trace, self.patched_trace) = (None, None);
    }

    /// Ends a section with operations at offset `end` of the log.
    fn end_operations(&mut self, end: usize) {
        let Some(open) = self.open_operations.take() else { return };
        if let Some(trace) = open.trace.and_then(|trace| self.traces.get_mut(trace)) {
            trace.operations = open.start..end;
        }
    }

    /// Parses a dump of machine code, such as `7f82f0f51950 +0  4889…`: an address, an offset from it, and the bytes.
    fn read_dump(&mut self, dump: &[u8], offset: usize) {
        let mut words = dump.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let base = words.next().and_then(hex);
        let distance = words.next().and_then(|word| number::<u64>(word.strip_prefix(b"+")?));
        let code = words.next().and_then(hex_bytes);
        let (Some(base), Some(distance), Some(bytes)) = (base, distance, code) else {
            return self
                .log
                .skipped
                .add(Error::new("a CODE_DUMP line lacks its address, offset or code").at_offset(offset as u64));
        };
        let Some(start) = base.checked_add(distance) else {
            return self.log.skipped.add(
                Error::new("the code of a CODE_DUMP line extends beyond the address space").at_offset(offset as u64),
            );
        };
        // PyPy attaches a new bridge by patching the code of the trace that the bridge leaves.
        let is_patch = self.code.add_dump(Block { start, bytes, offset, time: self.time });
        if is_patch
            && let Some(block) = self.code.find_block(start)
            && let Some(&trace) = self.traces_by_block.get(&block)
            // A patch of the current trace's own code doesn't attach a bridge to another trace.
            && Some(trace) != self.current_trace
        {
            self.patched_trace = Some(trace);
        }
    }

    /// Reads the line that announces a loop or bridge and its addresses.
    fn read_trace(&mut self, line: &[u8], offset: usize) {
        let Some(trace) = Trace::parse(line, offset, self.time) else {
            // Only a line with ` has address ` is about a trace. Other lines may begin with the same word, but aren't
            // damaged.
            if memmem::find(line, b" has address ").is_some() {
                self.log.skipped.add(Error::new("a loop or bridge has no addresses").at_offset(offset as u64));
            }
            return;
        };
        let index = self.traces.len();
        match trace.id {
            TraceId::Loop(number, _) => {
                self.loops.insert(number, index);
            }
            TraceId::Bridge(guard) => {
                self.bridges.insert(guard, index);
            }
        }
        self.traces.push(trace);
        self.current_trace = Some(index);
        self.assign_block();
    }

    /// Finds the block of machine code that contains the current trace, and records that the two belong together.
    fn assign_block(&mut self) {
        let Some(index) = self.current_trace else { return };
        let Some(trace) = self.traces.get_mut(index) else { return };
        trace.block = self.code.find_block(trace.code.start);
        if let Some(block) = trace.block {
            self.traces_by_block.insert(block, index);
        }
    }

    /// Reads a line in a section with operations. Keeps track of the merge point that the current operation belongs to:
    /// a position in the source, with the call that it is in.
    fn read_operation(&mut self, line: &[u8], offset: usize) {
        let Some(open) = &mut self.open_operations else { return };
        if let Some(point) = parse_merge_point(line) {
            let text = offset + point.text.start..offset + point.text.end;
            open.current_point = self.points.push(text, point.depth, open.current_point);
            if let Some(trace) = open.trace.and_then(|trace| self.traces.get_mut(trace)) {
                // Only the first merge point of the trace is kept here. A bridge is named after the outermost call
                // around it.
                trace.first_point = trace.first_point.or(open.current_point);
            }
        } else if let Some(head) = line.strip_prefix(b"# ") {
            self.read_operations_head(head, offset + 2);
        } else if let Some(guard) = parse_guard(line) {
            self.guards.insert(guard, open.current_point);
        } else if leaves_call(line)
            && let Some(caller) = open.current_point.and_then(|point| self.points.get(point).caller)
        {
            open.current_point = Some(caller);
        }
    }

    /// Parses the head of a section with operations, which names their trace: `Loop 1 (…) : loop with 76 ops` or
    /// `bridge out of Guard 0x… with 32 ops`. A bridge runs when a guard in another trace fails. So its first
    /// operations belong to the last merge point before that guard in the other trace.
    fn read_operations_head(&mut self, head: &[u8], offset: usize) {
        let Some(open) = &mut self.open_operations else { return };
        open.trace = match parse_head(head, offset) {
            Some(TraceId::Loop(number, _)) => self.loops.get(&number).copied(),
            Some(TraceId::Bridge(guard)) => {
                open.current_point = self.guards.get(&guard).copied().flatten();
                self.bridges.get(&guard).copied()
            }
            None => None,
        };
        if let Some(trace) = open.trace.and_then(|trace| self.traces.get_mut(trace)) {
            trace.start_point = open.current_point;
        }
    }

    /// Names the traces, and turns them and the runtime's helper functions into the events of the log.
    fn finish(mut self) -> CodeLog {
        // The log may end within a section, without the line that ends it.
        self.end_backend();
        self.end_operations(self.bytes.len());
        // Torn (truncated): the last line has no line break.
        self.log.torn = self.bytes.last().is_some_and(|last| *last != b'\n');
        // Helpers and traces are put into the order of the log below, because later code replaces earlier code.
        let mut parts = self.helpers();
        let mut operations = FxHashMap::default();
        // For each trace so far, the name of the loop that it belongs to, from which a bridge may take its name. The
        // log has every bridge after the trace that the bridge leaves, so that trace's entry already exists.
        let mut roots = Vec::with_capacity(self.traces.len());
        for trace in std::mem::take(&mut self.traces) {
            let TraceName { name, root } = self.trace_name(&trace, &roots);
            let block = trace.block.and_then(|block| self.code.blocks.get(block));
            let positions = Operations::new(&trace, block.map(|block| block.start));
            if let Some(code) = self.describe_code(&trace, &name, &positions) {
                parts.push(LoggedCodePart { offset: trace.offset, time: trace.time, code });
            }
            operations.insert(positions.entry.start, positions);
            roots.push(root);
        }
        parts.sort_by_key(|part| part.offset);
        // On x86 (`e_machine` 3 and 62), times are the time-stamp counter. On other CPUs, they are the thread's own CPU
        // time, which can't be converted.
        let is_ticks = matches!(self.log.machine, Some(3 | 62));
        self.log.clock = if is_ticks { LogClock::Ticks } else { LogClock::None };
        for LoggedCodePart { time, code, .. } in parts {
            let time = if is_ticks { time } else { None };
            self.log.load(time, code);
        }
        self.log.line_decoder = Some(Box::new(Positions { operations, points: self.points }));
        self.log
    }

    /// Lists the code of the helper functions: blocks that contain neither a loop nor a bridge.
    fn helpers(&mut self) -> Vec<LoggedCodePart> {
        let name = self.log.texts.intern(HELPER);
        let mut helpers = Vec::new();
        for (index, block) in self.code.blocks.iter().enumerate() {
            if self.traces_by_block.contains_key(&index) {
                continue;
            }
            let bytes = Some(self.log.texts.push(&block.bytes));
            let code = LogCode { bytes, ..LogCode::new(name, block.start, block.bytes.len() as u64) };
            helpers.push(LoggedCodePart { offset: block.offset, time: block.time, code });
        }
        helpers
    }

    /// Describes the code of a trace for the log. `None` if the trace's addresses are invalid.
    fn describe_code(&mut self, trace: &Trace, name: &[u8], operations: &Operations) -> Option<LogCode> {
        if trace.code.is_empty() {
            let error = Error::new("the end of a loop or bridge is not after its start");
            self.log.skipped.add(error.at_offset(trace.offset as u64));
            return None;
        }
        let size = trace.code.end - trace.code.start;
        let block = trace.block.and_then(|block| self.code.blocks.get(block));
        let bytes = block.and_then(|block| block.slice(&trace.code)).map(|bytes| self.log.texts.push(bytes));
        let line_range = (operations.entry.start as u64, operations.entry.end as u64);
        let name = self.log.texts.intern(name);
        Some(LogCode { bytes, line_range, ..LogCode::new(name, trace.code.start, size) })
    }

    /// Composes the name of a trace. A loop is named after the source location where it begins. A bridge has the name
    /// of its outermost call or, if that is unknown, of the loop that it comes from, with `bridge` appended. If nothing
    /// of this is known, the name has a number instead. `roots` holds the names of the loops that the earlier traces
    /// belong to.
    fn trace_name(&self, trace: &Trace, roots: &[Option<Vec<u8>>]) -> TraceName {
        match &trace.id {
            TraceId::Loop(number, location) if location.is_empty() => {
                TraceName { name: format!("Loop {number}").into_bytes(), root: None }
            }
            TraceId::Loop(_, location) => {
                let text = self.bytes.get(location.clone()).unwrap_or_default();
                let name = SourceLocation::parse(text).name();
                TraceName { name: name.clone(), root: Some(name) }
            }
            TraceId::Bridge(guard) => {
                // Merge points are positions in the source. `first_point` is the first one among the bridge's own
                // operations, `start_point` that of the guard at which the bridge leaves another trace. The callers
                // come from the innermost to the outermost.
                let outermost = self.points.with_callers(trace.first_point.or(trace.start_point)).last();
                let root = match outermost {
                    Some(point) => Some(point.location(self.bytes).name()),
                    None => trace.left_trace.and_then(|other| roots.get(other)?.clone()),
                };
                let name = match &root {
                    Some(root) => [root, &b" bridge"[..]].concat(),
                    None => format!("bridge out of Guard {guard:#x}").into_bytes(),
                };
                TraceName { name, root }
            }
        }
    }
}

struct TraceName {
    name: Vec<u8>,
    /// The name of the loop's location or, for a bridge, of the outermost call that it continues. `None` if unknown.
    root: Option<Vec<u8>>,
}

/// A code range, and where and when the log describes it.
#[derive(Debug, Clone, Copy)]
struct LoggedCodePart {
    offset: usize,
    time: Option<u64>,
    code: LogCode,
}
