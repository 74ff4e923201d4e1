//! Plays one process's loads, moves, covering maps and execs in time, and leaves the rectangles they made.

use super::{CodeId, Segment};
use crate::model::process::{Mapping, Process};
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeMap;

/// From `time` on, `start..end` holds this code (its first byte at `start`), or none of the JIT's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) time: Option<Nanos>,
    pub(super) start: Addr,
    pub(super) end: Addr,
    pub(super) code: Option<CodeId>,
}

/// What one process's changes left.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) timed: Vec<Segment>,
    /// By address.
    pub(super) untimed: Vec<Segment>,
    pub(super) overlaps: u64,
}

/// Sweeps. `changes` are in the sources' order; those of equal time keep it.
pub(super) fn sweep(pid: Pid, changes: Vec<Change>, process: Option<&Process>) -> Swept {
    let (mut timed, untimed): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.time.is_some());
    let mut swept = Swept::default();
    let mut map = Live::new(pid);
    for change in untimed {
        swept.overlaps += u64::from(map.cut(change.start, change.end, Nanos(0)));
        map.put(&change, Nanos(0));
    }
    // Only what was cut away ended at time 0: it never was.
    map.ended.clear();
    swept.untimed = map.finish();
    // A mapping, and the end of a program, come before loads of the same time.
    let mut outside = process.map_or_else(Vec::new, outside_changes);
    outside.append(&mut timed);
    outside.sort_by_key(|change| change.time);
    let mut live = Live::new(pid);
    let mut places: BTreeMap<CodeId, Addr> = BTreeMap::new();
    for change in &outside {
        let time = change.time.unwrap_or_default();
        if let Some(code) = change.code
            && let Some(old) = places.insert(code, change.start)
        {
            live.remove(code, old, change.end.0 - change.start.0, time);
        }
        live.cut(change.start, change.end, time);
        live.put(change, time);
    }
    swept.timed = live.finish();
    swept
}

/// Files mapped over code, and execs, which clear everything.
fn outside_changes(process: &Process) -> Vec<Change> {
    let covering = process.mappings.iter().filter(|mapping| mapping.executable && is_file(mapping));
    let covers = covering.map(|mapping| Change {
        time: Some(mapping.time),
        start: mapping.addr,
        end: Addr(mapping.addr.0.saturating_add(mapping.len)),
        code: None,
    });
    let execs =
        process.execs.iter().map(|&time| Change { time: Some(time), start: Addr(0), end: Addr(u64::MAX), code: None });
    execs.chain(covers).collect()
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

    fn put(&mut self, change: &Change, from: Nanos) {
        if let Some(code) = change.code.filter(|_| change.start < change.end) {
            self.pieces.insert(change.start, Piece { end: change.end, code, offset: 0, from });
        }
    }

    /// Ends whatever is in a range; what stands out of it lives on. Whether anything was there.
    fn cut(&mut self, start: Addr, end: Addr, time: Nanos) -> bool {
        if start >= end {
            return false;
        }
        let below = self.pieces.range(..start).next_back().filter(|(_, piece)| piece.end > start).map(|(at, _)| *at);
        let inside = self.pieces.range(start..end).map(|(at, _)| *at);
        let hit: Vec<Addr> = below.into_iter().chain(inside).collect();
        for &at in &hit {
            let Some(piece) = self.pieces.remove(&at) else { continue };
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
        !hit.is_empty()
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
