//! What a data set was made of: its entries, by which files are known again that were read before.

use super::parted_file::stem;
use crate::contract::format::DataSet;
use crate::error::{Error, Result, Warning, Warnings};
use crate::io::{self, InPath};
use crate::model::recorded::{Entry, ReadFile};
use crate::pipeline::open::shown;
use rustc_hash::{FxHashMap, FxHashSet};
use sha1::{Digest, Sha1};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The place of the entries, below the data set: each in a file of its own, so that any number of jobs can add some.
pub(super) const RECORDINGS: &str = "recordings";

/// The length of stretches of time that rows are sums of, if they are.
type Bucket = Option<i64>;

/// The content of a data set.
#[derive(Debug, Default)]
pub(super) struct DataSetContent {
    files: FxHashSet<(ReadFile, Bucket)>,
    /// By hash.
    recordings: FxHashMap<(String, Bucket), Entry>,
}

impl DataSetContent {
    /// The facts in the entries of a data set. Files that could not be read are tried again.
    ///
    /// Without `all`, only entries of compacted files count: a recording in one of these would not be replaced, but be there
    /// twice.
    pub(super) fn read(root: &Path, data_set: DataSet, all: bool, warnings: &mut Warnings) -> Result<Self> {
        let (mut known, directory) = (Self::default(), root.join(RECORDINGS));
        if !io::is_directory(&directory) {
            return Ok(known);
        }
        for path in tables_in(&directory)?.into_iter().filter(|path| all || is_compacted(path)) {
            match in_file(&path, data_set.read_files) {
                Ok(entries) => {
                    entries.into_iter().filter(|entry| entry.error.is_none()).for_each(|entry| known.add(entry))
                }
                Err(error) => warnings.push(Warning { file: Some(path), ..error.into_warning() }),
            }
        }
        Ok(known)
    }

    fn add(&mut self, entry: Entry) {
        let Some(hash) = entry.recording.input.as_deref() else { return };
        self.files.insert((entry.file.clone(), entry.recording.bucket));
        self.recordings.entry((hash.to_owned(), entry.recording.bucket)).or_insert(entry);
    }

    /// True if this very file was read before.
    pub(super) fn has(&self, file: &ReadFile, bucket: Bucket) -> bool {
        self.files.contains(&(file.clone(), bucket))
    }

    /// The entry of an input of these bytes.
    pub(super) fn same(&self, hash: &str, bucket: Bucket) -> Option<&Entry> {
        self.recordings.get(&(hash.to_owned(), bucket))
    }

    /// An input of these bytes has been read.
    pub(super) fn add_read(&mut self, hash: &str, bucket: Bucket, entry: Entry) {
        self.recordings.insert((hash.to_owned(), bucket), entry);
    }
}

/// The Parquet files in a directory, in the order of their names.
pub(super) fn tables_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let names = io::typed_names(directory).map_err(|error| Error::from(error).in_file(directory))?;
    let mut paths: Vec<PathBuf> = names.into_iter().map(|name| directory.join(name)).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == OsStr::new("parquet")));
    paths.sort();
    Ok(paths)
}

/// The entries in a file.
pub(super) fn in_file(path: &Path, read: fn(&[u8]) -> Result<Vec<Entry>>) -> Result<Vec<Entry>> {
    read(&io::map_to_replace(path)?)
}

/// Names of files that contain several recordings start so.
pub(super) const COMPACTED: &str = "compact-";

pub(super) fn is_compacted(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(COMPACTED.as_bytes()))
}

/// A file as it is now. A recording's directory is known by its main stream.
pub(super) fn read_file(path: &InPath) -> ReadFile {
    let about = path.join("data").about().or_else(|| path.about());
    let path = match path.path() {
        None => return ReadFile { path: shown(path).display().to_string(), ..ReadFile::default() },
        Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    };
    let time = about.as_ref().and_then(|about| about.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    ReadFile {
        path: path.to_string_lossy().into_owned(),
        size: about.and_then(|about| i64::try_from(about.len()).ok()).unwrap_or(0),
        mtime: time.and_then(|time| i64::try_from(time.as_nanos()).ok()).unwrap_or(0),
    }
}

/// The name of the file that contains an entry. A path has one entry for each of the recordings that lay there.
pub(super) fn entry_name(entry: &Entry) -> String {
    match &entry.error {
        None => format!("{}-{:.16}.parquet", stem(&entry.recording), digits(&entry.file.path)),
        Some(_) => unread_name(&entry.file),
    }
}

/// The name of the files of rows.
pub(super) fn stem_of(entry: &Entry) -> String {
    stem(&entry.recording)
}

/// The same of a file that could not be read.
pub(super) fn unread_name(file: &ReadFile) -> String {
    format!("unread-{}.parquet", digits(&file.path))
}

pub(super) fn digits(text: &str) -> String {
    Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
