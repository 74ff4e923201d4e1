//! Cuts a text into blocks while it arrives, for workers that read or rewrite the blocks in parallel.

use crate::io::Stream;
use std::io::Read;
use std::sync::Mutex;

/// How to cut a text into blocks.
#[derive(Clone, Copy)]
pub(super) struct Cutting<'a> {
    /// The size of a block in bytes. A block is larger only if `cut` finds no place to end it there.
    pub(super) block: usize,
    /// Given bytes of the text, returns how many of them can form a block. 0 means that more bytes are needed.
    pub(super) cut: &'a (dyn Fn(&[u8]) -> usize + Sync),
    /// The maximum size of a block in bytes. If `cut` finds no end within this size, the block ends after its last
    /// whole line or, if it has none, anywhere.
    pub(super) longest: usize,
    /// True if a block also ends where the program that writes the text pauses.
    pub(super) at_pauses: bool,
}

/// A block of a text.
pub(super) struct TextBlock {
    pub(super) bytes: Vec<u8>,
    /// The offset of the block in the text, in bytes.
    pub(super) offset: u64,
}

/// Cuts a text into blocks.
pub(super) struct Blocks<'a> {
    input: Box<dyn Read + Send>,
    /// The buffers of blocks whose text is no longer needed, for reuse.
    spare: &'a Spare<Vec<u8>>,
    pub(super) cutting: Cutting<'a>,
    /// Bytes that were read with the last block but are the start of the next one.
    leftover: Vec<u8>,
    /// How many bytes have been returned in blocks.
    offset: u64,
    /// True if the whole text has been read, or reading has failed.
    pub(super) ended: bool,
    /// True if the program that writes the text paused after the bytes read last.
    pub(super) paused: bool,
    /// Why reading failed; `None` if it hasn't. [`next_block`](Self::next_block) then acts as if the text ended there,
    /// so callers must check this at the end.
    pub(super) error: Option<std::io::Error>,
}

/// How many bytes of a text are whole lines.
pub(super) fn cut_after_line(bytes: &[u8]) -> usize {
    memchr::memrchr(b'\n', bytes).map_or(0, |line_feed| line_feed + 1)
}

impl<'a> Blocks<'a> {
    pub(super) fn new(input: Stream, cutting: Cutting<'a>, spare: &'a Spare<Vec<u8>>) -> Self {
        let input = input.into_reader();
        Self { input, spare, cutting, leftover: Vec::new(), offset: 0, ended: false, paused: false, error: None }
    }

    /// The next block; `None` at the end of the text.
    pub(super) fn next_block(&mut self) -> Option<TextBlock> {
        // Reused buffers aren't cleared, because their contents are overwritten and clearing takes time.
        let mut bytes = self.spare.take();
        // How many bytes of `bytes` are text of this block; what follows them is from the buffer's previous use.
        let mut filled = self.leftover.len();
        if bytes.len() < filled {
            bytes.resize(filled, 0);
        }
        bytes[..filled].copy_from_slice(&self.leftover);
        self.leftover.clear();
        let mut wanted = self.cutting.block;
        while !self.ended {
            filled = self.fill(&mut bytes, filled, wanted);
            bytes.truncate(filled);
            // The text has ended, so whatever is left of it is the last block, wherever it ends.
            if self.ended {
                break;
            }
            // How many of the bytes form a block that ends where the text may be cut, such as after a line. 0 if there
            // is no such place yet.
            let cut = self.cut(&bytes);
            if cut > 0 {
                self.leftover.extend_from_slice(&bytes[cut..]);
                filled = cut;
                break;
            }
            // `cut` looks through all bytes of the block each time it is called. So call it again only when there are
            // twice as many: otherwise, a large block would take time that grows with the square of its size.
            wanted = wanted.max(2 * filled);
        }
        bytes.truncate(filled);
        if bytes.is_empty() {
            return None;
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        Some(TextBlock { bytes, offset })
    }

    /// How many of the bytes can form a block; 0 if more bytes are needed to find its end. A block of more than
    /// [`Cutting::longest`] bytes ends after any line or, if there is only one, anywhere.
    fn cut(&self, bytes: &[u8]) -> usize {
        let cut = (self.cutting.cut)(bytes);
        if cut == 0 && bytes.len() >= self.cutting.longest {
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
            Err(error) => self.fail(error),
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
                // A read from a pipe returns as much as the pipe holds. If that is less than its capacity, the pipe is
                // empty now, so the writer pauses.
                Ok(len) => {
                    filled += len;
                    self.paused = len < room && len < PIPE;
                }
                Err(error) => self.fail(error),
            }
        }
        filled
    }

    fn fail(&mut self, error: std::io::Error) {
        self.error = Some(error);
        self.ended = true;
    }
}

/// The capacity of a pipe in bytes. A read that returns less has emptied the pipe.
const PIPE: usize = 1 << 16;

/// Objects that threads give back, for reuse. Without reuse, every block of text would be allocated by one thread and
/// freed by another, and would always need fresh pages from the kernel. In some runs, clearing such pages took the
/// kernel as much time as everything else.
#[derive(Debug, Default)]
pub(super) struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// Takes an object from the pool, in the state in which it was given back. Creates one if the pool is empty.
    pub(super) fn take(&self) -> T {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        self.0.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    /// Gives an object back to the pool.
    pub(super) fn give(&self, thing: T) {
        if let Ok(mut spare) = self.0.lock() {
            spare.push(thing);
        }
    }
}

impl Spare<Vec<u8>> {
    /// Gives a buffer back to the pool. If its capacity has grown beyond `most` bytes, it is freed instead.
    pub(super) fn give_buffer(&self, buffer: Vec<u8>, most: usize) {
        if buffer.capacity() <= most {
            self.give(buffer);
        }
    }

    /// Takes a buffer from the pool and empties it.
    pub(super) fn take_empty(&self) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.clear();
        buffer
    }
}
