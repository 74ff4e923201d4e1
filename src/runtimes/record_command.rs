//! Completes a `perf record` command, which is then run or printed.

use crate::model::perf_command::{PerfCommand, PerfOption};
use crate::model::shell;
use crate::runtimes::{Assignment, CorrectedCommand, Stacks};
use std::fmt;

/// The largest stack copy that perf supports, in bytes (perf-record(1)).
pub const LARGEST_COPY: u32 = 65528;

/// A command that records a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordCommand {
    /// Environment variables to set.
    pub variables: Vec<Assignment>,
    /// The words that start perf, usually `perf record`.
    pub called: Vec<Vec<u8>>,
    /// The options of perf.
    pub options: Vec<Vec<u8>>,
    /// The program to record and its arguments. Empty if perf records processes that are already running.
    pub program: Vec<Vec<u8>>,
}

impl RecordCommand {
    /// Starts with an existing command.
    pub fn from_perf(perf: PerfCommand<'_>) -> Self {
        let (called, options, program) = (perf.perf_words.to_vec(), perf.options.to_vec(), perf.program.to_vec());
        Self { variables: Vec::new(), called, options, program }
    }

    fn perf(&self) -> PerfCommand<'_> {
        PerfCommand { perf_words: &self.called, options: &self.options, program: &self.program, records_others: false }
    }

    fn add(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(|word| word.as_bytes().to_vec()));
    }

    /// Adds the option for the clock that jitdumps use, unless the command chooses a clock itself. Which code was at an
    /// address at a given time is only known if samples and code have times of the same clock.
    #[must_use]
    pub fn with_clock(mut self) -> Self {
        if !self.perf().has(&["k", "clockid"]) {
            self.add(&["-k", "mono"]);
        }
        self
    }

    /// Adds an option for recording call chains in the way that the runtime needs. An option that the command already
    /// has for call chains stays, except if the runtime needs copies of stacks (`--call-graph dwarf`) and the option is
    /// for something else.
    #[must_use]
    pub fn with_stacks(mut self, stacks: Stacks) -> Self {
        let copies_stacks = self.perf().value(&["call-graph"]).is_some_and(|how| how.starts_with(b"dwarf"));
        let has_call_chains = self.perf().has(&["g", "call-graph"]);
        if copies_stacks || (has_call_chains && stacks == Stacks::FramePointers) {
            return self;
        }
        let kept = self.perf().each_option().filter(|option| !option.is(&["g", "call-graph"]));
        self.options = kept.flat_map(|option| option.words()).collect();
        self.add(stacks.options());
        self
    }

    /// Makes perf copy as much of each stack as it can, if the command has the option that makes perf copy stacks.
    #[must_use]
    pub fn with_largest_copies(mut self) -> Self {
        let is_copying = |option: &PerfOption<'_>| {
            option.is(&["call-graph"]) && option.value.is_some_and(|how| how.starts_with(b"dwarf"))
        };
        if self.perf().each_option().any(|option| is_copying(&option)) {
            let kept = self.perf().each_option().filter(|option| !is_copying(option));
            self.options = kept.flat_map(|option| option.words()).collect();
            self.add(&["--call-graph", &format!("dwarf,{LARGEST_COPY}")]);
        }
        self
    }

    /// Adds an option with a value, unless the command already has the option under one of these names.
    #[must_use]
    pub fn with_option(mut self, names: &[&str], option: &str, value: &str) -> Self {
        if !self.perf().has(names) {
            self.add(&[option, value]);
        }
        self
    }

    /// Replaces the program by a corrected command.
    #[must_use]
    pub fn with_program(mut self, program: CorrectedCommand) -> Self {
        self.variables = program.variables;
        self.program = program.words;
        self
    }

    /// The words to execute: perf with its options, and the program.
    pub fn words(&self) -> Vec<&[u8]> {
        let separator = if self.program.is_empty() { None } else { Some(&b"--"[..]) };
        let own = self.called.iter().chain(&self.options).map(|word| &word[..]);
        own.chain(separator).chain(self.program.iter().map(|word| &word[..])).collect()
    }
}

impl fmt::Display for RecordCommand {
    /// Formats the command for a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for variable in &self.variables {
            write!(f, "{} ", variable.for_shell())?;
        }
        f.write_str(&shell::line(self.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(line: &str, stacks: Stacks) -> String {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        RecordCommand::from_perf(PerfCommand::parse(&words).unwrap()).with_clock().with_stacks(stacks).to_string()
    }

    #[test]
    fn only_what_is_missing_is_added() {
        use Stacks::{Copies, FramePointers};
        for (line, stacks, wanted) in [
            ("perf record node a.js", FramePointers, "perf record -k mono -g -- node a.js"),
            ("perf record -g -k mono -- node a.js", FramePointers, "perf record -g -k mono -- node a.js"),
            ("perf record -ag -F99 -- sleep 5", Copies, "perf record -a -F 99 -k mono --call-graph dwarf -- sleep 5"),
            (
                "perf record --call-graph dwarf,4096 -- x",
                FramePointers,
                "perf record --call-graph dwarf,4096 -k mono -- x",
            ),
            (
                "perf record --call-graph=fp --clockid=raw -p 7",
                Copies,
                "perf record --clockid=raw --call-graph dwarf -p 7",
            ),
        ] {
            let mut same: Vec<_> = corrected(line, stacks).split(' ').map(str::to_owned).collect();
            let mut words: Vec<_> = wanted.split(' ').map(str::to_owned).collect();
            same.sort();
            words.sort();
            assert_eq!(same, words, "{line}");
        }
    }
}
