//! BPF programs: machine code that the kernel compiled at run time, and its source.
//!
//! A program has one or more functions, each with machine code at its own address. If the compiler wrote BTF (debugging
//! information), the program contains its own source text, and no source file is needed.

use super::Addr;
use std::fmt;
use std::sync::Arc;

/// Index into [`super::process::Processes::bpf_functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BpfFunctionId(pub u32);

/// One function of a BPF program.
#[derive(Debug, Clone)]
pub struct BpfFunction {
    /// The program that the function belongs to.
    pub program: Arc<BpfProgram>,
    /// Where the function's name in the source is stored; `None` without BTF. The kernel's own symbol may contain only
    /// a hash.
    pub name: Option<BpfText>,
    /// The address of the function's machine code.
    pub addr: Addr,
    /// The function's machine code.
    pub bytes: Vec<u8>,
    /// Source lines, sorted by offset; empty if unknown.
    pub lines: Vec<BpfLine>,
}

/// The facts that all functions of a BPF program share.
#[derive(Debug)]
pub struct BpfProgram {
    /// The kernel's ID of the program. It may be reused once the program is gone.
    pub id: u32,
    /// The program's name, at most 15 bytes; often the name of its first function.
    pub name: Vec<u8>,
    /// The strings of the program's BTF: function and file names, source lines.
    pub strings: Arc<BpfStrings>,
}

/// The string section of a BTF object: strings that end with NUL.
#[derive(Default)]
pub struct BpfStrings {
    /// The raw section.
    pub bytes: Vec<u8>,
}

/// A string of a [`BpfStrings`], by its byte offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BpfText(pub u32);

/// A source position. It applies from its own `offset` up to the next position's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfLine {
    /// Bytes from the start of the function.
    pub offset: u32,
    /// The file, as the compiler named it.
    pub file: BpfText,
    /// The source text of the line.
    pub text: BpfText,
    /// The line number, from 1; 0 if unknown.
    pub line: u32,
}

/// The maximum length in bytes of a string that [`BpfStrings::text`] returns. If a damaged section lacks NUL bytes,
/// every one of its strings would extend to the section's end, and copying them all would take much memory.
const LONGEST: usize = 512;

impl BpfStrings {
    /// Returns at most the first `LONGEST` bytes of the string at an offset; nothing if the offset is outside the
    /// section.
    pub fn text(&self, text: BpfText) -> &[u8] {
        let from = self.bytes.get(text.0 as usize..).unwrap_or_default();
        let longest = &from[..from.len().min(LONGEST)];
        memchr::memchr(0, longest).map_or(longest, |end| &longest[..end])
    }
}

impl fmt::Debug for BpfStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BpfStrings({} bytes)", self.bytes.len())
    }
}

impl BpfFunction {
    /// The source position of the instruction at `offset` bytes from the start of the function; `None` if unknown.
    pub fn line_at(&self, offset: u64) -> Option<&BpfLine> {
        self.lines[..self.lines.partition_point(|line| u64::from(line.offset) <= offset)].last()
    }

    /// Returns a string of the function's program.
    pub fn text(&self, text: BpfText) -> &[u8] {
        self.program.strings.text(text)
    }

    /// The function's name in the source; `None` if unknown.
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
