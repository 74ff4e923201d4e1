//! Parses the values of `--time`: ranges in seconds or percent, with perf's syntax and some extensions.

use super::intervals::duration;
use crate::analysis::filter::{Bound, TimeRange};
use crate::model::Nanos;

/// The time ranges of one `--time` flag.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TimeRanges(pub(super) Vec<TimeRange>);

/// Parses the value of a `--time` flag: `A,B`, `A,B C,D`, `A-B`, `A-B,C-D`, `10%-20%,40%-50%`, `10%/2` (the second
/// tenth) or `10%` (the first tenth).
pub(super) fn time_ranges(text: &str) -> Result<TimeRanges, String> {
    let in_percent = text.contains('%');
    // In a range of seconds like `A,B`, a comma separates the two ends. In ranges like `A-B` and in percentages, commas
    // separate ranges.
    let is_comma_between_ranges = in_percent || text.contains('-');
    let items = text.split(|c: char| c.is_whitespace() || (c == ',' && is_comma_between_ranges));
    let items: Vec<&str> = items.filter(|item| !item.is_empty()).collect();
    let mut ranges = Vec::new();
    for item in &items {
        if !in_percent {
            ranges.push(parse_times(item)?);
        } else if items.len() == 1 || item.contains(['-', '/']) {
            ranges.push(parse_percentages(item)?);
        } else {
            return Err(format!("'{item}' in '{text}' is not a range; expected A%-B%, or A%/N for the Nth part"));
        }
    }
    if ranges.iter().any(is_backwards) {
        return Err("a range ends before it begins".to_owned());
    }
    if ranges.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    Ok(TimeRanges(ranges))
}

const EXPECTED: &str =
    "expected A,B in seconds or A%-B%; for several ranges, 'A,B C,D' or A-B,C-D in seconds, or A%-B%,C%-D%";

fn is_backwards(range: &TimeRange) -> bool {
    match (range.from, range.to) {
        (Some(Bound::At(from)), Some(Bound::At(to))) => from > to,
        (Some(Bound::Percent(from)), Some(Bound::Percent(to))) => from > to,
        _ => false,
    }
}

/// Parses a range of seconds, `A,B` or `A-B`. Either end may be missing.
fn parse_times(text: &str) -> Result<TimeRange, String> {
    let (from, to) = text.split_once([',', '-']).ok_or(EXPECTED)?;
    if to.contains([',', '-']) {
        return Err(format!("'{text}' has more than two times, but a range has two; {EXPECTED}"));
    }
    Ok(TimeRange { from: parse_time_bound(from)?, to: parse_time_bound(to)? })
}

/// Parses one end of a range in seconds. `None` if it is missing.
fn parse_time_bound(text: &str) -> Result<Option<Bound>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let has_unit = text.ends_with(|c: char| c.is_alphabetic());
    let time = if has_unit { duration(text).ok().map(Nanos) } else { parse_seconds(text) };
    match time {
        Some(time) => Ok(Some(Bound::At(time))),
        None => Err(format!("'{text}' is not a time such as 1.5 (in seconds) or 2ms")),
    }
}

/// Parses a range in percent: `A%-B%`, where either end may be missing; `A%/N`, the Nth part of this size; or `A%`, the
/// first part of this size.
fn parse_percentages(text: &str) -> Result<TimeRange, String> {
    if let Some((from, to)) = text.split_once('-') {
        return Ok(TimeRange { from: parse_percent_bound(from)?, to: parse_percent_bound(to)? });
    }
    let (size, number) = text.split_once('/').unwrap_or((text, "1"));
    let size = parse_percentage(size)?;
    let number: u32 = number.parse().map_err(|_| format!("'{number}' in '{text}' is not a number"))?;
    let (from, to) = (size * (f64::from(number) - 1.0), size * f64::from(number));
    if number == 0 || size == 0.0 || to > 100.0 {
        return Err(format!("'{text}' selects nothing; SIZE%/N selects the Nth part of this size: 10%/2 is 10%-20%"));
    }
    Ok(TimeRange { from: Some(Bound::Percent(from)), to: Some(Bound::Percent(to)) })
}

/// Parses one end of a range in percent. `None` if it is missing.
fn parse_percent_bound(text: &str) -> Result<Option<Bound>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(Bound::Percent(parse_percentage(text)?)))
}

fn parse_percentage(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').ok_or_else(|| format!("'{text}' has no %"))?;
    let percent: f64 = digits.parse().map_err(|_| format!("'{text}' is not a percentage"))?;
    if (0.0..=100.0).contains(&percent) { Ok(percent) } else { Err(format!("{text} is not within 0% to 100%")) }
}

/// Parses seconds to nanoseconds. The integer and the fraction are parsed separately, because floating-point numbers
/// are too imprecise for nanoseconds since boot.
fn parse_seconds(text: &str) -> Option<Nanos> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = integer.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number || fraction.len() > 9 || (integer.is_empty() && fraction.is_empty()) {
        return None;
    }
    let seconds: u64 = if integer.is_empty() { 0 } else { integer.parse().ok()? };
    // Padded with zeros to nine digits, the fraction is a number of nanoseconds.
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Bound> {
        Some(Bound::At(Nanos(nanos)))
    }

    fn percent(from: f64, to: f64) -> (Option<Bound>, Option<Bound>) {
        (Some(Bound::Percent(from)), Some(Bound::Percent(to)))
    }

    #[test]
    fn stretches_of_time() {
        for (text, expected) in [
            ("466.578564,467", vec![(at(466_578_564_000), at(467_000_000_000))]),
            (",.5", vec![(None, at(500_000_000))]),
            ("2,", vec![(at(2_000_000_000), None)]),
            (",", vec![(None, None)]),
            ("1,2 3,4", vec![(at(1_000_000_000), at(2_000_000_000)), (at(3_000_000_000), at(4_000_000_000))]),
            ("1ms,2.5ms", vec![(at(1_000_000), at(2_500_000))]),
            ("300us-1s", vec![(at(300_000), at(1_000_000_000))]),
            ("1-2", vec![(at(1_000_000_000), at(2_000_000_000))]),
            ("1-2,3-", vec![(at(1_000_000_000), at(2_000_000_000)), (at(3_000_000_000), None)]),
            ("10%-20%", vec![percent(10.0, 20.0)]),
            ("50%-", vec![(Some(Bound::Percent(50.0)), None)]),
            ("10%-20%,40%-50%", vec![percent(10.0, 20.0), percent(40.0, 50.0)]),
            ("10%-20%, 40%-50%", vec![percent(10.0, 20.0), percent(40.0, 50.0)]),
            ("10%", vec![percent(0.0, 10.0)]),
            ("10%/2", vec![percent(10.0, 20.0)]),
            ("10%/2,10%/10", vec![percent(10.0, 20.0), percent(90.0, 100.0)]),
        ] {
            let ranges = time_ranges(text).map(|TimeRanges(ranges)| ranges);
            let expected = expected.into_iter().map(|(from, to)| TimeRange { from, to }).collect();
            assert_eq!(ranges, Ok(expected), "{text}");
        }
    }

    #[test]
    fn text_without_a_range_of_time() {
        for (text, why) in [
            ("", "expected A,B"),
            ("1", "expected A,B"),
            ("a,b", "'a' is not a time such as 1.5"),
            ("1h,", "'1h' is not a time such as 1.5"),
            ("1.0000000001,", "is not a time such as 1.5"),
            ("1,2,3", "more than two times"),
            ("1-2-3", "more than two times"),
            ("1,2,3,4", "'A,B C,D'"),
            ("2,1", "ends before it begins"),
            ("10%-200%", "not within 0% to 100%"),
            ("20%-10%", "ends before it begins"),
            ("10%-20", "'20' has no %"),
            ("0%", "selects nothing"),
            ("10%,20%", "'10%' in '10%,20%' is not a range"),
            ("10%/0", "selects nothing"),
            ("10%/11", "selects nothing"),
            ("10%/x", "'x' in '10%/x' is not a number"),
        ] {
            let error = time_ranges(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
