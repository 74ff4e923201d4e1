//! Sinks, which receive the rows of inputs. A sink may add them up, keep them in order, or pass them on in batches.

use crate::contract::rows::WrittenNames;
use crate::error::Result;
use crate::model::stacks::{Frame, Keep, Profile, Track};
use crate::runtimes::jit_names::JitNames;
use std::borrow::Cow;
use std::num::NonZeroUsize;

/// Receives the rows of all inputs, in order.
pub trait Sink {
    /// Whether the sink wants single rows, or one row for the sum of all equal ones.
    fn keep(&self) -> Keep;

    /// True if the sink wants rows in batches, so that the rows of a recording needn't all be in memory.
    fn wants_batches(&self) -> bool {
        false
    }

    /// Receives all rows of an input, or a batch of them, in a profile that has the tables to which they refer. Rows
    /// that the sink leaves in the profile are dropped.
    fn take(&mut self, rows: &mut Profile) -> Result<()>;

    /// Called after the last rows of an input. `_tables` are the final tables of the input.
    fn end(&mut self, _tables: &Profile) -> Result<()> {
        Ok(())
    }
}

/// How names of JIT code are spelled. Names that jitgraft looked up may be spelled differently from names that the
/// input already had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Naming {
    /// How to spell names that jitgraft looked up itself (in perf.data and perf script's text).
    pub resolved: JitNames,
    /// How to spell names that the input already had, as in folded stacks.
    pub given: JitNames,
}

impl From<JitNames> for Naming {
    /// Writes all names in the same way, wherever they come from.
    fn from(names: JitNames) -> Self {
        Self { resolved: names, given: names }
    }
}

impl Naming {
    /// How to spell the names of JIT code in this profile, which depends on where they come from.
    pub(crate) fn for_profile(self, profile: &Profile) -> JitNames {
        if profile.perf_names { self.resolved } else { self.given }
    }
}

/// A sink that collects all rows in one profile, either summed or one by one in order.
#[derive(Debug)]
pub struct Whole {
    profile: Profile,
    keep: Keep,
    naming: Naming,
    /// True until the first input has been taken.
    is_empty: bool,
    /// The index of the next input, if rows of different inputs are kept apart; otherwise `None`.
    input: Option<u32>,
}

impl Whole {
    /// Creates an empty sink that doesn't distinguish inputs.
    pub fn new(keep: Keep, naming: Naming) -> Self {
        Self { profile: Profile::empty(keep), keep, naming, is_empty: true, input: None }
    }

    /// Like [`new`](Self::new), but rows of different inputs are kept apart.
    pub fn by_input(keep: Keep, naming: Naming) -> Self {
        Self { input: Some(0), ..Self::new(keep, naming) }
    }

    /// Returns the profile with all rows.
    pub fn into_profile(self) -> Profile {
        self.profile
    }
}

impl Sink for Whole {
    fn keep(&self) -> Keep {
        self.keep
    }

    /// Merges these rows into the profile, with the names of JIT code in the spelling that was asked for. If inputs are
    /// kept apart, the tracks (threads) first get the number of the input.
    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        if self.input.is_some() {
            rows.map_tracks(|track| Track { input: self.input, ..track.clone() });
        }
        let names = &WrittenNames::new(self.naming.for_profile(rows), rows);
        let rename = spelling(names);
        // The first rows become the profile; all later ones are merged into it.
        if std::mem::take(&mut self.is_empty) {
            // Raw names are those that the profile has already, so there is nothing to rename.
            if !names.are_raw() {
                rows.rename_functions(rename);
            }
            self.profile = std::mem::take(rows);
        } else {
            self.profile.merge_renamed(rows, rename);
        }
        Ok(())
    }

    fn end(&mut self, _tables: &Profile) -> Result<()> {
        self.input = self.input.map(|input| input + 1);
        Ok(())
    }
}

/// A function that returns the name of a frame's function in the spelling of `names`.
fn spelling(names: &WrittenNames) -> impl for<'n> Fn(&Frame, &'n [u8]) -> Cow<'n, [u8]> + Copy + '_ {
    |frame, name| names.spell(frame, name)
}

/// A sink that passes on single rows in batches. Memory grows with the number of distinct stacks, not with that of
/// samples.
#[derive(Debug)]
pub struct Batches<F> {
    /// The maximum number of rows in a batch.
    pub len: NonZeroUsize,
    /// Called with every batch: a profile that has the batch's rows, and all stacks to which they refer.
    pub each: F,
}

impl<F: FnMut(&Profile) -> Result<()>> Sink for Batches<F> {
    fn keep(&self) -> Keep {
        Keep::EachRow
    }

    fn wants_batches(&self) -> bool {
        true
    }

    /// Passes the rows on in batches of at most `len` rows. The stacks and names of the profile stay in it for every
    /// batch.
    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        // Take all rows out of the profile, and put them back in batches. A batch has rows of one event only.
        let rows_by_event: Vec<_> = rows.series.iter_mut().map(|series| std::mem::take(&mut series.rows)).collect();
        for (series, event_rows) in rows_by_event.into_iter().enumerate() {
            let mut event_rows = event_rows.into_iter();
            while event_rows.len() > 0 {
                rows.series[series].rows = event_rows.by_ref().take(self.len.get()).collect();
                (self.each)(rows)?;
            }
            rows.series[series].rows = Vec::new();
        }
        Ok(())
    }
}
