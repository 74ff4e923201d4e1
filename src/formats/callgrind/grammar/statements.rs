//! The lines of a callgrind file, and which statement each one is.

use super::names::IdSpace;
use memchr::memchr2;

/// The words in front of `=` that a reader of functions and calls must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Keyword {
    Fn,
    Fl,
    Fi,
    Fe,
    Ob,
    Cob,
    Cfi,
    Cfn,
    Calls,
    Jump,
    Jcnd,
    Jfi,
    Jfn,
    Frfn,
    Rec,
}

impl Keyword {
    /// The id space of the name behind it; `None` if there is no name.
    pub(in super::super) fn space(self) -> Option<IdSpace> {
        match self {
            Self::Ob | Self::Cob => Some(IdSpace::Object),
            Self::Fl | Self::Fi | Self::Fe | Self::Cfi | Self::Jfi => Some(IdSpace::File),
            Self::Fn | Self::Cfn | Self::Jfn | Self::Frfn => Some(IdSpace::Function),
            Self::Calls | Self::Jump | Self::Jcnd | Self::Rec => None,
        }
    }
}

/// A line, as far as it must be understood. The cl-format manual calls most of them specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Statement<'a> {
    /// `key=value`
    Spec(Keyword, &'a [u8]),
    /// Begins with a digit, `+`, `-` or `*`: positions and costs.
    Cost(&'a [u8]),
    /// `word: value` of a header or part.
    Header(&'a [u8], &'a [u8]),
    /// Empty, a comment, or unknown.
    Other,
}

impl<'a> Statement<'a> {
    /// What a line (without its line feed) is.
    #[inline]
    pub(in super::super) fn parse(text: &'a [u8]) -> Self {
        let text = text.trim_ascii_end();
        match text.first() {
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => Self::Cost(text),
            Some(b'a'..=b'z') => match keyword(text) {
                Some((keyword, value)) => Self::Spec(keyword, value),
                None => match text.iter().position(|&byte| byte == b'=' || byte == b':') {
                    Some(at) if text[at] == b':' => Self::Header(&text[..at], text[at + 1..].trim_ascii_start()),
                    _ => Self::Other,
                },
            },
            _ => Self::Other,
        }
    }
}

/// The word in front of `=`, and what is behind it.
#[inline]
fn keyword(text: &[u8]) -> Option<(Keyword, &[u8])> {
    Some(match text {
        [b'f', b'n', b'=', value @ ..] => (Keyword::Fn, value),
        [b'f', b'l', b'=', value @ ..] => (Keyword::Fl, value),
        [b'f', b'i', b'=', value @ ..] => (Keyword::Fi, value),
        [b'f', b'e', b'=', value @ ..] => (Keyword::Fe, value),
        [b'o', b'b', b'=', value @ ..] => (Keyword::Ob, value),
        [b'c', b'o', b'b', b'=', value @ ..] => (Keyword::Cob, value),
        [b'c', b'f', b'i' | b'l', b'=', value @ ..] => (Keyword::Cfi, value),
        [b'c', b'f', b'n', b'=', value @ ..] => (Keyword::Cfn, value),
        [b'c', b'a', b'l', b'l', b's', b'=', value @ ..] => (Keyword::Calls, value),
        [b'j', b'u', b'm', b'p', b'=', value @ ..] => (Keyword::Jump, value),
        [b'j', b'c', b'n', b'd', b'=', value @ ..] => (Keyword::Jcnd, value),
        [b'j', b'f', b'i', b'=', value @ ..] => (Keyword::Jfi, value),
        [b'j', b'f', b'n', b'=', value @ ..] => (Keyword::Jfn, value),
        [b'f', b'r', b'f', b'n', b'=', value @ ..] => (Keyword::Frfn, value),
        [b'r', b'e', b'c', b'=', value @ ..] => (Keyword::Rec, value),
        _ => return None,
    })
}

/// The statements and headers of a text, without its cost lines, at the speed of memory: a cost line holds neither `=`
/// nor `:`. Yields the offset of each line, the line without its line feed, and what it is.
pub(in super::super) fn statements(text: &[u8]) -> impl Iterator<Item = (usize, &[u8], Statement<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            if rest.first()?.is_ascii_lowercase() {
                let line = &rest[..line_len(rest)];
                let start = at;
                at += line.len() + 1;
                let statement = Statement::parse(line);
                if !matches!(statement, Statement::Other) {
                    return Some((start, line, statement));
                }
                continue;
            }
            let mark = memchr2(b'=', b':', rest)?;
            // This line is none itself.
            at += match memchr::memrchr(b'\n', &rest[..mark]) {
                Some(end) => end + 1,
                None => mark + line_len(&rest[mark..]) + 1,
            };
        }
    })
}

/// All lines of a text with their offsets, without their line feeds.
pub(in super::super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = line_len(rest);
        let start = at;
        at += len + 1;
        Some((start, &rest[..len]))
    })
}

/// How long the first line of a text is, without its line feed. Most are so short that calling memchr takes longer.
#[inline]
pub(in super::super) fn line_len(text: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    while let Some(bytes) = text[at..].first_chunk().filter(|_| at < 32) {
        let others = u64::from_le_bytes(*bytes) ^ (u64::from(b'\n') * EACH);
        // The highest bit of each byte that is 0; what is borrowed comes behind the first of them.
        let found = others.wrapping_sub(EACH) & !others & (0x80 * EACH);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_skip_cost_lines_only() {
        let text = b"events: Ir\nfn=(1) a=b::c\n0x10 1 2\n+3 * 4\ncfn=x\ncalls=1 2\n";
        let found: Vec<_> = statements(text).map(|(_, line, _)| line).collect();
        assert_eq!(found, [&b"events: Ir"[..], b"fn=(1) a=b::c", b"cfn=x", b"calls=1 2"]);
        assert_eq!(Statement::parse(b"fn=(1) a=b::c"), Statement::Spec(Keyword::Fn, b"(1) a=b::c"));
        assert_eq!(Statement::parse(b"events: Ir Dr"), Statement::Header(b"events", b"Ir Dr"));
        assert_eq!(Statement::parse(b"xyz=1"), Statement::Other);
        assert_eq!(Statement::parse(b"calls=1 2 "), Statement::Spec(Keyword::Calls, b"1 2"));
    }
}
