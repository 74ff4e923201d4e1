//! Just as much JSON as an event takes: values are found, not built. Strings stay as they are in the file until
//! somebody wants their text. Eight bytes are looked at together, which buys two fifths of the processor time of `stats`
//! (100 MB of spans).

use crate::bytes::escapes::utf16_letter;
use std::borrow::Cow;

/// Why a value could not be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStop {
    /// The bytes end inside it: there may be more to come.
    Short,
    /// It is not JSON, at this place.
    Wrong(usize, &'static str),
}

/// A string between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Text<'a> {
    pub(super) raw: &'a [u8],
    pub(super) escaped: bool,
}

/// A value, found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonValue<'a> {
    /// A string.
    Text(Text<'a>),
    /// A number as written, or `true`, `false`, `null`.
    Word(&'a [u8]),
    /// An object or array with its brackets.
    Nested(&'a [u8]),
}

/// A place in some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Text<'a> {
    /// Of bytes that hold neither quote nor backslash.
    pub(super) fn plain(raw: &'a [u8]) -> Self {
        Self { raw, escaped: false }
    }

    /// Of bytes that hold an escape.
    pub(super) fn escaped(raw: &'a [u8]) -> Self {
        Self { raw, escaped: true }
    }

    /// The text. A surrogate without its other half becomes U+FFFD.
    #[inline]
    pub(super) fn text(self) -> Cow<'a, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// The text, if it is one of these; escapes cost time only where there are some.
    #[inline(always)]
    pub(super) fn one_of(self, known: &[&'a [u8]]) -> &'a [u8] {
        if self.escaped { known.iter().find(|text| self.is(text)).unwrap_or(&&b""[..]) } else { self.raw }
    }

    /// True if it is this text.
    #[inline]
    pub(super) fn is(self, text: &[u8]) -> bool {
        if self.escaped { *self.text() == *text } else { self.raw == text }
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next byte that is not a blank, without taking it.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Result<u8, ScanStop> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(ScanStop::Short)
    }

    /// Takes the next byte that is not a blank, which must be this one.
    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8, otherwise: &'static str) -> Result<(), ScanStop> {
        if self.peek()? != byte {
            return Err(self.wrong(otherwise));
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn wrong(&self, message: &'static str) -> ScanStop {
        ScanStop::Wrong(self.at, message)
    }

    /// A string.
    #[inline(always)]
    pub(super) fn string(&mut self) -> Result<Text<'a>, ScanStop> {
        self.expect(b'"', "a string is expected here")?;
        self.rest_of_string()
    }

    /// A string behind its first quote.
    #[inline(always)]
    pub(super) fn rest_of_string(&mut self) -> Result<Text<'a>, ScanStop> {
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let found = quote_or_backslash(rest);
            let Some(found) = found else { return Err(ScanStop::Short) };
            self.at += found + 1;
            if rest[found] == b'"' {
                return Ok(Text { raw: &self.bytes[start..self.at - 1], escaped });
            }
            escaped = true;
            self.at += 1;
        }
    }

    /// Any value.
    #[inline(always)]
    pub(super) fn value(&mut self) -> Result<JsonValue<'a>, ScanStop> {
        match self.peek()? {
            b'"' => self.string().map(JsonValue::Text),
            b'{' | b'[' => self.nested().map(JsonValue::Nested),
            b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => self.word().map(JsonValue::Word),
            _ => Err(self.wrong("a value is expected here")),
        }
    }

    /// A number or the like; empty if none is here.
    #[inline(always)]
    pub(super) fn word(&mut self) -> Result<&'a [u8], ScanStop> {
        let start = self.at;
        let mut end = start;
        // Mostly it is a handful of digits.
        if let Some(eight) = self.bytes.get(start..).and_then(|rest| rest.first_chunk()) {
            end += digits_in(u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030);
        }
        while IN_WORD[usize::from(*self.bytes.get(end).ok_or(ScanStop::Short)?)] {
            end += 1;
        }
        self.at = end;
        Ok(&self.bytes[start..end])
    }

    /// An object or array that begins right here.
    pub(super) fn nested(&mut self) -> Result<&'a [u8], ScanStop> {
        let start = self.at;
        // For each open bracket, true if it is square, the innermost in the lowest bit: a bracket that is missing must
        // not take what follows for its own. Nothing is reported about values deeper than that.
        let (mut depth, mut square, mut deep) = (0u32, 0u64, false);
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => {
                    depth += 1;
                    deep |= depth > u64::BITS;
                    square = square << 1 | u64::from(byte == b'[');
                }
                b'}' | b']' => {
                    if !deep && (square & 1 != 0) != (byte == b']') {
                        return Err(self.wrong("another bracket is to be closed here"));
                    }
                    depth -= 1;
                    square >>= 1;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(&self.bytes[start..self.at]);
            }
        }
        Err(ScanStop::Short)
    }

    /// The members of an object, in the file's order.
    #[inline(always)]
    pub(super) fn members(&mut self, mut each: impl FnMut(Text<'a>, JsonValue<'a>)) -> Result<(), ScanStop> {
        self.expect(b'{', "an object is expected here")?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':', "a colon is expected here")?;
            each(key, self.value()?);
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.wrong("a comma or closing brace is expected here")),
            }
        }
    }
}

/// The bytes that numbers and `true`, `false`, `null` are made of.
const IN_WORD: [bool; 256] = {
    let (mut known, mut byte) = ([false; 256], 0);
    while byte < 256 {
        known[byte] = matches!(byte as u8, b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z');
        byte += 1;
    }
    known
};

/// The number of leading digits among eight bytes. In each, was taken bit by bit: digits are those up to 9.
#[inline(always)]
fn digits_in(values: u64) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The highest bit of each byte that is more than 9.
    let others = (((values & (ONES * 0x7F)) + ONES * 0x76) | values) & (ONES * 0x80);
    (others.trailing_zeros() / 8) as usize
}

/// The place of the first quote or backslash. Keys and texts are a handful of bytes: eight at a time, in a register,
/// are faster than a call that prepares for long ones.
#[inline(always)]
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    /// Sets the highest bit of the first byte that is 0; bits above it may be set, too.
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & (ONES << 7)
    }
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        if at == 64 {
            return memchr::memchr2(b'"', b'\\', &bytes[at..]).map(|found| at + found);
        }
        let word = u64::from_le_bytes(*chunk);
        let hits = zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5C));
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let found = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
    found.map(|found| at + found)
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..at]);
        let (c, len) = escape(&rest[at..]);
        text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        rest = rest.get(at + len..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
    text
}

/// The character of an escape, and its length in bytes.
fn escape(text: &[u8]) -> (char, usize) {
    let c = match text.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => {
            let (c, len) = utf16_letter(text).unwrap_or((None, 2));
            return (c.unwrap_or(char::REPLACEMENT_CHARACTER), len);
        }
        Some(&byte) if byte.is_ascii() => char::from(byte),
        // Half of a character cannot be escaped; the byte before it goes.
        Some(_) => return (char::REPLACEMENT_CHARACTER, 1),
        None => char::REPLACEMENT_CHARACTER,
    };
    (c, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        let text = Scanner::new(json.as_bytes(), 0).string().unwrap();
        String::from_utf8(text.text().into_owned()).unwrap()
    }

    #[test]
    fn escapes_and_surrogates() {
        assert_eq!(text(r#""a\"b\\c\/\n\u00e9""#), "a\"b\\c/\n\u{e9}");
        assert_eq!(text(r#""\ud83d\ude00!""#), "😀!");
        assert_eq!(text(r#""\ud83d!\ude00""#), "\u{fffd}!\u{fffd}");
        assert_eq!(text(r#""\ud83d\u0041\uzz""#), "\u{fffd}A\u{fffd}zz");
        for len in 0..150 {
            let long = "x".repeat(len);
            assert_eq!(text(&format!("\"{long}\" {{")), long);
            assert_eq!(text(&format!("\"{long}\\\\{long}\"")), format!("{long}\\{long}"));
        }
        assert_eq!(text(r#""a long text without any escape in it, é""#), "a long text without any escape in it, é");
    }

    #[test]
    fn members_of_any_shape() {
        let json = r#" { "a" : 1.5e3 , "b":{"x":[1,"]}"]},"c":"t\"", "d":null,"e":[]} rest"#;
        let mut scanner = Scanner::new(json.as_bytes(), 0);
        let mut seen = Vec::new();
        let shown = |value: JsonValue<'_>| match value {
            JsonValue::Text(text) => String::from_utf8(text.text().into_owned()).unwrap(),
            JsonValue::Word(raw) | JsonValue::Nested(raw) => String::from_utf8(raw.to_vec()).unwrap(),
        };
        scanner
            .members(|key, value| {
                seen.push(format!("{}={}", text(&format!("\"{}\"", String::from_utf8_lossy(key.raw))), shown(value)))
            })
            .unwrap();
        assert_eq!(seen, ["a=1.5e3", r#"b={"x":[1,"]}"]}"#, "c=t\"", "d=null", "e=[]"]);
        assert_eq!(&json[scanner.at..], " rest");
        for (json, stop) in
            [(r#"{"a":1"#, ScanStop::Short), (r#"{"a" 1}"#, ScanStop::Wrong(5, "a colon is expected here"))]
        {
            assert_eq!(Scanner::new(json.as_bytes(), 0).members(|_, _| {}), Err(stop));
        }
        for len in 0..json.len() - 5 {
            assert_eq!(Scanner::new(&json.as_bytes()[..len], 0).members(|_, _| {}), Err(ScanStop::Short), "{len}");
        }
    }
}
