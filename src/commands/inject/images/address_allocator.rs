//! Allocates address ranges for images with `--relocate`.

use crate::commands::inject::coverage::CodeSelection;
use crate::error::{Error, Result};
use crate::model::Addr;
use crate::model::process::Processes;
use std::ops::Range;

/// Hands out address ranges that no process of the recording ever used.
#[derive(Debug)]
pub(super) struct AddressAllocator {
    /// Address ranges where any process has mappings or code at any time, sorted by start.
    taken: Vec<Range<u64>>,
    /// Where to look for the next free range.
    next: u64,
    /// The end of the usable addresses.
    end: u64,
}

impl AddressAllocator {
    /// Collects the addresses that processes have mapped or at which JIT code ran; these aren't allocated. `is_64` says
    /// whether the machine has 64-bit addresses.
    pub(super) fn new(processes: &Processes, selection: &CodeSelection<'_, '_>, is_64: bool) -> Self {
        let mappings = processes.by_pid.values().flat_map(|process| &process.mappings);
        let mappings = mappings.map(|map| map.addr.0..map.addr.0.saturating_add(map.len));
        let code = selection.segments().map(|(_, segment)| segment.start.0..segment.end.0);
        let mut taken: Vec<Range<u64>> = mappings.chain(code).collect();
        taken.sort_unstable_by_key(|range| (range.start, range.end));
        // The usable addresses lie above programs with fixed addresses and their heaps, and within the user address
        // space of every 64-bit machine.
        let usable = if is_64 { 1 << 36..1 << 38 } else { 1 << 28..3 << 30 };
        Self { taken, next: usable.start, end: usable.end }
    }

    /// Allocates at least `len` bytes, rounded up to pages, and returns the first address. Fails if no gap is large
    /// enough.
    pub(super) fn allocate(&mut self, len: u64) -> Result<Addr> {
        /// The largest page size of all machines.
        const PAGE: u64 = 1 << 16;
        let mut start = self.next;
        // One pass is enough: the ranges are sorted by start, so moving past one never makes `start` overlap an earlier
        // one.
        for taken in &self.taken {
            if taken.start < start.saturating_add(len) && start < taken.end {
                start = taken.end.min(self.end).next_multiple_of(PAGE);
            }
        }
        // `min` keeps the sum from overflowing. A length above `self.end` is too large anyway.
        let end = start.saturating_add(len.min(self.end)).next_multiple_of(PAGE);
        if end > self.end {
            return Err(Error::new(format!(
                "--relocate found no address range of {len} bytes that is free in all recorded processes"
            )));
        }
        self.next = end;
        Ok(Addr(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_between_what_is_taken_and_each_time_elsewhere() {
        let taken = vec![0x400_0000..0x1000_4000, 0x1002_0000..0x1003_0001, 0x7fff_0000..u64::MAX];
        let mut addresses = AddressAllocator { taken, next: 0x1000_0000, end: 0x1100_0000 };
        let mut take = |len| addresses.allocate(len).map(|addr| addr.0).ok();
        assert_eq!(take(0x1_0000), Some(0x1001_0000));
        assert_eq!(take(0x1_0001), Some(0x1004_0000), "not before the range that would be touched");
        assert_eq!(take(1), Some(0x1006_0000), "whole pages");
        assert_eq!(take(0x1000_0000), None);
        assert_eq!(take(u64::MAX), None);
    }
}
