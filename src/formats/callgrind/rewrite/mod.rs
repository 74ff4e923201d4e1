//! Inserts the names of JIT-compiled functions into a callgrind file.
//!
//! The file is read twice, in chunks. A first pass collects what is needed before anything can be written
//! ([`FileIndex`]): the largest IDs, and the addresses that serve as names. In the second pass, chunks are parsed in
//! parallel ([`parse_chunk`]): their cost lines are grouped by JIT function, and encoded as they will be written
//! (`groups`). Names and IDs depend on the chunks before, so they are added in order ([`Rewriter`]; `named_block`,
//! `group_writer`). Memory therefore holds a few parsed
//! chunks and, of the names in the file, those that contain an address.
//!
//! A block has the costs of one function. Text is only replaced where a name changes:
//!
//! | the function's block | what is written |
//! |---|---|
//! | is of a known object and calls named JIT code | a copy with new statements for the names of these callees |
//! | is of an unknown object (`ob=???`) and contains or calls named JIT code | new blocks, one for each JIT function |
//! | is any other | a copy, byte for byte |
//!
//! Statements are replaced, never just added, because readers identify functions differently. callgrind_annotate goes
//! by the name and file that are stated each time the function is mentioned. KCachegrind goes by name, file and object,
//! but only as they are stated at the line that introduces the function's ID (`fn=(1) name`); later, the ID is enough.
//! Of repeated `cob=` or `cfi=`, the last counts. A call without `cob=` goes to the caller's object, one without `cfi=`
//! to the caller's current file. If the old name remained in a single place, the function would be split into two: one
//! with the callers, the other with the costs.

mod block;
mod group_writer;
mod groups;
mod index;
mod input_names;
mod jit_functions;
mod named_block;
mod output;
mod rewriter;
mod stats;
#[cfg(test)]
mod tests;

pub use block::{ParsedChunk, parse_chunk};
pub use index::{ChunkFacts, FileHeader, FileIndex, scan_chunk};
pub use jit_functions::{CodeLine, CodeLookup, JitFunctions};
pub use rewriter::Rewriter;
pub use stats::{Misattributed, RewriteStats};
