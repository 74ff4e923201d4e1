//! The nodes of a profile, as V8 writes them.

use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileNode<'a> {
    pub(super) id: u64,
    #[serde(borrow)]
    pub(super) call_frame: CallFrame<'a>,
    #[serde(default)]
    pub(super) hit_count: u64,
    #[serde(default)]
    pub(super) children: Vec<u64>,
    /// Profiles that are streamed while they are recorded state the parent instead of the children.
    pub(super) parent: Option<u64>,
    #[serde(default)]
    pub(super) position_ticks: Vec<LineTicks>,
}

/// The number of samples at a line.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct LineTicks {
    pub(super) line: u32,
    pub(super) ticks: u64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFrame<'a> {
    #[serde(borrow, default)]
    pub(super) function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) url: Cow<'a, str>,
    /// Starts at 0; -1 if absent.
    #[serde(default)]
    pub(super) line_number: i64,
    #[serde(default)]
    pub(super) column_number: i64,
}
