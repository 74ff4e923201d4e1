//! Formats that give one thing a line: read ahead in blocks of whole lines, which become stacks side by side.

use super::job::Job;
use super::readers::{AddedParts, HasProfile, Readers};
use super::spare::Spare;
use crate::contract::format::{OpenLines, ReadLines, ReadOptions};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::io::Stream;
use crate::model::stacks::Profile;
use std::io::Read;

/// So much of a text is read by one worker at once: it stays in the processor's cache, and handing it over is little beside
/// reading it. A few of them for each thread are in memory.
pub(super) const BLOCK: usize = 1 << 19;

/// So much of a text is looked at to find out how its lines are to be read.
pub(super) const HEAD: usize = 1 << 16;

/// Reads a text to its end.
pub(super) fn read(
    input: Box<dyn Read + Send>,
    open: OpenLines,
    options: &ReadOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Profile> {
    let mut input = Stream::new(input);
    let head = input.peek_all(HEAD)?.to_vec();
    let new = || open(options, &head);
    let (readers, mut parts) = (Readers::new(&new, job), AddedParts::of("line", options.keep));
    let make = |at: u64, lines: &[u8]| {
        readers.read(at, |reader| {
            let mut skipped = Skipped::new("line");
            reader.read(lines, &mut skipped);
            skipped
        })
    };
    each_block(input.into_reader(), BLOCK, job, make, |part| parts.add(part))?;
    Ok(readers.into_profile(parts, warnings))
}

/// Makes something of each block of this many bytes of whole lines, reported where it begins, side by side, and takes
/// that in order.
pub(super) fn each_block<T: Send>(
    input: Box<dyn Read + Send>,
    size: usize,
    job: &Job,
    make: impl Fn(u64, &[u8]) -> T + Sync,
    mut take: impl FnMut(T),
) -> Result<()> {
    let buffers = Spare::default();
    let mut blocks = LineBlocks { input, size, buffers: &buffers, rest: Vec::new(), at: 0, ended: false, failed: None };
    let make = |block: LineBlock| {
        let made = make(block.at, &block.bytes);
        buffers.give_buffer(block.bytes, 4 * size);
        made
    };
    let first = blocks.next();
    // Readers of many small inputs start no threads for each.
    match first {
        Some(first) if blocks.ended => take(make(first)),
        first => job.pool.each(first.into_iter().chain(&mut blocks), make, take),
    }
    blocks.failed.map_or(Ok(()), Err)
}

impl HasProfile for Box<dyn ReadLines> {
    fn profile(&mut self) -> &mut Profile {
        (**self).profile()
    }
}

/// Whole lines.
struct LineBlock {
    bytes: Vec<u8>,
    /// The number of bytes that the text before it has.
    at: u64,
}

/// Cuts a text behind lines.
struct LineBlocks<'a> {
    input: Box<dyn Read + Send>,
    /// As many bytes are read at once.
    size: usize,
    /// The pool for blocks that were read.
    buffers: &'a Spare<Vec<u8>>,
    /// The start of a line that was read with the lines before it.
    rest: Vec<u8>,
    /// The amount that was given out.
    at: u64,
    ended: bool,
    failed: Option<Error>,
}

impl Iterator for LineBlocks<'_> {
    type Item = LineBlock;

    fn next(&mut self) -> Option<LineBlock> {
        let mut bytes = self.buffers.take_empty();
        bytes.append(&mut self.rest);
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

impl LineBlocks<'_> {
    fn fill(&mut self, bytes: &mut Vec<u8>) {
        bytes.reserve_exact(self.size);
        match (&mut self.input).take(self.size as u64).read_to_end(bytes) {
            Ok(len) => self.ended = len < self.size,
            Err(error) => {
                self.failed = Some(error.into());
                self.ended = true;
            }
        }
    }
}
