//! The interface through which the rewriting of a callgrind file looks up JIT code.

use std::ops::Range;

/// Looks up JIT-compiled functions in memory without a file. Each function has a unique name and a number. In this
/// folder, `entry` is always this number, never an address.
pub trait JitFunctions: Sync {
    /// The number (`entry`) of the function that contains an address; `None` if no function does.
    fn find(&self, addr: u64) -> Option<usize> {
        self.find_range(addr).entry
    }
    /// Like [`find`](Self::find), but also returns the range of addresses for which the answer is the same, so that
    /// callers need no lookup for each of many addresses.
    fn find_range(&self, addr: u64) -> CodeLookup;
    /// The unique name of the function with this number.
    fn name(&self, entry: usize) -> &[u8];
    /// The source file of the function with this number; `???` if unknown.
    fn file(&self, entry: usize) -> &[u8];
    /// The object name (`ob=`) to write for all these functions.
    fn object(&self) -> &[u8];
    /// The line table of the function with this number, sorted by address; empty if unknown. A line is valid up to the
    /// address of the next.
    fn lines(&self, entry: usize) -> Vec<CodeLine<'_>>;
}

/// The answer to the lookup of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLookup {
    /// The addresses, including the one that was looked up, for which the answer is the same.
    pub range: Range<u64>,
    /// The number of the function that contains these addresses; `None` if they are in no function.
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
