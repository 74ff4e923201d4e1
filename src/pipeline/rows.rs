//! Passes the rows of any input to a writer as they are read.

use super::any::{LoadOptions, no_samples, run_one};
use super::job::{Job, Outcome};
use super::open::{Looked, Opened, shown};
use super::recording::{check_events, is_wanted};
use super::sink::Sink;
use crate::contract::rows::{RowOrigin, RowWriter, recording_of};
use crate::error::Result;
use crate::io::InPath;
use crate::model::about::TimeExtent;
use crate::model::recorded::Recording;
use crate::model::stacks::{Keep, Profile, Row, Track};
use rustc_hash::FxHashMap;
use sha1::{Digest, Sha1};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::sync::Arc;

/// Passes rows of inputs to a writer, and keeps count.
#[derive(Debug, Default)]
pub(crate) struct RowsRead {
    rows: u64,
    events: BTreeSet<String>,
}

impl RowsRead {
    /// Reads an input and passes its rows to the writer.
    pub(crate) fn push(
        &mut self,
        (opened, path): (Opened, &InPath),
        given: RowOrigin,
        options: &LoadOptions,
        writer: &mut dyn RowWriter,
        (job, outcome): (&Job, &mut Outcome),
    ) -> Result<()> {
        let mut sink = RowSink { read: self, given, options, writer, has_begun: false, has_ended: false };
        run_one(opened, path, options, (&mut sink, &mut |_, _, _| {}), job, outcome)
            .map_err(|error| error.in_file(&shown(path)))
    }

    /// Reports if there were no rows, and fails if an event that the user named didn't occur.
    pub(crate) fn finish(
        &self,
        inputs: &[InPath],
        options: &LoadOptions,
        (job, outcome): (&Job, &mut Outcome),
    ) -> Result<()> {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        check_events(&events, &options.event)?;
        if self.rows == 0 {
            no_samples(inputs, options, job, outcome)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RowSink<'a> {
    read: &'a mut RowsRead,
    /// What the user stated about all rows of any input.
    given: RowOrigin,
    options: &'a LoadOptions,
    writer: &'a mut dyn RowWriter,
    /// True if the writer has been told about a recording.
    has_begun: bool,
    /// True if the writer has received all rows of the last recording.
    has_ended: bool,
}

/// The rows of one recording, by event.
type RecordingRows = Vec<Vec<Row>>;

impl RowSink<'_> {
    fn begin(&mut self, recording: Recording, rows: &Profile) -> Result<()> {
        self.read.events.extend(rows.series.iter().map(|series| series.name.clone()));
        let origin = RowOrigin {
            recording: described(recording, &self.given.recording),
            labels: self.given.labels.clone(),
            jit_names: self.options.jit_names.of(rows),
        };
        self.has_begun = true;
        self.writer.begin(origin, rows)
    }

    fn begin_whole(&mut self, rows: &Profile) -> Result<()> {
        if !self.has_begun { self.begin(recording_of(rows), rows) } else { Ok(()) }
    }

    fn rows(&mut self, rows: &Profile) -> Result<()> {
        self.read.rows += rows.series.iter().map(|series| series.rows.len() as u64).sum::<u64>();
        self.writer.rows(rows)
    }
}

impl Sink for RowSink<'_> {
    fn keep(&self) -> Keep {
        Keep::EachRow
    }

    fn in_batches(&self) -> bool {
        true
    }

    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        let wanted = &self.options.event;
        let unwanted = rows.series.iter_mut().filter(|series| !is_wanted(&series.name, wanted));
        unwanted.for_each(|series| series.rows.clear());
        let recordings = by_recording(rows);
        if recordings.is_empty() {
            self.begin_whole(rows)?;
            return self.rows(rows);
        }
        let (is_only, all_lost) = (recordings.len() == 1, rows.about.lost);
        for (recording, of_recording) in recordings {
            rows.series.iter_mut().zip(of_recording).for_each(|(series, rows)| series.rows = rows);
            let recording = if is_only {
                recording_of(rows)
            } else {
                let of_host = recording.host.as_ref().and_then(|host| rows.about.lost_on.get(host));
                rows.about.lost = of_host.copied().unwrap_or(0);
                of_machine(recording.host.clone(), rows)
            };
            self.begin(recording, rows)?;
            self.rows(rows)?;
            self.writer.end(rows)?;
        }
        rows.about.lost = all_lost;
        self.has_ended = true;
        Ok(())
    }

    fn end(&mut self, tables: &Profile) -> Result<()> {
        if self.has_ended {
            return Ok(());
        }
        self.begin_whole(tables)?;
        self.writer.end(tables)
    }
}

/// Splits the rows of an input that contains several recordings, in order of appearance. Empty if the input is itself a
/// single recording.
fn by_recording(profile: &mut Profile) -> Vec<(Arc<Recording>, RecordingRows)> {
    let (mut places, mut all) = (FxHashMap::default(), Vec::new());
    let place = |track: &Track| {
        let recording = track.recording.as_ref()?;
        Some(*places.entry(recording.clone()).or_insert_with(|| {
            all.push((recording.clone(), vec![Vec::new(); profile.series.len()]));
            all.len() - 1
        }))
    };
    let places: Vec<Option<usize>> = profile.tracks().iter().map(place).collect();
    if all.is_empty() {
        return all;
    }
    for (series, of) in profile.series.iter_mut().enumerate() {
        for row in of.rows.drain(..) {
            if let Some(recording) = places[row.track.index()] {
                all[recording].1[series].push(row);
            }
        }
    }
    all.retain(|(_, rows)| rows.iter().any(|rows| !rows.is_empty()));
    all
}

/// The description of the rows of one machine, for an input with several machines.
fn of_machine(host: Option<Box<str>>, rows: &mut Profile) -> Recording {
    let times = rows.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    rows.about.sampled = times.map(TimeExtent::of_moment).reduce(TimeExtent::join);
    Recording { host, arch: None, kernel: None, command: None, ..recording_of(rows) }
}

/// The description of a recording. What the user stated takes precedence over what the input says, except for what
/// identifies the recording.
fn described(own: Recording, given: &Recording) -> Recording {
    Recording {
        input: own.input.or_else(|| given.input.clone()),
        host: given.host.clone().or(own.host),
        day: given.day.or(own.day),
        bucket: given.bucket.or(own.bucket),
        ..own
    }
}

/// The SHA-1 of an input's unpacked contents, so that a compressed copy counts as the same input. For a file, it is
/// what `sha1sum` prints; for a recording's directory, that of all its streams one after another. `None` for a stream
/// that can only be read once.
pub(crate) fn input_hash(opened: &Opened, path: &InPath) -> Result<Option<String>> {
    let mut hash = Sha1::new();
    match (path, opened) {
        (_, Opened::Whole(input)) => {
            hash.update(&input.bytes);
            input.streams.iter().flatten().for_each(|stream| hash.update(&stream.bytes));
        }
        _ if path.is_file() => add_unpacked(path, &mut hash)?,
        (_, Opened::Stream { .. }) => return Ok(None),
    }
    Ok(Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Hashes a file's contents up to the first error in unpacking; whoever reads the file reports that.
fn add_unpacked(path: &InPath, hash: &mut Sha1) -> Result<()> {
    let Looked::File(looked) = Looked::at(path)? else { return Ok(()) };
    let (mut reader, mut piece) = (looked.into_stream()?.into_reader(), vec![0; 1 << 18]);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => hash.update(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(()),
        }
    }
}
