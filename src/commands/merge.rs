//! `merge` combines any number of profiles into one. It takes about as long as reading them.

use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::formats::not_for_terminals;
use crate::io::{InPath, OutPath, Run};
use crate::pipeline::any::LoadOptions;
use crate::pipeline::listed::{Expanded, expand};
use crate::pipeline::merging::{FirstInput, load_merged};
use crate::pipeline::terminal::refuse_terminal;
use crate::pipeline::writers::{labels_remark, load_options, write, writer};
use crate::pipeline::{Job, Outcome};

/// The options of `merge`: what to merge, and where to write the result.
#[derive(Debug)]
pub struct MergeOptions {
    /// The inputs. A directory stands for the files in it, and `@FILE` for the inputs that this file lists.
    pub inputs: Vec<InPath>,
    /// Where to write the merged profile.
    pub output: OutPath,
    /// The name of the output format. `None` means pprof if the first input is pprof, and folded stacks otherwise.
    pub to: Option<String>,
    /// How to read the inputs.
    pub load: LoadOptions,
    /// How to write the result. If an option adds a root frame to stacks (such as the process), rows with different
    /// roots aren't summed, in every format.
    pub write: WriteOptions,
}

/// Merges the inputs.
pub fn run(options: &MergeOptions, job: &Job) -> Result<Outcome> {
    // `begin_copying`: the output has the data of all inputs, so only users who may read all of them may read it.
    let run = Run::begin_copying();
    let Expanded { inputs, unread } = expand(&options.inputs)?;
    let first = FirstInput::open(&inputs, job);
    let to = options.to.as_deref().unwrap_or_else(|| default_format(first.as_ref()));
    let writer = writer(to)?;
    if let Some(why) = not_for_terminals(to).filter(|_| options.output.is_terminal()) {
        return Err(refuse_terminal(&format!("{to} ({why})")));
    }
    let load_options = load_options(&options.load, &writer);
    let (profile, mut outcome) = load_merged(&inputs, first, &load_options, options.write.by, job)?;
    outcome.failed.extend(unread);
    write(&profile, &writer, &options.output, &options.write, &run, &mut outcome)?;
    outcome.summary.extend(labels_remark(&profile, to));
    Ok(outcome)
}

/// The output format if the user named none. pprof stays pprof, because it can hold several kinds of weights, which
/// folded stacks can't. `first` is the first input that could be opened.
fn default_format(first: Option<&FirstInput>) -> &'static str {
    match first.map(|first| first.format().name) {
        Some("pprof") => "pprof",
        _ => "folded",
    }
}
