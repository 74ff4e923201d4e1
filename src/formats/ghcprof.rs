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
use crate::analysis::named_frames::StatedFrame;
use crate::bytes::digits::number;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Counting, Profile, Row, Track, TrackId, Unit};

/// The column names above the tree. The table of hot cost centers, which comes before the tree, has fewer columns.
const COLUMNS: [&str; 10] = ["COST", "CENTRE", "MODULE", "SRC", "no.", "entries", "%time", "%alloc", "%time", "%alloc"];

fn is_header(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    text.split_whitespace().take(COLUMNS.len()).eq(COLUMNS)
}

/// True if an input is GHC's report: it contains the report's title or the column names of the tree.
pub fn sniff(head: &[u8]) -> bool {
    if memchr::memmem::find(head, b"Time and Allocation Profiling Report").is_some() {
        return true;
    }
    // Few inputs contain `%alloc`, so most need not be searched line by line.
    let may_have_header = memchr::memmem::find(head, b"%alloc").is_some();
    may_have_header && head.split(|&byte| byte == b'\n').any(is_header)
}

/// Reads the tree of cost centers. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut reader = TreeReader::new(options);
    let (mut skipped, mut in_tree) = (Skipped::new("line"), false);
    for (offset, line) in lines(bytes) {
        if !in_tree {
            reader.totals.add(line);
            in_tree = is_header(line);
        } else if !line.is_empty() && !reader.add_line(line) {
            let why = "the line lacks a cost center or percentages, or is indented too far";
            skipped.add(Error::new(why).at_offset(offset));
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(reader.profile)
}

/// Turns the lines of the tree into rows.
struct TreeReader {
    profile: Profile,
    /// Indices of the two series in the profile: `time` for the time, `alloc` for the allocated bytes.
    time: usize,
    alloc: usize,
    track: TrackId,
    tree: IndentedTree,
    totals: Totals,
}

impl TreeReader {
    fn new(options: &ReadOptions) -> Self {
        let mut profile = Profile::empty(options.keep);
        let time = profile.series_named("time", Unit::Nanos);
        let alloc = profile.series_named("alloc", Unit::Named("bytes".to_owned()));
        profile.series[alloc].counting = Counting::Exact;
        let track = profile.track(Track::default());
        Self { profile, time, alloc, track, tree: IndentedTree::default(), totals: Totals::default() }
    }

    /// Adds the time and bytes of a cost center. Returns false if the line isn't a cost center, or if its depth doesn't
    /// fit the line before.
    fn add_line(&mut self, line: &[u8]) -> bool {
        let Some(center) = CenterLine::parse(line) else { return false };
        let CenterLine { name: function, module, file, start, .. } = center;
        let stated = StatedFrame { function, module, file, start, ..StatedFrame::default() };
        let Some(stack) = self.tree.at_frame(center.depth, stated, &mut self.profile) else {
            return false;
        };
        // Without ticks and bytes in the file, they are computed from the shares, which are percentages.
        let totals = &self.totals;
        let ticks = center.ticks.unwrap_or_else(|| center.time / 100.0 * totals.ticks);
        let bytes = center.bytes.unwrap_or_else(|| center.alloc / 100.0 * totals.bytes);
        let (nanos, bytes) = ((ticks * totals.tick_nanos).round() as u64, bytes.round() as u64);
        let row = Row { track: self.track, stack: Some(stack), weight: 0, count: 0, time: None };
        if nanos > 0 {
            self.profile.push(self.time, Row { weight: nanos, count: ticks.round() as u64, ..row });
        }
        // The file doesn't state how often a cost center allocated, so all its bytes count as one sample.
        if bytes > 0 {
            self.profile.push(self.alloc, Row { weight: bytes, count: 1, ..row });
        }
        true
    }
}

/// The totals of the report. The shares of cost centers are percentages of these.
struct Totals {
    ticks: f64,
    /// The length of a tick in nanoseconds.
    tick_nanos: f64,
    /// The allocated bytes.
    bytes: f64,
}

impl Default for Totals {
    /// The totals that are assumed if the file states none. With these totals, the smallest share, 0.1%, becomes one
    /// tick of a millisecond, or one byte.
    fn default() -> Self {
        Self { ticks: 1000.0, tick_nanos: 1e6, bytes: 1000.0 }
    }
}

impl Totals {
    /// Takes the totals from a line of the report's head. Other lines are ignored.
    fn add(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["total", "time", ..] => {
                self.ticks = number_before("ticks", &words).unwrap_or(self.ticks);
                self.tick_nanos = number_before("us,", &words).map_or(self.tick_nanos, |micros| micros * 1e3);
            }
            ["total", "alloc", ..] => self.bytes = number_before("bytes", &words).unwrap_or(self.bytes),
            _ => {}
        }
    }
}

/// The number in the word before the first occurrence of `unit`, such as 520 in `(520 ticks`. Thousands separators and
/// an opening parenthesis are removed.
fn number_before(unit: &str, words: &[&str]) -> Option<f64> {
    let pair = words.windows(2).find(|pair| pair[1] == unit)?;
    pair[0].trim_start_matches('(').replace(',', "").parse().ok()
}

/// A line of the tree: one cost center.
struct CenterLine<'d> {
    depth: usize,
    name: &'d [u8],
    module: &'d [u8],
    /// The source file (empty if unknown), and the line and column at which the cost center starts (0 if unknown). The
    /// constants of a module (`CAF`) have no source position. They get the module's name as their file, so that the
    /// constants of different modules stay distinct even in formats without modules.
    file: &'d [u8],
    start: (u32, u32),
    /// Share of the total in percent, without callees: `time` of the time, `alloc` of the allocated bytes.
    time: f64,
    alloc: f64,
    ticks: Option<f64>,
    bytes: Option<f64>,
}

impl<'d> CenterLine<'d> {
    /// Parses a line; `None` if it isn't a cost center. The source location can contain spaces, so numbers are told
    /// apart by their position from the end of the line.
    fn parse(line: &'d [u8]) -> Option<Self> {
        let depth = line.iter().position(|&byte| byte != b' ')?;
        let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let [name, module, source, .., last] = words[..] else { return None };
        let (mut file, start) = parse_source(source).unwrap_or_default();
        // The constants of a module have no source position. With the module as their file, the constants of different
        // modules stay distinct.
        if file.is_empty() && (name == b"CAF" || name.starts_with(b"CAF:")) {
            file = module;
        }
        let numbers: Vec<f64> = words.iter().rev().map_while(|word| parse_number(word)).collect();
        // The numbers, from the end of the line: bytes and ticks (not in all files), the shares of alloc and time with
        // callees, those without callees, the number of entries, and the cost center's number. A line without ticks and
        // bytes ends with a share, which has a decimal point, as no other number does.
        let ends_with_share = last.contains(&b'.');
        match numbers[..] {
            [bytes, ticks, _, _, alloc, time, ..] if !ends_with_share => {
                Some(Self { depth, name, module, file, start, time, alloc, ticks: Some(ticks), bytes: Some(bytes) })
            }
            [_, _, alloc, time, _, _, ..] => {
                Some(Self { depth, name, module, file, start, time, alloc, ticks: None, bytes: None })
            }
            _ => None,
        }
    }
}

/// Parses a range in the source, such as `a.hs:9:1-20` or `a.hs:(4,1)-(6,40)`. Returns the file, and the line and
/// column of the range's start. `None` for other texts, such as `<built-in>`.
fn parse_source(text: &[u8]) -> Option<(&[u8], (u32, u32))> {
    let (file, position) = match memchr::memmem::find(text, b":(") {
        Some(colon) => (&text[..colon], &text[colon + 2..]),
        None => {
            let column = memchr::memrchr(b':', text)?;
            let line = memchr::memrchr(b':', &text[..column])?;
            (&text[..line], &text[line + 1..])
        }
    };
    // The first two numbers are the line and the column of the start.
    let mut numbers = position.split(|byte| !byte.is_ascii_digit());
    let (line, column) = (number(numbers.next()?)?, number(numbers.next()?)?);
    if file.is_empty() { None } else { Some((file, (line, column))) }
}

/// Parses a number; `None` if it is negative or not a number.
fn parse_number(word: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (number >= 0.0).then_some(number)
}
