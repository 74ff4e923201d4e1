//! Splits V8's log into records and fields.

use crate::bytes::digits::{decimal, hex, number};

/// Limit in bytes of a record whose name contains line feeds.
const LONGEST_NAME: usize = 0x1_0000;

/// Tags of the code of JavaScript functions in various versions of V8 (src/logging/code-events.h).
const FUNCTION_TAGS: &[&[u8]] = &[b"JS", b"Function", b"LazyCompile", b"Script", b"Eval"];

/// The keywords that begin a record. A line that begins otherwise belongs to a name, or is damaged.
const WORDS: &[&[u8]] = &[
    b"code-creation",
    b"code-source-info",
    b"code-move",
    b"code-delete",
    b"code-deopt",
    b"code-disable-optimization",
    b"sfi-move",
    b"script-source",
    b"script",
    b"script-details",
    b"tick",
    b"new",
    b"delete",
    b"shared-library",
    b"shared-library-end",
    b"profiler",
    b"v8-version",
    b"v8-platform",
    b"heap-capacity",
    b"heap-available",
    b"feedback-vector",
];

/// A record of the log: one line, or several if a name contains line feeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRecord<'a> {
    /// Offset in the log.
    pub(super) offset: usize,
    /// The text without the line feed at its end.
    pub(super) text: &'a [u8],
    /// True if the record ends with a line feed. The last one may not, because the log is written in pieces.
    pub(super) is_whole: bool,
}

impl<'a> LogRecord<'a> {
    /// The record that begins at an offset. `None` at the end of the log.
    pub(super) fn parse(file: &'a [u8], offset: usize) -> Option<Self> {
        let rest = file.get(offset..).filter(|rest| !rest.is_empty())?;
        // A record is whole if a line feed follows it.
        let record_up_to = |end: usize| Self { offset, text: &rest[..end], is_whole: end < rest.len() };
        let mut end = line_end(rest, 0);
        let first_line = record_up_to(end);
        if !first_line.text.starts_with(b"code-creation,") || first_line.is_whole_creation() {
            return Some(first_line);
        }
        // If the function's name contains line feeds, the record continues on the next lines. If a line begins
        // another record first, or the record becomes too long, the first line is all there is.
        while end + 1 < rest.len() && end < LONGEST_NAME && !WORDS.contains(&word(&rest[end + 1..])) {
            end = line_end(rest, end + 1);
            let longer = record_up_to(end);
            if longer.is_whole_creation() {
                return Some(longer);
            }
        }
        Some(first_line)
    }

    fn is_whole_creation(&self) -> bool {
        self.creation().is_ok_and(|creation| creation.is_whole())
    }

    /// Offset of the next record.
    pub(super) fn end(&self) -> usize {
        self.offset + self.text.len() + usize::from(self.is_whole)
    }

    /// The keyword; `None` if the line doesn't begin with one.
    pub(super) fn word(&self) -> Option<&'a [u8]> {
        let word = word(self.text);
        let is_keyword = word.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        (!word.is_empty() && is_keyword).then_some(word)
    }

    /// The fields after the keyword.
    pub(super) fn fields(&self) -> Fields<'a> {
        Fields(memchr::memchr(b',', self.text).map(|comma| &self.text[comma + 1..]))
    }

    /// Parses a `code-creation` record.
    pub(super) fn creation(&self) -> Result<Creation<'a>, &'static str> {
        let mut fields = self.fields();
        let tag = fields.next().filter(|tag| !tag.is_empty()).ok_or("the record has no tag for the type of code")?;
        let kind = fields.next().and_then(number).ok_or("the record has no number for the kind of code")?;
        let micros = fields.next().and_then(decimal).ok_or("the record has no valid timestamp")?;
        let addr = fields.next().and_then(hexadecimal).ok_or("the record has no hexadecimal address")?;
        let size = fields.next().and_then(decimal).ok_or("the record has no valid code size")?;
        let rest = fields.0.ok_or("the record has no name for its code")?;
        if addr.checked_add(size).is_none() {
            return Err("the record's code extends beyond the address space");
        }
        let time = micros.checked_mul(1000).ok_or("the record has a timestamp that is out of range")?;
        let mut creation = Creation { tag, kind, time, addr, size, name: rest, function: None, tier: b"" };
        // For the code of a function, the rest of the record is the function's name, its ID and the mark of the code's
        // tier.
        if FUNCTION_TAGS.contains(&tag)
            && let Some((name, id, tier)) = split_function(rest)
        {
            creation = Creation { name, function: Some(id), tier, ..creation };
        }
        Ok(creation)
    }
}

fn line_end(rest: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &rest[from..]).map_or(rest.len(), |len| from + len)
}

fn word(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr2(b',', b'\n', text).unwrap_or(text.len())]
}

/// The remaining fields of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let comma = memchr::memchr(b',', rest);
        self.0 = comma.map(|comma| &rest[comma + 1..]);
        Some(&rest[..comma.unwrap_or(rest.len())])
    }
}

/// A `code-creation` record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Creation<'a> {
    /// What was compiled, such as `JS`, `Builtin` or `RegExp`.
    pub(super) tag: &'a [u8],
    /// The kind of code, such as bytecode or optimized code; a number that differs between versions of V8.
    pub(super) kind: i64,
    /// Nanoseconds since the isolate began to log.
    pub(super) time: u64,
    pub(super) addr: u64,
    pub(super) size: u64,
    /// The name as logged.
    pub(super) name: &'a [u8],
    /// The address of a function's SharedFunctionInfo; for WebAssembly some other number. `None` if the record has
    /// none.
    pub(super) function: Option<u64>,
    /// The mark of the tier, such as `*` for optimized code; empty if there is none.
    pub(super) tier: &'a [u8],
}

impl Creation<'_> {
    /// True if the record has all the fields that are usual for code with its tag. If it doesn't, a function's name may
    /// contain a line feed, and the record continues on the next line.
    fn is_whole(&self) -> bool {
        self.function.is_some() || !FUNCTION_TAGS.contains(&self.tag)
    }
}

/// Parses name, address and tier of a function: `name,0x29296bbd1190,*`.
fn split_function(rest: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let last = memchr::memrchr(b',', rest)?;
    let tier = &rest[last + 1..];
    let before = memchr::memrchr(b',', &rest[..last])?;
    let id = hexadecimal(&rest[before + 1..last])?;
    let is_mark = tier.len() <= 3 && tier.iter().all(|byte| b"~^+*o'".contains(byte));
    is_mark.then_some((&rest[..before], id, tier))
}

/// Parses an address: `0x…`.
pub(super) fn hexadecimal(text: &[u8]) -> Option<u64> {
    hex(text.strip_prefix(b"0x")?)
}
