//! The flags of `jitgraft pack`.

use super::common::{FileArgs, SourceArgs, one_of};
use super::output::check_name;
use crate::commands::pack::{self, OptionalPart, PackOptions};
use crate::contract::format::Detail;
use crate::error::Result;
use crate::io::{InPath, OutPath};
use crate::jit::SourceOptions;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::open::default_input;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::symbols::SymbolOptions;
use clap::Args;
use clap::builder::PossibleValue;
use std::path::PathBuf;

/// Flags of `pack`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jitgraft pack perf.data                      # on the recorded machine: perf.data.tar.zst\n  \
    jitgraft pack --list perf.data               # what would go in\n  \
    jitgraft view perf.data.tar.zst              # anywhere\n\n\
The archive contains the recording, its dumps, maps and logs, and every file that has samples, with its debugging \
information. Programs and text files that other users cannot read are left out, unless you pass --include or \
--with private. Only the owner of the archive can read it."
)]
pub(super) struct PackArgs {
    /// The recording [default: stdin if piped, or perf.data]
    ///
    /// `-` is standard input.
    #[arg(value_name = "INPUT", conflicts_with = "input")]
    recording: Option<PathBuf>,
    /// The recording, as a flag
    #[arg(short, long, value_name = "FILE", hide_short_help = true)]
    input: Option<PathBuf>,
    /// Output file; `-` is standard output [default: INPUT.tar.zst]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Pack only symbols and unwind tables of files, not their code
    #[arg(long)]
    symbols_only: bool,
    /// Pack these kinds of files, too
    ///
    /// Such files may reveal more than names.
    #[arg(long, value_parser = one_of(others()), value_delimiter = ',', value_name = "WHAT,…")]
    with: Vec<OptionalPart>,
    /// Pack this file if the recording refers to it, even if other users cannot read it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    include: Vec<PathBuf>,
    /// Only list what would be packed and what would be left out
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    files: FileArgs,
}

/// The values of `--with`.
fn others() -> [(PossibleValue, OptionalPart); 5] {
    let [kallsyms, scripts, sources, cores, private] =
        ["kallsyms", "scripts", "sources", "cores", "private"].map(PossibleValue::new);
    [
        (kallsyms.help("Kernel symbols, with their addresses"), OptionalPart::Kallsyms),
        (scripts.help("Scripts with source maps, and the maps"), OptionalPart::Scripts),
        (sources.help("Source files of the lines that have samples"), OptionalPart::Sources),
        (cores.help("Core dumps with names of JIT code; they contain all memory of a process"), OptionalPart::Cores),
        (private.help("Programs and text files that other users cannot read"), OptionalPart::Private),
    ]
}

impl PackArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let output = self.output.map(OutPath::from);
        if let Some(output) = &output {
            check_name(output, "pack", &["zst"])?;
        }
        let sources = SourceOptions::from(self.sources);
        let (search, kernel) = self.files.into_options(sources.force);
        let symbols = SymbolOptions { search: search.clone(), ..SymbolOptions::default() };
        let sources = SourceOptions { search, ..sources };
        let load = LoadOptions { detail: Detail::Names, symbols, kernel, sources, ..LoadOptions::default() };
        let mut requested = self.with;
        requested.dedup();
        let options = PackOptions {
            input: self.input.or(self.recording).map_or_else(default_input, InPath::from),
            output,
            recording: load.recording(),
            symbols_only: self.symbols_only,
            requested,
            include: self.include,
            list: self.list,
        };
        pack::run(&options, job)
    }
}
