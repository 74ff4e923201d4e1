//! Makes the two passes over a callgrind file. The file is memory-mapped, because most of the output is copied from it.

use crate::error::Result;
use crate::formats::callgrind::{
    CHUNK_SIZE, FileIndex, JitFunctions, RewriteStats, Rewriter, chunks, parse_chunk, scan_chunk,
};
use crate::io::Bytes;
use crate::pipeline::Job;
use crate::pipeline::progress::Progress;
use std::io::Write;

/// The process ID in the header of a callgrind file; `None` if there is none.
pub(crate) fn find_pid(text: &[u8]) -> Option<i32> {
    let mut index = FileIndex::default();
    index.append(scan_chunk(&chunks(text, START).next()?));
    index.header.pid
}

/// How many bytes at the start of the file contain the header.
const START: usize = 1 << 14;

/// The first pass: collects the names that callgrind's compressed names (`(1)`) stand for.
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
    Ok(index)
}

/// Statistics about a callgrind file that [`rewrite()`] has written with names for JIT code.
pub(crate) struct NamedProfile {
    /// Statistics for the summary.
    pub(crate) stats: RewriteStats,
    /// The number of functions that got a new name.
    pub(crate) functions: usize,
}

/// The second pass: writes the file with names for JIT code.
pub(crate) fn rewrite<'a>(
    text: &'a Bytes,
    index: &'a FileIndex<'a>,
    jit: &'a dyn JitFunctions,
    out: &mut dyn Write,
    job: &Job,
) -> Result<NamedProfile> {
    let progress = Progress::for_pass(text.len() as u64, "writing", job);
    let release = text.releaser();
    let mut rewriter = Rewriter::new(index, jit);
    job.pool.stream(
        chunks(text, CHUNK_SIZE),
        |chunk| (parse_chunk(&chunk, index, jit), chunk),
        |(parsed, chunk)| {
            rewriter.write(parsed, out)?;
            let start = chunk.offset as usize;
            release(start..start + chunk.bytes.len());
            progress.done(chunk.bytes.len() as u64);
            Ok(())
        },
    )?;
    Ok(NamedProfile { functions: rewriter.new_functions(), stats: rewriter.stats })
}
