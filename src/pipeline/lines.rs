//! Reads line-based formats: cuts the text into blocks of whole lines, and converts the blocks to stacks in parallel.

use super::job::Job;
use super::readers::{AddedParts, HasProfile, Readers};
use crate::contract::format::{OpenLines, ReadLines, ReadOptions};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::io::Stream;
use crate::model::stacks::Profile;
use std::io::Read;

/// The size of a block in bytes: small enough for a CPU's cache, large enough that passing it to another thread takes
/// little time compared to parsing it. A few blocks per thread are in memory.
pub(super) const BLOCK: usize = 1 << 19;

/// How many bytes at the start of a text are examined to decide how its lines are read.
pub(super) const HEAD: usize = 1 << 16;

/// Reads a text in a line-based format into a profile.
pub(super) fn read(
    input: Box<dyn Read + Send>,
    open: OpenLines,
    options: &ReadOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Profile> {
    let mut input = Stream::new(input);
    let head = input.peek_all(HEAD)?.to_vec();
    let new_reader = || open(options, &head);
    let readers = Readers::new(&new_reader, job);
    let mut parts = AddedParts::new("line", options.keep);
    let read_block = |at: u64, lines: &[u8]| {
        readers.read(at, |reader| {
            let mut skipped = Skipped::new("line");
            reader.read(lines, &mut skipped);
            skipped
        })
    };
    each_block(input.into_reader(), job, read_block, |part| parts.add(part))?;
    Ok(readers.into_profile(parts, warnings))
}

/// Cuts the input into blocks of whole lines. Calls `make` in parallel with the offset and contents of each block, and
/// `take` with the results, in order.
fn each_block<T: Send>(
    input: Box<dyn Read + Send>,
    job: &Job,
    make: impl Fn(u64, &[u8]) -> T + Sync,
    mut take: impl FnMut(T),
) -> Result<()> {
    let mut blocks = LineBlocks { input, rest: Vec::new(), at: 0, ended: false, failed: None };
    let make = |block: LineBlock| make(block.at, &block.bytes);
    let first = blocks.next();
    // Don't start threads for an input that fits in one block: there may be many such inputs.
    match first {
        Some(first) if blocks.ended => take(make(first)),
        first => job.pool.each(first.into_iter().chain(&mut blocks), make, take),
    }
    match blocks.failed {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl HasProfile for Box<dyn ReadLines> {
    fn profile(&mut self) -> &mut Profile {
        (**self).profile()
    }
}

/// A block of whole lines of a text.
struct LineBlock {
    bytes: Vec<u8>,
    /// The offset of the block in the text, in bytes.
    at: u64,
}

/// An iterator that cuts a text into blocks of whole lines.
struct LineBlocks {
    input: Box<dyn Read + Send>,
    /// The start of a line, of which the rest hasn't been read yet. It belongs to the next block.
    rest: Vec<u8>,
    /// How many bytes of the text have been returned in blocks.
    at: u64,
    ended: bool,
    failed: Option<Error>,
}

impl Iterator for LineBlocks {
    type Item = LineBlock;

    fn next(&mut self) -> Option<LineBlock> {
        let mut bytes = std::mem::take(&mut self.rest);
        while !self.ended {
            let before = bytes.len();
            self.fill(&mut bytes);
            if let Some(end) = memchr::memrchr(b'\n', &bytes[before..]).filter(|_| !self.ended) {
                self.rest.extend_from_slice(&bytes[before + end + 1..]);
                bytes.truncate(before + end + 1);
                break;
            }
        }
        let block = LineBlock { bytes, at: self.at };
        self.at += block.bytes.len() as u64;
        (!block.bytes.is_empty()).then_some(block)
    }
}

impl LineBlocks {
    /// Reads up to a block from the input, and appends it to `bytes`. Errors are kept for the caller to report.
    fn fill(&mut self, bytes: &mut Vec<u8>) {
        bytes.reserve_exact(BLOCK);
        match (&mut self.input).take(BLOCK as u64).read_to_end(bytes) {
            Ok(len) => self.ended = len < BLOCK,
            Err(error) => {
                self.failed = Some(error.into());
                self.ended = true;
            }
        }
    }
}
