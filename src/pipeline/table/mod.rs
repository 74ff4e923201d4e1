//! Tables as text, CSV or JSON, as `report`, `stats` and `doctor` print them.
//!
//! In text, columns are aligned, with numbers on the right; the last column isn't padded. [`TextStyle`] fits the text
//! to a terminal. CSV follows RFC 4180 and has a header line. In text and CSV, special characters in names are escaped,
//! and a name never becomes a formula in CSV. JSON is an array of objects in which numbers are numbers.

mod cell;
mod text;

pub use cell::{Cell, Layout};
pub use text::{TextStyle, cut_middle};

use crate::error::Result;
use rustc_hash::FxHashSet;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::io::Write;

/// A table. Every row has one cell for each column.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows. Each has its cells from left to right.
    pub rows: Vec<Vec<Cell>>,
    /// The indexes of rows that are less important. If colors are allowed, they are shown faint.
    pub faint: FxHashSet<usize>,
}

impl Table {
    /// Creates a table with these columns and no rows.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), ..Self::default() }
    }

    /// Inserts a column that has the same cell in all rows.
    pub fn insert_column(&mut self, index: usize, name: &'static str, cell: &Cell) {
        self.columns.insert(index, name);
        for row in &mut self.rows {
            row.insert(index, cell.clone());
        }
    }

    /// Removes columns in which all cells are empty.
    pub fn drop_empty_columns(&mut self) {
        for index in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row.get(index).is_none_or(Cell::is_empty)) {
                self.columns.remove(index);
                for row in &mut self.rows {
                    row.remove(index);
                }
            }
        }
    }

    /// Writes the table in a layout; as text, at full width and without colors.
    pub fn write(&self, layout: Layout, out: &mut dyn Write) -> Result<()> {
        match layout {
            Layout::Text => self.write_text(TextStyle::default(), out),
            Layout::Csv => self.write_csv(out),
            Layout::Json => {
                serde_json::to_writer(&mut *out, self).map_err(std::io::Error::from)?;
                Ok(writeln!(out)?)
            }
        }
    }

    /// Writes the table as text: with this maximum width, and with or without colors.
    pub fn write_text(&self, style: TextStyle, out: &mut dyn Write) -> Result<()> {
        let text = text::Text { columns: &self.columns, rows: &self.rows, faint: &self.faint, style };
        text.write(out)
    }

    /// Writes the table as CSV, with a line of column names.
    fn write_csv(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", self.columns.join(","))?;
        let mut line = String::new();
        for row in &self.rows {
            line.clear();
            for (index, cell) in row.iter().enumerate() {
                line.push_str(if index == 0 { "" } else { "," });
                cell.show(Layout::Csv, &mut line);
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

struct RowOf<'a>(&'a Table, &'a [Cell]);

impl Serialize for RowOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.1.len()))?;
        for (column, cell) in self.0.columns.iter().zip(self.1) {
            map.serialize_entry(column, cell)?;
        }
        map.end()
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            list.serialize_element(&RowOf(self, row))?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(layout: Layout) -> String {
        let mut table = Table::new(&["self", "count", "name"]);
        table.rows.push(vec![Cell::Percent(12.5), Cell::Count(7), Cell::text("f<a, b>")]);
        table.rows.push(vec![Cell::Percent(1.0 / 3.0), Cell::Count(1000), Cell::text("\"x\"")]);
        let mut out = Vec::new();
        table.write(layout, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_printable_and_no_formulas() {
        let mut table = Table::new(&["name"]);
        table.rows.push(vec![Cell::text("=a\n\x1b[2J")]);
        table.rows.push(vec![Cell::Signed(-1)]);
        let written = |layout| {
            let mut out = Vec::new();
            table.write(layout, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Layout::Text), "         name\n=a\\x0a\\x1b[2J\n           -1\n");
        assert_eq!(written(Layout::Csv), "name\n'=a\\x0a\\x1b[2J\n-1\n");
        assert_eq!(written(Layout::Json), "[{\"name\":\"=a\\n\\u001b[2J\"},{\"name\":-1}]\n");
    }

    #[test]
    fn the_three_layouts() {
        assert_eq!(written(Layout::Text), "  self  count  name\n12.50%      7  f<a, b>\n 0.33%   1000  \"x\"\n");
        assert_eq!(written(Layout::Csv), "self,count,name\n12.5000,7,\"f<a, b>\"\n0.3333,1000,\"\"\"x\"\"\"\n");
        assert_eq!(
            written(Layout::Json),
            "[{\"self\":12.5,\"count\":7,\"name\":\"f<a, b>\"},{\"self\":0.3333,\"count\":1000,\"name\":\"\\\"x\\\"\"}]\n"
        );
    }
}
