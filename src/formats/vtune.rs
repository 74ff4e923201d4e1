//! VTune's top-down tree as CSV (`vtune -report top-down -format csv -csv-delimiter comma`). Functions are indented by
//! their depth; each has its self time in seconds.

use crate::analysis::indented_tree::IndentedTree;
use crate::bytes::csv_line::fields;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Counting, Profile, Row, Track, Unit};

const FIRST: &[u8] = b"Function Stack,";
const TIME: &str = "CPU Time:Self";
const MODULE: &str = "Module";

/// True if an input contains the header line of VTune's top-down report. Messages of VTune may precede it.
pub fn sniff(head: &[u8]) -> bool {
    memchr::memmem::find(head, FIRST).is_some() && head.split(|&byte| byte == b'\n').any(is_header)
}

fn is_header(line: &[u8]) -> bool {
    line.starts_with(FIRST) && memchr::memmem::find(line, TIME.as_bytes()).is_some()
}

/// Reads the call tree. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut profile = Profile::empty(options.keep);
    let series = profile.series_named("time", Unit::Nanos);
    // The report states times, but not from how many samples.
    profile.series[series].counting = Counting::Unknown;
    let track = profile.track(Track::default());
    let (mut tree, mut columns, mut skipped) = (IndentedTree::default(), None, Skipped::new("line"));
    for (offset, line) in lines(bytes) {
        let Some(columns) = &columns else {
            // The table begins with the line of its column names. Lines before it are skipped.
            if line.starts_with(FIRST) {
                columns = VtuneColumns::find(line);
            }
            continue;
        };
        if line.is_empty() {
            continue;
        }
        let not_a_function =
            || Error::new("the line lacks a function or a time, or is indented too far").at_offset(offset);
        let Some(line) = columns.parse(line) else {
            skipped.add(not_a_function());
            continue;
        };
        let Some(stack) = tree.at(line.depth, &line.function, &line.module, &mut profile) else {
            skipped.add(not_a_function());
            continue;
        };
        let weight = (line.seconds * 1e9).round() as u64;
        if weight > 0 {
            profile.push(series, Row { track, stack: Some(stack), weight, count: 1, time: None });
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

/// The index of each column in the fields of a line. The first field is the function.
struct VtuneColumns {
    time: usize,
    module: Option<usize>,
}

/// A line of the table: one function in the call tree.
struct VtuneLine {
    depth: usize,
    seconds: f64,
    function: Vec<u8>,
    module: Vec<u8>,
}

impl VtuneColumns {
    /// Finds the columns by their names. `None` if there is no column of times.
    fn find(header: &[u8]) -> Option<Self> {
        let names = fields(header);
        let index_of = |name: &str| names.iter().position(|field| field == name.as_bytes());
        Some(Self { time: index_of(TIME)?, module: index_of(MODULE) })
    }

    /// Parses a line; `None` if it has no valid time. Functions are indented by a space per level, either before or
    /// inside the quotes of the first field.
    fn parse(&self, line: &[u8]) -> Option<VtuneLine> {
        let (outer, line) = split_indent(line);
        let fields = fields(line);
        let seconds: f64 = std::str::from_utf8(fields.get(self.time)?).ok()?.parse().ok()?;
        let module = self.module.and_then(|index| fields.get(index).cloned()).unwrap_or_default();
        let (inner, function) = split_indent(fields.first()?);
        let function = function.to_vec();
        if seconds >= 0.0 { Some(VtuneLine { depth: outer + inner, seconds, function, module }) } else { None }
    }
}

/// Splits off leading spaces; returns their number and the rest.
fn split_indent(text: &[u8]) -> (usize, &[u8]) {
    let spaces = text.iter().take_while(|&&byte| byte == b' ').count();
    (spaces, &text[spaces..])
}
