//! Cuts a text into blocks, as it comes.

use crate::error::Error;
use crate::io::Stream;
use crate::pipeline::spare::Spare;
use crate::records::perf_script::rewrite;
use crate::records::perf_script::rewrite::State;
use std::io::Read;
use std::ops::Range;
use std::sync::{Condvar, Mutex};

/// Bytes that are handed to a worker at once: long enough to make the hand-over cheap, short enough that the first
/// output comes soon. Chosen by whole-process runs over 1 GB of text: 256 KiB to 4 MiB make no difference.
pub(super) const BLOCK: usize = 1 << 18;

/// A line longer than this is passed on in pieces, so that noise cannot fill the memory.
const LONGEST: usize = 1 << 24;

/// Keeps the feeder from waiting for more input while what it gave out may still need names: nobody could stop it
/// then, and a slow writer would see nothing come out.
pub(super) struct Gate {
    /// Blocks under way, and whether no more must be read.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    pub(super) fn new(under_way: usize) -> Self {
        Self { state: Mutex::new((under_way, false)), changed: Condvar::new() }
    }

    /// True if the next block may be read; if the writer paused, only when all before it are through.
    pub(super) fn may_read(&self, paused: bool) -> bool {
        // A poisoned lock means that another worker panicked: the scope will state it.
        let Ok(state) = self.state.lock() else { return false };
        let wait = |(under_way, halted): &mut (usize, bool)| paused && *under_way > 0 && !*halted;
        let Ok(mut state) = self.changed.wait_while(state, wait) else { return false };
        state.0 += 1;
        !state.1
    }

    /// A block is through; `halt` if no more must be read.
    pub(super) fn taken(&self, halt: bool) {
        if let Ok(mut state) = self.state.lock() {
            state.0 = state.0.saturating_sub(1);
            state.1 |= halt;
        }
        self.changed.notify_all();
    }
}

/// A stretch of text and what the text before it reported.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) state: State,
    /// The places of its record lines.
    pub(super) records: Vec<Range<usize>>,
    /// The number of bytes that the text before it has.
    pub(super) at: u64,
}

/// The way a text is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutting {
    /// The length of a block.
    pub(super) block: usize,
    /// The part of a buffer that can be a block; 0 if it must be longer.
    pub(super) cut: fn(&[u8]) -> usize,
    /// True if a block ends where the writer pauses.
    pub(super) at_pauses: bool,
}

/// Cuts the input into blocks.
pub(super) struct Feeder<'a> {
    input: Box<dyn Read + Send>,
    /// The pool for finished blocks.
    spare: &'a Spare<Vec<u8>>,
    pub(super) cutting: Cutting,
    state: State,
    /// Read, but behind the last cut.
    rest: Vec<u8>,
    /// The amount that was given out.
    at: u64,
    pub(super) ended: bool,
    /// True if the writer paused behind what was read last.
    pub(super) paused: bool,
    pub(super) failed: Option<Error>,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(input: Stream, cutting: Cutting, spare: &'a Spare<Vec<u8>>) -> Self {
        let (state, rest, input) = (State::default(), Vec::new(), input.into_reader());
        Self { input, spare, cutting, state, rest, at: 0, ended: false, paused: false, failed: None }
    }

    /// The state that the text has given so far.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn next_block(&mut self) -> Option<Block> {
        // As it was: what is there is written over, and need not be made zeros again.
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

    /// Reads more behind this many bytes; how many there are then.
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
                self.failed = Some(Error::new("cannot read on").because(error));
                self.ended = true;
            }
        }
        bytes.len()
    }

    /// Reads until there are this many bytes, the writer pauses or the input ends.
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
                // A pipe gives at most its capacity at once; less than a page's worth means that there is no more.
                Ok(len) => {
                    filled += len;
                    self.paused = len < room && len < PAUSE;
                }
                Err(error) => {
                    self.failed = Some(Error::new("cannot read on").because(error));
                    self.ended = true;
                }
            }
        }
        filled
    }
}

/// The capacity of a pipe: a read that gives less has emptied it.
const PAUSE: usize = 1 << 16;
