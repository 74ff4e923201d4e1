//! `jitgraft collapse`

use super::convert::{Convert, ConvertArgs};
use crate::commands::collapse::{self, CollapseOptions};
use crate::error::Result;
use crate::pipeline::{Job, Outcome};
use clap::Args;

/// Flags of `collapse`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft collapse perf.data | inferno-flamegraph > flame.svg\n  \
    jitgraft collapse --annotate jit,kernel --by pid perf.data -o out.folded\n  \
    zcat old.txt.gz | jitgraft collapse")]
pub(super) struct CollapseArgs {
    #[command(flatten)]
    convert: ConvertArgs,
}

impl CollapseArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let Convert { inputs, output, load, write } = self.convert.checked();
        collapse::run(&CollapseOptions { inputs, output, load, write }, job)
    }
}
