//! Call graphs and stacks: a file is read as a call graph, out of which stacks are made; stacks are written as one.

mod call_order;
mod call_paths;
mod graph;
mod read;
mod thread_graph;
mod write;

pub use write::write;

use crate::contract::format::ReadOptions;
use crate::error::{Result, Warnings};
use crate::model::stacks::Profile;
use std::io;

/// Reads the call graph, and makes stacks of it.
pub fn read(input: &mut dyn io::Read, _options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    Ok(read::profile_of(&graph::read(input, warnings)?))
}
