//! Copies the files that name the recorded code to the directory of the recording. Otherwise they would get lost: /tmp
//! is emptied, or a later process with the same PID overwrites them.
//!
//! The files are found in the same way as by commands that read the recording, which then find the copies next to the
//! recording by their names. A copy keeps its modification time, which tells apart files of this run from those of an
//! earlier process.

use super::options::RecordOptions;
use crate::error::{Error, Result, Warnings};
use crate::io::door::Named;
use crate::io::{self, InPath, OutDirectory, is_file};
use crate::jit::{FoundFile, SOURCE, SourceOptions};
use crate::pipeline::open::Input;
use crate::pipeline::recording::{Memory, Streams, Survey};
use crate::pipeline::{Job, Outcome};
use rustix::fs::{Timespec, Timestamps, futimens};
use std::fs::Metadata;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// Copies the files that name the recording's code into its directory. A failure only gives a warning, because the
/// recording itself is complete.
pub(super) fn copy_sources(options: &RecordOptions, left: &LeftFiles, job: &Job, outcome: &mut Outcome) {
    // Files are copied only next to a recording that is a single file. There is none if perf wrote a directory or a
    // pipe, or failed.
    if !is_file(&options.output) {
        return;
    }
    match copy_into_directory(&options.output, left, job, &mut outcome.warnings) {
        Ok(files) => outcome.summary.extend(files),
        Err(error) => outcome.warnings.push(error.in_file(&options.output).into_warning()),
    }
}

/// Files that the runtime writes under fixed names, without a PID.
pub(super) struct LeftFiles {
    /// The names of the files, which are in the current directory.
    pub(super) names: Vec<&'static str>,
    /// When the run started. Files with these names that were last written earlier are left over from another run.
    pub(super) since: SystemTime,
}

/// Copies files to the directory of the recording: first those that the runtime writes under fixed names in the current
/// directory (`left`), then all files that name code of the recorded processes. Returns one line for the summary per
/// copied file.
fn copy_into_directory(recording: &Path, left: &LeftFiles, job: &Job, warnings: &mut Warnings) -> Result<Vec<String>> {
    let directory = recording.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut summary = Vec::new();
    let mut keep = |file: FoundFile<'_>, warnings: &mut Warnings| match copy(&file, directory) {
        Ok(copied) => summary.extend(copied),
        Err(error) => warnings.push(error.in_file(file.path).into_warning()),
    };
    // The files in `left` are found by their names alone, and anybody may have put them there. So they are opened
    // through a door, which checks who owns them; `false`: other users' files are never trusted.
    let door = Named::Convention.door(false);
    for path in left.names.iter().map(Path::new) {
        // Not every program of the runtime writes these files, and some may be left over from another run. Those were
        // last written before this run began.
        let is_new = door.look(path).and_then(|about| about.modified().ok()).is_some_and(|time| time >= left.since);
        if !is_new {
            continue;
        }
        let opened = match door.open(path, SOURCE) {
            Some(Ok(opened)) => opened,
            Some(Err(error)) => {
                warnings.push(error.into_warning());
                continue;
            }
            None => continue,
        };
        if let Some(name) = path.file_name() {
            keep(
                FoundFile {
                    path,
                    name: name.to_owned(),
                    bytes: &opened.bytes,
                    about: Some(&opened.about),
                    mode: opened.mode,
                    source: None,
                },
                warnings,
            );
        }
    }
    let input = Input::open(&InPath::Path(recording.to_owned()))?;
    let streams = Streams::open(&input, recording, &job.pool, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list, recording, warnings);
    let memory = Memory::find(&survey, &SourceOptions::default(), warnings);
    memory.found.each_file().for_each(|file| keep(file, warnings));
    Ok(summary)
}

/// Copies a file unless the directory already has it. Returns a line for the summary; `None` if nothing was copied.
/// Fails if the directory has a different file of that name.
fn copy(file: &FoundFile<'_>, directory: &Path) -> Result<Option<String>> {
    let target = directory.join(&file.name);
    let id = |about: &Metadata| (about.dev(), about.ino());
    // If the source and the target are the same inode, the file is already where it should be copied to.
    if crate::io::typed_metadata(&target).is_some_and(|existing| file.about.map(id) == Some(id(&existing))) {
        return Ok(None);
    }
    let mut new = OutDirectory::make(directory)?.create(io::common_mode([file.mode]))?;
    new.file_mut().write_all(file.bytes)?;
    if let Some(about) = file.about {
        let time = |seconds, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
        let last_access = time(about.atime(), about.atime_nsec());
        let last_modification = time(about.mtime(), about.mtime_nsec());
        futimens(new.file(), &Timestamps { last_access, last_modification }).map_err(std::io::Error::from)?;
    }
    // `Some`: a file of that name exists, and was left as it is.
    match new.persist_noclobber(&file.name)? {
        None => Ok(Some(format!("copied {1} to {0}", target.display(), file.path.display()))),
        Some(_) => Err(Error::new(format!(
            "was not copied, because {} exists, probably from an earlier run; move that file away, then copy this one",
            target.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_keeps_its_time_and_replaces_nothing() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = from.path().join("perf-7.map");
        fs::write(&path, "10 20 f\n").unwrap();
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(4711);
        fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        let about = fs::metadata(&path).unwrap();
        let file = FoundFile {
            path: &path,
            name: "perf-7.map".into(),
            bytes: b"10 20 f\n",
            about: Some(&about),
            mode: 0o600,
            source: None,
        };
        assert!(copy(&file, to.path()).unwrap().unwrap().starts_with("copied "));
        let copied = to.path().join("perf-7.map");
        assert_eq!(fs::metadata(&copied).unwrap().modified().unwrap(), about.modified().unwrap());
        let mode = fs::metadata(&copied).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "as who can get to the file may read it, whatever its own mode");
        let again = copy(&file, to.path()).unwrap_err().to_string();
        assert!(again.contains("move that file away"), "{again}");
        assert_eq!(copy(&file, from.path()).unwrap(), None, "it is there already");
        assert_eq!(fs::read_to_string(&copied).unwrap(), "10 20 f\n");
    }
}
