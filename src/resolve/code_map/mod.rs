//! What JIT code was at (process, address, time). Built once from code events, in parallel; then only read.
//!
//! Order of precedence for an address: a timed load that is live at the time; an untimed entry (perf map, placed
//! ELF object); a timed load that comes only later, if exactly one does (producers stamp a load slightly late).
//!
//! A timed load ends where a later load or move of the same process overwrites it (the overlap only), where its
//! piece is moved away, where a file's code is mapped over it, or where the process execs. Anonymous memory mapped
//! over it does not end it: runtimes change the protection of their pages, and allocators merge them. A forked child
//! sees its parent's code as of the fork until it execs. Of untimed entries the later one wins where they overlap.
//!
//! ```text
//! addr ▲            each load is one or more rectangles (segments), none overlaps another of its process:
//!      │ ┌────────┬────────────────           one stab finds what was there
//!      │ │   A    │      A
//!      │ │        ├──────┬─────────
//!      │ │   A    │  B   │   C
//!      └─┴────────┴──────┴─────────▶ time
//! ```

mod list;
mod pieces;
mod stab;
mod sweep;

pub use list::CodeList;
pub use pieces::Pieces;

use crate::model::code::Code;
use crate::model::process::Processes;
use crate::model::{Addr, Nanos, Pid};
use crate::parallel::Pool;
use list::Change;
use stab::Tree;
use std::collections::BTreeMap;

/// One load of the code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// A stretch of addresses that held one piece of code during one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// A [`SegmentId`]'s extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The process whose dump said so (a forked child that inherits it asks by its own pid).
    pub pid: Pid,
    /// The code there.
    pub code: CodeId,
    /// First address.
    pub start: Addr,
    /// One past the last address.
    pub end: Addr,
    /// Live from; 0 for untimed entries.
    pub from: Nanos,
    /// Live until, exclusive; `Nanos(u64::MAX)` if it was never replaced.
    pub until: Nanos,
    /// How far into the code `start` is.
    pub offset: u64,
}

/// Why a [`Hit`] is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The load was live at that time (or no time was asked for and it is the last there).
    Live,
    /// An entry without a time covers the address.
    Untimed,
    /// The only load that ever covers the address comes later.
    Later,
}

/// An answer of the code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The piece of code.
    pub code: CodeId,
    /// The stretch it was found in.
    pub segment: SegmentId,
    /// How far into the code the address is.
    pub offset: u64,
    /// By which rule.
    pub how: How,
}

/// What JIT code was where, and when.
#[derive(Debug, Default)]
pub struct CodeMap<'data> {
    pieces: Pieces<'data>,
    layers: BTreeMap<Pid, Layer>,
    /// Child → parent, when, and until when the child still runs its parent's program.
    forks: BTreeMap<Pid, Fork>,
    overlaps: u64,
}

/// One process's segments.
#[derive(Debug)]
struct Layer {
    timed: Tree,
    /// Where its untimed segments stand in [`CodeMap::segments`], by address.
    untimed: std::ops::Range<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Fork {
    parent: Pid,
    at: Nanos,
    exec: Nanos,
}

/// A child of a child of a child: nobody goes deeper, and a circle of pids must end.
const MAX_GENERATIONS: usize = 32;

impl<'data> CodeMap<'data> {
    /// Builds the map. There is one list for each source; where two speak of one place and time, the later one holds.
    pub fn build(lists: Vec<CodeList<'data>>, processes: &Processes, pool: &Pool) -> Self {
        let mut all = CodeList::default();
        lists.into_iter().for_each(|list| all.append(list));
        let CodeList { codes, mut changes } = all;
        if !changes.is_sorted_by_key(|change| change.pid) {
            changes.sort_by_key(|change| change.pid);
        }
        let by_pid: Vec<&mut [Change]> = changes.chunk_by_mut(|a, b| a.pid == b.pid).collect();
        let swept = pool.map(by_pid, |changes| {
            let pid = changes[0].pid;
            (pid, sweep::sweep(pid, changes, &codes, processes.by_pid.get(&pid)))
        });
        drop(changes);
        let mut segments = Vec::new();
        let mut map = Self::default();
        for (pid, mut swept) in swept {
            let first = segments.len();
            let timed = pool.install(|| Tree::build(&mut swept.timed, first));
            append(&mut segments, swept.timed);
            let untimed = segments.len()..segments.len() + swept.untimed.len();
            append(&mut segments, swept.untimed);
            map.layers.insert(pid, Layer { timed, untimed });
            map.overlaps += swept.overlaps;
        }
        map.pieces = Pieces { codes, segments };
        for (&pid, process) in &processes.by_pid {
            if let Some((parent, at)) = process.forked.filter(|(parent, _)| *parent != pid) {
                let exec = process.execs.iter().copied().find(|exec| *exec >= at).unwrap_or(Nanos(u64::MAX));
                map.forks.insert(pid, Fork { parent, at, exec });
            }
        }
        map
    }

    /// What was at `addr` in process `pid` at `time`; without a time, the last code there. Use
    /// [`crate::model::FrameAddr::for_lookup`] for return addresses.
    pub fn lookup(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> Option<Hit> {
        if self.is_empty() {
            return None;
        }
        let family = self.family(pid, time);
        let live = || family.clone().find_map(|(layer, time)| layer.timed.live(self.segments(), addr, time));
        let untimed = || family.clone().find_map(|(layer, _)| self.untimed(layer, addr));
        let later = || family.clone().find_map(|(layer, time)| layer.timed.only_later(self.segments(), addr, time?));
        let found = |how| move |at: usize| (how, at);
        let (how, at) = live()
            .map(found(How::Live))
            .or_else(|| untimed().map(found(How::Untimed)))
            .or_else(|| later().map(found(How::Later)))?;
        let segment = &self.segments()[at];
        let offset = segment.offset + (addr.0 - segment.start.0);
        Some(Hit { code: segment.code, segment: SegmentId(at as u32), offset, how })
    }

    /// The layers of a process and of those it was forked from, each with the time up to which it is inherited.
    fn family(&self, pid: Pid, time: Option<Nanos>) -> impl Iterator<Item = (&Layer, Option<Nanos>)> + Clone + '_ {
        let next = move |&(pid, time): &(Pid, Option<Nanos>)| {
            let fork = self.forks.get(&pid)?;
            let ran_own_program = time.map_or(fork.exec.0 != u64::MAX, |time| time >= fork.exec);
            (!ran_own_program).then(|| (fork.parent, Some(time.map_or(fork.at, |time| time.min(fork.at)))))
        };
        let line = std::iter::successors(Some((pid, time)), next).take(MAX_GENERATIONS);
        line.filter_map(|(pid, time)| Some((self.layers.get(&pid)?, time)))
    }

    fn untimed(&self, layer: &Layer, addr: Addr) -> Option<usize> {
        let segments = &self.segments()[layer.untimed.clone()];
        let at = segments.partition_point(|segment| segment.start <= addr).checked_sub(1)?;
        (addr < segments[at].end).then_some(layer.untimed.start + at)
    }

    /// A piece of code.
    pub fn code(&self, id: CodeId) -> Code<'data> {
        self.pieces.code(id)
    }

    /// How many pieces of code there are; their numbers run from 0.
    pub fn code_count(&self) -> usize {
        self.pieces.codes.len()
    }

    /// A stretch.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        self.pieces.segment(id)
    }

    /// All stretches; their numbers are their places.
    pub fn segments(&self) -> &[Segment] {
        &self.pieces.segments
    }

    /// The code and the stretches, without what finds them.
    pub fn into_pieces(self) -> Pieces<'data> {
        self.pieces
    }

    /// The processes that have code of their own.
    pub fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.layers.keys().copied()
    }

    /// How many untimed entries were cut because a later one covers them, at least in part.
    pub fn overlaps(&self) -> u64 {
        self.overlaps
    }

    /// Whether it knows no code at all.
    pub fn is_empty(&self) -> bool {
        self.pieces.codes.len() == 0
    }
}

/// Appends without a copy where that can be: with a single process, the list is long.
fn append(segments: &mut Vec<Segment>, mut more: Vec<Segment>) {
    if segments.is_empty() {
        *segments = more;
    } else {
        segments.append(&mut more);
    }
}

#[cfg(test)]
mod tests;
