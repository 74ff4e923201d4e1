//! The texts about a recording as a whole.

use super::entry::{ANY, MUCH, ProblemText};
use crate::model::Addr;
use crate::model::printable::readable;

pub(super) fn no_samples() -> ProblemText {
    ProblemText {
        key: "no-samples",
        about: "nothing was sampled",
        threshold: ANY,
        cause: "it contains no samples".to_owned(),
        remedy:
            "record for longer, while the program is busy (perf record -a records all processes), or another event: -e \
                 cpu-clock counts everywhere"
                .to_owned(),
    }
}

pub(super) fn few_samples(samples: u64) -> ProblemText {
    ProblemText {
        key: "few-samples",
        about: "there are too few samples: shares are chance",
        threshold: ANY,
        cause: format!("there are only {samples} samples in it: shares are chance"),
        remedy: "record longer, or more often: perf record -F 999".to_owned(),
    }
}

pub(super) fn damaged(why: &str) -> ProblemText {
    ProblemText {
        key: "recording-damaged",
        about: "the recording is damaged, or its end is missing",
        threshold: ANY,
        cause: format!("it is damaged: {}", readable(why.as_bytes())),
        remedy: "let perf record end by itself (stop it by Ctrl-C, or kill -INT), with room on the disk; copy the whole file"
            .to_owned(),
    }
}

pub(super) fn lost(lost: u64) -> ProblemText {
    ProblemText {
        key: "samples-lost",
        about: "perf lost samples: it did not keep up",
        threshold: ANY,
        cause: format!("perf record did not keep up and lost {lost} samples"),
        remedy: "record less: a lower -F, smaller copies (--call-graph dwarf,8192); or give perf more room: -m 1024"
            .to_owned(),
    }
}

pub(super) fn no_call_chains() -> ProblemText {
    ProblemText {
        key: "no-call-chains",
        about: "no call chains were recorded",
        threshold: ANY,
        cause: "no call chains were recorded: only the innermost functions are known".to_owned(),
        remedy: "record with perf record -g, or --call-graph dwarf".to_owned(),
    }
}

pub(super) fn kernel(hidden: bool) -> ProblemText {
    let (cause, remedy) = if hidden {
        (
            "the kernel's functions have no names: perf record was not shown where the kernel is",
            "record as root, with sysctl kernel.kptr_restrict=0",
        )
    } else {
        (
            "the recorded kernel's symbols are not known here",
            "give --kallsyms a copy of the recorded machine's /proc/kallsyms, read by root (kernel.kptr_restrict hides its \
             addresses from others)",
        )
    };
    ProblemText {
        key: "kernel-symbols",
        about: "the kernel's functions have no names",
        threshold: ANY,
        cause: cause.to_owned(),
        remedy: remedy.to_owned(),
    }
}

pub(super) fn guest() -> ProblemText {
    ProblemText {
        key: "guest",
        about: "code of a virtual machine's guest ran",
        threshold: MUCH,
        cause: "code of a virtual machine's guest ran".to_owned(),
        remedy: "its symbols are inside the guest: record there".to_owned(),
    }
}

pub(super) fn nowhere(example: Option<Addr>) -> ProblemText {
    let example = example.map_or_else(String::new, |addr| format!(" (such as {:#x})", addr.0));
    ProblemText {
        key: "nowhere",
        about: "frames are at addresses where nothing was mapped",
        threshold: MUCH,
        cause: format!("addresses where nothing was mapped{example}"),
        remedy: "no return addresses, most likely, or memory that was never reported: nothing can name these"
            .to_owned(),
    }
}
