//! `merge`: any number of profiles → one, in the time that it takes to read them.

use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::formats::not_for_terminals;
use crate::io::{InPath, OutPath, Run};
use crate::pipeline::any::LoadOptions;
use crate::pipeline::listed::{Expanded, expand};
use crate::pipeline::merging::{FirstInput, load_merged};
use crate::pipeline::terminal::refuse_terminal;
use crate::pipeline::writers::{load_options, write, writer};
use crate::pipeline::{Job, Outcome};

/// The inputs to merge, and the output.
#[derive(Debug)]
pub struct MergeOptions {
    /// The inputs: files, directories of them, `@FILE` for a list of them.
    pub inputs: Vec<InPath>,
    /// The output.
    pub output: OutPath,
    /// The name of the format; `None`: as the inputs are.
    pub to: Option<String>,
    /// How to read.
    pub load: LoadOptions,
    /// How to write. By what stacks have a root of their own, rows are distinguished in every format.
    pub write: WriteOptions,
}

/// Merges.
pub fn run(options: &MergeOptions, job: &Job) -> Result<Outcome> {
    let run = Run::begin_repeating();
    let Expanded { inputs, unread } = expand(&options.inputs)?;
    let first = FirstInput::of(&inputs, job);
    let to = options.to.as_deref().unwrap_or_else(|| usual(first.as_ref()));
    let writer = writer(to)?;
    if let Some(why) = not_for_terminals(to).filter(|_| options.output.is_terminal()) {
        return Err(refuse_terminal(&format!("{to} ({why})")));
    }
    let load_options = load_options(&options.load, &writer);
    let (profile, mut outcome) = load_merged(&inputs, first, &load_options, options.write.by, job)?;
    outcome.failed.extend(unread);
    write(&profile, &writer, (&options.output, &options.write), &run, &mut outcome)?;
    Ok(outcome)
}

/// The format to write where none is requested: a profile that has weights of several sorts keeps them.
fn usual(first: Option<&FirstInput>) -> &'static str {
    match first.map(|first| first.format().name) {
        Some("pprof") => "pprof",
        _ => "folded",
    }
}
