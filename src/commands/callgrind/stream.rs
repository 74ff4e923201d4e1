//! Streams a callgrind file through both passes; never more of it in memory than a few parts.

use crate::error::{Error, Result};
use crate::formats::callgrind::{Assembler, CHUNK, Chunks, Done, Grafts, Index, facts, rewrite};
use crate::pipeline::Job;
use std::fs::File;
use std::io::{Seek, Write};

/// First pass.
pub(super) fn index(mut file: &File, job: &Job) -> Result<Index> {
    file.rewind()?;
    let mut index = Index::default();
    let parts = Chunks::new(file, CHUNK);
    job.pool.stream(
        parts,
        |chunk| chunk.map(|chunk| facts(&chunk)),
        |facts| {
            index.append(facts?);
            Ok(())
        },
    )?;
    Ok(index)
}

/// What the second pass did.
pub(super) struct Rewritten {
    /// In figures.
    pub(super) done: Done,
    /// How many functions got a new name.
    pub(super) functions: usize,
}

/// Second pass.
pub(super) fn graft(
    mut file: &File,
    index: &Index,
    grafts: &dyn Grafts,
    out: &mut dyn Write,
    job: &Job,
) -> Result<Rewritten> {
    file.rewind()?;
    let mut assembler = Assembler::new(index);
    let mut done = Done::default();
    let parts = Chunks::new(file, CHUNK);
    job.pool.stream(
        parts,
        |chunk| chunk.map(|chunk| rewrite(&chunk, index, grafts)),
        |piece: Result<_, Error>| {
            let piece = piece?;
            assembler.write(&piece, out)?;
            done.append(piece.done);
            Ok(())
        },
    )?;
    Ok(Rewritten { done, functions: assembler.functions() })
}
