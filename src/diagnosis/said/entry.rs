//! What there is to be said of every problem.

/// What is said of a problem.
pub(crate) struct Said {
    /// What programs know it by; these words stay.
    pub(crate) key: &'static str,
    /// What `docs/doctor.md` says of the key.
    pub(crate) about: &'static str,
    /// From which part of the recording on, in percent, it is a finding; below, it is told by the way.
    pub(crate) threshold: f64,
    /// What is wrong.
    pub(crate) cause: String,
    /// What to do, besides recording again with a corrected command.
    pub(crate) remedy: String,
}

/// Of what nearly always matters.
pub(super) const ANY: f64 = 1.0;

/// Of a library that few frames are in.
pub(super) const SOME: f64 = 8.0;

/// Of a program with other things to do.
pub(super) const PART: f64 = 10.0;

/// Of what some recordings always have: leaf functions, libraries without frame pointers, threads that begin in assembler.
pub(super) const ORDINARY: f64 = 15.0;

/// Of what nobody can mend, or what runtimes have however long they run: not worth a finding unless it is much.
pub(super) const MUCH: f64 = 25.0;
