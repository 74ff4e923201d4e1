//! The interface through which the rewriting of a callgrind file looks up JIT code.

use std::ops::Range;

/// Looks up JIT-compiled functions in memory without a file. A function is identified by its entry number, called
/// `entry` in this folder (not to be confused with its entry address), and has a unique name.
pub trait JitFunctions: Sync {
    /// The entry of the function that contains an address; `None` if no function does.
    fn find(&self, addr: u64) -> Option<usize> {
        self.find_range(addr).entry
    }
    /// The entry of the function that contains an address, and the range of addresses around it for which the answer is
    /// the same.
    fn find_range(&self, addr: u64) -> Covered;
    /// The unique name of a function, by its entry.
    fn name(&self, entry: usize) -> &[u8];
    /// The source file of a function, by its entry; `???` if unknown.
    fn file(&self, entry: usize) -> &[u8];
    /// The object name (`ob=`) to write for all these functions.
    fn object(&self) -> &[u8];
    /// The line table of a function, by its entry, sorted by address; empty if unknown. A line is valid up to the
    /// address of the next.
    fn lines(&self, entry: usize) -> Vec<CodeLine<'_>>;
}

/// The answer to a lookup, and the addresses around for which it is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The range of addresses.
    pub range: Range<u64>,
    /// The entry; `None` if nothing covers the range.
    pub entry: Option<usize>,
}

/// The source position of the code from an address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLine<'a> {
    /// The address at run time from which on the line is valid.
    pub addr: u64,
    /// The source file of the code.
    pub file: &'a [u8],
    /// The line, from 1; 0 if unknown.
    pub line: u32,
}
