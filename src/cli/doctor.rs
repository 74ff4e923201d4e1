//! The flags of `jitgraft doctor`.

use super::common::one_of;
use super::input::InputArgs;
use super::report::{layout_of, layouts};
use crate::commands::doctor::{self, DoctorOptions};
use crate::contract::format::Detail;
use crate::error::Result;
use crate::pipeline::table::Layout;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft doctor perf.data\n  jitgraft doctor 4711 # a running process\n  \
    jitgraft doctor callgrind.out.4711\n  jitgraft doctor --exit-code -q perf.data; test $? = 1 && echo there are findings\n  \
    jitgraft doctor --jitdump dumps/ --to json perf.data -o why.json")]
pub(super) struct DoctorArgs {
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// Format of the findings [default: by the output's name, else text]
    #[arg(long, visible_alias = "format", value_parser = one_of(layouts()), value_name = "FORMAT")]
    to: Option<Layout>,
    /// Exit with status 1 if there are findings, or 2 if INPUT cannot be examined
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    input: InputArgs,
}

impl DoctorArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        // `false`: the findings don't distinguish CPUs.
        let (inputs, mut load) = self.input.into_options(Detail::Names, false);
        load.sources.source_maps.usual = true;
        let (recording, output, exit_code) = (load.recording(), self.output.into(), self.exit_code);
        let layout = layout_of("doctor", self.to, &output)?;
        let ran = doctor::run(&DoctorOptions { inputs, output, recording, layout, exit_code }, job);
        // With `--exit-code`, status 1 means that there are findings, so failures need another status.
        ran.map_err(|error| if exit_code { error.into_usage() } else { error })
    }
}
