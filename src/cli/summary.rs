//! The flags of `jitgraft FILE`, the command that runs if the user names none.

use super::defaults::find;
use super::input::InputArgs;
use crate::commands::summary::{self, SummaryOptions};
use crate::contract::format::Detail;
use crate::error::{Error, Result};
use crate::io::{self, InPath};
use crate::pipeline::{Job, Outcome};
use clap::{Args, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name of the command that is inserted before a file name.
pub(super) const NAME: &str = "summary";

/// Flags of `jitgraft FILE`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft perf.data")]
pub(super) struct SummaryArgs {
    #[command(flatten)]
    input: InputArgs,
}

impl SummaryArgs {
    /// Summarizes the file. `cli` describes all commands.
    pub(super) fn run(self, job: &Job, cli: &Command) -> Result<Outcome> {
        // `false`: the summary doesn't distinguish CPUs.
        let (mut inputs, mut load) = self.input.into_options(Detail::Names, false);
        load.sources.source_maps.usual = true;
        // The last input, and whether it is the only one.
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => summary::run(&SummaryOptions { input, load }, job),
            (last, _) => {
                // If one of several words is no file but the name of a command, the user put the command after the
                // file.
                let mut words = inputs.iter().chain(&last).filter_map(|input| match input {
                    InPath::Path(path) if !io::is_there(path) => path.to_str(),
                    _ => None,
                });
                let command = words.find(|word| cli.find_subcommand(word).is_some());
                let error = Error::usage("the summary is for one file; for several, use jitgraft report FILE…");
                Err(error
                    .with_remedy(command.map(|command| format!("the command comes first: jitgraft {command} FILE"))))
            }
        }
    }
}

/// Inserts the command `summary` if the command line has a file but no command: if its first word that isn't an option
/// is a file, or if `-i` or `--` comes before any command.
pub(super) fn insert_command(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let summary_command = command.find_subcommand(NAME).unwrap_or(command);
    let mut remaining = words.iter().skip(1);
    let mut first = remaining.next();
    while let Some(option) = first.and_then(|word| word.to_str()).filter(|word| word.len() > 1 && word.starts_with('-'))
    {
        if option == "--" {
            // All words after `--` are files, even if one is called like a command. So if there are any, the summary is
            // meant.
            if remaining.next().is_some() {
                words.insert(1, NAME.into());
            }
            return words;
        }
        if ["-i", "--input"].contains(&option) || option.starts_with("--input=") {
            words.insert(1, NAME.into());
            return words;
        }
        // An option that the summary lacks: leave the words as they are, so that clap reports it.
        let Some(known) = find(command, summary_command, option) else { return words };
        // Skip the option's value. It is the next word, unless it is in the option's own word (`--to=text`, `-ofile`).
        let contains_value = option.contains('=') || !option.starts_with("--") && option.len() > 2;
        if known.get_action().takes_values() && !contains_value {
            remaining.next();
        }
        first = remaining.next();
    }
    if first.is_some_and(|word| is_file_name(command, word)) {
        words.insert(1, NAME.into());
    }
    words
}

/// True if the word is `-` for standard input, an existing file, or looks like a file name, and isn't a command.
fn is_file_name(command: &Command, word: &OsStr) -> bool {
    let text = word.to_str().unwrap_or_default();
    let is_command = text == "help" || command.find_subcommand(text).is_some();
    !is_command && (text == "-" || io::is_there(Path::new(word)) || text.contains(['.', '/']))
}
