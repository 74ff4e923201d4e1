//! Streams a callgrind file through both passes; never more of it in memory than a few chunks.

use crate::error::{Error, Result};
use crate::formats::callgrind::{
    Assembler, CHUNK_SIZE, Chunks, FileIndex, JitFunctions, RewriteStats, rewrite_chunk, scan_chunk,
};
use crate::pipeline::Job;
use crate::pipeline::progress::Progress;
use std::fs::File;
use std::io::{Seek, Write};

/// First pass: what names stand for.
pub(super) fn index(mut file: &File, job: &Job) -> Result<FileIndex> {
    file.rewind()?;
    let mut index = FileIndex::default();
    let chunks = Chunks::new(Progress::of_pass(file, "looking", job), CHUNK_SIZE);
    job.pool.stream(
        chunks,
        |chunk| chunk.map(|chunk| scan_chunk(&chunk)),
        |facts| {
            index.append(facts?);
            Ok(())
        },
    )?;
    Ok(index)
}

/// What became of a profile.
pub(super) struct NamedProfile {
    /// What was done, in figures.
    pub(super) stats: RewriteStats,
    /// How many functions got a new name.
    pub(super) functions: usize,
}

/// Second pass: writes the file anew.
pub(super) fn rewrite(
    mut file: &File,
    index: &FileIndex,
    jit: &dyn JitFunctions,
    out: &mut dyn Write,
    job: &Job,
) -> Result<NamedProfile> {
    file.rewind()?;
    let mut assembler = Assembler::new(index);
    let mut stats = RewriteStats::default();
    let chunks = Chunks::new(Progress::of_pass(file, "writing", job), CHUNK_SIZE);
    job.pool.stream(
        chunks,
        |chunk| chunk.map(|chunk| rewrite_chunk(&chunk, index, jit)),
        |chunk: Result<_, Error>| {
            let chunk = chunk?;
            assembler.write(&chunk, out)?;
            stats.append(chunk.stats);
            Ok(())
        },
    )?;
    Ok(NamedProfile { stats, functions: assembler.functions() })
}
