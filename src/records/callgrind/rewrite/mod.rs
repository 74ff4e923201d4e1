//! Inserts the names of JIT-compiled functions into a callgrind file while streaming it.
//!
//! There are two passes over independent chunks: [`scan_chunk`] results are collected in order in a [`FileIndex`], then
//! [`rewrite_chunk`] results are written in order by an [`Assembler`].
//!
//! Statements are replaced, never just added, because readers identify functions differently. KCachegrind uses (name,
//! file, object) where the ID is *defined*, callgrind_annotate uses (name, file) at each use. Of repeated `cob=` or
//! `cfi=`, the last counts. A call without `cob=` goes to the caller's object, one without `cfi=` to the caller's
//! current file. A single name left where the old one was would split the function: one half with callers, one half
//! with costs.

mod assembler;
mod chunk_rewriter;
mod draft;
mod group_writer;
mod index;
mod jit_functions;
mod line_groups;
mod misattributed;
mod name_resolver;
mod scan;
mod stats;
#[cfg(test)]
mod tests;

pub use assembler::Assembler;
pub use chunk_rewriter::rewrite_chunk;
pub use draft::{DraftMemory, RewrittenChunk};
pub use index::{FileHeader, FileIndex};
pub use jit_functions::{CodeLine, Covered, JitFunctions};
pub use misattributed::Misattributed;
pub use scan::{ChunkFacts, scan_chunk};
pub use stats::{EntrySet, RewriteStats};
