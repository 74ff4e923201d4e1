//! A time profile of Instruments as XML: `xctrace export --input x.trace --xpath
//! '/trace-toc/run/data/table[@schema="time-profile"]'`.
//!
//! A `row` is a sample: its time, thread, weight and a `backtrace` of `frame`s, innermost first, each with its
//! `binary`. An element gets an `id` where it is defined; later occurrences only refer to it (`ref`). Since a single
//! program writes these files, they are scanned for tags instead of being parsed as XML in general: of XML's finer
//! points, only entities in attributes are supported.

use crate::analysis::named_frames::{NamedFrames, StatedFrame};
use crate::bytes::digits::{self, hex};
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{FrameId, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// True if an input is such an export.
pub fn sniff(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    text.starts_with(b"<") && memchr::memmem::find(head, b"<trace-query-result").is_some()
}

/// Reads all rows. Rows without a backtrace get an unknown stack.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let profile = Profile::keeping(options.keep);
    let mut reading = XctraceReader {
        profile,
        named: NamedFrames::default(),
        known: ById::default(),
        row: None,
        skipped: Skipped::new("row"),
    };
    let mut rest = bytes;
    while let Some(tag) = Tag::next(&mut rest) {
        reading.tag(tag, bytes.len() - rest.len());
    }
    warnings.extend(reading.skipped.into_warning());
    Ok(reading.profile)
}

/// A tag, and the text after it.
struct Tag<'d> {
    name: &'d [u8],
    attributes: &'d [u8],
    /// True for the end of an element: `</row>`.
    ends: bool,
    /// True for an element without contents: `<frame ref="1"/>`.
    empty: bool,
    text: &'d [u8],
}

impl<'d> Tag<'d> {
    fn next(rest: &mut &'d [u8]) -> Option<Self> {
        let begin = memchr::memchr(b'<', rest)? + 1;
        let end = begin + end_of_tag(&rest[begin..])?;
        let inner = &rest[begin..end];
        *rest = &rest[end + 1..];
        let text = &rest[..memchr::memchr(b'<', rest).unwrap_or(rest.len())];
        let (inner, ends) = inner.strip_prefix(b"/").map_or((inner, false), |inner| (inner, true));
        let (inner, empty) = inner.strip_suffix(b"/").map_or((inner, false), |inner| (inner, true));
        let name_end = inner.iter().position(u8::is_ascii_whitespace).unwrap_or(inner.len());
        Some(Self { name: &inner[..name_end], attributes: &inner[name_end..], ends, empty, text })
    }

    fn attribute(&self, name: &str) -> Option<Cow<'d, [u8]>> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_ascii_start();
            let equals = memchr::memchr(b'=', rest)?;
            let (key, behind) = (rest[..equals].trim_ascii(), rest[equals + 1..].trim_ascii_start());
            let (&quote, behind) = behind.split_first()?;
            let end = memchr::memchr(quote, behind)?;
            if key == name.as_bytes() {
                return Some(unescaped(&behind[..end]));
            }
            rest = &behind[end + 1..];
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        digits::number(&self.attribute(name)?)
    }
}

/// The end of a tag. Attributes may contain `>`, which doesn't count.
fn end_of_tag(rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    rest.iter().position(|&byte| {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            _ => {}
        }
        quote.is_none() && byte == b'>'
    })
}

fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'&') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'&', rest) {
        plain.extend(&rest[..at]);
        rest = &rest[at + 1..];
        let end = memchr::memchr(b';', rest).filter(|end| *end <= 8);
        match end.and_then(|end| Some((character(&rest[..end])?, end))) {
            Some((c, end)) => {
                plain.extend(c.encode_utf8(&mut [0; 4]).bytes());
                rest = &rest[end + 1..];
            }
            None => plain.push(b'&'),
        }
    }
    plain.extend(rest);
    Cow::Owned(plain)
}

fn character(entity: &[u8]) -> Option<char> {
    match entity {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x', digits @ ..] => char::from_u32(hex(digits)?.try_into().ok()?),
        [b'#', digits @ ..] => char::from_u32(digits::number(digits)?),
        _ => None,
    }
}

/// The elements defined so far, by `id`.
#[derive(Default)]
struct ById {
    frames: FxHashMap<u64, FrameId>,
    stacks: FxHashMap<u64, Option<StackId>>,
    threads: FxHashMap<u64, TrackId>,
    weights: FxHashMap<u64, u64>,
    times: FxHashMap<u64, u64>,
    binaries: FxHashMap<u64, Vec<u8>>,
}

/// The parts of the sample (`row`) that is being read.
#[derive(Default)]
struct RowParts<'d> {
    thread: Option<TrackId>,
    weight: Option<u64>,
    time: Option<u64>,
    /// The ID of the backtrace, and its frames, innermost first.
    frames: Option<(Option<u64>, Vec<FrameId>)>,
    /// The last frame, until its binary is known.
    frame: Option<Tag<'d>>,
    /// The ID of the `tagged-backtrace` around the backtrace.
    tagged: Option<u64>,
    /// The stack, once the backtrace was read; the inner `None` is the empty stack.
    stack: Option<Option<StackId>>,
    /// True if the row's backtrace can't be read, which has already been counted for a warning.
    is_skipped: bool,
}

struct XctraceReader<'d> {
    profile: Profile,
    named: NamedFrames,
    known: ById,
    row: Option<RowParts<'d>>,
    skipped: Skipped,
}

impl<'d> XctraceReader<'d> {
    fn tag(&mut self, tag: Tag<'d>, offset: usize) {
        match (tag.name, tag.ends) {
            (b"row", false) => self.row = Some(RowParts::default()),
            (b"row", true) => self.end_row(offset),
            (name, ends) => {
                let Some(mut row) = self.row.take() else { return };
                match (name, ends) {
                    (b"thread", false) => row.thread = self.thread(&tag),
                    (b"weight", false) => row.weight = of(&mut self.known.weights, &tag),
                    (b"sample-time" | b"start-time", false) => row.time = of(&mut self.known.times, &tag),
                    (b"backtrace" | b"tagged-backtrace", _) => self.backtrace(&tag, &mut row, offset),
                    (b"frame" | b"binary", _) => self.frame(tag, &mut row, offset),
                    _ => {}
                }
                self.row = Some(row);
            }
        }
    }

    fn end_row(&mut self, offset: usize) {
        let Some(row) = self.row.take() else { return };
        if row.is_skipped {
            return;
        }
        let Some(stack) = row.stack.or_else(|| row.weight.map(|_| None)) else {
            return self.skip(
                "has neither a backtrace nor a weight, so it is not from a time \
                              profile"
                    .to_owned(),
                offset,
            );
        };
        let stack = stack.or_else(|| Some(self.profile.unknown_stack()));
        let track = row.thread.unwrap_or_else(|| self.profile.track(Track::default()));
        let (name, unit) = if row.weight.is_some() { ("time", Unit::Nanos) } else { ("samples", Unit::Samples) };
        let series = self.profile.series_named(name, unit);
        let row = Row { track, stack, weight: row.weight.unwrap_or(1), count: 1, time: row.time.map(Nanos) };
        self.profile.push(series, row);
    }

    /// Parses a thread: `fmt="Main Thread 0x1a2b (node, pid: 77)"`.
    fn thread(&mut self, tag: &Tag<'_>) -> Option<TrackId> {
        if let Some(id) = tag.number("ref") {
            return self.known.threads.get(&id).copied();
        }
        let shown = tag.attribute("fmt").unwrap_or_default();
        let shown = String::from_utf8_lossy(&shown);
        let (name, process) = shown.rsplit_once(" (").unwrap_or((&shown, ""));
        let (process, pid) = process.trim_end_matches(')').rsplit_once(", pid: ").unwrap_or((process, ""));
        let name = name.rsplit_once(" 0x").map_or(name, |(name, _)| name);
        let comm = if name.is_empty() || name == "Main Thread" { process } else { name };
        let pid = pid.trim().parse().ok().map(Pid);
        let track = self.profile.track(Track { comm: comm.as_bytes().to_vec(), pid, ..Track::default() });
        self.known.threads.extend(tag.number("id").map(|id| (id, track)));
        Some(track)
    }

    /// Reads a `backtrace`, or the `tagged-backtrace` around one, which has an ID of its own.
    fn backtrace(&mut self, tag: &Tag<'_>, row: &mut RowParts<'_>, offset: usize) {
        let is_outer = tag.name == b"tagged-backtrace";
        match (tag.number("ref"), tag.ends) {
            (Some(id), _) => match self.known.stacks.get(&id) {
                Some(stack) => row.stack = Some(*stack),
                None => {
                    row.is_skipped = true;
                    self.skip(format!("refers to backtrace {id}, which was not defined"), offset);
                }
            },
            (None, false) if is_outer => row.tagged = tag.number("id"),
            (None, false) if !tag.empty => row.frames = Some((tag.number("id"), Vec::new())),
            (None, true) if is_outer => self.known.stacks.extend(row.tagged.take().zip(row.stack)),
            (None, true) => self.end_backtrace(row),
            (None, false) => {}
        }
    }

    fn end_backtrace(&mut self, row: &mut RowParts<'_>) {
        self.end_frame(row);
        let Some((id, frames)) = row.frames.take() else { return };
        let stack = frames.into_iter().rev().fold(None, |stack, frame| Some(self.profile.stack(stack, frame)));
        self.known.stacks.extend(id.map(|id| (id, stack)));
        row.stack = Some(stack);
    }

    fn frame(&mut self, tag: Tag<'d>, row: &mut RowParts<'d>, offset: usize) {
        if tag.name == b"binary" {
            let Some(open) = row.frame.take() else { return };
            let told = tag.attribute("path").or_else(|| tag.attribute("name")).map(Cow::into_owned);
            let binary = match tag.number("ref") {
                Some(id) => self.known.binaries.get(&id).cloned().unwrap_or_default(),
                None => told.unwrap_or_default(),
            };
            self.known.binaries.extend(tag.number("id").map(|id| (id, binary.clone())));
            return self.push(row, &open, &binary);
        }
        self.end_frame(row);
        if tag.ends {
            return;
        }
        if let Some(id) = tag.number("ref") {
            match (self.known.frames.get(&id), &mut row.frames) {
                (Some(frame), Some((_, frames))) => frames.push(*frame),
                _ => self.skip(format!("refers to frame {id}, which was not defined"), offset),
            }
            return;
        }
        let is_whole = tag.empty;
        row.frame = Some(tag);
        if is_whole {
            self.end_frame(row);
        }
    }

    /// Adds the last frame, if it has no binary.
    fn end_frame(&mut self, row: &mut RowParts<'_>) {
        if let Some(open) = row.frame.take() {
            self.push(row, &open, b"");
        }
    }

    fn push(&mut self, row: &mut RowParts<'_>, open: &Tag<'_>, module: &[u8]) {
        let function = open.attribute("name").unwrap_or_default();
        let addr = open.attribute("addr").and_then(|addr| hex(addr.strip_prefix(b"0x")?));
        let stated = StatedFrame { function: &function, module, addr, ..StatedFrame::default() };
        let frame = self.named.frame(&mut self.profile, stated);
        self.known.frames.extend(open.number("id").map(|id| (id, frame)));
        if let Some((_, frames)) = &mut row.frames {
            frames.push(frame);
        }
    }

    fn skip(&mut self, why: String, offset: usize) {
        self.skipped.add(Error::new(why).at(offset as u64));
    }
}

/// The number in an element's text; for a reference, the number of the element it refers to.
fn of(known: &mut FxHashMap<u64, u64>, tag: &Tag<'_>) -> Option<u64> {
    if let Some(id) = tag.number("ref") {
        return known.get(&id).copied();
    }
    let number = digits::number(tag.text.trim_ascii())?;
    known.extend(tag.number("id").map(|id| (id, number)));
    Some(number)
}
