//! The question of a rewrite about code in memory that no file backs.

use std::ops::Range;

/// The functions that a JIT compiler put into memory that no file backs. They are numbered; each has a name that no
/// other has.
pub trait JitFunctions: Sync {
    /// The entry that covers an address.
    fn at(&self, addr: u64) -> Option<usize> {
        self.around(addr).entry
    }
    /// The same, and where it is the same.
    fn around(&self, addr: u64) -> Covered;
    /// The name of an entry.
    fn name(&self, entry: usize) -> &[u8];
    /// The source file that the function is in; `???` if that is not known.
    fn file(&self, entry: usize) -> &[u8];
    /// The object that holds the code of all entries.
    fn object(&self) -> &[u8];
    /// Source positions in an entry, sorted by address; each holds up to the next. Empty if none are known.
    fn lines(&self, entry: usize) -> Vec<CodeLine<'_>>;
}

/// A stretch of addresses that one entry covers, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The addresses.
    pub range: Range<u64>,
    /// The entry.
    pub entry: Option<usize>,
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
