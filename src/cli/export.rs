//! `jitgraft export`

use super::convert::ConvertArgs;
use crate::commands::export;
use crate::error::{Error, Result};
use crate::formats::format::Format;
use crate::formats::{FORMATS, named};
use crate::pipeline::{Job, Outcome};
use clap::Args;
use clap::builder::PossibleValuesParser;

/// Flags of `export`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(super) struct ExportArgs {
    /// The format to write [default: what the output's name tells, see below]
    #[arg(long, value_name = "FORMAT", value_parser = writable())]
    to: Option<String>,
    #[command(flatten)]
    convert: ConvertArgs,
}

fn written() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.write.is_some())
}

/// The formats that can be written, as the values of a flag.
pub(super) fn writable() -> PossibleValuesParser {
    PossibleValuesParser::new(written().map(|format| clap::builder::PossibleValue::new(format.name).help(format.about)))
}

fn after_help() -> String {
    let files = written().map(|format| format!("  {:<12} {}\n", format.name, format.files.join("  ")));
    format!(
        "Formats by the name of the output (-o):\n{}\n\
         Examples:\n  jitgraft export --to firefox perf.data -o profile.json\n  \
         jitgraft export perf.data -o profile.pb.gz\n  \
         jitgraft export cpu.pb.gz -o profile.speedscope.json\n  \
         jitgraft export perf.data -o samples.csv",
        files.collect::<String>()
    )
}

impl ExportArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let convert = self.convert.checked();
        let asked = self.to.as_deref().and_then(named);
        let format = asked.or_else(|| convert.told()).ok_or_else(|| {
            let names: Vec<_> = written().map(|format| format.name).collect();
            let what = "which format to write neither --to nor the name of the output (-o FILE) tells";
            Error::usage(format!("{what}; there are: {} (--help has the names of files)", names.join(", ")))
        })?;
        export::run(&convert.export_to(format), job)
    }
}
