//! The command line. clap parses the flags (their doc comments are the help texts), and each command turns them into
//! its checked options.
//!
//! There is one file per command. Flags that several commands share are in [`common`].

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
#[cfg(test)]
mod help_tests;
mod inject;
mod input;
mod intervals;
mod merge;
mod output;
mod pack;
mod record;
mod removed;
mod report;
mod runtimes;
mod script;
mod slips;
mod stats;
pub mod stderr;
mod summary;
mod times;
mod usage;
mod view;

use crate::error::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use common::Common;
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:\n  jitgraft record -- node app.js       # or java Main, php page.php …: writes perf.data\n  \
    jitgraft flamegraph -o flame.svg     # reads perf.data\n  \
    jitgraft view                        # the same as a page with a timeline\n  \
    jitgraft doctor                      # if names are missing\n  \
    jitgraft inject perf.data -o perf.jit.data && perf report -i perf.jit.data\n\n\
`jitgraft help inputs` explains how inputs, dumps and maps are found. JITGRAFT_OPTS holds default flags, such as \
\"--jit-names pretty\". Each command uses the default flags that it supports; flags on the command line override them.";

/// Repair and show profiles of programs with just-in-time compiled code
#[derive(Debug, Parser)]
#[command(version, about = "Repair and show profiles of programs with just-in-time compiled code", max_term_width = 100, help_expected = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// The arguments of each command have a method that runs it: `run(self, job) -> Result<Outcome>`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run perf record with the flags your runtime needs
    Record(Box<record::RecordArgs>),
    /// Merge JIT code into perf.data and other profiles
    Inject(Box<inject::InjectArgs>),
    /// Name JIT code in callgrind.out and other valgrind reports
    Callgrind(Box<callgrind::CallgrindArgs>),
    /// Fold the stacks of any profile, like inferno-collapse-perf
    Collapse(Box<collapse::CollapseArgs>),
    /// Draw a flame graph (SVG) of any profile
    Flamegraph(Box<flamegraph::FlamegraphArgs>),
    /// Write any profile as a page: flame graph, timeline, code
    View(Box<view::ViewArgs>),
    /// List the hottest functions of any profile
    Report(Box<report::ReportArgs>),
    /// Show hot code by instruction or source line
    Annotate(Box<annotate::AnnotateArgs>),
    /// Print a recording like perf script, or name JIT frames in it
    Script(Box<script::ScriptArgs>),
    /// Summarize measureme profiles and traces: time per label, gaps
    Stats(Box<stats::StatsArgs>),
    /// Write any profile in another format
    Export(Box<export::ExportArgs>),
    /// Add up any number of profiles
    Merge(Box<merge::MergeArgs>),
    /// Pack a recording with its symbols and binaries
    Pack(Box<pack::PackArgs>),
    /// Find out why frames are unnamed and what to do about it
    Doctor(Box<doctor::DoctorArgs>),
    /// Explain how to make each runtime write names
    Runtimes(runtimes::RuntimesArgs),
    /// List the formats that can be read and written
    Formats(formats::FormatsArgs),
    /// Summarize a profile in five lines (same as `jitgraft FILE`)
    #[command(hide = true)]
    Summary(Box<summary::SummaryArgs>),
    /// Explain how inputs, dumps and maps are found
    #[command(long_about = usage::inputs(), help_template = "{about-with-newline}")]
    Inputs(usage::InputsArgs),
    /// Print shell completions
    Completions(usage::CompletionsArgs),
    /// Write manual pages to a directory
    Man(usage::ManArgs),
}

impl Cli {
    /// Parses the words of the command line, preceded by the flags of `JITGRAFT_OPTS`.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        // If a flag is repeated, the last one counts, as in perf. A negative number counts as a value rather than a
        // flag, so that the error message is about the value.
        let mut command = Self::command()
            .mut_args(allow_negative_numbers)
            .mut_subcommands(|command| command.args_override_self(true).mut_args(allow_negative_numbers));
        let defaults = std::env::var(defaults::VARIABLE).unwrap_or_default();
        let words = summary::insert_command(&command, words.into_iter().collect());
        let typed = words.clone();
        let words = defaults::insert_defaults(&command, words, &defaults)?;
        let matches = command
            .try_get_matches_from_mut(words)
            .map_err(|error| defaults::explain(&command, typed, error))
            .map_err(removed::explain)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    /// Describes the whole command line.
    pub fn describe() -> clap::Command {
        Self::command()
    }

    /// Runs the command, and prints its summary and warnings to stderr.
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
            Command::Pack(args) => args.run(&job)?,
            Command::Doctor(args) => args.run(&job)?,
            Command::Runtimes(args) => args.run(&job)?,
            Command::Formats(args) => args.run(&job)?,
            Command::Summary(args) => args.run(&job, &Self::command())?,
            Command::Inputs(args) => args.run(Self::command())?,
            Command::Completions(args) => args.run(Self::command())?,
            Command::Man(args) => args.run(Self::command())?,
        };
        Ok(self.common.finish(&job, &outcome))
    }
}

fn allow_negative_numbers(arg: clap::Arg) -> clap::Arg {
    let takes_value = !arg.is_positional() && arg.get_action().takes_values();
    if takes_value { arg.allow_negative_numbers(true) } else { arg }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
