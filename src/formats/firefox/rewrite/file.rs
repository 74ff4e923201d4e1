//! The parts of a profile that matter for names. Values are kept as raw text, so that their positions are known.

use crate::formats::firefox::read::{Column, ReadId};
use crate::model::Pid;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug, Deserialize)]
pub(super) struct RawFile<'d> {
    #[serde(borrow, default)]
    pub(super) shared: RawShared<'d>,
    #[serde(borrow)]
    pub(super) threads: Vec<RawThread<'d>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawShared<'d> {
    #[serde(borrow)]
    pub(super) string_array: Option<&'d RawValue>,
    #[serde(borrow)]
    pub(super) func_table: Option<RawFuncs<'d>>,
    #[serde(borrow)]
    pub(super) frame_table: Option<RawFrames<'d>>,
    pub(super) stack_table: Option<RawStacks>,
    /// The columns of the table of source files, by name.
    #[serde(borrow)]
    pub(super) sources: BTreeMap<String, &'d RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawThread<'d> {
    #[serde(default)]
    pid: ReadId,
    #[serde(default)]
    pub(super) samples: RawSamples,
    #[serde(borrow, default)]
    string_array: Option<&'d RawValue>,
    #[serde(borrow, default)]
    func_table: Option<RawFuncs<'d>>,
    #[serde(borrow, default)]
    frame_table: Option<RawFrames<'d>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct RawSamples {
    pub(super) stack: Column,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawFuncs<'d> {
    #[serde(borrow)]
    pub(super) name: Vec<&'d RawValue>,
    pub(super) resource: Column,
    #[serde(borrow)]
    pub(super) file_name: Option<Vec<&'d RawValue>>,
    #[serde(borrow)]
    pub(super) source: Option<Vec<&'d RawValue>>,
    #[serde(borrow)]
    pub(super) flags: Option<Vec<&'d RawValue>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct RawFrames<'d> {
    #[serde(borrow)]
    pub(super) func: Vec<&'d RawValue>,
    #[serde(borrow)]
    pub(super) line: Option<Vec<&'d RawValue>>,
    #[serde(borrow)]
    pub(super) flags: Option<Vec<&'d RawValue>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStacks {
    pub(super) frame: Column,
    pub(super) prefix: Option<Column>,
    /// By how many rows the caller's row precedes the stack's own row; 0 if there is no caller.
    pub(super) prefix_offset: Option<Column>,
}

/// Function and frame tables that belong together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables<'f, 'd> {
    pub(super) funcs: &'f RawFuncs<'d>,
    pub(super) frames: &'f RawFrames<'d>,
    pub(super) strings: Option<&'d RawValue>,
    /// The thread that owns the tables; `None` if all threads share them.
    pub(super) thread: Option<&'f RawThread<'d>>,
}

impl<'d> RawFile<'d> {
    /// All sets of tables: the shared ones first, then those of each thread.
    pub(super) fn tables(&self) -> Vec<Tables<'_, 'd>> {
        let mut tables = Vec::new();
        if let (Some(funcs), Some(frames)) = (&self.shared.func_table, &self.shared.frame_table) {
            tables.push(Tables { funcs, frames, strings: self.shared.string_array, thread: None });
        }
        for thread in &self.threads {
            if let (Some(funcs), Some(frames)) = (&thread.func_table, &thread.frame_table) {
                let strings = thread.string_array.or(self.shared.string_array);
                tables.push(Tables { funcs, frames, strings, thread: Some(thread) });
            }
        }
        tables
    }
}

impl RawThread<'_> {
    pub(super) fn pid(&self) -> Option<Pid> {
        self.pid.get().map(Pid)
    }
}

/// Parses a value as a row index; `None` if it isn't one.
pub(super) fn number(raw: &RawValue) -> Option<usize> {
    let number: f64 = raw.get().parse().ok()?;
    (number >= 0.0 && number < f64::from(u32::MAX)).then_some(number as usize)
}

/// Where a value is in the text that it was parsed from.
pub(super) fn range(raw: &RawValue, text: &[u8]) -> Range<usize> {
    let start = (raw.get().as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    start..start.saturating_add(raw.get().len())
}
