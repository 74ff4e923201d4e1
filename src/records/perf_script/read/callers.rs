//! Finds the callers that a stack in a text shares with the previous stack. Callers are at the end of a stack's text.

use crate::model::stacks::StackId;
use memchr::memmem::Finder;
use std::ops::Range;

/// Searches a text for the empty lines that end samples.
#[derive(Debug)]
pub(super) struct Paragraphs {
    finder: Finder<'static>,
    /// No empty line begins before this offset, so searches from earlier offsets fail at once.
    none_before: usize,
}

/// Limit in bytes for the distance at which an empty line is searched.
const NEAR: usize = 1 << 16;

impl Default for Paragraphs {
    fn default() -> Self {
        Self { finder: Finder::new(b"\n\n"), none_before: 0 }
    }
}

impl Paragraphs {
    /// End of the last line before an empty line: the offset of its line feed, searched from `start` on. `None` if
    /// there is no empty line within [`NEAR`] bytes.
    pub(super) fn find_end(&mut self, text: &[u8], start: usize) -> Option<usize> {
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

/// The previous stack and its lines.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// The stack's byte range in the text.
    range: Range<usize>,
    /// The stack's lines, outermost caller first.
    lines: Vec<CallerLine>,
}

#[derive(Debug, Clone, Copy)]
struct CallerLine {
    /// Number of bytes from the start of the line to the end of the stack.
    to_end: usize,
    /// The stack that consists of the frames of this line and of its callers.
    stack: Option<StackId>,
}

/// The lines that a stack shares with the previous one.
#[derive(Debug)]
pub(super) struct SharedCallers {
    /// Offset in the text at which the lines end that the stack doesn't share.
    pub(super) new_end: usize,
    /// The stack that consists of the shared lines.
    pub(super) stack: Option<StackId>,
    /// Number of shared lines.
    lines: usize,
}

impl Callers {
    /// Compares the stack in `range` of the text with the previous one.
    pub(super) fn find_shared(&self, text: &[u8], range: &Range<usize>) -> SharedCallers {
        let (previous, current) = (&text[self.range.clone()], &text[range.clone()]);
        let suffix = common_suffix_len(previous, current);
        // A line is only shared if it also begins a line in the current stack, and isn't just the end of a longer one.
        let begins_line = |to_end: usize| to_end == current.len() || current[current.len() - to_end - 1] == b'\n';
        let last = self.lines.iter().rposition(|line| line.to_end <= suffix && begins_line(line.to_end));
        match last {
            Some(last) => {
                let CallerLine { to_end, stack } = self.lines[last];
                // The line feed before the shared lines is neither shared nor part of the new lines.
                let new_end = range.start.max((range.end - to_end).saturating_sub(1));
                SharedCallers { new_end, stack, lines: last + 1 }
            }
            None => SharedCallers { new_end: range.end, stack: None, lines: 0 },
        }
    }

    /// Replaces the previous stack by the current one, and keeps the lines that both share. Add the other lines with
    /// [`Self::push`], outermost first.
    pub(super) fn begin(&mut self, range: Range<usize>, shared: &SharedCallers) {
        self.lines.truncate(shared.lines);
        self.range = range;
    }

    /// Adds the next line of the current stack. `to_end` is the number of bytes from the line's start to the end of the
    /// stack; `stack` consists of the line and its callers.
    pub(super) fn push(&mut self, to_end: usize, stack: Option<StackId>) {
        self.lines.push(CallerLine { to_end, stack });
    }
}

/// Length in bytes of the common suffix of two texts.
fn common_suffix_len(a: &[u8], b: &[u8]) -> usize {
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
        let shared = callers.find_shared(text, &(0..6));
        assert_eq!((shared.new_end, shared.stack), (6, None));
        callers.begin(0..6, &shared);
        callers.push(2, stack(0));
        callers.push(6, stack(1));
        // `ab` and `b` share a letter, but not a line.
        let shared = callers.find_shared(text, &(7..12));
        assert_eq!((shared.new_end, shared.stack), (9, stack(0)));
        callers.begin(7..12, &shared);
        callers.push(5, stack(2));
        // Here one stack is the end of the other.
        let shared = callers.find_shared(text, &(10..12));
        assert_eq!((shared.new_end, shared.stack), (10, stack(0)));
    }

    #[test]
    fn an_empty_line_is_not_looked_for_twice_where_it_is_missing() {
        let mut text = vec![b'x'; 3 * NEAR];
        text.extend_from_slice(b"\n\n");
        let mut paragraphs = Paragraphs::default();
        assert_eq!(paragraphs.find_end(&text, 0), None);
        assert!(paragraphs.none_before >= NEAR - 1);
        assert_eq!(paragraphs.find_end(&text, 2 * NEAR + 2), Some(3 * NEAR));
    }
}
