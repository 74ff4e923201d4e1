//! Sorted stacks in compressed form: the length of the common prefix with the previous stack, the rest, and the weight.

use super::keys;
use prost::encoding::{decode_varint, encode_varint};

/// Stacks with weights, in any order.
#[derive(Debug, Default)]
pub struct Unsorted {
    keys: Vec<u8>,
    stacks: Vec<Weighed>,
}

/// A stack: a range of `keys`, and its weight.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    start: usize,
    end: usize,
    weight: u64,
}

impl Unsorted {
    /// Adds a stack, given as names of frames separated by `;`, outermost first.
    pub fn push(&mut self, stack: &[u8], weight: u64) {
        let start = self.keys.len();
        keys::push(stack, &mut self.keys);
        self.stacks.push(Weighed { start, end: self.keys.len(), weight });
    }

    /// Adds a stack whose key is the folded line itself, so that it sorts like the line: labels joined by `;`.
    pub fn push_line<'l>(&mut self, labels: impl Iterator<Item = &'l [u8]>, weight: u64) {
        let start = self.keys.len();
        for label in labels {
            if self.keys.len() > start {
                self.keys.push(keys::SEPARATOR);
            }
            self.keys.extend_from_slice(label);
        }
        if self.keys.len() > start {
            self.stacks.push(Weighed { start, end: self.keys.len(), weight });
        }
    }

    /// Sorts the stacks, adds up equal ones, and leaves this list empty.
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

    /// The size in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// A reader that is at the first stack.
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
    /// Reserves this many bytes.
    pub(super) fn new(room: usize) -> Self {
        Self { run: Run { bytes: Vec::with_capacity(room), total: 0 } }
    }

    /// Appends a stack whose key has this many bytes in common with the previous one.
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
    /// The length of the common prefix with a stack that the caller decides on; after [`advance`](Self::advance), the
    /// run's previous stack.
    pub(super) shared: usize,
    pub(super) key: Vec<u8>,
    pub(super) weight: u64,
    /// True after the last stack.
    pub(super) ended: bool,
}

impl RunReader<'_> {
    /// Goes to the next stack; `shared` then refers to the previous one.
    pub(super) fn advance(&mut self) {
        if self.rest.is_empty() {
            self.ended = true;
            return;
        }
        // A run is always complete, so reading can't fail.
        let mut number = || decode_varint(&mut self.rest).unwrap_or(0);
        let (shared, len, weight) = (number() as usize, number() as usize, number());
        let (new, rest) = self.rest.split_at(len);
        self.key.truncate(shared);
        self.key.extend_from_slice(new);
        (self.shared, self.weight, self.rest) = (shared, weight, rest);
    }
}

/// The length of the common prefix in bytes.
pub fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
