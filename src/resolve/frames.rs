//! The results for addresses: functions and lines, immutable, names stored once.

use crate::model::interner::id;
use crate::model::texts::Texts;

id! {
    /// A name or path in a [`Frames`].
    TextId
}

/// One function at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The function; `None` if unknown.
    pub name: Option<TextId>,
    /// The offset of the address in the function, where its start is known; inlined calls have none.
    pub offset: Option<u64>,
    /// The source file.
    pub file: Option<TextId>,
    /// The line in it, counted from 1; 0 if unknown.
    pub line: u32,
    /// True if the compiler expanded the call into the function that follows.
    pub inlined: bool,
}

/// The functions of many addresses.
#[derive(Debug, Default)]
pub struct Frames {
    texts: Texts<TextId>,
    frames: Vec<Frame>,
    /// One for each address asked for: its part of `frames`.
    spans: Vec<(u32, u32)>,
}

impl Frames {
    /// Room for the answers of `count` addresses, none of them known yet.
    pub(super) fn with_addresses(count: usize) -> Self {
        Self { spans: vec![(0, 0); count], ..Self::default() }
    }

    /// The functions at the `index`th address asked for: innermost first, the last one not inlined. Empty if
    /// nothing is known of it.
    pub fn of(&self, index: usize) -> &[Frame] {
        self.spans.get(index).map_or(&[], |&(start, end)| &self.frames[start as usize..end as usize])
    }

    /// The bytes of a name or path.
    pub fn text(&self, id: TextId) -> &[u8] {
        self.texts.get(id)
    }

    /// The number of addresses that were requested.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if none was.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        self.texts.intern(text)
    }

    /// Adds a function at the address whose frames are being written; [`Self::end`] ends them.
    pub(super) fn push(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    /// Ends the frames of the next address, in the order of a part's own addresses.
    pub(super) fn end(&mut self) {
        let start = self.spans.last().map_or(0, |&(_, end)| end);
        self.spans.push((start, self.frames.len() as u32));
    }

    /// Answers for an address: its functions, innermost first.
    pub(super) fn set(&mut self, place: usize, frames: impl IntoIterator<Item = Frame>) {
        let start = self.frames.len() as u32;
        self.frames.extend(frames);
        self.spans[place] = (start, self.frames.len() as u32);
    }

    /// Takes over the answers of a part; its `n`th address is number `places[n]` here.
    pub(super) fn absorb(&mut self, part: &Self, places: impl Iterator<Item = usize>) {
        let texts: Vec<TextId> = part.texts.list().iter().map(|text| self.texts.intern(text)).collect();
        let text = |id: TextId| texts[id.0 as usize];
        let base = self.frames.len() as u32;
        let moved = part.frames.iter();
        self.frames.extend(moved.map(|frame| Frame {
            name: frame.name.map(text),
            file: frame.file.map(text),
            ..*frame
        }));
        for (&(start, end), place) in part.spans.iter().zip(places) {
            self.spans[place] = (base + start, base + end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_put_in_their_places() {
        let mut part = Frames::default();
        let name = part.intern(b"f");
        part.push(Frame { name: Some(name), offset: Some(1), file: None, line: 0, inlined: false });
        part.end();
        part.end();
        let mut all = Frames::with_addresses(3);
        all.intern(b"other");
        all.absorb(&part, [2, 0].into_iter());
        assert_eq!(all.of(2)[0].name.map(|id| all.text(id)), Some(&b"f"[..]));
        assert!(all.of(0).is_empty() && all.of(1).is_empty() && all.of(9).is_empty());
    }
}
