//! `annotate`: hot code, instruction by instruction, straight from a recording and its dumps.
//!
//! ```text
//! samples          recorded.rs     each stands at one place: so far into a piece of JIT code, or at an address of a file
//! → functions      functions.rs    places of one piece of code, or of one symbol, with what each address cost
//! → names          names.rs        the codes of one name: a runtime compiles a function again and again
//! → listings       listing.rs      bytes from the dump or the ELF file, decoded for the address they had
//! → targets        recorded.rs     what branches lead to, in the process and at the time of the last sample
//! → source lines   sources.rs      the dump's entries, DWARF; text where the file is here
//! → text, JSON     text/, json.rs
//! ```

mod annotation;
mod costs;
mod functions;
mod json;
mod listing;
mod names;
mod recorded;
mod sources;
mod text;

use crate::error::{Error, Result, Warning};
use crate::formats::format::Read;
use crate::io::{InPath, OutPath, Output, Run};
use crate::model::stacks::Weight;
use crate::pipeline::open::{Input, shown};
use crate::pipeline::recording::RecordingOptions;
use crate::pipeline::{Job, Outcome};
use crate::resolve::disasm::Syntax;
use regex::Regex;

/// What to list, and how.
#[derive(Debug)]
pub struct AnnotateOptions {
    /// What to read.
    pub input: InPath,
    /// Where to write.
    pub output: OutPath,
    /// Which functions, by name; `None`: the hottest.
    pub function: Option<Regex>,
    /// How many pieces of code at most.
    pub limit: Option<usize>,
    /// How to read; of each stack only the innermost frame is needed, and as recorded.
    pub recording: RecordingOptions,
    /// What is summed.
    pub weight: Weight,
    /// How instructions are spelled.
    pub syntax: Syntax,
    /// How it is written.
    pub format: AnnotateFormat,
}

/// How listings are written.
#[derive(Debug, Clone, Copy)]
pub enum AnnotateFormat {
    /// For people.
    Text(TextOptions),
    /// For programs: everything.
    Json,
}

/// What a text shows.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// So many instructions are shown on either side of one with samples; `None`: all of them.
    pub context: Option<usize>,
    /// Columns of the terminal; `None`: lines may be of any length.
    pub width: Option<usize>,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// Annotates.
pub fn run(options: &AnnotateOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let mut output = Output::create(&options.output, &run)?;
    let path = shown(&options.input);
    let annotated = Input::open(&options.input).and_then(|input| match input.format.read {
        Read::Addresses => recorded::annotate(&input, &path, options, job, &mut outcome.warnings),
        _ => Err(Error::new(format!(
            "is {}: annotate needs the addresses of samples, give it the perf.data",
            input.format.name
        ))),
    });
    let annotation = annotated.map_err(|error| error.in_file(&path))?;
    if annotation.events.is_empty() {
        outcome.warnings.push(Warning::new("no samples: none was recorded, or the filters leave none"));
    } else if annotation.listings.is_empty() {
        outcome.warnings.push(Warning::new("no function with samples of its own is called like that"));
    }
    match options.format {
        AnnotateFormat::Text(ref style) => text::write(&annotation, style, &mut output)?,
        AnnotateFormat::Json => json::write(&annotation, &mut output)?,
    }
    output.commit()?;
    Ok(outcome)
}
