//! Parses locations in the interpreted program, as PyPy prints them.

use crate::bytes::digits::decimal;
use crate::model::backing::base_name;
use crate::model::code::Line;
use memchr::memmem;

/// A location in the interpreted program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The function; the whole text if its format is unknown.
    pub(super) function: &'a [u8],
    pub(super) file: &'a [u8],
    /// The line, from 1; 0 if unknown.
    pub(super) line: u32,
    /// Bytecode index and operation, `#16 FOR_ITER`, or `<generator>`.
    pub(super) at: &'a [u8],
}

impl<'a> Place<'a> {
    /// Parses `fib;/a/work.py:3-5~#16 FOR_ITER` or `<code object gen, file "/a/work.py", line 36> <generator>`.
    pub(super) fn parse(text: &'a [u8]) -> Self {
        let whole = Self { function: text, ..Self::default() };
        Self::bytecode(text).or_else(|| Self::code_object(text)).unwrap_or(whole)
    }

    fn bytecode(text: &'a [u8]) -> Option<Self> {
        let (head, at) = split(text, memmem::rfind(text, b"~#")?, 1)?;
        let (function, rest) = split(head, memchr::memchr(b';', head)?, 1)?;
        let (file, lines) = split(rest, memchr::memrchr(b':', rest)?, 1)?;
        let line = lines.rsplit(|&byte| byte == b'-').next().and_then(decimal)?;
        let line = u32::try_from(line).ok()?;
        Some(Self { function, file, line, at })
    }

    /// Parses a code object. In merge points it has periods in place of commas.
    fn code_object(text: &'a [u8]) -> Option<Self> {
        let rest = text.strip_prefix(b"<code object ")?;
        let (function, rest) = split(rest, memmem::find(rest, b" file ")?, 6)?;
        let (file, rest) = split(rest, memmem::rfind(rest, b" line ")?, 6)?;
        let (line, at) = split(rest, memchr::memchr(b'>', rest)?, 1)?;
        let function = function.strip_suffix(b",").or_else(|| function.strip_suffix(b"."))?;
        let file = file.strip_suffix(b",").or_else(|| file.strip_suffix(b"."))?;
        let quoted = |quote: u8| file.strip_prefix(&[quote])?.strip_suffix(&[quote]);
        let file = quoted(b'"').or_else(|| quoted(b'\'')).unwrap_or(file);
        Some(Self { function, file, line: u32::try_from(decimal(line)?).ok()?, at: at.trim_ascii() })
    }

    /// A readable name: `fib work.py:5 #16 FOR_ITER`.
    pub(super) fn name(&self) -> Vec<u8> {
        let mut name = self.function.to_vec();
        if self.line > 0 {
            let base = base_name(self.file);
            name.extend_from_slice(&[b" ", base, format!(":{}", self.line).as_bytes()].concat());
        }
        if !self.at.is_empty() {
            name.extend_from_slice(&[b" ", self.at].concat());
        }
        name
    }

    /// A line entry for this location from `offset` on, inside the inlined call with that index.
    pub(super) fn from(&self, offset: u64, inlined: Option<u32>) -> Line<'a> {
        Line { offset, file: self.file, line: self.line, inlined, ..Line::default() }
    }
}

/// The text before `at`, and the text after `len` bytes of separator.
fn split(text: &[u8], at: usize, len: usize) -> Option<(&[u8], &[u8])> {
    Some((text.get(..at)?, text.get(at + len..)?))
}
