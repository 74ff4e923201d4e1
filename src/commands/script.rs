//! `script` prints perf.data like perf script does. It can also read the text that perf script printed, and name the
//! JIT frames in it.

use crate::analysis::filter::Filter;
use crate::error::{Error, Result, Warning};
use crate::formats;
use crate::formats::perf_script::rewrite::Style;
use crate::formats::{perf_data, perf_script};
use crate::io::{InPath, OutPath, Output, Run, Stream};
use crate::pipeline::any::explain_no_samples;
use crate::pipeline::mistaken;
use crate::pipeline::open::{self, Input, PeekedInput};
use crate::pipeline::outputs::commit;
use crate::pipeline::progress::Progress;
use crate::pipeline::recording::{self, RecordingOptions, TextOptions};
use crate::pipeline::script_text::{self, FilterOptions};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::symbols::SymbolOptions;

/// The options of `script`: what to print or name, and how.
#[derive(Debug)]
pub struct ScriptOptions {
    /// A perf.data file, or text that perf script printed.
    pub input: InPath,
    /// Where to write the text.
    pub output: OutPath,
    /// How to read a recording.
    pub recording: RecordingOptions,
    /// How to print a recording.
    pub text: TextOptions,
    /// If the input is text: also replace the names of frames that have one already.
    pub rename: bool,
    /// If the input is text: also name frames in ELF files.
    pub native: bool,
}

/// What the input turned out to be.
enum ScriptInput {
    /// The input is empty.
    Nothing,
    /// The input is a recording to print.
    Recording(Input),
    /// The input is text whose frames are to be named. The progress bar of the stream must be kept while the stream is
    /// read; `None` if there is none.
    Text(Stream, Option<Progress>),
}

/// Prints a recording, or names the frames of a text.
pub fn run(options: &ScriptOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let shown = crate::pipeline::open::shown(&options.input);
    let in_file = |error: Error| error.in_file(&shown);
    let input = match open(&options.input, job).map_err(in_file)? {
        ScriptInput::Recording(input) => input,
        ScriptInput::Nothing => {
            outcome.warnings.push(in_file(open::empty(&options.input)).into_warning());
            commit(Output::create(&options.output, &run)?, &mut outcome)?;
            return Ok(outcome);
        }
        ScriptInput::Text(text, _progress) => {
            options.check_text().map_err(in_file)?;
            return script_text::run(text, &options.filter(), &run, job).map_err(in_file);
        }
    };
    let mut output = Output::create(&options.output, &run)?;
    let loaded = recording::load(&input, &shown, &options.recording, job, &mut outcome).map_err(in_file)?;
    if loaded.samples.rows.is_empty() {
        let RecordingOptions { filter, event, .. } = &options.recording;
        let why = explain_no_samples(std::slice::from_ref(&options.input), filter, !event.is_empty(), &[], job);
        // Filters that match nothing are a mistake of the user, so that is an error. A recording without samples isn't.
        if !event.is_empty() || *filter != Filter::default() {
            return Err(Error::new(why).in_file(&shown));
        }
        outcome.warnings.push(Warning::new(why));
    }
    for (field, options) in recording::unrecorded_fields(&loaded, options.text.fields) {
        let message = format!("the field {field} is not printed, because no event recorded it (perf record {options})");
        outcome.warnings.push(Warning::new(message).in_file(&shown, None));
    }
    write_text(&mut output, |out| recording::write_text(&loaded, options.text, job, out))?;
    commit(output, &mut outcome)?;
    Ok(outcome)
}

/// Detects the kind of input from its beginning. Of text, only the beginning is read: a user who pipes perf script into
/// this sees the first frames at once.
fn open(path: &InPath, job: &Job) -> Result<ScriptInput> {
    let mut progress = None;
    let peeked = PeekedInput::open_through(path, |file| {
        let (bar, reader) = Progress::for_reading(file, job);
        progress = Some(bar);
        reader
    })?;
    let mut file = match peeked {
        PeekedInput::Directory(directory) => return Input::open_directory(&directory).map(ScriptInput::Recording),
        PeekedInput::File(file) => file,
    };
    if file.is_archive()? || perf_data::sniff(file.peek(HEAD)?) {
        return file.into_whole().map(ScriptInput::Recording);
    }
    // The stream unpacks the file if it is compressed. So look again for a recording.
    let mut stream = file.into_stream()?;
    let head = stream.peek(HEAD)?;
    match perf_data::sniff(head) {
        true => Input::from_stream(stream).map(ScriptInput::Recording),
        // perf script prints nothing for a recording without samples, so an empty pipe is not an error.
        false if head.is_empty() && matches!(path, InPath::Stdin) => Ok(ScriptInput::Nothing),
        false if head.is_empty() => Err(open::empty(path)),
        false if head.contains(&0) || !perf_script::may_be_text(head) || is_other_format(head) => Err(no_text(head)),
        false => Ok(ScriptInput::Text(stream, progress)),
    }
}

/// True if a text is in a known format that isn't perf script's: one that jitgraft reads, or one that it only knows by
/// name, such as DHAT's. `head` is the beginning of the text.
fn is_other_format(head: &[u8]) -> bool {
    match formats::detect(head) {
        Some(format) => format.name != PERF_SCRIPT,
        None => formats::unread::recognize(head).is_some(),
    }
}

/// The error for an input that is neither a recording nor text of samples. `head` is the beginning of the input.
fn no_text(head: &[u8]) -> Error {
    match formats::detect(head) {
        None => mistaken::unknown_format(head),
        Some(format) => {
            let message = format!("is a {} file; script reads perf.data and the output of perf script", format.name);
            let remedy = match format.rewriter {
                Some(by) => {
                    format!("use jitgraft {} to name its JIT code, or jitgraft report to look at it", by.command)
                }
                None => "use jitgraft report or jitgraft collapse".to_owned(),
            };
            Error::new(message).with_remedy(Some(remedy))
        }
    }
}

/// The name of the format of perf script in the table [`FORMATS`](formats::FORMATS).
const PERF_SCRIPT: &str = "perf-script";

/// The number of bytes that suffice to distinguish a recording from text.
const HEAD: usize = 1 << 12;

impl ScriptOptions {
    /// Fails if the user selected samples by a filter, because the lines of a text are copied without being selected.
    fn check_text(&self) -> Result<()> {
        let RecordingOptions { filter, event, .. } = &self.recording;
        if *filter == Filter::default() && event.is_empty() {
            return Ok(());
        }
        let error = Error::usage("is text; `script` can only select samples, processes or times in recordings");
        Err(error.with_remedy(Some("select them with perf script, or pass the recording itself".to_owned())))
    }

    /// The options for naming the frames of a text.
    fn filter(&self) -> FilterOptions {
        let srcline = self.text.fields.srcline;
        let style = Style { rename: self.rename, srcline, native: self.native, ..Style::default() };
        let (input, output) = (self.input.clone(), self.output.clone());
        let symbols = SymbolOptions { inlines: false, lines: false, ..self.recording.symbols.clone() };
        FilterOptions { input, output, style, sources: self.recording.sources.clone(), symbols }
    }
}
