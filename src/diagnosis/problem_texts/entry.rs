//! The texts about every problem.

/// The texts about a problem.
pub(crate) struct ProblemText {
    /// The key for programs; these words stay.
    pub(crate) key: &'static str,
    /// The line about the key in `docs/doctor.md`.
    pub(crate) about: &'static str,
    /// The share of the recording on, in percent, from which it is a finding; below, it is mentioned by the way.
    pub(crate) threshold: f64,
    /// The cause.
    pub(crate) cause: String,
    /// The remedy, besides recording again with a corrected command.
    pub(crate) remedy: String,
}

/// The threshold for problems that nearly always matter.
pub(super) const ANY: f64 = 1.0;

/// The threshold for a library that few frames are in.
pub(super) const SOME: f64 = 8.0;

/// The threshold for a program with other things to do.
pub(super) const PART: f64 = 10.0;

/// The threshold for things that some recordings always have: leaf functions, libraries without frame pointers, threads
/// that begin in assembler.
pub(super) const ORDINARY: f64 = 15.0;

/// The threshold for things that nobody can mend, or that runtimes have however long they run: not worth a finding
/// unless it is much.
pub(super) const MUCH: f64 = 25.0;
