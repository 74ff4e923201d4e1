//! The table → stacks: what was exported, or what an engine made of it, as long as the columns have their names.
//!
//! `functions` must be there. If `weight` or `count` is missing, each row weighs, and counts, 1; all other columns add
//! what they give.

use super::cells::{NONE, Numbers, WordCells, WordNo, Words, days, fractions, labels, moments};
use super::schema::{READ, VERSION, VERSION_KEY};
use super::stacks::{OpenStack, StackReader};
use super::writer::{DAY_KEY, HOST_KEY, NAMES_KEY, PERF_NAMES};
use crate::contract::options::{Detail, ReadOptions};
use crate::error::{Error, Result};
use crate::model::recorded::{Labels, Recording, day, day_named};
use crate::model::stacks::{Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use rustc_hash::FxHashMap;
use std::sync::Arc;

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
    pub(super) profile: Profile,
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
        let unit = unit.map_or(Unit::Samples, Unit::named);
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
            labels: if apart { labels(batch)? } else { Vec::new() },
        })
    }
}

/// The facts of a row about its recording: recording: input, host, arch, kernel and command; start, day, share named,
/// epoch and bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RecordingWords {
    texts: Texts,
    numbers: [i64; 5],
}

type Texts = [Option<WordNo>; 5];

/// The facts in a batch about the recordings of its rows.
#[derive(Debug)]
pub(super) struct RecordingColumns {
    texts: [WordCells; 5],
    numbers: [Numbers; 5],
    /// Where no column has the epochs: those of the recordings of these texts, worked out from the times of their rows.
    epochs: FxHashMap<Texts, i64>,
}

impl RecordingColumns {
    pub(super) fn new(batch: &RecordBatch, words: &mut Words) -> Result<Self> {
        let mut text = |name: &str| WordCells::of(batch, name, words);
        let texts = [text("input")?, text("host")?, text("arch")?, text("kernel")?, text("command")?];
        let numbers = [
            Numbers::by(batch, "start", moments)?,
            Numbers::by(batch, "day", days)?,
            Numbers::by(batch, "share_named", fractions)?,
            Numbers::of(batch, "epoch_ns")?,
            Numbers::of(batch, "bucket_ns")?,
        ];
        let mut columns = Self { texts, numbers, epochs: FxHashMap::default() };
        if !columns.numbers[3].is_there() {
            let (wall, own) = (Numbers::by(batch, "time", moments)?, Numbers::of(batch, "time_ns")?);
            (0..batch.num_rows()).for_each(|row| columns.add_epoch(row, wall.at(row), own.at(row)));
        }
        Ok(columns)
    }

    /// The wall clock's times are cut to microseconds: the latest epoch is the one that gives all of them again.
    fn add_epoch(&mut self, row: usize, wall: i64, own: i64) {
        if wall != NONE && own != NONE {
            let (texts, epoch) = (self.texts_at(row), wall.saturating_mul(1000).saturating_sub(own));
            let latest = self.epochs.entry(texts).or_insert(epoch);
            *latest = epoch.max(*latest);
        }
    }

    fn texts_at(&self, row: usize) -> Texts {
        [0, 1, 2, 3, 4].map(|column| self.texts[column].at(row))
    }

    pub(super) fn at(&self, row: usize) -> RecordingWords {
        let mut numbers = [0, 1, 2, 3, 4].map(|column| self.numbers[column].at(row));
        let texts = self.texts_at(row);
        numbers[3] = self.epochs.get(&texts).copied().unwrap_or(numbers[3]);
        RecordingWords { texts, numbers }
    }
}

/// The recordings of a table, each once.
#[derive(Debug)]
pub(super) struct Recordings {
    /// The host that the file names for all of its rows.
    host: Option<Box<str>>,
    /// The day that it names for them.
    day: Option<i32>,
    known: FxHashMap<RecordingWords, Arc<Recording>>,
}

impl Recordings {
    /// None yet, of a file that names this host and this day for all of its rows.
    pub(super) fn on(host: Option<&str>, day: Option<i32>) -> Self {
        Self { host: host.map(Box::from), day, known: FxHashMap::default() }
    }

    /// The one that a row describes.
    pub(super) fn of(&mut self, row: RecordingWords, words: &Words) -> Arc<Recording> {
        let Self { host: all, day: own_day, known } = self;
        let new = || {
            let [input, host, arch, kernel, command] = row.texts.map(|word| words.text(word).map(Box::from));
            let [start, of_day, share_named, epoch, bucket] =
                row.numbers.map(|number| Some(number).filter(|number| *number != NONE));
            Arc::new(Recording {
                input,
                host: host.or_else(|| all.clone()),
                arch,
                kernel,
                command,
                start,
                day: of_day.and_then(|day| i32::try_from(day).ok()).or(*own_day).or_else(|| start.and_then(day)),
                share_named: share_named.map(i64::cast_unsigned),
                epoch,
                bucket,
            })
        };
        known.entry(row).or_insert_with(new).clone()
    }
}
