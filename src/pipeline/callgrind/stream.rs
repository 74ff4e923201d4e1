//! Makes both passes over a callgrind file. It is memory-mapped, because most of the output is copied from the input.

use crate::error::Result;
use crate::io::Bytes;
use crate::pipeline::Job;
use crate::pipeline::progress::Progress;
use crate::pipeline::spare::Spare;
use crate::records::callgrind::{
    Assembler, CHUNK_SIZE, DraftMemory, FileIndex, JitFunctions, RewriteStats, chunks, rewrite_chunk, scan_chunk,
};
use std::io::Write;

/// The process ID, if it is in the file's header.
pub(crate) fn find_pid(text: &[u8]) -> Option<i32> {
    let mut index = FileIndex::default();
    index.append(scan_chunk(&chunks(text, START).next()?));
    index.header.pid
}

/// Bytes that contain the header.
const START: usize = 1 << 14;

/// First pass: collects what compressed names stand for.
pub(crate) fn index<'a>(text: &'a Bytes, job: &Job) -> Result<FileIndex<'a>> {
    let progress = Progress::for_pass(text.len() as u64, "looking", job);
    let mut index = FileIndex::default();
    job.pool.stream(
        chunks(text, CHUNK_SIZE),
        |chunk| (scan_chunk(&chunk), chunk.bytes.len()),
        |(facts, len)| {
            index.append(facts);
            progress.done(len as u64);
            Ok(())
        },
    )?;
    Ok(index.finish())
}

/// The result of the second pass.
pub(crate) struct NamedProfile {
    /// Statistics for the summary.
    pub(crate) stats: RewriteStats,
    /// The number of functions that got a new name.
    pub(crate) functions: usize,
}

/// Second pass: writes the file with names.
pub(crate) fn rewrite<'a>(
    text: &'a Bytes,
    index: &'a FileIndex<'a>,
    jit: &'a dyn JitFunctions,
    out: &mut dyn Write,
    job: &Job,
) -> Result<NamedProfile> {
    let progress = Progress::for_pass(text.len() as u64, "writing", job);
    let release = text.releaser();
    let mut assembler = Assembler::new(index, jit);
    let mut stats = RewriteStats::default();
    let spare: Spare<DraftMemory<'a>> = Spare::default();
    job.pool.stream(
        chunks(text, CHUNK_SIZE),
        |chunk| (rewrite_chunk(&chunk, index, jit, spare.take()), chunk),
        |(mut rewritten, chunk)| {
            assembler.write(&rewritten, out)?;
            stats.append(std::mem::take(&mut rewritten.stats));
            spare.give(rewritten.into_memory());
            let start = chunk.offset as usize;
            release(start..start + chunk.bytes.len());
            progress.done(chunk.bytes.len() as u64);
            Ok(())
        },
    )?;
    Ok(NamedProfile { stats, functions: assembler.functions() })
}
