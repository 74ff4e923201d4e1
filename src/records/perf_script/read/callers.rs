//! The part of a stack in common with the stack before: its callers, which are at its end.

use crate::model::stacks::StackId;
use memchr::memmem::Finder;
use std::ops::Range;

/// Finds where samples end.
#[derive(Debug)]
pub(super) struct Paragraphs {
    finder: Finder<'static>,
    /// No empty line begins before this.
    none_before: usize,
}

/// As far as this an empty line is looked for at first.
const NEAR: usize = 1 << 16;

impl Default for Paragraphs {
    fn default() -> Self {
        Self { finder: Finder::new(b"\n\n"), none_before: 0 }
    }
}

impl Paragraphs {
    /// The place where the text from `start` on has its first empty line, without the line feeds before it, if that is
    /// not far.
    pub(super) fn end(&mut self, text: &[u8], start: usize) -> Option<usize> {
        if start < self.none_before {
            return None;
        }
        let near = &text[start.min(text.len())..text.len().min(start.saturating_add(NEAR))];
        let found = self.finder.find(near).map(|len| start + len);
        if found.is_none() {
            self.none_before = start + near.len().saturating_sub(1);
        }
        found
    }
}

/// The lines of the stack before.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// Its place in the text.
    range: Range<usize>,
    /// Its lines, outermost first.
    lines: Vec<CallerLine>,
}

#[derive(Debug, Clone, Copy)]
struct CallerLine {
    /// The number of bytes from its start to the stack's end.
    to_end: usize,
    /// The stack of this line and all below it.
    stack: Option<StackId>,
}

/// The part of a stack that is known from the one before.
#[derive(Debug)]
pub(super) struct Shared {
    /// The end of its own lines.
    pub(super) own_end: usize,
    /// The stack of the others.
    pub(super) stack: Option<StackId>,
    /// The number of others.
    lines: usize,
}

impl Callers {
    /// Compares the stack that is there with the one before.
    pub(super) fn shared(&self, text: &[u8], range: &Range<usize>) -> Shared {
        let (before, now) = (&text[self.range.clone()], &text[range.clone()]);
        let shared = shared_end(before, now);
        // A line is shared if it begins behind a line feed here, too.
        let begins_a_line = |to_end: usize| to_end == now.len() || now[now.len() - to_end - 1] == b'\n';
        let is_shared = |line: &CallerLine| line.to_end <= shared && begins_a_line(line.to_end);
        let lines = self.lines.iter().rposition(is_shared).map_or(0, |last| last + 1);
        match self.lines[..lines].last() {
            // Its own lines end before a line feed.
            Some(line) => {
                let own_end = range.start.max((range.end - line.to_end).saturating_sub(1));
                Shared { own_end, stack: line.stack, lines }
            }
            None => Shared { own_end: range.end, stack: None, lines },
        }
    }

    /// The stack that is read now, this much of it shared; its own lines follow, outermost first.
    pub(super) fn begin(&mut self, range: Range<usize>, shared: &Shared) {
        self.lines.truncate(shared.lines);
        self.range = range;
    }

    /// The next line of it.
    pub(super) fn push(&mut self, to_end: usize, stack: Option<StackId>) {
        self.lines.push(CallerLine { to_end, stack });
    }
}

/// The length of the common suffix of two texts, in bytes.
fn shared_end(a: &[u8], b: &[u8]) -> usize {
    const WORD: usize = 16;
    let ((_, a_words), (_, b_words)) = (a.as_rchunks::<WORD>(), b.as_rchunks::<WORD>());
    let words = a_words.iter().rev().zip(b_words.iter().rev()).take_while(|(a, b)| a == b).count() * WORD;
    let (a, b) = (&a[..a.len() - words], &b[..b.len() - words]);
    words + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_shared_by_whole_lines() {
        let text = b"\tab\n\tc\n\tb\n\tc\n\tc\n\tab\n\tc";
        let stack = |number| Some(StackId(number));
        let mut callers = Callers::default();
        let shared = callers.shared(text, &(0..6));
        assert_eq!((shared.own_end, shared.stack), (6, None));
        callers.begin(0..6, &shared);
        callers.push(2, stack(0));
        callers.push(6, stack(1));
        // Of `ab` and `b` only the letter is the same.
        let shared = callers.shared(text, &(7..12));
        assert_eq!((shared.own_end, shared.stack), (9, stack(0)));
        callers.begin(7..12, &shared);
        callers.push(5, stack(2));
        // One is all that the other begins with.
        let shared = callers.shared(text, &(10..12));
        assert_eq!((shared.own_end, shared.stack), (10, stack(0)));
    }

    #[test]
    fn an_empty_line_is_not_looked_for_twice_where_it_is_missing() {
        let mut text = vec![b'x'; 3 * NEAR];
        text.extend_from_slice(b"\n\n");
        let mut paragraphs = Paragraphs::default();
        assert_eq!(paragraphs.end(&text, 0), None);
        assert!(paragraphs.none_before >= NEAR - 1);
        assert_eq!(paragraphs.end(&text, 2 * NEAR + 2), Some(3 * NEAR));
    }
}
