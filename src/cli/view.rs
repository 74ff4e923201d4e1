//! The flags of `jitgraft view`.

use super::input::{CompareArgs, InputArgs};
use super::output::check_name;
use crate::commands::view::{self, ViewOptions};
use crate::contract::format::Detail;
use crate::error::Result;
use crate::io::{InPath, OutPath};
use crate::pipeline::sink::Naming;
use crate::pipeline::{Job, Outcome};
use crate::runtimes::jit_names::JitNames;
use clap::Args;
use std::path::PathBuf;

/// Maximum number of spans that the page keeps one by one, for inputs that contain spans. Each of them takes about 8
/// bytes.
const MOST_STRETCHES: usize = 2_000_000;

/// The number of code ranges that are listed by default. In most recordings, 500 ranges have four of five samples in
/// JIT code, and the page stays small.
const HOTTEST: usize = 500;

/// Flags of `view`.
#[derive(Debug, Args)]
#[command(after_help = "The page is one file that needs no network.\n\n\
    Examples:\n  jitgraft view perf.data\n  jitgraft view perf.data -o page.html --no-open\n  \
    jitgraft view --diff before.data after.data")]
pub(super) struct ViewArgs {
    /// Output file [default: a file in a new private directory; its path is printed]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compare with this earlier profile
    #[arg(long, value_name = "BEFORE")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    compare: CompareArgs,
    /// Title [default: the recorded command]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Number of hottest code blocks to include as machine code; 0: none
    ///
    /// A code block is the machine code of one function. If a function was compiled several times, each version counts.
    #[arg(long, value_name = "N", default_value_t = HOTTEST)]
    code: usize,
    /// Include source text from source maps in the page
    ///
    /// Make sure that you may share this text.
    #[arg(long, hide_short_help = true)]
    source_text: bool,
    /// Do not start a browser
    ///
    /// No browser is started without a display, or if standard output is not a terminal.
    #[arg(long)]
    no_open: bool,
    // Keep this the last field: its groups of flags have headings, and help would list any later flag under the last
    // heading.
    #[command(flatten)]
    input: InputArgs,
}

impl ViewArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let output = self.output.map(OutPath::from);
        if let Some(output) = &output {
            check_name(output, "view", &["html", "htm"])?;
        }
        // By default, all tiers of a function share a name, and names that the input already had stay as they are.
        let usual = Naming { resolved: JitNames::Merged, given: JitNames::Raw };
        let jit_names = self.input.naming(usual);
        // `true`: the page can group lanes by CPU.
        let (inputs, mut load) = self.input.into_options(Detail::Lines, true);
        load.jit_names = jit_names;
        load.sources.source_maps.usual = true;
        load.sources.source_maps.text = self.source_text;
        load.read.calls.timed = Some(MOST_STRETCHES);
        let options = ViewOptions {
            inputs,
            output,
            load,
            before: self.diff.map(InPath::from),
            compare: self.compare.options(),
            title: self.title,
            code: self.code,
            open: !self.no_open,
        };
        view::run(&options, job)
    }
}
