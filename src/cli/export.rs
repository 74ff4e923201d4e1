//! `jitgraft export`

use super::convert::{Convert, ConvertArgs};
use crate::commands::export::{self, ExportOptions};
use crate::error::Result;
use crate::formats::FORMATS;
use crate::pipeline::{Job, Outcome};
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
    convert: ConvertArgs,
}

fn writable() -> PossibleValuesParser {
    let writable = FORMATS.iter().filter(|format| format.write.is_some());
    PossibleValuesParser::new(writable.map(|format| clap::builder::PossibleValue::new(format.name).help(format.about)))
}

impl ExportArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let Convert { inputs, output, load, write } = self.convert.checked();
        export::run(&ExportOptions { inputs, output, to: self.to, load, write }, job)
    }
}
