//! The nodes of a profile, as V8 writes them.

use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileNode<'a> {
    pub(super) id: u64,
    #[serde(borrow)]
    pub(super) call_frame: CallFrame<'a>,
    #[serde(default)]
    pub(super) hit_count: u64,
    #[serde(default, deserialize_with = "list_or_null")]
    pub(super) children: Vec<u64>,
    /// ID of the parent. Only in profiles that are streamed while they are recorded; other profiles state the children.
    pub(super) parent: Option<u64>,
    #[serde(default, deserialize_with = "list_or_null")]
    pub(super) position_ticks: Vec<LineTicks>,
}

/// Reads a list. Some tools write `null` for an empty one.
pub(super) fn list_or_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(json: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

/// A line of a function, and the number of samples at that line.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "WrittenTicks")]
pub(super) struct LineTicks {
    /// The line, counted from 1; 0 if unknown.
    pub(super) line: u32,
    pub(super) ticks: u64,
}

/// A [`LineTicks`] as written in the file. JavaScript has no integers, so tools may write `8.0`, and -1 for an unknown
/// line.
#[derive(Deserialize)]
struct WrittenTicks {
    #[serde(default)]
    line: f64,
    #[serde(default)]
    ticks: f64,
}

impl From<WrittenTicks> for LineTicks {
    fn from(written: WrittenTicks) -> Self {
        // `as` turns negative numbers into 0.
        Self { line: written.line as u32, ticks: written.ticks as u64 }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFrame<'a> {
    #[serde(borrow, default)]
    pub(super) function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) url: Cow<'a, str>,
    /// The line at which the function starts. Like the column, counted from 0; -1 if absent.
    #[serde(default)]
    pub(super) line_number: i64,
    #[serde(default)]
    pub(super) column_number: i64,
}
