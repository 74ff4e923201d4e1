//! Writes the answers of `stats` as tables with titles.

use crate::contract::spans::Spans;
use crate::error::Result;
use crate::formats::FORMATS;
use crate::model::printable::readable;
use crate::pipeline::table::{Layout, Table};
use serde::Serializer;
use serde::ser::SerializeMap;
use std::io::Write;
use std::path::Path;

/// The title of the table of artifact sizes. Few profiles have any.
pub(super) const ARTIFACTS: &str = "artifacts";

/// A list of tables, each with its title.
pub(super) type TitledTables = Vec<(String, Table)>;

/// The version of the JSON output. It increases if a key is removed or changes its meaning.
const VERSION: u64 = 1;

/// Writes the tables. JSON is always an object with one entry per table, and its title as the key. Text and CSV have
/// title lines only if there are several tables; an empty table of artifact sizes is left out.
pub(super) fn write(tables: &TitledTables, layout: Layout, out: &mut dyn Write) -> Result<()> {
    if layout == Layout::Json {
        let mut serializer = serde_json::Serializer::new(&mut *out);
        let mut object = serializer.serialize_map(None).map_err(std::io::Error::from)?;
        object.serialize_entry("version", &VERSION).map_err(std::io::Error::from)?;
        for (title, table) in tables {
            object.serialize_entry(title, table).map_err(std::io::Error::from)?;
        }
        object.end().map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let is_shown = |(title, table): &&(String, Table)| !table.rows.is_empty() || title != ARTIFACTS;
    let tables: Vec<_> = tables.iter().filter(is_shown).collect();
    if let [(_, table)] = &tables[..] {
        return table.write(layout, out);
    }
    for (index, (title, table)) in tables.iter().enumerate() {
        let blank = if index == 0 { "" } else { "\n" };
        writeln!(out, "{blank}# {}", readable(title.as_bytes()))?;
        table.write(layout, out)?;
    }
    Ok(())
}

/// The name of an input file as shown in a table.
pub(super) fn input_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Names the formats that have spans and for which `is_listed` is true, for a message.
pub(super) fn formats_with(is_listed: impl Fn(&Spans) -> bool) -> String {
    let formats = FORMATS.iter().filter(|format| format.read.spans().is_some_and(&is_listed));
    formats.map(|format| format.name).collect::<Vec<_>>().join(", ")
}
