//! `flamegraph` draws any input as an SVG.

use crate::analysis::filter::Filter;
use crate::analysis::pairing::align;
use crate::analysis::sorted_stacks::Runs;
use crate::contract::format::WriteOptions;
use crate::error::{Error, Result};
use crate::formats::folded;
use crate::io::{InPath, OutPath, Output, Run};
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::any::{LoadOptions, explain_no_samples, load};
use crate::pipeline::inputs::JobInputs;
use crate::pipeline::outputs::each_event;
use crate::pipeline::sorted::{self, Sorted};
use crate::pipeline::{Job, Outcome};
use crate::render::flamegraph;
use crate::render::flamegraph::{Difference, Look, Picture, Side, Style};
use crate::runtimes::jit_names::JitNames;
use std::io::Write;

/// The options of `flamegraph`: what to draw, where to write it, and how it looks.
#[derive(Debug)]
pub struct FlamegraphOptions {
    /// The inputs. Several inputs are merged into one.
    pub inputs: Vec<InPath>,
    /// Where to write the SVG.
    pub output: OutPath,
    /// How to read the inputs.
    pub load: LoadOptions,
    /// How to write frame names.
    pub write: WriteOptions,
    /// Title, colors, size and style.
    pub look: Look,
    /// An earlier profile, and how to compare with it: frames are colored by their change since then. `None` means an
    /// ordinary flame graph.
    pub before: Option<(InPath, Difference)>,
}

impl FlamegraphOptions {
    /// The input, if it is the only one and the picture only shows the sums of its stacks by frame names. Folded stacks
    /// can then be summed by sorting their lines, without building a profile.
    fn sortable_input(&self) -> Option<&InPath> {
        let [input] = &self.inputs[..] else { return None };
        let (look, load) = (&self.look, &self.load);
        let is_plain_picture = look.style == Style::Page
            && !look.flame_chart
            && !look.reversed
            && look.base.is_empty()
            && self.before.is_none();
        let takes_all = load.filter == Filter::default() && load.event.is_empty();
        let keeps_names = load.jit_names.given == JitNames::Raw;
        if is_plain_picture && takes_all && keeps_names { Some(input) } else { None }
    }
}

/// Draws the flame graph. If there are several events, each gets an SVG file of its own.
pub fn run(options: &FlamegraphOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let keep = if options.look.flame_chart { Keep::EachRow } else { Keep::Sums };
    let demangles = options.load.symbols.demangle;
    let mut opened = None;
    if let Some(input) = options.sortable_input() {
        match sorted::open(input, demangles, job, &mut outcome)? {
            Sorted::Sums(sums) => return draw_sums(&sums, options, &run, job, outcome),
            Sorted::Other(other) => opened = Some(other),
        }
    }
    let profile = load(JobInputs::with_first(opened, &options.inputs), keep, &options.load, job, &mut outcome)?;
    if let Some(why) = outcome.no_samples.take() {
        return Err(Error::new(why));
    }
    let before = match &options.before {
        Some((before, difference)) => {
            let before = load(std::slice::from_ref(before), Keep::Sums, &options.load, job, &mut outcome)?;
            Some((align(&before, &profile, difference.compare.exact_names), *difference))
        }
        None => None,
    };
    let mut look = options.look.clone();
    look.subject = look.subject.or_else(|| subject(&options.inputs));
    each_event(&profile, &options.output, &run, &mut outcome, |series, out| {
        let write = WriteOptions { series, ..options.write.clone() };
        match &before {
            Some((before, difference)) => {
                let before = side_before(before, &profile, series)?;
                let after = Side { profile: &profile, series };
                draw_difference(before, after, *difference, &write, &look, job, out)
            }
            None if look.style == Style::Inferno => flamegraph::draw_inferno(&profile, &write, &look, out),
            None => write_picture(&flamegraph::draw(&profile, &write, &look)?, job, out),
        }
    })?;
    Ok(outcome)
}

/// Draws folded stacks that were summed without building a profile.
fn draw_sums(sums: &Runs, options: &FlamegraphOptions, run: &Run, job: &Job, outcome: Outcome) -> Result<Outcome> {
    if sums.is_empty() {
        return Err(Error::new(explain_no_samples(&options.inputs, &options.load.filter, false, job)));
    }
    let mut output = Output::create(&options.output, run)?;
    let look =
        Look { subject: options.look.subject.clone().or_else(|| subject(&options.inputs)), ..options.look.clone() };
    write_picture(&flamegraph::draw_sorted(sums, &options.write, &look)?, job, &mut output)?;
    output.commit()?;
    Ok(outcome)
}

/// Renders the picture in parts on all threads. Earlier parts are written while later ones are rendered.
fn write_picture(picture: &Picture, job: &Job, out: &mut dyn Write) -> Result<()> {
    out.write_all(picture.head())?;
    job.pool.stream(picture.pieces(), |piece| picture.text(&piece), |text| Ok(out.write_all(&text)?))?;
    Ok(out.write_all(picture.tail())?)
}

/// The name of the input file, for the flame graph's title. `None` if there are several inputs.
fn subject(inputs: &[InPath]) -> Option<String> {
    match inputs {
        [InPath::Path(path)] => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// Finds the event of the earlier profile that has the same name as event number `series` of the later one. Fails if
/// there is none.
fn side_before<'a>(before: &'a Profile, after: &Profile, series: usize) -> Result<Side<'a>> {
    let name = after.series.get(series).map(|series| &series.name);
    let series = before.series.iter().position(|series| Some(&series.name) == name);
    let series = series.ok_or_else(|| {
        let name = name.map_or("the only one", String::as_str);
        Error::new(format!("the input to compare with has no event {name}; choose one that both have with --event"))
    })?;
    Ok(Side { profile: before, series })
}

/// Draws the flame graph of the later profile, colored by the change since the earlier one.
fn draw_difference(
    before: Side<'_>,
    after: Side<'_>,
    difference: Difference,
    write: &WriteOptions,
    look: &Look,
    job: &Job,
    out: &mut Output,
) -> Result<()> {
    if look.style == Style::Page {
        return write_picture(&flamegraph::draw_difference(before, after, write, look, difference)?, job, out);
    }
    let (before, after) = (folded_lines(before, write)?, folded_lines(after, write)?);
    flamegraph::draw_inferno_difference(&before, &after, difference, look, out)
}

/// The stacks of one event as folded lines, which inferno compares.
fn folded_lines(side: Side<'_>, write: &WriteOptions) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    folded::write(side.profile, &WriteOptions { series: side.series, ..write.clone() }, &mut lines)?;
    Ok(lines)
}
