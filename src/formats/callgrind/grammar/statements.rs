//! Parses the lines of a callgrind file.

use super::names::IdSpace;
use memchr::{memchr, memchr2, memrchr};

/// The keywords before `=` that a reader of functions and calls must know.
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
    /// The ID namespace of the keyword's value; `None` if its value isn't a name.
    pub(in super::super) fn space(self) -> Option<IdSpace> {
        match self {
            Self::Ob | Self::Cob => Some(IdSpace::Object),
            Self::Fl | Self::Fi | Self::Fe | Self::Cfi | Self::Jfi => Some(IdSpace::File),
            Self::Fn | Self::Cfn | Self::Jfn | Self::Frfn => Some(IdSpace::Function),
            Self::Calls | Self::Jump | Self::Jcnd | Self::Rec => None,
        }
    }
}

/// A parsed line. The cl-format manual calls most kinds of lines specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Statement<'a> {
    /// A line `keyword=value` with a known keyword, such as `fn=(1) main`.
    Spec(Keyword, &'a [u8]),
    /// Positions and costs: begins with a digit, `+`, `-` or `*`.
    Cost(&'a [u8]),
    /// `word: value` in the header of the file or a part.
    Header(&'a [u8], &'a [u8]),
    /// An empty line, a comment, or something unknown.
    Other,
}

impl<'a> Statement<'a> {
    /// Parses a line, given without its line feed. A word of small letters may be followed by `=` (a keyword) or by `:`
    /// (a header), whichever comes first.
    pub(in super::super) fn parse(text: &'a [u8]) -> Self {
        let text = text.trim_ascii_end();
        match text.first() {
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => Self::Cost(text),
            Some(b'a'..=b'z') => match keyword(text) {
                Some((keyword, value)) => Self::Spec(keyword, value),
                None => match text.iter().position(|&byte| byte == b'=' || byte == b':') {
                    Some(colon) if text[colon] == b':' => {
                        Self::Header(&text[..colon], text[colon + 1..].trim_ascii_start())
                    }
                    _ => Self::Other,
                },
            },
            _ => Self::Other,
        }
    }
}

/// Splits `keyword=value`. `None` if the text isn't of this form, or the keyword isn't known.
fn keyword(text: &[u8]) -> Option<(Keyword, &[u8])> {
    let equals = text.iter().take(LONGEST_KEYWORD + 1).position(|&byte| byte == b'=')?;
    let keyword = match &text[..equals] {
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
    };
    Some((keyword, &text[equals + 1..]))
}

/// Length of the longest keyword, `calls`.
const LONGEST_KEYWORD: usize = 5;

/// Iterates over the statements and headers of a text, each with the offset of its line. Cost lines, comments and empty
/// lines are left out. Most lines are cost lines; they contain neither `=` nor `:`, so a search for these bytes skips
/// many at once.
pub(in super::super) fn statements(text: &[u8]) -> impl Iterator<Item = (usize, Statement<'_>)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(offset..)?;
            if !rest.first()?.is_ascii_lowercase() {
                // Not a statement. Go to the next line that contains `=` or `:`. If that is this same line, go to the
                // line after it.
                let sign = memchr2(b'=', b':', rest)?;
                offset += match memrchr(b'\n', &rest[..sign]) {
                    Some(line_feed) => line_feed + 1,
                    None => sign + line_len(&rest[sign..]) + 1,
                };
                continue;
            }
            let start = offset;
            let line = &rest[..line_len(rest)];
            offset += line.len() + 1;
            match Statement::parse(line) {
                Statement::Other => {}
                statement => return Some((start, statement)),
            }
        }
    })
}

/// All lines of a text with their offsets, without line feeds.
pub(in super::super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let len = line_len(rest);
        next = start + len + 1;
        Some((start, &rest[..len]))
    })
}

/// Length of the first line without its line feed.
fn line_len(text: &[u8]) -> usize {
    memchr(b'\n', text).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_skip_cost_lines_only() {
        let text = b"events: Ir\nfn=(1) a=b::c\n0x10 1 2\n+3 * 4\ncfn=x\ncalls=1 2\n";
        let found: Vec<_> = statements(text).map(|(_, statement)| statement).collect();
        let expected = [&b"events: Ir"[..], b"fn=(1) a=b::c", b"cfn=x", b"calls=1 2"];
        assert_eq!(found, expected.map(Statement::parse));
        let text = b"calls=1 2\n7=: 5\n\nob=y\ncalls=2\nfn=z\n1 2\n3=4\njump=1 0\n\n\njcnd=1/2 0\n1\nfi=(1)";
        let found: Vec<_> = statements(text).map(|(at, statement)| (&text[at..], statement)).collect();
        let expected = [&b"calls=1 2"[..], b"ob=y", b"calls=2", b"fn=z", b"jump=1 0", b"jcnd=1/2 0", b"fi=(1)"];
        assert_eq!(found.len(), expected.len());
        for ((rest, statement), line) in found.into_iter().zip(expected) {
            assert!(rest.starts_with(line));
            assert_eq!(statement, Statement::parse(line));
        }
        assert_eq!(Statement::parse(b"fn=(1) a=b::c"), Statement::Spec(Keyword::Fn, b"(1) a=b::c"));
        assert_eq!(Statement::parse(b"events: Ir Dr"), Statement::Header(b"events", b"Ir Dr"));
        assert_eq!(Statement::parse(b"xyz=1"), Statement::Other);
        assert_eq!(Statement::parse(b"calls=1 2 "), Statement::Spec(Keyword::Calls, b"1 2"));
    }

    #[test]
    fn every_keyword_and_nothing_else() {
        let words = "fn fl fi fe ob cob cfi cfl cfn calls jump jcnd jfi jfn frfn rec";
        for word in words.split(' ') {
            for value in ["", "5 =x"] {
                let text = format!("{word}={value}");
                let Statement::Spec(key, found) = Statement::parse(text.as_bytes()) else { panic!("{text}") };
                assert_eq!(found, value.as_bytes());
                assert_eq!(format!("{key:?}").to_lowercase(), if word == "cfl" { "cfi" } else { word });
            }
            for other in [word.to_owned(), format!("{word}s="), format!("x{word}="), format!("{}=", &word[1..])] {
                let found = Statement::parse(other.as_bytes());
                let is_word = words.split(' ').any(|word| other == format!("{word}="));
                assert_eq!(matches!(found, Statement::Spec(..)), is_word, "{other}");
            }
        }
    }
}
