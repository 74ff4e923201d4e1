//! The answers: tables with titles.

use crate::contract::spans::Spans;
use crate::error::Result;
use crate::formats::FORMATS;
use crate::model::printable::readable;
use crate::pipeline::table::{Layout, Table};
use serde::Serializer;
use std::io::Write;
use std::path::Path;

/// Tables, each with its title.
pub(super) type Titled = Vec<(String, Table)>;

/// One table is written plainly; several with their titles: as lines in text and CSV, as keys in JSON.
pub(super) fn write(tables: &Titled, layout: Layout, out: &mut dyn Write) -> Result<()> {
    if let [(_, table)] = &tables[..] {
        return table.write(layout, out);
    }
    if layout == Layout::Json {
        let mut serializer = serde_json::Serializer::new(&mut *out);
        let tables = tables.iter().map(|(title, table)| (title, table));
        serializer.collect_map(tables).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    for (at, (title, table)) in tables.iter().enumerate() {
        let blank = if at == 0 { "" } else { "\n" };
        writeln!(out, "{blank}# {}", readable(title.as_bytes()))?;
        table.write(layout, out)?;
    }
    Ok(())
}

/// The way an input is called in a table.
pub(super) fn called(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The names of the formats that hold spans of which something holds.
pub(super) fn holding(holds: impl Fn(&Spans) -> bool) -> String {
    let formats = FORMATS.iter().filter(|format| format.read.spans().is_some_and(&holds));
    formats.map(|format| format.name).collect::<Vec<_>>().join(", ")
}
