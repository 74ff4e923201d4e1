//! The log's lines: words, fields and where they end.

use crate::bytes::digits::{decimal, hex, number};

/// A function's name may go over lines; no longer one is believed.
const LONGEST_NAME: usize = 0x1_0000;

/// Tags of code that JavaScript functions have, by version (src/logging/code-events.h).
const FUNCTION_TAGS: &[&[u8]] = &[b"JS", b"Function", b"LazyCompile", b"Script", b"Eval"];

/// The words that begin lines: what begins otherwise belongs to a name, or is damage.
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

/// A record: a line, or several where a name has line feeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRecord<'a> {
    /// Its start.
    pub(super) at: usize,
    /// Without the line feed at its end.
    pub(super) text: &'a [u8],
    /// True if it ends with a line feed: the log is written in pieces.
    pub(super) whole: bool,
}

impl<'a> LogRecord<'a> {
    /// The first record at or behind a place.
    pub(super) fn at(file: &'a [u8], at: usize) -> Option<Self> {
        let rest = file.get(at..).filter(|rest| !rest.is_empty())?;
        let line = |end: usize| Self { at, text: &rest[..end], whole: end < rest.len() };
        let end = line_end(rest, 0);
        let first = line(end);
        if !first.text.starts_with(b"code-creation,") || first.creation().is_ok_and(|creation| creation.is_whole()) {
            return Some(first);
        }
        // The function's name may go on.
        let mut next = end;
        while next + 1 < rest.len() && next < LONGEST_NAME && !WORDS.contains(&word(&rest[next + 1..])) {
            next = line_end(rest, next + 1);
            if line(next).creation().is_ok_and(|creation| creation.is_whole()) {
                return Some(line(next));
            }
        }
        Some(first)
    }

    /// The start of the next one.
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len() + usize::from(self.whole)
    }

    /// The kind of record; `None` if it begins as none does.
    pub(super) fn word(&self) -> Option<&'a [u8]> {
        let word = word(self.text);
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        (!word.is_empty() && word.iter().all(plain)).then_some(word)
    }

    /// The fields behind the word.
    pub(super) fn fields(&self) -> Fields<'a> {
        let behind = memchr::memchr(b',', self.text).map(|comma| &self.text[comma + 1..]);
        Fields(behind)
    }

    /// The content of a `code-creation`.
    pub(super) fn creation(&self) -> Result<Creation<'a>, &'static str> {
        let mut fields = self.fields();
        let tag = fields.next().filter(|tag| !tag.is_empty()).ok_or("has no tag")?;
        let kind = fields.next().and_then(number).ok_or("has no kind")?;
        let micros = fields.next().and_then(decimal).ok_or("has no time")?;
        let addr = fields.next().and_then(hexadecimal).ok_or("has no hexadecimal address")?;
        let size = fields.next().and_then(decimal).ok_or("has no size")?;
        let rest = fields.0.ok_or("has no name")?;
        if addr.checked_add(size).is_none() {
            return Err("passes the end of memory");
        }
        let function = FUNCTION_TAGS.contains(&tag).then(|| function(rest)).flatten();
        let time = micros.checked_mul(1000).ok_or("has a time beyond all times")?;
        let (name, function, tier) = function.map_or((rest, None, &b""[..]), |(name, id, tier)| (name, Some(id), tier));
        Ok(Creation { tag, kind, time, addr, size, name, function, tier })
    }
}

fn line_end(rest: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &rest[from..]).map_or(rest.len(), |len| from + len)
}

fn word(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr2(b',', b'\n', text).unwrap_or(text.len())]
}

/// The fields that are left.
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

/// A `code-creation`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Creation<'a> {
    pub(super) tag: &'a [u8],
    pub(super) kind: i64,
    /// Nanoseconds since the isolate began to log.
    pub(super) time: u64,
    pub(super) addr: u64,
    pub(super) size: u64,
    /// The name as it is there.
    pub(super) name: &'a [u8],
    /// Of functions, the SharedFunctionInfo; of WebAssembly some other number.
    pub(super) function: Option<u64>,
    /// The mark of the tier; empty if absent.
    pub(super) tier: &'a [u8],
}

impl Creation<'_> {
    /// True if all of it is there that belongs to such a tag.
    fn is_whole(&self) -> bool {
        self.function.is_some() || !FUNCTION_TAGS.contains(&self.tag)
    }
}

/// Name, number and tier of a function: `name,0x29296bbd1190,*`
fn function(rest: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let last = memchr::memrchr(b',', rest)?;
    let tier = &rest[last + 1..];
    let before = memchr::memrchr(b',', &rest[..last])?;
    let id = hexadecimal(&rest[before + 1..last])?;
    let is_mark = tier.len() <= 3 && tier.iter().all(|byte| b"~^+*o'".contains(byte));
    is_mark.then_some((&rest[..before], id, tier))
}

/// An address: `0x…`.
pub(super) fn hexadecimal(text: &[u8]) -> Option<u64> {
    hex(text.strip_prefix(b"0x")?)
}
