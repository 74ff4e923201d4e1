//! The values of a table, and how each is written.

use crate::model::printable::{csv_cell, readable};
use serde::{Serialize, Serializer};

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
    /// A difference of percentages, shown with two decimals and its sign; a plain number in CSV and JSON.
    Points(f64),
    /// Yes or no: a word in text and CSV.
    Bool(bool),
    /// A name in a tree, behind the lines that lead to it in text.
    Branch {
        /// Lines of the tree, for text only.
        lines: String,
        /// The name.
        name: String,
    },
    /// A number that is shown with so many decimals.
    Number(f64, usize),
    /// Not known: empty, or `null`.
    None,
    /// Nothing, in a column of numbers.
    Empty,
}

impl Cell {
    /// Whether nothing stands in it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None | Self::Empty => true,
            Self::Text(text) => text.is_empty(),
            _ => false,
        }
    }

    pub(super) fn shown(&self, layout: Layout) -> String {
        match *self {
            Self::Text(ref text) if layout == Layout::Csv => csv_cell(text.as_bytes()).into_owned(),
            Self::Text(ref text) => readable(text.as_bytes()).into_owned(),
            Self::Count(count) => count.to_string(),
            Self::Signed(number) => number.to_string(),
            Self::Percent(percent) if layout == Layout::Text => format!("{percent:.2}%"),
            Self::Points(points) if layout == Layout::Text => format!("{points:+.2}"),
            Self::Percent(number) | Self::Points(number) => format!("{number:.4}"),
            Self::Bool(yes) => yes.to_string(),
            Self::Branch { ref name, .. } if layout == Layout::Csv => csv_cell(name.as_bytes()).into_owned(),
            Self::Branch { ref lines, ref name } => format!("{lines}{}", readable(name.as_bytes())),
            Self::Number(number, decimals) => format!("{number:.decimals$}"),
            Self::None | Self::Empty => String::new(),
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
            Self::Percent(percent) | Self::Points(percent) => serializer.serialize_f64((percent * 1e4).round() / 1e4),
            Self::Bool(yes) => serializer.serialize_bool(*yes),
            Self::Branch { name, .. } => serializer.serialize_str(name),
            Self::Number(number, decimals) => {
                let scale = 10f64.powi(i32::try_from(*decimals).unwrap_or(0));
                serializer.serialize_f64((number * scale).round() / scale)
            }
            Self::None | Self::Empty => serializer.serialize_none(),
        }
    }
}
