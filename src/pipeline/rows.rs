//! Any input → a writer of rows, as they are read.

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

/// The rows of inputs for a table.
#[derive(Debug, Default)]
pub(crate) struct RowsRead {
    rows: u64,
    events: BTreeSet<String>,
}

impl RowsRead {
    /// Pushes the rows of one input to a writer.
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

    /// Reports its absence, and refuses names that no event had.
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
    /// The facts about all rows, in any input.
    given: RowOrigin,
    options: &'a LoadOptions,
    writer: &'a mut dyn RowWriter,
    /// True if the writer has begun a recording.
    has_begun: bool,
    /// True if the writer has received all rows of the last.
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

/// Takes the rows of an input that holds those of several recordings, in the order in which these appear; nothing if it
/// is one recording itself.
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

/// The recording of the rows of one machine, of an input with several machines.
fn of_machine(host: Option<Box<str>>, rows: &mut Profile) -> Recording {
    let times = rows.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    rows.about.sampled = times.map(TimeExtent::at).reduce(TimeExtent::with);
    Recording { host, arch: None, kernel: None, command: None, ..recording_of(rows) }
}

/// What is reported about a recording: what was given goes before what it states itself, but for what identifies it.
fn described(own: Recording, given: &Recording) -> Recording {
    Recording {
        input: own.input.or_else(|| given.input.clone()),
        host: given.host.clone().or(own.host),
        day: given.day.or(own.day),
        bucket: given.bucket.or(own.bucket),
        ..own
    }
}

/// The SHA-1 of what an input holds, unpacked: of a file what `sha1sum` states, of a recording's directory that of its
/// streams one after the other. A packed copy is the same input. `None` if the input is a stream that is read only
/// once.
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

/// Adds what is in a file, up to where it can be unpacked: who reads it shows what is wrong there.
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
