//! The callgrind profile format: names for the code of just-in-time compilers, put into a file as it streams by.
//!
//! A file is a list of blocks, one for each function (`fn=`), of cost lines and calls; `ob=` and `fl=` before it
//! stay in force until changed. callgrind calls memory that no file backs `ob=???` and its functions by the address
//! where they were first entered. Only there are addresses absolute, so only there are they looked up.
//!
//! Two passes, each over parts that do not depend on one another: [`facts`] of every part, in order into an
//! [`Index`]; then [`rewrite()`] every part, in order into an [`Assembler`].
//!
//! Why statements are replaced and never merely added: KCachegrind identifies a function by (name, file, object) at
//! the place where its id is *defined*, callgrind_annotate by (file, name) at each use; of repeated `cob=`/`cfi=` the
//! last counts; a call without `cob=` goes to the caller's object, one without `cfi=` to the caller's current file.
//! One name left in the old place splits the function into a half with callers and a half with costs.
//!
//! Specification: <https://valgrind.org/docs/manual/cl-format.html>; where valgrind's writer (callgrind/dump.c) does
//! otherwise, the writer is followed.

mod block;
mod call_order;
mod chunks;
mod graph;
mod history;
mod index;
mod line;
mod piece;
mod positions;
mod regroup;
mod rewrite;
mod strays;
#[cfg(test)]
mod tests;
mod unfold;
mod write;

pub use chunks::{CHUNK, Chunk, Chunks};
pub use index::{About, Facts, Index, facts};
pub use piece::{Assembler, Done, Piece};
pub use rewrite::rewrite;
pub use strays::Strays;
pub use write::write;

use super::format::ReadOptions;
use crate::error::{Result, Warnings};
use crate::model::stacks::Profile;
use line::{Line, lines};
use std::io;

/// Whether an input begins like a file of this format, whoever wrote it. cachegrind's files, which look alike, lack
/// every one of these headers.
pub fn sniff(head: &[u8]) -> bool {
    if head.starts_with(b"# callgrind format") {
        return true;
    }
    let mut headers = lines(head)
        .map(|(_, text)| line::line(text))
        .take_while(|line| !matches!(line, Line::Spec(..) | Line::Cost(_)));
    let mut events = false;
    let known = headers.any(|line| {
        events |= matches!(line, Line::Header(b"events", _));
        matches!(line, Line::Header(b"positions" | b"creator" | b"part", _))
            || matches!(line, Line::Header(b"version", value) if value == b"1")
    });
    known && (events || headers.any(|line| matches!(line, Line::Header(b"events", _))))
}

/// Reads the call graph as stacks.
pub fn read(input: &mut dyn io::Read, _options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    Ok(unfold::unfold(&graph::read(input, warnings)?))
}

/// What the code in unknown memory is. Entries are numbered; each has a name that no other has.
pub trait Grafts: Sync {
    /// The entry that covers an address.
    fn at(&self, addr: u64) -> Option<usize>;
    /// The name of an entry.
    fn name(&self, entry: usize) -> &[u8];
    /// The source file that the function is in; `???` if that is not known.
    fn file(&self, entry: usize) -> &[u8];
    /// The object that holds the code of all entries.
    fn object(&self) -> &[u8];
    /// Source positions in an entry, sorted by address; each holds up to the next. Empty if none are known.
    fn lines(&self, entry: usize) -> Vec<CodeLine<'_>>;
}

/// A source position from an address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLine<'a> {
    /// The address at run time.
    pub addr: u64,
    /// The source file.
    pub file: &'a [u8],
    /// The line in it, from 1; 0 if it is not known.
    pub line: u32,
}
