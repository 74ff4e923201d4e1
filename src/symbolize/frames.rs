//! Stores the frames that were found for a list of addresses. Each name, path and chain of inlined calls is stored only
//! once.

use crate::model::interner::id;
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;

id! {
    /// The ID of a name or path in a [`Frames`].
    TextId
}

/// One function that was active at an address. If calls were inlined there, the address has several frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressFrame {
    /// The function's name; `None` if unknown.
    pub name: Option<TextId>,
    /// How far the address is after the start of the function, in bytes. `None` if the start is unknown, and for
    /// inlined calls.
    pub offset: Option<u64>,
    /// The source file; `None` if unknown or not requested.
    pub file: Option<TextId>,
    /// The line in `file`, counted from 1; 0 if unknown.
    pub line: u32,
    /// True if this is an inlined call. The compiler inlined it into the function of the next frame.
    pub inlined: bool,
}

/// The frames of a list of addresses. Each address has a number: its index in the list.
#[derive(Debug, Default)]
pub struct Frames {
    texts: Texts<TextId>,
    /// All inlined calls of all addresses, stored as trees: addresses inside the same calls share entries.
    inlined: Vec<InlinedFrame>,
    /// For each inlined call, its index in `inlined`, so that equal calls share one entry.
    numbers: FxHashMap<InlinedFrame, u32>,
    /// One entry per requested address, in the order of the request.
    answers: Vec<Answer>,
    /// The frames of the address that is being added, innermost first; see [`Self::push`].
    current: Vec<AddressFrame>,
}

/// An inlined call, with a link to the inlined call around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct InlinedFrame {
    frame: AddressFrame,
    /// The index of the inlined call around this one. `None` if this call is directly in the compiled function.
    caller: Option<u32>,
}

/// The frames of one address, as stored in [`Frames`].
#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    /// The index of the innermost inlined call; `None` if there is none.
    inlined: Option<u32>,
    /// The compiled function that contains the address; `None` if unknown.
    outermost: Option<AddressFrame>,
}

/// Iterates over the frames of one address, innermost first. Only the last one is not an inlined call.
#[derive(Debug, Clone, Default)]
pub struct FramesAt<'a> {
    inlined: &'a [InlinedFrame],
    next: Answer,
}

impl Iterator for FramesAt<'_> {
    type Item = AddressFrame;

    fn next(&mut self) -> Option<AddressFrame> {
        let Some(innermost) = self.next.inlined else { return self.next.outermost.take() };
        let InlinedFrame { frame, caller } = self.inlined[innermost as usize];
        self.next.inlined = caller;
        Some(frame)
    }
}

impl FramesAt<'_> {
    /// The compiled function that contains the address. It is the last frame, and the only one that isn't an inlined
    /// call.
    pub fn outermost(&self) -> Option<AddressFrame> {
        self.next.outermost
    }
}

impl Frames {
    /// Creates a table for `count` addresses, all of which have no frames yet.
    pub(super) fn with_addresses(count: usize) -> Self {
        Self { answers: vec![Answer::default(); count], ..Self::default() }
    }

    /// The frames of the address at `index` in the request. Empty if nothing is known about the address.
    pub fn get(&self, index: usize) -> FramesAt<'_> {
        FramesAt { inlined: &self.inlined, next: self.answers.get(index).copied().unwrap_or_default() }
    }

    /// True if the address at `index` in the request has no frames.
    pub fn is_unknown(&self, index: usize) -> bool {
        self.get(index).next().is_none()
    }

    /// The bytes of the name or path with this ID.
    pub fn text(&self, id: TextId) -> &[u8] {
        self.texts.get(id)
    }

    /// The number of requested addresses.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True if no address was requested.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        self.texts.intern(text)
    }

    /// Adds a frame to the current address. Push the innermost frame first, and call [`Self::end`] after the last one.
    pub(super) fn push(&mut self, frame: AddressFrame) {
        self.current.push(frame);
    }

    /// Completes the current address. Frames that are pushed from now on belong to the next one.
    pub(super) fn end(&mut self) {
        // The vector is taken out and put back, so that its memory is used again for the next address.
        let frames = std::mem::take(&mut self.current);
        let answer = self.store(&frames);
        self.answers.push(answer);
        self.current = frames;
        self.current.clear();
    }

    /// Sets the frames of the address at `index` in the request; the innermost frame comes first.
    pub(super) fn set(&mut self, index: usize, frames: &[AddressFrame]) {
        self.answers[index] = self.store(frames);
    }

    /// Stores the frames of one address. `frames` starts with the innermost. Inlined frames are stored as a linked list
    /// in which each leads to its caller. They are added from the outermost on, so that addresses inside the same
    /// inlined calls share the end of the list.
    fn store(&mut self, frames: &[AddressFrame]) -> Answer {
        let mut answer = Answer::default();
        for &frame in frames.iter().rev() {
            if frame.inlined {
                answer.inlined = Some(self.intern_inlined(InlinedFrame { frame, caller: answer.inlined }));
            } else {
                answer.outermost = Some(frame);
            }
        }
        answer
    }

    fn intern_inlined(&mut self, frame: InlinedFrame) -> u32 {
        let next = self.inlined.len() as u32;
        let number = *self.numbers.entry(frame).or_insert(next);
        if number == next {
            self.inlined.push(frame);
        }
        number
    }

    /// Copies the frames of all addresses in `part` into this table, in which their texts and inlined calls get other
    /// numbers. `indices` gives, for each address of `part` in order, its index in this table.
    pub(super) fn absorb(&mut self, part: &Self, indices: impl Iterator<Item = usize>) {
        let new_texts: Vec<TextId> = part.texts.list().iter().map(|text| self.texts.intern(text)).collect();
        let renumber_texts = |frame: AddressFrame| {
            let new_id = |id: TextId| new_texts[id.0 as usize];
            AddressFrame { name: frame.name.map(new_id), file: frame.file.map(new_id), ..frame }
        };
        let mut new_inlined: Vec<u32> = Vec::with_capacity(part.inlined.len());
        for InlinedFrame { frame, caller } in &part.inlined {
            // The caller has been renumbered already, because an inlined call always has a larger index than the call
            // around it.
            let caller = caller.map(|caller| new_inlined[caller as usize]);
            new_inlined.push(self.intern_inlined(InlinedFrame { frame: renumber_texts(*frame), caller }));
        }
        for (answer, index) in part.answers.iter().zip(indices) {
            let inlined = answer.inlined.map(|innermost| new_inlined[innermost as usize]);
            self.answers[index] = Answer { inlined, outermost: answer.outermost.map(renumber_texts) };
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
        part.push(AddressFrame { name: Some(name), offset: Some(1), file: None, line: 0, inlined: false });
        part.end();
        part.end();
        let mut all = Frames::with_addresses(3);
        all.intern(b"other");
        all.absorb(&part, [2, 0].into_iter());
        assert_eq!(all.get(2).next().unwrap().name.map(|id| all.text(id)), Some(&b"f"[..]));
        assert!(all.is_unknown(0) && all.is_unknown(1) && all.is_unknown(9));
    }

    #[test]
    fn addresses_in_the_same_inlined_calls_share_them() {
        let mut part = Frames::default();
        let frame = |line, inlined| AddressFrame { name: None, offset: None, file: None, line, inlined };
        for line in 1..=3 {
            part.push(frame(line, true));
            part.push(frame(7, true));
            part.push(frame(8, true));
            part.push(frame(10 + line, false));
            part.end();
        }
        let mut all = Frames::with_addresses(3);
        all.absorb(&part, [2, 1, 0].into_iter());
        let lines = |index| all.get(index).map(|frame| frame.line).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(lines), [[3, 7, 8, 13], [2, 7, 8, 12], [1, 7, 8, 11]]);
        assert_eq!((all.inlined.len(), all.get(0).outermost()), (5, Some(frame(13, false))));
    }
}
