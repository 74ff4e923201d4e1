//! `pack` writes a recording and everything that names its code to one archive, which every command can read on any
//! machine.
//!
//! | file | what it is for |
//! |---|---|
//! | `contents` | the files of the archive, each path once |
//! | `programs` | the sampled ELF files and their debug information |
//! | `optional_parts` | parts that are packed only on request, because they reveal more than names |
//! | `privacy` | files that only their owner may read, which are left out by default |
//! | `symbols_only` | reduces an ELF file to its symbols and unwind data |

mod contents;
mod optional_parts;
mod options;
mod privacy;
mod programs;
mod symbols_only;

use crate::analysis::quantity::counted;
use crate::contract::format::{Format, Read};
use crate::error::{Error, Result};
use crate::io::{self, Content, Output, Run};
use crate::model::abi::machine_name;
use crate::model::stacks::Keep;
use crate::pipeline::archive::{self, Manifest};
use crate::pipeline::open::{Input, shown};
use crate::pipeline::recording::survey::host;
use crate::pipeline::recording::{Survey, with_samples};
use crate::pipeline::terminal::refuse_terminal;
use crate::pipeline::{Job, Outcome};
use contents::Contents;
pub use options::{OptionalPart, PackOptions};
use privacy::Privacy;

/// Packs the recording, or lists what would be packed.
pub fn run(options: &PackOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let path = &shown(&options.input);
    pack(options, &run, job, &mut outcome).map_err(|error| error.in_file(path))?;
    Ok(outcome)
}

/// Reads the recording, collects the contents of the archive, and writes or lists them.
fn pack(options: &PackOptions, run: &Run, job: &Job, outcome: &mut Outcome) -> Result<()> {
    let path = &shown(&options.input);
    let Outcome { warnings, summary, .. } = outcome;
    let input = Input::open(&options.input)?;
    if !matches!(input.format.read, Read::Addresses) {
        return Err(refused(input.format));
    }
    let recording = &optional_parts::options(options);
    with_samples(&input, path, recording, Keep::Sums, job, warnings, |examined, warnings| {
        // `privacy` decides which files may be packed, and remembers those that are left out.
        let mut privacy = Privacy::new(options);
        let programs = programs::find(examined, options.symbols_only, &mut privacy, warnings);
        let others = optional_parts::find(examined, &mut privacy, warnings);
        privacy.report(warnings);
        let mut contents = Contents::default();
        contents.add_recording(&input, path);
        contents.add_sources(examined.resolution.found, options, warnings);
        contents.add_programs(&programs, options.symbols_only);
        contents.add_others(&others, warnings);
        match options.list {
            true => io::print(|out| contents.list(&privacy, out)),
            false => {
                let line = write(&contents, examined.resolution.survey, options, run, job)?;
                summary.push(line);
                Ok(())
            }
        }
    })
}

/// Writes the archive. Returns a line for the summary.
fn write(contents: &Contents<'_>, survey: &Survey<'_>, options: &PackOptions, run: &Run, job: &Job) -> Result<String> {
    let output = options.output()?;
    if output.is_terminal() {
        return Err(refuse_terminal("an archive"));
    }
    let mut out = Output::create_for(&output, Content::OwnersAlone, run)?;
    let host = host(survey.recording).map(|host| String::from_utf8_lossy(host).into_owned());
    let manifest = Manifest::new(survey.processes.machine.map(machine_name), host, contents.files(&job.pool));
    archive::write(&mut out, &manifest, &contents.pieces())?;
    out.commit()?;
    Ok(format!("{}: {}", output.shown().display(), counted(manifest.files.len() as u64, "file")))
}

/// The error for an input that isn't a perf.data recording.
fn refused(format: &Format) -> Error {
    let message = format!("is a {} file; pack reads perf.data", format.name);
    let remedy = match format.rewriter {
        Some(by) => format!("use jitgraft {} to name its JIT code; the output then needs no other files", by.command),
        None => "such a file needs no other files, so there is nothing to pack; to convert it, use jitgraft export"
            .to_owned(),
    };
    Error::new(message).with_remedy(Some(remedy))
}
