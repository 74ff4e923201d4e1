//! `jitgraft collapse`

use super::input::{InputArgs, OutputArgs, SpellingArgs, WeightArgs};
use crate::commands::collapse::{self, CollapseOptions};
use crate::commands::{Job, Outcome};
use crate::error::Result;
use crate::formats::format::{Detail, WriteOptions};
use crate::model::label::By;
use clap::Args;

/// Flags of `collapse`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft collapse perf.data | inferno-flamegraph > flame.svg\n  \
    jitgraft collapse --annotate jit,kernel --by pid perf.data -o out.folded\n  \
    zcat old.txt.gz | jitgraft collapse")]
pub(super) struct CollapseArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    weight: WeightArgs,
    #[command(flatten)]
    spelling: SpellingArgs,
}

impl CollapseArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let (by, annotate) = (self.spelling.by(), self.spelling.annotate());
        let detail = if annotate.addrs { Detail::Addresses } else { Detail::Names };
        let (inputs, load) = self.input.checked(detail, by == By::Cpu);
        let write = WriteOptions { weight: self.weight.weight(), by, annotate, ..WriteOptions::default() };
        collapse::run(&CollapseOptions { inputs, output: self.output.into(), load, write }, job)
    }
}
