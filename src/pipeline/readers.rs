//! Readers that share an input: each reads many parts of it, so that it looks up most things only once.
//!
//! ```text
//! blocks of the input ──▶ readers, each with its own tables ──▶ what each part adds to the tables ──▶ one profile
//! ```
//!
//! Results are merged in the order of the parts. A reader must therefore only read parts in ascending order: what a
//! part adds may refer to what its earlier parts added.

use super::job::Job;
use crate::error::{Skipped, Warnings};
use crate::model::stacks::{Keep, Part, Profile, Renumbered, Taken};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// A reader with more stacks than this isn't used any more, so that not all stacks are in memory twice.
const MOST_STACKS: usize = 1 << 17;

/// A reader with more names than this isn't used any more.
const MOST_NAMES: usize = 1 << 16;

/// Something with a profile that it reads into.
pub(super) trait HasProfile {
    fn profile(&mut self) -> &mut Profile;
}

/// The readers that aren't in use at the moment.
pub(super) struct Readers<'a, R> {
    new: &'a (dyn Fn() -> R + Sync),
    /// True if a single reader reads the whole input, because there is only one thread.
    only_one: bool,
    waiting: Mutex<Waiting<R>>,
}

struct Waiting<R> {
    readers: Vec<NumberedReader<R>>,
    /// How many readers have been created.
    made: usize,
}

struct NumberedReader<R> {
    number: usize,
    reader: R,
    taken: Taken,
    /// The start of the last part that it read.
    at: u64,
}

/// What reading a part added.
pub(super) struct PartRead {
    reader: usize,
    part: Part,
    /// True if the reader isn't used any more.
    is_last: bool,
    skipped: Skipped,
}

impl<'a, R: HasProfile> Readers<'a, R> {
    /// Starts without readers; `new` creates them.
    pub(super) fn new(new: &'a (dyn Fn() -> R + Sync), job: &Job) -> Self {
        let waiting = Mutex::new(Waiting { readers: Vec::new(), made: 0 });
        Self { new, only_one: job.pool.threads() == 1, waiting }
    }

    /// Reads a part that starts at this byte of the input.
    pub(super) fn read(&self, at: u64, read: impl FnOnce(&mut R) -> Skipped) -> PartRead {
        let mut reader = self.take(at);
        let skipped = read(&mut reader.reader).moved(at);
        let part = if self.only_one { Part::default() } else { reader.reader.profile().take_part(&mut reader.taken) };
        let (number, profile) = (reader.number, reader.reader.profile());
        let is_last = !self.only_one && (profile.stack_count() > MOST_STACKS || profile.name_count() > MOST_NAMES);
        if !is_last && let Ok(mut waiting) = self.waiting.lock() {
            waiting.readers.push(NumberedReader { at, ..reader });
        }
        PartRead { reader: number, part, is_last, skipped }
    }

    /// A reader that hasn't read anything beyond this position; creates one if necessary.
    fn take(&self, at: u64) -> NumberedReader<R> {
        // The lock is only poisoned if another worker panicked, and the thread scope will report that.
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

    /// The merged profile.
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

/// Merges the results of parts, in their order.
pub(super) struct AddedParts {
    profile: Profile,
    numbers: FxHashMap<usize, Renumbered>,
    skipped: Skipped,
}

impl AddedParts {
    /// Starts empty. `what` is the singular noun for things that are skipped.
    pub(super) fn new(what: &'static str, keep: Keep) -> Self {
        Self { profile: Profile::keeping(keep), numbers: FxHashMap::default(), skipped: Skipped::new(what) }
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
