//! What a data set was made of, as a table of its own: a row a file, also for a file that could not be read.

use super::columns::{LabelColumn, moments, wrong_column};
use super::parquet::{RowGroups, write_batch};
use super::row_cells::{Numbers, WordCells, Words};
use super::schema::{VERSION, VERSION_KEY};
use crate::error::{Error, Result};
use crate::model::recorded::{Entry, ReadFile, RecordedEvent};
use arrow_array::{Array, ArrayRef, Date32Array, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Schema};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// Writes a table of these.
pub fn write(entries: &[Entry], out: &mut dyn Write) -> Result<()> {
    let columns = columns(entries)?;
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let metadata = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned())]);
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata);
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    write_batch(&RecordBatch::try_new(Arc::new(schema), columns).map_err(wrong_column)?, out)
}

fn columns(entries: &[Entry]) -> Result<Vec<(&'static str, ArrayRef)>> {
    let recordings = || entries.iter().map(|entry| &entry.recording);
    let share_named = recordings().map(|of| of.share_named.map(f64::from_bits)).collect::<Float64Array>();
    let mut labels = LabelColumn::default();
    entries.iter().for_each(|entry| labels.push(&entry.labels));
    Ok(vec![
        ("input", texts(recordings().map(|of| of.input.as_deref()))),
        ("path", texts(entries.iter().map(|entry| Some(&*entry.file.path)))),
        ("size", numbers(entries.iter().map(|entry| Some(entry.file.size)))),
        ("mtime_ns", numbers(entries.iter().map(|entry| Some(entry.file.mtime)))),
        ("host", texts(recordings().map(|of| of.host.as_deref()))),
        ("arch", texts(recordings().map(|of| of.arch.as_deref()))),
        ("kernel", texts(recordings().map(|of| of.kernel.as_deref()))),
        ("command", texts(recordings().map(|of| of.command.as_deref()))),
        ("start", moments(recordings().map(|of| of.start))),
        ("day", Arc::new(recordings().map(|of| of.day).collect::<Date32Array>())),
        ("duration_ns", numbers(entries.iter().map(|entry| entry.duration))),
        ("epoch_ns", numbers(recordings().map(|of| of.epoch))),
        ("bucket_ns", numbers(recordings().map(|of| of.bucket))),
        ("labels", labels.finish()?),
        ("events", events(entries, |events| texts(events.map(|event| Some(&*event.name))))?),
        ("units", events(entries, |events| texts(events.map(|event| Some(&*event.unit))))?),
        ("frequencies", events(entries, |events| numbers(events.map(|event| event.frequency)))?),
        ("periods", events(entries, |events| numbers(events.map(|event| event.period)))?),
        ("rows", numbers(entries.iter().map(|entry| Some(entry.rows)))),
        ("samples", numbers(entries.iter().map(|entry| Some(entry.samples)))),
        ("lost", numbers(entries.iter().map(|entry| Some(entry.lost)))),
        ("share_named", Arc::new(share_named)),
        ("error", texts(entries.iter().map(|entry| entry.error.as_deref()))),
    ])
}

fn texts<'t>(texts: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    Arc::new(texts.collect::<StringArray>())
}

fn numbers(numbers: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(numbers.collect::<Int64Array>())
}

/// A list for each entry, of something of its events.
fn events(
    entries: &[Entry],
    of: impl for<'e> Fn(&mut dyn Iterator<Item = &'e RecordedEvent>) -> ArrayRef,
) -> Result<ArrayRef> {
    let values = of(&mut entries.iter().flat_map(|entry| &entry.events));
    let offsets = OffsetBuffer::from_lengths(entries.iter().map(|entry| entry.events.len()));
    let element = Arc::new(Field::new("element", values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(element, offsets, values, None).map_err(wrong_column)?))
}

/// Reads from such a table what is needed to know a file again: the file, the recording's `input` and `bucket`, the error.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>> {
    const WANTED: [&str; 6] = ["input", "path", "size", "mtime_ns", "bucket_ns", "error"];
    let (groups, mut entries) = (RowGroups::of(bytes, |column| WANTED.contains(&column))?, Vec::new());
    for group in 0..groups.count() {
        groups.read(group, &mut |batch| add(batch, &mut entries))?;
    }
    Ok(entries)
}

fn add(batch: &RecordBatch, entries: &mut Vec<Entry>) -> Result<()> {
    let mut words = Words::new();
    let mut text = |name: &str| WordCells::of(batch, name, &mut words);
    let (inputs, paths, errors) = (text("input")?, text("path")?, text("error")?);
    let number = |name: &str| Numbers::of(batch, name);
    let (sizes, mtimes, buckets) = (number("size")?, number("mtime_ns")?, number("bucket_ns")?);
    for row in 0..batch.num_rows() {
        let text = |cells: &WordCells| words.text(cells.at(row)).map(str::to_owned);
        let path = text(&paths).ok_or_else(|| Error::new("a row has no path"))?;
        let mut entry = Entry { error: text(&errors), ..Entry::default() };
        entry.file = ReadFile { path, size: sizes.at(row), mtime: mtimes.at(row) };
        entry.recording.input = text(&inputs).map(Into::into);
        entry.recording.bucket = buckets.known_at(row);
        entries.push(entry);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::recorded::Recording;

    #[test]
    fn what_is_written_is_known_again() {
        let file = ReadFile { path: "a/perf.data".to_owned(), size: 7, mtime: 1_795_305_600_000_000_001 };
        let recording = Recording { input: Some("12ab".into()), bucket: Some(1_000), ..Recording::default() };
        let event = RecordedEvent { name: "cycles".to_owned(), frequency: Some(99), ..RecordedEvent::default() };
        let events = vec![event.clone(), event];
        let read_well = Entry { file: file.clone(), recording, events, rows: 3, ..Entry::default() };
        let unread = Entry { file, error: Some("is empty".to_owned()), ..Entry::default() };
        let mut table = Vec::new();
        write(&[read_well.clone(), unread.clone()], &mut table).unwrap();
        let known = Entry { events: Vec::new(), rows: 0, ..read_well };
        assert_eq!(read(&table).unwrap(), [known, unread]);
        assert!(read(&table[..table.len() / 2]).is_err());
    }
}
