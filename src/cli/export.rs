//! The flags of `jitgraft export`.

use super::common::one_of;
use super::convert::ConvertArgs;
use super::intervals::duration;
use super::output::check_name;
use crate::commands::export::{self, ExportOptions, TableOptions};
use crate::contract::format::{Detail, Format, WriteOptions};
use crate::error::{Error, Result};
use crate::formats::{FORMATS, HAS_ALL, LEFT_OUT, LeftOut, find_format};
use crate::model::recorded::parse_day;
use crate::pipeline::open::check_further;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// Flags of `export`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = after_help())]
pub(super) struct ExportArgs {
    /// Format [default: by the output's name, see --help]
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_parser = writable())]
    to: Option<String>,
    #[command(flatten)]
    convert: ConvertArgs,
    #[command(flatten)]
    table: TableArgs,
}

/// Flags for tables.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tables (parquet)")]
struct TableArgs {
    /// Sum equal stacks of a thread and event per time bucket, such as 1s
    #[arg(long, value_name = "TIME", value_parser = bucket, hide_short_help = true)]
    bucket: Option<u64>,
    /// How much of each frame to keep [default: all]
    ///
    /// Less detail makes more stacks equal, so --bucket sums more.
    #[arg(long, value_parser = one_of(details()), value_name = "WHAT", hide_short_help = true)]
    detail: Option<Detail>,
    /// Write a data set to -o DIR, with one file per recording
    ///
    /// The files are samples/host=HOST/day=DAY/SHA1.parquet. A directory stands for the files in it, @FILE for the
    /// paths that it lists. Inputs that cannot be read are left out, and the status is 1.
    #[arg(long, hide_short_help = true)]
    partition: bool,
    /// Skip inputs that were already exported to this data set
    ///
    /// An input was exported before if the data set has a file that is named after the SHA-1 of the input's content and
    /// has the same --bucket.
    #[arg(long, requires = "partition", hide_short_help = true)]
    skip_existing: bool,
    /// Host name to use instead of the recorded one
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    host: Option<String>,
    /// Day to use instead of the recorded one, such as 2026-11-22
    #[arg(long, value_name = "DAY", value_parser = day, hide_short_help = true)]
    day: Option<i32>,
    /// Label for all rows (for otlp: attribute of all resources)
    ///
    /// Repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, hide_short_help = true)]
    label: Vec<(Box<str>, Box<str>)>,
}

fn details() -> [(PossibleValue, Detail); 3] {
    let [names, lines, addresses] = ["names", "lines", "addresses"].map(PossibleValue::new);
    [
        (names.help("Function and module"), Detail::Names),
        (lines.help("Function, module, source file and line"), Detail::Lines),
        (addresses.help("Function, module, source file, line and address"), Detail::Addresses),
    ]
}

impl TableArgs {
    fn options(self) -> TableOptions {
        let Self { partition, skip_existing, detail, host, day, label, .. } = self;
        TableOptions { partition, skip_existing, detail, host, day, labels: label.into_iter().collect() }
    }
}

fn bucket(text: &str) -> std::result::Result<u64, String> {
    match duration(text)? {
        0 => Err("must be longer than 0".to_owned()),
        nanos => Ok(nanos),
    }
}

fn day(text: &str) -> std::result::Result<i32, String> {
    parse_day(text).ok_or_else(|| "expected a day such as 2026-11-22".to_owned())
}

fn label(text: &str) -> std::result::Result<(Box<str>, Box<str>), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=VALUE")?;
    Ok((key.into(), value.into()))
}

fn written() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.write.is_some())
}

/// The values of `--to`: all formats that can be written. Formats that this build was compiled without are accepted as
/// well, so that the error message can say so.
pub(super) fn writable() -> PossibleValuesParser {
    let left_out = LEFT_OUT.iter().map(|format| PossibleValue::new(format.name).hide(true));
    let written = written().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(written.chain(left_out))
}

const EXAMPLES: &str = "Examples:\n  jitgraft export --to firefox perf.data -o profile.json\n  \
    jitgraft export perf.data -o profile.pb.gz\n  jitgraft export cpu.pb.gz -o profile.speedscope.json\n  \
    jitgraft export perf.data -o samples.csv";

fn after_help() -> String {
    let files = written().map(|format| format!("  {:<12} {}\n", format.name, format.files.join("  ")));
    format!("Formats by the output's name (-o):\n{}\n{EXAMPLES}", files.collect::<String>())
}

impl ExportArgs {
    /// Finds the output format, by the flag or the output's name, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let convert = self.convert.into_options();
        let left_out = match &self.to {
            Some(name) => LEFT_OUT.iter().find(|format| format.name == name),
            None => convert.left_out_format(),
        };
        if let Some(LeftOut { name, .. }) = left_out {
            return Err(Error::usage(format!("this build of jitgraft cannot write {name}; to do that, {HAS_ALL}")));
        }
        let asked = self.to.as_deref().and_then(find_format);
        let format = asked.or_else(|| convert.output_format()).ok_or_else(|| {
            if let Some(refusal) = convert.removed_format() {
                return Error::usage(refusal);
            }
            // If the user forgot `-o`, the output is among the inputs and probably doesn't exist. That error is more
            // helpful than one about the format.
            // The empty list makes `check_name` refuse the extensions of all formats that another command writes, and
            // name that command.
            let checked = check_name(&convert.output, "export", &[]).and_then(|()| check_further(&convert.inputs));
            if let Err(error) = checked {
                return error;
            }
            let names: Vec<_> = written().map(|format| format.name).collect();
            let what = "unknown output format; pass --to or use a known file extension";
            Error::usage(format!("{what}. Formats: {}", names.join(", ")))
        })?;
        let (bucket, table) = (self.table.bucket, self.table.options());
        let options = ExportOptions { table, ..convert.export_to(format) };
        let write = WriteOptions { bucket, ..options.write.clone() };
        export::run(&ExportOptions { write, ..options }, job)
    }
}
