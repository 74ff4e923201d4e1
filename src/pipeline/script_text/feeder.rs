//! Cuts a text into blocks as it arrives.

use crate::error::Error;
use crate::io::Stream;
use crate::pipeline::spare::Spare;
use crate::records::perf_script::rewrite;
use crate::records::perf_script::rewrite::State;
use std::io::Read;
use std::ops::Range;
use std::sync::{Condvar, Mutex};

/// Bytes per block: large enough to make handing it to a worker cheap, small enough that the first output comes soon.
/// Measured on whole runs with 1 GB of text: 256 KiB to 4 MiB make no difference.
pub(super) const BLOCK: usize = 1 << 18;

/// Longer lines are passed on in pieces, so that garbage can't fill the memory.
const LONGEST: usize = 1 << 24;

/// Prevents the feeder from waiting for input while blocks that it has returned may still need names. Nothing could
/// interrupt that wait, and a slow writer's text would be held up.
pub(super) struct Gate {
    /// The number of blocks being processed, and whether reading should stop.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    pub(super) fn new(under_way: usize) -> Self {
        Self { state: Mutex::new((under_way, false)), changed: Condvar::new() }
    }

    /// True if the next block may be read. If the writer has paused, waits until all earlier blocks are finished.
    pub(super) fn may_read(&self, paused: bool) -> bool {
        // The lock is only poisoned if another worker panicked, and the thread scope will report that.
        let Ok(state) = self.state.lock() else { return false };
        let wait = |(under_way, halted): &mut (usize, bool)| paused && *under_way > 0 && !*halted;
        let Ok(mut state) = self.changed.wait_while(state, wait) else { return false };
        state.0 += 1;
        !state.1
    }

    /// Marks a block as finished. `halt`: stop reading.
    pub(super) fn taken(&self, halt: bool) {
        if let Ok(mut state) = self.state.lock() {
            state.0 = state.0.saturating_sub(1);
            state.1 |= halt;
        }
        self.changed.notify_all();
    }
}

/// A block of text and what the text before it says.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) state: State,
    /// The ranges of lines that are records, such as mmap events.
    pub(super) records: Vec<Range<usize>>,
    /// Its position in the text.
    pub(super) at: u64,
}

/// How to cut a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutting {
    /// The size of a block.
    pub(super) block: usize,
    /// Returns how many bytes of a buffer can form a block; 0 if the buffer must be longer.
    pub(super) cut: fn(&[u8]) -> usize,
    /// True to end blocks where the writer pauses.
    pub(super) at_pauses: bool,
}

/// Cuts the input into blocks.
pub(super) struct Feeder<'a> {
    input: Box<dyn Read + Send>,
    /// Buffers of finished blocks.
    spare: &'a Spare<Vec<u8>>,
    pub(super) cutting: Cutting,
    state: State,
    /// Bytes that have been read but not returned.
    rest: Vec<u8>,
    /// How many bytes have been returned.
    at: u64,
    pub(super) ended: bool,
    /// True if the writer paused after the last bytes read.
    pub(super) paused: bool,
    pub(super) failed: Option<Error>,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(input: Stream, cutting: Cutting, spare: &'a Spare<Vec<u8>>) -> Self {
        let (state, rest, input) = (State::default(), Vec::new(), input.into_reader());
        Self { input, spare, cutting, state, rest, at: 0, ended: false, paused: false, failed: None }
    }

    /// What the text has said so far.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn next_block(&mut self) -> Option<Block> {
        // Reused buffers aren't cleared: their contents are overwritten, and zeroing them again takes time.
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
            let mut cut = (self.cutting.cut)(&bytes);
            if cut == 0 && bytes.len() >= LONGEST {
                cut = rewrite::cut(&bytes);
            }
            let whole_line = cut > 0 && bytes[cut - 1] == b'\n';
            if !self.ended && (whole_line || bytes.len() >= LONGEST) && (self.paused || bytes.len() >= wanted) {
                self.rest.extend_from_slice(&bytes[cut..]);
                bytes.truncate(cut);
                break;
            }
            wanted = bytes.len() + self.cutting.block;
        }
        bytes.truncate(filled);
        if bytes.is_empty() {
            return None;
        }
        let (state, at) = (self.state.clone(), self.at);
        let records = self.state.advance(&bytes);
        self.at += bytes.len() as u64;
        Some(Block { bytes, state, records, at })
    }

    /// Reads more after the first `filled` bytes, and returns how many there are then.
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

    /// Reads until there are `wanted` bytes, the writer pauses or the input ends.
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
                // A pipe returns at most its capacity at once. A short read means that it is empty now.
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

/// The capacity of a pipe. A read that returns less has emptied it.
const PAUSE: usize = 1 << 16;
