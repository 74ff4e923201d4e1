//! Flags and values that jitgraft no longer has, and what replaces them.

use clap::error::{ContextKind, ContextValue, ErrorKind};

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
];

const ARROW: &str = "use --to parquet; pyarrow, Polars and DuckDB read it batch by batch";

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

/// The same for an output that was written in a format of that extension.
pub(super) fn refused_output(extension: Option<&str>) -> Option<String> {
    match extension {
        Some("arrows") => Some(format!("Arrow's streams are no longer written: {ARROW}")),
        _ => None,
    }
}
