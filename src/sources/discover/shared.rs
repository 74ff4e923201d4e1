//! Numbers that are not identity: each of two containers has its process 1, and both wrote `/tmp/jit-1.dump`. A file of
//! such a number is not taken for either by its name; where it is found, or what it holds, shows whose it is.

use super::Finder;
use crate::error::Warning;
use crate::model::Pid;
use crate::model::process::{FileId, Marker};
use crate::sources::trust::file_id;
use std::collections::{BTreeMap, BTreeSet};

impl Finder<'_> {
    /// Numbers by which several processes know themselves. Those that share one marker's file share its number, too:
    /// they were forked from the one that wrote it.
    pub(super) fn shared_numbers(&self) -> BTreeSet<Pid> {
        let mut claims: BTreeMap<Pid, BTreeSet<(Option<FileId>, Pid)>> = BTreeMap::new();
        for &pid in self.jit_processes {
            for inner in
                self.inner_pids(pid).into_iter().filter(|inner| self.jit_processes.binary_search(inner).is_err())
            {
                let file = self.markers.file(pid, inner);
                let claimant = if file.is_some() { Pid(0) } else { pid };
                claims.entry(inner).or_default().insert((file, claimant));
            }
        }
        claims.into_iter().filter(|(_, claimants)| claimants.len() > 1).map(|(inner, _)| inner).collect()
    }

    /// The file at a marker's path may have been written anew since.
    pub(super) fn say_if_replaced(&mut self, marker: &Marker) {
        let Some(source) = self.found.files.last().filter(|source| source.path == marker.path) else { return };
        let (own, recorded) = (source.about.as_ref().map(file_id), marker.file);
        let same_device =
            |(own, recorded): &(FileId, FileId)| (own.major, own.minor) == (recorded.major, recorded.minor);
        if own.zip(recorded).filter(same_device).is_some_and(|(own, recorded)| own.inode != recorded.inode) {
            let said = format!(
                "is not the file that process {} had mapped (its inode is another one): it may be a copy, or of a later run",
                marker.pid
            );
            self.warnings.push(Warning::new(said).in_file(&marker.path, None));
        }
    }
}
