//! Names JIT code in files of valgrind, and determines how much of a callgrind file's cost has names.
//!
//! All commands that name a callgrind file do so in these steps: [`IndexedProfile::read`] makes the first pass over the
//! text, [`CodeSources`] finds and loads the sources that name the process's code, [`CodeNames`] sorts the code by
//! address, and [`IndexedProfile::rewrite`] makes the second pass.

mod code_sources;
mod coverage;
mod input;
mod names;
mod passes;

pub(crate) use code_sources::{CodeSources, directory, find_pid};
pub(crate) use coverage::Coverage;
pub(crate) use input::{report_unnamed, with_names};
pub(crate) use names::CodeNames;
pub(crate) use passes::{IndexedProfile, NamedProfile};

use crate::error::Result;
use std::fs::File;
use std::io::{Read, Seek};

/// How many bytes to read to have the whole header of a callgrind file, or of a report from another of valgrind's
/// tools.
const HEAD: usize = 1 << 16;

/// Reads the beginning of a file, which includes the whole header of a file of valgrind, and goes back to the start.
pub(crate) fn read_head(file: &mut File) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    (&mut *file).take(HEAD as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head)
}
