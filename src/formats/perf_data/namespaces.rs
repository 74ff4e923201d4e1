//! Determines the ID of a process inside its PID namespace by counting forks.
//!
//! With `perf record --namespaces` the kernel writes a NAMESPACES record for every new thread (`perf_event_namespaces`
//! in kernel/events/core.c). The record identifies the namespace, but doesn't contain the thread's ID inside it. A
//! namespace hands out IDs in sequence, so if it was created during the recording, the forks into it can be counted.

use super::record::{Namespaces, Task};
use crate::model::{Pid, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Identity of a namespace: device and inode of its file below `/proc/PID/ns`.
type Namespace = [u8; 16];

/// `PID_NS_INDEX` of include/uapi/linux/perf_event.h: the PID namespace's position in a NAMESPACES record.
const PID_NS_INDEX: usize = 3;

/// The PID namespaces and forks of a recording.
#[derive(Debug, Default)]
pub(super) struct PidNamespaces {
    /// The PID namespace of each thread. A thread never leaves the one it was created in.
    by_thread: FxHashMap<Tid, Namespace>,
    /// All forks so far: one for each new process and thread.
    forks: Vec<Task>,
}

impl PidNamespaces {
    /// Adds a NAMESPACES record.
    pub(super) fn add(&mut self, record: &Namespaces<'_>) {
        if let Some(&namespace) = record.entries.as_chunks().0.get(PID_NS_INDEX) {
            self.by_thread.entry(record.tid).or_insert(namespace);
        }
    }

    /// Adds a FORK record.
    pub(super) fn add_fork(&mut self, task: Task) {
        self.forks.push(task);
    }

    /// Returns two IDs of each process in a PID namespace that was created during the recording: its ID as recorded,
    /// then its ID inside of the namespace.
    pub(super) fn inner_pids(mut self) -> Vec<(Pid, Pid)> {
        if self.by_thread.is_empty() {
            return Vec::new();
        }
        self.forks.sort_by_key(|task| task.time);
        // The tasks in each new namespace, in order of creation. A namespace is new if its first task was forked by a
        // task in another namespace.
        let mut new_namespaces: BTreeMap<Namespace, Vec<Task>> = BTreeMap::new();
        for &task in &self.forks {
            let Some(namespace) = self.by_thread.get(&task.tid) else { continue };
            // Without the parent's namespace, it is unknown whether the task's namespace is new.
            let Some(parent_namespace) = self.by_thread.get(&task.parent_tid) else { continue };
            match new_namespaces.get_mut(namespace) {
                Some(tasks) => tasks.push(task),
                None if namespace != parent_namespace => drop(new_namespaces.insert(*namespace, vec![task])),
                // The parent is in the same namespace, and that isn't a new one.
                None => {}
            }
        }
        // A thread whose fork wasn't recorded is older than the recording, and so is its namespace.
        let forked: FxHashSet<Tid> = self.forks.iter().map(|task| task.tid).collect();
        for (tid, namespace) in &self.by_thread {
            if !forked.contains(tid) {
                new_namespaces.remove(namespace);
            }
        }
        let mut inner_pids = Vec::new();
        for tasks in new_namespaces.into_values() {
            // The kernel numbers the tasks of a namespace from 1. Threads use up IDs too, but only processes are
            // returned.
            for (task, inner_id) in tasks.into_iter().zip(1..) {
                if task.tid.0 == task.pid.0 {
                    inner_pids.push((task.pid, Pid(inner_id)));
                }
            }
        }
        inner_pids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;

    fn add_namespace(all: &mut PidNamespaces, tid: i32, inode: u8) {
        let mut entries = [0; 16 * 7];
        entries[16 * PID_NS_INDEX + 8] = inode;
        // Some other kind of namespace, different for every thread.
        entries[0] = tid as u8;
        all.add(&Namespaces { pid: Pid(tid), tid: Tid(tid), entries: &entries });
    }

    fn fork(all: &mut PidNamespaces, time: u64, pid: i32, tid: i32, parent: i32) {
        let (pid, tid, parent, parent_tid) = (Pid(pid), Tid(tid), Pid(parent), Tid(parent));
        all.add_fork(Task { pid, tid, parent, parent_tid, time: Nanos(time) });
    }

    #[test]
    fn forks_into_a_new_namespace_are_counted() {
        let mut all = PidNamespaces::default();
        add_namespace(&mut all, 10, 1);
        for (time, pid, tid, parent, inode) in
            [(30, 52, 52, 51, 2), (20, 50, 50, 10, 2), (21, 50, 51, 50, 2), (25, 90, 90, 10, 1), (35, 91, 91, 90, 1)]
        {
            fork(&mut all, time, pid, tid, parent);
            add_namespace(&mut all, tid, inode);
        }
        assert_eq!(all.inner_pids(), [(Pid(50), Pid(1)), (Pid(52), Pid(3))], "52 is the third: 51 is a thread");
    }

    #[test]
    fn namespaces_older_than_the_recording_show_no_number() {
        let mut all = PidNamespaces::default();
        add_namespace(&mut all, 10, 1);
        add_namespace(&mut all, 40, 2);
        // A fork by nsenter, from outside the namespace.
        fork(&mut all, 20, 50, 50, 10);
        add_namespace(&mut all, 50, 2);
        assert_eq!(all.inner_pids(), []);
    }
}
