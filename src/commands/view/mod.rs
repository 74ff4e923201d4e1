//! `view` turns any input into a single HTML page that can be opened from disk.
//!
//! The profile is the first section of the page. Each other section has its own file here.

mod callgrind;
mod clocks;
mod code;
mod findings;
mod jit;
mod names;
mod recording;

use crate::analysis::comparison::CompareOptions;
use crate::analysis::pairing::align;
use crate::error::{Error, Result, Warnings};
use crate::io::{self, InPath, OutPath, Output, PrivateDirectory, Run};
use crate::model::printable::readable;
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::any::{LoadOptions, load, load_and_inspect};
use crate::pipeline::open::shown;
use crate::pipeline::outputs::report_negative;
use crate::pipeline::recording::Examined;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use crate::render::viewer;
use crate::render::viewer::Page;
use code::NamedCode;
use names::PageNames;
use recording::RecordingData;
use std::path::Path;

/// The options of `view`: what to show, and where to write the page.
#[derive(Debug)]
pub struct ViewOptions {
    /// The inputs. Several inputs are merged into one.
    pub inputs: Vec<InPath>,
    /// Where to write the page. `None` means a file in a new private directory.
    pub output: Option<OutPath>,
    /// How to read the inputs.
    pub load: LoadOptions,
    /// An earlier profile to compare with.
    pub before: Option<InPath>,
    /// How changes since the earlier profile are judged.
    pub compare: CompareOptions,
    /// The title of the page. `None` means the recorded command line.
    pub title: Option<String>,
    /// How many code ranges to list as instructions.
    pub code: usize,
    /// Open the page in a browser if there is a display.
    pub open: bool,
}

/// Writes the page, prints its path, and opens it if requested.
pub fn run(options: &ViewOptions, job: &Job) -> Result<Outcome> {
    // `begin_copying`: the page has the data of all inputs, so only users who may read all of them may read it.
    let (run, mut outcome) = (Run::begin_copying(), Outcome::default());
    let page = build_page(options, job, &mut outcome)?;
    // Without a path from the user, the page goes to a new directory, which is removed again if writing fails.
    let mut private = None;
    let output_path = match &options.output {
        Some(path) => path.clone(),
        None => {
            let directory = private.insert(PrivateDirectory::create()?);
            OutPath::Path(directory.path.join(file_name(&options.inputs)))
        }
    };
    let mut output = Output::create(&output_path, &run)?;
    viewer::write(&page, &mut output)?;
    output.commit()?;
    if let Some(private) = private {
        private.keep();
    }
    if let OutPath::Path(path) = &output_path
        && !output_path.is_stream()
    {
        let mut stdout = Output::create(&OutPath::Stdout, &run)?;
        write_text(&mut stdout, |out| Ok(writeln!(out, "{}", path.display())?))?;
        stdout.commit()?;
        if options.open && io::has_viewer() {
            io::show(path)?;
        }
    }
    Ok(outcome)
}

/// Reads the inputs, and builds all sections of the page.
fn build_page(options: &ViewOptions, job: &Job, outcome: &mut Outcome) -> Result<Page> {
    let inputs = &options.inputs;
    let mut recorded = Vec::new();
    // Called for each recording while it is loaded, to collect what the page shows beside its samples.
    let mut collect = |examined: &Examined<'_>, job: &Job, warnings: &mut Warnings| {
        recorded.push(RecordingData::new(examined, &options.load, options.code, job, warnings));
    };
    let load_options = LoadOptions { by_input: inputs.len() > 1, ..options.load.clone() };
    let mut profile = load_and_inspect(inputs.into(), Keep::EachRow, &load_options, &mut collect, job, outcome)?;
    let before = match &options.before {
        Some(before) => {
            let before = load(std::slice::from_ref(before), Keep::EachRow, &options.load, job, outcome)?;
            check_common_event(&before, &profile)?;
            Some(align(&before, &profile, options.compare.exact_names))
        }
        None => None,
    };
    for series in before.iter().chain([&profile]).flat_map(|profile| &profile.series) {
        report_negative(series, outcome);
    }
    // If there are several recordings, make all of them start at the same time.
    let recordings = clocks::align(inputs, &mut profile, &mut recorded);
    profile.about.notes.extend(clocks::note(&recordings, &profile));
    let title = options.title.clone().unwrap_or_else(|| title(&profile, inputs));
    // A callgrind file isn't a recording, so `recorded` doesn't have its code, whose costs are exact.
    let exact = callgrind::list_code(inputs, options.code, &options.load, job);
    let plain = PageNames::plain();
    let mut codes: Vec<NamedCode<'_>> = Vec::new();
    for RecordingData { names, code, .. } in &recorded {
        codes.extend(code.iter().map(|code| NamedCode { names, code }));
    }
    codes.extend(exact.iter().map(|code| NamedCode { names: &plain, code }));
    let (code, instructions) = code::section(&codes, &profile, options.code);
    let mut sections = viewer::sections(&profile, &recordings, &instructions, before.as_ref(), options.compare);
    sections.extend(code);
    sections.extend(jit::section(recorded.iter().map(|recorded| &recorded.compiled), &profile));
    sections.extend(findings::section(recorded.iter().map(|recorded| &recorded.findings)));
    Ok(Page { title, sections })
}

/// Fails if no event of the profile occurs in the earlier one, so that there is nothing to compare.
fn check_common_event(before: &Profile, profile: &Profile) -> Result<()> {
    let names = |profile: &Profile| profile.series.iter().map(|series| series.name.clone()).collect::<Vec<_>>();
    let (earlier, later) = (names(before), names(profile));
    if later.iter().any(|name| earlier.contains(name)) {
        return Ok(());
    }
    let (earlier, later) = (earlier.join(", "), later.join(", "));
    Err(Error::new(format!("the input to compare with has no event {later}, only {earlier}")))
}

/// The page's title: the recorded command line. If there are several inputs, or if the command is unknown, the names of
/// the inputs.
fn title(profile: &Profile, inputs: &[InPath]) -> String {
    let command = if inputs.len() > 1 { None } else { command(profile) };
    command.unwrap_or_else(|| subject(inputs))
}

/// The recorded command line. `None` if it is unknown.
fn command(profile: &Profile) -> Option<String> {
    let words: Vec<_> = profile.about.program().iter().map(|word| readable(word).into_owned()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The name of the input for the title. Several inputs are named by their paths, because most recordings are called
/// perf.data and differ only in their directories.
fn subject(inputs: &[InPath]) -> String {
    let path = |input: &InPath| readable(shown(input).as_os_str().as_encoded_bytes()).into_owned();
    match inputs {
        [input] => base_name(&shown(input)),
        _ => inputs.iter().map(path).collect::<Vec<_>>().join(", "),
    }
}

fn base_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "profile".to_owned(), |name| readable(name.as_encoded_bytes()).into_owned())
}

/// The file name of the page if the user gave none.
fn file_name(inputs: &[InPath]) -> String {
    let name = match inputs {
        [InPath::Path(path)] => base_name(path),
        _ => "profile".to_owned(),
    };
    format!("{name}.html")
}
