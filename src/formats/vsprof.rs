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
use crate::model::stacks::{Counting, Profile, Row, Track, Unit};

const LEVEL: &str = "Level";
const NAME: &str = "Function Name";
const CALLS: &str = "Number of Calls";
const SHARE: &str = "Elapsed Inclusive Time %";
const OWN_SHARE: &str = "Elapsed Exclusive Time %";
const TIME: &str = "Avg Elapsed Inclusive Time";
const OWN: &str = "Avg Elapsed Exclusive Time";
const MODULE: &str = "Module Name";

/// Whether the first line has the column names of such a table.
pub fn sniff(head: &[u8]) -> bool {
    VsprofColumns::of(header(head).0).is_some()
}

/// Splits the input after the first line.
fn header(bytes: &[u8]) -> (&[u8], &[u8]) {
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    (text[..end].trim_ascii(), &text[end..])
}

/// Reads the call tree. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let (first, rest) = header(bytes);
    let columns = VsprofColumns::of(first).ok_or_else(|| Error::new("has no line of names"))?;
    let mut profile = Profile::keeping(options.keep);
    let whole = columns.whole(rest);
    let series = match whole {
        None if columns.shares.is_some() => profile.series_named("share", Unit::Named("ppm".to_owned())),
        _ => profile.series_named("time", Unit::Nanos),
    };
    // Without a total, weights are in parts per million. That is what nanoseconds of a 1 ms total are.
    let whole = whole.or(columns.shares.map(|_| 1.0));
    profile.series[series].counting = Counting::Exact;
    let track = profile.track(Track::default());
    let (mut tree, mut skipped) = (IndentedTree::default(), Skipped::new("line"));
    for (offset, line) in lines(rest) {
        let read = columns.parse(line).and_then(|line| {
            let weight = line.nanos(whole);
            // Level 0 is the process.
            let stack = match line.level.checked_sub(1) {
                Some(depth) => Some(tree.at(depth, &line.function, &line.module, &mut profile)?),
                None => None,
            };
            if stack.is_some() || weight > 0 {
                profile.push(series, Row { track, stack, weight, count: line.calls, time: None });
            }
            Some(())
        });
        if read.is_none() && !line.is_empty() {
            let offset = (bytes.len() - rest.len()) as u64 + offset;
            skipped.add(Error::new("is not a function with its level, calls and time").at(offset));
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

/// The indices of the columns.
struct VsprofColumns {
    level: usize,
    name: usize,
    calls: usize,
    /// The inclusive and exclusive shares, if the file has them.
    shares: Option<(usize, usize)>,
    /// The average inclusive time, if the file has it.
    time: Option<usize>,
    own: usize,
    module: usize,
}

/// A function in the tree.
struct VsprofLine {
    level: usize,
    calls: u64,
    /// Share of the time without callees, in percent.
    share: Option<f64>,
    /// Time without callees in milliseconds, computed from the rounded average.
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
        let text = digits(field);
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some(Self { value: text.parse().ok()?, error: 0.5 / 10f64.powi(decimals.min(300) as i32) })
    }
}

impl VsprofColumns {
    fn of(header: &[u8]) -> Option<Self> {
        let names = fields(header);
        let place = |name: &str| names.iter().position(|field| field == name.as_bytes());
        Some(Self {
            level: place(LEVEL)?,
            name: place(NAME)?,
            calls: place(CALLS)?,
            shares: place(SHARE).zip(place(OWN_SHARE)),
            time: place(TIME),
            own: place(OWN)?,
            module: place(MODULE)?,
        })
    }

    /// The total time in milliseconds, computed from the line with the smallest rounding error: there, calls × average
    /// is a known share of the total. `None` if no line allows that.
    fn whole(&self, text: &[u8]) -> Option<f64> {
        let (inclusive, exclusive) = self.shares?;
        let mut best: Option<(f64, f64)> = None;
        for (_, line) in lines(text) {
            let fields = fields(line);
            let Some(calls) = fields.get(self.calls).and_then(|field| whole(field)) else { continue };
            let pairs = [self.time.map(|time| (time, inclusive)), Some((self.own, exclusive))];
            for (time, share) in pairs.into_iter().flatten() {
                let number = |at: usize| Rounded::parse(fields.get(at)?);
                let Some((time, share)) = number(time).zip(number(share)) else { continue };
                let millis = calls as f64 * time.value * 100.0 / share.value;
                let error = time.error / time.value + share.error / share.value;
                if millis.is_finite() && millis > 0.0 && best.is_none_or(|(least, _)| error < least) {
                    best = Some((error, millis));
                }
            }
        }
        best.map(|(_, millis)| millis)
    }

    fn parse(&self, line: &[u8]) -> Option<VsprofLine> {
        let mut fields = fields(line);
        let level = usize::try_from(whole(fields.get(self.level)?)?).ok()?;
        let calls = whole(fields.get(self.calls)?)?;
        let millis = calls as f64 * Rounded::parse(fields.get(self.own)?)?.value;
        let share = match self.shares {
            Some((_, share)) => Some(Rounded::parse(fields.get(share)?)?.value),
            None => None,
        };
        let mut take = |at: usize| fields.get_mut(at).map(std::mem::take);
        Some(VsprofLine {
            level,
            calls,
            share,
            millis,
            function: take(self.name)?,
            module: take(self.module).unwrap_or_default(),
        })
    }
}

impl VsprofLine {
    /// The time without callees in nanoseconds; `whole` is the total in milliseconds.
    fn nanos(&self, whole: Option<f64>) -> u64 {
        let millis = match (self.share, whole) {
            // The share is less than half its last digit. The average may be more precise.
            (Some(0.0), Some(whole)) => self.millis.min(whole * 0.005 / 100.0),
            (Some(share), Some(whole)) => whole * share / 100.0,
            _ => self.millis,
        };
        (millis * 1e6).round() as u64
    }
}

/// Parses an integer such as `2,893,824`.
fn whole(field: &[u8]) -> Option<u64> {
    digits(field).parse().ok()
}

/// Removes thousands separators from a number.
fn digits(field: &[u8]) -> String {
    field.iter().filter(|byte| byte.is_ascii_digit() || **byte == b'.').map(|&byte| char::from(byte)).collect()
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
