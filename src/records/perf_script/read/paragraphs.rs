//! Where the samples of a text end.

use memchr::memmem::Finder;

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
    /// Where the text from `start` on has its first empty line, without the line feeds before it, if that is not far.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_is_not_looked_for_twice_where_there_is_none() {
        let mut text = vec![b'x'; 3 * NEAR];
        text.extend_from_slice(b"\n\n");
        let mut paragraphs = Paragraphs::default();
        assert_eq!(paragraphs.end(&text, 0), None);
        assert!(paragraphs.none_before >= NEAR - 1);
        assert_eq!(paragraphs.end(&text, 2 * NEAR + 2), Some(3 * NEAR));
    }
}
