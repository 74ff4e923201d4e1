//! What stands above a table in text: what was recorded, how, and how much of it has a name.

use crate::error::Result;
use crate::model::category::Category;
use crate::model::groups::ending_in;
use crate::model::printable::readable;
use crate::model::quantity::{counted, grouped, quantity};
use crate::model::stacks::{FrameId, Profile, Sampling, Series, UNKNOWN, Unit, Weight};
use crate::pipeline::table::{TextStyle, cut_middle};
use std::borrow::Cow;
use std::io::Write;

/// The lines of one profile's event, without the marks of comments.
pub(super) fn about(profile: &Profile, series: &Series, weight: Weight) -> Vec<String> {
    let command: Vec<_> = profile.about.program().iter().map(|word| readable(word)).collect();
    let command = Some(command.join(" ")).filter(|command| !command.is_empty());
    command.into_iter().chain([sampled(profile, series, weight), named(profile, series, weight)]).collect()
}

/// `1,125 samples of cpu-clock, 999 a second: 1.13 s; 0 lost`
pub(super) fn sampled(profile: &Profile, series: &Series, weight: Weight) -> String {
    let (whole, samples) = series.rows.iter().fold((0u64, 0u64), |(whole, samples), row| {
        (whole.saturating_add(weight.of(row)), samples.saturating_add(row.count))
    });
    let often = series.sampling.map_or_else(String::new, |sampling| often(sampling, &series.unit));
    let event =
        if series.name == "samples" { String::new() } else { format!(" of {}", readable(series.name.as_bytes())) };
    let mut line = format!("{}{event}{often}", counted(samples, "sample"));
    match &series.unit {
        _ if weight == Weight::Samples => {}
        Unit::Samples if whole == samples => {}
        Unit::Samples => line += &format!(", weights of {}", grouped(whole)),
        unit => line += &format!(": {}", quantity(whole, unit, weight)),
    }
    if series.sampling.is_some() || profile.about.lost > 0 {
        line += &format!("; {} lost", grouped(profile.about.lost));
    }
    line
}

fn often(sampling: Sampling, unit: &Unit) -> String {
    match sampling {
        Sampling::Frequency(times) => format!(", {} a second", grouped(times)),
        Sampling::Period(period) => format!(", one every {}", quantity(period, unit, Weight::Period)),
    }
}

/// How much ends in functions that have a name; of JIT code, too, if there is any.
fn named(profile: &Profile, series: &Series, weight: Weight) -> String {
    let has_name = |frame: FrameId| has_name(profile, frame);
    let is_jit = |frame: FrameId| matches!(Category::of(profile.frame_of(frame)), Category::Jit(_));
    let whole = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(weight.of(row)));
    let all = ending_in(profile, series, weight, has_name);
    let jit = ending_in(profile, series, weight, is_jit);
    let jit_named = ending_in(profile, series, weight, |frame| is_jit(frame) && has_name(frame));
    let mut line = format!("{:.2}% in functions with a name", percent(all, whole));
    if jit > 0 {
        let (of_whole, of_jit) = (percent(jit, whole), percent(jit_named, jit));
        line += &format!("; {of_whole:.2}% in JIT code, {of_jit:.2}% of it named");
    }
    line
}

/// Inputs that come with their names call a function after its module where they have no name for it: `[libc.so.6]`.
fn has_name(profile: &Profile, frame: FrameId) -> bool {
    let name = profile.name_of(profile.frame_of(frame).name);
    name != UNKNOWN && (profile.perf_names || !(name.starts_with(b"[") && name.ends_with(b"]")))
}

/// A part of a whole in per cent; of nothing, nothing.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Writes them as comments, and a blank line.
pub(super) fn write(lines: &[String], style: TextStyle, out: &mut dyn Write) -> Result<()> {
    for line in lines {
        let line = format!("# {line}");
        let line = style.width.map_or(Cow::Borrowed(line.as_str()), |width| cut_middle(&line, width));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(writeln!(out)?)
}
