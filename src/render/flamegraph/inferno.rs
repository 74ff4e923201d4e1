//! Draws flame graphs with the inferno crate, for its palettes and its coloring of differences. The page is identical
//! to the one that inferno-flamegraph makes of the same folded stacks.
//!
//! Boxes that are too narrow to be drawn are left out before inferno sees them. This doesn't change the picture, and it
//! avoids expanding deep recordings into one line per stack.

use super::look::{Difference, Look, no_samples};
use crate::analysis::call_tree::{CallTree, Spelling};
use crate::contract::format::WriteOptions;
use crate::error::{Error, Result};
use crate::model::printable::{LONGEST, printable, readable};
use crate::model::stacks::{Profile, Series, Unit, Weight};
use ::inferno::flamegraph::{self, Direction, TextTruncateDirection};
use std::borrow::Cow;
use std::io::Write;

/// Draws one event of a profile with inferno, which takes folded stacks: lines that each consist of a stack and its
/// weight.
pub fn draw(profile: &Profile, options: &WriteOptions, look: &Look, out: &mut dyn Write) -> Result<()> {
    let series = profile.series.get(options.series).ok_or_else(|| no_samples(None))?;
    let count_name = look.count_name.clone().unwrap_or_else(|| count_name(series, options.weight));
    let look = &Look { count_name: Some(count_name), ..look.clone() };
    let (by, annotate, shortening) = (options.by, options.annotate, options.shortening);
    let spelling = Spelling {
        by,
        annotate,
        shortening,
        reversed: look.reversed,
        // Folded stacks only contain names, so nothing else may keep frames apart.
        by_category: false,
        by_start: false,
        join_unnamed: false,
    };
    let mut lines = Vec::new();
    if look.flame_chart {
        // One line for each sample, in order of time. Consecutive samples with equal stacks share a line.
        CallTree::in_time(profile, series, options.weight, spelling, |stack, weight| lines.push(line(stack, weight)));
        // inferno expects the lines of a flame chart in reverse order of time.
        lines.reverse();
    } else {
        let tree = CallTree::new(profile, series, options.weight, spelling);
        append_lines(&tree, narrowest(&tree, look), &mut lines);
    }
    if lines.is_empty() {
        return Err(no_samples(Some(series)));
    }
    draw_lines(lines.iter().map(String::as_str), look, out)
}

/// Draws the folded stacks `after`. Boxes are red where they grew compared with `before`, and blue where they shrank.
pub fn draw_difference(
    before: &[u8],
    after: &[u8],
    difference: Difference,
    look: &Look,
    out: &mut dyn Write,
) -> Result<()> {
    // `compare` tells changes from chance. inferno can't: it colors all changes.
    let Difference { normalize, strip_hex, compare: _ } = difference;
    let options = ::inferno::differential::Options { normalize, strip_hex };
    let mut lines = Vec::new();
    ::inferno::differential::from_readers(options, before, after, &mut lines)?;
    let lines = String::from_utf8_lossy(&lines);
    draw_lines(lines.lines(), look, out)
}

/// The minimum weight of the boxes that inferno draws, so that lighter boxes needn't be passed to it. 0 if that isn't
/// known.
fn narrowest(tree: &CallTree, look: &Look) -> u64 {
    // inferno measures widths against its total. With base functions, this is the total of the stacks with these
    // functions, which isn't known here.
    if !look.base.is_empty() {
        return 0;
    }
    let percent = look.min_width.unwrap_or(flamegraph::defaults::MIN_WIDTH);
    (percent / (100.0 / tree.total() as f64)).ceil() as u64
}

/// Appends the stacks of a tree as lines of folded stacks. Boxes lighter than `narrow` are left out of the stacks.
fn append_lines(tree: &CallTree, narrow: u64, lines: &mut Vec<String>) {
    let pushed: Result<(), std::convert::Infallible> = tree.stacks(narrow, |stack, weight| {
        lines.push(line(stack, weight));
        Ok(())
    });
    // `Infallible` has no values, so there is no error to handle.
    match pushed {
        Ok(()) => {}
    }
}

/// A line of folded stacks. If a stack ends with a space and a number, inferno would take the number for a second
/// weight, so the space becomes a no-break space.
fn line(stack: &str, weight: u64) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let stack = match stack.rsplit_once(' ') {
        Some((name, last)) if is_number(last) => Cow::Owned(format!("{name}\u{a0}{last}")),
        _ => Cow::Borrowed(stack),
    };
    format!("{stack} {weight}")
}

fn count_name(series: &Series, weight: Weight) -> String {
    match (&series.unit, weight) {
        (Unit::Samples, _) | (_, Weight::Samples) => "samples".to_owned(),
        (Unit::Nanos, _) => "ns".to_owned(),
        (Unit::Named(name), _) => readable(name.as_bytes()).into_owned(),
    }
}

/// Draws folded stacks with inferno. Each line consists of a stack and its weight.
fn draw_lines<'a>(lines: impl Iterator<Item = &'a str>, look: &Look, out: &mut dyn Write) -> Result<()> {
    let lines: Vec<Cow<'_, str>> = lines.map(readable_line).collect();
    if lines.is_empty() {
        return Err(no_samples(None));
    }
    // inferno adds weights without checking for overflow, so refuse weights whose sum is too large.
    let weights = lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    if weights.sum::<f64>() >= u64::MAX as f64 {
        return Err(Error::new(format!("the weights of the stacks add up to more than {}", u64::MAX))
            .with_remedy(Some("draw the graph without --style inferno".to_owned())));
    }
    flamegraph::from_lines(&mut options(look), lines.iter().map(Cow::as_ref), out)
        .map_err(|error| Error::new("cannot draw the flame graph").because(error))
}

/// Makes all names of a folded stack printable, and shortens very long ones.
fn readable_line(line: &str) -> Cow<'_, str> {
    let line = printable(line.as_bytes());
    // `LONGEST` is the maximum length of a name. In a line that isn't longer, no name is too long.
    if line.len() <= LONGEST {
        return line;
    }
    let names: Vec<_> = line.split(';').map(|name| readable(name.as_bytes())).collect();
    Cow::Owned(names.join(";"))
}

/// Converts our options to inferno's. For most of those that the user didn't give, inferno's defaults stay.
fn options<'a>(look: &Look) -> flamegraph::Options<'a> {
    let mut options = flamegraph::Options::default();
    let title = match (look.flame_chart, look.inverted) {
        (true, _) => flamegraph::defaults::CHART_TITLE,
        (false, true) => "Icicle Graph",
        (false, false) => flamegraph::defaults::TITLE,
    };
    options.title = look.title.clone().unwrap_or_else(|| title.to_owned());
    options.subtitle = look.subtitle.clone();
    options.colors = look.colors.unwrap_or_default();
    options.bgcolors = look.bgcolors;
    options.hash = look.hash;
    // If `deterministic` is false, inferno picks random colors, so that equal inputs give different pictures.
    options.deterministic = !look.hash;
    options.color_diffusion = look.color_diffusion;
    options.flame_chart = look.flame_chart;
    options.base = look.base.clone();
    options.image_width = look.width;
    options.negate_differentials = look.negate;
    options.pretty_xml = look.pretty_xml;
    options.no_javascript = look.no_javascript;
    if look.inverted {
        options.direction = Direction::Inverted;
    }
    if look.truncate_right {
        options.text_truncate_direction = TextTruncateDirection::Right;
    }
    set_if_given(&mut options.notes, &look.notes);
    set_if_given(&mut options.search_color, &look.search_color);
    set_if_given(&mut options.stroke_color, &look.stroke_color);
    set_if_given(&mut options.uicolor, &look.ui_color);
    set_if_given(&mut options.frame_height, &look.height);
    set_if_given(&mut options.min_width, &look.min_width);
    set_if_given(&mut options.font_type, &look.font_type);
    set_if_given(&mut options.font_size, &look.font_size);
    set_if_given(&mut options.font_width, &look.font_width);
    set_if_given(&mut options.count_name, &look.count_name);
    set_if_given(&mut options.name_type, &look.name_type);
    set_if_given(&mut options.factor, &look.factor);
    options
}

/// Sets one of inferno's options if the user gave a value for it; otherwise, inferno's default stays.
fn set_if_given<T: Clone>(option: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        option.clone_from(value);
    }
}
