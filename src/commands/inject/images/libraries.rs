//! Finds the mappings of programs and libraries, which images of JIT code must not overlap.

use crate::model::Pid;
use crate::model::ancestry::Ancestry;
use crate::model::process::Processes;
use std::collections::BTreeSet;
use std::ops::Range;

/// The programs and libraries of all processes.
#[derive(Debug)]
pub(super) struct Libraries<'a> {
    processes: &'a Processes,
    ancestry: Ancestry,
}

impl<'a> Libraries<'a> {
    pub(super) fn new(processes: &'a Processes) -> Self {
        Self { processes, ancestry: Ancestry::new(processes) }
    }

    /// Returns the address ranges of the programs and libraries that a process and all its descendants have mapped. The
    /// descendants count because they inherit the process's JIT code.
    pub(super) fn ranges(&self, pid: Pid) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        for (&other_pid, process) in &self.processes.by_pid {
            // The first ancestor is the process itself.
            let shares_code = self.ancestry.ancestors(other_pid).any(|ancestor| ancestor == pid);
            if !shares_code {
                continue;
            }
            // A file is a program or library if code of it is mapped. All of its mappings are returned, those of data,
            // too.
            let code = process.mappings.iter().filter(|map| map.executable && map.kind().is_library());
            let paths: BTreeSet<&[u8]> = code.map(|map| map.path.as_slice()).collect();
            let maps = process.mappings.iter().filter(|map| paths.contains(map.path.as_slice()));
            ranges.extend(maps.map(|map| map.addr.0..map.addr.0.saturating_add(map.len)));
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use crate::model::mapping_kind::{MappingKind, tests::paths_where};

    #[test]
    fn images_keep_away_from_other_files() {
        let expected = [
            "/lib/modules/6.1/kernel/fs/ext4.ko",
            "/usr/bin/node",
            "/usr/lib/libc.so.6 (deleted)",
            "/dev/shm/code",
            "/usr/lib/jit-helper.so",
            "/tmp/perf-77.map",
            "/run/jitted-77.so",
            "/run/jitted-77-3.so",
        ];
        assert_eq!(paths_where(|path| MappingKind::from_path(path).is_library()), expected);
    }
}
