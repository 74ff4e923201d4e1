//! Folded stacks: `frame;frame;frame WEIGHT`, root first, one line a stack, sorted.
//!
//! Written as inferno-collapse-perf writes them; how frames are spelled is in [`crate::analysis::label`]. A name can't
//! hold the separator: `;` in it is written as `:`. Read back, a frame is just its label; the suffixes `_[k]`, `_[j]`
//! and `_[i]` show what sort of code it is.
//!
//! See <https://github.com/brendangregg/FlameGraph#2-fold-stacks>.

use crate::analysis::call_tree::{CallTree, Spelling};
use crate::analysis::label::{marked, unmarked};
use crate::analysis::sorted_stacks::{Run, Runs, Unsorted, shared_len};
use crate::bytes::digits::number;
use crate::contract::format::{ReadLines, ReadOptions, WriteOptions};
use crate::error::{Error, Result, Skipped};
use crate::model::stacks::{Frame, FrameId, FrameKind, Profile, Row, StackId, Track, Unit};
use crate::runtimes::{RuntimeSet, Tiers};
use rustc_hash::FxHashMap;
use std::io::Write;

/// The number of separators in the beginning of an input that has no line break make it a folded stack: its weight is
/// not seen.
const MANY_FRAMES: usize = 1000;

/// True if every whole line of the beginning of an input is a folded stack.
pub fn sniff(head: &[u8]) -> bool {
    if !head.contains(&b'\n') && is_a_deep_stack(head) {
        return true;
    }
    // The part that is behind the last line break may be cut off.
    let mut rest = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let several_frames = memchr::memchr(b';', rest).is_some();
    let lines = std::iter::from_fn(|| {
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, behind) = rest.split_at_checked(end).filter(|_| !rest.is_empty())?;
        rest = behind.get(1..).unwrap_or_default();
        Some(line)
    });
    let mut stacks = lines.filter(|line| !line.trim_ascii().is_empty()).peekable();
    let begins_a_stack = |line: &[u8]| line.first().is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'#');
    several_frames && stacks.peek().is_some() && stacks.all(|line| begins_a_stack(line) && parse(line).is_some())
}

/// True if text is the beginning of a line longer than what is looked at.
fn is_a_deep_stack(head: &[u8]) -> bool {
    let begins = head.first().is_some_and(|byte| !byte.is_ascii_whitespace() && !b"#{[<\"".contains(byte));
    begins && head.iter().filter(|byte| **byte == b';').count() >= MANY_FRAMES && !head.iter().any(u8::is_ascii_control)
}

/// The stack and the weight of a line.
fn parse(line: &[u8]) -> Option<(&[u8], u64)> {
    let line = line.trim_ascii_end();
    let blank = memchr::memrchr(b' ', line)?;
    let weight = number(&line[blank + 1..])?;
    let stack = line[..blank].trim_ascii_end();
    (!stack.is_empty()).then_some((stack, weight))
}

/// The stack and the weight of each line. Lines that are neither a stack nor a comment are skipped.
fn each_line<'t>(text: &'t [u8], skipped: &mut Skipped, mut stack: impl FnMut(&'t [u8], u64)) {
    let mut at = 0;
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len + 1);
        let line = &text[at..end];
        match parse(line) {
            Some((names, weight)) => stack(names, weight),
            None if line.trim_ascii().is_empty() || line.starts_with(b"#") => {}
            None => skipped.add(Error::new("a folded stack ends with a blank and a whole number").at(at as u64)),
        }
        at = end;
    }
}

/// Sums whole lines of folded stacks by sorting them, spelled as writers spell them.
pub fn sort(lines: &[u8], sorting: &mut Unsorted, skipped: &mut Skipped) -> Run {
    // Nearly always: nothing need be looked at line by line.
    let is_text = memchr::memchr(b'\r', lines).is_none() && std::str::from_utf8(lines).is_ok();
    each_line(lines, skipped, |names, weight| match is_text {
        true => sorting.push(names, weight),
        false => sorting.push(String::from_utf8_lossy(names).replace('\r', " ").as_bytes(), weight),
    });
    sorting.sorted()
}

/// Begins to read folded stacks.
pub fn open(options: &ReadOptions) -> Box<dyn ReadLines> {
    Box::new(FoldedReader::new(options))
}

/// Reads any number of stretches of lines.
struct FoldedReader {
    profile: Profile,
    tiers: Tiers,
    /// The frame of each label.
    frames: FxHashMap<Box<[u8]>, FrameId>,
}

/// With more labels than this it drops them all, so that their memory has a bound.
const MOST_LABELS: usize = 1 << 16;

impl FoldedReader {
    fn new(options: &ReadOptions) -> Self {
        Self { profile: Profile::keeping(options.keep), tiers: Tiers::default(), frames: FxHashMap::default() }
    }

    fn frame(&mut self, label: &[u8]) -> FrameId {
        if let Some(&known) = self.frames.get(label) {
            return known;
        }
        let frame = frame(&mut self.profile, &mut self.tiers, label);
        self.frames.insert(label.into(), frame);
        frame
    }
}

impl ReadLines for FoldedReader {
    fn read(&mut self, lines: &[u8], skipped: &mut Skipped) {
        if self.frames.len() > MOST_LABELS {
            self.frames.clear();
        }
        let track = self.profile.track(Track::default());
        let series = self.profile.series_named("samples", Unit::Samples);
        let mut reader = LineReader { of: self, before: &[], open: Vec::new() };
        each_line(lines, skipped, |names, weight| {
            let stack = reader.stack(names);
            reader.of.profile.push(series, Row { track, stack, weight, count: weight, time: None });
        });
    }

    fn profile(&mut self) -> &mut Profile {
        &mut self.profile
    }
}

/// Reads lines, most of which begin as the one before.
struct LineReader<'r, 't> {
    of: &'r mut FoldedReader,
    /// The names of the stack before.
    before: &'t [u8],
    /// The end of each of these, and the stack up to there.
    open: Vec<(usize, StackId)>,
}

impl<'t> LineReader<'_, 't> {
    /// The stack of these names; those that it shares with the one before are not looked at again.
    fn stack(&mut self, names: &'t [u8]) -> Option<StackId> {
        let shared = shared_len(self.before, names);
        let is_shared =
            |&&(end, _): &&(usize, StackId)| end <= shared && names.get(end).is_none_or(|&byte| byte == b';');
        // An end inside the shared part has the same separator behind it.
        let kept = self.open.iter().rposition(|end| is_shared(&end)).map_or(0, |last| last + 1);
        self.open.truncate(kept);
        self.before = names;
        let (mut at, mut stack) = self.open.last().map_or((0, None), |&(end, stack)| (end + 1, Some(stack)));
        let Some(others) = names.get(at..) else { return stack };
        let start = at;
        for end in memchr::memchr_iter(b';', others).chain([others.len()]).map(|len| start + len) {
            let frame = self.of.frame(&names[at..end]);
            let next = self.of.profile.stack(stack, frame);
            self.open.push((end, next));
            (stack, at) = (Some(next), end + 1);
        }
        stack
    }
}

fn frame(profile: &mut Profile, tiers: &mut Tiers, label: &[u8]) -> FrameId {
    let (bare, kind) = marked(label).unwrap_or_else(|| (label, unmarked(label)));
    let name = profile.name(label);
    let tier = if kind == FrameKind::Jit { tiers.of(name, bare, RuntimeSet::default()) } else { None };
    profile.frame(Frame { tier, ..Frame::new(name, kind) })
}

/// Lines on their way out.
struct FoldedLines<'o> {
    lines: Vec<u8>,
    out: &'o mut dyn Write,
}

impl<'o> FoldedLines<'o> {
    /// The number of bytes of lines that are written at once.
    const WRITTEN: usize = 1 << 16;

    fn to(out: &'o mut dyn Write) -> Self {
        Self { lines: Vec::with_capacity(2 * Self::WRITTEN), out }
    }

    fn push(&mut self, stack: &[u8], weight: u64) -> Result<()> {
        self.lines.extend_from_slice(stack);
        writeln!(self.lines, " {weight}")?;
        if self.lines.len() >= Self::WRITTEN { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

/// Writes sums of lines.
pub fn write_lines(runs: &Runs, out: &mut dyn Write) -> Result<()> {
    let mut lines = FoldedLines::to(out);
    runs.lines(|line, weight| if weight > 0 { lines.push(line, weight) } else { Ok(()) })?;
    lines.flush()
}

/// Writes one event.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let Some(series) = profile.series.get(options.series) else { return Ok(()) };
    let (by, annotate, tidied) = (options.by, options.annotate, options.tidied);
    let spelling = Spelling { by, annotate, tidied, reversed: false, by_category: false, by_start: false };
    let mut lines = FoldedLines::to(out);
    let tree = CallTree::new(profile, series, options.weight, spelling);
    tree.stacks(0, |stack, weight| lines.push(stack.as_bytes(), weight))?;
    lines.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tier::Tier;

    fn read(lines: &[u8], options: &ReadOptions, skipped: &mut Skipped) -> Profile {
        let mut reader = FoldedReader::new(options);
        reader.read(lines, skipped);
        reader.profile
    }

    #[test]
    fn a_written_file_is_read_back() {
        let text = b"main;f (x);g_[j] 12\nmain;read_[k] 3\n";
        assert!(sniff(text));
        let mut skipped = Skipped::new("line");
        let profile = read(text, &ReadOptions::default(), &mut skipped);
        assert_eq!(skipped.count(), 0);
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(text));
    }

    #[test]
    fn jit_code_has_the_tier_that_its_name_shows() {
        let text = b"node;JS:~f /a.js:1:1_[j];JS:*g /a.js:2:1_[j];JS:*g /a.js:2:1 12\n";
        let profile = read(text, &ReadOptions::default(), &mut Skipped::new("line"));
        let tiers: Vec<_> = profile.frames().map(|(_, frame)| frame.tier).collect();
        assert_eq!(tiers, [None, Some(Tier::Interpreted), Some(Tier::Optimised), None]);
    }

    #[test]
    fn lines_without_a_weight_are_counted() {
        let mut skipped = Skipped::new("line");
        read(b"a;b 1\nnonsense\n\n# x\na;b x\n", &ReadOptions::default(), &mut skipped);
        let said = skipped.into_warning().unwrap().to_string();
        assert!(said.contains("at byte 0x6: 2 lines skipped"), "{said}");
    }

    proptest::proptest! {
        /// Lines are distinguished by separators only: a name may be the beginning of another, or empty.
        #[test]
        fn a_part_shared_with_the_line_before_changes_nothing(lines in "([ab;]{1,9} [1-3]\n){1,12}") {
            let profile = read(lines.as_bytes(), &ReadOptions::default(), &mut Skipped::new("line"));
            let spelled = profile.series[0].rows.iter().map(|row| {
                let mut names: Vec<_> =
                    profile.frames_up(row.stack).map(|id| profile.name_of(profile.frame_of(id).name)).collect();
                names.reverse();
                format!("{} {}\n", String::from_utf8(names.join(&b';')).unwrap(), row.weight)
            });
            proptest::prop_assert_eq!(spelled.collect::<String>(), lines);
        }
    }

    #[test]
    fn other_texts_are_not_folded_stacks() {
        for other in [&b"version: 1\ncreator: x;y\n"[..], b"node 1 2.3: 4 cpu-clock: \n\t1 a;b (x)\n", b"", b"a 1\n"] {
            assert!(!sniff(other), "{}", String::from_utf8_lossy(other));
        }
        assert!(sniff(b"a;b 1\na;b;cut of"));
    }

    #[test]
    fn a_stack_of_which_only_the_beginning_was_looked_at_is_a_folded_stack() {
        let deep: String = (0..10_000).map(|frame| format!("function_{frame};")).collect();
        assert!(sniff(&deep.as_bytes()[..1 << 16]));
        let binary: Vec<u8> = deep.bytes().take(1 << 16).chain([0]).collect();
        assert!(!sniff(&binary) && !sniff(format!("{{{deep}").as_bytes()));
    }
}
