//! Runs jitgraft, prints what stopped it, and chooses the exit code: 0 done, 1 failed, 2 usage.

#![warn(clippy::disallowed_methods, clippy::unwrap_used)]

use jitgraft::internals::cli::{Cli, stderr};
use jitgraft::internals::io::guard::{GuardedAllocator, leave_nothing_behind, watch_mapped_files};
use jitgraft::internals::parallel::with_enough_stack;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: GuardedAllocator = GuardedAllocator;

fn main() -> ExitCode {
    watch_mapped_files();
    leave_nothing_behind();
    with_enough_stack(run)
}

/// Parses the command line, runs the command, and prints the error if it fails.
fn run() -> ExitCode {
    let cli = match Cli::from_words(std::env::args_os()) {
        Ok(cli) => cli,
        Err(usage) => return stderr::say_usage(usage, &Cli::describe()),
    };
    match cli.run() {
        Ok(code) => code,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            stderr::say_error(&error);
            ExitCode::from(if error.is_usage() { 2 } else { 1 })
        }
    }
}
