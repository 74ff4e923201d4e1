//! Collects the machine code of a log: blocks, and patches of existing blocks.

use std::collections::BTreeMap;
use std::ops::Range;

/// Longest patch in bytes: a jump to a 64-bit address. Blocks are longer.
const LONGEST_PATCH: usize = 16;

/// A block of machine code that was dumped at once.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
    /// Offset in the log.
    pub(super) offset: usize,
    /// Value of the time-stamp counter at that time.
    pub(super) time: Option<u64>,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes at an address range, if the block contains all of it.
    pub(super) fn at(&self, range: &Range<u64>) -> Option<&[u8]> {
        let from = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..to)
    }
}

/// All machine code of a log.
#[derive(Debug, Default)]
pub(super) struct MachineCode {
    pub(super) blocks: Vec<Block>,
    /// Index by start address of the blocks that were not overwritten.
    newest: BTreeMap<u64, usize>,
}

impl MachineCode {
    /// Adds a dump, as a patch of an existing block or as a new block. Returns whether it was a patch.
    pub(super) fn write(&mut self, start: u64, bytes: Vec<u8>, (offset, time): (usize, Option<u64>)) -> bool {
        let Some(end) = start.checked_add(bytes.len() as u64) else { return false };
        if bytes.len() <= LONGEST_PATCH && self.patch(start, &bytes) {
            return true;
        }
        let over: Vec<u64> = self
            .newest
            .range(..end)
            .rev()
            .map(|(&start, _)| start)
            .take_while(|&other| self.newest.get(&other).is_some_and(|&block| self.blocks[block].end() > start))
            .collect();
        for other in over {
            self.newest.remove(&other);
        }
        self.newest.insert(start, self.blocks.len());
        self.blocks.push(Block { start, bytes, offset, time });
        false
    }

    /// Index of the block that is currently at an address.
    pub(super) fn block_at(&self, addr: u64) -> Option<usize> {
        let (_, &block) = self.newest.range(..=addr).next_back()?;
        (addr < self.blocks[block].end()).then_some(block)
    }

    fn patch(&mut self, start: u64, bytes: &[u8]) -> bool {
        let Some(block) = self.block_at(start) else { return false };
        let block = &mut self.blocks[block];
        let at = (start - block.start) as usize;
        let Some(place) = block.bytes.get_mut(at..at + bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        true
    }
}
