//! Names the frames of JIT code in a block of text and leaves every other byte as it is.
//!
//! A block is cut at any line; [`State`] says what the lines before it told. Blocks can so be rewritten side by side.
//!
//! ```text
//! feeder:  cut ── State at its start, advance past it ── cut ── …
//! workers: rewrite(block, state, namer) → the same bytes, or new ones, and what was found
//! ```

use super::frame::{Frame, Place, UNKNOWN, address};
use super::header::Header;
use super::known::{Known, is_record_line};
use crate::model::{Addr, FrameAddr, Nanos, Pid, Tid};
use memchr::memmem::{self, Finder};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};

/// What the text before a block tells.
#[derive(Debug, Clone, Default)]
pub struct State {
    sample: Sample,
    known: Known,
}

/// Whose frames follow.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    pid: Option<Pid>,
    tid: Option<Tid>,
    time: Option<Nanos>,
}

/// What decides how frames are named and printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Name frames that already have a name, too.
    pub rename: bool,
    /// Print the source line, where it is known, on a line of its own, as `-F +srcline` does.
    pub srcline: bool,
    /// Whether this text has no offsets behind its symbols (`-F sym` without `symoff`).
    pub no_offsets: bool,
}

impl Style {
    /// Learns from a text's first bytes whether offsets are printed behind symbols.
    pub fn learn_offsets(&mut self, head: &[u8]) {
        let native = |line: &&[u8]| line.starts_with(b"\t");
        let frames = head.split(|&byte| byte == b'\n').filter(native).filter_map(Frame::parse);
        let mut known = frames.filter(|frame| frame.symbol != UNKNOWN && !frame.inlined).peekable();
        self.no_offsets = known.peek().is_some() && known.all(|frame| frame.offset.is_none());
    }
}

/// A frame to be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The process.
    pub pid: Pid,
    /// Where.
    pub addr: FrameAddr,
    /// When, if the text says.
    pub time: Option<Nanos>,
}

/// A frame's name.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    /// The function.
    pub name: Cow<'a, [u8]>,
    /// How far into it the frame's printed address is.
    pub offset: u64,
    /// The object that JIT code is shown under.
    pub dso: Cow<'a, [u8]>,
    /// Source file and line.
    pub source: Option<(Cow<'a, [u8]>, u32)>,
}

/// An answer to [`Wanted`].
#[derive(Debug)]
pub enum Answer<'a> {
    /// It has a name, and it is the same one at these times (the first included, the last not).
    Named(Named<'a>, Range<Nanos>),
    /// Nobody knows.
    Unknown,
    /// The names of this process have not been looked for: ask again when they have.
    NotLoaded,
}

/// What was found in a block.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Frames named.
    pub named: u64,
    /// Frames in places of JIT code that nobody could name.
    pub unresolved: u64,
    /// Of those: printed relative to a file whose base the text does not tell.
    pub relative: u64,
    /// Of those: the text does not say whose they are.
    pub nobodys: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.named += other.named;
        self.unresolved += other.unresolved;
        self.relative += other.relative;
        self.nobodys += other.nobodys;
    }
}

/// The outcome of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// Nothing to name: the block's own bytes stand.
    Unchanged(Counts),
    /// The new text.
    Changed(Vec<u8>, Counts),
    /// Names of these processes are missing: load them and come again.
    Needs(BTreeSet<Pid>),
}

/// How much of a buffer makes the next block: up to the last end of a sample, else the last line's end; all of it if
/// it is one endless line. 0 only for an empty buffer.
pub fn cut(buffer: &[u8]) -> usize {
    let sample_end = memmem::rfind(buffer, b"\n\n").map(|at| at + 2);
    let windows_end = || memmem::rfind(buffer, b"\n\r\n").map(|at| at + 3);
    let line_end = || memchr::memrchr(b'\n', buffer).map(|at| at + 1);
    sample_end.or_else(windows_end).or_else(line_end).unwrap_or(buffer.len())
}

impl State {
    /// What the record lines so far told.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Goes past a block without rewriting it.
    pub fn advance(&mut self, block: &[u8]) {
        for line in record_lines(block) {
            self.known.apply(&block[line]);
        }
        self.enter_sample(block);
    }

    /// The sample that is open at the end of `text`, if one begins in it.
    fn enter_sample(&mut self, text: &[u8]) {
        let paragraph = last_paragraph(text);
        // At the very start of a text the first paragraph has no blank line before it. A continued one begins with
        // a frame, which is no header.
        let mut lines = Lines { text, at: paragraph.unwrap_or(0) };
        let header = lines.find_map(|line| {
            let line = &text[line];
            if is_record_line(line) { None } else { Header::parse(line) }
        });
        match header {
            Some(header) => self.sample = Sample::from(&header),
            None if paragraph.is_some() => self.sample = Sample::default(),
            None => {}
        }
    }
}

/// Where the last paragraph of a text begins: behind the last empty line. `None` if there is no empty line.
fn last_paragraph(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(at) = memchr::memrchr(b'\n', &text[..end]) {
        let before = &text[..at];
        if before.ends_with(b"\n") || before.ends_with(b"\n\r") {
            return Some(at + 1);
        }
        end = at;
    }
    None
}

impl From<&Header<'_>> for Sample {
    fn from(header: &Header<'_>) -> Self {
        Self { pid: header.pid, tid: header.tid, time: header.lookup_time() }
    }
}

/// Rewrites one block.
pub fn rewrite<'n>(
    block: &[u8],
    state: &State,
    style: Style,
    namer: &(dyn Fn(Wanted) -> Answer<'n> + Sync),
) -> Rewritten {
    let mut job = Job {
        block,
        style,
        namer,
        state: state.clone(),
        seen: 0,
        out: Vec::new(),
        copied: 0,
        last_frame: None,
        unknown: Finder::new(UNKNOWN),
        answers: FxHashMap::default(),
        counts: Counts::default(),
        needs: BTreeSet::new(),
    };
    let mut from = 0;
    for record in record_lines(block) {
        job.stretch(from..record.start);
        job.state.known.apply(&block[record.clone()]);
        from = record.end;
    }
    job.stretch(from..block.len());
    job.finish()
}

struct Job<'b, 'n, 'f> {
    block: &'b [u8],
    style: Style,
    namer: &'f (dyn Fn(Wanted) -> Answer<'n> + Sync),
    state: State,
    /// Up to where the beginnings of samples were looked for.
    seen: usize,
    out: Vec<u8>,
    /// Up to where the block was copied to `out`.
    copied: usize,
    /// Where the last line ended that was a frame without a name in user space.
    last_frame: Option<usize>,
    unknown: Finder<'static>,
    /// What the namer said in this block: stacks share most of their frames with those before.
    answers: FxHashMap<(Pid, FrameAddr), (Named<'n>, Range<Nanos>)>,
    counts: Counts,
    needs: BTreeSet<Pid>,
}

impl Job<'_, '_, '_> {
    /// Everything between two record lines.
    fn stretch(&mut self, range: Range<usize>) {
        if self.style.rename {
            for line in (Lines { text: &self.block[..range.end], at: range.start }) {
                self.line(line, None);
            }
            return;
        }
        let text = &self.block[..range.end];
        let mut at = range.start;
        while let Some(hit) = self.unknown.find(&text[at..]).map(|hit| at + hit) {
            let start = memchr::memrchr(b'\n', &text[..hit]).map_or(0, |end| end + 1);
            let end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |len| hit + len);
            self.line(start..end, Some(hit));
            at = end;
        }
    }

    /// A line that may be a frame without a name; `unknown` is where the word stands.
    fn line(&mut self, line: Range<usize>, unknown: Option<usize>) {
        let end = line.end - usize::from(self.block[line.clone()].ends_with(b"\r"));
        let text = &self.block[line.start..end];
        let in_stack = text.first() == Some(&b'\t');
        let frame_at =
            if in_stack { first_word(text) } else { unknown.and_then(|at| word_before(text, at - line.start)) };
        let Some(frame_at) = frame_at else { return };
        let frame = Frame::parse_unknown(&text[frame_at..]).or_else(|| Frame::parse(&text[frame_at..]));
        let Some(frame) = frame else { return };
        if (frame.symbol != UNKNOWN && !self.style.rename) || frame.inlined || frame.addr >> 63 != 0 {
            return;
        }
        let place = Place::of(frame.dso);
        if place == Place::Elsewhere {
            return;
        }
        // Right below another such frame nothing is new.
        let continues = in_stack && self.last_frame.is_some_and(|end| end + 1 == line.start);
        let returns = continues || (in_stack && self.returns(line.start));
        if in_stack {
            self.last_frame = Some(line.end);
            if continues {
                self.seen = line.start;
            } else {
                self.enter_sample(line.start);
            }
        } else {
            match Header::parse(text) {
                Some(header) => self.state.sample = Sample::from(&header),
                None => return,
            }
        }
        self.name(line.start + frame_at..end, frame, place, returns);
    }

    /// Brings the open sample up to a line, looking only at what no line before had to look at.
    fn enter_sample(&mut self, line: usize) {
        self.state.enter_sample(&self.block[self.seen..line]);
        self.seen = line;
    }

    /// Whether the frame at `line` has a frame above it, into which it will return: not the first of its stack, nor
    /// the first below the kernel's.
    fn returns(&self, line: usize) -> bool {
        let mut end = line;
        // A source line may stand between two frames.
        for _ in 0..2 {
            let Some(stop) = end.checked_sub(1) else { return false };
            let start = memchr::memrchr(b'\n', &self.block[..stop]).map_or(0, |at| at + 1);
            let above = &self.block[start..stop];
            if above.first() == Some(&b'\t') {
                let addr = first_word(above).and_then(|at| address(&above[at..]));
                return addr.is_some_and(|(addr, _)| addr >> 63 == 0);
            }
            if above.first() != Some(&b' ') {
                return false;
            }
            end = start;
        }
        false
    }

    fn name(&mut self, place_in_block: Range<usize>, frame: Frame<'_>, place: Place, returns: bool) {
        let Sample { pid, tid, time } = self.state.sample;
        let known = |tid| self.state.known.process_of(tid);
        let of_place = match place {
            Place::Anonymous(pid) => pid.map(Pid),
            _ => None,
        };
        let of_thread = || tid.and_then(known).or(of_place).or(tid.map(|tid| Pid(tid.0)));
        let Some(pid) = pid.or_else(of_thread) else {
            self.counts.unresolved += 1;
            self.counts.nobodys += 1;
            return;
        };
        let addr = match place {
            Place::FileBacked => self.state.known.absolute(Some(pid), frame.dso.unwrap_or_default(), frame.addr),
            _ => Some(frame.addr),
        };
        let Some(addr) = addr.map(Addr) else {
            self.counts.unresolved += 1;
            self.counts.relative += 1;
            return;
        };
        let addr = if returns { FrameAddr::Return(addr) } else { FrameAddr::Ip(addr) };
        if let Some((named, valid)) = self.answers.get(&(pid, addr))
            && time.is_none_or(|time| valid.contains(&time))
        {
            let named = named.clone();
            return self.put(place_in_block, &frame, &named);
        }
        match (self.namer)(Wanted { pid, addr, time }) {
            Answer::Named(named, valid) => {
                self.put(place_in_block, &frame, &named);
                self.answers.insert((pid, addr), (named, valid));
            }
            Answer::Unknown => self.counts.unresolved += u64::from(frame.symbol == UNKNOWN),
            Answer::NotLoaded => {
                self.needs.insert(pid);
            }
        }
    }

    /// Writes a named frame instead of what stands from its address to the line's end.
    fn put(&mut self, place: Range<usize>, frame: &Frame<'_>, named: &Named<'_>) {
        let old = &self.block[place.clone()];
        let digits = old.len() - address(old).map_or(old.len(), |(_, rest)| rest.len());
        if self.out.is_empty() {
            // Names are longer than `[unknown]`: make room for what most blocks become.
            self.out.reserve(self.block.len() + self.block.len() / 2);
        }
        self.out.extend_from_slice(&self.block[self.copied..place.start + digits]);
        self.out.push(b' ');
        put_printable(&mut self.out, &named.name);
        if !self.style.no_offsets {
            self.out.extend_from_slice(b"+0x");
            put_hex(&mut self.out, named.offset);
        }
        if frame.dso.is_some() {
            self.out.extend_from_slice(b" (");
            put_printable(&mut self.out, &named.dso);
            self.out.push(b')');
        }
        if let (true, Some((file, line))) = (self.style.srcline, &named.source) {
            self.out.extend_from_slice(b"\n  ");
            put_printable(&mut self.out, file);
            self.out.extend_from_slice(format!(":{line}").as_bytes());
        }
        self.copied = place.end;
        self.counts.named += 1;
    }

    fn finish(mut self) -> Rewritten {
        if !self.needs.is_empty() {
            return Rewritten::Needs(self.needs);
        }
        if self.copied == 0 {
            return Rewritten::Unchanged(self.counts);
        }
        self.out.extend_from_slice(&self.block[self.copied..]);
        Rewritten::Changed(self.out, self.counts)
    }
}

/// Appends a name without what would end its line.
fn put_printable(out: &mut Vec<u8>, name: &[u8]) {
    if name.iter().all(|&byte| byte >= b' ') {
        out.extend_from_slice(name);
    } else {
        out.extend(name.iter().map(|&byte| if byte < b' ' { b' ' } else { byte }));
    }
}

/// Appends a number in hexadecimal digits.
fn put_hex(out: &mut Vec<u8>, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    out.extend((0..digits).rev().map(|digit| b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize]));
}

fn first_word(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| !byte.is_ascii_whitespace())
}

/// Where the word before `at` begins, if only one space is between.
fn word_before(text: &[u8], at: usize) -> Option<usize> {
    let end = at.checked_sub(1).filter(|&end| text[end] == b' ')?;
    let start = text[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (start < end).then_some(start)
}

/// Lines of a text from a place on, as ranges without the line feed.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        if start >= self.text.len() {
            return None;
        }
        let end = memchr::memchr(b'\n', &self.text[start..]).map_or(self.text.len(), |len| start + len);
        self.at = end + 1;
        Some(start..end)
    }
}

/// The record lines of a block, in order.
fn record_lines(block: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let hit = at + memmem::find(&block[at..], b"PERF_RECORD_")?;
        let start = memchr::memrchr(b'\n', &block[..hit]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &block[hit..]).map_or(block.len(), |len| hit + len);
        at = end;
        Some(start..end)
    })
    .filter(|line| !block[line.clone()].starts_with(b"\t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names every address of process 5 between 0x1000 and 0x2000 `jit`, at or before the time 9 s.
    fn namer(wanted: Wanted) -> Answer<'static> {
        let at = wanted.addr.for_lookup().0;
        let named = Named {
            name: Cow::Borrowed(b"jit fn (a)"),
            offset: wanted.addr.raw().0.wrapping_sub(0x1000),
            dso: Cow::Borrowed(b"/d/jitted-5.so"),
            source: Some((Cow::Borrowed(b"a b.js"), 7)),
        };
        match wanted.pid {
            Pid(5) if (0x1000..0x2000).contains(&at) && wanted.time <= Some(Nanos(9_000_000_000)) => {
                Answer::Named(named, Nanos(0)..Nanos(9_000_000_000))
            }
            Pid(77) => Answer::NotLoaded,
            _ => Answer::Unknown,
        }
    }

    fn rewritten(text: &str, style: Style) -> (String, Counts) {
        match rewrite(text.as_bytes(), &State::default(), style, &namer) {
            Rewritten::Unchanged(counts) => (text.to_owned(), counts),
            Rewritten::Changed(bytes, counts) => (String::from_utf8(bytes).unwrap(), counts),
            Rewritten::Needs(pids) => (format!("needs {pids:?}"), Counts::default()),
        }
    }

    const TEXT: &str = "# comment [unknown] ([unknown])\n\
        my app 5 8.000002:    10 cycles:u: \n\
        \t ffffffff8168bb05 fault+0x1 ([kernel.kallsyms])\n\
        \t            1000 [unknown] (//anon)\n\
        \t            2000 [unknown] ([anon:JIT code])\n\
        \t             7f2 [unknown] (/bin/x)\n\
        \t            1fff has a name [unknown] (odd) (/tmp/perf-5.map)\n\
        \n\
        app 6 8.000003:    10 cycles:u: \n\
        \t            1008 [unknown] (/tmp/perf-5.map)\n\
        \t            1000 [unknown] (/tmp/perf-5.map)\n\
        \n";

    #[test]
    fn frames_without_a_name_in_places_of_jit_code_are_named_and_nothing_else_changes() {
        let (text, counts) = rewritten(TEXT, Style::default());
        let expected = TEXT
            .replace("1000 [unknown] (//anon)", "1000 jit fn (a)+0x0 (/d/jitted-5.so)")
            .replace("2000 [unknown] ([anon:JIT code])", "2000 jit fn (a)+0x1000 (/d/jitted-5.so)")
            .replace("1008 [unknown] (/tmp/perf-5.map)", "1008 jit fn (a)+0x8 (/d/jitted-5.so)");
        assert_eq!(text, expected);
        assert_eq!(counts, Counts { named: 3, unresolved: 1, ..Counts::default() });
        assert_eq!(rewritten(&text, Style::default()).0, text);
    }

    #[test]
    fn any_cut_gives_the_same_text() {
        let (whole, counts) = rewritten(TEXT, Style::default());
        for at in (0..TEXT.len()).filter(|&at| at == 0 || TEXT.as_bytes()[at - 1] == b'\n') {
            let (first, second) = TEXT.as_bytes().split_at(at);
            let mut state = State::default();
            let mut out = Vec::new();
            let mut sum = Counts::default();
            for block in [first, second] {
                let named = rewrite(block, &state, Style::default(), &namer);
                state.advance(block);
                let (bytes, counts) = match named {
                    Rewritten::Changed(bytes, counts) => (bytes, counts),
                    Rewritten::Unchanged(counts) => (block.to_vec(), counts),
                    Rewritten::Needs(_) => unreachable!("all processes are loaded"),
                };
                out.extend_from_slice(&bytes);
                sum += counts;
            }
            // Only whether a frame is a return address can be lost with the line above it: the address 0x2000 and
            // 0x1000 of the second sample stand right behind their function's end and start.
            if first.ends_with(b"\n\n") || first.is_empty() {
                assert_eq!((String::from_utf8(out).unwrap(), sum), (whole.clone(), counts.clone()), "cut at {at}");
            }
        }
    }

    #[test]
    fn one_line_samples_source_lines_and_other_fields() {
        let line = "    app 5 8.000002:  1 cycles:      1010 [unknown] ([unknown])\r\n";
        let (text, _) = rewritten(line, Style { srcline: true, no_offsets: true, rename: false });
        assert_eq!(text, "    app 5 8.000002:  1 cycles:      1010 jit fn (a) (/d/jitted-5.so)\n  a b.js:7\r\n");
        let no_dso = rewritten("app 5 cycles: \n\t 1010 [unknown]\n", Style::default());
        assert_eq!(no_dso.0, "app 5 cycles: \n\t 1010 jit fn (a)+0x10\n");
        let late = rewritten("app 5 9.000000: c: \n\t 1010 [unknown] (//anon)\n", Style::default());
        assert_eq!(late.1.unresolved, 1);
    }

    #[test]
    fn relative_addresses_and_frames_of_nobody_are_left_and_counted() {
        let text = "app 5 8.000002:  1 c: \n\t 719e [unknown] (/memfd:x (deleted))\n\n\t 1010 [unknown] (//anon)\n";
        let (same, counts) = rewritten(text, Style::default());
        assert_eq!(same, text);
        assert_eq!(counts, Counts { unresolved: 2, relative: 1, nobodys: 1, named: 0 });
        let base =
            "app 5 8.000001: PERF_RECORD_MMAP2 5/5: [0x1000(0x1000) @ 0x7000 fe:00 1 0]: r-xp /memfd:x (deleted)\n";
        let named = rewritten(&(base.to_owned() + text), Style::default());
        assert!(named.0.contains("\t 719e jit fn (a)+0x19e (/d/jitted-5.so)"), "{}", named.0);
    }

    #[test]
    fn names_that_are_not_loaded_are_asked_for() {
        assert_eq!(
            rewritten("app 77 8.000002:  1 c: \n\t 1 [unknown] (//anon)\n", Style::default()).0,
            "needs {Pid(77)}"
        );
    }

    #[test]
    fn renaming_covers_frames_that_have_a_name() {
        let text = "app 5 8.000002:  1 c: \n\t 1010 old+0x1 (/tmp/perf-5.map)\n\t 1011 f (/bin/x)\n";
        let (text, counts) = rewritten(text, Style { rename: true, ..Style::default() });
        assert!(text.contains("\t 1010 jit fn (a)+0x10 (/d/jitted-5.so)\n\t 1011 f (/bin/x)"), "{text}");
        assert_eq!(counts.named, 1);
    }

    #[test]
    fn offsets_are_printed_where_the_text_prints_them() {
        let learnt = |text: &str| {
            let mut style = Style::default();
            style.learn_offsets(text.as_bytes());
            style.no_offsets
        };
        assert!(learnt("h\n\t 1 main (/x)\n\t 1 f (/x)\n"));
        assert!(!learnt("h\n\t 1 main+0x1 (/x)\n\t 2 f (/x)\n"));
        assert!(!learnt("h\n\t 1 [unknown] (/x)\n"));
    }

    #[test]
    fn blocks_end_with_samples_if_they_can() {
        assert_eq!(cut(b"a\n\nb\nc"), 3);
        assert_eq!(cut(b"a\r\n\r\nb"), 5);
        assert_eq!(cut(b"a\nb"), 2);
        assert_eq!(cut(b"endless"), 7);
    }

    #[test]
    fn offsets_are_hexadecimal() {
        for number in [0, 1, 0xf, 0x10, 0xabc, u64::MAX] {
            let mut out = Vec::new();
            put_hex(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{number:x}"));
        }
    }
}
