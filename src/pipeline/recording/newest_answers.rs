//! A cache that has the latest answer for each key, with the time range in which that answer is valid.

use crate::model::Nanos;
use crate::model::interner::{InternedNumbers, hash_of};
use crate::model::lasting::Lasting;
use std::hash::Hash;

/// The latest answer for each key. A key keeps its index when its answer is replaced.
#[derive(Debug)]
pub(super) struct NewestAnswers<K, V> {
    answers: Vec<(K, Lasting<V>)>,
    numbers: InternedNumbers,
}

impl<K, V> Default for NewestAnswers<K, V> {
    fn default() -> Self {
        Self { answers: Vec::new(), numbers: InternedNumbers::default() }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> NewestAnswers<K, V> {
    /// The index of a key whose answer is valid at `time`. If the cached answer isn't, or if there is none, `find`
    /// computes it.
    #[inline]
    pub(super) fn number(&mut self, key: K, time: Nanos, find: impl FnOnce() -> Lasting<V>) -> u32 {
        let hash = hash_of(&key);
        let known = self.numbers.find(hash, |number| self.answers[number as usize].0 == key);
        match known {
            Some(number) if self.answers[number as usize].1.holds.contains(&time) => number,
            Some(number) => {
                self.answers[number as usize].1 = find();
                number
            }
            None => {
                let number = self.answers.len() as u32;
                self.answers.push((key, find()));
                self.numbers.insert(hash, number);
                number
            }
        }
    }

    /// The key with this index, and its latest answer.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &(K, Lasting<V>) {
        &self.answers[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_anew_when_it_no_longer_holds() {
        let mut answers = NewestAnswers::default();
        let mut asked = Vec::new();
        let mut number = |key: u64, time: u64| {
            let number = answers.number(key, Nanos(time), || {
                asked.push((key, time));
                Lasting { answer: time, holds: Nanos(time)..Nanos(time + 10) }
            });
            (number, answers.get(number).1.answer)
        };
        assert_eq!([number(7, 5), number(7, 14), number(8, 14)], [(0, 5), (0, 5), (1, 14)]);
        assert_eq!([number(7, 15), number(7, 14), number(8, 23)], [(0, 15), (0, 14), (1, 14)]);
        assert_eq!(asked, [(7, 5), (8, 14), (7, 15), (7, 14)]);
    }
}
