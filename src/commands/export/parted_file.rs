//! Writes the files of one input into a partitioned data set: one file per recording in the input. The host and day
//! that the recording states decide in which directory its file goes.

use super::options::ExportOptions;
use crate::contract::format::{StartRowsFn, WriteOptions};
use crate::contract::rows::{RowOrigin, RowWriter};
use crate::error::{Error, Result};
use crate::io::{OutDirectory, OutPath, Output, Run};
use crate::model::recorded::{Recording, day_name};
use crate::model::stacks::Profile;
use sha1::{Digest, Sha1};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The subdirectory of the data set that contains the files with rows.
pub(super) const SAMPLES: &str = "samples";

/// The name of a partition whose value is unknown, as in Hive.
const UNKNOWN_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Writes each recording of an input to a file of its own.
#[derive(Debug)]
pub(super) struct PartedFile<'a> {
    root: &'a Path,
    start: StartRowsFn,
    write: WriteOptions,
    run: &'a Run,
    /// The file of the current recording. `None` between two recordings.
    open_file: Option<OpenFile>,
    /// True if a file of the data set could not be written. Then the whole job ends, while an input that can't be read
    /// is only skipped.
    has_failed: bool,
}

/// A file that is being written.
#[derive(Debug)]
struct OpenFile {
    output: Rc<RefCell<Output>>,
    writer: Box<dyn RowWriter>,
}

/// A shared handle to an output: a [`RowWriter`] writes to it, and the output is committed after the writer is gone.
struct SharedOutput(Rc<RefCell<Output>>);

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

impl<'a> PartedFile<'a> {
    /// Creates a writer of files below `root`. No file is opened yet.
    pub(super) fn new(root: &'a Path, start: StartRowsFn, options: &'a ExportOptions, run: &'a Run) -> Self {
        let write = WriteOptions { partitioned: true, ..options.write.clone() };
        Self { root, start, write, run, open_file: None, has_failed: false }
    }

    /// True if any file could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// If `done` is an error, remembers that writing has failed. Returns `done` unchanged.
    fn note_failure<T>(&mut self, done: Result<T>) -> Result<T> {
        self.has_failed |= done.is_err();
        done
    }

    /// Creates the file for a recording.
    fn open(&self, recording: &Recording) -> Result<OpenFile> {
        let path = self.root.join(SAMPLES).join(partition(recording)).join(format!("{}.parquet", stem(recording)));
        OutDirectory::make(path.parent().unwrap_or(self.root))?;
        let output = Rc::new(RefCell::new(Output::create(&OutPath::Path(path), self.run)?));
        let writer = (self.start)(&self.write, Box::new(SharedOutput(output.clone())))?;
        Ok(OpenFile { output, writer })
    }
}

impl OpenFile {
    /// Completes the file and gives it its final name.
    fn close(mut self) -> Result<()> {
        self.writer.finish()?;
        drop(self.writer);
        match Rc::try_unwrap(self.output) {
            Ok(output) => output.into_inner().commit(),
            Err(_) => Err(Error::new("is still being written")),
        }
    }
}

impl RowWriter for PartedFile<'_> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        let opened = self.open(&origin.recording);
        let mut file = self.note_failure(opened)?;
        let begun = file.writer.begin(origin, profile);
        self.open_file = Some(file);
        self.note_failure(begun)
    }

    fn rows(&mut self, profile: &Profile) -> Result<()> {
        let written = self.open_file.as_mut().map_or(Ok(()), |file| file.writer.rows(profile));
        self.note_failure(written)
    }

    fn end(&mut self, profile: &Profile) -> Result<()> {
        let Some(mut file) = self.open_file.take() else { return Ok(()) };
        let closed = file.writer.end(profile).and_then(|()| file.close());
        self.note_failure(closed)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The name of a recording's file, without extension. Sums per time bucket get another name than samples, so that
/// neither ever replaces the other.
pub(super) fn stem(recording: &Recording) -> String {
    let input = recording.input.as_deref().unwrap_or_default();
    match recording.bucket {
        Some(bucket) => format!("{input}-{}", format_bucket(bucket)),
        None => input.to_owned(),
    }
}

/// Formats a duration of `nanos` nanoseconds in the largest unit in which it is a whole number: 1.5 s is `1500ms`.
fn format_bucket(nanos: i64) -> String {
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanos % unit == 0 {
            return format!("{}{name}", nanos / unit);
        }
    }
    format!("{nanos}ns")
}

/// The directory of a recording's file, relative to [`SAMPLES`].
fn partition(recording: &Recording) -> PathBuf {
    let host = match recording.host.as_deref() {
        None | Some("") => UNKNOWN_VALUE.to_owned(),
        Some(host) => shorten(escape(host.as_bytes()), host),
    };
    let day = recording.day.map_or_else(|| UNKNOWN_VALUE.to_owned(), day_name);
    PathBuf::from(format!("host={host}")).join(format!("day={day}"))
}

/// Shortens an encoded value to a length that all file systems allow. The end is replaced by `~` and a hash of `value`,
/// so that different values keep different names. Encoding never yields a `~`, so no short value looks like a shortened
/// one.
fn shorten(mut escaped: String, value: &str) -> String {
    const LONGEST: usize = 200;
    if escaped.len() <= LONGEST {
        return escaped;
    }
    // Don't cut within an encoded byte (`%2F`).
    let end = escaped[LONGEST - 2..LONGEST].find('%').map_or(LONGEST, |percent| LONGEST - 2 + percent);
    escaped.truncate(end);
    let hash: String = Sha1::digest(value).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{escaped}~{hash}")
}

/// Encodes a value for use as a directory name. Everything except letters, digits and `-_.` becomes `%2F` and so on.
fn escape(value: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_directory_whatever_it_is_called() {
        assert_eq!(escape(b"web-1.example"), "web-1.example");
        assert_eq!(escape(b"../a=b c"), "..%2Fa%3Db%20c");
        let name = |host: &str| shorten(escape(host.as_bytes()), host);
        assert_eq!(name(&"a".repeat(200)), "a".repeat(200));
        let long: Vec<String> = ["a", "é", "/", "b/", "~"].iter().map(|letter| name(&letter.repeat(300))).collect();
        for name in &long {
            assert!((201..=217).contains(&name.len()), "{name}");
            let (start, hash) = name.split_once('~').unwrap();
            assert!(hash.len() == 16 && start.rsplit_once('%').is_none_or(|(_, last)| last.len() >= 2), "{name}");
        }
        assert_ne!(name(&"a".repeat(300)), name(&"a".repeat(301)));
        let mut recording = Recording::default();
        assert_eq!(partition(&recording), Path::new("host=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__"));
        (recording.host, recording.day) = (Some("h".into()), Some(0));
        assert_eq!(partition(&recording), Path::new("host=h/day=1970-01-01"));
    }

    #[test]
    fn sums_have_other_files_than_samples() {
        let stems = [None, Some(10_000_000_000), Some(1_500_000_000), Some(7)].map(|bucket| {
            let input = Some("12ab".into());
            stem(&Recording { input, bucket, ..Recording::default() })
        });
        assert_eq!(stems, ["12ab", "12ab-10s", "12ab-1500ms", "12ab-7ns"]);
    }
}
