//! Inputs → a directory of tables, as Hive and all engines after it lay data sets out: `host=HOST/day=DAY/HASH.parquet`.
//!
//! A file for each input, which is named after the input's bytes: who exports it again with the same options writes the
//! same file in the same place.

use super::options::ExportOptions;
use crate::contract::format::{StartRowsFn, WriteOptions};
use crate::contract::rows;
use crate::contract::rows::{RowOrigin, RowWriter};
use crate::error::{Error, Result, Warning};
use crate::formats::named;
use crate::io::{self, OutDirectory, OutPath, Output, Run};
use crate::model::stacks::Profile;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::open::{Opened, check_further, shown};
use crate::pipeline::rows::{RowsRead, input_hash};
use crate::pipeline::{Job, Outcome};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What stands for a value that is not known.
const UNKNOWN_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Writes each input to a file of its own; the first is open already.
pub(super) fn run(
    mut first: Option<Opened>,
    start: StartRowsFn,
    (options, load): (&ExportOptions, &LoadOptions),
    run: &Run,
    job: &Job,
) -> Result<Outcome> {
    let (mut outcome, mut read, mut hashes) = (Outcome::default(), RowsRead::default(), BTreeSet::new());
    let root = root(options)?;
    let write = WriteOptions { partitioned: true, ..options.write.clone() };
    check_further(&options.inputs)?;
    for path in &options.inputs {
        let opened = first.take().map_or_else(|| Opened::open(path, job), Ok);
        let opened = opened.map_err(|error| error.in_file(&shown(path)))?;
        let Some(hash) = input_hash(&opened, path)? else {
            return Err(Error::usage("has no name for its file: --partition reads files").in_file(&shown(path)));
        };
        if !hashes.insert(hash.clone()) {
            let warning = Warning::new("is the same as an input before it, and left out");
            outcome.warnings.push(warning.in_file(&shown(path), None));
            continue;
        }
        let origin = RowOrigin { hash: Some(hash), ..RowOrigin::default() };
        let mut file = PartitionFile { root, options, write: &write, start, run, under_way: None };
        read.push((opened, path), origin, load, &mut file, (job, &mut outcome))?;
        file.finish()?;
    }
    read.finish(&options.inputs, load, (job, &mut outcome))?;
    Ok(outcome)
}

fn root(options: &ExportOptions) -> Result<&Path> {
    match &options.output {
        OutPath::Path(path) if !io::is_there(path) || io::is_directory(path) => Ok(path),
        output => {
            Err(Error::usage("is no directory: --partition writes a data set into one (-o DIR)")
                .in_file(&output.shown()))
        }
    }
}

/// The file of one input. Where it goes is known when its recording is.
struct PartitionFile<'a> {
    root: &'a Path,
    options: &'a ExportOptions,
    write: &'a WriteOptions,
    start: StartRowsFn,
    run: &'a Run,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    output: Rc<RefCell<Output>>,
    writer: Box<dyn RowWriter>,
}

impl std::fmt::Debug for PartitionFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionFile").field("root", &self.root).finish_non_exhaustive()
    }
}

/// An output that is committed when its writer is gone.
struct SharedOutput(Rc<RefCell<Output>>);

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

impl PartitionFile<'_> {
    fn writer(&mut self) -> Result<&mut dyn RowWriter> {
        match &mut self.under_way {
            Some(under_way) => Ok(&mut *under_way.writer),
            None => Err(Error::new("rows came before what they are of")),
        }
    }
}

impl RowWriter for PartitionFile<'_> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        let extension = named(&self.options.to).and_then(|format| format.files.first()?.strip_prefix('*'));
        let name = format!("{}{}", origin.hash.as_deref().unwrap_or_default(), extension.unwrap_or_default());
        let directory = self.root.join(partition(profile));
        OutDirectory::make(&directory)?;
        let output = Output::create(&OutPath::Path(directory.join(name)), self.run)?;
        let output = Rc::new(RefCell::new(output));
        let writer = (self.start)(self.write, Box::new(SharedOutput(output.clone())))?;
        let under_way = self.under_way.insert(UnderWay { output, writer });
        under_way.writer.begin(origin, profile)
    }

    fn rows(&mut self, profile: &Profile) -> Result<()> {
        self.writer()?.rows(profile)
    }

    fn end(&mut self, profile: &Profile) -> Result<()> {
        self.writer()?.end(profile)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(UnderWay { output, mut writer }) = self.under_way.take() else { return Ok(()) };
        writer.finish()?;
        drop(writer);
        match Rc::try_unwrap(output) {
            Ok(output) => output.into_inner().commit(),
            Err(_) => Err(Error::new("is still written")),
        }
    }
}

/// The directories of an input's file, below the data set's.
fn partition(profile: &Profile) -> PathBuf {
    let host = profile.about.host.as_deref().filter(|host| !host.is_empty());
    let host = host.map_or_else(|| UNKNOWN_VALUE.to_owned(), escaped);
    let day = rows::start(profile).map_or_else(|| UNKNOWN_VALUE.to_owned(), day);
    PathBuf::from(format!("host={host}")).join(format!("day={day}"))
}

/// A value as a directory's name: what might mean something else there is written as `%2F`.
fn escaped(value: &[u8]) -> String {
    let mut text = String::new();
    for &byte in value {
        match byte {
            b'-' | b'_' | b'.' => text.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            byte => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// The day of a time since 1970, in UTC: `2026-11-22`.
fn day(nanos: i128) -> String {
    let days = nanos.div_euclid(86_400_000_000_000) as i64;
    // Years begin with March, so that the day that some have and others lack is the last; eras are 400 years.
    let since_era = days + 719_468;
    let (era, day_of_era) = (since_era.div_euclid(146_097), since_era.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let of = |seconds: i128| day(seconds * 1_000_000_000);
        assert_eq!(of(0), "1970-01-01");
        assert_eq!(of(951_782_400), "2000-02-29");
        assert_eq!(of(1_795_305_599), "2026-11-21");
        assert_eq!(of(1_795_305_600), "2026-11-22");
        assert_eq!(of(-1), "1969-12-31");
    }

    #[test]
    fn a_host_is_one_directory_whatever_it_is_called() {
        assert_eq!(escaped(b"web-1.example"), "web-1.example");
        assert_eq!(escaped(b"../a=b c"), "..%2Fa%3Db%20c");
        let mut profile = Profile::new();
        assert_eq!(partition(&profile), Path::new("host=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__"));
        profile.about.host = Some(b"h".to_vec());
        assert_eq!(partition(&profile), Path::new("host=h/day=__HIVE_DEFAULT_PARTITION__"));
    }
}
