//! Remembers which files this process has opened as inputs and when, so that no output replaces one of them
//! ([`super::Run`]).
//!
//! There is one log for the whole process instead of one per run. Inputs are opened in many places, some of them deep
//! inside or on other threads (such as the search for debug files), which needn't know the run. Outputs are created in
//! few places, all of which have their [`super::Run`]. A run only looks at files that were opened since it began:
//!
//! ```text
//! run 1  ├──opens A───────────┤
//! run 2               ├────────────opens B──┤   may write A, not B
//! run 3                         ├───────────┤   may write A, not B
//! ```
//!
//! Thus, of jobs that run one after the other, each may overwrite what an earlier one has read. Jobs that run in
//! parallel also respect each other's inputs, since one of them shouldn't replace a file while another one reads it.
//! Nothing is remembered while there is no run. When a run ends, files that were opened before all remaining runs began
//! are forgotten.
//!
//! Files are identified by device and inode, because links and `..` give a file several paths.

use super::modes::{ANYBODY, OWNER, common_mode};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The identity of a file or directory, whatever path leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
    /// The creation time, if the file system has it, because inode numbers are reused.
    born: Option<SystemTime>,
}

impl FileId {
    pub(super) fn new(about: &Metadata) -> Self {
        Self { device: about.dev(), inode: about.ino(), born: about.created().ok() }
    }

    /// The identity of the file at a path; `None` if absent.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        super::typed_metadata(path).map(|about| Self::new(&about))
    }
}

#[derive(Debug)]
struct Log {
    /// For each run that is still going on, the value of `now` at which it began.
    run_starts: Vec<u64>,
    /// The number of runs that were started so far. It serves as a clock.
    now: u64,
    /// The regular files that were opened as inputs, and the directories all of whose files are inputs.
    inputs: FxHashMap<FileId, OpenedFile>,
    /// The value of `now` when a pipe or device was last opened as an input; 0 if none was.
    last_stream: u64,
}

/// When and with which permissions an input was opened.
#[derive(Debug, Clone, Copy)]
struct OpenedFile {
    /// The value of [`Log::now`] when it was last opened.
    last_opened: u64,
    /// The permissions of the input, which limit who may read an output with its data.
    mode: u32,
}

static LOG: Mutex<Log> =
    Mutex::new(Log { run_starts: Vec::new(), now: 0, inputs: HashMap::with_hasher(FxBuildHasher), last_stream: 0 });

fn log() -> MutexGuard<'static, Log> {
    // If a thread panicked while it held the lock, use the log all the same: each change to it is a single step, so it
    // is never incomplete.
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The moment at which a run began. Files that are opened afterwards are the run's inputs. Dropping this value ends the
/// run.
#[derive(Debug)]
pub(super) struct RunStart(u64);

impl RunStart {
    pub(super) fn now() -> Self {
        let mut log = log();
        log.now += 1;
        let now = log.now;
        log.run_starts.push(now);
        Self(now)
    }

    /// True if this file was opened as an input since the run began.
    pub(super) fn was_opened(&self, file: FileId) -> bool {
        log().inputs.get(&file).is_some_and(|opened| opened.last_opened >= self.0)
    }

    /// The permissions that all inputs of the run have in common. If one of them is a pipe or device, whose readers
    /// aren't known, only the owner's.
    pub(super) fn mode_of_inputs(&self) -> u32 {
        let log = log();
        let modes = log.inputs.values().filter(|opened| opened.last_opened >= self.0).map(|opened| opened.mode);
        common_mode(modes.chain((log.last_stream >= self.0).then_some(OWNER)))
    }
}

impl Drop for RunStart {
    /// Ends the run, and removes the inputs that only this run needed from the log of inputs.
    fn drop(&mut self) {
        let mut log = log();
        log.run_starts.retain(|&began| began != self.0);
        // Forget files that were opened before the oldest of the remaining runs began: they are inputs of none.
        match log.run_starts.iter().copied().min() {
            Some(oldest) => log.inputs.retain(|_, opened| opened.last_opened >= oldest),
            None => log.inputs = FxHashMap::default(),
        }
    }
}

/// Remembers an input and its permissions. For a device or pipe, remembers only when one was last read (`last_stream`),
/// because no output can replace it. Does nothing for a directory.
pub(super) fn remember(about: &Metadata, mode: u32) {
    if about.is_file() {
        return add(FileId::new(about), mode);
    }
    if !about.is_dir() {
        let mut log = log();
        log.last_stream = log.now;
    }
}

/// Remembers a directory whose files are all inputs. It doesn't limit the permissions of outputs, because each file has
/// its own.
pub(super) fn remember_directory(directory: FileId) {
    add(directory, ANYBODY);
}

/// Adds a file to the log of inputs, if any run is going on.
fn add(file: FileId, mode: u32) {
    let mut log = log();
    if !log.run_starts.is_empty() {
        let last_opened = log.now;
        // If the file was already opened by another path, whoever can read it by either path may read it.
        let mode = log.inputs.get(&file).map_or(mode, |opened| mode | opened.mode);
        log.inputs.insert(file, OpenedFile { last_opened, mode });
    }
}
