//! Decodes source lines and inlined calls of a trace from its operations.

use super::lines::{MergePointLine, leaves_call, parse_head, parse_merge_point};
use super::source_location::SourceLocation;
use super::trace::{MergePointId, MergePoints, Trace, TraceId};
use crate::bytes::digits::number;
use crate::jit::engine_logs::LogPositions;
use crate::model::code::{InlinedCall, Line, SourceMap};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Where the operations of a trace are in the log, and what is needed to decode source lines from them. Lines are only
/// decoded on demand.
#[derive(Debug)]
pub(super) struct Operations {
    /// The range of the log to decode: the operations, or a loop's location if its operations were not logged.
    pub(super) entry: Range<usize>,
    /// True if `entry` is only a location.
    is_location: bool,
    /// Offset of the trace's code in its block of machine code. Offsets of operations are relative to the start of the
    /// block.
    code_offset: u64,
    /// For a bridge: the merge point at which it begins, in the trace that it leaves. `None` if unknown.
    start_point: Option<MergePointId>,
}

impl Operations {
    /// Takes from a trace what decoding its lines needs. `block_start` is the start address of the trace's block of
    /// machine code; `None` if the block wasn't dumped. `block_start` is only used if `trace` doesn't state that
    /// address.
    pub(super) fn new(trace: &Trace, block_start: Option<u64>) -> Self {
        let start_point = trace.start_point;
        let block_start = trace.block_start.or(block_start).unwrap_or(trace.code.start);
        let code_offset = trace.code.start.saturating_sub(block_start);
        // Without operations, there is only the location in the line that announces a loop.
        if trace.operations.is_empty()
            && let TraceId::Loop(_, location) = &trace.id
        {
            return Self { entry: location.clone(), is_location: true, code_offset, start_point };
        }
        Self { entry: trace.operations.clone(), is_location: false, code_offset, start_point }
    }
}

/// Decodes the lines of all traces of a log.
#[derive(Debug)]
pub(super) struct Positions {
    /// The operations of each trace, by the start of [`Operations::entry`].
    pub(super) operations: FxHashMap<usize, Operations>,
    pub(super) points: MergePoints,
}

impl LogPositions for Positions {
    /// Decodes the lines and inlined calls of a trace, by following its operations. `entry` is the part of the log
    /// `file` with the operations.
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
        // Where `entry` begins in the log tells which trace it is.
        let start = (entry.as_ptr() as usize).wrapping_sub(file.as_ptr() as usize);
        let Some(operations) = self.operations.get(&start) else { return SourceMap::default() };
        let mut walk = OperationWalk::default();
        if operations.is_location {
            // A loop without listed operations: all of its code gets its only known location.
            walk.enter(0, None, SourceLocation::parse(entry));
            walk.add_operation(0);
            return walk.map;
        }
        // A bridge begins inside the calls that were open at the guard where it leaves its loop. Enter them from the
        // outermost one inwards.
        let outer: Vec<_> = self.points.with_callers(operations.start_point).collect();
        for point in outer.iter().rev() {
            walk.enter(point.depth, None, point.location(file));
        }
        // Up to the first operation, the code belongs to the location at which the bridge begins.
        walk.add_operation(0);
        for line in entry.split(|&byte| byte == b'\n') {
            walk.read_line(line, operations.code_offset);
        }
        walk.map
    }
}

/// A call whose operations are being read.
#[derive(Debug)]
struct OpenCall<'a> {
    depth: u32,
    /// The call's number in this trace; `None` if it was entered before the trace began.
    number: Option<u64>,
    location: SourceLocation<'a>,
    /// Index of the call in [`SourceMap::calls`]; `None` for the outermost call, which isn't inlined.
    inlined: Option<u32>,
}

/// Follows the interpreter through the operations of a trace.
#[derive(Debug, Default)]
struct OperationWalk<'a> {
    /// The calls around the current operation, outermost first.
    open: Vec<OpenCall<'a>>,
    map: SourceMap<'a>,
}

impl<'a> OperationWalk<'a> {
    /// Reads a line of the operations: a position in the source, an operation's offset in the code, or the head of a
    /// loop.
    fn read_line(&mut self, line: &'a [u8], code_offset: u64) {
        if let Some(MergePointLine { depth, call, text }) = parse_merge_point(line) {
            self.enter(depth, Some(call), SourceLocation::parse(&line[text]));
        } else if let Some(offset) = parse_offset(line) {
            // Operations before the start of the code only prepare the block, so they are taken to be at its start.
            let offset = offset.saturating_sub(code_offset);
            self.add_operation(offset);
            // The code of an operation that ends a call, and all code after it, belongs to the caller. So the entry
            // that has just been added for the call is replaced by one for the caller, at the same offset.
            if leaves_call(line) && self.open.len() > 1 {
                self.open.pop();
                self.add_operation(offset);
            }
        } else if let Some(head) = line.strip_prefix(b"# ")
            // `head` begins 2 bytes into the line, after `# `. `location` is thus a range of the line.
            && let Some(TraceId::Loop(_, location)) = parse_head(head, 2)
            && let Some(text) = line.get(location).filter(|text| !text.is_empty())
        {
            self.enter(0, None, SourceLocation::parse(text));
            self.add_operation(0);
        }
    }

    /// Moves the interpreter to a location in a call of depth `depth`. `number` is the number of that call, if known.
    /// Any open call that is deeper must have returned by then. So must an open call of the same depth, unless it is
    /// this very call. If this call is new, it is added as inlined into the call around it.
    fn enter(&mut self, depth: u32, number: Option<u64>, location: SourceLocation<'a>) {
        while self.open.last().is_some_and(|open| open.depth > depth) {
            self.open.pop();
        }
        if let Some(open) = self.open.last_mut().filter(|open| open.depth == depth) {
            let may_be_same = open.number.is_none() || number.is_none() || open.number == number;
            if may_be_same && open.location.function == location.function {
                open.location = location;
                open.number = number.or(open.number);
                return;
            }
            self.open.pop();
        }
        let mut inlined = None;
        if let Some(caller) = self.open.last() {
            inlined = u32::try_from(self.map.calls.len()).ok();
            self.map.calls.push(InlinedCall {
                function: location.function.into(),
                file: caller.location.file,
                line: caller.location.line,
                column: 0,
                parent: caller.inlined,
            });
        }
        self.open.push(OpenCall { depth, number, location, inlined });
    }

    /// Notes that the code from `offset` on belongs to the interpreter's current location. If several operations have
    /// the same offset, only the last of them has code.
    fn add_operation(&mut self, offset: u64) {
        let Some(open) = self.open.last() else { return };
        let line = open.location.to_line(offset, open.inlined);
        let is_same = |last: &Line<'_>| (last.file, last.line, last.inlined) == (line.file, line.line, line.inlined);
        match self.map.lines.last_mut() {
            // Adds no entry: the offset is below the last one, as in a damaged log, or the source line is still the
            // same.
            Some(last) if last.offset > offset || is_same(last) => {}
            Some(last) if last.offset == offset => *last = line,
            _ => self.map.lines.push(line),
        }
    }
}

/// Parses the offset in `+698: guard_nonnull_class(…)`.
fn parse_offset(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"+")?;
    number(&rest[..memchr::memchr(b':', rest)?])
}
