//! `jitgraft export`

use super::input::{InputArgs, OutputArgs, SpellingArgs, WeightArgs};
use crate::commands::export::{self, ExportOptions};
use crate::commands::{Job, Outcome};
use crate::error::Result;
use crate::formats::FORMATS;
use crate::formats::format::{Detail, WriteOptions};
use crate::model::label::By;
use clap::Args;
use clap::builder::PossibleValuesParser;

/// Flags of `export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft export --to firefox perf.data -o profile.json\n  \
    jitgraft export --to pprof perf.data -o profile.pb.gz")]
pub(super) struct ExportArgs {
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = writable())]
    to: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    weight: WeightArgs,
    #[command(flatten)]
    spelling: SpellingArgs,
}

fn writable() -> PossibleValuesParser {
    let writable = FORMATS.iter().filter(|format| format.write.is_some());
    PossibleValuesParser::new(writable.map(|format| clap::builder::PossibleValue::new(format.name).help(format.about)))
}

impl ExportArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let (by, annotate) = (self.spelling.by(), self.spelling.annotate());
        let detail = if annotate.addrs { Detail::Addresses } else { Detail::Names };
        let (inputs, load) = self.input.checked(detail, by == By::Cpu);
        let write = WriteOptions { weight: self.weight.weight(), by, annotate, ..WriteOptions::default() };
        export::run(&ExportOptions { inputs, output: self.output.into(), to: self.to, load, write }, job)
    }
}
