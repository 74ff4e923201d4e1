//! Remembers the lines and stacks of a text, so that repeated ones needn't be parsed again.

use crate::model::stacks::{FrameId, StackId};
use crate::records::perf_script::hash_text;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Limit in bytes for the texts in a memo. A larger memo is emptied.
const MOST_BYTES: usize = 4 << 20;

/// Limit for the entries in a memo. A memo with more is emptied.
const MOST_ENTRIES: usize = 1 << 16;

/// Remembers the frames of each distinct line. Nearly every line of a text is looked up, so the texts are stored in one
/// buffer that stays in the CPU's cache.
#[derive(Debug, Default)]
pub(super) struct LineMemo {
    /// The lines by [`hash_text`]. If two lines have the same hash, only one is remembered.
    lines: FxHashMap<u64, KnownLine>,
    texts: Vec<u8>,
    /// The frames of all lines that have several (a Java symbol can list inlined calls), leaf first.
    joined: Vec<FrameId>,
}

#[derive(Debug)]
struct KnownLine {
    /// Offset of the line's text in [`LineMemo::texts`].
    start: u32,
    len: u32,
    frames: LineFrames,
}

/// The frames of a line, leaf first.
#[derive(Debug, Clone, Copy)]
pub(super) enum LineFrames {
    One(FrameId),
    /// A range of [`LineMemo::joined`].
    Several {
        start: u32,
        len: u32,
    },
}

impl LineMemo {
    /// Empties the memo if it is too large. This invalidates earlier [`LineFrames`].
    pub(super) fn make_room(&mut self) {
        if self.texts.len() > MOST_BYTES || self.lines.len().max(self.joined.len()) > MOST_ENTRIES {
            *self = Self::default();
        }
    }

    pub(super) fn get(&self, line: &[u8]) -> Option<LineFrames> {
        let KnownLine { start, len, frames } = self.lines.get(&hash_text(line))?;
        (self.texts[*start as usize..][..*len as usize] == *line).then_some(*frames)
    }

    /// Remembers the frames of a line. Returns `None` and remembers nothing if there are no frames.
    pub(super) fn add(&mut self, line: &[u8], frames: &[FrameId]) -> Option<LineFrames> {
        let line_frames = match *frames {
            [] => return None,
            [one] => LineFrames::One(one),
            _ => {
                let (start, len) = (u32::try_from(self.joined.len()).ok()?, u32::try_from(frames.len()).ok()?);
                self.joined.extend_from_slice(frames);
                LineFrames::Several { start, len }
            }
        };
        if let (Ok(start), Ok(len)) = (u32::try_from(self.texts.len()), u32::try_from(line.len())) {
            self.lines.insert(hash_text(line), KnownLine { start, len, frames: line_frames });
            self.texts.extend_from_slice(line);
        }
        Some(line_frames)
    }

    pub(super) fn frames<'a>(&'a self, line_frames: &'a LineFrames) -> &'a [FrameId] {
        match line_frames {
            LineFrames::One(frame) => std::slice::from_ref(frame),
            LineFrames::Several { start, len } => &self.joined[*start as usize..][..*len as usize],
        }
    }
}

/// Remembers stacks by their text. A text is kept from its second occurrence on, so distinct stacks need little memory.
#[derive(Debug, Default)]
pub(super) struct StackMemo {
    seen: FxHashMap<u64, SeenStack>,
    texts: Vec<u8>,
}

#[derive(Debug)]
struct SeenStack {
    /// Range of the stack's text in [`StackMemo::texts`]; empty if the stack occurred only once.
    text: Range<usize>,
    stack: Option<StackId>,
}

impl StackMemo {
    /// The stack that a text was read into; `Some(None)` is an empty stack. `None` if the text isn't remembered. `key`
    /// is the text's hash.
    pub(super) fn get(&self, key: u64, text: &[u8]) -> Option<Option<StackId>> {
        let seen = self.seen.get(&key)?;
        (self.texts[seen.text.clone()] == *text && !text.is_empty()).then_some(seen.stack)
    }

    /// Remembers the stack of a text. `key` is the text's hash.
    pub(super) fn add(&mut self, key: u64, text: &[u8], stack: Option<StackId>) {
        if self.texts.len() > MOST_BYTES || self.seen.len() > MOST_ENTRIES {
            self.texts.clear();
            self.seen.clear();
        }
        let Some(seen) = self.seen.get_mut(&key) else {
            self.seen.insert(key, SeenStack { text: 0..0, stack });
            return;
        };
        // If two texts have the same hash, only the first one that is kept is remembered.
        if seen.text.is_empty() {
            let start = self.texts.len();
            self.texts.extend_from_slice(text);
            *seen = SeenStack { text: start..self.texts.len(), stack };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_known_when_it_came_twice() {
        let mut memo = StackMemo::default();
        let stack = Some(StackId(7));
        assert_eq!(memo.get(1, b"a"), None);
        memo.add(1, b"a", stack);
        assert_eq!(memo.get(1, b"a"), None);
        memo.add(1, b"a", stack);
        assert_eq!(memo.get(1, b"a"), Some(stack));
        // A different text with the same hash.
        assert_eq!(memo.get(1, b"b"), None);
        memo.add(1, b"b", None);
        assert_eq!((memo.get(1, b"a"), memo.get(1, b"b")), (Some(stack), None));
    }

    #[test]
    fn its_memory_is_bounded() {
        let (mut memo, long) = (StackMemo::default(), vec![b'x'; 1 << 20]);
        (0..40).for_each(|key| memo.add(key / 2, &long, None));
        assert!(memo.texts.len() <= MOST_BYTES + long.len());
        (0..2 * MOST_ENTRIES as u64).for_each(|key| memo.add(key, b"x", None));
        assert!(memo.seen.len() <= MOST_ENTRIES + 1);
    }
}
