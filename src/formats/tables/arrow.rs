//! The table as a stream of Arrow's batches (IPC streaming format), each written as soon as it is full:
//! <https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format>.
//!
//! It is not read: the crate's reader takes lengths and offsets of a stream for granted, and panics where they are wrong.
//!
//! Every batch brings the texts that occur in it, so that neither side keeps those of all.

use super::writer::{BatchWriter, TableWriter};
use crate::contract::options::WriteOptions;
use crate::contract::rows;
use crate::contract::rows::RowWriter;
use crate::error::{Error, Result};
use crate::model::stacks::Profile;
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use std::io::Write;

/// Writes all events.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start(options, Box::new(out))?, profile)
}

/// Starts a stream, to which rows are written as they come.
pub fn start<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    Ok(Box::new(TableWriter::new(ArrowStream::New(Some(out)), options)))
}

enum ArrowStream<'o> {
    New(Option<Box<dyn Write + 'o>>),
    Started(Box<StreamWriter<Box<dyn Write + 'o>>>),
}

impl<'o> ArrowStream<'o> {
    fn each(
        &mut self,
        act: impl FnOnce(&mut StreamWriter<Box<dyn Write + 'o>>) -> Result<(), ArrowError>,
    ) -> Result<()> {
        match self {
            Self::Started(stream) => act(stream).map_err(failed),
            Self::New(_) => Ok(()),
        }
    }
}

impl BatchWriter for ArrowStream<'_> {
    const GROUP: usize = 1 << 14;
    const SORTED: bool = false;

    fn start(&mut self, schema: &SchemaRef) -> Result<()> {
        if let Self::New(out) = self
            && let Some(out) = out.take()
        {
            *self = Self::Started(Box::new(StreamWriter::try_new(out, schema).map_err(failed)?));
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.each(|stream| stream.write(batch).and_then(|()| stream.flush()))
    }

    fn group(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.each(StreamWriter::finish)
    }
}

/// A reader that went away stays what it is.
fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        error => Error::new("cannot write the stream").because(error),
    }
}
