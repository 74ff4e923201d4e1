//! Parses the lines of a callgrind file.

use super::names::IdSpace;
use memchr::memchr2;

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

/// A parsed line. The cl-format manual calls most of them specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Statement<'a> {
    /// `keyword=value`
    Spec(Keyword, &'a [u8]),
    /// Positions and costs: begins with a digit, `+`, `-` or `*`.
    Cost(&'a [u8]),
    /// `word: value` in the header of the file or a part.
    Header(&'a [u8], &'a [u8]),
    /// An empty line, a comment, or something unknown.
    Other,
}

impl<'a> Statement<'a> {
    /// Parses a line without its line feed.
    #[inline]
    pub(in super::super) fn parse(text: &'a [u8]) -> Self {
        let text = text.trim_ascii_end();
        match text.first() {
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => Self::Cost(text),
            Some(b'a'..=b'z') => match keyword(text) {
                Some((keyword, value)) => Self::Spec(keyword, value),
                None => match text.iter().position(|&byte| byte == b'=' || byte == b':') {
                    Some(mark) if text[mark] == b':' => {
                        Self::Header(&text[..mark], text[mark + 1..].trim_ascii_start())
                    }
                    _ => Self::Other,
                },
            },
            _ => Self::Other,
        }
    }
}

/// Splits `keyword=value`.
#[inline]
fn keyword(text: &[u8]) -> Option<(Keyword, &[u8])> {
    // Compared as integers, because the order of keywords is too irregular for branch prediction.
    const fn word(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }
    const FN: u32 = word(*b"fn=\0");
    const FL: u32 = word(*b"fl=\0");
    const FI: u32 = word(*b"fi=\0");
    const FE: u32 = word(*b"fe=\0");
    const OB: u32 = word(*b"ob=\0");
    const COB: u32 = word(*b"cob=");
    const CFI: u32 = word(*b"cfi=");
    const CFL: u32 = word(*b"cfl=");
    const CFN: u32 = word(*b"cfn=");
    const JFI: u32 = word(*b"jfi=");
    const JFN: u32 = word(*b"jfn=");
    const REC: u32 = word(*b"rec=");
    const CALL: u32 = word(*b"call");
    const JUMP: u32 = word(*b"jump");
    const JCND: u32 = word(*b"jcnd");
    const FRFN: u32 = word(*b"frfn");
    let &[a, b, c, ref behind @ ..] = text else { return None };
    let short = match word([a, b, c, 0]) {
        FN => Keyword::Fn,
        FL => Keyword::Fl,
        FI => Keyword::Fi,
        FE => Keyword::Fe,
        OB => Keyword::Ob,
        _ => {
            let (&d, behind) = behind.split_first()?;
            let long = match word([a, b, c, d]) {
                COB => Keyword::Cob,
                CFI | CFL => Keyword::Cfi,
                CFN => Keyword::Cfn,
                JFI => Keyword::Jfi,
                JFN => Keyword::Jfn,
                REC => Keyword::Rec,
                CALL => return Some((Keyword::Calls, behind.strip_prefix(b"s=")?)),
                JUMP => return Some((Keyword::Jump, behind.strip_prefix(b"=")?)),
                JCND => return Some((Keyword::Jcnd, behind.strip_prefix(b"=")?)),
                FRFN => return Some((Keyword::Frfn, behind.strip_prefix(b"=")?)),
                _ => return None,
            };
            return Some((long, behind));
        }
    };
    Some((short, behind))
}

/// Iterates over the statements and headers of a text, skipping cost lines at memory speed: a cost line contains
/// neither `=` nor `:`. Yields the offset of each line, the line without its line feed, and its meaning.
pub(in super::super) fn statements(text: &[u8]) -> Statements<'_> {
    Statements { text, offset: 0, follows_site: false }
}

/// The iterator returned by [`statements`].
#[derive(Debug)]
pub(in super::super) struct Statements<'a> {
    text: &'a [u8],
    /// Offset of the next line.
    offset: usize,
    /// True if the previous line was `calls=`, `jump=` or `jcnd=`. A cost line follows these.
    follows_site: bool,
}

impl Statements<'_> {
    /// Continues at an offset, which must be the start of a line.
    pub(in super::super) fn seek(&mut self, offset: usize) {
        self.offset = offset;
        self.follows_site = false;
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = (usize, &'a [u8], Statement<'a>);

    // Inlined to keep the result in registers. Otherwise it would be written to memory and read back in different
    // widths, which takes longer than finding it.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.text.get(self.offset..)?;
            let first = *rest.first()?;
            if first.is_ascii_lowercase() {
                let line = &rest[..line_len(rest)];
                let start = self.offset;
                self.offset += line.len() + 1;
                let statement = Statement::parse(line);
                if !matches!(statement, Statement::Other) {
                    let is_site =
                        matches!(statement, Statement::Spec(Keyword::Calls | Keyword::Jump | Keyword::Jcnd, _));
                    self.follows_site = is_site;
                    return Some((start, line, statement));
                }
                continue;
            }
            // After the cost line of a call, and after an empty line, there is most likely a statement.
            if first == b'\n' || std::mem::take(&mut self.follows_site) {
                self.offset += line_len(rest) + 1;
                continue;
            }
            let mark = memchr2(b'=', b':', rest)?;
            // The current line isn't a statement. Go to the line that contains the `=` or `:`.
            self.offset += match rest[..mark].iter().rposition(|&byte| byte == b'\n') {
                Some(end) => end + 1,
                None => mark + line_len(&rest[mark..]) + 1,
            };
        }
    }
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

/// Length of the first line without its line feed. Most lines are so short that calling memchr would take longer.
#[inline]
pub(in super::super) fn line_len(text: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut searched = 0;
    while searched < 32
        && let Some(bytes) = text[searched..].first_chunk()
    {
        // Line feeds become 0.
        let word = u64::from_le_bytes(*bytes) ^ (u64::from(b'\n') * EACH);
        // Sets the high bit of each byte that is 0. A borrow only affects bytes after the first one.
        let zeros = word.wrapping_sub(EACH) & !word & (0x80 * EACH);
        if zeros != 0 {
            return searched + zeros.trailing_zeros() as usize / 8;
        }
        searched += 8;
    }
    memchr::memchr(b'\n', &text[searched..]).map_or(text.len(), |len| searched + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_skip_cost_lines_only() {
        let text = b"events: Ir\nfn=(1) a=b::c\n0x10 1 2\n+3 * 4\ncfn=x\ncalls=1 2\n";
        let found: Vec<_> = statements(text).map(|(_, line, _)| line).collect();
        assert_eq!(found, [&b"events: Ir"[..], b"fn=(1) a=b::c", b"cfn=x", b"calls=1 2"]);
        // The line after a call has its cost, or is missing.
        let text = b"calls=1 2\n7=: 5\n\nob=y\ncalls=2\nfn=z\n1 2\n3=4\njump=1 0\n\n\njcnd=1/2 0\n1\nfi=(1)";
        let found: Vec<_> = statements(text).map(|(at, line, _)| (&text[at..][..line.len()], line)).collect();
        let expected = [&b"calls=1 2"[..], b"ob=y", b"calls=2", b"fn=z", b"jump=1 0", b"jcnd=1/2 0", b"fi=(1)"];
        assert_eq!(found, expected.map(|line| (line, line)));
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
