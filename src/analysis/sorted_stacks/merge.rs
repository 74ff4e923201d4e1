//! Merges several sorted runs with a tournament: the first stacks of all runs compete for being output next. For each
//! stack, it is known how many bytes it has in common with the stack output last. The one with more bytes in common
//! sorts first. Only if both have the same number are bytes compared, starting after the common ones.

use super::run::{Run, RunReader, RunWriter, shared_len};

/// Merges all runs into one.
pub(super) fn merged(runs: &[Run]) -> Run {
    let mut run = RunWriter::new(runs.iter().map(Run::size).sum());
    each(runs, |shared, key, weight| run.push(shared, key, weight));
    run.finished()
}

/// Calls `each` for every distinct stack of all runs, in key order, with: the number of bytes that its key has in
/// common with the previous key, the key, and the total weight.
pub(super) fn each(runs: &[Run], mut each: impl FnMut(usize, &[u8], u64)) {
    let mut merge = Merge::new(runs);
    let (mut key, mut shared, mut weight) = (Vec::new(), 0, None);
    while let Some(next) = merge.next() {
        match &mut weight {
            Some(sum) if next.shared == key.len() && next.key.len() == key.len() => {
                *sum = next.weight.saturating_add(*sum);
            }
            _ => {
                if let Some(sum) = weight.replace(next.weight) {
                    each(shared, &key, sum);
                }
                shared = next.shared;
                key.truncate(shared);
                key.extend_from_slice(&next.key[shared..]);
            }
        }
        merge.advance();
    }
    if let Some(sum) = weight {
        each(shared, &key, sum);
    }
}

/// A tournament in the form of a loser tree: a binary tree whose inner nodes store who lost there.
struct Merge<'r> {
    readers: Vec<RunReader<'r>>,
    /// For each inner node, from index 1 on, the reader that lost there. Index 0 has the overall winner. A loser's
    /// `shared` is its common length with the stack to which it lost.
    nodes: Vec<usize>,
}

/// Marks a node that no reader has reached yet.
const NOBODY: usize = usize::MAX;

impl<'r> Merge<'r> {
    fn new(runs: &'r [Run]) -> Self {
        let readers: Vec<_> = runs.iter().filter(|run| !run.is_empty()).map(Run::reader).collect();
        let nodes = vec![NOBODY; readers.len()];
        let mut merge = Self { readers, nodes };
        (0..merge.readers.len()).for_each(|reader| merge.play(reader));
        merge
    }

    fn next(&self) -> Option<&RunReader<'r>> {
        self.readers.get(*self.nodes.first()?).filter(|reader| !reader.ended)
    }

    /// Moves the winning reader to its next stack, and plays its matches again.
    fn advance(&mut self) {
        let winner = self.nodes[0];
        self.readers[winner].advance();
        self.play(winner);
    }

    /// Plays a reader's matches on the way to the root. At each node, the winner goes on and the loser stays.
    fn play(&mut self, reader: usize) {
        let mut winner = reader;
        let mut node = (reader + self.readers.len()) / 2;
        while node > 0 {
            let other = self.nodes[node];
            if other == NOBODY {
                self.nodes[node] = winner;
                return;
            }
            if self.beats(other, winner) {
                self.nodes[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    /// True if the stack of reader `one` sorts before that of `other`. Sets the loser's `shared` to its common length
    /// with the winner.
    fn beats(&mut self, one: usize, other: usize) -> bool {
        let (a, b) = (&self.readers[one], &self.readers[other]);
        if a.ended || b.ended {
            return b.ended;
        }
        if a.shared != b.shared {
            // The loser's common length with the winner is the same as with the stack output last, so its `shared`
            // needn't change.
            return a.shared > b.shared;
        }
        let shared = a.shared + shared_len(&a.key[a.shared..], &b.key[a.shared..]);
        let beats = a.key.get(shared) < b.key.get(shared);
        self.readers[if beats { other } else { one }].shared = shared;
        beats
    }
}
