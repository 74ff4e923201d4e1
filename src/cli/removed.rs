//! Flags and values that jitgraft no longer has, and what replaces them.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsStr;
use std::path::Path;

/// A flag, or a value of one.
struct Removed {
    flag: &'static str,
    /// The value; `None`: the flag itself.
    value: Option<&'static str>,
    instead: &'static str,
}

const REMOVED: &[Removed] = &[
    Removed {
        flag: "--compact",
        value: None,
        instead: "DuckDB and Spark copy a data set into fewer files (see docs/sql.md)",
    },
    Removed { flag: "--to", value: Some("arrow"), instead: ARROW },
    Removed { flag: "--format", value: Some("html"), instead: PAGE },
    Removed { flag: "--palette", value: None, instead: "--hash gives a name the same color in every picture" },
];

const ARROW: &str = "use --to parquet; pyarrow, Polars and DuckDB read it batch by batch";

const PAGE: &str = "jitgraft view writes a page with the hot code";

/// The error for words that were right once says what replaces them; others stay as they are.
pub(super) fn explain(error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    // clap shows a flag with the name of its value.
    let flag = text(ContextKind::InvalidArg).split([' ', '=']).next().unwrap_or_default();
    let value = match error.kind() {
        ErrorKind::UnknownArgument => None,
        ErrorKind::InvalidValue => Some(text(ContextKind::InvalidValue)),
        _ => return error,
    };
    match refusal(flag, value) {
        Some(refusal) => clap::Error::raw(error.kind(), refusal + "\n"),
        None => error,
    }
}

/// What is said about a flag, or a value of one, that was removed.
pub(super) fn refusal(flag: &str, value: Option<&str>) -> Option<String> {
    let removed = REMOVED.iter().find(|removed| removed.flag == flag && removed.value == value)?;
    let value = value.map_or_else(String::new, |value| format!(" {value}"));
    Some(format!("{flag}{value} was removed: {}", removed.instead))
}

/// The same for an output of `export` whose name gave its format.
pub(super) fn refused_export(output: &Path) -> Option<String> {
    let is_removed = output.extension() == Some(OsStr::new("arrows"));
    is_removed.then(|| format!("Arrow's streams are no longer written: {ARROW}"))
}

/// The same for an output of `annotate`.
pub(super) fn refused_page(output: &Path) -> Option<String> {
    let is_removed = [OsStr::new("html"), OsStr::new("htm")].into_iter().any(|page| output.extension() == Some(page));
    is_removed.then(|| format!("annotate no longer writes pages: {PAGE}"))
}
