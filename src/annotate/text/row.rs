//! A line of text made of colored pieces, cut to the width of the terminal.

use super::super::options::TextOptions;
use crate::model::printable::readable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The color of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Dim,
    Title,
    Hot,
    Warm,
}

impl Paint {
    /// The color for a percentage, by the same limits as in perf.
    pub(super) fn heat(percent: f64) -> Self {
        match percent {
            5.0.. => Self::Hot,
            0.5.. => Self::Warm,
            _ => Self::Plain,
        }
    }

    /// The escape sequence that switches a terminal to this style.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\x1b[2m",
            Self::Title => "\x1b[1m",
            Self::Hot => "\x1b[1;31m",
            Self::Warm => "\x1b[33m",
        }
    }
}

/// A line of text, as pieces with colors.
#[derive(Debug, Default)]
pub(super) struct Row(Vec<(String, Paint)>);

impl Row {
    /// Appends a piece of text. Control characters are replaced by visible ones.
    pub(super) fn with(mut self, text: String, paint: Paint) -> Self {
        self.0.push((readable(text.as_bytes()).into_owned(), paint));
        self
    }

    /// The width of all pieces in terminal columns.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    /// The finished line with color codes, cut to the width of the terminal, and without blanks at its end.
    pub(super) fn finish(self, options: &TextOptions) -> String {
        let mut columns_left = options.width.unwrap_or(usize::MAX);
        let mut line = String::new();
        let fits = self.width() <= columns_left;
        let last = self.0.len().saturating_sub(1);
        for (index, (text, paint)) in self.0.into_iter().enumerate() {
            let mut text: String = if fits { text } else { cut(&text, columns_left) };
            columns_left = columns_left.saturating_sub(text.width());
            if index == last {
                text.truncate(text.trim_end().len());
            }
            if options.color && paint != Paint::Plain && !text.is_empty() {
                line.push_str(paint.code());
                line.push_str(&text);
                line.push_str("\x1b[0m");
            } else {
                line.push_str(&text);
            }
        }
        line
    }
}

/// Cuts the text to at most `most` terminal columns. If something is cut off, the last column is `…`.
fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut columns_left = most.saturating_sub(1);
    let mut start = String::new();
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if width > columns_left {
            break;
        }
        columns_left -= width;
        start.push(c);
    }
    if most > 0 {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(width: Option<usize>, color: bool) -> String {
        let row = Row::default().with("12.00%".into(), Paint::Hot).with(" mov ".into(), Paint::Plain);
        row.with("a.c:1  ".into(), Paint::Dim).finish(&TextOptions { context: None, width, color })
    }

    #[test]
    fn names_do_nothing_to_a_terminal_and_have_an_end() {
        let name = format!("\x1b[2J\u{202e}{}", "a".repeat(1 << 20));
        let line =
            Row::default().with(name, Paint::Plain).finish(&TextOptions { context: None, width: None, color: true });
        assert!(line.starts_with("\\x1b[2J\\u{202e}aaa") && line.len() < 5000, "{line:.100}");
    }

    #[test]
    fn lines_are_cut_to_the_terminal_whatever_their_colors() {
        assert_eq!(finished(None, false), "12.00% mov a.c:1");
        assert_eq!(finished(Some(18), false), "12.00% mov a.c:1");
        assert_eq!(finished(Some(9), false), "12.00% m…");
        assert_eq!(finished(Some(6), true), "\x1b[1;31m12.00%\x1b[0m");
        assert_eq!(finished(None, true), "\x1b[1;31m12.00%\x1b[0m mov \x1b[2ma.c:1\x1b[0m");
    }
}
