//! Puts the names of JIT-compiled functions into a file as it streams by.
//!
//! Two passes, each over chunks that do not depend on one another: [`scan_chunk`] of every chunk, in order into a
//! [`FileIndex`]; then [`rewrite_chunk`] of every chunk, in order into an [`Assembler`].
//!
//! Why statements are replaced and never merely added: KCachegrind identifies a function by (name, file, object) at
//! the place where its id is *defined*, callgrind_annotate by (file, name) at each use; of repeated `cob=`/`cfi=` the
//! last counts; a call without `cob=` goes to the caller's object, one without `cfi=` to the caller's current file.
//! One name left in the old place splits the function into a half with callers and a half with costs.

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
