//! A finding: what is wrong, how much of the recording it affects, why, and what the user can do.

use super::kind::FindingKind;
use super::process::ExaminedProcess;
use crate::runtimes::Switch;

/// A placeholder in the text of a cause, which is replaced by a description of the finding's process. It is a control
/// character: names in causes are escaped, so none of them can contain it.
pub(super) const PROCESS: char = '\u{1}';

/// How much of a recording a finding affects.
#[derive(Debug, Clone, Copy, Default)]
pub struct Share {
    /// The percentage of samples that the problem affects. It is what users see.
    pub percent: f64,
    /// How much of the recording the problem distorts, in percent. It decides the order of findings, and which are
    /// minor. A sample counts fully if its stack breaks off, and half if only its outermost frames are missing.
    /// Otherwise it counts by the share of its frames that have no name.
    pub impact: f64,
    /// The number of samples that the problem affects.
    pub samples: u64,
    /// The number of frames that have no name because of the problem.
    pub frames: u64,
}

impl Share {
    /// A share of which only the percentage is known, not the numbers of samples and frames.
    pub(super) fn from_percent(percent: f64) -> Self {
        Self { percent, impact: percent, samples: 0, frames: 0 }
    }
}

/// The part of the recorded command that has to change to solve a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The clock of the recording (`perf record -k`).
    Clock,
    /// How stacks are recorded (`perf record --call-graph`).
    Stacks,
    /// The size of stack copies (`perf record --call-graph dwarf,BYTES`).
    CopySize,
    /// The options or environment variables of the recorded program.
    Program,
    /// The options or environment variables that make the recorded program write a jitdump with unwinding information,
    /// which is needed to find the callers of JIT code in copied stacks.
    Callers,
}

/// The frames that a finding concerns, so that the page of `view` can highlight them.
#[derive(Debug, Clone)]
pub enum Highlight {
    /// None, because the finding isn't about particular frames.
    Nothing,
    /// Frames without a name in these files.
    UnnamedInFiles(Vec<String>),
    /// Frames without a name at addresses where no code was mapped.
    UnnamedNowhere,
    /// Frames without a name in the process's memory for JIT code.
    UnnamedJit,
    /// Frames of the kernel without a name.
    UnnamedKernel,
    /// Frames without a name in ELF images of the process's JIT code.
    UnnamedImages,
    /// Frames in the process's JIT code.
    Jit,
    /// Frames of the functions with these names, which are the interpreter in the process's runtime.
    Interpreter(&'static [&'static str]),
    /// The outermost frames of stacks that end too early.
    StackEnds {
        /// Highlight stacks that end in these files.
        files: Vec<String>,
        /// True to highlight stacks that end in JIT code, too.
        in_jit: bool,
    },
    /// The outermost frames of the process's stacks that end too early, whatever code they end in.
    AllStackEnds,
}

/// A problem, and what can be done about it.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The kind of problem.
    pub kind: FindingKind,
    /// How much of the recording the problem affects.
    pub share: Share,
    /// The process with the problem. If several processes have it, the one that is affected most. `None` if the problem
    /// doesn't belong to a process.
    pub process: Option<ExaminedProcess>,
    /// What happened in this recording, with the placeholder [`PROCESS`] for the process.
    cause: String,
    /// What the user can do, apart from running the corrected command.
    pub remedy: String,
    /// The part of the recorded command to change for a new recording without this problem. `None` if a new recording
    /// would have the same problem, or if changing the command isn't enough.
    pub(super) change: Option<Change>,
    /// A shell command that records the program again without the problem. `None` if a new recording would have the
    /// same problem, or if no such command is known.
    pub command: Option<String>,
    /// True if `remedy` says nothing but how to record again. Once `command` is set, a description of the command's
    /// effect replaces it.
    pub(super) is_solved_by_command: bool,
    /// The frames that the finding concerns.
    pub highlight: Highlight,
    /// A switch in the recorded command that would have prevented the problem, but reached only another process.
    pub(super) lost_switch: Option<&'static Switch>,
}

impl Finding {
    /// Creates a finding about the recording as a whole, for which no new command is proposed. Methods such as
    /// `with_process` add the rest.
    pub(super) fn new(kind: FindingKind, share: Share, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind,
            share,
            process: None,
            cause: cause.into(),
            remedy: remedy.into(),
            change: None,
            command: None,
            is_solved_by_command: false,
            highlight: Highlight::Nothing,
            lost_switch: None,
        }
    }

    /// Sets the process that the problem belongs to.
    #[must_use]
    pub(super) fn with_process(self, process: &ExaminedProcess) -> Self {
        Self { process: Some(process.clone()), ..self }
    }

    /// Sets the part of the recorded command to change; `None` if no change helps.
    #[must_use]
    pub(super) fn with_change(self, change: Option<Change>) -> Self {
        Self { change, ..self }
    }

    /// Like [`Self::with_change`], for a finding whose remedy only says how to record again: a corrected command
    /// replaces this remedy.
    #[must_use]
    pub(super) fn solved_by_change(self, change: Option<Change>) -> Self {
        Self { change, is_solved_by_command: true, ..self }
    }

    /// Sets the frames that the finding concerns.
    #[must_use]
    pub(super) fn with_highlight(self, highlight: Highlight) -> Self {
        Self { highlight, ..self }
    }

    /// Sets the switch in the recorded command that would have prevented the problem, but reached only another process.
    #[must_use]
    pub(super) fn with_lost_switch(self, lost_switch: Option<&'static Switch>) -> Self {
        Self { lost_switch, ..self }
    }

    /// What happened in this recording, with the process described by its ID, name and runtime.
    pub fn cause(&self) -> String {
        match &self.process {
            Some(process) => self.cause.replace(PROCESS, &process.describe()),
            None => self.cause.clone(),
        }
    }

    /// True if the problem's impact is large enough to be worth reporting.
    pub fn is_significant(&self) -> bool {
        self.share.impact >= self.kind.threshold()
    }

    /// Merges another finding of the same kind into this one, and adds their shares. The texts and the process of the
    /// finding with the larger impact are kept; the other processes are only counted (`others`).
    pub(super) fn merge(&mut self, mut other: Self) {
        let share = Share {
            percent: (self.share.percent + other.share.percent).min(100.0),
            impact: (self.share.impact + other.share.impact).min(100.0),
            samples: self.share.samples + other.share.samples,
            frames: self.share.frames + other.share.frames,
        };
        let count_others = |finding: &Self| finding.process.as_ref().map_or(0, |process| process.others);
        // The merged finding names one process and counts the others: those that either finding counts, and the process
        // of the finding that is dropped.
        let others = count_others(self) + count_others(&other) + 1;
        if other.share.impact > self.share.impact {
            std::mem::swap(self, &mut other);
        }
        self.share = share;
        if let Some(process) = &mut self.process {
            process.others = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::wording::printable;
    use crate::model::Pid;

    #[test]
    fn only_the_placeholder_stands_for_the_process() {
        let process = ExaminedProcess {
            pid: Pid(7),
            comm: format!("a{PROCESS}"),
            runtime: None,
            others: 2,
            advice: None,
            settable_switch: None,
            too_old: None,
        };
        let file = printable(&format!("/tmp/{PROCESS}.map"));
        let finding = Finding::new(FindingKind::SourceEmpty, Share::default(), format!("{file} of {PROCESS}"), "");
        let cause = finding.with_process(&process).cause();
        assert_eq!(cause.matches("process 7 and 2 more").count(), 1, "{cause}");
        assert!(!cause.contains(PROCESS), "{cause}");
    }
}
