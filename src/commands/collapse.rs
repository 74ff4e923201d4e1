//! `collapse`: any input → folded stacks.

use crate::error::Result;
use crate::formats::folded;
use crate::formats::format::WriteOptions;
use crate::io::{InPath, OutPath, Run};
use crate::model::stacks::Keep;
use crate::pipeline::any::{LoadOptions, load};
use crate::pipeline::outputs::each_event;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};

/// What to fold, and where to.
#[derive(Debug)]
pub struct CollapseOptions {
    /// What to read; several are merged.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// How to read.
    pub load: LoadOptions,
    /// How to write.
    pub write: WriteOptions,
}

/// Folds.
pub fn run(options: &CollapseOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let profile = load(&options.inputs, Keep::Sums, &options.load, job, &mut outcome)?;
    each_event(&profile, &options.output, &run, &mut outcome, |series, out| {
        let write = WriteOptions { series, ..options.write.clone() };
        write_text(out, |out| folded::write(&profile, &write, out))
    })?;
    Ok(outcome)
}
