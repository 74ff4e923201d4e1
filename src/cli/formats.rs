//! The flags of `jitgraft formats`.

use crate::commands::formats;
use crate::error::Result;
use crate::io;
use crate::pipeline::{Job, Outcome};
use clap::Args;

/// Flags of `formats`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft formats")]
pub(super) struct FormatsArgs {}

impl FormatsArgs {
    pub(super) fn run(self, _job: &Job) -> Result<Outcome> {
        io::print(|out| formats::run(out))
    }
}
