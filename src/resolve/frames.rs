//! The results for addresses: functions and lines, immutable, names stored once.

use crate::model::interner::id;
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;

id! {
    /// A name or path in a [`Frames`].
    TextId
}

/// One function at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Inlined calls, each once for the calls that it is in: addresses in the same calls share them.
    inlined: Vec<InlinedFrame>,
    numbers: FxHashMap<InlinedFrame, u32>,
    /// One for each address asked for.
    answers: Vec<Answer>,
    /// What is known so far of the address whose frames are being written.
    open: Vec<Frame>,
}

/// An inlined call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct InlinedFrame {
    frame: Frame,
    /// The inlined call that it is in, if it is in one.
    caller: Option<u32>,
}

/// The functions at an address.
#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    /// The innermost inlined call.
    inlined: Option<u32>,
    /// The function that has the code.
    own: Option<Frame>,
}

/// The functions at an address: innermost first, the last one not inlined.
#[derive(Debug, Clone, Default)]
pub struct FramesAt<'a> {
    inlined: &'a [InlinedFrame],
    next: Answer,
}

impl Iterator for FramesAt<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let Some(innermost) = self.next.inlined else { return self.next.own.take() };
        let InlinedFrame { frame, caller } = self.inlined[innermost as usize];
        self.next.inlined = caller;
        Some(frame)
    }
}

impl FramesAt<'_> {
    /// The function that has the code.
    pub fn own(&self) -> Option<Frame> {
        self.next.own
    }
}

impl Frames {
    /// Room for the answers of `count` addresses, none of them known yet.
    pub(super) fn with_addresses(count: usize) -> Self {
        Self { answers: vec![Answer::default(); count], ..Self::default() }
    }

    /// The functions at the `index`th address asked for. None if nothing is known of it.
    pub fn of(&self, index: usize) -> FramesAt<'_> {
        FramesAt { inlined: &self.inlined, next: self.answers.get(index).copied().unwrap_or_default() }
    }

    /// True if nothing is known of the `index`th address.
    pub fn is_unknown(&self, index: usize) -> bool {
        self.of(index).next().is_none()
    }

    /// The bytes of a name or path.
    pub fn text(&self, id: TextId) -> &[u8] {
        self.texts.get(id)
    }

    /// The number of addresses that were requested.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True if none was.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        self.texts.intern(text)
    }

    /// Adds a function at the address whose frames are being written, innermost first; [`Self::end`] ends them.
    pub(super) fn push(&mut self, frame: Frame) {
        self.open.push(frame);
    }

    /// Ends the frames of the next address, in the order of a part's own addresses.
    pub(super) fn end(&mut self) {
        let frames = std::mem::take(&mut self.open);
        let answer = self.answer(&frames);
        self.answers.push(answer);
        self.open = frames;
        self.open.clear();
    }

    /// Answers for an address: its functions, innermost first.
    pub(super) fn set(&mut self, place: usize, frames: &[Frame]) {
        self.answers[place] = self.answer(frames);
    }

    fn answer(&mut self, frames: &[Frame]) -> Answer {
        let mut answer = Answer::default();
        for &frame in frames.iter().rev() {
            if frame.inlined {
                answer.inlined = Some(self.inlined(InlinedFrame { frame, caller: answer.inlined }));
            } else {
                answer.own = Some(frame);
            }
        }
        answer
    }

    fn inlined(&mut self, frame: InlinedFrame) -> u32 {
        let next = self.inlined.len() as u32;
        let number = *self.numbers.entry(frame).or_insert(next);
        if number == next {
            self.inlined.push(frame);
        }
        number
    }

    /// Takes over the answers of a part; its `n`th address is number `places[n]` here.
    pub(super) fn absorb(&mut self, part: &Self, places: impl Iterator<Item = usize>) {
        let texts: Vec<TextId> = part.texts.list().iter().map(|text| self.texts.intern(text)).collect();
        let text = |id: TextId| texts[id.0 as usize];
        let moved = |frame: Frame| Frame { name: frame.name.map(text), file: frame.file.map(text), ..frame };
        let mut numbers: Vec<u32> = Vec::with_capacity(part.inlined.len());
        for InlinedFrame { frame, caller } in &part.inlined {
            // Callers come before what is in them.
            let caller = caller.map(|caller| numbers[caller as usize]);
            numbers.push(self.inlined(InlinedFrame { frame: moved(*frame), caller }));
        }
        for (answer, place) in part.answers.iter().zip(places) {
            let inlined = answer.inlined.map(|innermost| numbers[innermost as usize]);
            self.answers[place] = Answer { inlined, own: answer.own.map(moved) };
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
        assert_eq!(all.of(2).next().unwrap().name.map(|id| all.text(id)), Some(&b"f"[..]));
        assert!(all.is_unknown(0) && all.is_unknown(1) && all.is_unknown(9));
    }

    #[test]
    fn addresses_in_the_same_inlined_calls_share_them() {
        let mut part = Frames::default();
        let frame = |line, inlined| Frame { name: None, offset: None, file: None, line, inlined };
        for line in 1..=3 {
            part.push(frame(line, true));
            part.push(frame(7, true));
            part.push(frame(8, true));
            part.push(frame(10 + line, false));
            part.end();
        }
        let mut all = Frames::with_addresses(3);
        all.absorb(&part, [2, 1, 0].into_iter());
        let lines = |at| all.of(at).map(|frame| frame.line).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(lines), [[3, 7, 8, 13], [2, 7, 8, 12], [1, 7, 8, 11]]);
        assert_eq!((all.inlined.len(), all.of(0).own()), (5, Some(frame(13, false))));
    }
}
