//! Cuts a text into blocks while it arrives.

use crate::error::Error;
use crate::formats::perf_script::Layout;
use crate::formats::perf_script::record_lines::RecordLineFacts;
use crate::io::Stream;
use crate::pipeline::spare::Spare;
use std::io::Read;
use std::sync::{Condvar, Mutex};

/// The size of a block in bytes: large enough that passing it to a worker takes little time, small enough that the
/// first output comes soon. In whole runs with 1 GB of text, sizes from 256 KiB to 4 MiB made no difference.
pub(super) const BLOCK: usize = 1 << 18;

/// The maximum length of a sample in bytes. Longer ones are cut after any line, and longer lines anywhere, so that garbage
/// can't fill the memory.
const LONGEST: usize = 1 << 24;

/// Decides when the feeder may wait for more input. It must not do so while blocks that it has returned may still need
/// names: nothing could interrupt the wait, and text that a slow program has written already would be held up.
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

struct GateState {
    /// The number of blocks that are being processed.
    under_way: usize,
    /// Whether finished blocks need names that aren't loaded yet.
    needs_names: bool,
    /// Whether reading should stop.
    halted: bool,
}

impl Gate {
    pub(super) fn new(under_way: usize) -> Self {
        let state = GateState { under_way, needs_names: false, halted: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Called before a block is read; returns false if reading should stop. `paused` says that the program that writes
    /// the text has paused. This then waits until all earlier blocks are finished.
    pub(super) fn may_read(&self, paused: bool) -> bool {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        let Ok(state) = self.state.lock() else { return false };
        let wait = |state: &mut GateState| paused && state.under_way > 0 && !state.halted && !state.needs_names;
        let Ok(mut state) = self.changed.wait_while(state, wait) else { return false };
        state.under_way += 1;
        let waits_for_names = paused && state.needs_names;
        !state.halted && !waits_for_names
    }

    /// To be called when a block is finished. `needs_names` says that this block or an earlier one needs more names,
    /// `halt` that reading should stop.
    pub(super) fn taken(&self, needs_names: bool, halt: bool) {
        if let Ok(mut state) = self.state.lock() {
            state.under_way = state.under_way.saturating_sub(1);
            state.needs_names |= needs_names;
            state.halted |= halt;
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

/// How to cut a text into blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutting {
    /// The size of a block in bytes.
    pub(super) block: usize,
    /// Given bytes of the text, returns how many of them can form a block. 0 means that more bytes are needed.
    pub(super) cut: fn(&[u8], &Layout) -> usize,
    /// True if a block also ends where the program that writes the text pauses.
    pub(super) at_pauses: bool,
}

/// An iterator that cuts a text into blocks.
pub(super) struct Feeder<'a> {
    input: Box<dyn Read + Send>,
    /// Buffers of finished blocks, for reuse.
    spare: &'a Spare<Vec<u8>>,
    pub(super) cutting: Cutting,
    layout: &'a Layout,
    /// Facts from the record lines up to here.
    pub(super) facts: RecordLineFacts,
    /// Bytes that have been read but don't belong to a block yet.
    rest: Vec<u8>,
    /// How many bytes have been returned in blocks.
    at: u64,
    pub(super) ended: bool,
    /// True if the program that writes the text paused after the bytes read last.
    pub(super) paused: bool,
    pub(super) failed: Option<Error>,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(input: Stream, cutting: Cutting, layout: &'a Layout, spare: &'a Spare<Vec<u8>>) -> Self {
        let (facts, rest, input) = (RecordLineFacts::default(), Vec::new(), input.into_reader());
        Self { input, spare, cutting, layout, facts, rest, at: 0, ended: false, paused: false, failed: None }
    }

    pub(super) fn next_block(&mut self) -> Option<Block> {
        // Reused buffers aren't cleared, because their contents are overwritten and clearing takes time.
        let mut bytes = self.spare.take();
        let mut filled = self.rest.len();
        if bytes.len() < filled {
            bytes.resize(filled, 0);
        }
        bytes[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        let mut wanted = self.cutting.block;
        while !self.ended {
            filled = self.fill(&mut bytes, filled, wanted);
            bytes.truncate(filled);
            if self.ended || !self.paused && filled < wanted {
                continue;
            }
            let cut = self.cut(&bytes);
            if cut > 0 {
                self.rest.extend_from_slice(&bytes[cut..]);
                filled = cut;
                break;
            }
            // Each attempt looks through all bytes, so the next one has to wait for twice as many.
            wanted = wanted.max(2 * filled);
        }
        bytes.truncate(filled);
        if bytes.is_empty() {
            return None;
        }
        let (facts, at) = (self.facts.clone(), self.at);
        self.facts.apply_all(&bytes, &self.layout.indent);
        self.at += bytes.len() as u64;
        Some(Block { bytes, facts, at })
    }

    /// How many of the bytes can form a block. 0 if more are needed.
    fn cut(&self, bytes: &[u8]) -> usize {
        let cut = (self.cutting.cut)(bytes, self.layout);
        if cut == 0 && bytes.len() >= LONGEST {
            return memchr::memrchr(b'\n', bytes).map_or(bytes.len(), |line_feed| line_feed + 1);
        }
        cut
    }

    /// Reads from the input until `bytes` has `wanted` bytes, or until the text ends. With [`Cutting::at_pauses`], also
    /// stops where the program that writes the text pauses. The first `filled` bytes of `bytes` are text that has been
    /// read before; what follows them is overwritten. Returns how many bytes of text `bytes` then contains.
    fn fill(&mut self, bytes: &mut Vec<u8>, filled: usize, wanted: usize) -> usize {
        if self.cutting.at_pauses {
            return self.fill_to_pause(bytes, filled, wanted);
        }
        bytes.truncate(filled);
        let room = wanted.saturating_sub(filled);
        bytes.reserve_exact(room);
        match (&mut self.input).take(room as u64).read_to_end(bytes) {
            Ok(len) => self.ended = len < room,
            Err(error) => {
                self.failed = Some(Error::new("cannot read the rest").because(error));
                self.ended = true;
            }
        }
        bytes.len()
    }

    /// Reads until there are `wanted` bytes, the program that writes the text pauses, or the text ends.
    fn fill_to_pause(&mut self, bytes: &mut Vec<u8>, mut filled: usize, wanted: usize) -> usize {
        if bytes.len() < wanted {
            bytes.resize(wanted, 0);
        }
        self.paused = false;
        while filled < wanted && !self.paused && !self.ended {
            let room = wanted - filled;
            match self.input.read(&mut bytes[filled..wanted]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) => self.ended = true,
                // A read from a pipe returns at most the pipe's capacity. If it returns less, the pipe is empty now.
                Ok(len) => {
                    filled += len;
                    self.paused = len < room && len < PAUSE;
                }
                Err(error) => {
                    self.failed = Some(Error::new("cannot read the rest").because(error));
                    self.ended = true;
                }
            }
        }
        filled
    }
}

/// The capacity of a pipe in bytes. A read that returns less has emptied the pipe.
const PAUSE: usize = 1 << 16;
