//! Finds files that a process maps a second time. node, for example, maps its builtins again close to its JIT code.

use crate::model::process::{CpuMode, Processes};
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::resolve::address_space::AddressSpaces;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The address ranges where a file was mapped after it had been mapped elsewhere, by process.
#[derive(Debug, Default)]
pub(super) struct RemappedFiles(FxHashMap<Pid, Vec<RemappedRange>>);

#[derive(Debug)]
struct RemappedRange {
    addresses: Range<u64>,
    /// Add this (wrapping) to get from an address in the range to the same byte in the first mapping.
    shift: u64,
}

impl RemappedFiles {
    pub(super) fn new(processes: &Processes) -> Self {
        let mut remapped = Self::default();
        for (&pid, process) in &processes.by_pid {
            let mut first: FxHashMap<&[u8], u64> = FxHashMap::default();
            for map in process.mappings.iter().filter(|map| map.executable && map.backing().is_file()) {
                let base = map.addr.0.wrapping_sub(map.pgoff);
                let first = *first.entry(&map.path).or_insert(base);
                if base != first {
                    let addresses = map.addr.0..map.addr.0.saturating_add(map.len);
                    let range = RemappedRange { addresses, shift: first.wrapping_sub(base) };
                    remapped.0.entry(pid).or_default().push(range);
                }
            }
        }
        remapped
    }

    /// Translates an address to the first mapping of its file. `None` if its file was not mapped twice or if the first
    /// mapping isn't there at `time`.
    pub(super) fn first_place(
        &self,
        spaces: &AddressSpaces,
        pid: Pid,
        frame: FrameAddr,
        time: Option<Nanos>,
    ) -> Option<Addr> {
        let at = |addr: u64| spaces.lookup(pid, Addr(addr), time.unwrap_or(Nanos(u64::MAX)), CpuMode::User);
        let addr = frame.for_lookup().0;
        let around = self.0.get(&pid)?.iter().filter(|range| range.addresses.contains(&addr));
        let shift = around.map(|range| range.shift).find(|shift| {
            let places = at(addr).zip(at(addr.wrapping_add(*shift)));
            places.is_some_and(|(now, first)| (now.dso, now.offset) == (first.dso, first.offset))
        });
        Some(Addr(frame.raw().0.wrapping_add(shift?)))
    }
}

#[cfg(test)]
mod tests {
    use crate::model::backing::{Backing, tests::those};

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
        assert_eq!(those(|path| Backing::of(path).is_file()), expected);
    }
}
