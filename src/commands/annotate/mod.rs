//! `annotate`: hot code, instruction by instruction, straight from a recording and its dumps.
//!
//! ```text
//! samples          recorded.rs     each stands at one place: so far into a piece of JIT code, or at an address of a file
//! → functions      functions.rs    places of one piece of code, or of one symbol, with what each address cost
//! → names          names.rs        the codes of one name: a runtime compiles a function again and again
//! → hottest        hot.rs          which of them are listed
//! → listings       listing.rs      bytes from the dump or the ELF file, decoded for the address they had
//! → targets        lister.rs       what branches lead to, in the process and at the time of the last sample
//! → source lines   sources.rs      the dump's entries, DWARF; text where the file is here
//! → told            together.rs    codes of one name together, or by source line alone
//! → text, page, JSON  text/, html/, json.rs
//! ```
//!
//! A callgrind file has no samples but exact costs of addresses: `counted/` makes functions and listings of them.
//!
//! Those who have read a recording themselves ask `hot::hot_code`, which tells of each sample, too, where it stands
//! (`spots.rs`).

mod annotation;
mod costs;
mod counted;
mod functions;
pub(crate) mod hot;
mod html;
mod json;
mod lister;
mod listing;
mod names;
mod options;
mod recorded;
mod sources;
mod spots;
mod text;
mod together;

pub use annotation::{
    Annotation, Calls, Code, EventTotal, Inclusive, Line, LineTarget, Listing, NameSummary, Precision, SourceFile,
    SourceLine, SourceLineCosts, TargetPlace, Version,
};
pub use costs::{Cost, Costs};
pub use hot::HotCode;
pub use options::{AnnotateFormat, AnnotateOptions, CodeOptions, TextOptions, Told};
pub use spots::{EventSpots, Spot};

use crate::contract::format::Read;
use crate::error::{Error, Result, Warning};
use crate::io::{Output, Run};
use crate::pipeline::open::{Input, shown};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use crate::records::callgrind;

/// Annotates.
pub fn run(options: &AnnotateOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let mut output = Output::create(&options.output, &run)?;
    let path = shown(&options.input);
    let annotated = Input::open(&options.input).and_then(|input| match input.format.read {
        Read::Addresses => recorded::annotate(&input, &path, options, job, &mut outcome.warnings),
        _ if callgrind::sniff(&input.bytes) => counted::annotate(&input.bytes, options, job, &mut outcome.warnings),
        _ => Err(Error::new(format!(
            "is {}: annotate needs the addresses of samples, give it the perf.data, or a callgrind.out",
            input.format.name
        ))),
    });
    let annotation = annotated.map_err(|error| error.in_file(&path))?;
    if annotation.events.is_empty() {
        outcome.warnings.push(Warning::new("no samples: none was recorded, or the filters leave none"));
    } else if annotation.listings.is_empty() {
        let what = annotation.words().own;
        outcome.warnings.push(Warning::new(format!("no function with {what} is called like that")));
    }
    match options.format {
        AnnotateFormat::Text(ref style) => text::write(&annotation, style, &mut output)?,
        AnnotateFormat::Html(context) => html::write(&annotation, context, &mut output)?,
        AnnotateFormat::Json => write_text(&mut output, |out| json::write(&annotation, out))?,
    }
    output.commit()?;
    Ok(outcome)
}
