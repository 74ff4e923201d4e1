//! A data set → a copy of it with one file for each directory, so that engines read fewer ends of files.
//!
//! Rows keep their `input` and all other columns, and `recordings` keeps every entry. The data set that is read does not
//! change: queries see every row once at any time, and a run that was killed can be repeated.

use super::data_set::{SAMPLES, Set};
use super::data_set_content::{COMPACTED, RECORDINGS, digits, in_file, is_compacted, stem_of, tables_in, unread_name};
use super::options::ExportOptions;
use super::parted_file::PartedFile;
use crate::analysis::quantity::counted;
use crate::contract::rows::{RowOrigin, RowWriter};
use crate::error::{Error, Result, Warning};
use crate::io::{self, InPath, OutDirectory, OutPath, Output};
use crate::model::recorded::Entry;
use crate::pipeline::listed::{Expanded, expand};
use crate::pipeline::open::Opened;
use crate::pipeline::rows::RowsRead;
use crate::pipeline::{Job, Outcome};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Copies the data set that is the input.
pub(super) fn run(set: &Set<'_>, job: &Job) -> Result<Outcome> {
    let from = source(set.options)?;
    // A recording that is added meanwhile has no entry here. All of it is left out.
    let mut all = Vec::new();
    for path in tables_in(&from.join(RECORDINGS))? {
        all.extend(in_file(&path, set.data_set.read_entries).map_err(|error| error.in_file(&path))?);
    }
    let mut copying = Copying { set, outcome: Outcome::default(), found: FxHashSet::default() };
    let (mut files, directories) = (0, directories(from, &all, &mut copying.outcome)?);
    for (directory, paths) in &directories {
        files += paths.len() as u64;
        copying.directory(directory, paths, job)?;
    }
    copying.check(&all)?;
    put_entries(all, set)?;
    let (files, directories) = (counted(files, "file"), counted(directories.len() as u64, "file"));
    copying.outcome.summary.push(format!("{files} of rows became {directories}"));
    Ok(copying.outcome)
}

/// The data set that is read.
fn source(options: &ExportOptions) -> Result<&Path> {
    let is_data_set = |path: &Path| [SAMPLES, RECORDINGS].iter().all(|table| io::is_directory(&path.join(table)));
    let [InPath::Path(from)] = &options.inputs[..] else {
        return Err(Error::usage("--compact copies one data set"));
    };
    if !is_data_set(from) {
        return Err(Error::usage("is not a data set; --compact copies one that --partition wrote").in_file(from));
    }
    match &options.output {
        OutPath::Path(to) if is_data_set(to) && is_same(from, to) => {
            Err(Error::usage("is the data set that is read: --compact writes another one").in_file(to))
        }
        _ => Ok(from),
    }
}

/// True if both paths lead to one directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path| io::about(path).map(|about| (about.dev(), about.ino()));
    place(one) == place(other)
}

/// The files of rows by their directory below the table. Files without an entry are left out: they belong to a job that was
/// killed or still runs.
fn directories(from: &Path, all: &[Entry], outcome: &mut Outcome) -> Result<BTreeMap<PathBuf, Vec<PathBuf>>> {
    let known: FxHashSet<String> = all.iter().filter(|entry| entry.error.is_none()).map(stem_of).collect();
    let (samples, mut directories) = (from.join(SAMPLES), BTreeMap::<PathBuf, Vec<PathBuf>>::new());
    let Expanded { inputs, unread } = expand(&[InPath::Path(samples.clone())])?;
    if let Some(error) = unread.into_iter().next() {
        return Err(error);
    }
    for path in inputs.iter().filter_map(InPath::path).map(Path::to_owned) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        // For rows that came in a table, its hash follows their recording's.
        let has_entry = known.contains(&*stem) || stem.rsplit_once('-').is_some_and(|(stem, _)| known.contains(stem));
        if !has_entry && !is_compacted(&path) {
            outcome.warnings.push(Warning::new("has no entry in recordings, and is left out").in_file(&path, None));
            continue;
        }
        let directory =
            path.parent().and_then(|directory| directory.strip_prefix(&samples).ok()).unwrap_or(Path::new(""));
        directories.entry(directory.to_owned()).or_default().push(path);
    }
    Ok(directories)
}

/// A copy under way.
struct Copying<'a> {
    set: &'a Set<'a>,
    outcome: Outcome,
    /// The names of files of the recordings whose rows were copied.
    found: FxHashSet<String>,
}

impl Copying<'_> {
    /// Makes one file of those in a directory.
    fn directory(&mut self, directory: &Path, paths: &[PathBuf], job: &Job) -> Result<()> {
        let names = paths.iter().filter_map(|path| path.file_name()?.to_str()).collect::<Vec<_>>().join("\n");
        let path = directory.join(format!("{COMPACTED}{}.parquet", digits(&names)));
        let mut file = PartedFile::shared(self.set.root, self.set.tables(), path, self.set.run);
        for path in paths {
            let input = InPath::Path(path.clone());
            let opened = Opened::open(&input, job).map_err(|error| error.in_file(path))?;
            let mut read = RowsRead::default();
            let copied =
                read.push((opened, &input), RowOrigin::default(), self.set.load, &mut file, (job, &mut self.outcome))?;
            self.found.extend(copied.iter().map(stem_of));
        }
        file.finish()
    }

    /// All recordings whose entries have rows must have been there.
    fn check(&self, all: &[Entry]) -> Result<()> {
        let is_lost = |entry: &&Entry| entry.rows > 0 && !self.found.contains(&stem_of(entry));
        match all.iter().find(is_lost) {
            Some(lost) => Err(Error::new("has an entry with rows, but no rows").in_file(Path::new(&lost.file.path))),
            None => Ok(()),
        }
    }
}

/// Writes the entries. The entry of an unreadable file keeps a file of its own, which is removed once the file is read.
fn put_entries(all: Vec<Entry>, set: &Set<'_>) -> Result<()> {
    let directory = set.root.join(RECORDINGS);
    OutDirectory::make(&directory)?;
    let put = |name: String, entries: &[Entry]| {
        let mut output = Output::create(&OutPath::Path(directory.join(name)), set.run)?;
        (set.data_set.write_entries)(entries, &mut output)?;
        output.commit()
    };
    let (unread, read): (Vec<Entry>, Vec<Entry>) = all.into_iter().partition(|entry| entry.error.is_some());
    unread.iter().try_for_each(|entry| put(unread_name(&entry.file), std::slice::from_ref(entry)))?;
    let paths = read.iter().map(|entry| &*entry.file.path).collect::<Vec<_>>().join("\n");
    put(format!("{COMPACTED}{}.parquet", digits(&paths)), &read)
}
