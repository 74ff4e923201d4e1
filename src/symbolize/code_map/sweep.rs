//! Replays loads, moves, file mappings and execs in time order, and collects the resulting segments: which code was at
//! which addresses, from when to when.
//!
//! Code ranges that share no address don't influence each other. Changes are therefore split into groups with disjoint
//! addresses. Groups are replayed independently and in parallel, and each is small enough for the processor's cache.

use super::list::{Change, ChangeKind, Codes};
use super::live::Live;
use super::segment_index::{Segment, SegmentIndex};
use crate::model::process::{Process, Processes};
use crate::model::ranges::{OrderedRanges, RangeMap, Span};
use crate::model::{Addr, Nanos, Pid};
use crate::parallel::{self, Pool};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// When a group of changes has this many, it ends at the next opportunity: before a change whose addresses are all
/// above those of the group. With a smaller number there would be more groups to search; with a larger one, more
/// segments to scan (measured by `benches/code_map.rs`).
const GROUP_LEN: usize = 5;

/// A gap of at least this many bytes between two changes always ends a group of changes, so that the address range of a
/// group shows where code can be.
const PAGE: u64 = 4096;

/// About how many changes are processed as one batch on one thread.
const BATCH_LEN: usize = 1 << 14;

/// The segments that result from the replay of some groups.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) segments: Vec<Segment>,
    /// The index of each process's segments.
    pub(super) indexes: BTreeMap<Pid, SegmentIndex>,
    /// How many changes overwrote code of earlier changes.
    pub(super) overlaps: u64,
}

/// Replays untimed entries, and the events that cancel some of them ([`ChangeKind::Hidden`]). `changes` are in the
/// order of the sources; where entries overlap, the later one wins. Passes the segments to `sink` like
/// [`replay_timed`].
pub(super) fn replay_untimed(mut changes: Vec<Change>, pool: &Pool, sink: impl FnMut(Batch)) {
    set_order(&mut changes);
    replay(changes, &FxHashMap::default(), pool, sink);
}

/// Replays timed loads, moves and unloads together with the execs and file mappings of the processes, which end code,
/// too. Changes with the same time are replayed in the order of the sources. Passes the segments to `sink`, batch by
/// batch, ordered by process and address.
pub(super) fn replay_timed(
    mut changes: Vec<Change>,
    codes: &Codes<'_>,
    processes: &Processes,
    pool: &Pool,
    sink: impl FnMut(Batch),
) {
    if changes.is_empty() {
        return;
    }
    if !changes.is_sorted_by_key(|change| change.time) {
        pool.install(|| parallel::sort_by_key(&mut changes, |change| change.time));
    }
    // `replay` sorts the changes by address. It replays those of a group in the order that is noted here.
    set_order(&mut changes);
    // Code that moves is gone from its old address. `add_gone` adds a change that says so, with the same place in the
    // order as the move. So the order must be set before.
    add_gone(&mut changes, codes);
    let mut cuts = FxHashMap::default();
    for (pid, process) in &processes.by_pid {
        cuts.insert(*pid, Cuts::from_process(process));
    }
    replay(changes, &cuts, pool, sink);
}

/// Numbers the changes in their current order. The replay sorts them by address first, and returns to this order within
/// each group.
fn set_order(changes: &mut [Change]) {
    for (change, order) in changes.iter_mut().zip(0..) {
        change.order = order;
    }
}

/// For each move, adds a [`ChangeKind::Gone`] at the address that the code moved away from. `changes` must be in the
/// order of time. The added change has the same place in that order as its move, but `Gone` is the lowest kind, so it
/// is replayed just before the move.
fn add_gone(changes: &mut Vec<Change>, codes: &Codes<'_>) {
    // For code that has been moved so far: its current address. All other code is where it was loaded.
    let mut moved: FxHashMap<_, Addr> = FxHashMap::default();
    let mut gone = Vec::new();
    for change in changes.iter().filter(|change| change.kind == ChangeKind::Move) {
        let previous = moved.insert((change.pid, change.code), change.start);
        let start = previous.unwrap_or_else(|| codes.addr(change.code));
        let end = Addr(start.0.saturating_add(codes.size(change.code)));
        gone.push(Change { start, end, kind: ChangeKind::Gone, ..*change });
    }
    changes.extend(gone);
}

/// Replays all changes, and the execs and file mappings in `cuts` that end code. Changes of one process that share
/// addresses form a group; groups don't influence each other, so batches of whole groups are replayed in parallel.
/// Passes the resulting segments to `sink`, batch by batch, ordered by process and address.
fn replay(mut changes: Vec<Change>, cuts: &FxHashMap<Pid, Cuts>, pool: &Pool, mut sink: impl FnMut(Batch)) {
    // Changes that cover no address have no effect.
    changes.retain(|change| change.start < change.end);
    let by_address = |change: &Change| (change.pid, change.start, change.order, change.kind);
    pool.install(|| parallel::sort_unstable_by_key(&mut changes, by_address));
    let mut rest = changes.as_mut_slice();
    let next_batch = || {
        let mut len = 0;
        while len < BATCH_LEN && len < rest.len() {
            len += first_group_len(&rest[len..]);
        }
        if len > 0 { rest.split_off_mut(..len) } else { None }
    };
    pool.each(std::iter::from_fn(next_batch), |batch| replay_batch(batch, cuts), &mut sink);
}

/// The number of changes in the first group of `changes`, which must be sorted by process and address. The changes of a
/// group share no address with changes after them. A group has about [`GROUP_LEN`] changes, or more if they overlap,
/// and no gap of a [`PAGE`].
fn first_group_len(changes: &[Change]) -> usize {
    let mut end = Addr(0);
    for (index, change) in changes.iter().enumerate() {
        // The distance from the end of the group so far; `None` if the change overlaps the group.
        let gap = change.start.0.checked_sub(end.0);
        let is_apart = gap.is_some_and(|gap| index >= GROUP_LEN || gap >= PAGE);
        if index > 0 && (is_apart || change.pid != changes[0].pid) {
            return index;
        }
        end = end.max(change.end);
    }
    changes.len()
}

/// Replays the groups of a batch, one after the other, each in the order of time. `changes` are sorted by process and
/// address. `cuts` are each process's execs and file mappings, which end code.
fn replay_batch(mut changes: &mut [Change], cuts: &FxHashMap<Pid, Cuts>) -> Batch {
    let mut batch = Batch::default();
    // The code in memory at the current moment of the replay. It is empty again after each group.
    let mut live = Live::default();
    while !changes.is_empty() {
        let (group, rest) = changes.split_at_mut(first_group_len(changes));
        changes = rest;
        let Change { pid, start, .. } = group[0];
        let end = group.iter().map(|change| change.end).max().unwrap_or(start);
        group.sort_unstable_by_key(|change| (change.order, change.kind));
        batch.overlaps += replay_group(&mut live, group, cuts.get(&pid), start..end);
        let first = batch.segments.len();
        live.finish(pid, &mut batch.segments);
        let indices = first..batch.segments.len();
        batch.indexes.entry(pid).or_default().push(start..end, indices, &mut batch.segments);
    }
    batch
}

/// Replays the changes of one group, which all lie in `addresses`. `live` is the code in memory at the current moment;
/// `cuts` are the process's execs and file mappings, which end code. Returns how many changes overwrote earlier code.
fn replay_group(live: &mut Live, changes: &[Change], cuts: Option<&Cuts>, addresses: Range<Addr>) -> u64 {
    let mut overlaps = 0;
    let mut now = None;
    for change in changes {
        // File mappings and execs before this change, or at the same time, are replayed first.
        if let Some(cuts) = cuts {
            cuts.end_code(live, &addresses, now, change.time);
        }
        now = Some(change.time);
        match change.kind {
            ChangeKind::Gone => live.remove(change),
            // Earlier entries end here and nothing takes their place. This doesn't count as an overlap, because no name
            // is wrong. All untimed entries begin at time 0, and this event has time 0, too, so no segment is left of
            // what it cancels.
            ChangeKind::Hidden => _ = live.cut(change.start, change.end, change.time),
            // Not reached: `CodeMap::build` has left out events without effect.
            ChangeKind::Nothing => {}
            ChangeKind::Load | ChangeKind::Move | ChangeKind::Untimed => {
                overlaps += u64::from(live.cut(change.start, change.end, change.time));
                live.put(change);
            }
        }
    }
    if let Some(cuts) = cuts {
        cuts.end_code(live, &addresses, now, Nanos(u64::MAX));
    }
    overlaps
}

/// What else ends the code of a process, apart from loads, moves and unloads: a file that is mapped over code ends the
/// code there, and an exec ends all code.
#[derive(Debug, Default)]
struct Cuts {
    /// When the process called exec, in order.
    execs: Vec<Nanos>,
    /// Where and when executable memory of files was mapped, ordered by time.
    files: OrderedRanges<MappedFileAt>,
}

/// Where and when executable memory of a file was mapped.
#[derive(Debug, Clone, Copy)]
struct MappedFileAt {
    start: Addr,
    end: Addr,
    time: Nanos,
}

/// A file, and the address where its first byte would be if the whole file were mapped. Two mappings for which both are
/// equal show the same bytes of the file at the same addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MappedFile<'a> {
    path: &'a [u8],
    first_byte: u64,
}

impl Span for MappedFileAt {
    fn range(&self) -> Range<u64> {
        self.start.0..self.end.0
    }
}

impl Cuts {
    /// Collects the execs of a process, and the mappings of files that end its code.
    fn from_process(process: &Process) -> Self {
        let mut execs = process.execs.clone();
        execs.sort_unstable();
        let mut files = Vec::new();
        // What the current program has mapped so far, and the number of execs before that program. Mappings are in the
        // order of time.
        let (mut mapped, mut past_execs) = (RangeMap::default(), 0);
        for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
            while execs.get(past_execs).is_some_and(|exec| *exec <= mapping.time) {
                past_execs += 1;
                mapped = RangeMap::default();
            }
            let range = mapping.addr.0..mapping.addr.0.saturating_add(mapping.len);
            let file = MappedFile { path: &mapping.path, first_byte: range.start.wrapping_sub(mapping.pgoff) };
            // False for anonymous memory, which runtimes map again to grow it. Also false for jitdumps and ELF
            // images of JIT code, because they don't replace code.
            if mapping.kind().ends_jit_code() {
                // Mapping a file again where the same bytes of it are already mapped ends no code. It happens if a
                // compiler maps its code from a file and then changes the protection. Code ends only in the gaps
                // between the parts that were already mapped.
                let mut gap_start = range.start;
                for same in mapped.overlapping(range.clone()).filter(|entry| entry.value == file) {
                    if gap_start < same.start {
                        files.push(MappedFileAt { start: Addr(gap_start), end: Addr(same.start), time: mapping.time });
                    }
                    gap_start = same.end;
                }
                if gap_start < range.end {
                    files.push(MappedFileAt { start: Addr(gap_start), end: Addr(range.end), time: mapping.time });
                }
            }
            mapped.insert(range, file, |_| {});
        }
        files.sort_by_key(|file| file.time);
        Self { execs, files: OrderedRanges::new(files) }
    }

    /// Ends code in `addresses` at each file mapping or exec that is later than `now` and no later than `until`, in the
    /// order of time. If `now` is `None`, nothing has been replayed yet. Stops early if no code is left.
    fn end_code(&self, live: &mut Live, addresses: &Range<Addr>, now: Option<Nanos>, until: Nanos) {
        if live.is_empty() {
            return;
        }
        let is_past = |time: Nanos| now.is_some_and(|now| time <= now);
        // An exec ends all code, so only the next exec counts, and only mappings before it.
        let next_exec = self.execs.get(self.execs.partition_point(|exec| is_past(*exec)));
        let next_exec = next_exec.copied().filter(|exec| *exec <= until);
        let mut next_file = self.files.position(|file| is_past(file.time));
        // `first_over` finds the first mapping, from number `next_file` on, that overlaps `addresses`.
        while !live.is_empty()
            && let Some(index) = self.files.first_over(addresses.start.0..addresses.end.0, next_file)
            && let MappedFileAt { start, end, time } = self.files.as_slice()[index]
            && time <= until
            && next_exec.is_none_or(|exec| time < exec)
        {
            live.cut(start, end, time);
            next_file = index + 1;
        }
        if let Some(exec) = next_exec
            && !live.is_empty()
        {
            live.cut(Addr(0), Addr(u64::MAX), exec);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::mapping_kind::{MappingKind, tests::paths_where};

    #[test]
    fn files_end_code_that_they_are_mapped_over() {
        let expected = [
            "/lib/modules/6.1/kernel/fs/ext4.ko",
            "/usr/bin/node",
            "/usr/lib/libc.so.6 (deleted)",
            "/dev/shm/code",
            "/x/core.dump",
            "/tmp/perf-77.map",
        ];
        assert_eq!(paths_where(|path| MappingKind::from_path(path).ends_jit_code()), expected);
    }
}
