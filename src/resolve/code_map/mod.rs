//! The JIT code at (process, address, time). Built once from code events, in parallel; then only read.
//!
//! Order of precedence for an address: a timed load that is live at the time; one of a source that fills in what the
//! others lack (a log beside a dump or map); an untimed entry (perf map, placed ELF object) of the program that ran then.
//!
//! A load names nothing that was sampled before it. Other code may have run there, and no time that may lie between
//! code and its record is safe: runtimes write the record before the code runs, but for HotSpot, which gives agents of
//! compiled methods from a thread of its own, up to 80 ms late (0.2 % of the JIT frames of a short recording). Code
//! that stays unnamed for this reason is counted ([`CodeMap::has_code_at_other_times`]).
//!
//! A timed load ends where a later load or move of the same process overwrites it (the overlap only), where its
//! piece is moved away or said to be gone, where a file's code is mapped over it, or where the process execs. Anonymous memory mapped
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
mod live;
mod programs;
mod segment;
mod selected;
mod stab;
mod sweep;

pub use list::{CodeList, ListedCode};
pub use segment::{CodeId, Segment, SegmentId};
pub use selected::{SegmentSet, SelectedCode, SelectedId, SelectedIds};

use crate::model::ancestry::{Ancestor, Ancestry};
use crate::model::code::Code;
use crate::model::lasting::{ALWAYS, Lasting, Quiet, both};
use crate::model::process::Processes;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::parallel::Pool;
use list::{ChangeKind, Codes};
use stab::Stab;
use std::collections::BTreeMap;
use std::ops::Range;
use sweep::Batch;

/// Why a [`Hit`] is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The load was live at that time (or no time was requested and it is the last there).
    Live,
    /// The load of a source that fills in was live at that time.
    FilledIn,
    /// An entry without a time covers the address.
    Untimed,
}

impl How {
    /// True if it is of a time: elsewhere something else may have been there.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Live | Self::FilledIn)
    }
}

/// An answer of the code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The code range.
    pub code: CodeId,
    /// The stretch it was found in.
    pub segment: SegmentId,
    /// The offset of the address in the code.
    pub offset: u64,
    /// The rule.
    pub how: How,
}

/// The JIT code by place and time.
#[derive(Debug, Default)]
pub struct CodeMap<'data> {
    codes: Codes<'data>,
    segments: Vec<Segment>,
    layers: BTreeMap<Pid, Layer>,
    ancestry: Ancestry,
    overlaps: u64,
}

/// Finds one process's segments.
#[derive(Debug, Default)]
struct Layer {
    timed: Stab,
    /// Of sources that fill in.
    beside: Stab,
    untimed: Stab,
    /// When the program ran whose code the untimed entries name; `None` if the process ran only one.
    program: Option<Range<Nanos>>,
}

impl<'data> CodeMap<'data> {
    /// Builds the map. There is one list for each source; where two speak of one place and time, the later one holds.
    pub fn build(lists: Vec<CodeList<'data>>, processes: &Processes, pool: &Pool) -> Self {
        let mut all = CodeList::default();
        lists.into_iter().for_each(|list| all.append(list));
        let CodeList { codes, mut changes } = all;
        let mut map = Self::default();
        let untimed = |kind| matches!(kind, ChangeKind::Untimed | ChangeKind::Hidden);
        let mut untimed: Vec<_> = changes.extract_if(.., |change| untimed(change.kind)).collect();
        // The later one holds.
        untimed.sort_by_key(|change| !change.fills_in);
        for (pid, program) in programs::of_untimed(&untimed, processes) {
            map.layers.entry(pid).or_default().program = Some(program);
        }
        changes.retain(|change| change.kind != ChangeKind::Nothing);
        let beside: Vec<_> = changes.extract_if(.., |change| change.fills_in).collect();
        sweep::untimed(untimed, pool, |batch| {
            map.overlaps += batch.overlaps;
            map.append(batch, |layer| &mut layer.untimed);
        });
        sweep::timed(changes, &codes, processes, pool, |batch| map.append(batch, |layer| &mut layer.timed));
        sweep::timed(beside, &codes, processes, pool, |batch| map.append(batch, |layer| &mut layer.beside));
        pool.install(|| {
            map.layers.values_mut().for_each(|layer| {
                layer.timed.finish(&mut map.segments);
                layer.beside.finish(&mut map.segments);
                layer.untimed.finish(&mut map.segments);
            })
        });
        map.codes = codes;
        if !map.is_empty() {
            map.ancestry = Ancestry::new(processes).among(|pid| map.layers.contains_key(&pid));
        }
        map
    }

    /// Adds swept segments, and what finds them in some part of the layers of their processes.
    fn append(&mut self, mut batch: Batch, part: impl Fn(&mut Layer) -> &mut Stab) {
        let segments = &mut self.segments;
        for (pid, stab) in batch.stabs {
            part(self.layers.entry(pid).or_default()).append(stab, segments.len());
        }
        segments.append(&mut batch.segments);
    }

    /// The code at `addr` in process `pid` at `time`; without a time, the last code there. Use
    /// [`crate::model::FrameAddr::for_lookup`] for return addresses.
    pub fn lookup(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> Option<Hit> {
        if self.is_empty() {
            return None;
        }
        let family = self.family(pid, time);
        let live = || family.clone().find_map(|(layer, time)| layer.timed.live(self.segments(), addr, time));
        let beside = || family.clone().find_map(|(layer, time)| layer.beside.live(self.segments(), addr, time));
        let untimed = || {
            let names = |program: &Option<Range<Nanos>>, time: Option<Nanos>| {
                program.as_ref().zip(time).is_none_or(|(program, time)| program.contains(&time))
            };
            let mut named = family.clone().filter(|(layer, time)| names(&layer.program, *time));
            named.find_map(|(layer, _)| layer.untimed.live(self.segments(), addr, None))
        };
        let found = |how| move |at: usize| (how, at);
        let (how, at) = live()
            .map(found(How::Live))
            .or_else(|| beside().map(found(How::FilledIn)))
            .or_else(|| untimed().map(found(How::Untimed)))?;
        let segment = &self.segments()[at];
        let offset = segment.offset + (addr.0 - segment.start.0);
        Some(Hit { code: segment.code, segment: SegmentId(at as u32), offset, how })
    }

    /// The same at a moment, and how long it stays so.
    pub fn lookup_lasting(&self, pid: Pid, addr: Addr, time: Nanos) -> Lasting<Option<Hit>> {
        let answer = self.lookup(pid, addr, Some(time));
        let holds = match answer {
            // Nothing has precedence over a process's own live code.
            Some(Hit { how: How::Live, segment, .. }) if self.segment(segment).pid == pid => {
                let Segment { from, until, .. } = *self.segment(segment);
                from..until
            }
            _ => both(self.ancestry.settled(pid, time), self.quiet(pid, addr, time)),
        };
        Lasting { answer, holds }
    }

    /// True if there is code at an address of a process at some time: what was sampled there and has no name ran before
    /// its code was logged, after that was gone, or in another program than the one whose code is known.
    pub fn has_code_at_other_times(&self, pid: Pid, addr: Addr) -> bool {
        let any = |stab: &Stab| stab.any(self.segments(), addr, |_| true);
        let ancestors = self.ancestry.ancestors(pid).filter_map(|pid| self.layers.get(&pid));
        let mut layers = ancestors.flat_map(|layer| [&layer.timed, &layer.beside, &layer.untimed]);
        !self.is_empty() && layers.any(any)
    }

    /// The stretch of time around a moment in which nothing of a process's own comes to an address or goes from it.
    fn quiet(&self, pid: Pid, addr: Addr, time: Nanos) -> Range<Nanos> {
        self.layers.get(&pid).map_or(ALWAYS, |Layer { timed, beside, untimed: _, program }| {
            let quiet = both(timed.quiet(self.segments(), addr, time), beside.quiet(self.segments(), addr, time));
            let mut same = Quiet::around(time);
            program.iter().for_each(|program| same.cut(program.clone()));
            both(quiet, same.stretch)
        })
    }

    /// When untimed entries of a process name what it ran.
    pub fn untimed_names(&self, pid: Pid) -> Range<Nanos> {
        self.layers.get(&pid).and_then(|layer| layer.program.clone()).unwrap_or(ALWAYS)
    }

    /// The address to look up for a frame: return address in the call before it, but for functions that are entered by
    /// a return.
    ///
    /// Erlang's processes end by returning to the first byte of a function, never called by what precedes it: a header
    /// without code (OTP erts/emulator/beam/jit/beam_jit_metadata.cpp).
    pub fn lookup_address(&self, pid: Pid, frame: FrameAddr, time: Option<Nanos>) -> Addr {
        let (before, raw) = (frame.for_lookup(), frame.raw());
        let hit = if before == raw || self.is_empty() { None } else { self.lookup(pid, before, time) };
        if hit.is_some_and(|hit| self.is_entered_by_return(hit)) { raw } else { before }
    }

    /// The same at a moment, with what is there, and how long it stays so.
    pub fn lookup_frame(&self, pid: Pid, frame: FrameAddr, time: Nanos) -> (Addr, Lasting<Option<Hit>>) {
        let (before, raw) = (frame.for_lookup(), frame.raw());
        let found = self.lookup_lasting(pid, before, time);
        if before != raw && found.answer.is_some_and(|hit| self.is_entered_by_return(hit)) {
            (raw, self.lookup_lasting(pid, raw, time))
        } else {
            (before, found)
        }
    }

    fn is_entered_by_return(&self, hit: Hit) -> bool {
        self.code(hit.code).name.ends_with(b"-CodeInfoPrologue")
    }

    /// True if code of another name was at `addr` in process `pid` at some other time: without a time, nobody can show
    /// which is meant.
    pub fn has_other_names(&self, pid: Pid, addr: Addr, name: &[u8]) -> bool {
        self.may_be_other(pid, addr, name, (Nanos(0), Nanos(u64::MAX)))
    }

    /// True if code of another name was at `addr` at any time from `from` to `until`: where times are not exact, that
    /// may be the code which is meant.
    pub fn may_be_other(&self, pid: Pid, addr: Addr, name: &[u8], (from, until): (Nanos, Nanos)) -> bool {
        let is_then = |segment: &Segment| segment.from < until && segment.until > from;
        let is_other = |segment: &Segment| is_then(segment) && self.code(segment.code).name != name;
        let any = |part: fn(&Layer) -> &Stab, is_such: &dyn Fn(&Segment) -> bool| {
            self.family(pid, None).any(|(layer, _)| part(layer).any(self.segments(), addr, is_such))
        };
        // A layer that fills in may spell a name differently from the one beside it.
        match any(|layer| &layer.timed, &|_| true) {
            true => any(|layer| &layer.timed, &is_other),
            false => any(|layer| &layer.beside, &is_other),
        }
    }

    /// The layers of a process and of those it was forked from, each with the time up to which it is inherited.
    fn family(&self, pid: Pid, time: Option<Nanos>) -> impl Iterator<Item = (&Layer, Option<Nanos>)> + Clone + '_ {
        let ancestors = self.ancestry.inherited_code(pid, time);
        ancestors.filter_map(|Ancestor { pid, time }| Some((self.layers.get(&pid)?, time)))
    }

    /// A code range.
    pub fn code(&self, id: CodeId) -> Code<'data> {
        self.codes.get(id)
    }

    /// The name of a code range.
    pub fn name(&self, id: CodeId) -> &'data [u8] {
        self.codes.name(id)
    }

    /// The number of code ranges there are; their numbers run from 0.
    pub fn code_count(&self) -> usize {
        self.codes.len()
    }

    /// True if a source reports how code of it is left.
    pub fn has_unwinding(&self, origin: crate::model::code::OriginId) -> bool {
        (0..self.code_count()).any(|at| {
            let code = self.code(CodeId(at as u32));
            code.origin == origin && code.unwind.is_some()
        })
    }

    /// A stretch.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.segments[id.0 as usize]
    }

    /// All stretches; their numbers are their places.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Removes all segments but those in the set, the code that is in none of these, and the index that finds them by
    /// address.
    pub fn select(self, set: &SegmentSet) -> (SelectedCode<'data>, SelectedIds) {
        SelectedCode::new(self.codes, self.segments, set)
    }

    /// The processes that have code of their own.
    pub fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.layers.keys().copied()
    }

    /// The places of a process's code at a time: stretches of addresses in no order, without holes of a page or more.
    pub fn extents(&self) -> impl Iterator<Item = (Pid, Addr, Addr)> + '_ {
        self.layers.iter().flat_map(|(pid, layer)| {
            let all = layer.timed.extents().chain(layer.beside.extents()).chain(layer.untimed.extents());
            all.map(|(start, end)| (*pid, start, end))
        })
    }

    /// The number of untimed entries that were cut because a later one covers them, at least in part.
    pub fn overlaps(&self) -> u64 {
        self.overlaps
    }

    /// True if it has no code at all.
    pub fn is_empty(&self) -> bool {
        self.codes.len() == 0
    }
}

#[cfg(test)]
mod tests;
