//! Flags and values of flags that jitgraft no longer has, and what to use instead.

use super::slips::find_text;
use clap::error::{ContextKind, ErrorKind};
use std::ffi::OsStr;
use std::path::Path;

/// A flag, or a value of a flag, that was removed.
struct Removed {
    flag: &'static str,
    /// The value that was removed. `None` if the whole flag was removed.
    value: Option<&'static str>,
    instead: &'static str,
}

impl Removed {
    /// True if this is about the value that the user typed, in upper or lower case.
    fn has_value(&self, typed: Option<&str>) -> bool {
        match (self.value, typed) {
            (Some(value), Some(typed)) => value.eq_ignore_ascii_case(typed),
            (None, None) => true,
            _ => false,
        }
    }
}

const REMOVED: &[Removed] = &[
    Removed {
        flag: "--compact",
        value: None,
        instead: "DuckDB and Spark can copy a data set into fewer files (see docs/sql.md)",
    },
    Removed { flag: "--to", value: Some("arrow"), instead: ARROW },
    Removed { flag: "--to", value: Some("html"), instead: PAGE },
    Removed { flag: "--palette", value: None, instead: "--hash gives a name the same color in every picture" },
];

const ARROW: &str = "use --to parquet; pyarrow, Polars and DuckDB read it in batches";

const PAGE: &str = "jitgraft view writes a page with the hot code";

/// Replaces clap's error about a removed flag or value by an error that says what to use instead. Other errors stay as
/// they are.
pub(super) fn explain(error: clap::Error) -> clap::Error {
    // clap's text has the flag together with the name of its value.
    let flag = find_text(&error, ContextKind::InvalidArg).unwrap_or_default();
    let flag = flag.split([' ', '=']).next().unwrap_or_default();
    let value = match error.kind() {
        ErrorKind::UnknownArgument => None,
        ErrorKind::InvalidValue => Some(find_text(&error, ContextKind::InvalidValue).unwrap_or_default()),
        _ => return error,
    };
    match refusal(flag, value) {
        Some(refusal) => clap::Error::raw(error.kind(), refusal + "\n"),
        None => error,
    }
}

/// The error message for a removed flag, or for a removed `value` of a flag. `None` if it wasn't removed.
pub(super) fn refusal(flag: &str, value: Option<&str>) -> Option<String> {
    let removed = REMOVED.iter().find(|removed| removed.flag == flag && removed.has_value(value))?;
    let value = removed.value.map_or_else(String::new, |value| format!(" {value}"));
    Some(format!("{flag}{value} was removed: {}", removed.instead))
}

/// The error message for an output of `export` whose file name implies a removed format.
pub(super) fn refused_export(output: &Path) -> Option<String> {
    let is_removed = output.extension() == Some(OsStr::new("arrows"));
    is_removed.then(|| format!("jitgraft no longer writes Arrow streams; instead, {ARROW}"))
}

/// The error message for an output of `annotate` whose file name implies a removed format.
pub(super) fn refused_page(output: &Path) -> Option<String> {
    let is_removed = [OsStr::new("html"), OsStr::new("htm")].into_iter().any(|page| output.extension() == Some(page));
    is_removed
        .then(|| "annotate no longer writes HTML pages; to get a page with the hot code, use jitgraft view".to_owned())
}
