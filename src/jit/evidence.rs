//! Decides which process a jitdump or perf map belongs to if its name contains no recorded process ID.
//!
//! Addresses alone don't identify a process. Without address space randomization, another run of the same program has
//! its code at the same addresses. With it, processes forked from the same parent do: two workers of a server have
//! different functions at the same address, and the perf map of either covers all samples of the other. Whether a
//! process has such siblings isn't known if the recording was attached to it.
//!
//! Therefore a file is used unasked only if the process was sampled in its code *and* something independent of
//! addresses indicates the same run, and only if no other file or process is possible. A file that the user named needs
//! no second indication, but it is still used for one process only if there is no other.

use super::account::Kind;
use crate::model::Pid;
use crate::model::process::SharedMemory;

/// Evidence other than addresses that a file belongs to a recorded process, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sign {
    /// The file was last written during the recording or shortly after.
    Written,
    /// The user passed the file or its directory with an option.
    Asked,
    /// The times of the file's records fit the process.
    Times,
    /// The file is the very one (device and inode) that the process mapped as its marker.
    Inode,
}

impl Sign {
    /// Why a file with this evidence was used, as the end of a sentence.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Asked => "because the process was sampled in code that the file lists",
            Self::Inode => "because the process had mapped the file, and was sampled in code that the file lists",
            Self::Times => {
                "because the times in the file fit the lifetime of the process, which was sampled in code that \
                 the file lists"
            }
            Self::Written => {
                "because the file was last written during or just after the recording, and the process was sampled in \
                 code that the file lists"
            }
        }
    }
}

/// How well one file fits one process. There is a `Fit` for each pair of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fit {
    /// The file's index in the list of files.
    pub(super) file: usize,
    pub(super) kind: Kind,
    pub(super) pid: Pid,
    /// JIT memory that the process may share with others.
    pub(super) memory: Option<SharedMemory>,
    /// True if the process still needs a source, because none has been found for it yet.
    pub(super) is_wanted: bool,
    /// How many of the process's samples in JIT memory are at addresses of the file's code.
    pub(super) covered: u64,
    /// How many samples the process has in JIT memory.
    pub(super) samples: u64,
    /// True if most of the file's code is in memory that the process mapped.
    pub(super) is_mapped: bool,
    /// The strongest evidence apart from addresses; `None` if there is none.
    pub(super) sign: Option<Sign>,
    /// Why the file seems to belong to another run; `None` if nothing suggests that.
    pub(super) contradiction: Option<String>,
}

impl Fit {
    /// True if the addresses fit: most of the code was mapped, and at least half of the samples are in it.
    pub(super) fn has_addresses(&self) -> bool {
        self.is_mapped && self.covered > 0 && self.covered.saturating_mul(2) >= self.samples
    }

    fn is_possible(&self) -> bool {
        self.has_addresses() && self.contradiction.is_none()
    }
}

/// What to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// Use the file for this process.
    Used(&'a Fit),
    /// The file may belong to this process, but the user has to confirm it.
    Offered(&'a Fit),
    /// The file can't be used for this process, because it belongs to another run.
    Refused(&'a Fit),
    /// The file fits none of the processes.
    Unmatched,
}

/// Decides what to do with the file that has the index `file`. The process in question is the best of those that still
/// need a source and that the file's addresses fit without contradiction.
///
/// * The file is used if evidence other than addresses (a sign) shows that it belongs to that process, and if no other
///   file or process is possible. Other possibilities don't matter if the process mapped this very file.
/// * It is offered if it may belong to that process but one of these conditions isn't met. The user has to confirm it.
/// * It is refused if its addresses fit a process that needs a source, but other evidence contradicts.
/// * Otherwise, it is unmatched.
///
/// `all` contains every file combined with every process. This includes processes that already have a source, because a
/// file that may be theirs can't be assigned to another process with certainty.
pub(super) fn judge(file: usize, all: &[Fit]) -> Verdict<'_> {
    let possible: Vec<&Fit> = all.iter().filter(|fit| fit.file == file && fit.is_possible()).collect();
    let wanted = possible.iter().copied().filter(|fit| fit.is_wanted);
    // The strongest evidence apart from addresses (`sign`) decides, then the number of samples. If both are equal, the
    // higher process ID wins, so that the result doesn't depend on the order.
    let Some(best) = wanted.max_by_key(|fit| (fit.sign, fit.covered, fit.pid)) else {
        // No process that needs a source can have this file. If the file's addresses fit such a process nevertheless,
        // other evidence rules it out. The verdict then names that process, so that the user learns why the file isn't
        // used.
        // But if the file is possible for a process that already has a source (`possible` isn't empty), it is probably
        // that process's own, and there is nothing to report.
        let mut fits = all.iter().filter(|fit| fit.file == file);
        let contradicted = fits.find(|fit| fit.is_wanted && fit.has_addresses());
        return match contradicted {
            Some(contradicted) if possible.is_empty() => Verdict::Refused(contradicted),
            _ => Verdict::Unmatched,
        };
    };
    // A file that the process mapped is certainly its own, whatever other files or processes fit.
    let is_sure = best.sign == Some(Sign::Inode);
    // A rival is another file of the same kind that may belong to this process as well and has a sign, too. If this
    // file is certainly the process's own, only files of which that is also certain are rivals.
    let others = all.iter().filter(|fit| fit.file != file && (fit.pid, fit.kind) == (best.pid, best.kind));
    let mut rivals = others.filter(|fit| fit.is_possible() && fit.sign.is_some());
    let has_rival = rivals.any(|rival| !is_sure || rival.sign == best.sign);
    // True if no other process can have the file. Processes that share their JIT memory with this one don't count,
    // because they run the same code.
    let is_only_process = possible.iter().all(|fit| {
        let shares_memory = fit.memory.is_some() && fit.memory == best.memory;
        fit.pid == best.pid || shares_memory
    });
    // Addresses alone don't prove anything: there must be other evidence, too (a sign).
    if best.sign.is_some() && !has_rival && (is_only_process || is_sure) {
        Verdict::Used(best)
    } else {
        Verdict::Offered(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Addr;
    use crate::model::process::FileId;

    fn fit(pid: i32, inode: Option<u64>) -> Fit {
        let memory = |inode| SharedMemory { addr: Addr(4096), file: FileId { major: 0, minor: 1, inode } };
        Fit {
            file: 0,
            kind: Kind::PerfMap,
            pid: Pid(pid),
            memory: inode.map(memory),
            is_wanted: true,
            covered: 8,
            samples: 8,
            is_mapped: true,
            sign: Some(Sign::Written),
            contradiction: None,
        }
    }

    #[test]
    fn processes_that_share_their_memory_are_not_rivals_for_a_file() {
        let is_used = |fits: [Fit; 2]| matches!(judge(0, &fits), Verdict::Used(_));
        assert!(is_used([fit(7, Some(1)), fit(8, Some(1))]), "two workers of one server");
        assert!(!is_used([fit(7, Some(1)), fit(8, Some(2))]), "workers of two servers");
        assert!(!is_used([fit(7, None), fit(8, None)]), "each has memory of its own");
    }
}
