//! Decodes source lines and inlined calls of a trace from its operations.

use super::lines::{head_id, leaves_call, merge_point};
use super::place::Place;
use super::trace::{MergePointId, MergePoints, Trace, TraceId};
use crate::bytes::digits::number;
use crate::model::code::{InlinedCall, Line, SourceMap};
use crate::records::jit_logs::LogPositions;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What is needed to read the operations of a trace again.
#[derive(Debug)]
pub(super) struct Operations {
    /// The range of the log to decode: the operations, or a loop's location if its operations were not logged.
    pub(super) entry: Range<usize>,
    /// True if `entry` is only a location.
    is_place: bool,
    /// Distance from the start of the block, to which offsets of operations are relative, to the start of the code.
    ahead: u64,
    begins_in: Option<MergePointId>,
}

impl Operations {
    /// `block` is the start of the trace's block of machine code, if it was dumped.
    pub(super) fn of(trace: &Trace, block: Option<u64>) -> Self {
        let begins_in = trace.begins_in;
        let start = trace.block_start.or(block).unwrap_or(trace.code.start);
        let ahead = trace.code.start.saturating_sub(start);
        match &trace.id {
            TraceId::Loop(_, place) if trace.operations.is_empty() => {
                Self { entry: place.clone(), is_place: true, ahead, begins_in }
            }
            _ => Self { entry: trace.operations.clone(), is_place: false, ahead, begins_in },
        }
    }
}

/// What is needed to decode the lines of all traces.
#[derive(Debug)]
pub(super) struct Positions {
    /// Keyed by the start of [`Operations::entry`].
    pub(super) operations: FxHashMap<usize, Operations>,
    pub(super) points: MergePoints,
}

impl LogPositions for Positions {
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
        let start = (entry.as_ptr() as usize).wrapping_sub(file.as_ptr() as usize);
        let Some(operations) = self.operations.get(&start) else { return SourceMap::default() };
        let mut walk = OperationWalk::default();
        if operations.is_place {
            walk.enter(0, None, Place::parse(entry));
            walk.operation(0);
            return walk.map;
        }
        let outer: Vec<_> = self.points.chain(operations.begins_in).collect();
        for point in outer.iter().rev() {
            let text = file.get(point.text.0 as usize..point.text.1 as usize).unwrap_or_default();
            walk.enter(point.depth, None, Place::parse(text));
        }
        walk.operation(0);
        for line in entry.split(|&byte| byte == b'\n') {
            walk.line(line, operations.ahead);
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
    place: Place<'a>,
    /// Index into [`SourceMap::calls`].
    inlined: Option<u32>,
}

#[derive(Debug, Default)]
struct OperationWalk<'a> {
    open: Vec<OpenCall<'a>>,
    map: SourceMap<'a>,
}

impl<'a> OperationWalk<'a> {
    fn line(&mut self, line: &'a [u8], ahead: u64) {
        if let Some((depth, number, text)) = merge_point(line) {
            self.enter(depth, Some(number), Place::parse(&line[text]));
        } else if let Some(offset) = offset_of(line) {
            // The part before the code only prepares the block.
            let offset = offset.saturating_sub(ahead);
            self.operation(offset);
            if leaves_call(line) && self.open.len() > 1 {
                self.open.pop();
                self.operation(offset);
            }
        } else if let Some(head) = line.strip_prefix(b"# ")
            && let Some(TraceId::Loop(_, place)) = head_id(head, 2)
            && let Some(text) = line.get(place).filter(|text| !text.is_empty())
        {
            self.enter(0, None, Place::parse(text));
            self.operation(0);
        }
    }

    /// The interpreter arrives at a location in a call of this depth.
    fn enter(&mut self, depth: u32, number: Option<u64>, place: Place<'a>) {
        while self.open.last().is_some_and(|open| open.depth > depth) {
            self.open.pop();
        }
        if let Some(open) = self.open.last_mut().filter(|open| open.depth == depth) {
            let is_same = open.number.is_none() || number.is_none() || open.number == number;
            if is_same && open.place.function == place.function {
                (open.place, open.number) = (place, number.or(open.number));
                return;
            }
            self.open.pop();
        }
        let inlined = self.open.last().and_then(|caller| {
            let (file, line) = (caller.place.file, caller.place.line);
            let call = InlinedCall { function: place.function.into(), file, line, column: 0, parent: caller.inlined };
            self.map.calls.push(call);
            u32::try_from(self.map.calls.len() - 1).ok()
        });
        self.open.push(OpenCall { depth, number, place, inlined });
    }

    /// The code from `offset` on belongs to the interpreter's current location. If several operations have the same
    /// offset, all but the last have no code.
    fn operation(&mut self, offset: u64) {
        let Some(open) = self.open.last() else { return };
        let line = open.place.from(offset, open.inlined);
        let is_same = |last: &Line<'_>| (last.file, last.line, last.inlined) == (line.file, line.line, line.inlined);
        match self.map.lines.last_mut() {
            Some(last) if last.offset > offset || is_same(last) => {}
            Some(last) if last.offset == offset => *last = line,
            _ => self.map.lines.push(line),
        }
    }
}

/// Parses the offset in `+698: guard_nonnull_class(…)`.
fn offset_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"+")?;
    number(&rest[..memchr::memchr(b':', rest)?])
}
