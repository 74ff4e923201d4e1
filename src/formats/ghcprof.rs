//! GHC's time and allocation profile (`.prof`): a tree of cost centers, each with its share of the time and of the
//! allocated bytes. With `-P` there are also its ticks and bytes.
//!
//! ```text
//!  total time  =        0.52 secs   (520 ticks @ 1000 us, 1 processor)
//!  total alloc = 204,677,844 bytes  (excludes profiling overheads)
//! …
//!                                                  individual      inherited
//! COST CENTRE MODULE  SRC        no.  entries  %time %alloc   %time %alloc  ticks  bytes
//! MAIN        MAIN    <built-in> 128        0    0.0    0.0   100.0  100.0
//!  main       Main    a.hs:1:1   257        0    1.5    0.1   100.0   99.0
//! ```
//!
//! Each level is indented by one space. Shares have only one decimal, so without `-P` our sums differ from the totals.

use crate::analysis::indented_tree::IndentedTree;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Counting, Profile, Row, Track, Unit};

/// The column names above the tree. The table of hot cost centers that precedes it has fewer columns.
const COLUMNS: [&str; 10] = ["COST", "CENTRE", "MODULE", "SRC", "no.", "entries", "%time", "%alloc", "%time", "%alloc"];

fn is_header(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    text.split_whitespace().take(COLUMNS.len()).eq(COLUMNS)
}

/// Whether an input is such a report.
pub fn sniff(head: &[u8]) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    // Only a few inputs contain this word, so most need not be searched line by line.
    let may_have_header = || has(COLUMNS[COLUMNS.len() - 1].as_bytes());
    has(b"Time and Allocation Profiling Report")
        || may_have_header() && head.split(|&byte| byte == b'\n').any(is_header)
}

/// Reads the tree of cost centers. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut profile = Profile::keeping(options.keep);
    let (time, alloc) =
        (profile.series_named("time", Unit::Nanos), profile.series_named("alloc", Unit::Named("bytes".to_owned())));
    profile.series[alloc].counting = Counting::Exact;
    let track = profile.track(Track::default());
    let (mut tree, mut skipped) = (IndentedTree::default(), Skipped::new("line"));
    let (mut totals, mut in_tree) = (Totals::default(), false);
    for (offset, line) in lines(bytes) {
        match in_tree {
            false => {
                totals.add(line);
                in_tree = is_header(line);
            }
            true if line.is_empty() => {}
            true => {
                let told = CentreLine::of(line).and_then(|centre| {
                    let stack = Some(tree.at(centre.depth, centre.name, centre.module, &mut profile)?);
                    let ticks = centre.ticks.unwrap_or_else(|| centre.time / 100.0 * totals.ticks);
                    let bytes = centre.bytes.unwrap_or_else(|| centre.alloc / 100.0 * totals.bytes);
                    let (nanos, bytes) = ((ticks * totals.tick_nanos).round() as u64, bytes.round() as u64);
                    if nanos > 0 {
                        let count = ticks.round() as u64;
                        profile.push(time, Row { track, stack, weight: nanos, count, time: None });
                    }
                    if bytes > 0 {
                        profile.push(alloc, Row { track, stack, weight: bytes, count: 1, time: None });
                    }
                    Some(())
                });
                if told.is_none() {
                    skipped.add(Error::new("is not a cost center with its depth and shares").at(offset));
                }
            }
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

/// The totals that shares refer to.
struct Totals {
    ticks: f64,
    tick_nanos: f64,
    bytes: f64,
}

impl Default for Totals {
    /// Used if the file has no totals: the smallest share, 0.1%, becomes one tick of a millisecond and one byte.
    fn default() -> Self {
        Self { ticks: 1000.0, tick_nanos: 1e6, bytes: 1000.0 }
    }
}

impl Totals {
    fn add(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let number = |word: &str| word.trim_start_matches('(').replace(',', "").parse::<f64>().ok();
        let words: Vec<&str> = text.split_whitespace().collect();
        let before = |unit: &str| words.windows(2).find(|pair| pair[1] == unit).and_then(|pair| number(pair[0]));
        match words[..] {
            ["total", "time", ..] => {
                self.ticks = before("ticks").unwrap_or(self.ticks);
                self.tick_nanos = before("us,").map_or(self.tick_nanos, |micros| micros * 1e3);
            }
            ["total", "alloc", ..] => self.bytes = before("bytes").unwrap_or(self.bytes),
            _ => {}
        }
    }
}

struct CentreLine<'d> {
    depth: usize,
    name: &'d [u8],
    module: &'d [u8],
    /// Shares without callees, in percent.
    time: f64,
    alloc: f64,
    ticks: Option<f64>,
    bytes: Option<f64>,
}

impl<'d> CentreLine<'d> {
    /// Parses a line. The source location can contain spaces, so the numbers are counted from the right.
    fn of(line: &'d [u8]) -> Option<Self> {
        let depth = line.iter().position(|&byte| byte != b' ')?;
        let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let number = |word: &&[u8]| std::str::from_utf8(word).ok()?.parse::<f64>().ok().filter(|number| *number >= 0.0);
        let numbers: Vec<f64> = words.iter().rev().map_while(number).collect();
        let (name, module) = (*words.first()?, *words.get(1)?);
        let is_share = |at: usize| {
            let word = words.len().checked_sub(at + 1).and_then(|at| words.get(at));
            word.is_some_and(|word| word.contains(&b'.'))
        };
        let (shares, ticks, bytes) = match numbers[..] {
            // Shares have a decimal point; ticks and bytes don't.
            [bytes, ticks, _, _, alloc, time, ..] if !is_share(0) => ((time, alloc), Some(ticks), Some(bytes)),
            [_, _, alloc, time, _, _, ..] => ((time, alloc), None, None),
            _ => return None,
        };
        Some(Self { depth, name, module, time: shares.0, alloc: shares.1, ticks, bytes })
    }
}
