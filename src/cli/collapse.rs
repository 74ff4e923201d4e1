//! The flags of `jitgraft collapse`.

use super::convert::{Convert, ConvertArgs};
use crate::commands::collapse::{self, CollapseOptions};
use crate::commands::export;
use crate::error::Result;
use crate::pipeline::{Job, Outcome};
use clap::Args;

/// Flags of `collapse`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft collapse perf.data | inferno-flamegraph > flame.svg\n  \
    jitgraft collapse --annotate jit,kernel --by pid perf.data -o out.folded\n  \
    zcat old.txt.gz | jitgraft collapse\n\n\
    If -o has the extension of another format (out.svg, out.csv, out.pb.gz), that format is written; see export --help")]
pub(super) struct CollapseArgs {
    #[command(flatten)]
    convert: ConvertArgs,
}

impl CollapseArgs {
    /// Runs the command, or `export` if the output's name implies another format.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        self.convert.check_name("collapse")?;
        if let Some(format) = self.convert.format_instead_of("folded") {
            return export::run(&self.convert.into_options().export_to(format), job);
        }
        let Convert { inputs, output, load, write } = self.convert.into_options();
        collapse::run(&CollapseOptions { inputs, output, load, write }, job)
    }
}
