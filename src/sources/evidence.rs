//! The process of a dump or map whose number is not that of a recorded process: the signs for it, and the result.
//!
//! Addresses alone are not identity. Without address randomisation another run of the same program has its code at the
//! same places. With it, a process that was forked from the same parent has: two workers of a server put different
//! functions at one address, and the map of either covers all samples of the other. True if a process has such siblings
//! is not in a recording that was attached to it. So however well it fits, a file is used unasked only if its code is
//! where a process was sampled *and* something independent of addresses states that it is of this run; and only if
//! nothing else may be meant. A file that the user named needs no second sign, but is still used for one process only
//! if there is no other.

use super::account::Kind;
use crate::model::Pid;
use crate::model::process::SharedMemory;

/// Something beside addresses that states that a file is of the recorded process; the surest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sign {
    /// It was last written while the process was recorded, or just after.
    Written,
    /// The user named the file, or the directory that holds it.
    Asked,
    /// The times of its records are those of the process.
    Times,
    /// It is the very file that the process mapped as its marker.
    Inode,
}

impl Sign {
    /// Why a file was used, as the end of a sentence.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Asked => "its code is where the process was sampled",
            Self::Inode => "it is the file that the process had mapped, and its code is where the process was sampled",
            Self::Times => "its times are the process's, and its code is where the process was sampled",
            Self::Written => "it was written as the recording ended, and its code is where the process was sampled",
        }
    }
}

/// The facts about one file and one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fit {
    /// The file.
    pub(super) file: usize,
    pub(super) kind: Kind,
    pub(super) pid: Pid,
    /// Memory for JIT code that the process may share with others.
    pub(super) memory: Option<SharedMemory>,
    /// True if the process has no dump or map of its own.
    pub(super) is_wanted: bool,
    /// The number of the process's samples in JIT memory that are in code that the file reports.
    pub(super) covered: u64,
    /// The number of all of them.
    pub(super) samples: u64,
    /// True if the file's code lies in what the process had mapped.
    pub(super) is_mapped: bool,
    /// The best of the signs, if there is any.
    pub(super) sign: Option<Sign>,
    /// The sign that it belongs to another run.
    pub(super) against: Option<String>,
}

impl Fit {
    /// True if its addresses are the process's: most of the code was mapped, and half of the samples are in it.
    pub(super) fn has_addresses(&self) -> bool {
        self.is_mapped && self.covered > 0 && self.covered.saturating_mul(2) >= self.samples
    }
}

/// The outcome for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// Used for this process.
    Used(&'a Fit),
    /// It may be of this process, but is not used unasked.
    Offered(&'a Fit),
    /// It is of another run.
    Refused(&'a Fit),
    /// It has nothing to do with any of the processes.
    Unmatched,
}

/// Decides what becomes of a file. `all` has every file with every process, with those that have files of their own,
/// too: a file that may be theirs is not sure to be another's.
pub(super) fn judge(file: usize, all: &[Fit]) -> Verdict<'_> {
    let fits = |fit: &&Fit| fit.has_addresses() && fit.against.is_none();
    let own: Vec<&Fit> = all.iter().filter(|fit| fit.file == file).filter(fits).collect();
    let wanted = own.iter().copied().filter(|fit| fit.is_wanted);
    let Some(best) = wanted.max_by_key(|fit| (fit.sign, fit.covered, fit.pid)) else {
        let refused = all.iter().find(|fit| fit.file == file && fit.is_wanted && fit.has_addresses());
        return refused.filter(|_| own.is_empty()).map_or(Verdict::Unmatched, Verdict::Refused);
    };
    // The file that was mapped is that process's, whatever else fits.
    let is_sure = best.sign == Some(Sign::Inode);
    let mut rivals =
        all.iter().filter(fits).filter(|fit| (fit.pid, fit.kind) == (best.pid, best.kind) && fit.file != file);
    let alone = rivals.all(|rival| rival.sign.is_none() || is_sure && rival.sign != best.sign);
    // Processes that share the memory share the code.
    let is_one = own.iter().all(|fit| fit.pid == best.pid || fit.memory.is_some() && fit.memory == best.memory);
    match best.sign {
        Some(_) if alone && (is_one || is_sure) => Verdict::Used(best),
        _ => Verdict::Offered(best),
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
            against: None,
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
