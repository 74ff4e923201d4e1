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

/// A reader that has more names than this is dropped after the current part. Otherwise, all names would be in memory
/// twice.
const MOST_NAMES: usize = 1 << 16;

/// A reader that collects what it reads in a profile of its own.
pub(super) trait HasProfile {
    fn profile(&mut self) -> &mut Profile;
}

/// The readers of an input that aren't reading at the moment, ready for the next part.
pub(super) struct Readers<'a, R> {
    create: &'a (dyn Fn() -> R + Sync),
    /// True if a single reader reads the whole input, because there is only one thread. The reader's profile is then
    /// that of the input.
    only_one: bool,
    waiting: Mutex<Waiting<R>>,
}

struct Waiting<R> {
    readers: Vec<NumberedReader<R>>,
    /// The number of readers created so far.
    created: usize,
}

struct NumberedReader<R> {
    number: usize,
    reader: R,
    /// How much of the reader's tables was passed on with earlier parts.
    taken: Taken,
    /// The offset in the input where the last part that it read starts.
    last_offset: u64,
}

/// What a reader added to its profile while reading a part of the input.
pub(super) struct PartRead {
    /// The number of the reader, to which the IDs in `part` belong.
    reader_number: usize,
    /// What the part added to the reader's tables. Empty if a single reader reads the whole input: its own profile is
    /// the result.
    part: Part,
    /// True if the reader was dropped after this part, because its tables had become too large.
    is_last: bool,
    skipped: Skipped,
}

impl<'a, R: HasProfile> Readers<'a, R> {
    /// Creates an empty pool; `create` is called when another reader is needed.
    pub(super) fn new(create: &'a (dyn Fn() -> R + Sync), job: &Job) -> Self {
        let waiting = Mutex::new(Waiting { readers: Vec::new(), created: 0 });
        Self { create, only_one: job.pool.threads() == 1, waiting }
    }

    /// Takes a reader out of the pool, lets it read the part of the input that starts at `offset` (by calling `read`),
    /// and puts it back. Returns what the part added to the reader's tables. `read` returns what it skipped, with
    /// offsets relative to the start of the part; the result has them relative to the start of the input.
    pub(super) fn read(&self, offset: u64, read: impl FnOnce(&mut R) -> Skipped) -> PartRead {
        let mut reader = self.take(offset);
        let skipped = read(&mut reader.reader).shifted(offset);
        // If one reader reads all parts, its own profile is the result, so nothing has to be passed on.
        let part = if self.only_one { Part::default() } else { reader.reader.profile().take_part(&mut reader.taken) };
        let (number, profile) = (reader.number, reader.reader.profile());
        // A reader whose tables have become too large is dropped rather than put back into the pool.
        let is_last = !self.only_one && (profile.stack_count() > MOST_STACKS || profile.name_count() > MOST_NAMES);
        if !is_last && let Ok(mut waiting) = self.waiting.lock() {
            waiting.readers.push(NumberedReader { last_offset: offset, ..reader });
        }
        PartRead { reader_number: number, part, is_last, skipped }
    }

    /// Takes a reader out of the pool, or creates one. A reader gets parts in the order of the input, so one that has
    /// read a part behind `offset` isn't taken. With one thread, a single reader reads all parts.
    fn take(&self, offset: u64) -> NumberedReader<R> {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        let number = match self.waiting.lock() {
            Ok(mut waiting) => {
                let may_read = |reader: &NumberedReader<R>| self.only_one || reader.last_offset <= offset;
                if let Some(found) = waiting.readers.iter().position(may_read) {
                    return waiting.readers.swap_remove(found);
                }
                waiting.created += 1;
                waiting.created
            }
            // Another worker panicked, so the number returned here won't be used, and any will do.
            Err(_) => 0,
        };
        NumberedReader { number, reader: (self.create)(), taken: Taken::default(), last_offset: offset }
    }

    /// The profile of the whole input, after all parts were read. `parts` has their merged results.
    pub(super) fn into_profile(self, parts: AddedParts, warnings: &mut Warnings) -> Profile {
        warnings.extend(parts.skipped.into_warning());
        // If a single reader has read all parts, its own profile is the result.
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
    /// For each reader, by its number, how its IDs are translated to those of `profile`.
    renumbered: FxHashMap<usize, Renumbered>,
    skipped: Skipped,
}

impl AddedParts {
    /// Creates an empty profile to merge into. `what` is a singular noun for the things that are skipped, for messages.
    pub(super) fn new(what: &'static str, keep: Keep) -> Self {
        Self { profile: Profile::empty(keep), renumbered: FxHashMap::default(), skipped: Skipped::new(what) }
    }

    /// Merges the next part.
    pub(super) fn add(&mut self, PartRead { reader_number, part, is_last, skipped }: PartRead) {
        self.skipped.append(skipped);
        self.profile.add_part(&part, self.renumbered.entry(reader_number).or_default());
        if is_last {
            self.renumbered.remove(&reader_number);
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
        let number = |offset| readers.read(offset, |_| Skipped::new("line")).reader_number;
        let first = number(5);
        assert_eq!(number(9), first);
        let other = number(7);
        assert_ne!(other, first);
        assert_eq!((number(8), number(20)), (other, first));
    }
}
