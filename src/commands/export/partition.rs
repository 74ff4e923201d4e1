//! Inputs → a data set, as Hive and all engines after it lay them out:
//!
//! ```text
//! samples/host=HOST/day=DAY/HASH.parquet     the rows of a recording
//! stacks/host=HOST/day=DAY/HASH.parquet      its distinct stacks
//! recordings/HASH-PATH.parquet               its entry: what it is, where it lay
//! recordings/unread-PATH.parquet             why a file could not be read
//! ```
//!
//! Files are named after the recording's bytes: who exports it again with the same options writes the same files in the
//! same places. Its entry is written last: where that is, all is.

use super::data_set::Set;
use super::data_set_content::{DataSetContent, RECORDINGS, entry_name, read_file, unread_name};
use super::parted_file::PartedFile;
use crate::analysis::quantity::{counted, grouped};
use crate::contract::rows::RowOrigin;
use crate::error::{Error, Result, Warning};
use crate::io::{InPath, OutDirectory, OutPath, Output};
use crate::model::recorded::{Entry, ReadFile, Recording};
use crate::model::stacks::Profile;
use crate::pipeline::any;
use crate::pipeline::listed::{Expanded, expand};
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::rows::{RowsRead, input_hash};
use crate::pipeline::sink::Batches;
use crate::pipeline::{Job, Outcome};
use std::num::NonZeroUsize;

/// Writes each input to files of its own.
pub(super) fn run(set: Set<'_>, job: &Job) -> Result<Outcome> {
    let Expanded { inputs, unread } = expand(&set.options.inputs)?;
    let mut outcome = Outcome { failed: unread, ..Outcome::default() };
    let known = DataSetContent::read(set.root, set.data_set, set.options.table.skip_existing, &mut outcome.warnings)?;
    if job.strict {
        set.check(&inputs, &known, job)?;
    }
    let mut building = Building { set, known, read: RowsRead::default(), outcome, counts: [0; 4] };
    inputs.iter().try_for_each(|path| building.add(path, job))?;
    building.finish(&inputs, job)
}

/// A data set under way.
struct Building<'a> {
    set: Set<'a>,
    known: DataSetContent,
    read: RowsRead,
    outcome: Outcome,
    /// The number of inputs by outcome.
    counts: [u64; 4],
}

/// The outcome for an input.
#[derive(Clone, Copy)]
enum Became {
    Written,
    /// It was read by an earlier run.
    Known,
    /// Its bytes are those of another input.
    Copy,
    Unread,
}

/// Why an input has not become rows.
enum Stop {
    /// It cannot be read.
    Input(Error),
    /// Nothing can be written, or the user requests what cannot be.
    Job(Error),
}

impl Building<'_> {
    /// Takes an input. One that cannot be read is left out.
    fn add(&mut self, path: &InPath, job: &Job) -> Result<()> {
        let file = read_file(path);
        let became = match self.known.has(&file, self.set.bucket()) {
            true => Became::Known,
            false => match self.write(path, &file, job) {
                Ok(became) => became,
                Err(Stop::Job(error)) => return Err(error.in_file(&shown(path))),
                Err(Stop::Input(error)) => self.unread(file, error.in_file(&shown(path)))?,
            },
        };
        self.counts[became as usize] += 1;
        Ok(())
    }

    fn write(&mut self, path: &InPath, file: &ReadFile, job: &Job) -> Result<Became, Stop> {
        let opened = Opened::open(path, job).map_err(Stop::Input)?;
        let hash = input_hash(&opened, path).map_err(Stop::Input)?;
        let no_name = || Stop::Job(Error::usage("has no name for its file: --partition reads files"));
        let hash = hash.ok_or_else(no_name)?;
        if let Some(same) = self.known.same(&hash, self.set.bucket()) {
            self.set.put_copy(same, file).map_err(Stop::Job)?;
            let warning = Warning::new("is the same as an input before it, and left out");
            self.outcome.warnings.push(warning.in_file(&shown(path), None));
            return Ok(Became::Copy);
        }
        let (given, mut parted) = (self.set.options.given(Some(hash.clone())), self.set.parted_file(&hash));
        let pushed = self.read.push((opened, path), given, self.set.load, &mut parted, (job, &mut self.outcome));
        let stop = if parted.has_failed() { Stop::Job } else { Stop::Input };
        let mut entries = pushed.map_err(stop)?;
        entries.iter_mut().for_each(|entry| entry.file = file.clone());
        self.set.put_read(&entries).map_err(Stop::Job)?;
        entries.into_iter().take(1).for_each(|entry| self.known.add_read(&hash, self.set.bucket(), entry));
        Ok(Became::Written)
    }

    fn unread(&mut self, file: ReadFile, error: Error) -> Result<Became> {
        let RowOrigin { recording, labels, .. } = self.set.options.given(None);
        let entry = Entry { file, recording, labels, error: Some(error.to_string()), ..Entry::default() };
        self.outcome.failed.push(error);
        self.set.put(&[entry])?;
        Ok(Became::Unread)
    }

    fn finish(mut self, inputs: &[InPath], job: &Job) -> Result<Outcome> {
        let [written, known, copies, unread] = self.counts;
        if written > 0 {
            self.read.finish(inputs, self.set.load, (job, &mut self.outcome))?;
        }
        let others = [(known, "known"), (copies, "the same as others"), (unread, "not read")];
        let others = others.iter().filter(|(count, _)| *count > 0);
        let others: String = others.map(|(count, what)| format!(", {} {what}", grouped(*count))).collect();
        let inputs = counted(inputs.len() as u64, "input");
        self.outcome.summary.push(format!("{} of {inputs} written{others}", grouped(written)));
        Ok(self.outcome)
    }
}

impl Set<'_> {
    fn bucket(&self) -> Option<i64> {
        self.options.write.bucket.and_then(|bucket| i64::try_from(bucket).ok())
    }

    fn parted_file<'a>(&'a self, hash: &'a str) -> PartedFile<'a> {
        PartedFile::new(self.root, self.tables(), self.options, self.run, hash)
    }

    /// Reads all inputs, and writes nothing.
    fn check(&self, inputs: &[InPath], known: &DataSetContent, job: &Job) -> Result<()> {
        for path in inputs.iter().filter(|path| !known.has(&read_file(path), self.bucket())) {
            let mut nowhere = Batches { len: NonZeroUsize::MAX, each: |_: &Profile| Ok(()) };
            any::run(std::slice::from_ref(path), self.load, &mut nowhere, job, &mut Outcome::default())?;
        }
        Ok(())
    }

    /// Writes the entries of a file that was read, and removes the entry of an earlier failure.
    fn put_read(&self, entries: &[Entry]) -> Result<()> {
        self.put(entries)?;
        let Some(Entry { file, .. }) = entries.first() else { return Ok(()) };
        let (directory, name) = (OutDirectory::make(&self.root.join(RECORDINGS))?, unread_name(file));
        if directory.has(name.as_ref()) { Ok(directory.remove(name.as_ref())?) } else { Ok(()) }
    }

    /// Writes the entry of a file with the bytes of another, of which no row is written.
    fn put_copy(&self, same: &Entry, file: &ReadFile) -> Result<()> {
        if same.file.path == file.path {
            return Ok(());
        }
        let Recording { input, bucket, .. } = same.recording.clone();
        let recording = Recording { input, bucket, ..Recording::default() };
        self.put_read(&[Entry { file: file.clone(), recording, ..Entry::default() }])
    }

    fn put(&self, entries: &[Entry]) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        let directory = self.root.join(RECORDINGS);
        OutDirectory::make(&directory)?;
        let mut output = Output::create(&OutPath::Path(directory.join(entry_name(first))), self.run)?;
        (self.data_set.write_entries)(entries, &mut output)?;
        output.commit()
    }
}
