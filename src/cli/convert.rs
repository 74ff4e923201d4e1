//! Flags of the commands that convert stacks to another form.

use super::common::one_of;
use super::input::{InputArgs, OutputArgs, WeightArgs};
use super::output::check_name;
use super::removed;
use crate::analysis::label::{Annotate, RootFrame};
use crate::commands::export::{ExportOptions, TableOptions};
use crate::contract::format::{Detail, Format, WriteOptions};
use crate::error::Result;
use crate::formats::{self, LeftOut};
use crate::io::{InPath, OutPath};
use crate::pipeline::any::LoadOptions;
use crate::pipeline::sink::Naming;
use crate::runtimes::jit_names::JitNames;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The input, the output, and how stacks become lines or boxes.
#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    weight: WeightArgs,
    #[command(flatten)]
    spelling: SpellingArgs,
}

/// The checked flags of a command that converts stacks, as options.
pub(super) struct Convert {
    pub(super) inputs: Vec<InPath>,
    pub(super) output: OutPath,
    pub(super) load: LoadOptions,
    pub(super) write: WriteOptions,
}

impl Convert {
    /// The format that the output's file name implies. `None` if it implies none.
    pub(super) fn output_format(&self) -> Option<&'static Format> {
        match &self.output {
            OutPath::Path(path) => formats::find_format_for_file(path.file_name()?.as_encoded_bytes()),
            OutPath::Stdout => None,
        }
    }

    /// Like [`Self::output_format`], for formats that are disabled in this build.
    pub(super) fn left_out_format(&self) -> Option<&'static LeftOut> {
        match &self.output {
            OutPath::Path(path) => formats::find_left_out_for_file(path.file_name()?.as_encoded_bytes()),
            OutPath::Stdout => None,
        }
    }

    /// The error message if the output's file name implies a format that jitgraft no longer writes.
    pub(super) fn removed_format(&self) -> Option<String> {
        match &self.output {
            OutPath::Path(path) => removed::refused_export(path),
            OutPath::Stdout => None,
        }
    }

    /// Turns the flags into options for `export`, for an output whose file name implies another format than the
    /// command's own.
    pub(super) fn export_to(self, format: &Format) -> ExportOptions {
        let Self { inputs, output, mut load, write } = self;
        load.sources.source_maps.usual = format.write.as_ref().is_some_and(|writer| writer.jit_names != JitNames::Raw);
        ExportOptions { inputs, output, to: format.name.to_owned(), load, write, table: TableOptions::default() }
    }
}

impl ConvertArgs {
    /// The output's path; `-` is standard output.
    pub(super) fn path(&self) -> PathBuf {
        self.output.path()
    }

    /// Fails if the output's file name stands for a format that this build can't write.
    pub(super) fn check_name(&self, command: &str) -> Result<()> {
        match self.output.file_name().and_then(formats::find_format_for_file) {
            Some(_) => Ok(()),
            None => check_name(&self.output.path().into(), command, &[]),
        }
    }

    /// The format that the output's file name implies. `None` if it implies none, or the format that the command
    /// usually writes.
    pub(super) fn format_instead_of(&self, usual: &str) -> Option<&'static Format> {
        formats::find_format_for_file(self.output.file_name()?).filter(|format| format.name != usual)
    }

    pub(super) fn into_options(self) -> Convert {
        self.into_options_with(Naming::default(), RootFrame::Comm)
    }

    /// Checks the flags. `usual` is how JIT names are spelled by default, and `usual_by` is the default outermost
    /// frame.
    pub(super) fn into_options_with(self, usual: Naming, usual_by: RootFrame) -> Convert {
        let jit_names = self.input.naming(usual);
        let (by, annotate) = (self.spelling.by.unwrap_or(usual_by), self.spelling.annotate());
        let detail = if annotate.addrs { Detail::Addresses } else { Detail::Names };
        let (inputs, load) = self.input.into_options(detail, by == RootFrame::Cpu);
        let load = LoadOptions { jit_names, ..load };
        let write = WriteOptions { weight: self.weight.weight, by, annotate, ..WriteOptions::default() };
        Convert { inputs, output: self.output.into(), load, write }
    }
}

/// Flags for the outermost frame of stacks, and for what is appended to names.
#[derive(Debug, Args)]
struct SpellingArgs {
    /// Outermost frame to add to each stack [default: comm; none in most flame graphs]
    ///
    /// Flame graphs have such a frame by default only with --diff, --flamechart or --style inferno.
    #[arg(long, value_name = "WHAT", value_parser = one_of(
        [("comm".into(), RootFrame::Comm), ("pid".into(), RootFrame::Pid), ("tid".into(), RootFrame::Tid), ("cpu".into(), RootFrame::Cpu)]
    ))]
    #[arg(hide_short_help = true)]
    by: Option<RootFrame>,
    /// Append to names: pid, tid, kernel (`_[k]`), jit (`_[j]`), inline (`_[i]`), addrs
    ///
    /// pid and tid are appended to the root; addrs appends the address to unknown functions.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…", hide_short_help = true)]
    annotate: Vec<AnnotatedWith>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnnotatedWith {
    Pid,
    Tid,
    Kernel,
    Jit,
    Inline,
    Addrs,
}

impl SpellingArgs {
    /// The marks to append to names.
    fn annotate(&self) -> Annotate {
        let has = |annotation| self.annotate.contains(&annotation);
        Annotate {
            pid: has(AnnotatedWith::Pid),
            tid: has(AnnotatedWith::Tid),
            kernel: has(AnnotatedWith::Kernel),
            jit: has(AnnotatedWith::Jit),
            inline: has(AnnotatedWith::Inline),
            addrs: has(AnnotatedWith::Addrs),
        }
    }
}
