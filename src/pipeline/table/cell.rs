//! The values in a table, and how each is written in the different layouts.

use crate::model::printable::{csv_cell, readable};
use crate::model::stacks::MILLION;
use serde::{Serialize, Serializer};
use std::fmt::Write;
use std::sync::Arc;

/// The format in which a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Text with aligned columns, for people.
    #[default]
    Text,
    /// CSV (comma-separated values).
    Csv,
    /// JSON: an array with an object for each row.
    Json,
}

/// A value in a table. A table may contain millions, so a value takes at most three machine words, and names are
/// shared.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A name.
    Text(Arc<str>),
    /// A word from a fixed set, such as a kind of code.
    Word(&'static str),
    /// An integer that isn't negative.
    Count(u64),
    /// An integer that may be negative.
    Signed(i64),
    /// A number, in millionths. It is shown with as many decimals as it needs.
    Millionths(i64),
    /// A percentage. In text, it is shown with two decimals and `%`; in CSV and JSON, it is a plain number.
    Percent(f64),
    /// A difference between percentages. In text, it is shown with two decimals and its sign; in CSV and JSON, it is a
    /// plain number.
    Points(f64),
    /// A name in a tree. In text, it follows lines that connect it to its parent.
    Branch(Box<Branch>),
    /// A number, and with how many decimals to show it.
    Number(f64, u8),
    /// A value that is unknown: empty in text and CSV, `null` in JSON. It may be in a column of names or of numbers.
    None,
    /// Written like [`None`](Self::None), for columns of numbers: the column is right-aligned even if all of its cells
    /// are empty.
    Empty,
}

/// A name in a tree, and the lines that connect it to its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The text that draws the lines to the left of the name. Left out in CSV and JSON.
    pub(super) lines: String,
    pub(super) name: String,
}

impl Cell {
    /// A cell that contains text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A cell with a name in a tree.
    pub fn branch(lines: String, name: String) -> Self {
        Self::Branch(Box::new(Branch { lines, name }))
    }

    /// True if the cell is shown as nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None | Self::Empty => true,
            Self::Text(text) => text.is_empty(),
            Self::Word(word) => word.is_empty(),
            _ => false,
        }
    }

    /// Appends the cell as text for this layout. In a table for people (`Layout::Text`), percentages have two decimals
    /// and a percent sign, and differences (`Points`) have a plus or minus. Other layouts have plain numbers.
    pub(super) fn show(&self, layout: Layout, out: &mut String) {
        let name = |name: &str, out: &mut String| match layout {
            Layout::Csv => out.push_str(&csv_cell(name.as_bytes())),
            _ => out.push_str(&readable(name.as_bytes())),
        };
        let is_text = layout == Layout::Text;
        // Writing to a string can't fail.
        _ = match *self {
            Self::Text(ref text) => return name(text, out),
            Self::Word(word) => return name(word, out),
            Self::Branch(ref branch) => {
                if layout != Layout::Csv {
                    out.push_str(&branch.lines);
                }
                return name(&branch.name, out);
            }
            Self::Count(count) => write!(out, "{count}"),
            Self::Signed(number) => write!(out, "{number}"),
            Self::Millionths(number) => write!(out, "{}", decimal_text(number)),
            Self::Percent(percent) if is_text => write!(out, "{percent:.2}%"),
            Self::Points(points) if is_text => write!(out, "{points:+.2}"),
            Self::Percent(number) | Self::Points(number) => write!(out, "{number:.4}"),
            Self::Number(number, decimals) => write!(out, "{number:.*}", usize::from(decimals)),
            Self::None | Self::Empty => return,
        };
    }
}

/// A number of millionths as a decimal fraction without trailing zeros.
fn decimal_text(millionths: i64) -> String {
    let size = millionths.unsigned_abs();
    let text = format!("{}{}.{:06}", if millionths < 0 { "-" } else { "" }, size / MILLION, size % MILLION);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Serialize for Cell {
    /// Writes the cell as JSON: a string, a number, or `null` for a cell without a value.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Millionths(number) => serializer.serialize_f64(*number as f64 / MILLION as f64),
            // Round to four decimals as in CSV, so that both formats have the same numbers.
            Self::Percent(percent) | Self::Points(percent) => serializer.serialize_f64((percent * 1e4).round() / 1e4),
            Self::Word(word) => serializer.serialize_str(word),
            Self::Branch(branch) => serializer.serialize_str(&branch.name),
            Self::Number(number, decimals) => {
                let scale = 10f64.powi(i32::from(*decimals));
                serializer.serialize_f64((number * scale).round() / scale)
            }
            Self::None | Self::Empty => serializer.serialize_none(),
        }
    }
}
