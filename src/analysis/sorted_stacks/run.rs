//! Sorted stacks in compressed form. Each has the length of the key's common prefix with the previous one, the rest of
//! the key, and the weight.

use super::keys;
use prost::encoding::{decode_varint, encode_varint};

/// Stacks with weights, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Unsorted {
    keys: Vec<u8>,
    stacks: Vec<Weighed>,
}

/// A stack in [`Unsorted`]: the range of its key in `keys`, and its weight.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    start: usize,
    end: usize,
    weight: u64,
}

impl Unsorted {
    /// Adds a stack given as folded text: names of frames separated by `;`, outermost first.
    pub fn push(&mut self, stack: &[u8], weight: u64) {
        let start = self.keys.len();
        keys::push(stack, &mut self.keys);
        self.stacks.push(Weighed { start, end: self.keys.len(), weight });
    }

    /// Sorts the stacks and adds up the weights of equal ones. Leaves this list empty.
    pub fn sorted(&mut self) -> Run {
        let keys = &self.keys;
        let key = |of: &Weighed| &keys[of.start..of.end];
        self.stacks.sort_by(|a, b| key(a).cmp(key(b)));
        let mut run = RunWriter::new(keys.len());
        let mut before: &[u8] = &[];
        let mut waiting: Option<Weighed> = None;
        for &next in &self.stacks {
            match &mut waiting {
                Some(one) if key(one) == key(&next) => one.weight = one.weight.saturating_add(next.weight),
                _ => {
                    if let Some(one) = waiting.replace(next) {
                        run.push(shared_len(before, key(&one)), key(&one), one.weight);
                        before = key(&one);
                    }
                }
            }
        }
        if let Some(one) = waiting {
            run.push(shared_len(before, key(&one)), key(&one), one.weight);
        }
        self.keys.clear();
        self.stacks.clear();
        run.finished()
    }
}

/// Sorted distinct stacks.
#[derive(Debug, Default)]
pub struct Run {
    bytes: Vec<u8>,
    total: u64,
}

impl Run {
    /// True if it contains no stacks.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The size of the compressed stacks in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// A reader that is positioned at the first stack.
    pub(super) fn reader(&self) -> RunReader<'_> {
        let mut reader = RunReader { rest: &self.bytes, shared: 0, key: Vec::new(), weight: 0, ended: false };
        reader.advance();
        reader
    }
}

pub(super) struct RunWriter {
    run: Run,
}

impl RunWriter {
    /// An empty run with `room` bytes reserved.
    pub(super) fn new(room: usize) -> Self {
        Self { run: Run { bytes: Vec::with_capacity(room), total: 0 } }
    }

    /// Appends a stack, whose key has the first `shared` bytes in common with the previous one.
    pub(super) fn push(&mut self, shared: usize, key: &[u8], weight: u64) {
        let rest = &key[shared..];
        let bytes = &mut self.run.bytes;
        encode_varint(shared as u64, bytes);
        encode_varint(rest.len() as u64, bytes);
        encode_varint(weight, bytes);
        bytes.extend_from_slice(rest);
        self.run.total = self.run.total.saturating_add(weight);
    }

    pub(super) fn finished(mut self) -> Run {
        self.run.bytes.shrink_to_fit();
        self.run
    }
}

/// A position in a run.
#[derive(Debug)]
pub(super) struct RunReader<'r> {
    rest: &'r [u8],
    /// How many bytes the current stack's key has in common with another key. After [`advance`](Self::advance), that is
    /// the run's previous key; callers may then choose another one.
    pub(super) shared: usize,
    pub(super) key: Vec<u8>,
    pub(super) weight: u64,
    /// True once the reader is beyond the last stack.
    pub(super) ended: bool,
}

impl RunReader<'_> {
    /// Moves to the next stack. `shared` is then its common length with the previous one.
    pub(super) fn advance(&mut self) {
        if self.rest.is_empty() {
            self.ended = true;
            return;
        }
        // We wrote the run ourselves and it is complete, so decoding can't fail.
        let mut number = || decode_varint(&mut self.rest).unwrap_or(0);
        let (shared, len, weight) = (number() as usize, number() as usize, number());
        let (new, rest) = self.rest.split_at(len);
        self.key.truncate(shared);
        self.key.extend_from_slice(new);
        (self.shared, self.weight, self.rest) = (shared, weight, rest);
    }
}

/// The number of bytes at the start that `a` and `b` have in common.
pub fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
