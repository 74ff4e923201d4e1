//! Converts between callgrind files and stacks. A file is read as a call graph, from which stacks are made.

mod call_order;
mod call_paths;
mod graph;
mod read;
mod thread_graph;
mod write;

pub use read::{anonymous_kind, function_kind};
pub use write::write;

use crate::contract::format::{Detail, ReadOptions};
use crate::error::{Result, Warnings};
use crate::model::stacks::Profile;
use std::io;

/// Reads a call graph and makes stacks from it.
pub fn read(input: &mut dyn io::Read, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let with_lines = options.detail.is_none_or(|detail| detail >= Detail::Lines);
    Ok(read::to_profile(&graph::read(input, with_lines, warnings)?))
}
