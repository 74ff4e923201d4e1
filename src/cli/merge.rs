//! The flags of `jitgraft merge`.

use super::convert::{Convert, ConvertArgs};
use super::export::writable;
use crate::commands::merge::{self, MergeOptions};
use crate::error::Result;
use crate::pipeline::{Job, Outcome};
use clap::Args;

/// Flags of `merge`.
#[derive(Debug, Args)]
#[command(
    after_help = "A directory stands for all files below it, except hidden ones (.* and _*). @FILE stands for the \
    paths listed in FILE, one per line or separated by NUL bytes; @- reads the list from standard input. Inputs that cannot be read are skipped \
    with a warning. Events with the same name and unit are added up; others stay separate. Threads with the same name \
    are merged; --by pid, tid or cpu keeps them separate.\n\n\
    Examples:\n  jitgraft merge fleet/ -o fleet.folded\n  \
    jitgraft merge *.pb.gz -o day.pb.gz\n  \
    find fleet -name '*.folded' -mtime -1 -print0 | jitgraft merge @- -o day.svg"
)]
pub(super) struct MergeArgs {
    /// Format [default: by the output's name, else pprof if the first input is pprof, else folded]
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_parser = writable())]
    to: Option<String>,
    #[command(flatten)]
    convert: ConvertArgs,
}

impl MergeArgs {
    /// Finds the output format, by the flag or the output's name, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        if self.to.is_none() {
            self.convert.check_name("merge")?;
        }
        let convert = self.convert.into_options();
        let to = self.to.or_else(|| convert.output_format().map(|format| format.name.to_owned()));
        let Convert { inputs, output, load, write } = convert;
        merge::run(&MergeOptions { inputs, output, to, load, write }, job)
    }
}
