//! BPF programs: machine code that the kernel made at run time, and the source that it was made of.
//!
//! A program has one or more functions, each with machine code of its own at a place of its own. Its source text comes
//! with it, as far as its compiler wrote it down (BTF): nothing of it need be here as a file.

use super::Addr;
use std::fmt;
use std::sync::Arc;

/// The index in [`super::process::Processes::bpf_functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BpfFunctionId(pub u32);

/// A function of a BPF program.
#[derive(Debug, Clone)]
pub struct BpfFunction {
    /// The program that it is of.
    pub program: Arc<BpfProgram>,
    /// Its name in its source; the kernel's symbol may have no more than a hash. `None` without BTF.
    pub name: Option<BpfText>,
    /// The start of its machine code.
    pub addr: Addr,
    /// Its machine code.
    pub bytes: Vec<u8>,
    /// Sorted by offset; empty if unknown.
    pub lines: Vec<BpfLine>,
}

/// The data that all functions of a BPF program share.
#[derive(Debug)]
pub struct BpfProgram {
    /// The number that the kernel gave it; after the program is gone, another one may have it.
    pub id: u32,
    /// Its name, at most 15 bytes; often that of its first function.
    pub name: Vec<u8>,
    /// The strings of its BTF: names of functions and files, source lines.
    pub strings: Arc<BpfStrings>,
}

/// The string section of a BTF object: texts that end with a NUL.
#[derive(Default)]
pub struct BpfStrings {
    /// As it is in the file.
    pub bytes: Vec<u8>,
}

/// A text of a [`BpfStrings`]: where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BpfText(pub u32);

/// A source position from `offset` on, up to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfLine {
    /// Bytes from the start of the function.
    pub offset: u32,
    /// The file as the compiler named it.
    pub file: BpfText,
    /// The text of the line.
    pub text: BpfText,
    /// Counted from 1; 0 is unknown.
    pub line: u32,
}

/// No name, file name or line is reported beyond that: in damaged strings one could go on to the section's end, and
/// that for each of many.
const LONGEST: usize = 512;

impl BpfStrings {
    /// The text that begins there; empty beyond the section.
    pub fn text(&self, at: BpfText) -> &[u8] {
        let from = self.bytes.get(at.0 as usize..).unwrap_or_default();
        let text = &from[..from.len().min(LONGEST)];
        memchr::memchr(0, text).map_or(text, |end| &text[..end])
    }
}

impl fmt::Debug for BpfStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BpfStrings({} bytes)", self.bytes.len())
    }
}

impl BpfFunction {
    /// The position of the byte at `offset`.
    pub fn line_at(&self, offset: u64) -> Option<&BpfLine> {
        self.lines[..self.lines.partition_point(|line| u64::from(line.offset) <= offset)].last()
    }

    /// A text of its program's.
    pub fn text(&self, text: BpfText) -> &[u8] {
        self.program.strings.text(text)
    }

    /// Its name in its source.
    pub fn source_name(&self) -> Option<&[u8]> {
        self.name.map(|name| self.text(name)).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_their_nul_or_at_a_limit() {
        let mut bytes = b"\0main\0".to_vec();
        bytes.extend([b'x'; 2 * LONGEST]);
        let strings = BpfStrings { bytes };
        assert_eq!(strings.text(BpfText(1)), b"main");
        assert_eq!(strings.text(BpfText(3)), b"in");
        assert_eq!(strings.text(BpfText(0)), b"");
        assert_eq!(strings.text(BpfText(6)).len(), LONGEST);
        assert_eq!(strings.text(BpfText(u32::MAX)), b"");
    }
}
