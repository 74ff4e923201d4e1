//! Parses locations in the interpreted program, as PyPy prints them.

use crate::bytes::digits::decimal;
use crate::model::code::Line;
use crate::model::mapping_kind::base_name;
use memchr::memmem;

/// A location in the interpreted program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SourceLocation<'a> {
    /// The function; the whole text if its format is unknown.
    pub(super) function: &'a [u8],
    pub(super) file: &'a [u8],
    /// The line, from 1; 0 if unknown.
    pub(super) line: u32,
    /// Bytecode index and operation, such as `#16 FOR_ITER`; or what follows a code object, such as `<generator>`.
    pub(super) operation: &'a [u8],
}

impl<'a> SourceLocation<'a> {
    /// Parses `fib;/a/work.py:3-5~#16 FOR_ITER` or `<code object gen, file "/a/work.py", line 36> <generator>`.
    pub(super) fn parse(text: &'a [u8]) -> Self {
        let unknown = Self { function: text, ..Self::default() };
        Self::parse_bytecode(text).or_else(|| Self::parse_code_object(text)).unwrap_or(unknown)
    }

    fn parse_bytecode(text: &'a [u8]) -> Option<Self> {
        let (head, operation) = split(text, memmem::rfind(text, b"~#")?, 1)?;
        let (function, rest) = split(head, memchr::memchr(b';', head)?, 1)?;
        let (file, lines) = split(rest, memchr::memrchr(b':', rest)?, 1)?;
        let line = lines.rsplit(|&byte| byte == b'-').next().and_then(decimal)?;
        let line = u32::try_from(line).ok()?;
        Some(Self { function, file, line, operation })
    }

    /// Parses `<code object …>`. In the text of merge points, PyPy writes periods in place of the commas.
    fn parse_code_object(text: &'a [u8]) -> Option<Self> {
        let rest = text.strip_prefix(b"<code object ")?;
        let (function, rest) = split(rest, memmem::find(rest, b" file ")?, b" file ".len())?;
        let (file, rest) = split(rest, memmem::rfind(rest, b" line ")?, b" line ".len())?;
        let (line, operation) = split(rest, memchr::memchr(b'>', rest)?, 1)?;
        let function = function.strip_suffix(b",").or_else(|| function.strip_suffix(b"."))?;
        let file = file.strip_suffix(b",").or_else(|| file.strip_suffix(b"."))?;
        let file = unquote(file, b'"').or_else(|| unquote(file, b'\'')).unwrap_or(file);
        let line = u32::try_from(decimal(line)?).ok()?;
        Some(Self { function, file, line, operation: operation.trim_ascii() })
    }

    /// A readable name: `fib work.py:5 #16 FOR_ITER`.
    pub(super) fn name(&self) -> Vec<u8> {
        let mut name = self.function.to_vec();
        if self.line > 0 {
            let base = base_name(self.file);
            name.extend_from_slice(&[b" ", base, format!(":{}", self.line).as_bytes()].concat());
        }
        if !self.operation.is_empty() {
            name.extend_from_slice(&[b" ", self.operation].concat());
        }
        name
    }

    /// Creates an entry of the line table: the code from `offset` on belongs to this location, in the inlined call with
    /// the index `inlined` or, if that is `None`, in the function itself.
    pub(super) fn to_line(self, offset: u64, inlined: Option<u32>) -> Line<'a> {
        Line { offset, file: self.file, line: self.line, inlined, ..Line::default() }
    }
}

/// The text before a separator at `index`, and the text after the `len` bytes of the separator.
fn split(text: &[u8], index: usize, len: usize) -> Option<(&[u8], &[u8])> {
    Some((text.get(..index)?, text.get(index + len..)?))
}

fn unquote(text: &[u8], quote: u8) -> Option<&[u8]> {
    text.strip_prefix(&[quote])?.strip_suffix(&[quote])
}
