//! The steps of a plan: sources to look for, and what is known already about files that are or aren't used.

use crate::error::{Error, RefusalReason, Warning};
use crate::io::door::Opened;
use crate::jit::account::{Account, Kind, SourceState};
use crate::jit::found::Source;
use crate::jit::trust::Named;
use crate::model::Pid;
use crate::model::process::Marker;
use std::path::{Path, PathBuf};

/// One step of a plan.
pub(super) enum Step<'a> {
    /// Look for a source.
    Look(Candidate<'a>),
    /// Use a source whose contents are known already.
    Use(Box<Source>),
    /// Report that a file isn't used: it can't be opened, or isn't what the user said.
    Refuse { path: PathBuf, kind: Kind, pid: Pid, error: Error },
    /// Report that a file may belong to a process but isn't used, or that it belongs to none. There is a warning if the
    /// user named the file.
    NotMatched { account: Account, warning: Option<Warning> },
    /// Leave a file from the user to the round that matches files by their contents.
    Unassigned(PathBuf, Kind),
    /// Warn about a file from the user.
    Warn(Warning),
}

/// A source that may exist.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) kind: Kind,
    /// The recorded ID of the process.
    pub(super) pid: Pid,
    /// The process ID in the file's name or contents, which is that in the process's own PID namespace.
    pub(super) inner: Option<Pid>,
    /// Why the source may exist.
    pub(super) clue: Clue<'a>,
}

/// Why a source may exist. Decides where it is looked for (`Scene::possible_paths`), when it is needed
/// (`Search::is_needed`), and what is reported.
#[derive(Debug, Clone)]
pub(super) enum Clue<'a> {
    /// The process mapped this file, its jitdump, so that the recording mentions it. Such a mapping is called a marker.
    Marker(&'a Marker),
    /// The process has JIT memory, and runtimes name files after their process.
    JitMemory,
    /// A running ancestor shares its JIT memory with the process, and the file is named after that ancestor.
    Parent,
    /// The process has no recorded JIT memory: its code may be in files, in static buffers, or in memory whose mapping
    /// wasn't recorded. Few such processes have these files, so files that can't be used aren't reported.
    Unexpected,
    /// A directory contains this file, which is named like a log of the process.
    Log(NamedPath),
    /// A directory contains this core dump, which states the process. If the core dump can't be opened, the process is
    /// that in its name.
    Core(NamedPath),
}

/// The path of a file that may be a source, and who named the path, which decides how the file may be opened.
#[derive(Debug, Clone)]
pub(super) struct NamedPath {
    pub(super) path: PathBuf,
    pub(super) named: Named,
}

impl NamedPath {
    pub(super) fn new(path: impl Into<PathBuf>, named: Named) -> Self {
        Self { path: path.into(), named }
    }
}

impl Candidate<'_> {
    /// True if the candidate isn't looked for once the file at one of its possible paths is used, for this or another
    /// process. A perf map may be used twice, because forked processes run the code of their parent's map.
    pub(super) fn excludes_used_files(&self) -> bool {
        self.kind != Kind::PerfMap || matches!(self.clue, Clue::Unexpected)
    }

    /// The source for a file that was found at this path.
    pub(super) fn to_source(&self, named_path: &NamedPath, opened: Opened) -> Source {
        // A time of 0 means that the process mapped the marker before the recording began.
        let marker_time = match self.clue {
            Clue::Marker(marker) => Some(marker.time).filter(|time| time.0 != 0),
            _ => None,
        };
        Source {
            inner: self.inner,
            marker_time,
            remark: self.remark(named_path),
            ..Source::new(named_path.path.clone(), self.kind, self.pid, opened)
        }
    }

    /// Tells users why a file is used that they may not expect: one of the process's parent, or one inside the root
    /// directory of a process that has a root directory or mounts of its own. `None` for other files.
    fn remark(&self, named_path: &NamedPath) -> Option<String> {
        let why = if matches!(self.clue, Clue::Parent)
            && let Some(parent) = self.inner
        {
            format!("which shares its JIT memory with its parent, process {parent}")
        } else if matches!(named_path.named, Named::Inside(_)) {
            "which is still running in another mount namespace or chroot".to_owned()
        } else {
            return None;
        };
        Some(unasked_use_remark(&named_path.path, self.pid, &why))
    }
}

/// Stands for the process of a file whose process isn't known.
pub(super) const UNKNOWN_PROCESS: Pid = Pid(-1);

/// How the warning about a file that isn't used begins. Removed from messages that are displayed after these words.
pub(super) const NOT_USED: &str = "not used: ";

/// The account of a file that isn't used for process `pid`, or for none if that is [`UNKNOWN_PROCESS`]. `why` is the
/// reason.
pub(super) fn not_matched(path: PathBuf, kind: Kind, pid: Pid, why: String) -> Account {
    let remark = Some(not_matched_remark(&path, &why));
    let state = SourceState::Refused { why, reason: RefusalReason::Content };
    Account { path, kind, pid, state, remark }
}

pub(super) fn not_matched_remark(path: &Path, why: &str) -> String {
    format!("not matched: {}: {why}", path.display())
}

pub(super) fn unasked_use_remark(path: &Path, pid: Pid, why: &str) -> String {
    format!("{}: used for process {pid}, {why}", path.display())
}
