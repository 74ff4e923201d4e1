//! Tables as text, CSV or JSON: what `report`, `stats` and `doctor` print.
//!
//! Text is aligned, numbers to the right, and the last column is not padded. CSV is RFC 4180 with a header line. In both,
//! names are printable, and in CSV none is a formula.
//! JSON is an array of objects, numbers as numbers.

use crate::error::Result;
use crate::model::printable::{csv_cell, printable};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::io::Write;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Aligned columns.
    #[default]
    Text,
    /// Comma-separated values.
    Csv,
    /// An array of objects.
    Json,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A name.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A percentage, shown with two decimals and `%`; a plain number in CSV and JSON.
    Percent(f64),
    /// A number that is shown with so many decimals.
    Number(f64, usize),
    /// Not known: empty, or `null`.
    None,
}

impl Cell {
    fn shown(&self, layout: Layout) -> String {
        match *self {
            Self::Text(ref text) if layout == Layout::Csv => csv_cell(text.as_bytes()).into_owned(),
            Self::Text(ref text) => printable(text.as_bytes()).into_owned(),
            Self::Count(count) => count.to_string(),
            Self::Signed(number) => number.to_string(),
            Self::Percent(percent) if layout == Layout::Text => format!("{percent:.2}%"),
            Self::Percent(percent) => format!("{percent:.4}"),
            Self::Number(number, decimals) => format!("{number:.decimals$}"),
            Self::None => String::new(),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Signed(number) => serializer.serialize_i64(*number),
            // Rounded as in CSV, so that the two say the same.
            Self::Percent(percent) => serializer.serialize_f64((percent * 1e4).round() / 1e4),
            Self::Number(number, decimals) => {
                let scale = 10f64.powi(i32::try_from(*decimals).unwrap_or(0));
                serializer.serialize_f64((number * scale).round() / scale)
            }
            Self::None => serializer.serialize_none(),
        }
    }
}

/// Named columns and rows of as many cells.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Writes it.
    pub fn write(&self, layout: Layout, out: &mut dyn Write) -> Result<()> {
        match layout {
            Layout::Text => self.write_text(out),
            Layout::Csv => self.write_csv(out),
            Layout::Json => {
                serde_json::to_writer(&mut *out, self).map_err(std::io::Error::from)?;
                Ok(writeln!(out)?)
            }
        }
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<()> {
        let shown: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| cell.shown(Layout::Text)).collect()).collect();
        let left: Vec<bool> = (0..self.columns.len())
            .map(|at| self.rows.iter().all(|row| matches!(row.get(at), Some(Cell::Text(_) | Cell::None) | None)))
            .collect();
        let mut widths: Vec<usize> = self.columns.iter().map(|name| name.chars().count()).collect();
        for row in &shown {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        let header: Vec<String> = self.columns.iter().map(|&name| name.to_owned()).collect();
        for row in std::iter::once(&header).chain(&shown) {
            let mut line = String::new();
            for (at, text) in row.iter().enumerate() {
                let width = widths.get(at).copied().unwrap_or(0);
                let padding = " ".repeat(width.saturating_sub(text.chars().count()));
                let gap = if at == 0 { "" } else { "  " };
                let padded = if left.get(at) == Some(&true) { [gap, text, &padding] } else { [gap, &padding, text] };
                padded.iter().for_each(|part| line.push_str(part));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn write_csv(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", self.columns.join(","))?;
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.shown(Layout::Csv)).collect();
            writeln!(out, "{}", cells.join(","))?;
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
        table.rows.push(vec![Cell::Percent(12.5), Cell::Count(7), Cell::Text("f<a, b>".to_owned())]);
        table.rows.push(vec![Cell::Percent(1.0 / 3.0), Cell::Count(1000), Cell::Text("\"x\"".to_owned())]);
        let mut out = Vec::new();
        table.write(layout, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_printable_and_no_formulas() {
        let mut table = Table::new(&["name"]);
        table.rows.push(vec![Cell::Text("=a\n\x1b[2J".to_owned())]);
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
