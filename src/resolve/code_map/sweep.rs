//! Plays one process's loads, moves, covering maps and execs in time, and leaves the rectangles they made.

use super::list::{Change, ChangeKind, Codes};
use super::{CodeId, Segment};
use crate::model::process::{Mapping, Process};
use crate::model::{Addr, Nanos, Pid};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// What one process's changes left.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) timed: Vec<Segment>,
    /// By address.
    pub(super) untimed: Vec<Segment>,
    pub(super) overlaps: u64,
}

/// Sweeps. `changes` are in the sources' order; those of equal time keep it.
pub(super) fn sweep(pid: Pid, changes: &mut [Change], codes: &Codes<'_>, process: Option<&Process>) -> Swept {
    let (untimed, overlaps) = untimed(pid, changes, codes);
    if !changes.is_sorted_by_key(|change| change.time) {
        changes.sort_by_key(|change| change.time);
    }
    Swept { timed: timed(pid, changes, codes, process), untimed, overlaps }
}

/// What holds for the whole run, and how many changes overwrote earlier ones.
fn untimed(pid: Pid, changes: &[Change], codes: &Codes<'_>) -> (Vec<Segment>, u64) {
    let mut map = Live::new(pid);
    let mut overlaps = 0;
    for change in changes.iter().filter(|change| change.kind == ChangeKind::Untimed) {
        let end = end(change, codes);
        overlaps += u64::from(map.cut(change.start, end, Nanos(0)));
        map.put(change, end);
    }
    // Only what was cut away ended at time 0: it never was.
    map.ended.clear();
    (map.finish(), overlaps)
}

fn timed(pid: Pid, changes: &[Change], codes: &Codes<'_>, process: Option<&Process>) -> Vec<Segment> {
    let mut live = Live::new(pid);
    // Where code that has moved is; all other is where it was loaded.
    let mut moved: FxHashMap<CodeId, Addr> = FxHashMap::default();
    let mut cuts = process.map_or_else(Vec::new, cuts).into_iter().peekable();
    for change in changes.iter().filter(|change| matches!(change.kind, ChangeKind::Load | ChangeKind::Move)) {
        // A mapping, and the end of a program, come before loads of the same time.
        while let Some((time, range)) = cuts.next_if(|(time, _)| *time <= change.time) {
            live.cut(range.start, range.end, time);
        }
        if change.kind == ChangeKind::Move {
            let old = moved.insert(change.code, change.start).unwrap_or_else(|| codes.addr(change.code));
            live.remove(change.code, old, codes.size(change.code), change.time);
        }
        let end = end(change, codes);
        live.cut(change.start, end, change.time);
        live.put(change, end);
    }
    for (time, range) in cuts {
        live.cut(range.start, range.end, time);
    }
    live.finish()
}

fn end(change: &Change, codes: &Codes<'_>) -> Addr {
    Addr(change.start.0.saturating_add(codes.size(change.code)))
}

/// What ends code from outside, in time order: files mapped over it, and execs, which clear everything.
fn cuts(process: &Process) -> Vec<(Nanos, Range<Addr>)> {
    let covering = process.mappings.iter().filter(|mapping| mapping.executable && is_file(mapping));
    let covers = covering.map(|mapping| (mapping.time, mapping.addr..Addr(mapping.addr.0.saturating_add(mapping.len))));
    let execs = process.execs.iter().map(|&time| (time, Addr(0)..Addr(u64::MAX)));
    let mut all: Vec<_> = execs.chain(covers).collect();
    all.sort_by_key(|(time, _)| *time);
    all
}

/// Whether a mapping shows a file that is not itself a place for JIT code: memory files, jitdump markers and images
/// of JIT code do not hide what was loaded there.
fn is_file(mapping: &Mapping) -> bool {
    let path = &mapping.path;
    let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let pseudo: [&[u8]; 5] = [b"//", b"[", b"/memfd:", b"/dev/zero", b"/anon_hugepage"];
    let jit = base.starts_with(b"jitted-") || base.starts_with(b"jit-");
    path.starts_with(b"/") && !jit && !path.starts_with(b"/SYSV") && !pseudo.iter().any(|start| path.starts_with(start))
}

/// What is there now, by first address; none overlaps another.
struct Live {
    pid: Pid,
    pieces: BTreeMap<Addr, Piece>,
    ended: Vec<Segment>,
}

#[derive(Clone, Copy)]
struct Piece {
    end: Addr,
    code: CodeId,
    offset: u64,
    from: Nanos,
}

impl Live {
    fn new(pid: Pid) -> Self {
        Self { pid, pieces: BTreeMap::new(), ended: Vec::new() }
    }

    fn put(&mut self, change: &Change, end: Addr) {
        if change.start < end {
            let from = if change.kind == ChangeKind::Untimed { Nanos(0) } else { change.time };
            self.pieces.insert(change.start, Piece { end, code: change.code, offset: 0, from });
        }
    }

    /// Ends whatever is in a range; what stands out of it lives on. Whether anything was there.
    fn cut(&mut self, start: Addr, end: Addr, time: Nanos) -> bool {
        if start >= end {
            return false;
        }
        let below = self.pieces.range(..start).next_back().filter(|(_, piece)| piece.end > start).map(|(at, _)| *at);
        let mut next = below.or_else(|| self.first_in(start, end));
        let hit = next.is_some();
        while let Some(at) = next {
            self.cut_piece(at, start, end, time);
            next = self.first_in(start, end);
        }
        hit
    }

    fn first_in(&self, start: Addr, end: Addr) -> Option<Addr> {
        self.pieces.range(start..end).next().map(|(at, _)| *at)
    }

    fn cut_piece(&mut self, at: Addr, start: Addr, end: Addr, time: Nanos) {
        let Some(piece) = self.pieces.remove(&at) else { return };
        let (low, high) = (at.max(start), piece.end.min(end));
        if at < low {
            self.pieces.insert(at, Piece { end: low, ..piece });
        }
        if high < piece.end {
            self.pieces.insert(high, Piece { offset: piece.offset + (high.0 - at.0), ..piece });
        }
        let offset = piece.offset + (low.0 - at.0);
        self.end(low, Piece { end: high, offset, ..piece }, time);
    }

    /// Ends the pieces of one code that are left where it was before it moved.
    fn remove(&mut self, code: CodeId, start: Addr, size: u64, time: Nanos) {
        let range = start..Addr(start.0.saturating_add(size));
        let own: Vec<Addr> =
            self.pieces.range(range).filter(|(_, piece)| piece.code == code).map(|(at, _)| *at).collect();
        for at in own {
            if let Some(piece) = self.pieces.remove(&at) {
                self.end(at, piece, time);
            }
        }
    }

    fn end(&mut self, start: Addr, piece: Piece, until: Nanos) {
        // What was replaced in the instant it came was never there.
        if piece.from < until {
            let Piece { end, code, offset, from } = piece;
            self.ended.push(Segment { pid: self.pid, code, start, end, from, until, offset });
        }
    }

    fn finish(mut self) -> Vec<Segment> {
        for (start, piece) in std::mem::take(&mut self.pieces) {
            self.end(start, piece, Nanos(u64::MAX));
        }
        self.ended
    }
}
