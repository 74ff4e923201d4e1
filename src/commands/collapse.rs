//! `collapse` converts any input to folded stacks.

use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::formats::folded;
use crate::io::{InPath, OutPath, Run};
use crate::model::stacks::Keep;
use crate::pipeline::any::{LoadOptions, load};
use crate::pipeline::outputs::each_event;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};

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

/// Folds the inputs. If there are several events, each gets an output file of its own.
pub fn run(options: &CollapseOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let profile = load(&options.inputs, Keep::Sums, &options.load, job, &mut outcome)?;
    each_event(&profile, &options.output, &run, &mut outcome, |series, out| {
        let write = WriteOptions { series, ..options.write.clone() };
        write_text(out, |out| folded::write(&profile, &write, out))
    })?;
    Ok(outcome)
}
