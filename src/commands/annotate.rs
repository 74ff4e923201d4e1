//! `annotate` lists hot code instruction by instruction. Its input is a perf.data file with its jitdumps, or a
//! callgrind.out file.

use crate::analysis::filter::Filter;
use crate::annotate::{AnnotateFormat, AnnotateOptions, callgrind, json, recording, text};
use crate::contract::format::Read;
use crate::error::{Error, Result, Warning};
use crate::formats::callgrind::sniff;
use crate::io::{Output, Run};
use crate::model::printable::readable;
use crate::pipeline::any::explain_no_samples;
use crate::pipeline::open::{Input, shown};
use crate::pipeline::outputs::commit;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};

/// Annotates the hottest functions. Fails if no function with samples has the requested name.
pub fn run(options: &AnnotateOptions, job: &Job) -> Result<Outcome> {
    // `begin_copying`: the output contains code and source lines, so only users who may read the input may read it.
    let (run, mut outcome) = (Run::begin_copying(), Outcome::default());
    let mut output = Output::create(&options.output, &run)?;
    let path = shown(&options.input);
    let annotated = Input::open(&options.input).and_then(|input| match input.format.read {
        Read::Addresses => recording::annotate(&input, &path, options, job, &mut outcome.warnings),
        // `sniff` recognizes callgrind files.
        _ if sniff(&input.bytes) => callgrind::annotate(&input.bytes, options, job, &mut outcome.warnings),
        _ => Err(Error::new(format!(
            "is a {} file, which has no addresses; annotate reads perf.data and callgrind.out",
            input.format.name
        ))),
    });
    let annotation = annotated.map_err(|error| error.in_file(&path))?;
    let is_filtered = options.recording.filter != Filter::default() || !options.recording.event.is_empty();
    // Filters that match nothing are a mistake of the user, so that is an error. A recording without samples isn't.
    if annotation.events.is_empty() && is_filtered {
        let recording = &options.recording;
        let why = explain_no_samples(
            std::slice::from_ref(&options.input),
            &recording.filter,
            !recording.event.is_empty(),
            &[],
            job,
        );
        return Err(Error::new(why).in_file(&path));
    } else if annotation.events.is_empty() {
        outcome.warnings.push(Warning::new("no samples: none were recorded, or none match the filters"));
    } else if annotation.listings.is_empty() {
        let what = annotation.words().own;
        let name = options.code.function.as_ref().map_or_else(String::new, |function| function.text.clone());
        let hottest: Vec<_> = annotation.hottest.iter().map(|name| readable(name)).collect();
        let remedy = (!hottest.is_empty()).then(|| format!("the hottest functions are: {}", hottest.join(", ")));
        let message = format!("no function named '{name}' has {what}");
        return Err(Error::new(message).in_file(&path).with_remedy(remedy));
    }
    match options.format {
        AnnotateFormat::Text(ref style) => text::write(&annotation, style, &mut output)?,
        AnnotateFormat::Json => write_text(&mut output, |out| json::write(&annotation, out))?,
    }
    commit(output, &mut outcome)?;
    Ok(outcome)
}
