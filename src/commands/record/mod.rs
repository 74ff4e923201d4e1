//! `record` runs `perf record` with options that allow JIT code to be named afterwards. It prints the command that it
//! runs.
//!
//! | file | what it is for |
//! |---|---|
//! | `plan` | detects the runtime and completes its command line and perf's |
//! | `machine` | checks what can be recorded here: perf, events, permissions, disk space |
//! | `keep` | copies the jitdumps, perf maps and logs of the run to the recording |

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
use std::time::SystemTime;

/// Records a program or a running process. `say` prints text before the program starts.
pub fn run(options: &RecordOptions, job: &Job, say: &mut dyn FnMut(&str)) -> Result<Outcome> {
    let machine = Machine::look(options)?;
    let Plan { command, notes, leaves } = Plan::new(options, &machine)?;
    let mut outcome = Outcome::default();
    if !job.quiet {
        notes.iter().chain(&machine.notes).for_each(|note| say(note));
    }
    if options.dry_run {
        crate::io::print(|out| Ok(writeln!(out, "{command}")?))?;
        return Ok(outcome);
    }
    if !job.quiet {
        say(&command.to_string());
    }
    let left = LeftFiles { names: leaves, since: SystemTime::now() };
    let before = |name: &str| std::env::var_os(name).map(std::os::unix::ffi::OsStringExt::into_vec);
    let variables = command.variables.iter().map(|set| (set.name, set.append_to(before(set.name).as_deref())));
    outcome.ended = Some(started::run(&command.words(), &variables.collect::<Vec<_>>())?);
    keep::beside(options, &left, job, &mut outcome);
    Ok(outcome)
}
