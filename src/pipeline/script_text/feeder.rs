//! Passes a text's blocks to the workers, each with what is known from the text before it.

use crate::formats::perf_script::Layout;
use crate::formats::perf_script::record_lines::RecordLineFacts;
use crate::pipeline::blocks::{Blocks, TextBlock};
use std::sync::{Condvar, Mutex};

/// The size of a block in bytes: large enough that passing it to a worker takes little time, small enough that the
/// first output comes soon. In whole runs with 1 GB of text, sizes from 256 KiB to 4 MiB made no difference.
pub(super) const BLOCK: usize = 1 << 18;

/// The maximum length of a sample in bytes. Longer ones are cut, so that garbage can't fill the memory.
pub(super) const LONGEST: usize = 1 << 24;

/// Decides when the feeder may wait for more input. It must not do so while blocks that it has returned may still need
/// names: nothing could interrupt the wait, and text that a slow program has written already would be held up.
pub(super) struct Gate {
    /// The number of blocks that are being processed, and whether reading should stop.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    pub(super) fn new(under_way: usize) -> Self {
        Self { state: Mutex::new((under_way, false)), changed: Condvar::new() }
    }

    /// Called before a block is read; returns false if reading should stop. `paused` says that the program that writes
    /// the text has paused. This then waits until all earlier blocks are finished.
    pub(super) fn may_read(&self, paused: bool) -> bool {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        let Ok(state) = self.state.lock() else { return false };
        let wait = |(under_way, halted): &mut (usize, bool)| paused && *under_way > 0 && !*halted;
        let Ok(mut state) = self.changed.wait_while(state, wait) else { return false };
        state.0 += 1;
        !state.1
    }

    /// To be called when a block is finished. `halt` says that reading should stop.
    pub(super) fn taken(&self, halt: bool) {
        if let Ok(mut state) = self.state.lock() {
            state.0 = state.0.saturating_sub(1);
            state.1 |= halt;
        }
        self.changed.notify_all();
    }
}

/// A block of text, and what is known from the text before it.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Facts from the record lines before the block.
    pub(super) facts: RecordLineFacts,
    /// The offset of the block in the text, in bytes.
    pub(super) at: u64,
}

/// An iterator over the blocks of a text.
pub(super) struct Feeder<'a> {
    pub(super) blocks: Blocks<'a>,
    layout: &'a Layout,
    /// Facts from the record lines up to here.
    pub(super) facts: RecordLineFacts,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(blocks: Blocks<'a>, layout: &'a Layout) -> Self {
        Self { blocks, layout, facts: RecordLineFacts::default() }
    }

    /// The next block; `None` at the end of the text.
    pub(super) fn next_block(&mut self) -> Option<Block> {
        let TextBlock { bytes, at } = self.blocks.next_block()?;
        let facts = self.facts.clone();
        self.facts.apply_all(&bytes, &self.layout.indent);
        Some(Block { bytes, facts, at })
    }
}
