//! Reads line-based formats: cuts the text into blocks of whole lines, and converts the blocks to stacks in parallel.

use super::blocks::{Blocks, Cutting, Spare, TextBlock, cut_after_line};
use super::job::Job;
use super::readers::{AddedParts, HasProfile, Readers};
use crate::contract::format::{OpenLines, ReadLines, ReadOptions};
use crate::error::{Result, Skipped, Warnings};
use crate::io::Stream;
use crate::model::stacks::Profile;
use std::io::Read;

/// The size of a block in bytes: small enough for a CPU's cache, large enough that passing it to another thread takes
/// little time compared to parsing it. A few blocks per thread are in memory.
pub(super) const BLOCK: usize = 1 << 19;

/// How many bytes at the start of a text are examined to decide how its lines are read.
pub(super) const HEAD: usize = 1 << 16;

/// Reads a text in a line-based format into a profile. The text is cut into blocks of whole lines. Readers read these
/// in parallel, and what they read is added up in the order of the blocks.
pub(super) fn read(
    input: Box<dyn Read + Send>,
    open: OpenLines,
    options: &ReadOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Profile> {
    let mut input = Stream::new(input);
    let head = input.peek_all(HEAD)?.to_vec();
    // Each reader gets the start of the text, because later blocks don't have it.
    let new_reader = || open(options, &head);
    let readers = Readers::new(&new_reader, job);
    let mut parts = AddedParts::new("line", options.keep);
    let read_block = |offset: u64, lines: &[u8]| {
        readers.read(offset, |reader| {
            let mut skipped = Skipped::new("line");
            reader.read(lines, &mut skipped);
            skipped
        })
    };
    each_block(input, job, read_block, |part| parts.add(part))?;
    Ok(readers.into_profile(parts, warnings))
}

/// Cuts the input into blocks of whole lines. Calls `make` in parallel with the offset and contents of each block, and
/// `take` with the results, in order.
fn each_block<T: Send>(
    input: Stream,
    job: &Job,
    make: impl Fn(u64, &[u8]) -> T + Sync,
    mut take: impl FnMut(T),
) -> Result<()> {
    let spare = &Spare::default();
    // A line is never split, however long it is. Nobody waits for results before the input ends, so pauses of the
    // program that writes it don't matter.
    let cutting = Cutting { block: BLOCK, cut: &cut_after_line, longest: usize::MAX, at_pauses: false };
    let mut blocks = Blocks::new(input, cutting, spare);
    let make_and_recycle = |TextBlock { bytes, offset }: TextBlock| {
        let result = make(offset, &bytes);
        // A buffer that has grown far beyond a block, for a very long line, isn't kept.
        spare.give_buffer(bytes, 4 * BLOCK);
        result
    };
    let first = blocks.next_block();
    // Don't start threads for an input that fits in one block: there may be many such inputs.
    match first {
        Some(first) if blocks.ended => take(make_and_recycle(first)),
        first => {
            let all = first.into_iter().chain(std::iter::from_fn(|| blocks.next_block()));
            job.pool.each(all, make_and_recycle, take);
        }
    }
    match blocks.error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

impl HasProfile for Box<dyn ReadLines> {
    fn profile(&mut self) -> &mut Profile {
        (**self).profile()
    }
}
