//! Groups an event's rows by thread and sorts them by time, for formats that have one timeline per thread.
//!
//! A thread that was renamed (by exec or by itself), or that ran on several CPUs if these are kept apart, has several
//! tracks. They are combined into one thread with the last name.

use crate::model::stacks::{Profile, Row, Series, TrackId};
use crate::model::units::{Pid, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The rows of one thread.
#[derive(Debug, Clone)]
pub struct ThreadRows<'p> {
    /// The process ID.
    pub pid: Option<Pid>,
    /// The thread ID.
    pub tid: Option<Tid>,
    /// The thread's last name.
    pub comm: &'p [u8],
    /// Sorted by time; rows without a time come last. Rows with the same time are in the profile's order.
    pub rows: Vec<&'p Row>,
}

impl ThreadRows<'_> {
    /// True for a process's first thread, whose ID is the process ID.
    pub fn is_main(&self) -> bool {
        self.tid.is_none() || self.tid.map(|tid| tid.0) == self.pid.map(|pid| pid.0)
    }
}

/// All threads of an event. Processes come after their parents, and a process's first thread before its others.
pub fn threads<'p>(profile: &'p Profile, series: &'p Series) -> Vec<ThreadRows<'p>> {
    let mut threads: Vec<ThreadRows<'p>> = Vec::new();
    let mut indices: FxHashMap<(Option<Pid>, ThreadKey), usize> = FxHashMap::default();
    for row in &series.rows {
        let track = profile.track_of(row.track);
        let key = track.tid.map_or(ThreadKey::Track(row.track), ThreadKey::Tid);
        let index = *indices.entry((track.pid, key)).or_insert(threads.len());
        if index == threads.len() {
            threads.push(ThreadRows { pid: track.pid, tid: track.tid, comm: &track.comm, rows: Vec::new() });
        }
        threads[index].rows.push(row);
    }
    for thread in &mut threads {
        // Rows without a time come last.
        thread.rows.sort_by_key(|row| (row.time.is_none(), row.time));
        // If the thread changed its name, it has several tracks, and the last name counts.
        if let Some(last) = thread.rows.last() {
            thread.comm = &profile.track_of(last.track).comm;
        }
    }
    let order = process_order(profile, &threads);
    threads.sort_by_key(|thread| {
        let process_position = thread.pid.and_then(|pid| order.get(&pid)).copied();
        // A process's first thread comes before its others, because `false` sorts before `true`.
        (process_position, !thread.is_main(), thread.tid.map(|tid| tid.0))
    });
    threads
}

/// The median time between consecutive samples of a thread, in nanoseconds; `None` if no thread has two samples with
/// times.
pub fn middle_distance(threads: &[ThreadRows<'_>]) -> Option<u64> {
    let mut distances: Vec<u64> = Vec::new();
    for thread in threads {
        let times: Vec<u64> = thread.rows.iter().filter_map(|row| Some(row.time?.0)).collect();
        distances.extend(times.windows(2).map(|pair| pair[1] - pair[0]));
    }
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied()
}

/// Identifies a thread within its process. If the thread ID is unknown, each track counts as a thread of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ThreadKey {
    Tid(Tid),
    Track(TrackId),
}

/// The position of each process in the output: parents before children, siblings in the order of their first samples.
fn process_order(profile: &Profile, threads: &[ThreadRows<'_>]) -> FxHashMap<Pid, usize> {
    // The children of each process. Under `None` are the processes whose parent isn't known.
    let mut children: BTreeMap<Option<Pid>, Vec<Pid>> = BTreeMap::new();
    let pids: FxHashSet<Pid> = threads.iter().filter_map(|thread| thread.pid).collect();
    // Visit each process once, even if it has several threads.
    let mut visited = FxHashSet::default();
    for pid in threads.iter().filter_map(|thread| thread.pid).filter(|pid| visited.insert(*pid)) {
        let parent = profile.about.processes.get(&pid).and_then(|life| life.parent);
        // Ignore a parent that has no samples here, such as the recorder itself.
        let parent = parent.filter(|parent| *parent != pid && pids.contains(parent));
        children.entry(parent).or_default().push(pid);
    }
    let mut order = FxHashMap::default();
    let mut waiting: Vec<Pid> = children.get(&None).into_iter().flatten().rev().copied().collect();
    while let Some(pid) = waiting.pop() {
        let position = order.len();
        // Add the children only when a process is reached for the first time. In damaged input, a process may be its
        // own ancestor, and is then reached again.
        if order.insert(pid, position).is_none() {
            waiting.extend(children.get(&Some(pid)).into_iter().flatten().rev());
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;
    use crate::model::about::ProcessLife;
    use crate::model::stacks::Track;

    #[test]
    fn threads_are_under_their_processes_and_children_behind_their_parents() {
        let mut profile = Profile::new();
        let series = profile.series_named("cycles", Default::default());
        for (comm, pid, tid, time) in
            [("late", 3, 3, 9), ("child", 5, 5, 4), ("worker", 4, 6, 3), ("main", 4, 4, 2), ("sh", 4, 4, 1)]
        {
            let track = profile.track(Track {
                comm: comm.into(),
                pid: Some(Pid(pid)),
                tid: Some(Tid(tid)),
                ..Track::default()
            });
            profile.push(series, Row { track, stack: None, weight: 1, count: 1, time: Some(Nanos(time)) });
        }
        for (pid, parent) in [(5, 4), (4, 1)] {
            let life = ProcessLife { parent: Some(Pid(parent)), ..ProcessLife::default() };
            profile.about.processes.insert(Pid(pid), life);
        }
        let found = threads(&profile, &profile.series[0]);
        let names: Vec<_> = found.iter().map(|thread| String::from_utf8_lossy(thread.comm).into_owned()).collect();
        assert_eq!(names, ["late", "main", "worker", "child"]);
        assert_eq!(found[1].rows.len(), 2);
    }
}
