//! What the run left to name its code, brought to the recording: /tmp is emptied, and another process of the same number
//! writes to the same names.
//!
//! Every file is found as any command that reads the recording finds it, and the copy is found beside the recording by its
//! name. It keeps the time of the last change, by which a file of an earlier process is told from one of this run.

use super::RecordOptions;
use crate::error::{Error, Result, Warnings};
use crate::io::{InPath, NewFile, is_file};
use crate::pipeline::open::Input;
use crate::pipeline::recording::{Memory, Streams, Survey};
use crate::pipeline::{Job, Outcome};
use crate::sources::{FoundFile, SourceOptions};
use rustix::fs::{Timespec, Timestamps, futimens};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Copies what names the recording's code into its directory. What cannot be copied is said: the recording is there.
pub(super) fn beside(options: &RecordOptions, job: &Job, outcome: &mut Outcome) {
    // A directory, a stream or nothing is not looked through.
    if !is_file(&options.output) {
        return;
    }
    match kept(&options.output, job, &mut outcome.warnings) {
        Ok(files) => outcome.summary.extend(files),
        Err(error) => outcome.warnings.push(error.in_file(&options.output).into_warning()),
    }
}

fn kept(recording: &Path, job: &Job, warnings: &mut Warnings) -> Result<Vec<String>> {
    let input = Input::open(&InPath::Path(recording.to_owned()))?;
    let streams = Streams::open(&input, recording, &job.pool, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list(), recording, warnings);
    let memory = Memory::find(&survey, &SourceOptions::default(), warnings);
    let directory = recording.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut said = Vec::new();
    for file in memory.found.each_file() {
        match copy(file, directory) {
            Ok(copied) => said.extend(copied),
            Err(error) => warnings.push(error.in_file(file.path).into_warning()),
        }
    }
    Ok(said)
}

/// Copies a file if it is not there already; tells what was done.
fn copy(file: FoundFile<'_>, directory: &Path) -> Result<Option<String>> {
    let Some(name) = file.path.file_name() else { return Ok(None) };
    let target = directory.join(name);
    let is_there = |about: std::fs::Metadata| (about.dev(), about.ino()) == (file.about.dev(), file.about.ino());
    if crate::io::about(&target).is_some_and(is_there) {
        return Ok(None);
    }
    let mut new = NewFile::create_in(directory, file.about.permissions().mode() & 0o666)?;
    new.file_mut().write_all(file.bytes)?;
    let time = |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    let last_access = time(file.about.atime(), file.about.atime_nsec());
    let last_modification = time(file.about.mtime(), file.about.mtime_nsec());
    futimens(new.file(), &Timestamps { last_access, last_modification }).map_err(std::io::Error::from)?;
    match new.persist_noclobber(name)? {
        None => Ok(Some(format!("kept {} (from {})", target.display(), file.path.display()))),
        Some(_) => Err(Error::new(format!(
            "was not copied: {} is another file, of an earlier run most likely; move that away and copy this one",
            target.display()
        ))),
    }
}
