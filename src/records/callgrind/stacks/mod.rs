//! Call graphs and stacks: a file is read as a call graph, out of which stacks are made; stacks are written as one.

mod call_order;
mod call_paths;
mod graph;
mod read;
mod thread_graph;
mod write;

pub use write::write;

use crate::contract::format::{Detail, ReadOptions};
use crate::error::{Result, Warnings};
use crate::model::stacks::Profile;
use std::io;

/// Reads the call graph, and makes stacks of it.
pub fn read(input: &mut dyn io::Read, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let with_lines = options.detail.is_none_or(|detail| detail >= Detail::Lines);
    Ok(read::profile_of(&graph::read(input, with_lines, warnings)?))
}
