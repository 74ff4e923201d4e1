//! Workers that a server forked before the recording began, as PHP-FPM does: nothing recorded shows whose children they
//! are, but they run the server's JIT code, in memory that both have. The map that names it goes by the server's
//! number.

use super::{Finder, Source, used_unasked};
use crate::model::Pid;
use crate::model::process::SharedMemory;
use crate::sources::account::Kind;
use crate::sources::live;

impl Finder<'_> {
    /// Maps of the running processes from which recorded ones were forked.
    pub(super) fn by_parent(&mut self) {
        let Some(proc) = self.site.proc else { return };
        for (pid, memory) in self.sharing_without_map() {
            if !self.found.live.contains_key(&pid) {
                continue;
            }
            let parents = live::parents_with(proc, pid, memory);
            if let Some(parent) = parents.into_iter().find(|parent| self.map_by_number(pid, *parent)) {
                let why = format!("which shares its JIT memory with its parent, process {parent}");
                let source = self.found.files.last_mut();
                source.into_iter().for_each(|source| source.remark = Some(used_unasked(&source.path, pid, &why)));
            }
        }
    }

    /// A file that is used for a process is used for those, too, that have the same memory.
    pub(super) fn by_shared_memory(&mut self) {
        for (pid, memory) in self.sharing_without_map() {
            let has_it = |source: &&Source| source.kind == Kind::PerfMap && self.memory_of(source.pid) == Some(memory);
            if let Some(source) = self.found.files.iter().find(has_it) {
                let why = format!("which shares its JIT memory with process {}", source.pid);
                let remark = Some(used_unasked(&source.path, pid, &why));
                let (path, contents) = (source.path.clone(), source.contents());
                let source = Source { inner: source.inner, remark, ..Source::new(path, source.kind, pid, contents) };
                self.add(source);
            }
        }
    }

    /// Processes without a map whose forks were not recorded, and the memory that they may share with others.
    fn sharing_without_map(&self) -> Vec<(Pid, SharedMemory)> {
        let pids = self.jit_processes.iter().filter(|pid| !self.kinds.contains(&(**pid, Kind::PerfMap)));
        pids.filter_map(|&pid| Some((pid, self.memory_of(pid)?))).collect()
    }

    fn memory_of(&self, pid: Pid) -> Option<SharedMemory> {
        let process = self.processes.by_pid.get(&pid).filter(|process| !process.is_injected())?;
        process.shared_jit_memory()
    }
}
