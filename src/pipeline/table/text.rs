//! Writes a table as aligned text, at full width or fitted to a terminal.
//!
//! Widths are counted in terminal columns: a Chinese character takes two, a combining character none.

use super::cell::{Cell, Layout};
use crate::error::Result;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::io::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How to fit the text of a table to where it is shown. The default is for files and pipes: full width, no colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    /// The maximum width of a line, for which long names are cut in the middle. `None` for no maximum.
    pub width: Option<usize>,
    /// True if colors and faint text are allowed.
    pub color: bool,
}

/// Names aren't cut to less than this width, even if lines get too long: nobody could recognize them.
const LEAST_NAME: usize = 12;

/// If names must be cut, those of modules and others are cut down to this width first. Only then are functions
/// (symbols) cut.
const TELLING_NAME: usize = 18;

/// The maximum width to which a column of names is padded, if lines may have any length. A longer name then moves the
/// following columns in its own row only, rather than in all rows.
const ALIGNED_NAME: usize = 100;

const GAP: &str = "  ";

/// Terminal escape sequences for colors and styles (ECMA-48, "select graphic rendition").
mod colors {
    pub(super) const RED: &str = "\x1b[31m";
    pub(super) const GREEN: &str = "\x1b[32m";
    pub(super) const BOLD: &str = "\x1b[1m";
    pub(super) const FAINT: &str = "\x1b[2m";
    pub(super) const PLAIN: &str = "\x1b[0m";
}

/// A table that is to be written as text.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) columns: &'a [&'static str],
    pub(super) rows: &'a [Vec<Cell>],
    /// The indexes of rows that are less important.
    pub(super) faint: &'a FxHashSet<usize>,
    pub(super) style: TextStyle,
}

/// The widths and the alignment of the columns.
struct Fitted {
    /// For each column, the maximum width of its cells. Longer texts are cut.
    widths: Vec<usize>,
    /// For each column, the width to which its cells are padded. Less than the maximum if longer cells should stick
    /// out.
    padded_widths: Vec<usize>,
    /// For each column, true if it contains names, which are left-aligned.
    is_left_aligned: Vec<bool>,
}

impl Text<'_> {
    /// Writes the table: the names of the columns, then the rows, each cell padded or cut to the width of its column.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        let fitted = self.fitted();
        let (mut line, mut text) = (String::new(), String::new());
        for (column, name) in self.columns.iter().enumerate() {
            fitted.align(column, &cut_middle(name, fitted.widths[column]), &mut line);
        }
        write_line(out, &line, self.style.color.then_some(colors::BOLD))?;
        for (number, row) in self.rows.iter().enumerate() {
            let faint = self.style.color && self.faint.contains(&number);
            line.clear();
            for (column, cell) in row.iter().enumerate() {
                text.clear();
                cell.show(Layout::Text, &mut text);
                let color = cell.color().filter(|_| self.style.color && !faint);
                fitted.align_in(color, column, &cell.cut(&text, fitted.widths[column]), &mut line);
            }
            write_line(out, &line, faint.then_some(colors::FAINT))?;
        }
        Ok(())
    }

    /// Computes how wide each column is: as wide as its widest cell, but less if the table would be wider than the
    /// terminal. Without a terminal, nothing is cut, but a single long name doesn't move the columns of all rows apart.
    fn fitted(&self) -> Fitted {
        let is_left_aligned: Vec<bool> = (0..self.columns.len()).map(|column| self.has_only_names(column)).collect();
        let mut widths: Vec<usize> = self.columns.iter().map(|name| width(name)).collect();
        let mut text = String::new();
        for row in self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                text.clear();
                cell.show(Layout::Text, &mut text);
                *widest = (*widest).max(width(&text));
            }
        }
        if let Some(line_width) = self.style.width {
            let symbol_column = self.columns.iter().position(|name| *name == "symbol");
            fit(&mut widths, &is_left_aligned, symbol_column, line_width);
        }
        // Without a terminal, columns with names are padded to `ALIGNED_NAME` at most. Longer names stick out of the
        // column in their own row only.
        let mut padded_widths = widths.clone();
        if self.style.width.is_none() {
            for (padded_width, is_left_aligned) in padded_widths.iter_mut().zip(&is_left_aligned) {
                if *is_left_aligned {
                    *padded_width = ALIGNED_NAME.min(*padded_width);
                }
            }
        }
        Fitted { widths, padded_widths, is_left_aligned }
    }

    /// True if the column with this index contains only names and unknown values. These are left-aligned and may be
    /// cut.
    fn has_only_names(&self, column: usize) -> bool {
        let is_name = |row: &Vec<Cell>| {
            matches!(row.get(column), Some(Cell::Text(_) | Cell::Word(_) | Cell::Branch(_) | Cell::None) | None)
        };
        self.rows.iter().all(is_name)
    }
}

impl Fitted {
    /// Appends the text of a cell to the line, without a color; see [`align_in`](Self::align_in).
    fn align(&self, column: usize, text: &str, line: &mut String) {
        self.align_in(None, column, text, line);
    }

    /// Appends a cell to the line, padded to the width of the column with this index, and in a color if there is one.
    /// Numbers are padded on the left and names on the right; a name in the last column isn't padded.
    fn align_in(&self, color: Option<&str>, column: usize, text: &str, line: &mut String) {
        let padding = self.padded_widths[column].saturating_sub(width(text));
        let (before, after) = match self.is_left_aligned[column] {
            true if column + 1 == self.widths.len() => (0, 0),
            true => (0, padding),
            false => (padding, 0),
        };
        line.push_str(if column == 0 { "" } else { GAP });
        line.push_str(color.unwrap_or_default());
        line.extend(std::iter::repeat_n(' ', before));
        line.push_str(text);
        line.extend(std::iter::repeat_n(' ', after));
        line.push_str(if color.is_some() { colors::PLAIN } else { "" });
    }
}

impl Cell {
    /// The color of a cell, like in perf report: red for large shares, green for moderate ones. For differences, red
    /// for an increase, green for a decrease. `None` for no color.
    fn color(&self) -> Option<&'static str> {
        match *self {
            Self::Percent(percent) if percent >= 5.0 => Some(colors::RED),
            Self::Percent(percent) if percent >= 0.5 => Some(colors::GREEN),
            Self::Points(points) if points > 0.0 => Some(colors::RED),
            Self::Points(points) if points < 0.0 => Some(colors::GREEN),
            _ => None,
        }
    }

    /// The text of a cell, cut to at most `most` terminal columns. In a call tree, the lines drawn before a name aren't
    /// cut, only the name.
    fn cut<'t>(&self, text: &'t str, most: usize) -> Cow<'t, str> {
        match self {
            _ if width(text) <= most => Cow::Borrowed(text),
            Self::Branch(branch) => {
                let lines = &branch.lines;
                let name = text.strip_prefix(lines.as_str()).unwrap_or(text);
                Cow::Owned(format!("{lines}{}", cut_middle(name, most.saturating_sub(width(lines)))))
            }
            _ => cut_middle(text, most),
        }
    }
}

/// Reduces the widths of columns with names (`has_names`), widest first, until lines fit into `line_width` columns of
/// the terminal. The column with functions (`symbol_column`) matters most: it is only reduced when names in other
/// columns are as short as they can be without becoming indistinguishable. If that isn't enough, lines stay too long.
fn fit(widths: &mut [usize], has_names: &[bool], symbol_column: Option<usize>, line_width: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(line_width);
    // At first, the column with functions is spared, and the others keep `TELLING_NAME` columns. If that isn't enough,
    // all are reduced to `LEAST_NAME`.
    for (spared_column, least) in [(symbol_column, TELLING_NAME), (None, LEAST_NAME)] {
        while excess > 0 {
            let may_shrink =
                |column: &usize| has_names[*column] && Some(*column) != spared_column && widths[*column] > least;
            let Some(widest) = (0..has_names.len()).filter(may_shrink).max_by_key(|column| widths[*column]) else {
                break;
            };
            widths[widest] -= 1;
            excess -= 1;
        }
    }
}

fn write_line(out: &mut dyn Write, line: &str, style: Option<&str>) -> Result<()> {
    let line = line.trim_end();
    match style {
        Some(style) => writeln!(out, "{style}{line}{}", colors::PLAIN)?,
        None => writeln!(out, "{line}")?,
    }
    Ok(())
}

/// Cuts out the middle of a text that is wider than `most` terminal columns. Both ends stay, because names usually
/// start with a directory or module and end with the file or function itself.
pub fn cut_middle(text: &str, most: usize) -> Cow<'_, str> {
    if width(text) <= most {
        return Cow::Borrowed(text);
    }
    if most == 0 {
        return Cow::Borrowed("");
    }
    // One column is for the mark of what was cut out.
    let room = most - 1;
    let mut tail = take_fitting(text.chars().rev(), room / 2);
    // `tail` is in reverse order, so its last character comes after what is cut out. A combining character can't stand
    // there, without the character before it.
    while tail.last().is_some_and(|last| last.width() == Some(0)) {
        tail.pop();
    }
    let head = take_fitting(text.chars(), room - room / 2);
    let mut cut: String = head.into_iter().collect();
    cut.push('…');
    cut.extend(tail.iter().rev());
    Cow::Owned(cut)
}

/// The width of a text in terminal columns. There is a fast path for printable ASCII.
fn width(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) { text.len() } else { text.width() }
}

/// As many of the characters as fit into `width` terminal columns.
fn take_fitting(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut room = width;
    let mut fitting = Vec::new();
    for c in chars {
        // `None`: the character is wider than the room that is left.
        let Some(new_room) = room.checked_sub(c.width().unwrap_or(0)) else { break };
        room = new_room;
        fitting.push(c);
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::table::Table;

    fn table() -> Table {
        let mut table = Table::new(&["self%", "module", "symbol", "n"]);
        let long = "std::collections::hash_map::HashMap<K,V,S>::insert_unique_with_a_long_name";
        for (percent, module, symbol) in [(12.5, "libc.so.6", "malloc"), (0.25, "a", long), (1.0, "模块", "函数名")]
        {
            let text = |text: &str| Cell::text(text);
            table.rows.push(vec![Cell::Percent(percent), text(module), text(symbol), Cell::Count(7)]);
        }
        table
    }

    fn lines(style: TextStyle) -> Vec<String> {
        let mut out = Vec::new();
        table().write_text(style, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn one_long_name_does_not_pad_all_rows_where_lines_may_be_of_any_length() {
        let mut table = Table::new(&["symbol", "source"]);
        let text = |text: &str| Cell::text(text);
        for symbol in ["f".repeat(1000), "g".to_owned()] {
            table.rows.push(vec![text(&symbol), text("a.rs:1")]);
        }
        let mut out = Vec::new();
        table.write_text(TextStyle::default(), &mut out).unwrap();
        let lines: Vec<usize> = String::from_utf8(out).unwrap().lines().map(str::len).collect();
        assert_eq!(lines, [108, 1008, 108]);
    }

    #[test]
    fn in_full_every_column_is_as_wide_as_its_widest_name() {
        let lines = lines(TextStyle::default());
        assert_eq!(lines[1], format!("12.50%  libc.so.6  {:74}  7", "malloc"));
        assert!(lines.iter().all(|line| line.width() == 6 + 2 + 9 + 2 + 74 + 2 + 1), "{lines:#?}");
    }

    #[test]
    fn names_lose_their_middle_where_the_table_is_too_wide() {
        let lines = lines(TextStyle { width: Some(50), color: false });
        assert!(lines.iter().all(|line| line.width() == 50), "{lines:#?}");
        assert_eq!(lines[2], " 0.25%  a          std::collectio…h_a_long_name  7");
    }

    #[test]
    fn a_cut_name_is_as_wide_as_requested_with_wide_characters_too() {
        assert_eq!(cut_middle("abcdef", 6), "abcdef");
        assert_eq!(cut_middle("abcdefg", 6), "abc…fg");
        assert_eq!(cut_middle("函数名函数名", 7), "函…名");
        assert_eq!(cut_middle("e\u{301}e\u{301}e\u{301}e\u{301}", 3), "e\u{301}…e\u{301}");
        assert_eq!(cut_middle("abc", 1), "…");
        assert_eq!(cut_middle("abc", 0), "");
    }

    #[test]
    fn colors_stand_around_what_is_aligned() {
        let lines = lines(TextStyle { width: None, color: true });
        assert!(lines[0].starts_with("\x1b[1m self%"), "{}", lines[0]);
        assert!(lines[1].starts_with("\x1b[31m12.50%\x1b[0m  libc"), "{}", lines[1]);
        assert!(lines[2].starts_with(" 0.25%  a"), "{}", lines[2]);
        let mut faint = table();
        faint.faint.insert(0);
        let mut out = Vec::new();
        faint.write_text(TextStyle { width: None, color: true }, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("\x1b[2m12.50%  libc"));
    }

    #[test]
    fn the_lines_of_a_tree_are_not_cut() {
        let mut table = Table::new(&["symbol"]);
        table.rows.push(vec![Cell::branch("│ └ ".to_owned(), "a_long_name_of_a_function".to_owned())]);
        let mut out = Vec::new();
        table.write_text(TextStyle { width: Some(16), color: false }, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "symbol\n│ └ a_long…ction\n");
    }
}
