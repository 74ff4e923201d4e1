//! Completes a `perf record` command with the options that JIT code needs. `record` runs the result, and other commands
//! print it.

use crate::model::mapping_kind::base_name;
use crate::model::perf_command::{PerfCommand, PerfOption};
use crate::model::shell;
use crate::runtimes::{Assignment, CorrectedCommand, Stacks};
use std::fmt;

/// The largest stack copy that perf supports, in bytes (perf-record(1)).
pub const LARGEST_COPY: u32 = 65528;

/// A `perf record` command that records a program, split into its parts.
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
    /// Takes an existing `perf record` command apart.
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

    /// Adds the option for the clock that jitdumps use, unless the command chooses a clock itself. Jitdumps state when
    /// code was at an address, which tells nothing about samples with times of another clock.
    #[must_use]
    pub fn with_clock(mut self) -> Self {
        if !self.perf().has(&["k", "clockid"]) {
            self.add(&["-k", "mono"]);
        }
        self
    }

    /// Makes perf record stacks in the way that the runtime needs. If the command already has an option for call
    /// chains, it stays, unless the runtime needs copies of stacks (`--call-graph dwarf`) and the option asks for
    /// something else.
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

    /// If this command makes perf copy stacks, changes it so that perf copies as much of each stack as it supports.
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

    /// Adds an option with a value, unless the command already has the option under one of `names`.
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

    /// This command as one of `jitgraft record`, for a shell, without the options that `jitgraft record` adds by
    /// itself. `runtime` is the runtime to state (`--runtime`), and `stacks` is how `jitgraft record` records stacks of
    /// this program by default. `None` if this command isn't one of `perf record`.
    pub fn to_jitgraft_record(&self, runtime: Option<&str>, stacks: Stacks) -> Option<String> {
        let is_perf_record = match &self.called[..] {
            [perf, record] => base_name(perf) == b"perf" && record == b"record",
            _ => false,
        };
        if !is_perf_record {
            return None;
        }
        // True for options that `jitgraft record` adds by itself.
        let is_added = |option: &PerfOption<'_>| match option.value {
            None => option.is(&["g"]) && stacks == Stacks::FramePointers,
            Some(b"dwarf") => option.is(&["call-graph"]) && stacks == Stacks::Copies,
            Some(b"mono") => option.is(&["k", "clockid"]),
            // `jitgraft record` samples at this frequency by default.
            Some(b"999") => option.is(&["F", "freq"]),
            // perf itself writes to this file by default.
            Some(b"perf.data") => option.is(&["o", "output"]),
            Some(_) => false,
        };
        let kept: Vec<PerfOption<'_>> = self.perf().each_option().filter(|option| !is_added(option)).collect();
        let mut words: Vec<Vec<u8>> = vec![b"jitgraft".to_vec(), b"record".to_vec()];
        if let Some(runtime) = runtime {
            words.extend([b"--runtime".to_vec(), runtime.into()]);
        }
        if kept.iter().any(is_also_option_of_jitgraft) {
            // jitgraft passes all options after the first unknown one on to perf. So an option that jitgraft doesn't
            // have (`-k`) comes first, and the options after it are perf's even if jitgraft has options of these names.
            words.extend([b"-k".to_vec(), b"mono".to_vec()]);
        }
        words.extend(kept.iter().flat_map(PerfOption::words));
        if !self.program.is_empty() {
            words.push(b"--".to_vec());
            words.extend_from_slice(&self.program);
        }
        let variables = self.variables.iter().map(|variable| variable.for_shell() + " ").collect::<String>();
        Some(variables + &shell::line(words.iter().map(|word| &word[..])))
    }

    /// The words to execute: perf with its options, and the program.
    pub fn words(&self) -> Vec<&[u8]> {
        let separator = if self.program.is_empty() { None } else { Some(&b"--"[..]) };
        let own = self.called.iter().chain(&self.options).map(|word| &word[..]);
        own.chain(separator).chain(self.program.iter().map(|word| &word[..])).collect()
    }
}

/// True for options of perf that jitgraft would take for its own, or would refuse.
fn is_also_option_of_jitgraft(option: &PerfOption<'_>) -> bool {
    option.is(&["q", "quiet", "v", "verbose", "threads"])
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
    fn what_jitgraft_record_adds_is_left_out() {
        use Stacks::{Copies, FramePointers};
        for (line, runtime, stacks, wanted) in [
            (
                "/usr/bin/perf record -k mono -F 999 -o perf.data -g -- node a.js",
                None,
                FramePointers,
                Some("jitgraft record -- node a.js"),
            ),
            (
                "perf record -k raw -F 99 -o a.data -g -- node a.js",
                None,
                FramePointers,
                Some("jitgraft record -k raw -F 99 -o a.data -- node a.js"),
            ),
            ("perf record -ag -k mono", None, FramePointers, Some("jitgraft record -a")),
            ("perf record --call-graph dwarf php a.php", None, Copies, Some("jitgraft record -- php a.php")),
            (
                "perf record --call-graph dwarf make",
                Some("node"),
                FramePointers,
                Some("jitgraft record --runtime node --call-graph dwarf -- make"),
            ),
            (
                "perf record -F max -g --threads -- app",
                None,
                FramePointers,
                Some("jitgraft record -k mono -F max --threads -- app"),
            ),
            ("perf mem record -g -- app", None, FramePointers, None),
        ] {
            let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let record = words.iter().position(|word| word == b"record").unwrap();
            let perf = PerfCommand::parse_options(&words[..=record], &words[record + 1..]);
            let shown = RecordCommand::from_perf(perf).to_jitgraft_record(runtime, stacks);
            assert_eq!(shown.as_deref(), wanted, "{line}");
        }
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
