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

/// True if an input is the XML output of `xctrace export`.
pub fn sniff(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    text.starts_with(b"<") && memchr::memmem::find(head, b"<trace-query-result").is_some()
}

/// Reads all rows. Rows without a backtrace get an unknown stack.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut profile = Profile::empty(options.keep);
    profile.about.os = Some(b"Darwin".to_vec());
    let mut reader = XctraceReader {
        profile,
        named: NamedFrames::default(),
        defined: ById::default(),
        row: None,
        skipped: Skipped::new("row"),
    };
    let mut rest = bytes;
    while let Some(tag) = Tag::next(&mut rest) {
        reader.read_tag(tag, bytes.len() - rest.len());
    }
    warnings.extend(reader.skipped.into_warning());
    Ok(reader.profile)
}

/// A tag, and the text after it.
struct Tag<'d> {
    name: &'d [u8],
    /// What follows the name inside the tag.
    attributes: &'d [u8],
    /// True for the end of an element: `</row>`.
    is_end: bool,
    /// True for an element without contents: `<frame ref="1"/>`.
    is_empty: bool,
    text: &'d [u8],
}

impl<'d> Tag<'d> {
    /// Finds the next tag and moves `rest` to what follows it. `None` if there are no more complete tags.
    fn next(rest: &mut &'d [u8]) -> Option<Self> {
        let begin = memchr::memchr(b'<', rest)? + 1;
        let end = begin + end_of_tag(&rest[begin..])?;
        let mut inner = &rest[begin..end];
        *rest = &rest[end + 1..];
        let text = &rest[..memchr::memchr(b'<', rest).unwrap_or(rest.len())];
        let is_end = inner.starts_with(b"/");
        if is_end {
            inner = &inner[1..];
        }
        let is_empty = inner.ends_with(b"/");
        if is_empty {
            inner = &inner[..inner.len() - 1];
        }
        let name_end = inner.iter().position(u8::is_ascii_whitespace).unwrap_or(inner.len());
        Some(Self { name: &inner[..name_end], attributes: &inner[name_end..], is_end, is_empty, text })
    }

    /// The value of an attribute, with entities replaced; `None` if the tag doesn't have the attribute.
    fn attribute(&self, name: &str) -> Option<Cow<'d, [u8]>> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_ascii_start();
            let equals = memchr::memchr(b'=', rest)?;
            let (key, quoted) = (rest[..equals].trim_ascii(), rest[equals + 1..].trim_ascii_start());
            // The value ends at the same quote with which it begins.
            let (&quote, value_and_rest) = quoted.split_first()?;
            let end = memchr::memchr(quote, value_and_rest)?;
            if key == name.as_bytes() {
                return Some(unescape(&value_and_rest[..end]));
            }
            rest = &value_and_rest[end + 1..];
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        digits::number(&self.attribute(name)?)
    }
}

/// The index of the `>` that ends a tag; `None` if the tag is cut off. A `>` in an attribute's value doesn't end it.
fn end_of_tag(rest: &[u8]) -> Option<usize> {
    // The quote that began the current attribute's value.
    let mut open_quote = None;
    for (index, &byte) in rest.iter().enumerate() {
        if open_quote == Some(byte) {
            open_quote = None;
        } else if open_quote.is_none() {
            match byte {
                b'>' => return Some(index),
                b'"' | b'\'' => open_quote = Some(byte),
                _ => {}
            }
        }
    }
    None
}

/// Replaces the entities in an attribute. Unknown ones stay as they are.
fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'&') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'&', rest) {
        plain.extend(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(end) = memchr::memchr(b';', rest)
            && end <= LONGEST_ENTITY
            && let Some(character) = entity_character(&rest[..end])
        {
            plain.extend(character.encode_utf8(&mut [0; 4]).bytes());
            rest = &rest[end + 1..];
        } else {
            plain.push(b'&');
        }
    }
    plain.extend(rest);
    Cow::Owned(plain)
}

/// The maximum length of an entity without its `&` and `;`, in bytes. Longer texts are not taken for entities.
const LONGEST_ENTITY: usize = 8;

/// The character that an XML entity stands for, given the text between `&` and `;`. `None` if it is unknown.
fn entity_character(entity: &[u8]) -> Option<char> {
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

/// The elements defined so far, by their `id`. Later elements refer to them by `ref`.
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
    /// The backtrace that is being read.
    backtrace: Option<OpenBacktrace>,
    /// The last frame, until its binary is known.
    open_frame: Option<Tag<'d>>,
    /// The ID of the `tagged-backtrace` element around the backtrace, if there is one.
    tagged_id: Option<u64>,
    /// The stack of the row, once its backtrace was read. If the backtrace has no frames, this is `Some(None)`.
    stack: Option<Option<StackId>>,
    /// True if the row refers to a backtrace that wasn't defined. The row has then been counted as skipped.
    is_skipped: bool,
}

/// A `backtrace` that hasn't ended yet.
struct OpenBacktrace {
    id: Option<u64>,
    /// The frames read so far, innermost first.
    frames: Vec<FrameId>,
}

struct XctraceReader<'d> {
    profile: Profile,
    named: NamedFrames,
    defined: ById,
    row: Option<RowParts<'d>>,
    skipped: Skipped,
}

impl<'d> XctraceReader<'d> {
    /// Reads a tag: the start or the end of a row, or of an element in it. Elements outside of rows are ignored.
    /// `offset` is where the tag ends in the file.
    fn read_tag(&mut self, tag: Tag<'d>, offset: usize) {
        match (tag.name, tag.is_end) {
            (b"row", false) => self.row = Some(RowParts::default()),
            (b"row", true) => self.end_row(offset),
            _ => {
                // `read_part` changes both the row and the reader, so the row is taken out of the reader meanwhile.
                let Some(mut row) = self.row.take() else { return };
                self.read_part(tag, &mut row, offset);
                self.row = Some(row);
            }
        }
    }

    /// Reads a tag inside a row.
    fn read_part(&mut self, tag: Tag<'d>, row: &mut RowParts<'d>, offset: usize) {
        match (tag.name, tag.is_end) {
            (b"thread", false) => row.thread = self.read_thread(&tag),
            (b"weight", false) => row.weight = read_number(&mut self.defined.weights, &tag),
            (b"sample-time" | b"start-time", false) => row.time = read_number(&mut self.defined.times, &tag),
            // Of these elements, the end tag (`is_end`) matters, too.
            (b"backtrace" | b"tagged-backtrace", _) => self.read_backtrace(&tag, row, offset),
            (b"binary", _) => self.read_binary(&tag, row),
            (b"frame", _) => self.read_frame(tag, row, offset),
            _ => {}
        }
    }

    /// Ends a row of the table, and adds it to the profile as a sample. If the row has no thread or no known stack, an
    /// unnamed thread or the unknown stack takes its place. A row without a weight counts as one sample.
    fn end_row(&mut self, offset: usize) {
        let Some(parts) = self.row.take() else { return };
        // The row refers to a backtrace that wasn't defined, and was counted as skipped for that.
        if parts.is_skipped {
            return;
        }
        // `parts.stack` is `None` if the row has no backtrace, and `Some(None)` if its backtrace has no frames.
        if parts.stack.is_none() && parts.weight.is_none() {
            return self.skip(
                "the row has neither a backtrace nor a weight, so it is not from a time profile".to_owned(),
                offset,
            );
        }
        let stack = parts.stack.flatten().or_else(|| Some(self.profile.unknown_stack()));
        let track = parts.thread.unwrap_or_else(|| self.profile.track(Track::default()));
        let (name, unit) = if parts.weight.is_some() { ("time", Unit::Nanos) } else { ("samples", Unit::Samples) };
        let series = self.profile.series_named(name, unit);
        let row = Row { track, stack, weight: parts.weight.unwrap_or(1), count: 1, time: parts.time.map(Nanos) };
        self.profile.push(series, row);
    }

    /// Reads a `thread` element, such as one with `fmt="Main Thread 0x1a2b (node, pid: 77)"`. `None` if it refers to a
    /// thread that wasn't defined.
    fn read_thread(&mut self, tag: &Tag<'_>) -> Option<TrackId> {
        if let Some(id) = tag.number("ref") {
            return self.defined.threads.get(&id).copied();
        }
        let text = tag.attribute("fmt").unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let (name, process) = text.rsplit_once(" (").unwrap_or((&text, ""));
        let (process, pid) = process.trim_end_matches(')').rsplit_once(", pid: ").unwrap_or((process, ""));
        // The number after ` 0x` is the thread's ID, which isn't part of the name.
        let name = name.rsplit_once(" 0x").map_or(name, |(name, _)| name);
        // Every process has a main thread, so the name of the process says more.
        let comm = if name.is_empty() || name == "Main Thread" { process } else { name };
        let pid = pid.trim().parse().ok().map(Pid);
        let track = self.profile.track(Track { comm: comm.as_bytes().to_vec(), pid, ..Track::default() });
        if let Some(id) = tag.number("id") {
            self.defined.threads.insert(id, track);
        }
        Some(track)
    }

    /// Reads a `backtrace`, or the `tagged-backtrace` around one, which has an ID of its own.
    fn read_backtrace(&mut self, tag: &Tag<'_>, row: &mut RowParts<'_>, offset: usize) {
        if let Some(id) = tag.number("ref") {
            match self.defined.stacks.get(&id) {
                Some(stack) => row.stack = Some(*stack),
                None => {
                    row.is_skipped = true;
                    self.skip(format!("the row refers to backtrace {id}, which was not defined"), offset);
                }
            }
            return;
        }
        // Four cases: the end and the start of the outer element, then the end and the start of the `backtrace`. An
        // empty `<backtrace/>` makes no stack.
        let is_tagged = tag.name == b"tagged-backtrace";
        if is_tagged && tag.is_end {
            // Other rows may refer to the backtrace by the ID of the `tagged-backtrace` around it, too.
            if let Some(id) = row.tagged_id.take()
                && let Some(stack) = row.stack
            {
                self.defined.stacks.insert(id, stack);
            }
        } else if is_tagged {
            row.tagged_id = tag.number("id");
        } else if tag.is_end {
            self.end_backtrace(row);
        } else if !tag.is_empty {
            row.backtrace = Some(OpenBacktrace { id: tag.number("id"), frames: Vec::new() });
        }
    }

    /// Ends a backtrace: makes it the stack of the row, and remembers it for rows that refer to its ID.
    fn end_backtrace(&mut self, row: &mut RowParts<'_>) {
        // The last frame is still open if it has no binary.
        self.end_frame(row);
        let Some(OpenBacktrace { id, frames }) = row.backtrace.take() else { return };
        let mut stack = None;
        for frame in frames.into_iter().rev() {
            stack = Some(self.profile.stack(stack, frame));
        }
        if let Some(id) = id {
            self.defined.stacks.insert(id, stack);
        }
        row.stack = Some(stack);
    }

    /// Reads the binary (the module) of the open frame, and thereby completes the frame.
    fn read_binary(&mut self, tag: &Tag<'_>, row: &mut RowParts<'_>) {
        let Some(frame) = row.open_frame.take() else { return };
        let binary = match tag.number("ref") {
            // If the binary wasn't defined, the frame just has no module.
            Some(id) => self.defined.binaries.get(&id).cloned().unwrap_or_default(),
            None => {
                let path = tag.attribute("path").or_else(|| tag.attribute("name"));
                path.unwrap_or_default().into_owned()
            }
        };
        self.push_frame(row, &frame, &binary);
        if let Some(id) = tag.number("id") {
            self.defined.binaries.insert(id, binary);
        }
    }

    /// Reads the start or the end of a `frame` element. Both complete the frame that was open before. A start refers to
    /// an earlier frame or begins a new one, which stays open until its binary was read.
    fn read_frame(&mut self, tag: Tag<'d>, row: &mut RowParts<'d>, offset: usize) {
        self.end_frame(row);
        if tag.is_end {
            return;
        }
        if let Some(id) = tag.number("ref") {
            match (self.defined.frames.get(&id), &mut row.backtrace) {
                (Some(frame), Some(backtrace)) => backtrace.frames.push(*frame),
                _ => self.skip(format!("the row refers to frame {id}, which was not defined"), offset),
            }
            return;
        }
        let has_no_binary = tag.is_empty;
        row.open_frame = Some(tag);
        if has_no_binary {
            self.end_frame(row);
        }
    }

    /// Adds the frame that is still open, without a module: it has no binary, as [`Self::read_binary`] would have
    /// completed it.
    fn end_frame(&mut self, row: &mut RowParts<'_>) {
        if let Some(frame) = row.open_frame.take() {
            self.push_frame(row, &frame, b"");
        }
    }

    /// Adds a frame to the open backtrace, and to the defined frames if it has an ID.
    fn push_frame(&mut self, row: &mut RowParts<'_>, tag: &Tag<'_>, module: &[u8]) {
        let function = tag.attribute("name").unwrap_or_default();
        let addr = tag.attribute("addr").and_then(|addr| hex(addr.strip_prefix(b"0x")?));
        let stated = StatedFrame { function: &function, module, addr, ..StatedFrame::default() };
        let frame = self.named.frame(&mut self.profile, stated);
        if let Some(id) = tag.number("id") {
            self.defined.frames.insert(id, frame);
        }
        if let Some(backtrace) = &mut row.backtrace {
            backtrace.frames.push(frame);
        }
    }

    fn skip(&mut self, why: String, offset: usize) {
        self.skipped.add(Error::new(why).at_offset(offset as u64));
    }
}

/// The number in an element's text; for a reference, the number in the element that has this ID. `defined` has the
/// numbers read so far by ID, and gets the new one.
fn read_number(defined: &mut FxHashMap<u64, u64>, tag: &Tag<'_>) -> Option<u64> {
    if let Some(id) = tag.number("ref") {
        return defined.get(&id).copied();
    }
    let number = digits::number(tag.text.trim_ascii())?;
    if let Some(id) = tag.number("id") {
        defined.insert(id, number);
    }
    Some(number)
}
