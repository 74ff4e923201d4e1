//! The recording of each row of a table.

use super::cells::{NONE, days, fractions, moments};
use super::row_cells::{Numbers, WordCells, WordNo, Words};
use crate::error::Result;
use crate::model::recorded::{Recording, day};
use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use std::sync::Arc;

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
