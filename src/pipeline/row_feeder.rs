//! Passes the rows of any input to a writer while the input is being read.

use super::any::{LoadOptions, report_no_samples, run_one};
use super::job::{Job, Outcome};
use super::open::{Opened, PeekedInput, shown};
use super::recording::{check_events, is_wanted};
use super::sink::Sink;
use crate::contract::rows::{RowOrigin, RowWriter, recording_of};
use crate::error::Result;
use crate::io::InPath;
use crate::model::about::TimeExtent;
use crate::model::recorded::Recording;
use crate::model::stacks::{Keep, Profile, Row};
use rustc_hash::FxHashMap;
use sha1::{Digest, Sha1};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::sync::Arc;

/// Passes the rows of inputs to a writer, and counts them.
#[derive(Debug)]
pub(crate) struct RowFeeder<'o> {
    options: &'o LoadOptions,
    /// What the user stated about the origin of the rows (host, day, labels). It applies to all inputs.
    user_origin: RowOrigin,
    /// The number of rows that were passed on so far.
    rows: u64,
    /// The names of all events in the inputs so far, including those that the user doesn't want.
    events: BTreeSet<String>,
}

impl<'o> RowFeeder<'o> {
    /// Creates a feeder without rows. `user_origin` is what the user stated about the origin of the rows.
    pub(crate) fn new(options: &'o LoadOptions, user_origin: RowOrigin) -> Self {
        Self { options, user_origin, rows: 0, events: BTreeSet::new() }
    }

    /// Reads an input and passes its rows to the writer. `hash` is that of the input's contents ([`input_hash`]).
    pub(crate) fn push(
        &mut self,
        opened: Opened,
        path: &InPath,
        hash: Option<String>,
        writer: &mut dyn RowWriter,
        job: &Job,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let options = self.options;
        let mut sink = RowSink { feeder: self, hash, writer, has_begun: false, has_ended: false };
        // `|_, _, _| {}`: only the rows are wanted, so recordings aren't inspected.
        run_one(opened, path, options, &mut sink, &mut |_, _, _| {}, job, outcome)
            .map_err(|error| error.in_file(&shown(path)))
    }

    /// Call this after the last input. Reports it if there were no rows at all, and fails if an event that the user
    /// named didn't occur.
    pub(crate) fn finish(&self, inputs: &[InPath], job: &Job, outcome: &mut Outcome) -> Result<()> {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        check_events(&events, &self.options.event)?;
        if self.rows == 0 {
            report_no_samples(inputs, self.options, job, outcome)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct RowSink<'a, 'o> {
    feeder: &'a mut RowFeeder<'o>,
    /// The hash of the input's contents.
    hash: Option<String>,
    writer: &'a mut dyn RowWriter,
    /// True if the writer has received the description of the current input's recording.
    has_begun: bool,
    /// True if the writer has received all rows of the input and has been told that its last recording ended.
    has_ended: bool,
}

/// The rows of one recording: a list for each event.
type RecordingRows = Vec<Vec<Row>>;

impl RowSink<'_, '_> {
    /// Passes the description of a recording to the writer, before its rows.
    fn begin(&mut self, recording: Recording, rows: &Profile) -> Result<()> {
        self.feeder.events.extend(rows.series.iter().map(|series| series.name.clone()));
        let RowFeeder { options, user_origin, .. } = &*self.feeder;
        let origin = RowOrigin {
            recording: merge_descriptions(recording, &user_origin.recording, self.hash.as_deref()),
            labels: user_origin.labels.clone(),
            jit_names: options.jit_names.for_profile(rows),
        };
        self.has_begun = true;
        self.writer.begin(origin, rows)
    }

    /// Passes the description of an input that is a single recording to the writer, before the first batch of its rows.
    fn begin_input(&mut self, rows: &Profile) -> Result<()> {
        if !self.has_begun { self.begin(recording_of(rows), rows) } else { Ok(()) }
    }

    /// Passes the rows in a profile to the writer.
    fn pass_rows(&mut self, rows: &Profile) -> Result<()> {
        self.feeder.rows += rows.series.iter().map(|series| series.rows.len() as u64).sum::<u64>();
        self.writer.rows(rows)
    }
}

impl Sink for RowSink<'_, '_> {
    fn keep(&self) -> Keep {
        Keep::EachRow
    }

    fn wants_batches(&self) -> bool {
        true
    }

    /// Passes rows to the writer, without those of events that the user doesn't want. If the rows are from several
    /// recordings, the writer gets them recording by recording.
    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        for series in &mut rows.series {
            if !is_wanted(&series.name, &self.feeder.options.event) {
                series.rows.clear();
            }
        }
        let recordings = split_by_recording(rows);
        if recordings.is_empty() {
            self.begin_input(rows)?;
            return self.pass_rows(rows);
        }
        // If an input contains several recordings, they come in one batch. The writer gets them one by one, in the same
        // profile: only its rows and its count of lost samples are replaced each time.
        let is_only = recordings.len() == 1;
        let all_lost = rows.about.lost;
        for (recording, recording_rows) in recordings {
            for (series, series_rows) in rows.series.iter_mut().zip(recording_rows) {
                series.rows = series_rows;
            }
            // If the input is a single recording, the input's description is the recording's. With several recordings,
            // only the host of each is known, and how many samples that host lost.
            let recording = if is_only {
                recording_of(rows)
            } else {
                let lost = recording.host.as_ref().and_then(|host| rows.about.lost_on.get(host));
                rows.about.lost = lost.copied().unwrap_or(0);
                describe_machine(recording.host.clone(), rows)
            };
            self.begin(recording, rows)?;
            self.pass_rows(rows)?;
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
        // If the input has no rows, `take` may not have been called. The writer then still needs the description.
        self.begin_input(tables)?;
        self.writer.end(tables)
    }
}

/// If the tracks of an input state recordings, moves the rows of each recording out of the profile. Returns the
/// recordings in the order in which the tracks mention them, without those that have no rows. Empty if no track states
/// a recording: the input then is a single one, and its rows stay in the profile.
fn split_by_recording(profile: &mut Profile) -> Vec<(Arc<Recording>, RecordingRows)> {
    let mut recordings: Vec<(Arc<Recording>, RecordingRows)> = Vec::new();
    let mut indexes = FxHashMap::default();
    // For each track, the index of its recording in `recordings`; `None` if it states none.
    let mut by_track: Vec<Option<usize>> = Vec::new();
    for track in profile.tracks() {
        by_track.push(track.recording.as_ref().map(|recording| {
            *indexes.entry(recording.clone()).or_insert_with(|| {
                recordings.push((recording.clone(), vec![Vec::new(); profile.series.len()]));
                recordings.len() - 1
            })
        }));
    }
    if recordings.is_empty() {
        return recordings;
    }
    for (index, series) in profile.series.iter_mut().enumerate() {
        for row in series.rows.drain(..) {
            // No row is lost here: only the OTLP reader lets tracks state recordings, and then every track of the input
            // states one.
            if let Some(recording) = by_track[row.track.index()] {
                let (_, rows) = &mut recordings[recording];
                rows[index].push(row);
            }
        }
    }
    recordings.retain(|(_, rows)| rows.iter().any(|rows| !rows.is_empty()));
    recordings
}

/// Describes the recording of one machine, for an input with rows from several. The profile must only have the rows of
/// this machine. Command, kernel and architecture are left out: the input states them only once, so they needn't be
/// this machine's.
fn describe_machine(host: Option<Box<str>>, rows: &mut Profile) -> Recording {
    let times = rows.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    rows.about.sampled = times.map(TimeExtent::from_moment).reduce(TimeExtent::join);
    Recording { host, arch: None, kernel: None, command: None, ..recording_of(rows) }
}

/// Combines what an input says about its recording with what the user `stated`, which takes precedence. The field
/// `input` identifies the recording. If the input doesn't state it, it is the `hash` of the input's contents.
fn merge_descriptions(recorded: Recording, stated: &Recording, hash: Option<&str>) -> Recording {
    Recording {
        input: recorded.input.or_else(|| hash.map(Into::into)),
        host: stated.host.clone().or(recorded.host),
        day: stated.day.or(recorded.day),
        bucket: stated.bucket.or(recorded.bucket),
        ..recorded
    }
}

/// The SHA-1 of an input's unpacked contents, so that a compressed copy counts as the same input. For a file, it is
/// what `sha1sum` prints for the unpacked file. For a recording's directory, it covers all files with records, one
/// after another. `None` for an input that can only be read once.
pub(crate) fn input_hash(opened: &Opened, path: &InPath) -> Result<Option<String>> {
    let mut hash = Sha1::new();
    match (path, opened) {
        (_, Opened::Whole(input)) => {
            hash.update(&input.bytes);
            for stream in input.streams.iter().flatten() {
                hash.update(&stream.bytes);
            }
        }
        // A stream can only be read once, so read the file a second time.
        _ if path.is_file() => add_unpacked(path, &mut hash)?,
        (_, Opened::Stream { .. }) => return Ok(None),
    }
    Ok(Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Adds the contents of a file to a hash. Stops at the first error in unpacking without reporting it: when the file is
/// read for its samples, the same error is reported.
fn add_unpacked(path: &InPath, hash: &mut Sha1) -> Result<()> {
    let PeekedInput::File(peeked) = PeekedInput::open(path)? else { return Ok(()) };
    let (mut reader, mut piece) = (peeked.into_stream()?.into_reader(), vec![0; 1 << 18]);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => hash.update(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(()),
        }
    }
}
