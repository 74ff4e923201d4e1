//! The IDs that processes have in their own PID namespaces. Files of a process in a container are named after these.
//!
//! Such an ID doesn't identify a process: each of two containers has its process 1, and both may have written
//! `/tmp/jit-1.dump`. The name of such a file doesn't say which of the processes it belongs to; only its location or
//! contents do.

use super::markers::inner_pid;
use super::scene::Scene;
use crate::model::Pid;
use crate::model::process::FileId;
use std::collections::{BTreeMap, BTreeSet};

impl Scene<'_> {
    /// The IDs that a process may have in its own PID namespace, most likely ones first. The recorded ID is among them.
    pub(super) fn inner_pids(&self, pid: Pid) -> Vec<Pid> {
        let stated = self.options.map_pid.iter().filter(|(_, outer)| *outer == pid).map(|(inner, _)| *inner);
        let running = self.live.get(&pid).and_then(|live| live.inner);
        let recorded = self.process(pid).and_then(|process| process.inner_pid);
        let mut all: Vec<Pid> = stated.chain(running).chain(recorded).collect();
        let is_known = !all.is_empty();
        // The recorded ID counts, too: somebody who knew it may have named a copy of a jitdump or perf map after it.
        all.push(pid);
        if !is_known {
            // The name of a process's marker contains its inner ID. IDs of recorded processes are left out: a child
            // inherits its parent's marker, whose name contains the parent's ID.
            let in_markers = self.markers.process_markers(pid).iter().filter_map(|marker| inner_pid(&marker.path));
            all.extend(in_markers.filter(|inner| self.process(*inner).is_none()));
        }
        let mut seen = BTreeSet::new();
        all.retain(|pid| seen.insert(*pid));
        all
    }

    /// Finds IDs that several processes have in their own PID namespaces. Processes whose markers are the same file
    /// count as one, because they are forks of the process that wrote it.
    pub(super) fn find_shared_pids(&self) -> BTreeSet<Pid> {
        /// Who has an ID: all processes whose marker with this ID is the same file, or one process without such a
        /// marker.
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum Claimant {
            Marker(FileId),
            Process(Pid),
        }
        let mut claims: BTreeMap<Pid, BTreeSet<Claimant>> = BTreeMap::new();
        for &pid in &self.jit_processes {
            for inner in self.inner_pids(pid) {
                // `inner` is also the recorded ID of a process with JIT memory. A file named after `inner` is taken to
                // be that process's file, so the ID isn't ambiguous.
                if self.jit_processes.binary_search(&inner).is_ok() {
                    continue;
                }
                let claimant = match self.markers.file_with_pid_in_name(pid, inner) {
                    Some(file) => Claimant::Marker(file),
                    None => Claimant::Process(pid),
                };
                claims.entry(inner).or_default().insert(claimant);
            }
        }
        claims.into_iter().filter(|(_, claimants)| claimants.len() > 1).map(|(inner, _)| inner).collect()
    }
}
