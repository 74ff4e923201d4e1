//! Traces (loops and bridges) as the log describes them, and the tree of merge points, each with the merge point of its
//! caller.

use super::source_location::SourceLocation;
use crate::bytes::digits::{self, hex};
use memchr::memmem;
use std::ops::Range;

/// Identifies a trace in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TraceId {
    /// `Loop 1 (…)`: its number, and the range of its location in the log. Helpers have number -1 and no location.
    Loop(i64, Range<usize>),
    /// `bridge out of Guard 0x…`: the guard.
    Bridge(u64),
}

/// A loop or bridge.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) id: TraceId,
    /// Offset in the log of the line that states the trace's address.
    pub(super) offset: usize,
    /// Value of the time-stamp counter when the line at `offset` was logged; `None` if unknown.
    pub(super) time: Option<u64>,
    /// Address range of the trace's code.
    pub(super) code: Range<u64>,
    /// Start address of the trace's block of machine code, if the log states it. Offsets of operations are relative to
    /// it.
    pub(super) block_start: Option<u64>,
    /// Index of the trace's block in [`MachineCode::blocks`](super::machine_code::MachineCode::blocks), if the block
    /// was dumped.
    pub(super) block: Option<usize>,
    /// Range of the trace's operations in the log; empty if they weren't logged.
    pub(super) operations: Range<usize>,
    /// For a bridge: the merge point at which it begins, in the trace that it leaves. `None` if unknown.
    pub(super) start_point: Option<MergePointId>,
    /// The first merge point among the trace's operations.
    pub(super) first_point: Option<MergePointId>,
    /// For a bridge: index of the trace that it leaves. `None` unless the patch of that trace was logged.
    pub(super) left_trace: Option<usize>,
}

impl Trace {
    /// Parses `Loop 1 (fib;…) has address 0x… to 0x… (bootstrap 0x…)` or `bridge out of Guard 0x… has address …`.
    /// `offset` is the line's offset in the log. `None` if the line has another form.
    pub(super) fn parse(line: &[u8], offset: usize, time: Option<u64>) -> Option<Self> {
        const HAS: &[u8] = b" has address 0x";
        let id_len = memmem::rfind(line, HAS)?;
        let id = TraceId::parse(&line[..id_len], offset)?;
        let rest = &line[id_len + HAS.len()..];
        let start_len = memmem::find(rest, b" to 0x")?;
        let (start, rest) = (hex(&rest[..start_len])?, &rest[start_len + b" to 0x".len()..]);
        let end_len = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (end, rest) = rest.split_at(end_len);
        // If there is a bootstrap address, the code begins there.
        let bootstrap = rest.strip_prefix(b" (bootstrap 0x").and_then(|rest| hex(rest.strip_suffix(b")")?));
        let code = bootstrap.unwrap_or(start)..hex(end)?;
        Some(Self {
            id,
            offset,
            time,
            code,
            block_start: None,
            block: None,
            operations: 0..0,
            start_point: None,
            first_point: None,
            left_trace: None,
        })
    }

    /// Parses one of the lines with more addresses that follow the line of the trace, such as `     gc table: 0x…`.
    /// Returns false for other lines.
    pub(super) fn read_detail(&mut self, line: &[u8]) -> bool {
        let Some(key_len) = memmem::find(line, b": 0x") else { return false };
        let Some(addr) = hex(&line[key_len + b": 0x".len()..]) else { return false };
        match line[..key_len].trim_ascii() {
            b"gc table" => self.block_start = Some(addr),
            b"function" | b"jump target" => self.code.start = addr,
            b"end" => self.code.end = addr,
            // The addresses in lines with these keys are within the code and aren't needed.
            b"resops" | b"failures" => {}
            _ => return false,
        }
        true
    }
}

impl TraceId {
    /// Parses `Loop 1 (…)` or `bridge out of Guard 0x…`, which is at `offset` in the log.
    pub(super) fn parse(text: &[u8], offset: usize) -> Option<Self> {
        if let Some(guard) = text.strip_prefix(b"bridge out of Guard ") {
            return hex(guard.strip_prefix(b"0x").unwrap_or(guard)).map(Self::Bridge);
        }
        let rest = text.strip_prefix(b"Loop ")?;
        let number = rest.split(|&byte| byte == b' ').next()?;
        let location = rest.get(number.len()..)?.strip_prefix(b" (")?.strip_suffix(b")")?;
        let start = offset + (text.len() - location.len() - 1);
        Some(Self::Loop(digits::number(number)?, start..start + location.len()))
    }
}

/// A merge point: a location of the interpreter, logged between operations.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergePoint {
    /// Range of the merge point's text in the log.
    text: (u64, u64),
    /// How deep the merge point is nested in calls that were traced through; 0 in the outermost function.
    pub(super) depth: u32,
    /// The last merge point in the calling function; `None` if the caller is unknown.
    pub(super) caller: Option<MergePointId>,
}

impl MergePoint {
    /// Parses the merge point's location. `log` is the whole log.
    pub(super) fn location<'a>(&self, log: &'a [u8]) -> SourceLocation<'a> {
        let text = log.get(self.text.0 as usize..self.text.1 as usize).unwrap_or_default();
        SourceLocation::parse(text)
    }
}

/// Index of a merge point in [`MergePoints`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MergePointId(u32);

/// All merge points of a log.
#[derive(Debug, Default)]
pub(super) struct MergePoints(Vec<MergePoint>);

impl MergePoints {
    /// Adds a merge point. `last` is the merge point before the new one in the trace, from which the caller of the new
    /// one is found. `None` if there are too many merge points.
    pub(super) fn push(&mut self, text: Range<usize>, depth: u32, last: Option<MergePointId>) -> Option<MergePointId> {
        let caller = self.find_caller(last, depth);
        let id = u32::try_from(self.0.len()).ok()?;
        self.0.push(MergePoint { text: (text.start as u64, text.end as u64), depth, caller });
        Some(MergePointId(id))
    }

    /// The innermost merge point with a depth below `depth`, among `last` and its callers.
    fn find_caller(&self, last: Option<MergePointId>, depth: u32) -> Option<MergePointId> {
        let mut id = last?;
        while self.get(id).depth >= depth {
            id = self.get(id).caller?;
        }
        Some(id)
    }

    pub(super) fn get(&self, id: MergePointId) -> &MergePoint {
        &self.0[id.0 as usize]
    }

    /// A merge point and its callers, innermost first.
    pub(super) fn with_callers(&self, innermost: Option<MergePointId>) -> impl Iterator<Item = &MergePoint> {
        std::iter::successors(innermost, |&id| self.get(id).caller).map(|id| self.get(id))
    }
}
