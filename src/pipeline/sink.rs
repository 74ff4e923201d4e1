//! The sink for rows of a profile: into a sum, in order of time, or on in batches.

use crate::error::Result;
use crate::model::stacks::{Frame, FrameKind, Keep, Profile, Track};
use crate::runtimes::jit_names::{JitNames, ReadableNames};
use std::borrow::Cow;
use std::num::NonZeroUsize;

/// Takes the rows of all inputs, in their order.
pub trait Sink {
    /// The parts of rows that are kept before they get here.
    fn keep(&self) -> Keep;

    /// True if rows must come in batches, so that a recording's need not all be in memory at once.
    fn in_batches(&self) -> bool {
        false
    }

    /// Takes rows: those of an input, or a batch of them, with the tables that show what their numbers mean. Rows that
    /// it leaves are dropped.
    fn take(&mut self, rows: &mut Profile) -> Result<()>;

    /// All rows of an input were taken; the tables are those that came with them.
    fn end(&mut self, _tables: &Profile) -> Result<()> {
        Ok(())
    }
}

/// The way names of JIT code are written, by where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Naming {
    /// Names that were resolved: perf.data, perf script's text.
    pub resolved: JitNames,
    /// Names that came with the input, such as folded stacks.
    pub given: JitNames,
}

impl From<JitNames> for Naming {
    /// Wherever they come from.
    fn from(names: JitNames) -> Self {
        Self { resolved: names, given: names }
    }
}

impl Naming {
    /// The way they are written in a profile.
    pub(crate) fn of(self, profile: &Profile) -> JitNames {
        if profile.perf_names { self.resolved } else { self.given }
    }
}

/// All rows in one profile: as sums, or each in order of time.
#[derive(Debug)]
pub struct Whole {
    profile: Profile,
    keep: Keep,
    naming: Naming,
    is_empty: bool,
    /// The number of the next input, where rows of several inputs are kept apart.
    input: Option<u32>,
}

impl Whole {
    /// No rows yet.
    pub fn new(keep: Keep, naming: Naming) -> Self {
        Self { profile: Profile::keeping(keep), keep, naming, is_empty: true, input: None }
    }

    /// The same, with the number of its input in the track of each row.
    pub fn by_input(keep: Keep, naming: Naming) -> Self {
        Self { input: Some(0), ..Self::new(keep, naming) }
    }

    /// The profile that was taken.
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
        let names = self.naming.of(rows);
        let first = std::mem::take(&mut self.is_empty);
        if names == JitNames::Raw {
            if first {
                self.profile = std::mem::take(rows)
            } else {
                self.profile.merge(rows)
            }
            return Ok(());
        }
        let jit = rows.frames().filter(|(_, frame)| frame.kind == FrameKind::Jit);
        let jit = jit.map(|(_, frame)| rows.name_of(frame.name));
        let readable = ReadableNames::new(jit, names == JitNames::Merged);
        let rename = renaming(&readable);
        if first && rows.has_distinct_series() && rows.rename(rename) {
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
        FrameKind::Jit => readable.of(name),
        _ => Cow::Borrowed(name),
    }
}

/// Every row by itself, passed on in batches: memory grows with distinct stacks, not with samples.
#[derive(Debug)]
pub struct Batches<F> {
    /// The number of rows that a batch has at most.
    pub len: NonZeroUsize,
    /// Gets every batch.
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
