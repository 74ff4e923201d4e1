//! The lines above a table of `report`: the program, the event with its rate and total, and the share of code that has
//! a name.

use crate::analysis::code_shares::CodeShares;
use crate::analysis::quantity::{counted, fraction, grouped, quantity, row_word};
use crate::error::Result;
use crate::model::printable::readable;
use crate::model::stacks::{MILLIONTHS, Profile, Sampling, Series, Unit, Weight};
use crate::pipeline::table::cut_middle;
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// The header lines for one event of a profile, without comment marks.
pub(super) fn header_lines(profile: &Profile, series: &Series, weight: Weight) -> Vec<String> {
    let command: Vec<_> = profile.about.program().iter().map(|word| readable(word)).collect();
    let command = Some(command.join(" ")).filter(|command| !command.is_empty());
    let named = CodeShares::count(profile, series, weight).to_string();
    command.into_iter().chain([describe_event(profile, series, weight), named]).collect()
}

/// A summary of an event: `1,125 samples of cpu-clock (999 per second), 1.13 s`.
pub(super) fn describe_event(profile: &Profile, series: &Series, weight: Weight) -> String {
    let total = series.signed_total(weight);
    let (sign, whole) = (if total < 0 { "-" } else { "" }, total.unsigned_abs());
    let samples = series.signed_rows(weight).fold(0u64, |samples, (row, _)| samples.saturating_add(row.count));
    let rate = series.sampling.map_or_else(String::new, |sampling| describe_rate(sampling, &series.unit));
    let event =
        if series.name == "samples" { String::new() } else { format!(" of {}", readable(series.name.as_bytes())) };
    // Recorded calls aren't samples, so the line only has the total and the event's name.
    let Some(word) = row_word(profile, series) else {
        return format!("{sign}{} {}", grouped(whole), readable(series.name.as_bytes()));
    };
    let mut line = format!("{}{event}{rate}", counted(samples, word));
    // Add the total weight, unless it is the number of samples, which the line has already.
    match &series.unit {
        _ if weight == Weight::Samples => {}
        Unit::Samples if whole == samples => {}
        Unit::Samples => line += &format!(", weights of {sign}{}", grouped(whole)),
        Unit::Named(name) if name == MILLIONTHS => line += &format!(", weights of {sign}{}", fraction(whole)),
        unit => line += &format!(", {sign}{}", quantity(whole, unit, weight)),
    }
    if profile.about.lost > 0 {
        line += &format!("; {} lost", grouped(profile.about.lost));
    }
    line
}

/// How often samples were taken, in parentheses.
fn describe_rate(sampling: Sampling, unit: &Unit) -> String {
    match sampling {
        Sampling::Frequency(times) => format!(" ({} per second)", grouped(times)),
        Sampling::Period(period) => format!(" (one per {})", quantity(period, unit, Weight::Period)),
    }
}

/// `part` as a percentage of `whole`; 0 if `whole` is 0.
pub(super) fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 || part == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Breaks header lines between words so that they fit `width` terminal columns, including the comment mark. `None`
/// means that lines may have any width.
pub(super) fn wrap(lines: Vec<String>, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return lines };
    let room = width.saturating_sub(MARK.len());
    let mut wrapped = Vec::new();
    for line in lines {
        let mut current = String::new();
        for word in line.split(' ') {
            if !current.is_empty() && current.width() + 1 + word.width() > room {
                wrapped.push(std::mem::replace(&mut current, INDENT.to_owned()));
            } else if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        wrapped.push(current);
    }
    // A single word may still be too long, such as a path.
    wrapped.into_iter().map(|line| cut_middle(&line, room).into_owned()).collect()
}

/// What header lines start with.
const MARK: &str = "# ";

/// The indent of the continuation of a broken line.
const INDENT: &str = "  ";

/// Writes the header lines as comments, followed by a blank line.
pub(super) fn write(lines: &[String], out: &mut dyn Write) -> Result<()> {
    for line in lines {
        writeln!(out, "{}", format!("{MARK}{line}").trim_end())?;
    }
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_break_between_words() {
        let wrapped = |line: &str, width| wrap(vec![line.to_owned()], width);
        assert_eq!(
            wrapped("12.50% in JIT code; 3% in the kernel", Some(22)),
            ["12.50% in JIT code;", "  3% in the kernel"]
        );
        assert_eq!(wrapped("short", Some(22)), ["short"]);
        assert_eq!(wrapped("any length", None), ["any length"]);
        assert_eq!(wrapped("/a/very/long/path/of/a/program", Some(12)), ["/a/ve…gram"]);
        assert_eq!(wrapped("函数 函数名", Some(10)), ["函数", "  函数名"]);
    }
}
