//! The call tree of Visual Studio's instrumenting profiler as CSV: a function with its level, how often it was called
//! and how long a call took without what it called, in milliseconds.
//!
//! Each function's time is calls × average; the calls are its count.

use crate::analysis::indented_tree::IndentedTree;
use crate::bytes::csv_line::fields;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Profile, Row, Track, Unit};

const LEVEL: &str = "Level";
const NAME: &str = "Function Name";
const CALLS: &str = "Number of Calls";
const OWN: &str = "Avg Elapsed Exclusive Time";
const MODULE: &str = "Module Name";

/// True if the first line has the names of such a table.
pub fn sniff(head: &[u8]) -> bool {
    VsprofColumns::of(header(head).0).is_some()
}

/// The first line, and what is behind it.
fn header(bytes: &[u8]) -> (&[u8], &[u8]) {
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    (text[..end].trim_ascii(), &text[end..])
}

/// Reads the tree.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let (first, rest) = header(bytes);
    let columns = VsprofColumns::of(first).ok_or_else(|| Error::new("has no line of names"))?;
    let mut profile = Profile::keeping(options.keep);
    let series = profile.series_named("time", Unit::Nanos);
    let track = profile.track(Track::default());
    let (mut tree, mut skipped) = (IndentedTree::default(), Skipped::new("line"));
    for (offset, line) in lines(rest) {
        let told = columns.parse(line).and_then(|line| {
            let stack = Some(tree.at(line.depth, &line.function, &line.module, &mut profile)?);
            profile.push(series, Row { track, stack, weight: line.nanos, count: line.calls, time: None });
            Some(())
        });
        if told.is_none() && !line.is_empty() {
            let offset = (bytes.len() - rest.len()) as u64 + offset;
            skipped.add(Error::new("is not a function with its level, calls and time").at(offset));
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

/// The places of the columns.
struct VsprofColumns {
    level: usize,
    name: usize,
    calls: usize,
    own: usize,
    module: usize,
}

/// A function.
struct VsprofLine {
    depth: usize,
    calls: u64,
    nanos: u64,
    function: Vec<u8>,
    module: Vec<u8>,
}

impl VsprofColumns {
    fn of(header: &[u8]) -> Option<Self> {
        let names = fields(header);
        let place = |name: &str| names.iter().position(|field| field == name.as_bytes());
        let (level, name, calls) = (place(LEVEL)?, place(NAME)?, place(CALLS)?);
        Some(Self { level, name, calls, own: place(OWN)?, module: place(MODULE)? })
    }

    fn parse(&self, line: &[u8]) -> Option<VsprofLine> {
        let mut fields = fields(line);
        // Levels begin at 1.
        let depth = usize::try_from(whole(fields.get(self.level)?)?).ok()?.checked_sub(1)?;
        let calls = whole(fields.get(self.calls)?)?;
        let millis: f64 = digits(fields.get(self.own)?).parse().ok()?;
        let nanos = (millis.max(0.0) * 1e6 * calls as f64).round() as u64;
        let mut take = |at: usize| fields.get_mut(at).map(std::mem::take);
        Some(VsprofLine {
            depth,
            calls,
            nanos,
            function: take(self.name)?,
            module: take(self.module).unwrap_or_default(),
        })
    }
}

/// `2,893,824`
fn whole(field: &[u8]) -> Option<u64> {
    digits(field).parse().ok()
}

/// A number without what parts its thousands.
fn digits(field: &[u8]) -> String {
    field.iter().filter(|byte| byte.is_ascii_digit() || **byte == b'.').map(|&byte| char::from(byte)).collect()
}
