//! Cuts a text into blocks, as it comes.

use super::spare::Spare;
use crate::error::Error;
use crate::formats::perf_script::rewrite::{self, State};
use crate::io::Stream;
use std::io::Read;
use std::sync::{Condvar, Mutex};

/// Bytes that are handed to a worker at once: long enough to make the hand-over cheap, short enough that the first
/// output comes soon. Chosen by whole-process runs over 1 GB of text: 256 KiB to 4 MiB make no difference.
pub(super) const BLOCK: usize = 1 << 18;

/// A line longer than this is passed on in pieces, so that noise cannot fill the memory.
const LONGEST: usize = 1 << 24;

/// Keeps the feeder from waiting for more input while what it gave out may still need names: nobody could stop it
/// then, and a slow writer would see nothing come out.
pub(super) struct Gate {
    /// Blocks under way, and whether no more shall be read.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    pub(super) fn new(under_way: usize) -> Self {
        Self { state: Mutex::new((under_way, false)), changed: Condvar::new() }
    }

    /// Whether the next block may be read; if the writer paused, only when all before it are through.
    pub(super) fn may_read(&self, paused: bool) -> bool {
        // A poisoned lock means that another worker panicked: the scope will say so.
        let Ok(state) = self.state.lock() else { return false };
        let wait = |(under_way, halted): &mut (usize, bool)| paused && *under_way > 0 && !*halted;
        let Ok(mut state) = self.changed.wait_while(state, wait) else { return false };
        state.0 += 1;
        !state.1
    }

    /// A block is through; `halt` if no more shall be read.
    pub(super) fn taken(&self, halt: bool) {
        if let Ok(mut state) = self.state.lock() {
            state.0 = state.0.saturating_sub(1);
            state.1 |= halt;
        }
        self.changed.notify_all();
    }
}

/// A stretch of text and what the text before it told.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) state: State,
}

/// Cuts the input into blocks.
pub(super) struct Feeder<'a> {
    input: Stream,
    /// Where blocks come back to when they are through.
    spare: &'a Spare<Vec<u8>>,
    state: State,
    /// Read, but behind the last cut.
    rest: Vec<u8>,
    ended: bool,
    /// Whether the writer paused behind what was read last.
    pub(super) paused: bool,
    pub(super) failed: Option<Error>,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(input: Stream, spare: &'a Spare<Vec<u8>>) -> Self {
        Self { input, spare, state: State::default(), rest: Vec::new(), ended: false, paused: false, failed: None }
    }

    /// What the text has told so far.
    pub(super) fn told(&self) -> &State {
        &self.state
    }

    pub(super) fn next_block(&mut self) -> Option<Block> {
        let mut bytes = self.spare.take();
        bytes.append(&mut self.rest);
        let mut wanted = BLOCK;
        while !self.ended {
            self.paused = self.fill(&mut bytes, wanted);
            let cut = rewrite::cut(&bytes);
            let whole_line = cut > 0 && bytes[cut - 1] == b'\n';
            if !self.ended && (whole_line || bytes.len() >= LONGEST) && (self.paused || bytes.len() >= wanted) {
                self.rest.extend_from_slice(&bytes[cut..]);
                bytes.truncate(cut);
                break;
            }
            wanted = bytes.len() + BLOCK;
        }
        if bytes.is_empty() {
            return None;
        }
        let state = self.state.clone();
        self.state.advance(&bytes);
        Some(Block { bytes, state })
    }

    /// Reads until `bytes` are that long, the writer pauses or the input ends; whether it paused.
    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> bool {
        let mut filled = bytes.len();
        bytes.resize(wanted.max(filled), 0);
        let mut paused = false;
        while filled < wanted && !paused && !self.ended {
            let room = wanted - filled;
            match self.input.read(&mut bytes[filled..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) => self.ended = true,
                // A pipe gives at most its capacity at once; less than a page's worth means that there is no more.
                Ok(len) => {
                    filled += len;
                    paused = len < room && len < PAUSE;
                }
                Err(error) => {
                    self.failed = Some(Error::new("cannot read on").because(error));
                    self.ended = true;
                }
            }
        }
        bytes.truncate(filled);
        paused
    }
}

/// What a pipe holds at most: a read that gives less has emptied it.
const PAUSE: usize = 1 << 16;
