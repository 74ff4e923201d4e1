//! Functions and strings that come in behind those of the file.

use crate::contract::unsymbolized::NamedCall;
use crate::error::{Error, Result};
use crate::formats::pprof::messages::{PprofFunction, PprofLine};
use crate::formats::pprof::tables::Tables;
use prost::encoding;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Functions and strings, each once.
#[derive(Debug)]
pub(super) struct NewNames {
    first_string: usize,
    strings: Vec<String>,
    string_ids: FxHashMap<String, i64>,
    /// The highest number of a function so far.
    last_function: u64,
    functions: Vec<PprofFunction>,
    function_ids: FxHashMap<(i64, i64), u64>,
}

impl NewNames {
    pub(super) fn behind(tables: &Tables<'_>) -> Self {
        Self {
            first_string: tables.strings.len(),
            strings: Vec::new(),
            string_ids: FxHashMap::default(),
            last_function: tables.functions.keys().copied().max().unwrap_or(0),
            functions: Vec::new(),
            function_ids: FxHashMap::default(),
        }
    }

    /// The lines of a location, the innermost call first, as they are added to its message.
    pub(super) fn lines(&mut self, calls: &[NamedCall<'_>], out: &mut Vec<u8>) -> Result<()> {
        for call in calls {
            let line = PprofLine { function_id: self.function(call)?, line: call.line.into() };
            encoding::message::encode(4, &line, out);
        }
        Ok(())
    }

    fn function(&mut self, call: &NamedCall<'_>) -> Result<u64> {
        let (name, filename) = (self.string(call.name), self.string(call.file));
        if let Some(&id) = self.function_ids.get(&(name, filename)) {
            return Ok(id);
        }
        self.last_function = next_id(self.last_function, "function")?;
        let id = self.last_function;
        self.functions.push(PprofFunction { id, name, system_name: name, filename });
        self.function_ids.insert((name, filename), id);
        Ok(id)
    }

    /// The format has texts; what is none in a name becomes printable. The first string is empty.
    fn string(&mut self, text: &[u8]) -> i64 {
        if text.is_empty() {
            return 0;
        }
        let text: Cow<'_, str> = String::from_utf8_lossy(text);
        if let Some(&id) = self.string_ids.get(&*text) {
            return id;
        }
        let id = (self.first_string + self.strings.len()) as i64;
        self.strings.push(text.clone().into_owned());
        self.string_ids.insert(text.into_owned(), id);
        id
    }

    /// All of them, as fields of the profile.
    pub(super) fn fields(&self, out: &mut Vec<u8>) {
        self.functions.iter().for_each(|function| encoding::message::encode(5, function, out));
        self.strings.iter().for_each(|string| encoding::string::encode(6, string, out));
    }
}

/// The number behind the highest one.
pub(super) fn next_id(last: u64, what: &str) -> Result<u64> {
    last.checked_add(1)
        .ok_or_else(|| Error::new(format!("has a {what} of the highest number: no further one can be added")))
}
