//! The flags of `jitgraft runtimes`.

use crate::commands::runtimes;
use crate::error::Result;
use crate::io;
use crate::pipeline::{Job, Outcome};
use clap::Args;

/// Flags of `runtimes`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft runtimes\n  jitgraft runtimes node")]
pub(super) struct RuntimesArgs {
    /// Show all about this runtime: switches, files, how to record, what stays unnamed
    name: Option<String>,
}

impl RuntimesArgs {
    pub(super) fn run(self, _job: &Job) -> Result<Outcome> {
        io::print(|out| runtimes::run(self.name.as_deref(), out))
    }
}
