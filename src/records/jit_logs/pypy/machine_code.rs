//! The machine code of a log: blocks, and patches of existing ones.

use std::collections::BTreeMap;
use std::ops::Range;

/// No patch is longer: a jump to an address of 64 bits; blocks are.
const LONGEST_PATCH: usize = 16;

/// A piece of machine code that was dumped at once.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
    /// The place in the log.
    pub(super) offset: usize,
    /// The processor's counter then.
    pub(super) time: Option<u64>,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes at these addresses, if it has all of them.
    pub(super) fn at(&self, range: &Range<u64>) -> Option<&[u8]> {
        let from = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..to)
    }
}

/// The machine code of a log, in its order.
#[derive(Debug, Default)]
pub(super) struct MachineCode {
    pub(super) blocks: Vec<Block>,
    /// By their first address, those that nothing was written over.
    newest: BTreeMap<u64, usize>,
}

impl MachineCode {
    /// Takes a dump: a patch of a block, or a new block. Reports whether it was a patch.
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

    /// The block that has this address now.
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
