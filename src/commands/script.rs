//! `script`: perf.data → perf script's text.

use super::load::Input;
use super::recording::{self, RecordingOptions, TextOptions};
use super::{Job, Outcome};
use crate::error::{Error, Result};
use crate::formats::format::Read;
use crate::io::{InPath, OutPath, Output};

/// What to print, and how.
#[derive(Debug)]
pub struct ScriptOptions {
    /// What to read.
    pub input: InPath,
    /// Where to write.
    pub output: OutPath,
    /// How to read.
    pub recording: RecordingOptions,
    /// How to write.
    pub text: TextOptions,
}

/// Prints.
pub fn run(options: &ScriptOptions, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let shown = super::load::shown(&options.input);
    let in_file = |error: Error| error.in_file(&shown);
    let input = Input::open(&options.input).map_err(in_file)?;
    if !matches!(input.format.read, Read::Addresses) {
        let message = format!("is {}; script reads perf.data", input.format.name);
        return Err(in_file(Error::new(message)));
    }
    let mut output = Output::create(&options.output)?;
    let loaded = recording::load(&input.bytes, &shown, &options.recording, job, &mut outcome).map_err(in_file)?;
    recording::write_text(&loaded, options.text, job, &mut output)?;
    output.commit()?;
    Ok(outcome)
}
