//! The distinct stacks of a recording, beside its rows: questions about stacks are answered once for each.

use super::columns::StackBatch;
use super::input::TableInput;
use super::schema::stacks_schema;
use super::writer::{BATCH_FRAMES, BATCH_ROWS, BatchWriter};
use crate::contract::rows::{RowOrigin, RowWriter};
use crate::error::Result;
use crate::model::stacks::{Profile, StackId};
use arrow_schema::SchemaRef;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Writes them.
#[derive(Debug)]
pub(super) struct StackTable<B> {
    batches: B,
    schema: SchemaRef,
    input: Option<TableInput>,
    /// Those of this input that were looked at, by their number in the profile.
    looked_at: FxHashSet<StackId>,
    written: FxHashSet<i64>,
    builder: StackBatch,
    rows: usize,
}

impl<B: BatchWriter> StackTable<B> {
    pub(super) fn new(mut batches: B) -> Result<Self> {
        let schema = Arc::new(stacks_schema());
        batches.start(&schema)?;
        let (looked_at, written) = (FxHashSet::default(), FxHashSet::default());
        Ok(Self { batches, schema, input: None, looked_at, written, builder: StackBatch::default(), rows: 0 })
    }

    fn add(&mut self, profile: &Profile, stack: StackId) -> Result<()> {
        let Some(input) = self.input.as_ref().filter(|_| self.looked_at.insert(stack)) else { return Ok(()) };
        if !self.written.insert(input.stack(Some(stack))) {
            return Ok(());
        }
        self.builder.push(input, profile, stack);
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.builder.frames() >= BATCH_FRAMES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let Some(input) = self.input.as_ref().filter(|_| self.rows > 0) else { return Ok(()) };
        self.rows = 0;
        self.batches.batch(&self.builder.finish(input, &self.schema)?)
    }
}

impl<B: BatchWriter> RowWriter for StackTable<B> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        self.looked_at.clear();
        self.input = Some(TableInput::new(&origin, profile));
        Ok(())
    }

    fn rows(&mut self, profile: &Profile) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        input.extend(profile);
        let mut rows = profile.series.iter().flat_map(|series| &series.rows);
        rows.try_for_each(|row| row.stack.map_or(Ok(()), |stack| self.add(profile, stack)))
    }

    fn end(&mut self, _profile: &Profile) -> Result<()> {
        self.flush()
    }

    fn finish(&mut self) -> Result<()> {
        self.batches.finish()
    }
}
