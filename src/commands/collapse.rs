//! `collapse` converts any input to folded stacks.

use crate::analysis::filter::Filter;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::formats::folded;
use crate::io::{InPath, OutPath, Output, Run};
use crate::model::stacks::Keep;
use crate::pipeline::any::{LoadOptions, load, report_no_samples};
use crate::pipeline::inputs::JobInputs;
use crate::pipeline::outputs::{each_event, each_event_named};
use crate::pipeline::script_text::EventSums;
use crate::pipeline::sorted::{self, Sorted};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use crate::runtimes::jit_names::JitNames;

/// The options of `collapse`: what to fold, and where to write it.
#[derive(Debug)]
pub struct CollapseOptions {
    /// The inputs. Several inputs are merged into one.
    pub inputs: Vec<InPath>,
    /// Where to write the folded stacks.
    pub output: OutPath,
    /// How to read the inputs.
    pub load: LoadOptions,
    /// How to write frames in the folded stacks.
    pub write: WriteOptions,
}

impl CollapseOptions {
    /// Returns the input if it is the only one and no option filters its stacks or changes their names. If it is text
    /// with one sample after the other (such as perf script's output), it can then be summed without building a
    /// profile.
    fn unfiltered_input(&self) -> Option<&InPath> {
        let [input] = &self.inputs[..] else { return None };
        let load = &self.load;
        let are_all = load.filter == Filter::default() && load.event.is_empty();
        (are_all && load.jit_names.resolved == JitNames::Raw).then_some(input)
    }
}

/// Folds the inputs. If there are several events, each gets an output file of its own.
pub fn run(options: &CollapseOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let open = |input| sorted::open_lines(input, &options.write, &options.load, job, &mut outcome);
    let opened = match options.unfiltered_input().map(open).transpose()? {
        Some(Sorted::Sums(events)) if !events.is_empty() => return write(&events, options, &run, outcome),
        Some(Sorted::Sums(_)) => {
            report_no_samples(&options.inputs, &options.load, job, &mut outcome)?;
            Output::create(&options.output, &run)?.commit()?;
            return Ok(outcome);
        }
        Some(Sorted::Other(opened)) => Some(opened),
        None => None,
    };
    let profile = load(JobInputs::with_first(opened, &options.inputs), Keep::Sums, &options.load, job, &mut outcome)?;
    each_event(&profile, &options.output, &run, &mut outcome, |series, out| {
        let write = WriteOptions { series, ..options.write.clone() };
        write_text(out, |out| folded::write(&profile, &write, out))
    })?;
    Ok(outcome)
}

/// Writes the folded stacks of each event.
fn write(events: &[EventSums], options: &CollapseOptions, run: &Run, mut outcome: Outcome) -> Result<Outcome> {
    let names = events.iter().enumerate().map(|(at, event)| (at, &event.name[..])).collect();
    each_event_named(names, &options.output, run, &mut outcome, |at, out| {
        write_text(out, |out| folded::write_lines(&events[at].lines, out))
    })?;
    Ok(outcome)
}
