//! Formats that tell one thing a line: read ahead in blocks of whole lines, which become stacks side by side.

use super::job::Job;
use super::parts::Parts;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::format::ReadOptions;
use crate::model::stacks::Profile;
use std::io::Read;

/// So much of a text is read by one worker at once. What is looked up once for each block is little beside it; a few of
/// them for each thread are in memory.
pub(super) const BLOCK: usize = 4 << 20;

/// Reads whole lines.
type ReadLines = fn(lines: &[u8], options: &ReadOptions, skipped: &mut Skipped) -> Profile;

/// Reads a text to its end.
pub(super) fn read(
    input: Box<dyn Read + Send>,
    read: ReadLines,
    options: &ReadOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Profile> {
    let mut parts = Parts::of("line", options.keep);
    let mut blocks = Blocks { input, rest: Vec::new(), at: 0, ended: false, failed: None };
    let make = |block: Block| {
        let mut skipped = Skipped::new("line");
        let profile = read(&block.bytes, options, &mut skipped);
        (profile, skipped.moved(block.at))
    };
    let first = blocks.next();
    // Whoever reads many small inputs starts no threads for each.
    match first {
        Some(first) if blocks.ended => {
            let (profile, skipped) = make(first);
            parts.add(profile, skipped);
        }
        first => {
            let all = first.into_iter().chain(&mut blocks);
            job.pool.each(all, make, |(profile, skipped)| parts.add(profile, skipped));
        }
    }
    match blocks.failed {
        Some(error) => Err(error),
        None => Ok(parts.into_profile(warnings)),
    }
}

/// Whole lines.
struct Block {
    bytes: Vec<u8>,
    /// How many bytes the text before it has.
    at: u64,
}

/// Cuts a text behind lines.
struct Blocks {
    input: Box<dyn Read + Send>,
    /// The begin of a line that was read with the lines before it.
    rest: Vec<u8>,
    /// How much was given out.
    at: u64,
    ended: bool,
    failed: Option<Error>,
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let mut bytes = std::mem::take(&mut self.rest);
        while !self.ended {
            let before = bytes.len();
            self.fill(&mut bytes);
            if let Some(end) = memchr::memrchr(b'\n', &bytes[before..]).filter(|_| !self.ended) {
                self.rest = bytes.split_off(before + end + 1);
                break;
            }
        }
        let block = Block { bytes, at: self.at };
        self.at += block.bytes.len() as u64;
        (!block.bytes.is_empty()).then_some(block)
    }
}

impl Blocks {
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
