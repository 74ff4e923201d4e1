//! Finds the JIT code at (process, address, time). The map is built once from code events, in parallel, and then only
//! read.
//!
//! If several entries cover an address, the first of these wins: a timed load that is live at the requested time; a
//! live load from a source that only fills gaps (a log next to a dump or perf map); an untimed entry (from a perf map
//! or a placed ELF object) of the program that was running then.
//!
//! A load never names samples that are earlier than the load, not even by a little, because other code may have been at
//! the address then. Runtimes write the record of a load before its code runs, with one exception: HotSpot reports
//! compiled methods to agents from a thread of its own, up to 80 ms late (0.2% of the JIT frames of a short recording).
//! Frames that stay unnamed for this reason are counted ([`CodeMap::has_code_at_other_times`]).
//!
//! A timed load ends where a later load or move of the same process overwrites it (only the overlap ends), where its
//! code is moved away or unloaded, where executable memory of a file is mapped over it, or when the process execs.
//! Anonymous memory mapped over it doesn't end it, because runtimes change the protection of their pages and allocators
//! merge mappings. Until a forked child execs, it sees its parent's code as of the fork. Where untimed entries overlap,
//! the later one in the list wins.
//!
//! ```text
//! addr ▲            each load is one or more rectangles (segments); those of a process never overlap,
//!      │ ┌────────┬────────────────           so at most one contains a given point
//!      │ │   A    │      A
//!      │ │        ├──────┬─────────
//!      │ │   A    │  B   │   C
//!      └─┴────────┴──────┴─────────▶ time
//! ```

mod list;
mod live;
mod programs;
mod segment_index;
mod sweep;

pub use list::{CodeId, CodeList, ListedCode};
pub use segment_index::{Segment, SegmentId};

use crate::model::ancestry::{Ancestor, Ancestry};
use crate::model::code::Code;
use crate::model::lasting::{ALWAYS, Lasting, QuietPeriod, intersect};
use crate::model::process::Processes;
use crate::model::{Addr, Nanos, Pid};
use crate::parallel::Pool;
use list::{ChangeKind, Codes};
use segment_index::SegmentIndex;
use std::collections::BTreeMap;
use std::ops::Range;
use sweep::Batch;

/// The kind of entry in which a [`Hit`] was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitKind {
    /// A timed load that was live at the requested time; if no time was requested, the last load at the address.
    Live,
    /// Like `Live`, but from a source that only fills gaps ([`CodeList::fill_in`]).
    FilledIn,
    /// An entry without a time, such as one from a perf map.
    Untimed,
}

impl HitKind {
    /// True if the entry has a time. Other code may then have been at the address before or after it.
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Live | Self::FilledIn)
    }
}

/// The JIT code that was found at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The code that contains the address.
    pub code: CodeId,
    /// The segment (addresses and period) in which the address was found.
    pub segment: SegmentId,
    /// The offset of the address from the start of the code, in bytes.
    pub offset: u64,
    /// The kind of entry in which the code was found.
    pub kind: HitKind,
}

/// A function that tells whether a call instruction may end where machine code ends.
pub type CallTest = fn(&[u8]) -> bool;

/// Finds JIT code by process, address and time; see the [module documentation](self).
#[derive(Debug, Default)]
pub struct CodeMap<'data> {
    codes: Codes<'data>,
    segments: Vec<Segment>,
    layers: BTreeMap<Pid, Layer>,
    /// The forks and execs of the processes that have code, by which children inherit it.
    ancestry: Ancestry,
    /// How many untimed entries overwrote earlier ones; see [`Self::overlaps()`].
    overlaps: u64,
    /// How to find calls in the code of each source, by its [`OriginId`](crate::model::code::OriginId). `None` if calls
    /// on its machine aren't decoded; see [`find_call_test`](super::calls::find_call_test).
    pub call_tests: Vec<Option<CallTest>>,
}

impl Layer {
    /// True if the untimed entries apply at this time, because the program that they belong to was running. Also true
    /// without a time, and for a process that never called exec.
    fn has_untimed_at(&self, time: Option<Nanos>) -> bool {
        match (&self.program, time) {
            (Some(program), Some(time)) => program.contains(&time),
            _ => true,
        }
    }
}

/// What one process loaded: an index of segments for each kind of entry (timed loads, gap-filling loads, untimed
/// entries).
#[derive(Debug, Clone, Default)]
struct Layer {
    timed: SegmentIndex,
    /// Timed loads from sources that only fill gaps.
    gap_filling: SegmentIndex,
    untimed: SegmentIndex,
    /// The period in which the program ran that wrote the untimed entries. `None` if the process never called exec, so
    /// that there was only one program.
    program: Option<Range<Nanos>>,
}

impl<'data> CodeMap<'data> {
    /// Builds the map from one list per source. If two sources describe the same address at the same time, the source
    /// that is later in `lists` wins.
    pub fn build(lists: Vec<CodeList<'data>>, processes: &Processes, pool: &Pool) -> Self {
        let mut all = CodeList::default();
        for list in lists {
            all.append(list);
        }
        let CodeList { codes, changes } = all;
        let (mut timed, mut gap_filling, mut untimed) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            match change.kind {
                // An event without effect, which is in its list only so that later events have the right positions.
                ChangeKind::Nothing => {}
                // Events that hide untimed entries are replayed together with these entries.
                ChangeKind::Untimed | ChangeKind::Hidden => untimed.push(change),
                _ if change.fills_in => gap_filling.push(change),
                _ => timed.push(change),
            }
        }
        // Where untimed entries overlap, the later one wins, so entries that only fill gaps are moved to the front. The
        // sort is stable: all other entries stay in the order of their sources.
        untimed.sort_by_key(|change| !change.fills_in);
        let mut map = Self::default();
        for (pid, program) in programs::find_programs(&untimed, processes) {
            map.layers.entry(pid).or_default().program = Some(program);
        }
        sweep::replay_untimed(untimed, pool, |batch| {
            // Only overlaps of untimed entries are counted. Where they overlap, only the last one can be found, so some
            // samples get a wrong name. That timed code replaces other code is normal.
            map.overlaps += batch.overlaps;
            map.append(batch, |layer| &mut layer.untimed);
        });
        sweep::replay_timed(timed, &codes, processes, pool, |batch| map.append(batch, |layer| &mut layer.timed));
        sweep::replay_timed(gap_filling, &codes, processes, pool, |batch| {
            map.append(batch, |layer| &mut layer.gap_filling);
        });
        pool.install(|| {
            for layer in map.layers.values_mut() {
                layer.timed.finish(&mut map.segments);
                layer.gap_filling.finish(&mut map.segments);
                layer.untimed.finish(&mut map.segments);
            }
        });
        map.codes = codes;
        if !map.is_empty() {
            // Only forks of processes that have code can pass code on.
            map.ancestry = Ancestry::new(processes).limited_to(|pid| map.layers.contains_key(&pid));
        }
        map
    }

    /// Adds the segments of a replayed batch. `select_index` chooses to which of the three indexes of a process they
    /// are added: timed, gap-filling or untimed.
    fn append(&mut self, mut batch: Batch, select_index: impl Fn(&mut Layer) -> &mut SegmentIndex) {
        for (pid, index) in batch.indexes {
            select_index(self.layers.entry(pid).or_default()).append(index, self.segments.len());
        }
        self.segments.append(&mut batch.segments);
    }

    /// The code at `addr` in process `pid` at `time`; `None` if no code is known there. Without a time, the last code
    /// that was at the address. For a return address, pass the result of [`crate::model::FrameAddr::for_lookup`].
    pub fn lookup(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> Option<Hit> {
        if self.is_empty() {
            return None;
        }
        let (index, kind) = self.find_segment(pid, addr, time)?;
        let segment = &self.segments()[index];
        let offset = segment.offset + (addr.0 - segment.start.0);
        Some(Hit { code: segment.code, segment: SegmentId(index as u32), offset, kind })
    }

    /// The index of the segment that wins at this address and time, and the kind of entry in which it was found. Timed
    /// code wins over code that fills gaps, which wins over untimed code. Among entries of one kind, the process's own
    /// code wins over what it inherited from its ancestors. Without a time, finds the last code that was at the
    /// address, in the same order of precedence.
    fn find_segment(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> Option<(usize, HitKind)> {
        // The process comes first, then its ancestors. An ancestor is looked at as of the fork.
        let family = self.family(pid, time);
        for (layer, time) in family.clone() {
            if let Some(index) = layer.timed.find_live(self.segments(), addr, time) {
                return Some((index, HitKind::Live));
            }
        }
        for (layer, time) in family.clone() {
            if let Some(index) = layer.gap_filling.find_live(self.segments(), addr, time) {
                return Some((index, HitKind::FilledIn));
            }
        }
        for (layer, time) in family {
            // Untimed segments have no period of their own. So only the program's period is compared with `time`.
            if layer.has_untimed_at(time)
                && let Some(index) = layer.untimed.find_live(self.segments(), addr, None)
            {
                return Some((index, HitKind::Untimed));
            }
        }
        None
    }

    /// Finds the code at `addr` at `time`, and the period around `time` in which that answer stays the same.
    pub fn lookup_lasting(&self, pid: Pid, addr: Addr, time: Nanos) -> Lasting<Option<Hit>> {
        let answer = self.lookup(pid, addr, Some(time));
        let holds = match answer {
            // A process's own live code wins over everything else, so the answer stays the same for as long as its
            // segment lasts.
            Some(Hit { kind: HitKind::Live, segment, .. }) if self.segment(segment).pid == pid => {
                let Segment { from, until, .. } = *self.segment(segment);
                from..until
            }
            // Otherwise, the answer may change as soon as the process loads or loses code of its own at this address,
            // or inherits from other processes.
            _ => intersect(self.ancestry.inherited_code_period(pid, time), self.quiet_period(pid, addr, time)),
        };
        Lasting { answer, holds }
    }

    /// True if the process, or an ancestor, had code at `addr` at any time. A sample at `addr` that nevertheless has no
    /// name ran before the code was logged, after the code was gone, or in another program of the process.
    pub fn has_code_at_other_times(&self, pid: Pid, addr: Addr) -> bool {
        if self.is_empty() {
            return false;
        }
        let layers = self.ancestry.ancestors(pid).filter_map(|pid| self.layers.get(&pid));
        let mut indexes = layers.flat_map(|layer| [&layer.timed, &layer.gap_filling, &layer.untimed]);
        indexes.any(|index| index.any(self.segments(), addr, |_| true))
    }

    /// The longest period around `time` in which none of the process's own code begins or ends at `addr`, and in which
    /// its untimed entries apply either all the time or never.
    fn quiet_period(&self, pid: Pid, addr: Addr, time: Nanos) -> Range<Nanos> {
        let Some(layer) = self.layers.get(&pid) else { return ALWAYS };
        let timed = layer.timed.quiet_period(self.segments(), addr, time);
        let gap_filling = layer.gap_filling.quiet_period(self.segments(), addr, time);
        let mut same_program = QuietPeriod::new(time);
        if let Some(program) = &layer.program {
            same_program.cut(program.clone());
        }
        intersect(intersect(timed, gap_filling), same_program.range)
    }

    /// True if timed code with a name other than `name` was at `addr` at any time. For a sample without a time, it is
    /// then unclear which code ran.
    pub fn has_other_names(&self, pid: Pid, addr: Addr, name: &[u8]) -> bool {
        self.may_be_other(pid, addr, name, ALWAYS)
    }

    /// True if timed code with a name other than `name` was at `addr` at any time in `times`. For a sample whose time
    /// is inexact, that code may be the one that ran.
    pub fn may_be_other(&self, pid: Pid, addr: Addr, name: &[u8], times: Range<Nanos>) -> bool {
        let is_other = |segment: &Segment| {
            let was_there_then = segment.from < times.end && segment.until > times.start;
            was_there_then && self.code(segment.code).name != name
        };
        // `name` is the name that [`Self::lookup`] found, so if there are timed loads at `addr`, it is the name of one
        // of them. It is then compared only with names of timed loads: a source that fills gaps may spell the same
        // function's name differently.
        //
        // Without a time (`None`), the family is the process and those ancestors whose code it still has at the end.
        let mut family = self.family(pid, None);
        let has_timed = family.clone().any(|(layer, _)| layer.timed.any(self.segments(), addr, |_| true));
        family.any(|(layer, _)| {
            let index = if has_timed { &layer.timed } else { &layer.gap_filling };
            index.any(self.segments(), addr, is_other)
        })
    }

    /// The layers of a process and then of its ancestors, nearest first. Each comes with the time at which to look in
    /// it, which for an ancestor is no later than the fork. `None` means to look for the last code at an address.
    fn family(&self, pid: Pid, time: Option<Nanos>) -> impl Iterator<Item = (&Layer, Option<Nanos>)> + Clone + '_ {
        let ancestors = self.ancestry.inherited_code(pid, time);
        ancestors.filter_map(|Ancestor { pid, time }| Some((self.layers.get(&pid)?, time)))
    }

    /// The code with this number.
    pub fn code(&self, id: CodeId) -> Code<'data> {
        self.codes.get(id)
    }

    /// The name of the code with this number.
    pub fn name(&self, id: CodeId) -> &'data [u8] {
        self.codes.name(id)
    }

    /// The number of pieces of code in the map. They are numbered from 0.
    pub fn code_count(&self) -> usize {
        self.codes.len()
    }

    /// True if any code from the source `origin` has unwind information.
    pub fn has_unwinding(&self, origin: crate::model::code::OriginId) -> bool {
        let mut codes = (0..self.code_count()).map(|index| self.code(CodeId(index as u32)));
        codes.any(|code| code.origin == origin && code.unwind.is_some())
    }

    /// The segment with this number.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.segments[id.0 as usize]
    }

    /// All segments, in the order of their numbers.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The processes that have loaded code themselves. Processes that only inherited code are not included.
    pub fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.layers.keys().copied()
    }

    /// Address ranges in which each process had code at some time: process, start, end. Inside a range there may be
    /// holes without code, but none as large as a page. The ranges of a process may overlap and aren't sorted.
    pub fn extents(&self) -> impl Iterator<Item = (Pid, Addr, Addr)> + '_ {
        self.layers.iter().flat_map(|(pid, layer)| {
            let all = layer.timed.extents().chain(layer.gap_filling.extents()).chain(layer.untimed.extents());
            all.map(|(start, end)| (*pid, start, end))
        })
    }

    /// The number of untimed entries that overwrote an earlier untimed entry, at least in part.
    pub fn overlaps(&self) -> u64 {
        self.overlaps
    }

    /// Returns a copy of the map with other code: each piece is replaced by what `convert` returns for its number. All
    /// segments stay the same. The copy can outlive the files from which the code was read.
    pub(crate) fn with_code<'new>(&self, convert: impl Fn(CodeId) -> Code<'new>) -> CodeMap<'new> {
        let mut codes = Codes::default();
        for id in 0..self.codes.len() {
            codes.push(&convert(CodeId(id as u32)));
        }
        let (segments, layers) = (self.segments.clone(), self.layers.clone());
        let (ancestry, call_tests) = (self.ancestry.clone(), self.call_tests.clone());
        CodeMap { codes, segments, layers, ancestry, overlaps: self.overlaps, call_tests }
    }

    /// True if there is no code.
    pub fn is_empty(&self) -> bool {
        self.codes.len() == 0
    }
}

#[cfg(test)]
mod tests;
