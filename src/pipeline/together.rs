//! JobInputs of a merge that one worker reads at once: a group of small texts, or a large input.

use super::any::{LoadOptions, run};
use super::inputs::JobInputs;
use super::job::{Job, Outcome};
use super::open::{Opened, shown};
use super::sink::Whole;
use super::texts::{Given, InputSums, read_texts};
use crate::io::InPath;
use crate::model::stacks::Keep;

/// Reads a group. Of folded stacks that stand together there is one sum.
pub(super) fn read(group: Vec<Given<'_>>, options: &LoadOptions, job: &Job) -> Vec<InputSums> {
    read_texts(group, options.texts(), job, |sums| sums, |path, opened| read_apart(path, opened, options, job))
}

fn read_apart(path: &InPath, opened: Opened, options: &LoadOptions, job: &Job) -> InputSums {
    let (mut whole, mut outcome) = (Whole::new(Keep::Sums, options.jit_names), Outcome::default());
    let input = JobInputs::opened(Some(opened), std::slice::from_ref(path));
    let done = run(input, options, &mut whole, job, &mut outcome);
    let profile = done.map(|()| whole.into_profile()).map_err(|error| error.in_file(&shown(path)));
    InputSums { profile, outcome }
}
