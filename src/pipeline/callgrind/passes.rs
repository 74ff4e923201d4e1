//! Makes the two passes over a callgrind file. The file is memory-mapped, because most of the output is copied from it.

use super::HEAD;
use crate::error::Result;
use crate::formats::callgrind::{
    CHUNK_SIZE, FileHeader, FileIndex, JitFunctions, RewriteStats, Rewriter, chunks, parse_chunk, scan_chunk,
};
use crate::io::Bytes;
use crate::pipeline::Job;
use crate::pipeline::progress::Progress;
use std::io::Write;

/// A callgrind file after the first pass.
pub(crate) struct IndexedProfile<'a> {
    text: &'a Bytes,
    index: FileIndex<'a>,
}

/// Statistics about a callgrind file that was written with names for JIT code.
pub(crate) struct NamedProfile {
    /// Statistics for the summary.
    pub(crate) stats: RewriteStats,
    /// The number of functions that got a new name.
    pub(crate) functions: usize,
}

impl<'a> IndexedProfile<'a> {
    /// The first pass over a callgrind file. A file states each name once, with a number (`fn=(1) main`), and later
    /// only the number (`fn=(1)`). This pass collects the names by number. Chunks of the text are scanned in parallel,
    /// and their results are put together in order.
    pub(crate) fn read(text: &'a Bytes, job: &Job) -> Result<Self> {
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
        Ok(Self { text, index })
    }

    /// The facts from the file's headers.
    pub(crate) fn header(&self) -> &FileHeader {
        &self.index.header
    }

    /// The number of unnamed functions in unknown objects.
    pub(crate) fn unknown_functions(&self) -> usize {
        self.index.unknown_functions()
    }

    /// The second pass: writes the file with names for JIT code. Chunks of the text are parsed in parallel and written
    /// in order.
    pub(crate) fn rewrite(&self, jit: &dyn JitFunctions, out: &mut dyn Write, job: &Job) -> Result<NamedProfile> {
        let Self { text, index } = self;
        let progress = Progress::for_pass(text.len() as u64, "writing", job);
        let release = text.releaser();
        let mut rewriter = Rewriter::new(index, jit);
        job.pool.stream(
            chunks(text, CHUNK_SIZE),
            |chunk| (parse_chunk(&chunk, index, jit), chunk),
            |(parsed, chunk)| {
                rewriter.write(parsed, out)?;
                // The chunk isn't read again, so the memory of the mapped file can be given back.
                let start = chunk.offset as usize;
                release(start..start + chunk.bytes.len());
                progress.done(chunk.bytes.len() as u64);
                Ok(())
            },
        )?;
        Ok(NamedProfile { functions: rewriter.new_functions(), stats: rewriter.stats })
    }
}

/// The process ID in the header of a callgrind file, of which only the beginning is known; `None` if there is none.
pub(super) fn pid_in_header(head: &[u8]) -> Option<i32> {
    let mut index = FileIndex::default();
    index.append(scan_chunk(&chunks(head, HEAD).next()?));
    index.header.pid
}
