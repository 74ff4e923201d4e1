//! `jitgraft FILE`, without a command.

use super::input::InputArgs;
use crate::commands::summary::{self, SummaryOptions};
use crate::contract::format::Detail;
use crate::error::{Error, Result};
use crate::io;
use crate::pipeline::{Job, Outcome};
use clap::{Args, Command};
use std::ffi::OsString;
use std::path::Path;

/// The command that is inserted in front of a lone file.
pub(super) const NAME: &str = "summary";

/// Flags of `jitgraft FILE`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft perf.data")]
pub(super) struct SummaryArgs {
    #[command(flatten)]
    input: InputArgs,
}

impl SummaryArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let (mut inputs, mut load) = self.input.checked(Detail::Names, false);
        load.sources.source_maps.usual = true;
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => summary::run(&SummaryOptions { input, load }, job),
            _ => Err(Error::usage("a summary is of one file: use jitgraft report FILE… for several")),
        }
    }
}

/// The words with the command in front of a first word that is a file and not a command.
pub(super) fn with_command(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let is_command = |word: &str| word == "help" || command.find_subcommand(word).is_some();
    let first =
        words.get(1).filter(|word| !word.to_str().is_some_and(|word| word.starts_with('-') || is_command(word)));
    if first.is_some_and(|word| io::is_there(Path::new(word))) {
        words.insert(1, NAME.into());
    }
    words
}
