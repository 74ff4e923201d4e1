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
    /// Offset of the dump in the log.
    pub(super) offset: usize,
    /// Value of the time-stamp counter when the block was dumped; `None` if unknown.
    pub(super) time: Option<u64>,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes at an address range; `None` unless the block contains all of it.
    pub(super) fn slice(&self, range: &Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        self.bytes.get(start..end)
    }
}

/// All machine code of a log.
#[derive(Debug, Default)]
pub(super) struct MachineCode {
    pub(super) blocks: Vec<Block>,
    /// The indices of the blocks that haven't been overwritten, by their start addresses.
    current_blocks: BTreeMap<u64, usize>,
}

impl MachineCode {
    /// Adds a dump of machine code. A short dump inside an existing block patches that block (PyPy changes jumps
    /// later); any other dump is a new block. Returns true for a patch.
    pub(super) fn add_dump(&mut self, dump: Block) -> bool {
        // A dump that extends beyond the address space is damaged, and left out.
        let Some(end) = dump.start.checked_add(dump.bytes.len() as u64) else { return false };
        if dump.bytes.len() <= LONGEST_PATCH && self.patch(dump.start, &dump.bytes) {
            return true;
        }
        // Remove the blocks that the new one overwrites.
        while let Some((&start, &block)) = self.current_blocks.range(..end).next_back() {
            // Current blocks don't overlap each other, so those before this one end even earlier.
            if self.blocks[block].end() <= dump.start {
                break;
            }
            self.current_blocks.remove(&start);
        }
        self.current_blocks.insert(dump.start, self.blocks.len());
        self.blocks.push(dump);
        false
    }

    /// Index of the block that is currently at an address; `None` if there is none.
    pub(super) fn find_block(&self, addr: u64) -> Option<usize> {
        let (_, &block) = self.current_blocks.range(..=addr).next_back()?;
        (addr < self.blocks[block].end()).then_some(block)
    }

    /// Overwrites a part of a block. False if no block contains all of the range.
    fn patch(&mut self, start: u64, bytes: &[u8]) -> bool {
        let Some(block) = self.find_block(start) else { return false };
        let block = &mut self.blocks[block];
        let offset = (start - block.start) as usize;
        let Some(patched) = block.bytes.get_mut(offset..offset + bytes.len()) else { return false };
        patched.copy_from_slice(bytes);
        true
    }
}
