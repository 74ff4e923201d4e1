//! A list of strings, and those that come in behind.

use super::file::range;
use crate::bytes::splices::Splices;
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

/// The strings of a file or a thread.
#[derive(Debug)]
pub(super) struct Strings<'d> {
    raw: &'d RawValue,
    list: Vec<&'d RawValue>,
    new: Vec<String>,
    numbers: FxHashMap<String, usize>,
}

impl<'d> Strings<'d> {
    pub(super) fn read(raw: &'d RawValue) -> Result<Self> {
        let list = serde_json::from_str(raw.get());
        let list = list.map_err(|error| Error::new("has strings that are not a list").because(error))?;
        Ok(Self { raw, list, new: Vec::new(), numbers: FxHashMap::default() })
    }

    /// The string of that number.
    pub(super) fn text(&self, number: usize) -> Option<String> {
        serde_json::from_str(self.list.get(number)?.get()).ok()
    }

    /// The number of a string that comes in. The format has texts: what is none in a name becomes printable.
    pub(super) fn add(&mut self, text: &[u8]) -> usize {
        let text = String::from_utf8_lossy(text);
        if let Some(&number) = self.numbers.get(&*text) {
            return number;
        }
        let number = self.list.len() + self.new.len();
        self.numbers.insert(text.clone().into_owned(), number);
        self.new.push(text.into_owned());
        number
    }

    /// Puts them in.
    pub(super) fn splice(&self, file: &[u8], splices: &mut Splices) {
        let texts: Vec<String> =
            self.new.iter().map(|text| serde_json::Value::from(text.as_str()).to_string()).collect();
        append(self.raw, self.list.is_empty(), &texts, file, splices);
    }
}

/// Puts values behind those of a list.
pub(super) fn append(list: &RawValue, is_empty: bool, values: &[String], file: &[u8], splices: &mut Splices) {
    if values.is_empty() {
        return;
    }
    let end = range(list, file).end.saturating_sub(1);
    let comma = if is_empty { "" } else { "," };
    splices.replace(end..end, format!("{comma}{}", values.join(",")).into_bytes());
}
