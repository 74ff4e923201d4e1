//! The table → stacks: what was exported, or what an engine made of it, as long as the columns have their names.
//!
//! `functions` must be there. If `weight` or `count` is missing, each row weighs, and counts, 1; all other columns add
//! what they give.

use super::cells::{NONE, moments};
use super::labels;
use super::recordings_read::{RecordingColumns, RecordingWords, Recordings};
use super::row_cells::{Numbers, WordCells, WordNo, Words};
use super::schema::{READ, VERSION, VERSION_KEY};
use super::stacks::{OpenStack, StackReader};
use super::writer::{DAY_KEY, HOST_KEY, NAMES_KEY, PERF_NAMES};
use crate::contract::options::{Detail, ReadOptions};
use crate::error::{Error, Result};
use crate::model::recorded::{Labels, day_named};
use crate::model::stacks::{Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use arrow_array::RecordBatch;
use arrow_schema::Schema;

/// The columns that are read in addition where rows of different recordings and labels are kept apart.
const APART: &[&str] = &["input", "start", "day", "share_named", "epoch_ns", "bucket_ns", "labels"];

/// The columns that are read, if all that is known of a frame is needed.
const COLUMNS: &[&str] = &[
    "host",
    "arch",
    "kernel",
    "command",
    "event",
    "unit",
    "comm",
    "pid",
    "tid",
    "cpu",
    "time",
    "time_ns",
    "weight",
    "count",
    "functions",
    "modules",
    "build_ids",
    "files",
    "lines",
    "kinds",
    "tiers",
    "addresses",
];

/// True if a column shows what is needed.
pub(super) fn is_wanted(column: &str, options: &ReadOptions) -> bool {
    let least = match column {
        "files" | "lines" | "build_ids" => Detail::Lines,
        "addresses" => Detail::Addresses,
        _ => Detail::Names,
    };
    COLUMNS.contains(&column) && options.detail.is_none_or(|detail| detail >= least)
        || options.apart && APART.contains(&column)
}

/// A table that becomes stacks, batch by batch.
#[derive(Debug)]
pub(super) struct TableReader {
    profile: Profile,
    stacks: StackReader,
    words: Words,
    /// True if rows of different recordings and labels are kept apart.
    apart: bool,
    recordings: Recordings,
    /// The last row's, which is mostly the next one's, too.
    series: Option<(EventWords, usize)>,
    track: Option<(TrackWords, TrackId)>,
}

/// The event and its unit, as a row gives them.
type EventWords = [Option<WordNo>; 2];

/// The owner of a row, as stated.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrackWords {
    comm: Option<WordNo>,
    numbers: [i64; 3],
    labels: Labels,
    recording: Option<RecordingWords>,
}

impl TableReader {
    /// For a table of these columns.
    pub(super) fn new(schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let said = |key: &str| schema.metadata().get(key).map(String::as_str);
        if let Some(version) = said(VERSION_KEY).filter(|version| !READ.contains(version)) {
            let message = format!("is a table of version {version}; this jitgraft reads version {VERSION}");
            return Err(Error::new(message));
        }
        if schema.column_with_name("functions").is_none() {
            let remedy = "jitgraft export --to parquet writes it; docs/sql.md describes the columns".to_owned();
            return Err(Error::new("is a table without a column called functions").with_remedy(Some(remedy)));
        }
        let has = |column: &str| schema.column_with_name(column).is_some();
        if has("stack_id") && !["event", "weight", "count"].into_iter().any(has) {
            return Err(Error::new("is a table of distinct stacks, without the number of samples of each"));
        }
        let mut profile = Profile::keeping(options.keep);
        profile.perf_names = said(NAMES_KEY) == Some(PERF_NAMES);
        profile.about.host = said(HOST_KEY).map(|host| host.as_bytes().to_vec());
        let recordings = Recordings::on(said(HOST_KEY), said(DAY_KEY).and_then(day_named));
        let (stacks, words, apart) = (StackReader::new(), Words::new(), options.apart);
        Ok(Self { profile, stacks, words, apart, recordings, series: None, track: None })
    }

    /// Takes the rows of a batch.
    pub(super) fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = RowColumns::new(batch, &mut self.words, self.apart)?;
        let frames = self.stacks.frames(batch, &mut self.profile)?;
        self.about(batch)?;
        let mut open = OpenStack::default();
        for row in 0..batch.num_rows() {
            let stack = self.stacks.stack(&frames, row, &mut open, &mut self.profile);
            self.row(&columns, row, stack);
        }
        Ok(())
    }

    fn row(&mut self, columns: &RowColumns, row: usize, stack: Option<StackId>) {
        let series = self.series([columns.event.at(row), columns.unit.at(row)]);
        let numbers = [&columns.pid, &columns.tid, &columns.cpu].map(|column| column.at(row));
        let recording = columns.recording.as_ref().map(|recording| recording.at(row));
        let labels = columns.labels.get(row).cloned().flatten();
        let track = self.track(TrackWords { comm: columns.comm.at(row), numbers, labels, recording });
        let amount = |column: &Numbers| u64::try_from(column.at(row)).ok();
        let time = amount(&columns.time_ns).map(Nanos);
        let count = if columns.count.is_there() { amount(&columns.count).unwrap_or(0) } else { 1 };
        let weight = if columns.weight.is_there() { amount(&columns.weight).unwrap_or(0) } else { count };
        self.profile.push(series, Row { track, stack, weight, count, time });
    }

    fn series(&mut self, words: EventWords) -> usize {
        if let Some((_, series)) = self.series.filter(|(known, _)| *known == words) {
            return series;
        }
        let [event, unit] = words.map(|word| self.words.text(word));
        let unit = match unit {
            Some("samples") | None => Unit::Samples,
            Some("nanoseconds") => Unit::Nanos,
            Some(name) => Unit::Named(name.to_owned()),
        };
        let series = self.profile.series_named(event.unwrap_or("samples"), unit);
        self.series = Some((words, series));
        series
    }

    fn track(&mut self, words: TrackWords) -> TrackId {
        if let Some((_, track)) = self.track.as_ref().filter(|(known, _)| *known == words) {
            return *track;
        }
        let recording = words.recording.map(|recording| self.recordings.of(recording, &self.words));
        let [pid, tid, cpu] = words.numbers.map(|number| i32::try_from(number).ok());
        let track = self.profile.track(Track {
            comm: self.words.text(words.comm).unwrap_or_default().as_bytes().to_vec(),
            pid: pid.map(Pid),
            tid: tid.map(Tid),
            cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            labels: words.labels.clone(),
            recording,
            input: None,
        });
        self.track = Some((words, track));
        track
    }

    /// Takes over the facts of the first row about its recording.
    fn about(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let (first, words) = (batch.slice(0, 1), &mut self.words);
        let mut text = |name: &str| {
            let cells = WordCells::of(&first, name, words)?;
            Ok::<_, Error>(words.text(cells.at(0)).map(|text| text.as_bytes().to_vec()))
        };
        let about = &mut self.profile.about;
        about.host = about.host.take().or(text("host")?);
        about.arch = about.arch.take().or(text("arch")?);
        about.os_release = about.os_release.take().or(text("kernel")?);
        if about.command.is_empty() {
            let command = text("command")?.unwrap_or_default();
            let words = command.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            about.command = words.map(<[u8]>::to_vec).collect();
        }
        about.epoch = about.epoch.or(epoch(&first)?);
        Ok(())
    }

    /// All that was read.
    pub(super) fn finish(self) -> Profile {
        self.profile
    }
}

/// The wall clock's time at the recording clock's 0, as the first row that has both gives it.
fn epoch(batch: &RecordBatch) -> Result<Option<i128>> {
    let own = Numbers::of(batch, "time_ns")?;
    let wall = Numbers::by(batch, "time", moments)?;
    let both = (0..batch.num_rows()).map(|row| (wall.at(row), own.at(row)));
    let mut both = both.filter(|(wall, own)| *wall != NONE && *own != NONE);
    Ok(both.next().map(|(wall, own)| i128::from(wall) * 1000 - i128::from(own)))
}

/// The columns of a batch, except stacks.
#[derive(Debug)]
struct RowColumns {
    event: WordCells,
    unit: WordCells,
    comm: WordCells,
    pid: Numbers,
    tid: Numbers,
    cpu: Numbers,
    time_ns: Numbers,
    weight: Numbers,
    count: Numbers,
    recording: Option<RecordingColumns>,
    labels: Vec<Labels>,
}

impl RowColumns {
    fn new(batch: &RecordBatch, words: &mut Words, apart: bool) -> Result<Self> {
        Ok(Self {
            event: WordCells::of(batch, "event", words)?,
            unit: WordCells::of(batch, "unit", words)?,
            comm: WordCells::of(batch, "comm", words)?,
            pid: Numbers::of(batch, "pid")?,
            tid: Numbers::of(batch, "tid")?,
            cpu: Numbers::of(batch, "cpu")?,
            time_ns: Numbers::of(batch, "time_ns")?,
            weight: Numbers::of(batch, "weight")?,
            count: Numbers::of(batch, "count")?,
            recording: apart.then(|| RecordingColumns::new(batch, words)).transpose()?,
            labels: if apart { labels::read(batch)? } else { Vec::new() },
        })
    }
}
