//! Results of lookups for a certain time ("answers"), each with the time range in which it stays the same; and caches
//! of them, so that callers needn't look up the same thing again for other times in that range.

use super::Nanos;
use super::interner::{InternedNumbers, hash_of};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// The result of a lookup for a certain time, such as what was mapped at an address, and the range around that time in
/// which the result is the same.
#[derive(Debug, Clone)]
pub struct Lasting<T> {
    /// The result of the lookup.
    pub answer: T,
    /// The time range in which a lookup gives the same answer. Empty if the answer can't be reused, even for the same
    /// time.
    pub holds: Range<Nanos>,
}

/// The whole time axis.
pub const ALWAYS: Range<Nanos> = Nanos(0)..Nanos(u64::MAX);

/// The time for looking up entries that have no time themselves, just before the end of the time axis. What is found
/// there may differ from what is found for any real time.
pub const UNTIMED: Nanos = Nanos(u64::MAX - 1);

/// The time range that contains only `time`.
pub fn moment(time: Nanos) -> Range<Nanos> {
    time..Nanos(time.0.saturating_add(1))
}

/// The intersection of two time ranges.
pub fn intersect(a: Range<Nanos>, b: Range<Nanos>) -> Range<Nanos> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// A time range around a moment, which is narrowed down until nothing that matters to the caller starts or ends within
/// it.
#[derive(Debug, Clone)]
pub struct QuietPeriod {
    moment: Nanos,
    /// The range in which no start or end has been found so far.
    pub range: Range<Nanos>,
}

impl QuietPeriod {
    /// Starts with the whole time axis.
    pub fn new(moment: Nanos) -> Self {
        Self { moment, range: ALWAYS }
    }

    /// True if the start or end of `other` may be in the range. If this is false, [`cut`](Self::cut) changes nothing,
    /// and needn't be called.
    pub fn may_be_cut(&self, other: &Range<Nanos>) -> bool {
        other.end > self.range.start && other.start < self.range.end
    }

    /// Narrows the range around `moment` so that neither the start nor the end of `other` is inside it.
    pub fn cut(&mut self, other: Range<Nanos>) {
        for edge in [other.start, other.end] {
            if edge <= self.moment {
                self.range.start = self.range.start.max(edge);
            } else {
                self.range.end = self.range.end.min(edge);
            }
        }
    }
}

/// A cache that has the latest answer for each key, with the time range in which that answer holds. Each key has a
/// number, which it keeps when its answer is replaced. The cache grows until its owner [drains](Self::drain) it.
#[derive(Debug)]
pub struct LastingCache<K, V> {
    answers: Vec<(K, Lasting<V>)>,
    /// The index in `answers` of each key, found by hash.
    numbers: InternedNumbers,
}

impl<K, V> Default for LastingCache<K, V> {
    fn default() -> Self {
        Self { answers: Vec::new(), numbers: InternedNumbers::default() }
    }
}

impl<K: Eq + Hash, V> LastingCache<K, V> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The answer for a key that holds at `time`; `None` if there is none.
    #[inline]
    pub fn get(&self, key: &K, time: Nanos) -> Option<&Lasting<V>> {
        let number = self.find(hash_of(key), key)?;
        let (_, answer) = &self.answers[number as usize];
        answer.holds.contains(&time).then_some(answer)
    }

    /// The answer for a key that holds at `time`, for changing it; `None` if there is none.
    #[inline]
    pub fn get_mut(&mut self, key: &K, time: Nanos) -> Option<&mut Lasting<V>> {
        let number = self.find(hash_of(key), key)?;
        let (_, answer) = &mut self.answers[number as usize];
        answer.holds.contains(&time).then_some(answer)
    }

    /// Stores the answer for a key. Returns the answer that it replaces.
    pub fn insert(&mut self, key: K, answer: Lasting<V>) -> Option<V> {
        let hash = hash_of(&key);
        match self.find(hash, &key) {
            Some(number) => {
                let (_, latest) = &mut self.answers[number as usize];
                Some(std::mem::replace(latest, answer).answer)
            }
            None => {
                self.push(hash, key, answer);
                None
            }
        }
    }

    /// Returns the number of a key. If the cache has no answer for the key that holds at `time`, `find` computes one
    /// first. The number stays the same when the answer is replaced.
    #[inline]
    pub fn number(&mut self, key: K, time: Nanos, find: impl FnOnce() -> Lasting<V>) -> u32 {
        let hash = hash_of(&key);
        match self.find(hash, &key) {
            Some(number) => {
                let (_, latest) = &mut self.answers[number as usize];
                if !latest.holds.contains(&time) {
                    *latest = find();
                }
                number
            }
            None => self.push(hash, key, find()),
        }
    }

    /// The key with this number, and its latest answer.
    #[inline]
    pub fn entry(&self, number: u32) -> &(K, Lasting<V>) {
        &self.answers[number as usize]
    }

    /// Removes all keys, and returns their answers.
    pub fn drain(&mut self) -> impl Iterator<Item = V> {
        self.numbers.clear();
        self.answers.drain(..).map(|(_, answer)| answer.answer)
    }

    #[inline]
    fn find(&self, hash: u32, key: &K) -> Option<u32> {
        self.numbers.find(hash, |number| self.answers[number as usize].0 == *key)
    }

    fn push(&mut self, hash: u32, key: K, answer: Lasting<V>) -> u32 {
        let number = self.answers.len() as u32;
        self.answers.push((key, answer));
        self.numbers.insert(hash, number);
        number
    }
}

/// A cache of fixed size, for keys that are soon looked up again, such as the addresses of consecutive call chains.
/// Each key has one possible slot, where a newer answer replaces that of another key. A lookup therefore takes half the
/// time that it takes in a [`LastingCache`].
#[derive(Debug)]
pub struct RecentAnswers<K, V> {
    /// Empty until the first answer is stored; [`SLOTS`] slots after that.
    slots: Vec<Option<(K, Lasting<V>)>>,
}

/// The number of slots, a power of two: together they should fit in a CPU's cache.
const SLOTS: usize = 1 << 13;

impl<K, V> Default for RecentAnswers<K, V> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<K: Eq + Hash, V> RecentAnswers<K, V> {
    /// The answer for a key that holds at `time`; `None` if there is none.
    #[inline]
    pub fn get(&self, key: &K, time: Nanos) -> Option<&Lasting<V>> {
        match self.slots.get(slot_of(key)) {
            Some(Some((known, answer))) if known == key && answer.holds.contains(&time) => Some(answer),
            _ => None,
        }
    }

    /// The answer for a key that holds at `time`, for changing it; `None` if there is none.
    pub fn get_mut(&mut self, key: &K, time: Nanos) -> Option<&mut Lasting<V>> {
        match self.slots.get_mut(slot_of(key)) {
            Some(Some((known, answer))) if known == key && answer.holds.contains(&time) => Some(answer),
            _ => None,
        }
    }

    /// Stores the answer for a key.
    #[inline]
    pub fn insert(&mut self, key: K, answer: Lasting<V>) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        let slot = slot_of(&key);
        self.slots[slot] = Some((key, answer));
    }
}

#[inline]
fn slot_of<K: Hash>(key: &K) -> usize {
    let mut hasher = FxHasher::default();
    key.hash(&mut hasher);
    hasher.finish() as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_answers_are_of_their_key_and_time() {
        let mut recent = RecentAnswers::default();
        for key in 0..3 * SLOTS {
            recent.insert(key, Lasting { answer: key * 10, holds: Nanos(5)..Nanos(9) });
        }
        let mut found = 0;
        for key in 0..3 * SLOTS {
            if let Some(known) = recent.get(&key, Nanos(8)) {
                assert_eq!(known.answer, key * 10);
                found += 1;
            }
        }
        assert!(found > SLOTS / 2 && found <= SLOTS, "{found}");
        let last = 3 * SLOTS - 1;
        assert!(recent.get(&last, Nanos(8)).is_some() && recent.get(&last, Nanos(9)).is_none());
        recent.get_mut(&last, Nanos(8)).unwrap().answer = 7;
        assert_eq!(recent.get(&last, Nanos(8)).unwrap().answer, 7);
    }

    #[test]
    fn an_answer_is_found_anew_when_it_no_longer_holds() {
        let mut answers = LastingCache::default();
        let mut asked = Vec::new();
        let mut number = |key: u64, time: u64| {
            let number = answers.number(key, Nanos(time), || {
                asked.push((key, time));
                Lasting { answer: time, holds: Nanos(time)..Nanos(time + 10) }
            });
            (number, answers.entry(number).1.answer)
        };
        assert_eq!([number(7, 5), number(7, 14), number(8, 14)], [(0, 5), (0, 5), (1, 14)]);
        assert_eq!([number(7, 15), number(7, 14), number(8, 23)], [(0, 15), (0, 14), (1, 14)]);
        assert_eq!(asked, [(7, 5), (8, 14), (7, 15), (7, 14)]);
    }

    #[test]
    fn an_answer_is_replaced_and_is_given_while_it_holds() {
        let mut answers = LastingCache::default();
        let until = |end: u64, answer: &'static str| Lasting { answer, holds: Nanos(5)..Nanos(end) };
        assert_eq!(answers.insert(7, until(9, "first")), None);
        assert_eq!(answers.insert(7, until(8, "second")), Some("first"));
        assert_eq!([4, 5, 7, 8].map(|time| answers.get(&7, Nanos(time)).is_some()), [false, true, true, false]);
        assert!(answers.get(&8, Nanos(5)).is_none());
        answers.get_mut(&7, Nanos(5)).unwrap().answer = "third";
        assert_eq!(answers.drain().collect::<Vec<_>>(), ["third"]);
        assert!(answers.is_empty() && answers.get(&7, Nanos(5)).is_none());
    }
}
