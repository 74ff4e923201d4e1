//! What is known of a runtime.

use super::shape::{Shape, TierRule};
use crate::model::tier::Tier;

/// A runtime that compiles while it runs.
#[derive(Debug)]
pub struct Runtime {
    /// What people call it.
    pub name: &'static str,
    /// Programs that are it: whole base names; one that ends in `*` is a beginning.
    pub programs: &'static [&'static str],
    /// Other files that only it maps, spelled likewise.
    pub libraries: &'static [&'static str],
    /// What makes it tell of its code, the best first; empty if nothing does.
    pub switches: &'static [Switch],
    /// How it is run under valgrind so that `jitgraft callgrind` finds names; `None` where nobody tried.
    pub valgrind: Option<&'static str>,
    /// What `perf record` is to be asked for beside the events.
    pub perf_record: &'static str,
    /// What interprets its programs, where that is seen in profiles.
    pub interpreter: Option<Interpreter>,
    /// What has no name even so; empty if nothing is known of that.
    pub unnamed: &'static str,
    /// Names that no other runtime writes: they tell the tier wherever JIT code has them. The first match holds.
    pub marked_names: &'static [TierRule],
    /// Names that tell the tier only where the process is known to run this runtime.
    pub plain_names: &'static [TierRule],
    /// Names that tell nothing, though others of no shape of their own do.
    pub untold_names: &'static [Shape],
    /// The tier of all its other code, if there is but one.
    pub other_names: Option<Tier>,
    /// Names as it spells them, and the tier that each tells.
    pub examples: &'static [(&'static str, Option<Tier>)],
}

/// What most entries leave open.
pub(super) const PLAIN: Runtime = Runtime {
    name: "",
    programs: &[],
    libraries: &[],
    switches: &[],
    valgrind: None,
    perf_record: "-k mono -g",
    interpreter: None,
    unnamed: "",
    marked_names: &[],
    plain_names: &[],
    untold_names: &[],
    other_names: None,
    examples: &[],
};

/// What a profile has where a runtime interprets.
#[derive(Debug)]
pub struct Interpreter {
    /// Functions that stand for all that is interpreted, whole names.
    pub functions: &'static [&'static str],
    /// Whether each call of an interpreted function has a frame of this name; else one is for many calls, and tells
    /// something only where nothing else of the program is seen.
    pub frame_a_call: bool,
    /// How interpreted functions get names of their own, or why they cannot have them.
    pub remedy: &'static str,
    /// The word of a command line that gives them these; empty if none does.
    pub word: &'static str,
}

/// Something to switch on, and what it leaves.
#[derive(Debug)]
pub struct Switch {
    /// What to do: `run node with --perf-prof`; of a second one, what to do instead: `with --perf-basic-prof`.
    pub how: &'static str,
    /// The word of the command line or the environment by which a running process shows it; empty if none does.
    pub word: &'static str,
    /// The files that it writes then. `PID` and `TID` stand for numbers, `DIR` for a directory that one names, `*` for
    /// any part of a name.
    pub leaves: &'static [&'static str],
}

impl Switch {
    /// Whether a process shows it that was started with these words, each behind a blank.
    pub fn is_shown_by(&self, words: &str) -> bool {
        let ends =
            |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '_'));
        let mut found = words.match_indices(self.word).map(|(at, word)| &words[at + word.len()..]);
        !self.word.is_empty() && found.any(|rest| self.word.ends_with('=') || ends(rest))
    }
}

impl Runtime {
    /// How it is made to leave names; `None` if it cannot be.
    pub fn advice(&self) -> Option<String> {
        let ways: Vec<_> =
            self.switches.iter().map(|way| format!("{} (leaves {})", way.how, way.leaves.join(", "))).collect();
        (!ways.is_empty()).then(|| ways.join(", or "))
    }

    /// Whether a function is its interpreter.
    pub fn interprets_in(&self, function: &[u8]) -> bool {
        let is = |interpreter: &Interpreter| interpreter.functions.iter().any(|own| own.as_bytes() == function);
        self.interpreter.as_ref().is_some_and(is)
    }

    pub(super) fn is_program(&self, name: &[u8]) -> bool {
        self.programs.iter().any(|program| is(program, name))
    }

    pub(super) fn maps(&self, name: &[u8]) -> bool {
        self.is_program(name) || self.libraries.iter().any(|library| is(library, name))
    }
}

fn is(pattern: &str, name: &[u8]) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start.as_bytes()),
        None => name == pattern.as_bytes(),
    }
}
