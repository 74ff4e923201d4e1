//! The lines of a callgrind file, and which statement each one is.

use super::names::IdSpace;
use memchr::memchr2_iter;

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
    pub(in super::super) fn parse(text: &'a [u8]) -> Self {
        let text = text.trim_ascii_end();
        match text.first() {
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => Self::Cost(text),
            Some(b'a'..=b'z') => match text.iter().position(|&byte| byte == b'=' || byte == b':') {
                Some(at) if text[at] == b'=' => {
                    keyword(&text[..at]).map_or(Self::Other, |keyword| Self::Spec(keyword, &text[at + 1..]))
                }
                Some(at) => Self::Header(&text[..at], text[at + 1..].trim_ascii_start()),
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

fn keyword(word: &[u8]) -> Option<Keyword> {
    Some(match word {
        b"fn" => Keyword::Fn,
        b"fl" => Keyword::Fl,
        b"fi" => Keyword::Fi,
        b"fe" => Keyword::Fe,
        b"ob" => Keyword::Ob,
        b"cob" => Keyword::Cob,
        b"cfi" | b"cfl" => Keyword::Cfi,
        b"cfn" => Keyword::Cfn,
        b"calls" => Keyword::Calls,
        b"jump" => Keyword::Jump,
        b"jcnd" => Keyword::Jcnd,
        b"jfi" => Keyword::Jfi,
        b"jfn" => Keyword::Jfn,
        b"frfn" => Keyword::Frfn,
        b"rec" => Keyword::Rec,
        _ => return None,
    })
}

/// The statements of a text, without its cost lines, at the speed of memory: a cost line holds neither `=` nor `:`.
/// Yields the offset of each line and the line without its line feed.
pub(in super::super) fn statements(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut done = 0;
    memchr2_iter(b'=', b':', text).filter_map(move |mark| {
        if mark < done {
            return None;
        }
        let start = memchr::memrchr(b'\n', &text[done..mark]).map_or(done, |at| done + at + 1);
        let end = memchr::memchr(b'\n', &text[mark..]).map_or(text.len(), |at| mark + at);
        done = end;
        Some((start, &text[start..end]))
    })
}

/// All lines of a text with their offsets, without their line feeds.
pub(in super::super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let start = at;
        at += len + 1;
        Some((start, &rest[..len]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_skip_cost_lines_only() {
        let text = b"events: Ir\nfn=(1) a=b::c\n0x10 1 2\n+3 * 4\ncfn=x\ncalls=1 2\n";
        let found: Vec<_> = statements(text).map(|(_, line)| line).collect();
        assert_eq!(found, [&b"events: Ir"[..], b"fn=(1) a=b::c", b"cfn=x", b"calls=1 2"]);
        assert_eq!(Statement::parse(b"fn=(1) a=b::c"), Statement::Spec(Keyword::Fn, b"(1) a=b::c"));
        assert_eq!(Statement::parse(b"events: Ir Dr"), Statement::Header(b"events", b"Ir Dr"));
        assert_eq!(Statement::parse(b"xyz=1"), Statement::Other);
        assert_eq!(Statement::parse(b"calls=1 2 "), Statement::Spec(Keyword::Calls, b"1 2"));
    }
}
