//! The command line: flags as typed (clap; the doc comments are the help) become the checked options of a command.
//!
//! One file a command; flags that several commands share are in [`common`].

pub mod common;
mod formats;

use crate::error::Result;
use clap::{Parser, Subcommand};
use common::Common;
use std::process::ExitCode;

/// Repairs profiles of programs with just-in-time compiled code, offline.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100, help_expected = true)]
pub struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Each command's arguments know how to run: `run(self, job) -> Result<Outcome>`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the formats that are read and written
    Formats(formats::FormatsArgs),
}

impl Cli {
    /// Runs the command; says on stderr what it has to say.
    pub fn run(self) -> Result<ExitCode> {
        let job = self.common.job()?;
        let outcome = match self.command {
            Command::Formats(args) => args.run(&job)?,
        };
        Ok(self.common.finish(&job, &outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
