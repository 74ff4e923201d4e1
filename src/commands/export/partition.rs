//! Writes the inputs as a partitioned data set, in the directory layout of Hive:
//! `samples/host=HOST/day=DAY/SHA1.parquet`.
//!
//! A file is named after a hash of the input's bytes. So exporting the same input again with the same options replaces
//! the file by an identical one. A file appears either complete or not at all.

use super::options::ExportOptions;
use super::parted_file::{PartedFile, SAMPLES, stem};
use crate::analysis::quantity::{counted, grouped};
use crate::contract::format::StartRowsFn;
use crate::error::{Error, Result, Warning};
use crate::io::{self, InPath, OutPath, Run};
use crate::model::recorded::Recording;
use crate::model::stacks::Profile;
use crate::pipeline::any::{self, LoadOptions};
use crate::pipeline::listed::{Expanded, expand};
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::row_feeder::{RowFeeder, input_hash};
use crate::pipeline::sink::Batches;
use crate::pipeline::{Job, Outcome};
use rustc_hash::FxHashSet;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Adds the inputs to a partitioned data set, a directory in which each input has files of its own.
pub(super) fn run(
    start: StartRowsFn,
    options: &ExportOptions,
    load: &LoadOptions,
    run: &Run,
    job: &Job,
) -> Result<Outcome> {
    let root = data_set_root(options)?;
    // The existing files are listed even without `--skip-existing`, because this refuses data sets to which nothing can
    // be added safely.
    let existing = existing_stems(&root.join(SAMPLES))?;
    let Expanded { inputs, unread } = expand(&options.inputs)?;
    let mut writer = DataSetWriter {
        root,
        start,
        options,
        load,
        run,
        existing: if options.table.skip_existing { existing } else { FxHashSet::default() },
        written: FxHashSet::default(),
        feeder: RowFeeder::new(load, options.row_origin()),
        outcome: Outcome { failed: unread, ..Outcome::default() },
        counts: Counts::default(),
    };
    if job.strict {
        writer.check(&inputs, job)?;
    }
    for path in &inputs {
        writer.add(path, job)?;
    }
    writer.finish(&inputs, job)
}

/// The directory of the data set. Fails if the output exists and isn't a directory.
fn data_set_root(options: &ExportOptions) -> Result<&Path> {
    match &options.output {
        OutPath::Path(path) if !io::is_there(path) || io::is_directory(path) => Ok(path),
        output => Err(Error::usage("is not a directory; --partition writes a data set to a directory (-o DIR)")
            .in_file(&output.shown())),
    }
}

/// The names of all files that the data set already has, without extension. Fails if one of them contains the
/// recordings of many inputs.
fn existing_stems(samples: &Path) -> Result<FxHashSet<String>> {
    let mut stems = FxHashSet::default();
    for host in list_directory(samples)? {
        for day in list_directory(&host)? {
            for file in list_directory(&day)? {
                if file.extension() != Some(OsStr::new("parquet")) {
                    continue;
                }
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                // Refuse a file in which an earlier version combined many recordings (`--compact`). The file's name
                // doesn't say which recordings are in it, so this run could add them a second time.
                if stem.starts_with("compact-") {
                    let why = "was made by --compact, and the recordings in it would be added a second time; write a \
                               new data set (-o DIR)";
                    return Err(Error::new(why).in_file(&file));
                }
                stems.insert(stem.into_owned());
            }
        }
    }
    Ok(stems)
}

/// The paths of all entries of a directory. Empty if it isn't a directory.
fn list_directory(directory: &Path) -> Result<Vec<PathBuf>> {
    if !io::is_directory(directory) {
        return Ok(Vec::new());
    }
    let names = io::typed_names(directory).map_err(|error| Error::from(error).in_file(directory))?;
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// Writes the files of a data set, and counts what was written and what was not.
struct DataSetWriter<'a> {
    root: &'a Path,
    start: StartRowsFn,
    options: &'a ExportOptions,
    load: &'a LoadOptions,
    run: &'a Run,
    /// Names of existing files, which are left as they are.
    existing: FxHashSet<String>,
    /// Names of files that this run has written so far.
    written: FxHashSet<String>,
    feeder: RowFeeder<'a>,
    outcome: Outcome,
    counts: Counts,
}

/// Counts of inputs by outcome.
#[derive(Default)]
struct Counts {
    written: u64,
    /// Inputs that the data set already had.
    existing: u64,
    /// Inputs that are identical to an earlier one of this run.
    copies: u64,
    /// Inputs that could not be read.
    unread: u64,
}

/// Why an input was not written, and whether the job can go on.
enum WriteFailure {
    /// The input can't be read. The job goes on with the other inputs.
    Input(Error),
    /// The output failed or the request is impossible. The whole job ends.
    Job(Error),
}

impl DataSetWriter<'_> {
    /// Adds an input to the data set. An input that can't be read is skipped and reported.
    fn add(&mut self, path: &InPath, job: &Job) -> Result<()> {
        match self.write(path, job) {
            Ok(()) => Ok(()),
            Err(WriteFailure::Job(error)) => Err(error.in_file(&shown(path))),
            Err(WriteFailure::Input(error)) => {
                self.outcome.failed.push(error.in_file(&shown(path)));
                self.counts.unread += 1;
                Ok(())
            }
        }
    }

    /// Writes an input to its file, unless the data set already has it.
    fn write(&mut self, path: &InPath, job: &Job) -> Result<(), WriteFailure> {
        let opened = Opened::open(path, job).map_err(WriteFailure::Input)?;
        let hash = input_hash(&opened, path).map_err(WriteFailure::Input)?;
        let Some(hash) = hash else {
            return Err(WriteFailure::Job(Error::usage(
                "has no file name: with --partition, inputs must be files, not a pipe",
            )));
        };
        let stem = self.stem(&hash);
        if self.written.contains(&stem) {
            let warning = Warning::new("left out: it is identical to an earlier input");
            self.outcome.warnings.push(warning.in_file(&shown(path), None));
            self.counts.copies += 1;
            return Ok(());
        }
        if self.existing.contains(&stem) {
            self.counts.existing += 1;
            return Ok(());
        }
        let mut parted = PartedFile::new(self.root, self.start, self.options, self.run);
        let pushed = self.feeder.push(opened, path, Some(hash), &mut parted, job, &mut self.outcome);
        // If an output can't be written, the next inputs would fail as well, so the job ends. An input that can't be
        // read is only skipped.
        pushed.map_err(if parted.has_failed() { WriteFailure::Job } else { WriteFailure::Input })?;
        self.written.insert(stem);
        self.counts.written += 1;
        Ok(())
    }

    /// The name of the file for an input with this hash, without extension.
    fn stem(&self, hash: &str) -> String {
        let bucket = self.options.write.bucket.and_then(|bucket| i64::try_from(bucket).ok());
        stem(&Recording { input: Some(hash.into()), bucket, ..Recording::default() })
    }

    /// With `--strict`: reads all inputs without writing anything. An input that can't be read then fails before the
    /// data set has changed.
    fn check(&self, inputs: &[InPath], job: &Job) -> Result<()> {
        for path in inputs {
            // An input that the data set already has will be skipped, so it isn't checked. Without `--skip-existing`,
            // `existing` is empty, and no hash has to be computed.
            if !self.existing.is_empty() {
                let opened = Opened::open(path, job).map_err(|error| error.in_file(&shown(path)))?;
                if input_hash(&opened, path)?.is_some_and(|hash| self.existing.contains(&self.stem(&hash))) {
                    continue;
                }
            }
            // A sink that drops all rows.
            let mut nowhere = Batches { len: NonZeroUsize::MAX, each: |_: &Profile| Ok(()) };
            any::run(std::slice::from_ref(path), self.load, &mut nowhere, job, &mut Outcome::default())?;
        }
        Ok(())
    }

    /// Finishes the job: reports what was read, and adds the summary.
    fn finish(mut self, inputs: &[InPath], job: &Job) -> Result<Outcome> {
        let Counts { written, existing, copies, unread } = self.counts;
        // If nothing was written, there is nothing to say about samples or events.
        if written > 0 {
            self.feeder.finish(inputs, job, &mut self.outcome)?;
        }
        let mut summary = format!("{} of {} written", grouped(written), counted(inputs.len() as u64, "input"));
        for (count, what) in
            [(existing, "already in the data set"), (copies, "identical to others"), (unread, "not read")]
        {
            if count > 0 {
                summary += &format!(", {} {what}", grouped(count));
            }
        }
        self.outcome.summary.push(summary);
        Ok(self.outcome)
    }
}
