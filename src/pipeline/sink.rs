//! Sinks for the rows of inputs: into a sum, in order, or passed on in batches.

use crate::error::Result;
use crate::model::stacks::{Frame, FrameKind, Keep, Profile, Track};
use crate::runtimes::jit_names::{JitNames, ReadableNames};
use std::borrow::Cow;
use std::num::NonZeroUsize;

/// Takes the rows of all inputs, in order.
pub trait Sink {
    /// Whether rows should be added up before the sink gets them.
    fn keep(&self) -> Keep;

    /// True if rows should come in batches, so that those of a recording needn't all be in memory.
    fn in_batches(&self) -> bool {
        false
    }

    /// Takes all rows of an input or a batch of them, in a profile with the tables that they refer to. Rows that the
    /// sink leaves there are dropped.
    fn take(&mut self, rows: &mut Profile) -> Result<()>;

    /// Called after the last rows of an input, with the final tables.
    fn end(&mut self, _tables: &Profile) -> Result<()> {
        Ok(())
    }
}

/// How to write names of JIT code, depending on where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Naming {
    /// For names that jitgraft looked up (perf.data, perf script's text).
    pub resolved: JitNames,
    /// For names that came with the input, as in folded stacks.
    pub given: JitNames,
}

impl From<JitNames> for Naming {
    /// The same for all names.
    fn from(names: JitNames) -> Self {
        Self { resolved: names, given: names }
    }
}

impl Naming {
    /// How to write names in this profile.
    pub(crate) fn for_profile(self, profile: &Profile) -> JitNames {
        if profile.perf_names { self.resolved } else { self.given }
    }
}

/// Collects all rows in one profile, as sums or in order.
#[derive(Debug)]
pub struct Whole {
    profile: Profile,
    keep: Keep,
    naming: Naming,
    is_empty: bool,
    /// The index of the next input, if rows of different inputs are kept apart.
    input: Option<u32>,
}

impl Whole {
    /// Creates one without rows.
    pub fn new(keep: Keep, naming: Naming) -> Self {
        Self { profile: Profile::keeping(keep), keep, naming, is_empty: true, input: None }
    }

    /// Like [`new`](Self::new), but keeps rows of different inputs apart.
    pub fn by_input(keep: Keep, naming: Naming) -> Self {
        Self { input: Some(0), ..Self::new(keep, naming) }
    }

    /// The profile with all rows.
    pub fn into_profile(self) -> Profile {
        self.profile
    }
}

impl Sink for Whole {
    fn keep(&self) -> Keep {
        self.keep
    }

    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        if self.input.is_some() {
            rows.map_tracks(|track| Track { input: self.input, ..track.clone() });
        }
        let names = self.naming.for_profile(rows);
        let is_first = std::mem::take(&mut self.is_empty);
        if names == JitNames::Raw {
            if is_first {
                self.profile = std::mem::take(rows)
            } else {
                self.profile.merge(rows)
            }
            return Ok(());
        }
        let jit_frames = rows.frames().filter(|(_, frame)| frame.kind == FrameKind::Jit);
        let jit_names = jit_frames.map(|(_, frame)| rows.name_of(frame.name));
        let readable = ReadableNames::new(jit_names, names == JitNames::Merged);
        let rename = renaming(&readable);
        if is_first && rows.has_distinct_series() && rows.rename(rename) {
            let about = std::mem::take(&mut rows.about);
            self.profile = std::mem::take(rows);
            self.profile.about.merge(&about);
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

fn renaming(readable: &ReadableNames) -> impl for<'n> Fn(&Frame, &'n [u8]) -> Cow<'n, [u8]> + Copy + '_ {
    |frame, name| match frame.kind {
        FrameKind::Jit => readable.convert(name),
        _ => Cow::Borrowed(name),
    }
}

/// Passes on single rows in batches. Memory grows with the number of distinct stacks, not of samples.
#[derive(Debug)]
pub struct Batches<F> {
    /// The maximum number of rows per batch.
    pub len: NonZeroUsize,
    /// Called with every batch.
    pub each: F,
}

impl<F: FnMut(&Profile) -> Result<()>> Sink for Batches<F> {
    fn keep(&self) -> Keep {
        Keep::EachRow
    }

    fn in_batches(&self) -> bool {
        true
    }

    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        let waiting: Vec<_> = rows.series.iter_mut().map(|series| std::mem::take(&mut series.rows)).collect();
        for (series, all) in waiting.into_iter().enumerate() {
            let mut all = all.into_iter();
            while all.len() > 0 {
                rows.series[series].rows = all.by_ref().take(self.len.get()).collect();
                (self.each)(rows)?;
            }
            rows.series[series].rows = Vec::new();
        }
        Ok(())
    }
}
