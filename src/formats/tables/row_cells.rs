//! Columns of texts and numbers that are not of frames.

use super::cells::{Meanings, NONE, numbers, wrong_type};
use crate::error::Result;
use crate::model::interner::Interner;
use arrow_array::{Array, ArrayRef, RecordBatch};

/// The number of a text that is not a function's.
pub(super) type WordNo = u32;

/// Texts that are not functions', numbered.
#[derive(Debug)]
pub(super) struct Words(Interner<Box<str>, WordNo>);

impl Words {
    pub(super) fn new() -> Self {
        Self(Interner::default())
    }

    pub(super) fn text(&self, word: Option<WordNo>) -> Option<&str> {
        self.0.items().get(word? as usize).map(|text| &**text)
    }
}

/// A column of texts, or none.
#[derive(Debug)]
pub(super) struct WordCells(Vec<Option<WordNo>>);

impl WordCells {
    pub(super) fn of(batch: &RecordBatch, name: &str, words: &mut Words) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(Vec::new())) };
        let cells = Meanings::new(None).cells(column, |text| Some(words.0.number(text)));
        cells.map(Self).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    pub(super) fn at(&self, row: usize) -> Option<WordNo> {
        self.0.get(row).copied().flatten()
    }
}

/// A column of numbers, or none.
#[derive(Debug)]
pub(super) struct Numbers(Option<Vec<i64>>);

impl Numbers {
    pub(super) fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        Self::by(batch, name, numbers)
    }

    pub(super) fn by(batch: &RecordBatch, name: &str, read: fn(&ArrayRef) -> Option<Vec<i64>>) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(None)) };
        read(column).map(|cells| Self(Some(cells))).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The number of a row, if it has one.
    pub(super) fn known_at(&self, row: usize) -> Option<i64> {
        Some(self.at(row)).filter(|number| *number != NONE)
    }

    /// The number of a row, or [`NONE`].
    pub(super) fn at(&self, row: usize) -> i64 {
        self.0.as_ref().and_then(|cells| cells.get(row)).copied().unwrap_or(NONE)
    }
}
