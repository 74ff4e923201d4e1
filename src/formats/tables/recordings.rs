//! What a data set was made of, as a table of its own: a row a file, also for a file that could not be read.

use super::cells::{self, NONE, Numbers, WordCells, Words, labels as labels_of, owned_texts};
use super::columns::{LabelColumn, moments, wrong_column};
use super::parquet::{RowGroups, write_batch};
use super::read::{RecordingColumns, Recordings};
use super::schema::{VERSION, VERSION_KEY};
use crate::error::{Error, Result};
use crate::model::recorded::{Entry, ReadFile, RecordedEvent, Recording};
use arrow_array::cast::AsArray;
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

/// The columns that show which files were read.
const OF_FILES: &[&str] = &["input", "path", "size", "mtime_ns", "bucket_ns", "error"];

/// Reads such a table.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>> {
    read_columns(bytes, |_| true)
}

/// Reads which files were read, and what identifies their recordings.
pub fn read_files(bytes: &[u8]) -> Result<Vec<Entry>> {
    read_columns(bytes, |column| OF_FILES.contains(&column))
}

fn read_columns(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Entry>> {
    let (groups, mut entries) = (RowGroups::of(bytes, is_wanted)?, Vec::new());
    for group in 0..groups.count() {
        groups.read(group, &mut |batch| add(batch, &mut entries))?;
    }
    Ok(entries)
}

fn add(batch: &RecordBatch, entries: &mut Vec<Entry>) -> Result<()> {
    let (mut words, mut recordings) = (Words::new(), Recordings::on(None, None));
    let recording = RecordingColumns::new(batch, &mut words)?;
    let mut text = |name: &str| WordCells::of(batch, name, &mut words);
    let [paths, errors] = [text("path")?, text("error")?];
    let number = |name: &str| Numbers::of(batch, name);
    let [sizes, mtimes, durations] = [number("size")?, number("mtime_ns")?, number("duration_ns")?];
    let [rows, samples, lost] = [number("rows")?, number("samples")?, number("lost")?];
    let (mut labels, mut events) = (labels_of(batch)?.into_iter(), events_of(batch)?.into_iter());
    for row in 0..batch.num_rows() {
        let text = |cells: &WordCells| words.text(cells.at(row)).map(str::to_owned);
        let path = text(&paths).ok_or_else(|| Error::new("a row has no path"))?;
        entries.push(Entry {
            file: ReadFile { path, size: sizes.at(row), mtime: mtimes.at(row) },
            recording: Recording::clone(&recordings.of(recording.at(row), &words)),
            labels: labels.next().flatten(),
            duration: durations.known_at(row),
            events: events.next().unwrap_or_default(),
            rows: rows.known_at(row).unwrap_or(0),
            samples: samples.known_at(row).unwrap_or(0),
            lost: lost.known_at(row).unwrap_or(0),
            error: text(&errors),
        });
    }
    Ok(())
}

/// The events of each row.
fn events_of(batch: &RecordBatch) -> Result<Vec<Vec<RecordedEvent>>> {
    let of = |name: &str| {
        let column = batch.column_by_name(name)?.as_list_opt::<i32>()?;
        Some((column.value_offsets().to_vec(), column.values().clone()))
    };
    let texts = |name: &str| {
        let (offsets, values) = of(name)?;
        Some((offsets, owned_texts(&values)?))
    };
    let (Some((offsets, names)), Some((_, units))) = (texts("events"), texts("units")) else { return Ok(Vec::new()) };
    let numbers = |name: &str| of(name).and_then(|(_, values)| cells::numbers(&values)).unwrap_or_default();
    let (frequencies, periods) = (numbers("frequencies"), numbers("periods"));
    let known = |list: &[i64], at: usize| list.get(at).copied().filter(|number| *number != NONE);
    let event = |at: usize| RecordedEvent {
        name: names.get(at).map(|name| name.to_string()).unwrap_or_default(),
        unit: units.get(at).map(|unit| unit.to_string()).unwrap_or_default(),
        frequency: known(&frequencies, at),
        period: known(&periods, at),
    };
    let place = |offset: i32| usize::try_from(offset).unwrap_or(0);
    Ok(offsets.windows(2).map(|ends| (place(ends[0])..place(ends[1])).map(event).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_value_is_recognized_again() {
        let file = ReadFile { path: "a/perf.data".to_owned(), size: 7, mtime: 1_795_305_600_000_000_001 };
        let recording = Recording { input: Some("12ab".into()), bucket: Some(1_000), ..Recording::default() };
        let event = RecordedEvent { name: "cycles".to_owned(), frequency: Some(99), ..RecordedEvent::default() };
        let events = vec![event.clone(), event];
        let labels = Some(Arc::new([("team".into(), "a".into())].into()));
        let read_well = Entry { file: file.clone(), recording, labels, events, rows: 3, lost: 2, ..Entry::default() };
        let unread = Entry { file, error: Some("is empty".to_owned()), ..Entry::default() };
        let mut table = Vec::new();
        write(&[read_well.clone(), unread.clone()], &mut table).unwrap();
        assert_eq!(read(&table).unwrap(), [read_well.clone(), unread.clone()]);
        let of_file = |entry: &Entry| {
            let Recording { input, bucket, .. } = entry.recording.clone();
            let recording = Recording { input, bucket, ..Recording::default() };
            Entry { file: entry.file.clone(), recording, error: entry.error.clone(), ..Entry::default() }
        };
        assert_eq!(read_files(&table).unwrap(), [of_file(&read_well), of_file(&unread)]);
        assert!(read(&table[..table.len() / 2]).is_err());
    }
}
