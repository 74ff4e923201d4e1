//! Appends strings and source files to the profile.

use super::file::{number, range};
use crate::bytes::splices::Splices;
use crate::error::{Error, Result};
use crate::model::interner::Interner;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The string table of a file or a thread.
#[derive(Debug)]
pub(super) struct Strings<'d> {
    raw: &'d RawValue,
    list: Vec<&'d RawValue>,
    new: Interner<String, u32>,
}

impl<'d> Strings<'d> {
    pub(super) fn read(raw: &'d RawValue) -> Result<Self> {
        let list = serde_json::from_str(raw.get());
        let list = list.map_err(|error| Error::new("the string table is not a list of strings").because(error))?;
        Ok(Self { raw, list, new: Interner::default() })
    }

    /// The existing string at an index; `None` if there is none.
    pub(super) fn text(&self, number: usize) -> Option<String> {
        serde_json::from_str(self.list.get(number)?.get()).ok()
    }

    /// The index of a string, which is added if it is new. Invalid UTF-8 is replaced.
    pub(super) fn add(&mut self, text: &[u8]) -> usize {
        self.list.len() + self.new.number(&*String::from_utf8_lossy(text)) as usize
    }

    /// Plans to append the new strings to the list of strings in the file's text.
    pub(super) fn splice(&self, file: &[u8], splices: &mut Splices) {
        let new = self.new.items().iter();
        let texts: Vec<String> = new.map(|text| serde_json::Value::from(text.as_str()).to_string()).collect();
        append(self.raw, self.list.is_empty(), &texts, file, splices);
    }
}

/// Plans to append `values`, each a JSON text, to a JSON list in the file's text.
fn append(list: &RawValue, is_empty: bool, values: &[String], file: &[u8], splices: &mut Splices) {
    if values.is_empty() {
        return;
    }
    let end = range(list, file).end.saturating_sub(1);
    let comma = if is_empty { "" } else { "," };
    splices.replace(end..end, format!("{comma}{}", values.join(",")).into_bytes());
}

/// The columns that the source table may have beside `filename`, and the value of each in a new row. A table with other
/// columns is left unchanged, because it isn't known what a new row needs there.
const COLUMNS: &[(&str, &str)] = &[
    ("id", "null"),
    ("uuid", "null"),
    ("startLine", "1"),
    ("startColumn", "1"),
    ("sourceMapURL", "null"),
    ("content", "null"),
];

/// The table of source files.
#[derive(Debug)]
pub(super) struct Sources<'f, 'd> {
    columns: &'f BTreeMap<String, &'d RawValue>,
    /// The number of rows that the table has in the file, without the new ones.
    rows: usize,
    /// For each new row, the index of its file name in the string table.
    new_rows: Interner<usize, u32>,
}

impl<'f, 'd> Sources<'f, 'd> {
    /// Reads the table of source files, to which rows will be added. `None` if that isn't possible: if `length` or
    /// `filename` is missing, if the columns have different lengths, or if there is a column that isn't in [`COLUMNS`].
    pub(super) fn read(columns: &'f BTreeMap<String, &'d RawValue>) -> Option<Self> {
        let rows = number(columns.get("length")?)?;
        columns.get("filename")?;
        for (name, column) in columns {
            if name == "length" {
                continue;
            }
            let is_known = name == "filename" || COLUMNS.iter().any(|(known, _)| name == known);
            let cells: Vec<&RawValue> = serde_json::from_str(column.get()).ok()?;
            if !is_known || cells.len() != rows {
                return None;
            }
        }
        Some(Self { columns, rows, new_rows: Interner::default() })
    }

    /// The row of a source file, which is added if it is new.
    pub(super) fn add(&mut self, file: &[u8], strings: &mut Strings<'_>) -> usize {
        self.rows + self.new_rows.intern(strings.add(file)) as usize
    }

    /// Plans to append the new rows to the columns in the file's text.
    pub(super) fn splice(&self, file: &[u8], splices: &mut Splices) {
        let new_rows = self.new_rows.items();
        if new_rows.is_empty() {
            return;
        }
        for (name, column) in self.columns {
            if name == "length" {
                splices.replace(range(column, file), (self.rows + new_rows.len()).to_string().into_bytes());
                continue;
            }
            let values: Vec<String> = match COLUMNS.iter().find(|(known, _)| name == known) {
                Some((_, value)) => vec![(*value).to_owned(); new_rows.len()],
                // The only column that isn't in `COLUMNS` is `filename`, which has indices of strings.
                None => new_rows.iter().map(ToString::to_string).collect(),
            };
            append(column, self.rows == 0, &values, file, splices);
        }
    }
}
