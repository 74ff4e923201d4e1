//! The command line: flags as typed (clap; the doc comments are the help) become the checked options of a command.
//!
//! One file a command; flags that several commands share are in [`common`].

mod annotate;
mod callgrind;
mod collapse;
pub mod common;
mod convert;
mod defaults;
mod doctor;
mod export;
mod flamegraph;
mod formats;
mod inject;
mod input;
mod intervals;
mod merge;
mod record;
mod report;
mod runtimes;
mod script;
mod stats;
pub mod stderr;
mod times;
mod usage;
mod view;

use crate::error::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use common::Common;
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:\n  perf record -k mono -g -- node --perf-prof app.js\n  \
    jitgraft flamegraph perf.data -o flame.svg\n  jitgraft report\n  \
    jitgraft inject perf.data -o perf.jit.data && perf report -i perf.jit.data\n\n\
`jitgraft help inputs` says what is read and how it is found. JITGRAFT_OPTS holds flags that every command shall have that \
knows them, such as \"--jit-names pretty --colors js\"; those that are typed win.";

/// Repairs profiles of programs with just-in-time compiled code, offline.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100, help_expected = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Each command's arguments know how to run: `run(self, job) -> Result<Outcome>`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Runs perf record so that JIT code has names: adds what the runtime needs, and shows the command
    Record(Box<record::RecordArgs>),
    /// Merges JIT code into perf.data, so that perf names it; gives pprof and Firefox profiles names for bare addresses
    Inject(Box<inject::InjectArgs>),
    /// Names the JIT code in callgrind.out (for KCachegrind), and in reports of massif, DHAT, memcheck, helgrind
    Callgrind(Box<callgrind::CallgrindArgs>),
    /// Folds stacks: any profile → one line a stack, as inferno-collapse-perf writes them
    Collapse(Box<collapse::CollapseArgs>),
    /// Draws a flame graph (SVG) of any profile
    Flamegraph(Box<flamegraph::FlamegraphArgs>),
    /// Writes any profile as one page for a browser: time, flame graph, functions, machine code
    View(Box<view::ViewArgs>),
    /// Lists the hottest functions of any profile
    Report(Box<report::ReportArgs>),
    /// Lists hot code, instruction by instruction, straight from perf.data and the dumps, or from callgrind.out
    Annotate(Box<annotate::AnnotateArgs>),
    /// Prints a recording as perf script does; or names the frames of JIT code in such a text
    Script(Box<script::ScriptArgs>),
    /// Tells what took the time: measureme profiles by label, traces by span, gaps and what spans did
    Stats(Box<stats::StatsArgs>),
    /// Writes any profile in another format
    Export(Box<export::ExportArgs>),
    /// Adds up any number of profiles: thousands of folded stacks or pprof files → one
    Merge(Box<merge::MergeArgs>),
    /// Says what is wrong with a recording, a running process or a callgrind file, and what to do
    Doctor(Box<doctor::DoctorArgs>),
    /// Tells how each runtime is made to leave the names of its code, and what stays without one
    Runtimes(runtimes::RuntimesArgs),
    /// Lists the formats that are read and written
    Formats(formats::FormatsArgs),
    /// Says what is read and how it is found
    #[command(long_about = usage::inputs(), help_template = "{about-with-newline}")]
    Inputs(usage::InputsArgs),
    /// Writes completions of commands and flags for a shell to standard output
    Completions(usage::CompletionsArgs),
    /// Writes manual pages into a directory
    Man(usage::ManArgs),
}

impl Cli {
    /// From the words of the command line and the flags in `JITGRAFT_OPTS`.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        // What is typed later wins, as with perf.
        let mut command = Self::command().mut_subcommands(|command| command.args_override_self(true));
        let defaults = std::env::var(defaults::VARIABLE).unwrap_or_default();
        let words = defaults::with_defaults(&command, words.into_iter().collect(), &defaults)?;
        let matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    /// Runs the command; says on stderr what it has to say.
    pub fn run(self) -> Result<ExitCode> {
        let job = self.common.job()?;
        let outcome = match self.command {
            Command::Record(args) => args.run(&job)?,
            Command::Inject(args) => args.run(&job)?,
            Command::Callgrind(args) => args.run(&job)?,
            Command::Collapse(args) => args.run(&job)?,
            Command::Flamegraph(args) => args.run(&job)?,
            Command::View(args) => args.run(&job)?,
            Command::Report(args) => args.run(&job)?,
            Command::Annotate(args) => args.run(&job)?,
            Command::Script(args) => args.run(&job)?,
            Command::Stats(args) => args.run(&job)?,
            Command::Export(args) => args.run(&job)?,
            Command::Merge(args) => args.run(&job)?,
            Command::Doctor(args) => args.run(&job)?,
            Command::Runtimes(args) => args.run(&job)?,
            Command::Formats(args) => args.run(&job)?,
            Command::Inputs(args) => args.run(Self::command())?,
            Command::Completions(args) => args.run(Self::command())?,
            Command::Man(args) => args.run(Self::command())?,
        };
        Ok(self.common.finish(&job, &outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
