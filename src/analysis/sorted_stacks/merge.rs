//! Several runs as one: a tournament of their next stacks, in which a stack stores how many bytes it shares with the
//! one that went out last. Of two, the one that shares more comes first; only where both share as much their bytes are
//! compared, from there on.

use super::run::{Run, RunReader, RunWriter, shared_len};

/// One run of them all.
pub(super) fn merged(runs: &[Run]) -> Run {
    let mut run = RunWriter::new(runs.iter().map(Run::size).sum());
    each(runs, |shared, key, weight| run.push(shared, key, weight));
    run.finished()
}

/// Each stack of some runs once, in order: how many bytes its key shares with the one before, its key, and its weight.
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

/// A tree of losers.
struct Merge<'r> {
    readers: Vec<RunReader<'r>>,
    /// The loser at each node, from 1 on; the winner of all is at 0. A loser's `shared` is with whom it lost to.
    nodes: Vec<usize>,
}

/// Nobody was here yet.
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

    /// Takes the winner's next stack.
    fn advance(&mut self) {
        let winner = self.nodes[0];
        self.readers[winner].advance();
        self.play(winner);
    }

    /// Has a reader play at all nodes above it, and replaces it with any reader that beats it.
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

    /// True if `one` comes before `other`; the loser finds what it shares with the winner.
    fn beats(&mut self, one: usize, other: usize) -> bool {
        let (a, b) = (&self.readers[one], &self.readers[other]);
        if a.ended || b.ended {
            return b.ended;
        }
        if a.shared != b.shared {
            // The part that the loser shares with the winner is the part that it shares with the last.
            return a.shared > b.shared;
        }
        let shared = a.shared + shared_len(&a.key[a.shared..], &b.key[a.shared..]);
        let beats = a.key.get(shared) < b.key.get(shared);
        self.readers[if beats { other } else { one }].shared = shared;
        beats
    }
}
