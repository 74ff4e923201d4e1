//! The files that this process has opened as inputs, and when: no output may take the place of one ([`super::Run`]).
//!
//! The log is the process's, not a run's. Inputs are opened in many places, some deep inside and by other threads (the
//! search for a library's debugging information), and none of them needs to know for whom; outputs are made in a few
//! places, which all have their [`super::Run`]. A run counts the files that were opened since it began:
//!
//! ```text
//! run 1  ├──opens A───────────┤
//! run 2               ├────────────opens B──┤   may write A, not B
//! run 3                         ├───────────┤   may write A, not B
//! ```
//!
//! So jobs that run one after the other may each write what one before has read. Jobs that run side by side also heed
//! what the others open meanwhile, and a file that is read by one while another replaces it is worth the refusal. While
//! no run is under way nothing is remembered; when one ends, what was opened before all that are left is dropped.
//!
//! A file is known by what it is, not by its name, which links and `..` hide.

use super::modes::{ANYBODY, OWNER, mode_within};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The identity of a file or directory, under any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
    /// When it was made, where the file system gives: numbers of inodes are used again.
    born: Option<SystemTime>,
}

impl FileId {
    pub(super) fn new(about: &Metadata) -> Self {
        Self { device: about.dev(), inode: about.ino(), born: about.created().ok() }
    }

    /// The identity of the file that a path leads to; `None` if absent.
    pub(super) fn at(path: &Path) -> Option<Self> {
        super::about(path).map(|about| Self::new(&about))
    }
}

#[derive(Debug)]
struct Log {
    /// When the runs began that are under way.
    runs: Vec<u64>,
    now: u64,
    /// Regular files, and directories that are inputs as a whole.
    opened: FxHashMap<FileId, OpenedFile>,
    /// When a pipe or a device was opened last; 0 for never.
    streamed: u64,
}

/// An input.
#[derive(Debug, Clone, Copy)]
struct OpenedFile {
    /// When it was opened last.
    at: u64,
    /// Who may read it.
    mode: u32,
}

static LOG: Mutex<Log> =
    Mutex::new(Log { runs: Vec::new(), now: 0, opened: HashMap::with_hasher(FxBuildHasher), streamed: 0 });

fn log() -> MutexGuard<'static, Log> {
    // A thread that panicked with the log in hand has left it whole: each change is one step.
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time from which on a run heeds what is opened. Dropped when the run ends.
#[derive(Debug)]
pub(super) struct Since(u64);

impl Since {
    pub(super) fn now() -> Self {
        let mut log = log();
        log.now += 1;
        let now = log.now;
        log.runs.push(now);
        Self(now)
    }

    /// True if this was opened since then.
    pub(super) fn was_opened(&self, file: FileId) -> bool {
        log().opened.get(&file).is_some_and(|opened| opened.at >= self.0)
    }

    /// The mode of a file that repeats what all inputs since then hold: what comes through a pipe is its reader's alone.
    pub(super) fn mode_of_inputs(&self) -> u32 {
        let log = log();
        let modes = log.opened.values().filter(|opened| opened.at >= self.0).map(|opened| opened.mode);
        mode_within(modes.chain((log.streamed >= self.0).then_some(OWNER)))
    }
}

impl Drop for Since {
    fn drop(&mut self) {
        let mut log = log();
        log.runs.retain(|&began| began != self.0);
        match log.runs.iter().copied().min() {
            Some(oldest) => log.opened.retain(|_, opened| opened.at >= oldest),
            None => log.opened = FxHashMap::default(),
        }
    }
}

/// Remembers an input that those may read whom `mode` permits it. Devices and pipes are none that could be overwritten.
pub(super) fn remember(about: &Metadata, mode: u32) {
    if about.is_file() {
        return add(FileId::new(about), mode);
    }
    if !about.is_dir() {
        let mut log = log();
        log.streamed = log.now;
    }
}

/// Remembers a directory that is an input as a whole. Its files have modes of their own.
pub(super) fn remember_directory(directory: FileId) {
    add(directory, ANYBODY);
}

fn add(file: FileId, mode: u32) {
    let mut log = log();
    if !log.runs.is_empty() {
        let now = log.now;
        // By whatever way others can get to it, it is the same file.
        let mode = log.opened.get(&file).map_or(mode, |opened| mode | opened.mode);
        log.opened.insert(file, OpenedFile { at: now, mode });
    }
}
