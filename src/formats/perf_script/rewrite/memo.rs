//! Remembers the new text of samples by their text, and of frames by their address. Most frames of a stack also occur
//! in earlier stacks.

use super::{Counts, FrameName, Style};
use crate::formats::perf_script::sample_memo::SampleMemo;
use crate::model::interner::Interner;
use crate::model::lasting::{Lasting, LastingCache, UNTIMED};
use crate::model::{FrameAddr, Nanos, Pid, Tid};
use std::ops::Range;

/// The new texts of frames that were named before. A memo holds the answers of one namer in one [`Style`], and must not
/// be used with others.
#[derive(Debug, Default)]
pub struct Memo {
    frames: LastingCache<FrameKey, RememberedFrame>,
    /// The texts of all frames, one after the other.
    texts: Vec<u8>,
    /// The number of each file, for [`Object::File`].
    files: Interner<Box<[u8]>, u32>,
    /// The new frames of samples, for later samples with the same text. Not used after the first record line of a text.
    pub(super) samples: SampleMemo<RewrittenFrames>,
}

/// What became of the frames of a sample.
#[derive(Debug, Clone)]
pub(super) struct RewrittenFrames {
    /// The process and thread in the sample's header. The result is only valid for samples of the same thread.
    pub(super) owner: (Option<Pid>, Option<Tid>),
    /// The range of times in which the result is valid.
    pub(super) holds: Range<Nanos>,
    /// True if the frames have a new text; false if they stay as they are.
    pub(super) has_new_text: bool,
    /// True if there is a frame on a line of its own.
    pub(super) has_frame: bool,
    /// What was counted in the frames.
    pub(super) counts: Counts,
}

/// Identifies a frame by its process, its address, and what the address refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    pub(super) pid: Pid,
    pub(super) addr: FrameAddr,
    pub(super) object: Object,
}

/// What a frame's address refers to, and whether the frame's new text includes the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Object {
    /// JIT code, in a text that doesn't show objects.
    NotShown,
    /// JIT code, in a text that shows objects.
    Jit,
    /// A file, by its number in the memo. The address is an offset in the file, the same in every process.
    File(u32),
}

/// What is remembered about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownFrame<'a> {
    /// The name of the frame is known.
    Named {
        /// The text to print after the frame's address.
        text: &'a [u8],
        /// True if several functions were at this address at different times, and the sample has no time to choose one
        /// by.
        is_one_of_several: bool,
    },
    /// The namer has no name for the frame.
    Unknown,
}

/// The state in which a name is looked up: the time of the sample, and which jitdumps were mapped by then.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupState {
    /// The time of the sample; `None` if the text shows no times.
    pub(super) time: Option<Nanos>,
    /// Number of jitdumps that the process has mapped so far. A name that is unknown now may be in a jitdump that it
    /// maps later.
    pub(super) markers: usize,
}

/// What is remembered about a frame: its new text, or that it has no name.
#[derive(Debug, Clone)]
struct RememberedFrame {
    /// Range of the text in [`Memo::texts`]. `None` if the frame has no name, which is only valid while the process has
    /// exactly `markers` jitdumps mapped: another one may name the frame.
    text: Option<Range<usize>>,
    is_one_of_several: bool,
    markers: usize,
}

/// Limit in bytes for the texts in the memo. A larger memo is emptied.
const MAX_TEXT: usize = 4 << 20;

/// Limit for the frames in the memo, for texts in which addresses hardly ever repeat. A memo with more is emptied.
const MAX_FRAMES: usize = 1 << 16;

impl Memo {
    /// What is remembered about a frame, as far as it is valid at the sample's time; otherwise `None`. The fact that a
    /// frame has no name is only valid until the process maps another jitdump.
    pub(super) fn get(&self, key: &FrameKey, when: LookupState) -> Option<Lasting<KnownFrame<'_>>> {
        // Texts without times are looked up at the time `UNTIMED`. The namer's answers to queries without a time are
        // valid at that time.
        let Lasting { answer: frame, holds } = self.frames.get(key, when.time.unwrap_or(UNTIMED))?;
        let answer = match frame.text.clone() {
            Some(text) => {
                let is_one_of_several = frame.is_one_of_several;
                KnownFrame::Named { text: &self.texts[text], is_one_of_several }
            }
            None if frame.markers == when.markers => KnownFrame::Unknown,
            // The process has mapped more jitdumps since, so the frame may have a name now.
            None => return None,
        };
        Some(Lasting { answer, holds: holds.clone() })
    }

    /// The [`Object`] that stands for a file. A file that wasn't seen before gets the next number.
    pub(super) fn file(&mut self, path: &[u8]) -> Object {
        Object::File(self.files.number(path))
    }

    /// Formats and remembers a named frame: ` name+0xoffset (object)`, plus its source line if requested. Returns the
    /// text. The name is valid for samples whose time is in `holds`.
    pub(super) fn add(&mut self, key: FrameKey, named: &FrameName<'_>, holds: Range<Nanos>, style: Style) -> &[u8] {
        self.make_room();
        let shows_object = key.object != Object::NotShown;
        let (start, out) = (self.texts.len(), &mut self.texts);
        out.push(b' ');
        put_printable(out, &named.name);
        if !style.no_offsets {
            out.extend_from_slice(format!("+{:#x}", named.offset).as_bytes());
        }
        if shows_object {
            out.extend_from_slice(b" (");
            put_printable(out, &named.dso);
            out.push(b')');
        }
        if style.srcline
            && let Some((file, line)) = &named.source
        {
            out.extend_from_slice(b"\n  ");
            put_printable(out, file);
            out.extend_from_slice(format!(":{line}").as_bytes());
        }
        let text = start..out.len();
        let is_one_of_several = named.is_one_of_several;
        // Only the fact that a frame has no name depends on the jitdumps mapped so far, so `markers` doesn't matter
        // here.
        let frame = RememberedFrame { text: Some(text.clone()), is_one_of_several, markers: 0 };
        self.frames.insert(key, Lasting { answer: frame, holds });
        &self.texts[text]
    }

    /// Remembers that a frame has no name. This is valid for samples whose time is in `holds`, as long as the process
    /// has `markers` jitdumps mapped.
    pub(super) fn add_unknown(&mut self, key: FrameKey, holds: Range<Nanos>, markers: usize) {
        self.make_room();
        let frame = RememberedFrame { text: None, is_one_of_several: false, markers };
        self.frames.insert(key, Lasting { answer: frame, holds });
    }

    /// Empties the memo if it has grown beyond `MAX_TEXT` or `MAX_FRAMES`.
    fn make_room(&mut self) {
        if self.texts.len() > MAX_TEXT || self.frames.len() >= MAX_FRAMES {
            self.texts.clear();
            self.frames.drain().for_each(drop);
        }
    }
}

/// Appends a name. Control characters, which could end the line, become blanks.
fn put_printable(out: &mut Vec<u8>, name: &[u8]) {
    out.extend(name.iter().map(|&byte| if byte < b' ' { b' ' } else { byte }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Addr;
    use std::borrow::Cow;

    fn key(addr: u64, object: Object) -> FrameKey {
        FrameKey { pid: Pid(1), addr: FrameAddr::Ip(Addr(addr)), object }
    }

    fn named(name: &'static str) -> FrameName<'static> {
        let source = Some((Cow::Borrowed(&b"a.js"[..]), 7));
        let (name, dso) = (Cow::Borrowed(name.as_bytes()), Cow::Borrowed(&b"d"[..]));
        FrameName { name, offset: 0xabc, dso, source, is_one_of_several: false }
    }

    #[test]
    fn names_are_written_like_perf() {
        let text = |object, style| {
            let text = Memo::default().add(key(5, object), &named("f\n(x)"), Nanos(0)..Nanos(9), style).to_vec();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(text(Object::Jit, Style::default()), " f (x)+0xabc (d)");
        assert_eq!(text(Object::NotShown, Style { srcline: true, ..Style::default() }), " f (x)+0xabc\n  a.js:7");
        assert_eq!(text(Object::Jit, Style { no_offsets: true, ..Style::default() }), " f (x) (d)");
    }

    #[test]
    fn an_answer_for_other_times_is_not_given() {
        let (mut memo, key) = (Memo::default(), key(5, Object::NotShown));
        memo.add(key, &named("f"), Nanos(3)..Nanos(9), Style::default());
        let mut is_named = |time: Option<u64>| {
            let known = memo.get(&key, LookupState { time: time.map(Nanos), markers: 0 });
            known.map(|known| known.answer) == Some(KnownFrame::Named { text: b" f+0xabc", is_one_of_several: false })
        };
        assert_eq!([Some(3), None, Some(2), Some(9)].map(&mut is_named), [true, false, false, false]);
    }

    #[test]
    fn an_unknown_address_is_queried_again_when_a_dump_was_mapped() {
        let (mut memo, key) = (Memo::default(), key(5, Object::Jit));
        memo.add_unknown(key, Nanos(3)..Nanos(9), 1);
        let with = |markers| LookupState { time: Some(Nanos(4)), markers };
        assert_eq!(memo.get(&key, with(1)).map(|known| known.answer), Some(KnownFrame::Unknown));
        assert!(memo.get(&key, with(2)).is_none());
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut memo = Memo::default();
        let long: &'static str = Box::leak("x".repeat(1 << 20).into_boxed_str());
        for at in 0..20 {
            memo.add(key(at, Object::Jit), &named(long), Nanos(0)..Nanos(1), Style::default());
        }
        assert!(memo.texts.capacity() < 4 * MAX_TEXT && memo.frames.len() < 8);
        for at in 0..2 * MAX_FRAMES as u64 {
            memo.add_unknown(key(at, Object::Jit), Nanos(0)..Nanos(1), 0);
        }
        assert!(memo.frames.len() <= MAX_FRAMES);
    }
}
