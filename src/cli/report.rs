//! `jitgraft report`

use super::input::{InputArgs, OutputArgs, WeightArgs};
use crate::commands::report::{self, ReportOptions, Sort};
use crate::error::Result;
use crate::formats::format::Detail;
use crate::pipeline::table::Layout;
use crate::pipeline::{Job, Outcome};
use clap::{Args, ValueEnum};

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft report --limit 20 perf.data\n  \
    jitgraft report --sort total --format csv perf.data -o hot.csv")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// By what to sort
    #[arg(long, value_enum, default_value_t = SortName::Own, value_name = "WHAT")]
    sort: SortName,
    /// How many functions at most [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How the table is written
    #[arg(long, value_enum, default_value_t = LayoutName::Text, value_name = "HOW")]
    format: LayoutName,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    weight: WeightArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortName {
    /// Weight of the function itself
    #[value(name = "self")]
    Own,
    /// Weight of the function and all that it called
    Total,
    /// Samples taken in the function itself
    Samples,
    /// Module, then weight
    Module,
    /// Name
    Symbol,
}

/// A table's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LayoutName {
    Text,
    Csv,
    Json,
}

impl From<LayoutName> for Layout {
    fn from(name: LayoutName) -> Self {
        match name {
            LayoutName::Text => Self::Text,
            LayoutName::Csv => Self::Csv,
            LayoutName::Json => Self::Json,
        }
    }
}

impl ReportArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let (inputs, load) = self.input.checked(Detail::Addresses, false);
        let sort = match self.sort {
            SortName::Own => Sort::Own,
            SortName::Total => Sort::Total,
            SortName::Samples => Sort::Samples,
            SortName::Module => Sort::Module,
            SortName::Symbol => Sort::Symbol,
        };
        let options = ReportOptions {
            inputs,
            output: self.output.into(),
            load,
            weight: self.weight.weight(),
            sort,
            limit: self.limit,
            layout: self.format.into(),
        };
        report::run(&options, job)
    }
}
