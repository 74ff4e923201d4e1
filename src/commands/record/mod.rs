//! `record` runs `perf record` with options that allow JIT code to be named afterwards. It prints the command that it
//! runs.
//!
//! | file | what it is for |
//! |---|---|
//! | `plan` | detects the runtime and completes its command line and perf's |
//! | `machine` | checks what can be recorded here: perf, events, permissions, disk space |
//! | `keep` | copies the jitdumps, perf maps and logs of the run next to the recording |

mod keep;
mod machine;
mod options;
mod plan;

use crate::error::Result;
use crate::io::started;
use crate::pipeline::{Job, Outcome};
use keep::LeftFiles;
use machine::Machine;
pub use options::RecordOptions;
use plan::Plan;
use std::os::unix::ffi::OsStringExt;
use std::time::SystemTime;

/// Records a program or a running process. `say` prints text before the program starts.
pub fn run(options: &RecordOptions, job: &Job, say: &mut dyn FnMut(&str)) -> Result<Outcome> {
    let machine = Machine::examine(options)?;
    // `left_names` are the names of files that the recorded program will leave in the current directory.
    let Plan { command, notes, leaves: left_names } = Plan::new(options, &machine)?;
    let mut outcome = Outcome::default();
    if !job.quiet {
        for note in notes.iter().chain(&machine.notes) {
            say(note);
        }
    }
    if options.dry_run {
        crate::io::print(|out| Ok(writeln!(out, "{command}")?))?;
        return Ok(outcome);
    }
    if !job.quiet {
        say(&command.to_string());
    }
    let left_files = LeftFiles { names: left_names, since: SystemTime::now() };
    // The environment variables to set for the program. If one has a value already, its new value is appended.
    let mut variables = Vec::new();
    for set in &command.variables {
        let before = std::env::var_os(set.name).map(OsStringExt::into_vec);
        variables.push((set.name, set.append_to(before.as_deref())));
    }
    outcome.ended = Some(started::run(&command.words(), &variables)?);
    keep::copy_sources(options, &left_files, job, &mut outcome);
    Ok(outcome)
}
