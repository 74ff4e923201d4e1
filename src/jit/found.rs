//! The opened sources of a recording, before they are read.

use super::account::{Account, Kind, SourceState};
use super::guest::GuestNames;
use super::live::LiveProcess;
use super::log_clock::FirstSeen;
use super::options::{GivenFile, SourceOptions};
use super::source_maps::SourceMaps;
use crate::io::door::Opened;
use crate::io::{self, Bytes};
use crate::jit::engine_logs::CodeLog;
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The sources of a recording, opened but not yet read.
#[derive(Debug)]
pub struct Found {
    pub(super) files: Vec<Source>,
    pub(super) options: SourceOptions,
    /// Sources that aren't used, and why: they are missing, could not be opened or were refused, or the user has to
    /// confirm them.
    pub(super) failed: Vec<Account>,
    /// The recorded processes that are still running, by their recorded ID.
    pub(super) live: BTreeMap<Pid, LiveProcess>,
    /// The input's directory.
    pub(super) input_dir: Option<PathBuf>,
    /// Source maps for the scripts that the code was compiled from. Set when the sources are loaded.
    pub(super) source_maps: OnceLock<SourceMaps>,
}

/// A file with names of JIT code that was found for a recording.
#[derive(Debug, Clone)]
pub struct FoundFile<'a> {
    /// The path.
    pub path: &'a Path,
    /// The name that a copy of the file needs for jitgraft to find it in a recording's directory.
    pub name: OsString,
    /// The file's contents.
    pub bytes: &'a [u8],
    /// The file's metadata when it was opened; `None` if it is a copy of a process's memory.
    pub about: Option<&'a Metadata>,
    /// For a source: its kind, and the recorded ID of its process. `None` for other files.
    pub source: Option<(Kind, Pid)>,
    /// The file's permission bits.
    pub mode: u32,
}

/// A source that was opened but not read yet.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The recorded ID of the process.
    pub(super) pid: Pid,
    /// The process ID in the file's name or contents. It is the ID in the process's own PID namespace. `None` if the
    /// file states none.
    pub(super) inner: Option<Pid>,
    pub(super) contents: Contents,
    /// For a jitdump: when the process mapped it as its marker. `None` if the process didn't, or if that was before the
    /// recording began.
    pub(super) marker_time: Option<Nanos>,
    /// For an ELF object that the user placed: the address. Otherwise 0.
    pub(super) addr: Addr,
    /// A remark for users on why the source was used although they didn't ask for it; `None` if there is nothing to
    /// remark on.
    pub(super) remark: Option<String>,
    /// For logs: the parsed log. Set when the sources are loaded.
    pub(super) log: OnceLock<CodeLog>,
    /// For logs: when each address of the process first occurred in a sample or its call chain. Empty if the log's
    /// times don't have to be estimated.
    pub(super) first_seen: FirstSeen,
    /// For programs in an emulator: names of the guest program's functions. Set when the sources are loaded.
    pub(super) guest: OnceLock<GuestNames>,
}

impl Source {
    /// Creates a source of code for a process, which is given by its recorded ID.
    pub(super) fn new(path: PathBuf, kind: Kind, pid: Pid, contents: impl Into<Contents>) -> Self {
        Self {
            path,
            kind,
            pid,
            inner: None,
            contents: contents.into(),
            marker_time: None,
            addr: Addr(0),
            remark: None,
            log: OnceLock::new(),
            first_seen: FirstSeen::new(),
            guest: OnceLock::new(),
        }
    }
}

/// The contents of a source, and its file's metadata.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    pub(super) bytes: Arc<Bytes>,
    /// The file's metadata when it was opened; `None` for a copy of a process's memory.
    pub(super) about: Option<Metadata>,
    /// The file's permission bits; 0 for a copy of a process's memory.
    pub(super) mode: u32,
}

impl From<Opened> for Contents {
    fn from(opened: Opened) -> Self {
        Self { bytes: Arc::new(opened.bytes), about: Some(opened.about), mode: opened.mode }
    }
}

impl From<Vec<u8>> for Contents {
    fn from(copied: Vec<u8>) -> Self {
        Self { bytes: Arc::new(Bytes::Owned(copied)), about: None, mode: 0 }
    }
}

impl Found {
    /// No sources, for when names of JIT code aren't wanted.
    pub fn none() -> Self {
        Self {
            files: Vec::new(),
            options: SourceOptions::default(),
            failed: Vec::new(),
            live: BTreeMap::new(),
            input_dir: None,
            source_maps: OnceLock::new(),
        }
    }

    /// Adds a jitdump or perf map of a process whose contents are already in memory. `path` is its name in messages. The
    /// caller states the process, as a user does with `FILE@PID`.
    pub(crate) fn add_bytes(&mut self, path: PathBuf, kind: Kind, pid: Pid, bytes: Vec<u8>) {
        if kind == Kind::JitDump {
            self.options.jitdump.push(GivenFile { path: path.clone(), pid: Some(pid) });
        }
        self.files.push(Source::new(path, kind, pid, bytes));
    }

    /// The files of the sources, with path and contents, for copying them into the recording's directory, where
    /// jitgraft will find them. Leaves out ELF objects that the user placed at an address with `--elf`: no file name
    /// states that address, so a copy would be of no use. The copied memory of a running process gets a file name like
    /// that of a core dump.
    pub fn each_file(&self) -> impl Iterator<Item = FoundFile<'_>> {
        let copyable = self.files.iter().filter(|source| source.kind != Kind::PlacedElf);
        copyable.filter_map(|source| {
            let name = match source.contents.about {
                Some(_) => source.path.file_name()?.to_owned(),
                // The source was copied from the memory of a running process, not from a file. Name the copy as gcore
                // would.
                None => format!("core.{}", source.pid).into(),
            };
            Some(FoundFile {
                path: &source.path,
                name,
                bytes: &source.contents.bytes,
                about: source.contents.about.as_ref(),
                source: Some((source.kind, source.pid)),
                mode: source.contents.mode,
            })
        })
    }

    /// For each file that exists but isn't used: the path and the reason.
    pub fn refused_files(&self) -> impl Iterator<Item = String> {
        self.failed.iter().filter_map(|account| match &account.state {
            SourceState::Refused { why, .. } => Some(format!("{}: {why}", account.path.display())),
            SourceState::Loaded { .. } | SourceState::Missing { .. } | SourceState::Offered(_) => None,
        })
    }

    /// The permission bits for a file that contains data from all sources: only users who may read all sources may read
    /// it.
    pub fn mode(&self) -> u32 {
        io::common_mode(self.files.iter().map(|source| source.contents.mode))
    }

    /// True if the process is still running with another root directory, and this file isn't below that directory. perf
    /// looks for a process's files where that process sees them.
    pub fn is_hidden_from(&self, pid: Pid, path: &Path) -> bool {
        self.live.get(&pid).is_some_and(|live| !live.sees(path))
    }
}
