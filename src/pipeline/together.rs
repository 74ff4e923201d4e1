//! Inputs of a merge that one worker reads at once: a group of small texts, or a large input.

use super::any::{LoadOptions, run_opened};
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
    let input = std::slice::from_ref(path);
    let done = run_opened(Some(opened), input, options, (&mut whole, &mut |_, _, _| {}), job, &mut outcome);
    let profile = done.map(|()| whole.into_profile()).map_err(|error| error.in_file(&shown(path)));
    InputSums { profile, outcome }
}
