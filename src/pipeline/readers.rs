//! Readers that share an input: each reads many parts of it, so that what it looked up for one it need not for the next.
//!
//! ```text
//! blocks of the input ──▶ readers, each with tables of its own ──▶ what each part adds to its tables ──▶ one profile
//! ```
//!
//! Results of parts are added in their order. A reader therefore reads parts in their order only, too: what it adds
//! with one may refer to what it added with earlier ones.

use super::job::Job;
use crate::error::{Skipped, Warnings};
use crate::model::stacks::{Keep, Part, Profile, Renumbered, Taken};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// A reader with more stacks than this is not used again, so that all stacks are not in memory twice.
const MOST_STACKS: usize = 1 << 17;

/// The same with more names.
const MOST_NAMES: usize = 1 << 16;

/// Has the profile that it reads into.
pub(super) trait HasProfile {
    fn profile(&mut self) -> &mut Profile;
}

/// The readers that nobody uses now.
pub(super) struct Readers<'a, R> {
    new: &'a (dyn Fn() -> R + Sync),
    /// True if there is one for the whole input.
    only_one: bool,
    waiting: Mutex<Waiting<R>>,
}

struct Waiting<R> {
    readers: Vec<NumberedReader<R>>,
    /// The number ever made.
    made: usize,
}

struct NumberedReader<R> {
    number: usize,
    reader: R,
    taken: Taken,
    /// The start of its last part.
    at: u64,
}

/// The result of a part.
pub(super) struct PartRead {
    reader: usize,
    part: Part,
    /// True if its reader reads no other.
    is_last: bool,
    skipped: Skipped,
}

impl<'a, R: HasProfile> Readers<'a, R> {
    /// None yet.
    pub(super) fn new(new: &'a (dyn Fn() -> R + Sync), job: &Job) -> Self {
        let waiting = Mutex::new(Waiting { readers: Vec::new(), made: 0 });
        Self { new, only_one: job.pool.threads() == 1, waiting }
    }

    /// Has a part read that begins at this byte of the input.
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

    /// One that has read nothing behind this.
    fn take(&self, at: u64) -> NumberedReader<R> {
        // A poisoned lock means that another worker panicked: the scope will state it.
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

    /// The sum of all parts.
    pub(super) fn into_profile(self, parts: AddedParts, warnings: &mut Warnings) -> Profile {
        warnings.extend(parts.skipped.into_warning());
        let only =
            self.waiting.into_inner().ok().filter(|_| self.only_one).and_then(|mut waiting| waiting.readers.pop());
        only.map_or(parts.profile, |mut only| std::mem::take(only.reader.profile()))
    }
}

/// The results of parts, in their order.
pub(super) struct AddedParts {
    profile: Profile,
    numbers: FxHashMap<usize, Renumbered>,
    skipped: Skipped,
}

impl AddedParts {
    /// None yet; `what` is the singular noun of the parts that may be skipped.
    pub(super) fn of(what: &'static str, keep: Keep) -> Self {
        Self { profile: Profile::keeping(keep), numbers: FxHashMap::default(), skipped: Skipped::new(what) }
    }

    /// The next one.
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
