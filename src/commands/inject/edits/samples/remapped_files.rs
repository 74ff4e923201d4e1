//! Finds files that a process maps a second time. node, for example, maps its builtins again close to its JIT code.

use crate::model::process::{CpuMode, Processes};
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::symbolize::address_space::AddressSpaces;
use rustc_hash::FxHashMap;

/// The files that were mapped again elsewhere, by process and path.
#[derive(Debug, Default)]
pub(super) struct RemappedFiles<'p>(FxHashMap<Pid, FxHashMap<&'p [u8], FirstMapping>>);

/// The first mapping of a file in a process.
#[derive(Debug)]
struct FirstMapping {
    /// The address where the file's first byte would be if this mapping covered the whole file.
    base: u64,
    /// True if another mapping puts the file's bytes at other addresses than this one does.
    has_others: bool,
}

impl<'p> RemappedFiles<'p> {
    /// Finds the files that processes mapped more than once.
    pub(super) fn new(processes: &'p Processes) -> Self {
        let mut remapped = Self::default();
        for (&pid, process) in &processes.by_pid {
            let mut files: FxHashMap<&[u8], FirstMapping> = FxHashMap::default();
            for map in process.mappings.iter().filter(|map| map.executable && map.kind().is_file()) {
                let base = map.addr.0.wrapping_sub(map.pgoff);
                let first = files.entry(&map.path).or_insert(FirstMapping { base, has_others: false });
                first.has_others |= base != first.base;
            }
            files.retain(|_, first| first.has_others);
            if !files.is_empty() {
                remapped.0.insert(pid, files);
            }
        }
        remapped
    }

    /// Translates an address to the first mapping of its file. `None` if the file was mapped only once, if the address
    /// already is in the first mapping, or if that mapping isn't there at `time`.
    pub(super) fn to_first_mapping(
        &self,
        spaces: &AddressSpaces,
        pid: Pid,
        frame: FrameAddr,
        time: Option<Nanos>,
    ) -> Option<Addr> {
        let files = self.0.get(&pid)?;
        let look_up = |addr: u64| spaces.lookup(pid, Addr(addr), time.unwrap_or(Nanos(u64::MAX)), CpuMode::User);
        let addr = frame.for_lookup().0;
        let current = look_up(addr)?;
        // Where the file's first byte would be if this mapping covered the whole file.
        let base = addr.wrapping_sub(current.offset);
        // What to add to an address in this mapping to get the same byte in the first mapping. It wraps around if the
        // first mapping is at lower addresses.
        let shift = files.get(&spaces.dsos().get(current.dso).path[..])?.base.wrapping_sub(base);
        if shift == 0 {
            return None;
        }
        let shifted = look_up(addr.wrapping_add(shift))?;
        // At `time`, something else may be where the first mapping was, or nothing.
        let is_same_byte = (current.dso, current.offset) == (shifted.dso, shifted.offset);
        is_same_byte.then(|| Addr(frame.raw().0.wrapping_add(shift)))
    }
}

#[cfg(test)]
mod tests {
    use crate::model::mapping_kind::{MappingKind, tests::paths_where};

    #[test]
    fn files_may_be_mapped_again_elsewhere() {
        let expected = [
            "/lib/modules/6.1/kernel/fs/ext4.ko",
            "/usr/bin/node",
            "/usr/lib/libc.so.6 (deleted)",
            "/dev/shm/code",
            "/tmp/jit-77.dump",
            "/usr/lib/jit-helper.so",
            "/x/core.dump",
            "/tmp/perf-77.map",
            "/run/jitted-77.so",
            "/run/jitted-77-3.so",
        ];
        assert_eq!(paths_where(|path| MappingKind::from_path(path).is_file()), expected);
    }
}
