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

/// True if an input is the output of `sample`: it starts with the program's headline and contains a call tree.
pub fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    let has_headline = head.starts_with(b"Analysis of sampling ") || head.starts_with(b"Sampling process ");
    has_headline && lines.any(|line| line.starts_with(BEGIN))
}

/// Reads the call trees of all threads. Lines that can't be parsed are skipped with a warning.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut profile = Profile::empty(options.keep);
    profile.about.os = Some(b"Darwin".to_vec());
    let series = profile.series_named("samples", Unit::Samples);
    let process = parse_process(bytes.split(|&byte| byte == b'\n').next().unwrap_or_default());
    let track = profile.track(process.clone());
    let (tree, self_weights) = (IndentedTree::default(), OwnWeights::default());
    let mut reader = SampleTreeReader { profile, series, process, track, tree, self_weights };
    let (mut skipped, mut in_tree) = (Skipped::new("line"), false);
    for (offset, line) in lines(bytes) {
        if !in_tree {
            in_tree = line.starts_with(BEGIN);
            continue;
        }
        if line.starts_with(END) {
            break;
        }
        if !line.is_empty() && !reader.add_line(line) {
            skipped.add(
                Error::new("the line lacks a function or a number of samples, or is indented wrongly")
                    .at_offset(offset),
            );
        }
    }
    // The tree of the last thread ends here. All others ended at the line that began the next thread.
    reader.self_weights.end(0, &mut reader.profile, series);
    warnings.extend(skipped.into_warning());
    Ok(reader.profile)
}

struct SampleTreeReader {
    profile: Profile,
    series: usize,
    /// The process, as a [`Track`] without a thread ID.
    process: Track,
    /// The thread whose tree is being read.
    track: TrackId,
    tree: IndentedTree,
    self_weights: OwnWeights,
}

impl SampleTreeReader {
    /// Adds a line of the tree. Returns false if it can't be parsed, or if it is more than one level deeper than the
    /// line before.
    fn add_line(&mut self, line: &[u8]) -> bool {
        let Some(line) = SampleLine::parse(line) else { return false };
        let mut stack = None;
        if line.depth == 0 {
            // A line of depth 0 begins a thread, so the tree of the previous thread has ended.
            self.self_weights.end(0, &mut self.profile, self.series);
            // The thread isn't a function. So `stack` stays empty for samples of the thread outside of all functions.
            self.track = self.profile.track(parse_thread(&self.process, line.name));
        } else {
            stack = self.tree.at(line.depth - 1, line.name, line.module, &mut self.profile);
            if stack.is_none() {
                return false;
            }
        }
        // `line.samples` includes callees. `self_weights` subtracts the samples of the callees that follow, and adds
        // the rest to the profile once the function has no more callees.
        let row = Row { track: self.track, stack, weight: line.samples, count: line.samples, time: None };
        self.self_weights.next(line.depth, row, &mut self.profile, self.series);
        true
    }
}

/// The process from the headline `Analysis of sampling NAME (pid N) every …`.
fn parse_process(line: &[u8]) -> Track {
    let text = String::from_utf8_lossy(line);
    let Some(headline) = text.strip_prefix("Analysis of sampling ") else { return Track::default() };
    let Some((name, rest)) = headline.split_once(" (pid ") else { return Track::default() };
    let pid = rest.split(')').next().and_then(|pid| pid.parse().ok()).map(Pid);
    Track { comm: name.as_bytes().to_vec(), pid, ..Track::default() }
}

/// The thread from `Thread_9012`, `Thread_9012: its name` or `Thread_9012   DispatchQueue_1: …`.
fn parse_thread(process: &Track, name: &[u8]) -> Track {
    let text = String::from_utf8_lossy(name);
    let Some(rest) = text.strip_prefix("Thread_") else { return process.clone() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let comm = rest[digits..].strip_prefix(": ").map(|name| name.trim().as_bytes().to_vec());
    let tid = rest[..digits].parse().ok().map(Tid);
    Track { comm: comm.unwrap_or_else(|| process.comm.clone()), tid, ..process.clone() }
}

/// A line of the tree: a thread at depth 0, or a function.
struct SampleLine<'d> {
    depth: usize,
    samples: u64,
    name: &'d [u8],
    module: &'d [u8],
}

impl<'d> SampleLine<'d> {
    /// Parses a line such as `    +   8 main  (in node) + 20`; `None` if it has another form.
    fn parse(line: &'d [u8]) -> Option<Self> {
        const MODULE: &[u8] = b"  (in ";
        let line = line.strip_prefix(b"    ")?;
        let indent = line.iter().position(|byte| !b" +|:!".contains(byte))?;
        // Each level is indented by two characters.
        if indent % 2 != 0 {
            return None;
        }
        let line = &line[indent..];
        let (samples, rest) = line.split_at(memchr::memchr(b' ', line)?);
        let samples = number(samples)?;
        let rest = rest.trim_ascii();
        let (mut name, mut module) = (rest, &b""[..]);
        // A function's name may contain `  (in `, too, so the module begins at the last occurrence.
        if let Some(name_end) = memchr::memmem::rfind(rest, MODULE) {
            name = &rest[..name_end];
            module = &rest[name_end + MODULE.len()..];
            module = &module[..memchr::memchr(b')', module).unwrap_or(module.len())];
        }
        // `???` stands for an unknown function, which has an empty name here.
        let name = if name == b"???" { b"" } else { name.trim_ascii() };
        Some(Self { depth: indent / 2, samples, name, module })
    }
}
