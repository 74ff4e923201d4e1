//! `jitgraft merge`

use super::convert::{Convert, ConvertArgs};
use super::export::writable;
use crate::commands::merge::{self, MergeOptions};
use crate::error::Result;
use crate::pipeline::{Job, Outcome};
use clap::Args;

/// Flags of `merge`.
#[derive(Debug, Args)]
#[command(
    after_help = "A directory stands for all files in it and below, hidden ones (.* and _*) left out; @FILE for the \
    paths that FILE lists, one a line, @- for those that standard input lists. What cannot be read is skipped and told. \
    Events of one name and unit are added; others are kept apart. Threads of one name are one: --by pid, tid or cpu \
    keeps the numbers, which mean something where all inputs are of one machine.\n\n\
    Examples:\n  jitgraft merge fleet/ -o fleet.folded\n  \
    jitgraft merge *.pb.gz -o day.pb.gz\n  \
    find fleet -name '*.folded' -mtime -1 -print0 | jitgraft merge @- -o day.svg"
)]
pub(super) struct MergeArgs {
    /// The format to write [default: what the output's name tells, as with export, else pprof for pprof, folded for all
    /// else]
    #[arg(long, value_name = "FORMAT", value_parser = writable())]
    to: Option<String>,
    #[command(flatten)]
    convert: ConvertArgs,
}

impl MergeArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let convert = self.convert.checked();
        let to = self.to.or_else(|| convert.told().map(|format| format.name.to_owned()));
        let Convert { inputs, output, load, write } = convert;
        merge::run(&MergeOptions { inputs, output, to, load, write }, job)
    }
}
