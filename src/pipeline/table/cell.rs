//! The values of a table, and how each is written.

use crate::model::printable::{csv_cell, readable};
use serde::{Serialize, Serializer};
use std::fmt::Write;
use std::sync::Arc;

/// The way a table is written.
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

/// One value. Tables have millions of them: none takes more than three words, and names are shared.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A name.
    Text(Arc<str>),
    /// One of few words.
    Word(&'static str),
    /// A whole number.
    Count(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A percentage, shown with two decimals and `%`; a plain number in CSV and JSON.
    Percent(f64),
    /// A difference of percentages, shown with two decimals and its sign; a plain number in CSV and JSON.
    Points(f64),
    /// A name in a tree, behind the lines that lead to it in text.
    Branch(Box<Branch>),
    /// A number that is shown with this many decimals.
    Number(f64, u8),
    /// Not known: empty, or `null`.
    None,
    /// Nothing, in a column of numbers.
    Empty,
}

/// A name in a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Lines of the tree, for text only.
    pub(super) lines: String,
    pub(super) name: String,
}

impl Cell {
    /// A name.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A name in a tree, behind lines.
    pub fn branch(lines: String, name: String) -> Self {
        Self::Branch(Box::new(Branch { lines, name }))
    }

    /// True if nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None | Self::Empty => true,
            Self::Text(text) => text.is_empty(),
            Self::Word(word) => word.is_empty(),
            _ => false,
        }
    }

    /// Appends what is shown of it.
    pub(super) fn show(&self, layout: Layout, out: &mut String) {
        let name = |name: &str, out: &mut String| match layout {
            Layout::Csv => out.push_str(&csv_cell(name.as_bytes())),
            _ => out.push_str(&readable(name.as_bytes())),
        };
        let is_text = layout == Layout::Text;
        // Writing to a String cannot fail.
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
            Self::Percent(percent) if is_text => write!(out, "{percent:.2}%"),
            Self::Points(points) if is_text => write!(out, "{points:+.2}"),
            Self::Percent(number) | Self::Points(number) => write!(out, "{number:.4}"),
            Self::Number(number, decimals) => write!(out, "{number:.*}", usize::from(decimals)),
            Self::None | Self::Empty => return,
        };
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Signed(number) => serializer.serialize_i64(*number),
            // Rounded as in CSV, so that the two state the same.
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
