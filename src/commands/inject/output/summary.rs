//! What was done, in figures.

use crate::commands::inject::coverage::code_uses::Touched;
use crate::commands::inject::images::Images;
use crate::commands::inject::options::InjectOptions;
use crate::error::Warning;
use crate::model::Pid;
use crate::model::process::Processes;
use crate::model::programs::Programs;
use crate::pipeline::Job;
use crate::pipeline::Outcome;
use crate::sources::{Account, Kind, SourceState};

/// What the dumps and maps had.
#[derive(Debug)]
pub(in crate::commands) struct Loaded {
    pub(in crate::commands) functions: usize,
    pub(in crate::commands) processes: usize,
    pub(in crate::commands) accounts: Vec<Account>,
}

/// What there is to tell.
#[derive(Debug)]
pub(in crate::commands) struct Facts<'a> {
    pub(in crate::commands) loaded: &'a Loaded,
    pub(in crate::commands) touched: &'a Touched,
    /// How many pieces of code are touched.
    pub(in crate::commands) pieces: usize,
    pub(in crate::commands) images: &'a Images,
    pub(in crate::commands) inserted: usize,
    pub(in crate::commands) injected: &'a [Pid],
    pub(in crate::commands) processes: &'a Processes,
    /// How the input's records were kept, if that was not plainly.
    pub(in crate::commands) was: Option<&'a str>,
}

/// Tells it.
pub(in crate::commands) fn report(facts: &Facts<'_>, options: &InjectOptions, job: &Job, outcome: &mut Outcome) {
    let counts = facts.touched.counts;
    if counts.unreadable > 0 {
        outcome
            .warnings
            .push(Warning::new(format!("{} samples are damaged and were passed on unread", counts.unreadable)));
    }
    for pid in facts.injected {
        let message = format!("process {pid} has been injected before: its JIT code is left as it is");
        outcome.warnings.push(Warning::new(message));
    }
    let to = options.output.shown();
    let to = to.display();
    if let Some(was) = facts.was {
        outcome.summary.push(format!("the input was {was}: {to} is one plain recording"));
    }
    if !options.jit {
        outcome.summary.push(format!("{to}: {} samples", counts.samples));
        return;
    }
    outcome.summary.push(sources(facts));
    let unresolved: u64 = facts.touched.unresolved.values().sum();
    let frames = counts.resolved + unresolved;
    let share = if frames == 0 { 100.0 } else { counts.resolved as f64 * 100.0 / frames as f64 };
    outcome.summary.push(format!(
        "{} samples, {} in JIT code; {} of {frames} JIT frames have a name ({share:.1} %)",
        counts.samples, counts.with_jit, counts.resolved
    ));
    let programs = Programs::new(facts.processes);
    for (pid, count) in &facts.touched.unresolved {
        let name = programs.name(*pid);
        outcome.summary.push(format!("process {pid} ({name}): {count} frames in memory that no dump or map names"));
    }
    outcome.summary.push(format!(
        "{to}: {} mapping records inserted for {} pieces of code, in {} images with {} functions",
        facts.inserted,
        facts.pieces,
        facts.images.iter().count(),
        facts.images.codes
    ));
    if job.verbose {
        outcome.summary.extend(facts.images.iter().map(|image| format!("image: {}", image.path.display())));
        outcome.summary.extend(facts.loaded.accounts.iter().map(|account| {
            format!("{:?} of process {}: {}: {:?}", account.kind, account.pid, account.path.display(), account.state)
        }));
    }
}

fn sources(facts: &Facts<'_>) -> String {
    let loaded = |wanted: Kind| {
        let states = facts.loaded.accounts.iter().filter(move |account| account.kind == wanted);
        states.filter(|account| matches!(account.state, SourceState::Loaded { .. })).count()
    };
    let (dumps, maps) = (loaded(Kind::JitDump), loaded(Kind::PerfMap));
    let Loaded { functions, processes, .. } = facts.loaded;
    format!("{functions} functions of {processes} processes loaded from {dumps} jitdumps and {maps} perf maps")
}
