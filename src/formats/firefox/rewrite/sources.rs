//! The table of source files, and those that come in behind.

use super::file::{number, range};
use super::strings::{Strings, append};
use crate::bytes::splices::Splices;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The values of a new row, by column. A table with others is left as it is: their content is unknown.
const COLUMNS: &[(&str, &str)] = &[
    ("id", "null"),
    ("uuid", "null"),
    ("startLine", "1"),
    ("startColumn", "1"),
    ("sourceMapURL", "null"),
    ("content", "null"),
];

/// The table.
#[derive(Debug)]
pub(super) struct Sources<'f, 'd> {
    columns: &'f BTreeMap<String, &'d RawValue>,
    rows: usize,
    /// Numbers of strings.
    new: Vec<usize>,
    numbers: FxHashMap<usize, usize>,
}

impl<'f, 'd> Sources<'f, 'd> {
    /// `None` if the table has a column that is not understood.
    pub(super) fn of(columns: &'f BTreeMap<String, &'d RawValue>) -> Option<Self> {
        let is_known = |name: &String| {
            matches!(&name[..], "length" | "filename") || COLUMNS.iter().any(|(known, _)| name == known)
        };
        let rows = number(columns.get("length")?)?;
        let has_rows = |column: &RawValue| {
            serde_json::from_str::<Vec<&RawValue>>(column.get()).is_ok_and(|values| values.len() == rows)
        };
        let is_whole = columns.iter().all(|(name, column)| is_known(name) && (name == "length" || has_rows(column)));
        columns.get("filename").filter(|_| is_whole)?;
        Some(Self { columns, rows, new: Vec::new(), numbers: FxHashMap::default() })
    }

    /// The row of a file that comes in.
    pub(super) fn add(&mut self, file: &[u8], strings: &mut Strings<'_>) -> usize {
        let filename = strings.add(file);
        *self.numbers.entry(filename).or_insert_with(|| {
            self.new.push(filename);
            self.rows + self.new.len() - 1
        })
    }

    /// Puts them in.
    pub(super) fn splice(&self, file: &[u8], splices: &mut Splices) {
        if self.new.is_empty() {
            return;
        }
        for (name, column) in self.columns {
            let values: Vec<String> = match (&name[..], COLUMNS.iter().find(|(known, _)| name == known)) {
                ("length", _) => {
                    splices.replace(range(column, file), (self.rows + self.new.len()).to_string().into_bytes());
                    continue;
                }
                (_, Some((_, value))) => self.new.iter().map(|_| (*value).to_owned()).collect(),
                (_, None) => self.new.iter().map(ToString::to_string).collect(),
            };
            append(column, self.rows == 0, &values, file, splices);
        }
    }
}
