//! Inserts the names of JIT-compiled functions into a callgrind file.
//!
//! The file is read twice, in chunks. A first pass collects what is needed before anything can be written
//! ([`FileIndex`]): the largest IDs, and the addresses that serve as names. In the second pass, chunks are parsed in
//! parallel ([`parse_chunk`]) and then renamed and written in order ([`Rewriter`]). Memory therefore holds a few parsed
//! chunks and, of the names in the file, those that contain an address.
//!
//! Text is only replaced where a name changes:
//!
//! | block | what is written |
//! |---|---|
//! | of a known object, calls named JIT code | a copy in which the statements that name these callees are replaced |
//! | of an unknown object (`ob=???`), contains or calls named JIT code | new blocks, one for each JIT function |
//! | any other | a copy, byte for byte |
//!
//! Statements are replaced, never just added, because readers identify functions differently. KCachegrind uses (name,
//! file, object) where the ID is *defined*, callgrind_annotate uses (name, file) at each use. Of repeated `cob=` or
//! `cfi=`, the last counts. A call without `cob=` goes to the caller's object, one without `cfi=` to the caller's
//! current file. A single name left where the old one was would split the function: one half with callers, one half
//! with costs.

mod block;
mod group_writer;
mod groups;
mod index;
mod input_names;
mod jit_functions;
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
