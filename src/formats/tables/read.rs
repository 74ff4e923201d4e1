//! The table → stacks: what was exported, or what an engine made of it, as long as the columns have their names.
//!
//! `functions` must be there. Where `weight` or `count` is not, each row weighs, and counts, 1; all other columns add
//! what they tell.

use super::cells::{Meanings, NONE, numbers, wrong_type};
use super::schema::{READ, VERSION, VERSION_KEY};
use super::stacks::{OpenStack, StackReader};
use super::writer::{HOST_KEY, NAMES_KEY, PERF_NAMES};
use crate::contract::options::{Detail, ReadOptions};
use crate::error::{Error, Result};
use crate::model::interner::Interner;
use crate::model::stacks::{Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;

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

/// Whether a column tells what is needed.
pub(super) fn is_wanted(column: &str, detail: Option<Detail>) -> bool {
    let least = match column {
        "files" | "lines" | "build_ids" => Detail::Lines,
        "addresses" => Detail::Addresses,
        _ => Detail::Names,
    };
    COLUMNS.contains(&column) && detail.is_none_or(|detail| detail >= least)
}

/// The number of a text that is no function's.
type WordNo = u32;

/// A table that becomes stacks, batch by batch.
#[derive(Debug)]
pub(super) struct TableReader {
    profile: Profile,
    stacks: StackReader,
    words: Words,
    /// The last row's, which is mostly the next one's, too.
    series: Option<(EventWords, usize)>,
    track: Option<(TrackWords, TrackId)>,
}

/// The event and its unit, as a row tells them.
type EventWords = [Option<WordNo>; 2];

/// Whose a row is, as it tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TrackWords {
    comm: Option<WordNo>,
    numbers: [i64; 3],
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
            let remedy = "jitgraft export --to parquet writes it; docs/sql.md tells the columns".to_owned();
            return Err(Error::new("is a table without a column called functions").with_remedy(Some(remedy)));
        }
        let mut profile = Profile::keeping(options.keep);
        profile.perf_names = said(NAMES_KEY) == Some(PERF_NAMES);
        profile.about.host = said(HOST_KEY).map(|host| host.as_bytes().to_vec());
        Ok(Self { profile, stacks: StackReader::new(), words: Words::new(), series: None, track: None })
    }

    /// Takes the rows of a batch.
    pub(super) fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = RowColumns::new(batch, &mut self.words)?;
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
        let track = self.track(TrackWords { comm: columns.comm.at(row), numbers });
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
        if let Some((_, track)) = self.track.filter(|(known, _)| *known == words) {
            return track;
        }
        let [pid, tid, cpu] = words.numbers.map(|number| i32::try_from(number).ok());
        let track = self.profile.track(Track {
            comm: self.words.text(words.comm).unwrap_or_default().as_bytes().to_vec(),
            pid: pid.map(Pid),
            tid: tid.map(Tid),
            cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        });
        self.track = Some((words, track));
        track
    }

    /// Takes over what the first row tells of its recording.
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
        let own = Some(Numbers::of(&first, "time_ns")?.at(0)).filter(|own| *own != NONE);
        let epoch = moment(&first).zip(own).map(|(wall, own)| i128::from(wall) * 1000 - i128::from(own));
        about.epoch = about.epoch.or(epoch);
        Ok(())
    }

    /// All that was read.
    pub(super) fn finish(self) -> Profile {
        self.profile
    }
}

/// The wall clock's microseconds of the first row.
fn moment(batch: &RecordBatch) -> Option<i64> {
    let column = batch.column_by_name("time")?;
    let column = column.as_primitive_opt::<arrow_array::types::TimestampMicrosecondType>()?;
    column.iter().next().flatten()
}

/// Texts that are no functions', numbered.
#[derive(Debug)]
struct Words(Interner<Box<str>, WordNo>);

impl Words {
    fn new() -> Self {
        Self(Interner::default())
    }

    fn number(&mut self, text: &str) -> WordNo {
        self.0.get(text).unwrap_or_else(|| self.0.intern(text.into()))
    }

    fn text(&self, word: Option<WordNo>) -> Option<&str> {
        self.0.items().get(word? as usize).map(|text| &**text)
    }
}

/// A column of texts, or none.
#[derive(Debug)]
struct WordCells(Vec<Option<WordNo>>);

impl WordCells {
    fn of(batch: &RecordBatch, name: &str, words: &mut Words) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(Vec::new())) };
        let cells = Meanings::new(None).cells(column, |text| Some(words.number(text)));
        cells.map(Self).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    fn at(&self, row: usize) -> Option<WordNo> {
        self.0.get(row).copied().flatten()
    }
}

/// A column of numbers, or none.
#[derive(Debug)]
struct Numbers(Option<Vec<i64>>);

impl Numbers {
    fn of(batch: &RecordBatch, name: &str) -> Result<Self> {
        let Some(column) = batch.column_by_name(name) else { return Ok(Self(None)) };
        numbers(column).map(|cells| Self(Some(cells))).ok_or_else(|| wrong_type(name, column.data_type()))
    }

    fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The number of a row, or [`NONE`].
    fn at(&self, row: usize) -> i64 {
        self.0.as_ref().and_then(|cells| cells.get(row)).copied().unwrap_or(NONE)
    }
}

/// What a batch tells of its rows but their stacks.
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
}

impl RowColumns {
    fn new(batch: &RecordBatch, words: &mut Words) -> Result<Self> {
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
        })
    }
}
