//! Lets several readers share an input. Each reads many parts of it, so that it looks up most names and stacks only
//! once.
//!
//! ```text
//! blocks of the input ──▶ readers, each with its own tables ──▶ what each part adds to the tables ──▶ one profile
//! ```
//!
//! Results are merged in the order of the parts. What a part adds may refer to what the same reader's earlier parts
//! added. Therefore, each reader must read its parts in ascending order.

use super::job::Job;
use crate::error::{Skipped, Warnings};
use crate::model::stacks::{Keep, Part, Profile, Renumbered, Taken};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// A reader that has more stacks than this is dropped after the current part. Otherwise, all stacks would be in memory
/// twice.
const MOST_STACKS: usize = 1 << 17;

/// A reader that has more names than this is dropped after the current part.
const MOST_NAMES: usize = 1 << 16;

/// A reader that collects what it reads in a profile of its own.
pub(super) trait HasProfile {
    fn profile(&mut self) -> &mut Profile;
}

/// A pool with the readers of an input that aren't reading at the moment.
pub(super) struct Readers<'a, R> {
    new: &'a (dyn Fn() -> R + Sync),
    /// True if a single reader reads the whole input, because there is only one thread. The reader's profile is then
    /// that of the input.
    only_one: bool,
    waiting: Mutex<Waiting<R>>,
}

struct Waiting<R> {
    readers: Vec<NumberedReader<R>>,
    /// The number of readers created so far.
    made: usize,
}

struct NumberedReader<R> {
    number: usize,
    reader: R,
    taken: Taken,
    /// The offset where the last part that it read starts.
    at: u64,
}

/// What a reader added to its profile while reading a part of the input.
pub(super) struct PartRead {
    reader: usize,
    part: Part,
    /// True if the reader was dropped after this part, because its tables had become too large.
    is_last: bool,
    skipped: Skipped,
}

impl<'a, R: HasProfile> Readers<'a, R> {
    /// Creates an empty pool; `new` is called to create readers when they are needed.
    pub(super) fn new(new: &'a (dyn Fn() -> R + Sync), job: &Job) -> Self {
        let waiting = Mutex::new(Waiting { readers: Vec::new(), made: 0 });
        Self { new, only_one: job.pool.threads() == 1, waiting }
    }

    /// Reads the part that starts at the offset `at` of the input, with any reader that may read it.
    pub(super) fn read(&self, at: u64, read: impl FnOnce(&mut R) -> Skipped) -> PartRead {
        let mut reader = self.take(at);
        let skipped = read(&mut reader.reader).shifted(at);
        let part = if self.only_one { Part::default() } else { reader.reader.profile().take_part(&mut reader.taken) };
        let (number, profile) = (reader.number, reader.reader.profile());
        let is_last = !self.only_one && (profile.stack_count() > MOST_STACKS || profile.name_count() > MOST_NAMES);
        if !is_last && let Ok(mut waiting) = self.waiting.lock() {
            waiting.readers.push(NumberedReader { at, ..reader });
        }
        PartRead { reader: number, part, is_last, skipped }
    }

    /// Takes a reader that hasn't read anything beyond the offset `at` from the pool, or creates one.
    fn take(&self, at: u64) -> NumberedReader<R> {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        let number = match self.waiting.lock() {
            Ok(mut waiting) => {
                if let Some(found) = waiting.readers.iter().position(|reader| self.only_one || reader.at <= at) {
                    return waiting.readers.swap_remove(found);
                }
                waiting.made += 1;
                waiting.made
            }
            Err(_) => 0,
        };
        NumberedReader { number, reader: (self.new)(), taken: Taken::default(), at }
    }

    /// The profile of the whole input. `parts` has the merged results of all parts.
    pub(super) fn into_profile(self, parts: AddedParts, warnings: &mut Warnings) -> Profile {
        warnings.extend(parts.skipped.into_warning());
        if self.only_one
            && let Ok(mut waiting) = self.waiting.into_inner()
            && let Some(mut only) = waiting.readers.pop()
        {
            return std::mem::take(only.reader.profile());
        }
        parts.profile
    }
}

/// Merges the results of all parts, in the order of the parts.
pub(super) struct AddedParts {
    profile: Profile,
    numbers: FxHashMap<usize, Renumbered>,
    skipped: Skipped,
}

impl AddedParts {
    /// Creates an empty profile to merge into. `what` is what skipped things are called in messages, in the singular.
    pub(super) fn new(what: &'static str, keep: Keep) -> Self {
        Self { profile: Profile::empty(keep), numbers: FxHashMap::default(), skipped: Skipped::new(what) }
    }

    /// Merges the next part.
    pub(super) fn add(&mut self, PartRead { reader, part, is_last, skipped }: PartRead) {
        self.skipped.append(skipped);
        self.profile.add_part(&part, self.numbers.entry(reader).or_default());
        if is_last {
            self.numbers.remove(&reader);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HasProfile for Profile {
        fn profile(&mut self) -> &mut Profile {
            self
        }
    }

    #[test]
    fn a_reader_never_goes_back() {
        let job =
            Job { pool: crate::parallel::Pool::new(std::num::NonZeroUsize::new(2)).unwrap(), ..Job::quiet().unwrap() };
        let readers = Readers::new(&Profile::new, &job);
        let number = |at| readers.read(at, |_| Skipped::new("line")).reader;
        let first = number(5);
        assert_eq!(number(9), first);
        let other = number(7);
        assert_ne!(other, first);
        assert_eq!((number(8), number(20)), (other, first));
    }
}
