//! Opens a recording for `annotate`, which needs only the innermost frame of each stack.

use super::annotated::Annotation;
use super::hot::hot_code;
use super::options::AnnotateOptions;
use super::together;
use crate::error::{Result, Warnings};
use crate::model::stacks::Keep;
use crate::pipeline::Job;
use crate::pipeline::open::Input;
use crate::pipeline::recording::{Examined, Memory, Resolution, Streams, Survey, check_events};
use std::path::Path;

/// Reads a recording and annotates the functions that the options request.
pub(crate) fn annotate(
    input: &Input,
    path: &Path,
    options: &AnnotateOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Annotation> {
    let AnnotateOptions { recording, code, .. } = options;
    let recording = &*recording.for_input(input);
    let streams = Streams::open(input, path, &job.pool, warnings)?;
    let events: Vec<&str> = streams.recording.events.iter().map(|event| event.name.as_str()).collect();
    check_events(&events, &recording.event)?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, warnings);
    let memory = Memory::find(&survey, &recording.sources, warnings);
    let resolution = Resolution::new(&survey, &memory, recording, job, warnings);
    let samples = &resolution.samples(Keep::EachRow, job, warnings)?;
    let named = &resolution.name(&samples.chains, job, warnings);
    let examined = Examined { resolution: &resolution, samples, named, input_len: input.bytes.len() as u64 };
    let mut annotation = hot_code(&examined, code, &recording.symbols, job, warnings).annotation;
    annotation.listings = together::regroup(annotation.listings, options.told);
    resolution.finish(warnings);
    Ok(annotation)
}
