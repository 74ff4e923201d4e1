//! The call tree of Visual Studio's instrumentation profiler as CSV: for each function its level, its number of calls,
//! and the average time of a call without its callees, in milliseconds.
//!
//! Weights are computed from the shares in the file. The product of calls and average would be wrong, because averages
//! are rounded, for short functions even to zero. The total time is derived from the function whose average is the most
//! precise. A function's calls become its sample count.

use crate::analysis::indented_tree::IndentedTree;
use crate::bytes::csv_line::fields;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Counting, Profile, Row, Track, TrackId, Unit};

const LEVEL: &str = "Level";
const NAME: &str = "Function Name";
const CALLS: &str = "Number of Calls";
const SHARE: &str = "Elapsed Inclusive Time %";
const SELF_SHARE: &str = "Elapsed Exclusive Time %";
const TIME: &str = "Avg Elapsed Inclusive Time";
const SELF_TIME: &str = "Avg Elapsed Exclusive Time";
const MODULE: &str = "Module Name";

/// True if the first line of an input has the column names of such a call tree.
pub fn sniff(head: &[u8]) -> bool {
    let (header, _) = split_header(head);
    VsprofColumns::find(header).is_some()
}

/// Splits off the first line. Returns it without a byte order mark and line break, and the rest.
fn split_header(bytes: &[u8]) -> (&[u8], &[u8]) {
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |line_break| line_break + 1);
    (text[..end].trim_ascii(), &text[end..])
}

/// Reads the call tree. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let (header, rest) = split_header(bytes);
    let columns = VsprofColumns::find(header).ok_or_else(|| Error::new("has no header line with the column names"))?;
    let mut profile = Profile::empty(options.keep);
    profile.about.os = Some(b"Windows".to_vec());
    let mut total_millis = columns.total_millis(rest);
    let series = if total_millis.is_none() && columns.shares.is_some() {
        // If the total time can't be derived, weights are shares in parts per million. They are computed as nanoseconds
        // of a total of 1 ms, which has a million of them.
        total_millis = Some(1.0);
        profile.series_named("share", Unit::Named("ppm".to_owned()))
    } else {
        profile.series_named("time", Unit::Nanos)
    };
    // The profiler instrumented the program, so that every call was counted and timed.
    profile.series[series].counting = Counting::Exact;
    let track = profile.track(Track::default());
    let (mut tree, mut skipped) = (IndentedTree::default(), Skipped::new("line"));
    for (offset, line) in lines(rest) {
        let parsed = columns.parse(line);
        let is_read = parsed.is_some_and(|line| add_line(&line, total_millis, series, track, &mut tree, &mut profile));
        if !is_read && !line.is_empty() {
            let offset = (bytes.len() - rest.len()) as u64 + offset;
            skipped.add(
                Error::new(
                    "the line lacks a function's level (its depth in the call tree), name, calls or time, or the level \
                     doesn't fit that of the line before",
                )
                .at_offset(offset),
            );
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

/// Adds a row for a line. Returns false if its level doesn't fit the previous line's.
fn add_line(
    line: &VsprofLine,
    total_millis: Option<f64>,
    series: usize,
    track: TrackId,
    tree: &mut IndentedTree,
    profile: &mut Profile,
) -> bool {
    let weight = line.nanos(total_millis);
    let mut stack = None;
    // Level 0 is the process, whose own time gets an empty stack.
    if line.level > 0 {
        stack = tree.at(line.level - 1, &line.function, &line.module, profile);
        if stack.is_none() {
            return false;
        }
    }
    // The process itself gets a row only if it has time of its own.
    if stack.is_some() || weight > 0 {
        profile.push(series, Row { track, stack, weight, count: line.calls, time: None });
    }
    true
}

/// The index of each column in the fields of a line.
struct VsprofColumns {
    level: usize,
    name: usize,
    calls: usize,
    /// The columns of the inclusive and the exclusive share, if the file has them.
    shares: Option<(usize, usize)>,
    /// The column of the average inclusive time, if the file has it.
    time: Option<usize>,
    /// The column of the average exclusive time.
    self_time: usize,
    module: usize,
}

/// A line of the table: one function in the call tree.
struct VsprofLine {
    level: usize,
    calls: u64,
    /// The function's share of the total time, without its callees, in percent; `None` if the file has no shares.
    share: Option<f64>,
    /// Time without callees in milliseconds: the number of calls times their rounded average.
    millis: f64,
    function: Vec<u8>,
    module: Vec<u8>,
}

/// A rounded number and its maximum error, half a unit in the last digit.
struct Rounded {
    value: f64,
    error: f64,
}

impl Rounded {
    fn parse(field: &[u8]) -> Option<Self> {
        let text = without_separators(field)?;
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some(Self { value: text.parse().ok()?, error: 0.5 / 10f64.powi(decimals.min(300) as i32) })
    }
}

impl VsprofColumns {
    /// Finds the columns by their names. `None` if one of them is missing, except for the shares and the inclusive
    /// time, which are optional.
    fn find(header: &[u8]) -> Option<Self> {
        let names = fields(header);
        let index_of = |name: &str| names.iter().position(|field| field == name.as_bytes());
        Some(Self {
            level: index_of(LEVEL)?,
            name: index_of(NAME)?,
            calls: index_of(CALLS)?,
            shares: index_of(SHARE).zip(index_of(SELF_SHARE)),
            time: index_of(TIME),
            self_time: index_of(SELF_TIME)?,
            module: index_of(MODULE)?,
        })
    }

    /// The total time in milliseconds, which the file doesn't state. It follows from any line: the line's time is calls
    /// × average, and the line states which share of the total that is. Of all lines, the one with the smallest
    /// rounding error is used. `None` if there are no shares, or if all of them are zero or damaged.
    fn total_millis(&self, text: &[u8]) -> Option<f64> {
        let (inclusive, exclusive) = self.shares?;
        let (mut total, mut least_error) = (None, f64::INFINITY);
        for (_, line) in lines(text) {
            let fields = fields(line);
            let Some(calls) = fields.get(self.calls).and_then(|field| parse_integer(field)) else { continue };
            // A line can be used twice: the inclusive and the exclusive time each have an average and a share.
            let column_pairs = [self.time.map(|time| (time, inclusive)), Some((self.self_time, exclusive))];
            for (time_column, share_column) in column_pairs.into_iter().flatten() {
                let Some(time) = fields.get(time_column).and_then(|field| Rounded::parse(field)) else { continue };
                let Some(share) = fields.get(share_column).and_then(|field| Rounded::parse(field)) else { continue };
                let millis = calls as f64 * time.value * 100.0 / share.value;
                let error = time.error / time.value + share.error / share.value;
                if millis.is_finite() && millis > 0.0 && (total.is_none() || error < least_error) {
                    (total, least_error) = (Some(millis), error);
                }
            }
        }
        total
    }

    /// Parses a line of the table. `None` if the level, the number of calls, the name or the self time is missing or
    /// damaged, or the share if the file has shares.
    fn parse(&self, line: &[u8]) -> Option<VsprofLine> {
        let fields = fields(line);
        let level = usize::try_from(parse_integer(fields.get(self.level)?)?).ok()?;
        let calls = parse_integer(fields.get(self.calls)?)?;
        // The file states the average self time of a call, not the sum of all calls.
        let average_self_time = Rounded::parse(fields.get(self.self_time)?)?.value;
        let millis = calls as f64 * average_self_time;
        let mut share = None;
        if let Some((_, exclusive)) = self.shares {
            share = Some(Rounded::parse(fields.get(exclusive)?)?.value);
        }
        let function = fields.get(self.name)?.clone();
        let module = fields.get(self.module).cloned().unwrap_or_default();
        Some(VsprofLine { level, calls, share, millis, function, module })
    }
}

impl VsprofLine {
    /// The time without callees in nanoseconds. `total` is the total time in milliseconds.
    fn nanos(&self, total: Option<f64>) -> u64 {
        let millis = match (self.share, total) {
            // The share was rounded to 0.00, so it is less than 0.005%. Within this limit, calls × average is more
            // precise.
            (Some(0.0), Some(total)) => self.millis.min(total * 0.005 / 100.0),
            (Some(share), Some(total)) => total * share / 100.0,
            _ => self.millis,
        };
        (millis * 1e6).round() as u64
    }
}

/// Parses an integer such as `2,893,824`.
fn parse_integer(field: &[u8]) -> Option<u64> {
    without_separators(field)?.parse().ok()
}

/// Removes thousands separators from a number. `None` if it is negative, or if a separator isn't followed by three
/// digits, as in `0,5`, where the comma is a decimal point.
fn without_separators(field: &[u8]) -> Option<String> {
    if field.contains(&b'-') {
        return None;
    }
    let (whole, fraction) = field.split_at(memchr::memchr(b'.', field).unwrap_or(field.len()));
    let mut text = String::new();
    for group in whole.split(|byte| !byte.is_ascii_digit()).filter(|group| !group.is_empty()) {
        if !text.is_empty() && group.len() != 3 {
            return None;
        }
        text.extend(group.iter().map(|&digit| char::from(digit)));
    }
    text.extend(fraction.iter().filter(|byte| byte.is_ascii_digit() || **byte == b'.').map(|&byte| char::from(byte)));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,\n";

    fn weights(lines: &str) -> (Vec<u64>, usize) {
        let mut warnings = Warnings::new();
        let text = format!("{HEADER}{lines}");
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        (profile.series[0].rows.iter().map(|row| row.weight).collect(), warnings.iter().count())
    }

    #[test]
    fn shares_are_those_of_the_file_though_averages_are_rounded_to_nothing() {
        let lines = "0,\"a.exe\",0,100.00,0.00,0.00,0.00,\"\",\n1,\"main\",4,100.00,25.00,\"1,000.00\",250.00,\"a.exe\",\n\
            2,\"Dot\",\"3,575,792\",75.00,75.00,0.00,0.00,\"a.exe\",\n";
        assert_eq!(weights(lines), (vec![1_000_000_000, 3_000_000_000], 0));
    }

    #[test]
    fn what_has_less_than_the_last_digit_of_a_share_keeps_its_average() {
        let lines = "1,\"main\",1,100.00,100.00,1000.00,1000.00,\"a.exe\",\n2,\"f\",2,0.00,0.00,0.01,0.01,\"a.exe\",\n\
            2,\"g\",1000000,0.00,0.00,0.01,0.01,\"a.exe\",\n";
        assert_eq!(weights(lines), (vec![1_000_000_000, 20_000, 50_000], 0));
    }

    #[test]
    fn without_any_average_shares_are_counted() {
        assert_eq!(weights("1,\"main\",1,100.00,99.50,0.00,0.00,\"a.exe\",\nx,y\n"), (vec![995_000], 1));
    }
}
