//! Folded stacks: one line `frame;frame;frame WEIGHT` per stack, outermost frame first, sorted.
//!
//! Written as inferno-collapse-perf does; [`crate::analysis::label`] spells the frames. Names can't contain the
//! separator, so `;` in a name becomes `:`. When stacks are read, the label of a frame is its name, and a suffix
//! `_[k]`, `_[j]` or `_[i]` tells the kind of code.
//!
//! See <https://github.com/brendangregg/FlameGraph#2-fold-stacks>.

use crate::analysis::call_tree::{CallTree, Spelling};
use crate::analysis::label::{marked, tid_of_thread, unmarked};
use crate::bytes::digits::number;
use crate::bytes::lines::strip_mark;
use crate::contract::format::{ReadLines, ReadOptions, WriteOptions};
use crate::error::{Error, Result, Skipped};
use crate::model::Tid;
use crate::model::stacks::{
    Counting, Frame, FrameId, FrameKind, MILLION, MILLIONTHS, Profile, Row, StackId, Track, UNKNOWN, Unit, Weight,
};
use crate::model::tier::Tier;
use crate::runtimes::{RuntimeSet, Tiers};
use rustc_hash::FxHashMap;
use std::io::Write;

/// If the start of an input has no line break but at least this many separators, it is taken for the start of a deep
/// stack whose weight comes later in the input.
const MANY_FRAMES: usize = 1000;

/// True if the input starts with folded stacks: most of its complete lines, not counting comments and blank lines, are
/// folded stacks, and at least one has several frames. If all stacks have a single frame, there must be at least
/// two lines, each a word and a number.
pub fn sniff(head: &[u8]) -> bool {
    // `head` may be only the beginning of one very long line, without the weight at its end.
    if !head.contains(&b'\n') && is_deep_stack(head) {
        return true;
    }
    let (mut stacks, mut others, mut has_callers, mut are_words) = (0, 0, false, true);
    for line in whole_lines(head) {
        // `parse` returns `None` for a line with a negative weight, but such a line is a folded stack, too.
        let stack = parse(line).map(|(stack, _)| stack).or_else(|| parse_negative(line));
        match stack {
            // An indented line with a single frame is more likely part of a table or a tree, so it isn't counted as a
            // stack.
            Some(stack) if !line[0].is_ascii_whitespace() || stack.contains(&b';') => {
                stacks += 1;
                has_callers |= stack.contains(&b';');
                are_words &= is_word(stack);
            }
            _ => others += 1,
        }
    }
    if has_callers { stacks >= others } else { stacks > 1 && others == 0 && are_words }
}

/// True if the only frame of a stack is a name without blanks that doesn't look like a number or a path.
fn is_word(stack: &[u8]) -> bool {
    stack.iter().all(u8::is_ascii_graphic) && (stack[0].is_ascii_alphabetic() || b"_[(<".contains(&stack[0]))
}

/// The complete lines at the start of an input, without comments and blank lines. Omits text after the last line break,
/// because it may be truncated.
fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.filter(|line| !line.is_empty() && !is_comment(line))
}

/// True for lines such as `# austin: 3.3.0`: they start with `#` and aren't stacks.
fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#") && memchr::memchr(b';', line).is_none()
}

/// True if each line means the same in any input, so that several such inputs can be concatenated as text. False if
/// weights are fractions, or if the text has async-profiler's suffixes for tiers or its frames for threads.
pub fn is_plain(head: &[u8]) -> bool {
    Scale::detect(head) == Scale::Whole && !["_[0]", "_[1]", " tid=", "[tid="].iter().any(|mark| contains(head, mark))
}

fn contains(text: &[u8], part: &str) -> bool {
    memchr::memmem::find(text, part.as_bytes()).is_some()
}

/// Whether the weights of an input are whole numbers or fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Weights are whole numbers.
    Whole,
    /// Weights have fractions and are counted in millionths.
    Millionths,
}

impl Scale {
    /// Tells from the start of a text whether its weights have fractions.
    fn detect(head: &[u8]) -> Self {
        for line in whole_lines(head) {
            if let Some((_, weight)) = parse(line)
                && has_fraction(weight)
            {
                return Self::Millionths;
            }
        }
        Self::Whole
    }

    /// Parses a weight, a text that [`is_weight`] accepts. `None` if it is too large, or if it is a fraction and the
    /// scale is `Whole`.
    fn parse_weight(self, text: &[u8]) -> Option<u64> {
        if let Some(plain) = without_exponent(text) {
            return self.parse_weight(&plain);
        }
        let (whole, fraction) = match memchr::memchr(b'.', text) {
            Some(dot) => (&text[..dot], &text[dot + 1..]),
            None => (text, &b""[..]),
        };
        let whole = if whole.is_empty() { 0 } else { number(whole)? };
        match self {
            Self::Whole if fraction.iter().all(|digit| *digit == b'0') => Some(whole),
            Self::Whole => None,
            Self::Millionths => {
                // The first six decimals; the seventh is only used to round.
                let mut millionths = 0;
                for index in 0..MILLION_DIGITS {
                    let digit = fraction.get(index).copied().unwrap_or(b'0');
                    millionths = 10 * millionths + u64::from(digit - b'0');
                }
                if fraction.get(MILLION_DIGITS).is_some_and(|digit| *digit >= b'5') {
                    millionths += 1;
                }
                whole.checked_mul(MILLION)?.checked_add(millionths)
            }
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Whole => Unit::Samples,
            Self::Millionths => Unit::Named(MILLIONTHS.to_owned()),
        }
    }

    /// The number of samples that a weight stands for: the weight itself if it is a whole number. A fraction counts as
    /// one sample, because its number of samples is unknown.
    fn count(self, weight: u64) -> u64 {
        match self {
            Self::Whole => weight,
            Self::Millionths => 1,
        }
    }
}

const MILLION_DIGITS: usize = 6;

/// True if `head` is the start of a folded stack with so many frames that its line doesn't end within `head`.
fn is_deep_stack(head: &[u8]) -> bool {
    let starts_with_name = head.first().is_some_and(|byte| !byte.is_ascii_whitespace() && !b"#{[<\"".contains(byte));
    starts_with_name
        && head.iter().filter(|byte| **byte == b';').count() >= MANY_FRAMES
        && !head.iter().any(u8::is_ascii_control)
}

/// Splits a line, which may be indented, into stack and weight. The weight consists of digits with an optional
/// fraction.
fn parse(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    let blank = memchr::memrchr2(b' ', b'\t', line)?;
    let (stack, weight) = (line[..blank].trim_ascii_end(), &line[blank + 1..]);
    if stack.is_empty() || !is_weight(weight) { None } else { Some((stack, weight)) }
}

/// The stack of a line whose weight is negative. `None` for other lines.
fn parse_negative(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    let blank = memchr::memrchr2(b' ', b'\t', line)?;
    let (stack, weight) = (line[..blank].trim_ascii_end(), line[blank + 1..].strip_prefix(b"-")?);
    if stack.is_empty() || !is_weight(weight) { None } else { Some(stack) }
}

/// True for digits with at most one decimal point, such as `12`, `1.5`, `.5` and `1.`, also with an exponent, as many
/// languages print small and large numbers: `5e-05`, `1.5e+16`.
fn is_weight(word: &[u8]) -> bool {
    let (mantissa, exponent) = split_exponent(word);
    let dots = mantissa.iter().filter(|byte| **byte == b'.').count();
    let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit()).count();
    dots <= 1 && digits > 0 && dots + digits == mantissa.len() && exponent.is_some()
}

/// Splits a number into what comes before its exponent, and the exponent. The exponent is 0 if there is none, and
/// `None` if it is invalid or has more than two digits.
fn split_exponent(word: &[u8]) -> (&[u8], Option<i32>) {
    let Some(letter) = memchr::memchr2(b'e', b'E', word) else { return (word, Some(0)) };
    let signed = &word[letter + 1..];
    let digits = signed.strip_prefix(b"-").or_else(|| signed.strip_prefix(b"+")).unwrap_or(signed);
    let is_short = matches!(digits.len(), 1..=2) && digits.iter().all(u8::is_ascii_digit);
    let exponent = if is_short { number(signed) } else { None };
    (&word[..letter], exponent)
}

/// Spells a weight without its exponent: `1.5e3` becomes `1500.`. `None` if it has no exponent, or an invalid one.
fn without_exponent(weight: &[u8]) -> Option<Vec<u8>> {
    let (mantissa, exponent) = split_exponent(weight);
    if mantissa.len() == weight.len() {
        return None;
    }
    let exponent = exponent?;
    let dot = memchr::memchr(b'.', mantissa).unwrap_or(mantissa.len());
    let mut digits: Vec<u8> = mantissa.iter().copied().filter(u8::is_ascii_digit).collect();
    // The index in `digits` at which the decimal point belongs. If that is before the first digit or after the last
    // one, zeros fill the gap. An exponent has at most two digits, so these are few.
    let mut point = dot as i32 + exponent;
    while point < 0 {
        digits.insert(0, b'0');
        point += 1;
    }
    while digits.len() < point as usize {
        digits.push(b'0');
    }
    digits.insert(point as usize, b'.');
    Some(digits)
}

/// True if the weight isn't a whole number: a digit other than 0 follows the decimal point.
fn has_fraction(weight: &[u8]) -> bool {
    if let Some(plain) = without_exponent(weight) {
        return has_fraction(&plain);
    }
    let Some(dot) = memchr::memchr(b'.', weight) else { return false };
    weight[dot + 1..].iter().any(|digit| *digit != b'0')
}

/// Calls `each` with the stack and weight of each line. Lines that are neither stacks nor comments are counted in
/// `skipped`.
fn for_each_stack<'t>(text: &'t [u8], scale: Scale, skipped: &mut Skipped, mut each: impl FnMut(&'t [u8], u64)) {
    let mut start = 0;
    while start < text.len() {
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |len| start + len + 1);
        // `strip_mark` removes a byte order mark.
        let (line, offset) = (strip_mark(&text[start..end]), start as u64);
        start = end;
        if is_comment(line) {
            continue;
        }
        match parse(line) {
            Some((stack, weight)) => match scale.parse_weight(weight) {
                // The weight has a digit other than 0, so rounding made it 0.
                Some(0) if weight.iter().any(|digit| (b'1'..=b'9').contains(digit)) => {
                    skipped.add(Error::new("the weight is too small: with six decimals, it is 0").at_offset(offset));
                }
                Some(weight) => each(stack, weight),
                None if scale == Scale::Whole && has_fraction(weight) => {
                    let why = "the weight has a fraction, but the first weights in the file are whole numbers";
                    skipped.add(Error::new(why).at_offset(offset));
                }
                None => skipped.add(Error::new("the weight is too large").at_offset(offset)),
            },
            None if line.trim_ascii().is_empty() => {}
            None if parse_negative(line).is_some() => {
                skipped.add(Error::new("the weight is negative").at_offset(offset));
            }
            None => skipped.add(Error::new("a folded stack must end with a space and a number").at_offset(offset)),
        }
    }
}

/// A frame's label; `[unknown]` if the label is empty.
fn or_unknown(label: &[u8]) -> &[u8] {
    if label.is_empty() { UNKNOWN } else { label }
}

/// Starts reading folded stacks. `head` is the start of the input, which shows whether weights have fractions.
pub fn open(options: &ReadOptions, head: &[u8]) -> Box<dyn ReadLines> {
    Box::new(FoldedReader::new(options, head))
}

/// Reads blocks of lines into a profile.
struct FoldedReader {
    profile: Profile,
    tiers: Tiers,
    /// A cache of the frame of each label, which is kept from block to block.
    frames: FxHashMap<Box<[u8]>, FrameId>,
    scale: Scale,
}

/// The maximum size of the label cache. A full cache is cleared, which bounds its memory.
const MOST_LABELS: usize = 1 << 16;

impl FoldedReader {
    fn new(options: &ReadOptions, head: &[u8]) -> Self {
        let (profile, frames) = (Profile::empty(options.keep), FxHashMap::default());
        Self { profile, tiers: Tiers::default(), frames, scale: Scale::detect(head) }
    }

    /// The frame of a label, which is added if it is new.
    fn frame(&mut self, label: &[u8]) -> FrameId {
        if let Some(&known) = self.frames.get(label) {
            return known;
        }
        let frame = parse_frame(&mut self.profile, &mut self.tiers, label);
        self.frames.insert(label.into(), frame);
        frame
    }
}

impl ReadLines for FoldedReader {
    /// Adds the stacks in these lines to the profile. Lines that aren't folded stacks are counted in `skipped`.
    fn read(&mut self, lines: &[u8], skipped: &mut Skipped) {
        // `frames` is only a cache: clearing it limits its memory.
        if self.frames.len() > MOST_LABELS {
            self.frames.clear();
        }
        let default_track = self.profile.track(Track::default());
        let scale = self.scale;
        let series = self.profile.series_named("samples", scale.unit());
        // Folded stacks don't say what was counted: samples, nanoseconds or bytes.
        self.profile.series[series].counting = Counting::Unknown;
        let mut stacks = StackReader { reader: self, previous: &[], open: Vec::new() };
        for_each_stack(lines, scale, skipped, |stack, weight| {
            let (thread, names) = split_thread(stack);
            let track = thread.map_or(default_track, |thread| stacks.reader.profile.track(thread));
            // A line may state a thread and no frames.
            let stack = if names.is_empty() { None } else { stacks.stack(names) };
            let row = Row { track, stack, weight, count: scale.count(weight), time: None };
            stacks.reader.profile.push(series, row);
        });
    }

    fn profile(&mut self) -> &mut Profile {
        &mut self.profile
    }
}

/// Finds the stacks of lines. Lines usually are sorted, so that most share their outer frames with the previous line.
struct StackReader<'r, 't> {
    reader: &'r mut FoldedReader,
    /// The frames of the previous line, as text: their labels joined by `;`.
    previous: &'t [u8],
    /// The frames of the previous line with their stacks, outermost first.
    open: Vec<OpenFrame>,
}

struct OpenFrame {
    /// The offset at which the frame's label ends in the text of the line's frames.
    end: usize,
    /// The stack up to the frame.
    stack: StackId,
}

impl<'t> StackReader<'_, 't> {
    /// The stack for the frames of a line. `names` has their labels, joined by `;`. Reuses the stacks of the outer
    /// frames that the line has in common with the previous one.
    fn stack(&mut self, names: &'t [u8]) -> Option<StackId> {
        let shared = shared_len(self.previous, names);
        // A frame of the previous line is also in this line if both lines are equal up to the frame's end, and the
        // frame's label ends there in this line too: at a `;` or at the end of the line.
        let is_shared = |frame: &OpenFrame| frame.end <= shared && matches!(names.get(frame.end), None | Some(b';'));
        while self.open.last().is_some_and(|frame| !is_shared(frame)) {
            self.open.pop();
        }
        self.previous = names;
        let (mut start, mut stack) = match self.open.last() {
            Some(frame) => (frame.end + 1, Some(frame.stack)),
            None => (0, None),
        };
        // If all frames of the line are shared, `start` is beyond its end.
        let Some(new_names) = names.get(start..) else { return stack };
        let new_start = start;
        // Each frame that isn't shared ends at a `;` or at the end of the line, at this offset in `new_names`.
        for end_offset in memchr::memchr_iter(b';', new_names).chain([new_names.len()]) {
            let end = new_start + end_offset;
            let frame = self.reader.frame(&names[start..end]);
            let callee = self.reader.profile.stack(stack, frame);
            self.open.push(OpenFrame { end, stack: callee });
            (stack, start) = (Some(callee), end + 1);
        }
        stack
    }
}

/// The number of bytes at the start that two texts have in common.
fn shared_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Splits off the outermost frame if it is a thread, as async-profiler writes it. Returns the thread and the other
/// frames; otherwise `None` and all frames.
fn split_thread(names: &[u8]) -> (Option<Track>, &[u8]) {
    if !names.starts_with(b"[") {
        return (None, names);
    }
    let end = memchr::memchr(b';', names).unwrap_or(names.len());
    let Some(tid) = tid_of_thread(&names[..end]) else { return (None, names) };
    let thread = Track { comm: names[..end].to_vec(), tid: Some(Tid(tid)), ..Track::default() };
    (Some(thread), names.get(end + 1..).unwrap_or_default())
}

/// The frame that a label spells, with its kind and tier.
fn parse_frame(profile: &mut Profile, tiers: &mut Tiers, label: &[u8]) -> FrameId {
    let label = or_unknown(label);
    // A suffix such as `_[j]` states the kind, and `bare` is the label without it. Without a suffix, the kind follows
    // from the label itself.
    let (bare, kind) = marked(label).unwrap_or_else(|| (label, unmarked(label)));
    if kind != FrameKind::Jit {
        let name = profile.name(label);
        return profile.frame(Frame::new(name, kind));
    }
    // async-profiler's suffixes `_[0]` and `_[1]` state the tier instead of the kind. Interpreted and compiled code of
    // a method belongs to the same function, so its name gets the suffix for JIT code instead.
    let stated_tier = match label.last_chunk() {
        Some(b"_[0]") => Some(Tier::Interpreted),
        Some(b"_[1]") => Some(Tier::Baseline),
        _ => None,
    };
    let name = if stated_tier.is_some() { profile.name(&[bare, b"_[j]"].concat()) } else { profile.name(label) };
    let tier = stated_tier.or_else(|| tiers.find(name, bare, RuntimeSet::default()));
    profile.frame(Frame { tier, ..Frame::new(name, kind) })
}

/// Buffers lines to be written.
struct FoldedLines<'o> {
    lines: Vec<u8>,
    out: &'o mut dyn Write,
}

impl<'o> FoldedLines<'o> {
    /// Buffered lines are written out when they reach this many bytes.
    const WRITTEN: usize = 1 << 16;

    fn new(out: &'o mut dyn Write) -> Self {
        Self { lines: Vec::with_capacity(2 * Self::WRITTEN), out }
    }

    /// Appends the line of a stack with a whole weight. If enough lines are buffered, writes them out.
    fn push(&mut self, stack: &[u8], weight: u64) -> Result<()> {
        self.lines.extend_from_slice(stack);
        writeln!(self.lines, " {weight}")?;
        if self.lines.len() >= Self::WRITTEN { self.flush() } else { Ok(()) }
    }

    /// Like [`Self::push`], for a weight in millionths, which is written as a decimal fraction without trailing zeros.
    fn push_fraction(&mut self, stack: &[u8], weight: u64) -> Result<()> {
        let (whole, millionths) = (weight / MILLION, format!("{:06}", weight % MILLION));
        self.lines.extend_from_slice(stack);
        write!(self.lines, " {whole}")?;
        match millionths.trim_end_matches('0') {
            "" => self.lines.push(b'\n'),
            digits => writeln!(self.lines, ".{digits}")?,
        }
        if self.lines.len() >= Self::WRITTEN { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

/// Writes one event, the one that the options select ([`WriteOptions::series`]), with one line per distinct stack.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let Some(series) = profile.series.get(options.series) else { return Ok(()) };
    let (by, annotate, shortening) = (options.by, options.annotate, options.shortening);
    // Frames are spelled as the user's options say. The other fields of `Spelling` are for flame graphs and other
    // reports.
    let spelling = Spelling {
        by,
        annotate,
        shortening,
        reversed: false,
        by_category: false,
        by_start: false,
        join_unnamed: false,
    };
    let mut lines = FoldedLines::new(out);
    let tree = CallTree::new(profile, series, options.weight, spelling);
    let has_fractions = options.weight == Weight::Period && series.unit == Scale::Millionths.unit();
    // With 0 as the smallest weight, all stacks are written.
    tree.stacks(0, |stack, weight| {
        if has_fractions { lines.push_fraction(stack.as_bytes(), weight) } else { lines.push(stack.as_bytes(), weight) }
    })?;
    lines.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[u8], options: &ReadOptions, skipped: &mut Skipped) -> Profile {
        let mut reader = FoldedReader::new(options, lines);
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
        assert_eq!(tiers, [None, Some(Tier::Interpreted), Some(Tier::Optimized), None]);
    }

    #[test]
    fn lines_without_a_weight_are_counted() {
        let mut skipped = Skipped::new("line");
        read(b"a;b 1\nnonsense\n\n# x\na;b x\n", &ReadOptions::default(), &mut skipped);
        let said = skipped.into_warning().unwrap().to_string();
        assert!(said.contains("at byte 0x6: 2 lines skipped"), "{said}");
    }

    proptest::proptest! {
        /// Only separators distinguish frames: a frame may be empty, or a prefix of another one.
        #[test]
        fn a_part_shared_with_the_line_before_changes_nothing(lines in "([ab;]{1,9} [1-3]\n){1,12}") {
            let profile = read(lines.as_bytes(), &ReadOptions::default(), &mut Skipped::new("line"));
            let spelled = profile.series[0].rows.iter().map(|row| {
                let mut names: Vec<_> =
                    profile.frames_up(row.stack).map(|id| profile.name_of(profile.frame_of(id).name)).collect();
                names.iter_mut().filter(|name| **name == UNKNOWN).for_each(|name| *name = b"");
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
        assert!(sniff(b"a;b 1\na;b;cut of") && sniff(b"a;b -1\na;c -2\n") && sniff(b"a 1\n[unknown] 2\n"));
    }

    #[test]
    fn comments_and_odd_lines_do_not_hide_folded_stacks() {
        for text in [
            &b"# austin: 3.3.0\n# interval: 100\nmain;parse 10\n"[..],
            b"a title\nmain;parse 10\nmain 2\n",
            b"\n\nmain;parse 10.5\n",
            b"main;parse;\nmain;parse 1\n",
            b" a;b 1\n",
        ] {
            assert!(sniff(text), "{}", String::from_utf8_lossy(text));
        }
        assert!(!sniff(b" a 1\n") && !sniff(b"# a comment\n"));
        let mut skipped = Skipped::new("line");
        let profile = read(b"# interval: 100\na title\n#0;main 3\n", &ReadOptions::default(), &mut skipped);
        assert_eq!((skipped.count(), profile.series[0].rows[0].weight), (1, 3));
    }

    #[test]
    fn a_tab_may_precede_the_weight_and_a_huge_weight_is_skipped() {
        let mut skipped = Skipped::new("line");
        let text = b"main;lex\t3\nmain;parse \t4\nmain;x 99999999999999999999999\n";
        assert!(sniff(text) && is_plain(text));
        let profile = read(text, &ReadOptions::default(), &mut skipped);
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "main;lex 3\nmain;parse 4\n");
        let said = skipped.into_warning().unwrap().to_string();
        assert!(said.contains("1 line skipped") && said.contains("too large"), "{said}");
        let mut skipped = Skipped::new("line");
        read(b"main;lex 99999999999999.5\nmain;parse 1.5\n", &ReadOptions::default(), &mut skipped);
        assert!(skipped.into_warning().unwrap().to_string().contains("too large"));
    }

    #[test]
    fn fractions_are_kept_to_the_millionth() {
        let text = b"main;lex 10.5\nmain;parse 4.25\nmain 1\nmain;tiny .0000015\nmain;ten 10.0\n";
        let profile = read(text, &ReadOptions::default(), &mut Skipped::new("line"));
        let weights: Vec<u64> = profile.series[0].rows.iter().map(|row| row.weight).collect();
        assert_eq!(weights, [10_500_000, 4_250_000, 1_000_000, 2, 10_000_000]);
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "main 1\nmain;lex 10.5\nmain;parse 4.25\nmain;ten 10\nmain;tiny 0.000002\n");
        assert!(!is_plain(text) && is_plain(b"main;lex 10.0\n"));
        for (weight, wanted) in [
            ("1e3", Some(1000)),
            ("5e-1", None),
            ("e3", None),
            ("1e", None),
            ("1.2.3", None),
            (".", None),
            ("-4", None),
            ("1.", Some(1)),
        ] {
            let line = format!("a;b {weight}\n");
            let parsed = parse(line.as_bytes()).and_then(|(_, weight)| Scale::Whole.parse_weight(weight));
            assert_eq!(parsed, wanted, "{weight}");
        }
    }

    #[test]
    fn async_profilers_marks_and_threads_are_understood() {
        let text =
            b"[main tid=1234];com/x/App.main_[0];com/x/App.work_[1];memcpy 10\n[GC Thread#0 tid=5] 6\n[tid=7];f 1\n";
        assert!(!is_plain(b"[tid=7];f 1\n"));
        let profile = read(text, &ReadOptions::default(), &mut Skipped::new("line"));
        let rows = &profile.series[0].rows;
        let tids: Vec<_> = rows.iter().map(|row| profile.track_of(row.track).tid.map(|tid| tid.0)).collect();
        assert_eq!((tids, rows[1].stack), (vec![Some(1234), Some(5), Some(7)], None));
        let frames: Vec<_> = profile.frames_up(rows[0].stack).map(|id| *profile.frame_of(id)).collect();
        let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.tier)).collect();
        let jit = |tier| (FrameKind::Jit, Some(tier));
        assert_eq!(kinds, [(FrameKind::User, None), jit(Tier::Baseline), jit(Tier::Interpreted)]);
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        let written =
            "[GC Thread#0 tid=5] 6\n[main tid=1234];com/x/App.main_[j];com/x/App.work_[j];memcpy 10\n[tid=7];f 1\n";
        assert_eq!(String::from_utf8(out).unwrap(), written);
    }

    #[test]
    fn a_stack_of_which_only_the_beginning_was_looked_at_is_a_folded_stack() {
        let deep: String = (0..10_000).map(|frame| format!("function_{frame};")).collect();
        assert!(sniff(&deep.as_bytes()[..1 << 16]));
        let binary: Vec<u8> = deep.bytes().take(1 << 16).chain([0]).collect();
        assert!(!sniff(&binary) && !sniff(format!("{{{deep}").as_bytes()));
    }
}
