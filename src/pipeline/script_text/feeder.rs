//! Passes a text's blocks to the workers, each with what is known from the text before it.

use crate::formats::perf_script::Layout;
use crate::formats::perf_script::record_lines::RecordLineFacts;
use crate::pipeline::blocks::{Blocks, TextBlock};
use std::sync::{Condvar, Mutex};

/// The size of a block in bytes: large enough that passing it to a worker takes little time, small enough that the
/// first output comes soon. In whole runs with 1 GB of text, sizes from 256 KiB to 4 MiB made no difference.
pub(super) const BLOCK: usize = 1 << 18;

/// The maximum length of a sample in bytes. A longer one is split into several blocks, so that garbage can't fill the
/// memory.
pub(super) const LONGEST: usize = 1 << 24;

/// Decides when the feeder may wait for more input. It must not do so while blocks that it has returned may still need
/// names: nothing could interrupt the wait, and text that a slow program has written already would be held up.
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

struct GateState {
    /// The number of blocks that are being processed.
    under_way: usize,
    /// What to do when all blocks that were read so far are finished.
    after: After,
}

/// Whether to read further blocks, in ascending order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum After {
    /// Read on.
    ReadOn,
    /// Read on, but stop as soon as the program that writes the text pauses. Some of the blocks that were read need
    /// names that aren't loaded yet, and missing names are only loaded after reading has stopped.
    ReadUnlessPaused,
    /// Read no more.
    Stop,
}

impl Gate {
    /// Creates a gate for a feeder, while `under_way` blocks that were read earlier are still to be processed.
    pub(super) fn new(under_way: usize) -> Self {
        Self { state: Mutex::new(GateState { under_way, after: After::ReadOn }), changed: Condvar::new() }
    }

    /// Called before a block is read; returns false if reading should stop. `paused` says whether the program that
    /// writes the text has paused. If it has, the call waits until all earlier blocks are finished.
    pub(super) fn may_read(&self, paused: bool) -> bool {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        let Ok(state) = self.state.lock() else { return false };
        let must_wait = |state: &mut GateState| paused && state.under_way > 0 && state.after < After::Stop;
        let Ok(mut state) = self.changed.wait_while(state, must_wait) else { return false };
        state.under_way += 1;
        state.after == After::ReadOn || state.after == After::ReadUnlessPaused && !paused
    }

    /// To be called when a block is finished. `after` says whether to read further blocks; the most urgent wish so far
    /// counts.
    pub(super) fn finish_block(&self, after: After) {
        if let Ok(mut state) = self.state.lock() {
            state.under_way = state.under_way.saturating_sub(1);
            state.after = state.after.max(after);
        }
        self.changed.notify_all();
    }
}

/// A block of text, and what is known from the text before it.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// What the record lines before the block say about processes. Record lines show forks, execs and mappings; perf
    /// script prints them with `--show-task-events` and `--show-mmap-events`.
    pub(super) facts: RecordLineFacts,
    /// The offset of the block in the text, in bytes.
    pub(super) offset: u64,
}

/// An iterator over the blocks of a text.
pub(super) struct Feeder<'a> {
    pub(super) blocks: Blocks<'a>,
    layout: &'a Layout,
    /// What the record lines in all blocks so far say about processes.
    pub(super) facts: RecordLineFacts,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(blocks: Blocks<'a>, layout: &'a Layout) -> Self {
        Self { blocks, layout, facts: RecordLineFacts::default() }
    }

    /// The next block; `None` at the end of the text.
    pub(super) fn next_block(&mut self) -> Option<Block> {
        let TextBlock { bytes, offset } = self.blocks.next_block()?;
        let facts = self.facts.clone();
        self.facts.apply_all(&bytes, &self.layout.indent);
        Some(Block { bytes, facts, offset })
    }
}
