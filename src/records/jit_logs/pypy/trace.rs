//! Loops and bridges, as the log reports them, and the code that was traced through: a tree of merge points, each with the
//! one around it.

use crate::bytes::digits::{self, hex};
use memchr::memmem;
use std::ops::Range;

/// The name of a loop or bridge in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TraceId {
    /// `Loop 1 (…)`: its number, and where its place is in the log; helpers have number -1 and no place.
    Loop(i64, Range<usize>),
    /// `bridge out of Guard 0x…`
    Bridge(u64),
}

/// A loop or bridge.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) id: TraceId,
    /// The place of its address in the log.
    pub(super) offset: usize,
    /// The processor's counter then.
    pub(super) time: Option<u64>,
    /// Its code.
    pub(super) code: Range<u64>,
    /// The start of the block of machine code, relative to which operations give their places.
    pub(super) block_start: Option<u64>,
    /// The block of machine code that it lies in.
    pub(super) block: Option<usize>,
    /// The operations of it in the log.
    pub(super) operations: Range<usize>,
    /// The calls that a bridge begins in.
    pub(super) begins_in: Option<MergePointId>,
    /// The first merge point of its operations.
    pub(super) first: Option<MergePointId>,
    /// The trace that a bridge leaves, if its patch was logged.
    pub(super) leaves: Option<usize>,
}

impl Trace {
    /// Reads `Loop 1 (fib;…) has address 0x… to 0x… (bootstrap 0x…)` or `bridge out of Guard 0x… has address …`.
    /// `offset`: where the line stands.
    pub(super) fn parse(line: &[u8], offset: usize, time: Option<u64>) -> Option<Self> {
        const HAS: &[u8] = b" has address 0x";
        let at = memmem::rfind(line, HAS)?;
        let id = TraceId::parse(&line[..at], offset)?;
        let rest = &line[at + HAS.len()..];
        let to = memmem::find(rest, b" to 0x")?;
        let (start, rest) = (hex(&rest[..to])?, &rest[to + 6..]);
        let (end, rest) = rest.split_at(rest.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(rest.len()));
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
            begins_in: None,
            first: None,
            leaves: None,
        })
    }

    /// Reads what follows: `     gc table: 0x…`.
    pub(super) fn learn(&mut self, line: &[u8]) -> bool {
        let Some(at) = memmem::find(line, b": 0x") else { return false };
        let Some(addr) = hex(&line[at + 4..]) else { return false };
        match line[..at].trim_ascii() {
            b"gc table" => self.block_start = Some(addr),
            b"function" | b"jump target" => self.code.start = addr,
            b"end" => self.code.end = addr,
            b"resops" | b"failures" => {}
            _ => return false,
        }
        true
    }
}

impl TraceId {
    /// Reads `Loop 1 (…)` or `bridge out of Guard 0x…`, which is at `offset`.
    pub(super) fn parse(text: &[u8], offset: usize) -> Option<Self> {
        if let Some(guard) = text.strip_prefix(b"bridge out of Guard ") {
            return hex(guard.strip_prefix(b"0x").unwrap_or(guard)).map(Self::Bridge);
        }
        let rest = text.strip_prefix(b"Loop ")?;
        let number = rest.split(|&byte| byte == b' ').next()?;
        let place = rest.get(number.len()..)?.strip_prefix(b" (")?.strip_suffix(b")")?;
        let begin = offset + (text.len() - place.len() - 1);
        Some(Self::Loop(digits::number(number)?, begin..begin + place.len()))
    }
}

/// A merge point of the log, in the calls around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergePoint {
    /// The place of its text in the log.
    pub(super) text: (u64, u64),
    /// The number of calls that were traced through to get here.
    pub(super) depth: u32,
    /// The merge point of the caller.
    pub(super) caller: Option<MergePointId>,
}

/// A merge point, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MergePointId(u32);

/// All merge points of a log.
#[derive(Debug, Default)]
pub(super) struct MergePoints(Vec<MergePoint>);

impl MergePoints {
    /// Adds one that follows `last`.
    pub(super) fn push(&mut self, text: (u64, u64), depth: u32, last: Option<MergePointId>) -> Option<MergePointId> {
        let caller = self.around(last, depth);
        let id = u32::try_from(self.0.len()).ok()?;
        self.0.push(MergePoint { text, depth, caller });
        Some(MergePointId(id))
    }

    /// The innermost of a merge point and its callers that is less deep than `depth`.
    pub(super) fn around(&self, mut at: Option<MergePointId>, depth: u32) -> Option<MergePointId> {
        while let Some(id) = at {
            let point = self.get(id);
            if point.depth < depth {
                return at;
            }
            at = point.caller;
        }
        None
    }

    pub(super) fn get(&self, id: MergePointId) -> &MergePoint {
        &self.0[id.0 as usize]
    }

    /// From the innermost to the outermost.
    pub(super) fn chain(&self, at: Option<MergePointId>) -> impl Iterator<Item = &MergePoint> {
        std::iter::successors(at, |&id| self.get(id).caller).map(|id| self.get(id))
    }
}
