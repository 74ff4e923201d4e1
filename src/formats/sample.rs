//! The text output of macOS's `sample`: a call tree for each thread. Each function has the number of samples in it and
//! its callees.
//!
//! ```text
//! Analysis of sampling node (pid 77) every 1 millisecond
//! Call graph:
//!     12 Thread_9012   DispatchQueue_1: com.apple.main-thread  (serial)
//!     + 12 start  (in dyld) + 1903  [0x18d373904]
//!     +   8 main  (in node) + 20,24  [0x102af5d14,0x102af5d18]
//!
//! Total number in stack (recursive counted multiple, when >=5):
//! ```
//!
//! Each level is indented by two characters. Waiting threads count like running ones.

use crate::analysis::indented_tree::{IndentedTree, OwnWeights};
use crate::bytes::digits::number;
use crate::bytes::lines::lines;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Profile, Row, Track, TrackId, Unit};
use crate::model::{Pid, Tid};

const BEGIN: &[u8] = b"Call graph:";
const END: &[u8] = b"Total number in stack";

/// Whether an input is such a text: it starts with the program's headline and contains a tree.
pub fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    let analysis = head.starts_with(b"Analysis of sampling ") || head.starts_with(b"Sampling process ");
    analysis && lines.any(|line| line.starts_with(BEGIN))
}

/// Reads the call trees of all threads. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut profile = Profile::keeping(options.keep);
    let series = profile.series_named("samples", Unit::Samples);
    let process = process(bytes.split(|&byte| byte == b'\n').next().unwrap_or_default());
    let mut track = profile.track(process.clone());
    let mut reading = SampleTreeReader { profile, series, tree: IndentedTree::default(), own: OwnWeights::default() };
    let (mut skipped, mut in_tree) = (Skipped::new("line"), false);
    for (offset, text) in lines(bytes) {
        match in_tree {
            false => in_tree = text.starts_with(BEGIN),
            true if text.starts_with(END) => break,
            true if text.is_empty() => {}
            true => match SampleLine::of(text) {
                Some(line) if line.depth == 0 => {
                    track = reading.profile.track(thread(&process, line.name));
                    reading.own.end(0, &mut reading.profile, series);
                    reading.line(&SampleLine { name: b"", ..line }, track);
                }
                Some(line) if reading.line(&line, track) => {}
                _ => skipped.add(Error::new("is not a function with its depth and samples").at(offset)),
            },
        }
    }
    reading.own.end(0, &mut reading.profile, series);
    warnings.extend(skipped.into_warning());
    Ok(reading.profile)
}

struct SampleTreeReader {
    profile: Profile,
    series: usize,
    tree: IndentedTree,
    own: OwnWeights,
}

impl SampleTreeReader {
    /// Adds a line of the tree; false if its depth is wrong. A thread isn't a function, so its samples outside of all
    /// functions get an empty stack.
    fn line(&mut self, line: &SampleLine<'_>, track: TrackId) -> bool {
        let stack = match line.depth.checked_sub(1) {
            None => None,
            Some(depth) => match self.tree.at(depth, line.name, line.module, &mut self.profile) {
                None => return false,
                stack => stack,
            },
        };
        let row = Row { track, stack, weight: line.samples, count: line.samples, time: None };
        self.own.next(line.depth, row, &mut self.profile, self.series);
        true
    }
}

/// The process from the headline `Analysis of sampling NAME (pid N) every …`.
fn process(line: &[u8]) -> Track {
    let text = String::from_utf8_lossy(line);
    let name = text.strip_prefix("Analysis of sampling ").and_then(|rest| rest.split_once(" (pid "));
    let Some((name, rest)) = name else { return Track::default() };
    let pid = rest.split(')').next().and_then(|pid| pid.parse().ok()).map(Pid);
    Track { comm: name.as_bytes().to_vec(), pid, ..Track::default() }
}

/// The thread from `Thread_9012`, `Thread_9012: its name` or `Thread_9012   DispatchQueue_1: …`.
fn thread(process: &Track, name: &[u8]) -> Track {
    let text = String::from_utf8_lossy(name);
    let Some(rest) = text.strip_prefix("Thread_") else { return process.clone() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let comm = rest[digits..].strip_prefix(": ").map(|name| name.trim().as_bytes().to_vec());
    let tid = rest[..digits].parse().ok().map(Tid);
    Track { comm: comm.unwrap_or_else(|| process.comm.clone()), tid, ..process.clone() }
}

struct SampleLine<'d> {
    depth: usize,
    samples: u64,
    name: &'d [u8],
    module: &'d [u8],
}

impl<'d> SampleLine<'d> {
    fn of(line: &'d [u8]) -> Option<Self> {
        let line = line.strip_prefix(b"    ")?;
        let indent = line.iter().position(|byte| !b" +|:!".contains(byte))?;
        let (samples, rest) = line[indent..].split_at(line[indent..].iter().position(|&byte| byte == b' ')?);
        let samples = number(samples)?;
        let rest = rest.trim_ascii();
        let (name, module) = match memchr::memmem::rfind(rest, b"  (in ") {
            None => (rest, &b""[..]),
            Some(at) => {
                let module = &rest[at + b"  (in ".len()..];
                (&rest[..at], &module[..memchr::memchr(b')', module).unwrap_or(module.len())])
            }
        };
        let name = if name == b"???" { b"" } else { name.trim_ascii() };
        (indent % 2 == 0).then_some(Self { depth: indent / 2, samples, name, module })
    }
}
