//! Looks up a recording's jitdump markers by process and by path. A marker is a mapping of a jitdump into the process
//! that writes it, made so that the recording mentions the jitdump. There may be as many markers as processes.

use crate::jit::engine_logs::LogId;
use crate::model::Pid;
use crate::model::process::{FileId, Marker, Processes};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

/// The markers of a recording: the jitdumps that processes mapped so that the recording mentions them.
#[derive(Debug, Default)]
pub(super) struct Markers<'a> {
    by_pid: BTreeMap<Pid, Vec<&'a Marker>>,
    /// For each path, the files that were mapped under it, and the processes that mapped each of them.
    by_path: BTreeMap<&'a OsStr, BTreeMap<FileId, BTreeSet<Pid>>>,
}

impl<'a> Markers<'a> {
    /// Indexes the markers of all processes.
    pub(super) fn new(processes: &'a Processes) -> Self {
        let mut markers = Self::default();
        for marker in &processes.markers {
            markers.by_pid.entry(marker.pid).or_default().push(marker);
            // Without device and inode, it can't be told whether two markers at one path are the same file.
            if let Some(file) = marker.file {
                let files = markers.by_path.entry(marker.path.as_os_str()).or_default();
                files.entry(file).or_default().insert(marker.pid);
            }
        }
        markers
    }

    /// The markers of a process, by time.
    pub(super) fn process_markers(&self, pid: Pid) -> &[&'a Marker] {
        self.by_pid.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Finds the first jitdump that process `pid` mapped and that has the process ID `inner` in its name, and returns
    /// its device and inode. `None` if the process mapped no such jitdump, or if device and inode weren't recorded.
    pub(super) fn file_with_pid_in_name(&self, pid: Pid, inner: Pid) -> Option<FileId> {
        self.process_markers(pid).iter().find(|marker| inner_pid(&marker.path) == Some(inner))?.file
    }

    /// True if another process mapped a different file with the same path as the marker (in another container, for
    /// example), so that the path doesn't identify the jitdump.
    pub(super) fn is_contested(&self, marker: &Marker) -> bool {
        let Some(marker_file) = marker.file else { return false };
        let Some(files) = self.by_path.get(marker.path.as_os_str()) else { return false };
        files.iter().any(|(file, pids)| *file != marker_file && pids.iter().any(|pid| *pid != marker.pid))
    }
}

/// The process ID in a file name, which is that in the process's own PID namespace: the last number in `jit-PID.dump`,
/// `jit-TID-PID.dump` and `perf-PID.map`, or the one in a log's name. `None` if there is none.
pub fn inner_pid(path: &Path) -> Option<Pid> {
    let name = path.file_name()?.to_str()?;
    let Some(stem) = name.strip_suffix(".dump").or_else(|| name.strip_suffix(".map")) else {
        return LogId::find_by_name(name).find_map(|(_, number)| number).map(Pid);
    };
    let digits = stem.rsplit('-').next().filter(|digits| digits.len() < stem.len())?;
    digits.parse().ok().map(Pid).filter(|pid| pid.0 >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Addr, Nanos, Tid};

    #[test]
    fn the_process_in_a_name() {
        let pid = |name: &str| inner_pid(Path::new(name)).map(|pid| pid.0);
        assert_eq!(pid("/tmp/jit-77.dump"), Some(77));
        assert_eq!(pid("jit-78-77.dump"), Some(77));
        assert_eq!(pid("/x/perf-1.map"), Some(1));
        assert_eq!(pid("/x/77.map"), None);
        assert_eq!(pid("/x/jit-a.dump"), None);
        assert_eq!(pid("/x/jit-7.txt"), None);
    }

    fn marker(pid: i32, path: &str, inode: u64) -> Marker {
        let file = Some(FileId { inode, major: 0, minor: 0 });
        let (time, addr) = (Nanos(0), Addr(0));
        Marker { pid: Pid(pid), tid: Tid(pid), path: path.into(), time, addr, file, offset: 0 }
    }

    #[test]
    fn a_path_is_contested_by_another_process_with_another_file() {
        let list = [
            (1, "/tmp/jit-1.dump", 7),
            (2, "/tmp/jit-1.dump", 7),
            (3, "/tmp/jit-3.dump", 7),
            (3, "/tmp/jit-3.dump", 8),
        ];
        let mut markers: Vec<Marker> = list.iter().map(|&(pid, path, inode)| marker(pid, path, inode)).collect();
        let contested = |markers: &[Marker]| -> Vec<bool> {
            let processes = Processes { markers: markers.to_vec(), ..Processes::default() };
            let index = Markers::new(&processes);
            markers.iter().map(|marker| index.is_contested(marker)).collect()
        };
        assert_eq!(contested(&markers), [false; 4]);
        markers.push(marker(4, "/tmp/jit-1.dump", 9));
        assert_eq!(contested(&markers), [true, true, false, false, true]);
    }

    #[test]
    fn a_process_has_its_own() {
        let markers = [marker(1, "/tmp/jit-1.dump", 7), marker(2, "/tmp/jit-1.dump", 8)];
        let processes = Processes { markers: markers.to_vec(), ..Processes::default() };
        let index = Markers::new(&processes);
        assert_eq!(index.process_markers(Pid(2)), [&markers[1]]);
        assert_eq!(index.file_with_pid_in_name(Pid(2), Pid(1)), markers[1].file);
        assert_eq!((index.file_with_pid_in_name(Pid(2), Pid(2)), index.process_markers(Pid(3)).len()), (None, 0));
    }
}
