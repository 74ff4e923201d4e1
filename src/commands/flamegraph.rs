//! `flamegraph` draws any input as an SVG.

use crate::analysis::pairing::align;
use crate::contract::format::WriteOptions;
use crate::error::{Error, Result};
use crate::formats::folded;
use crate::io::{InPath, OutPath, Output, Run};
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::any::{LoadOptions, load};
use crate::pipeline::outputs::{each_event, report_negative};
use crate::pipeline::{Job, Outcome};
use crate::render::flamegraph;
use crate::render::flamegraph::{Difference, Look, Picture, Side, Style};
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
    /// An earlier profile, and how to compare with it: frames are colored by their change since then. `None` if nothing
    /// is compared.
    pub before: Option<(InPath, Difference)>,
}

/// Draws the flame graph. If there are several events, each gets an SVG file of its own.
pub fn run(options: &FlamegraphOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    // A flame chart shows samples in the order of time; a flame graph only their sums.
    let keep = if options.look.flame_chart { Keep::EachRow } else { Keep::Sums };
    let profile = load(&options.inputs, keep, &options.load, job, &mut outcome)?;
    if let Some(why) = outcome.no_samples.take() {
        return Err(Error::new(why));
    }
    let before = match &options.before {
        Some((before, difference)) => {
            let before = load(std::slice::from_ref(before), Keep::Sums, &options.load, job, &mut outcome)?;
            // Negative weights of the earlier profile are reported here. `each_event` reports only those of the later
            // one.
            before.series.iter().for_each(|series| report_negative(series, &mut outcome));
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

/// Renders the picture in parts on all threads, and writes each part while later ones are still being rendered.
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
        let known: Vec<_> = before.series.iter().map(|series| series.name.as_str()).collect();
        let common: Vec<_> =
            known.iter().copied().filter(|event| after.series.iter().any(|series| series.name == *event)).collect();
        let remedy = match common.first() {
            Some(first) => format!("choose an event that both have, such as --event {first}"),
            None => "these inputs have no event in common, so they cannot be compared".to_owned(),
        };
        let known = known.join(", ");
        Error::new(format!("the input to compare with has no event {name}, only {known}")).with_remedy(Some(remedy))
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
    // inferno compares folded stacks as text.
    let (before, after) = (folded_lines(before, write)?, folded_lines(after, write)?);
    flamegraph::draw_inferno_difference(&before, &after, difference, look, out)
}

/// The stacks of one event as folded lines. inferno takes the two profiles of a difference in this form.
fn folded_lines(side: Side<'_>, write: &WriteOptions) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    folded::write(side.profile, &WriteOptions { series: side.series, ..write.clone() }, &mut lines)?;
    Ok(lines)
}
