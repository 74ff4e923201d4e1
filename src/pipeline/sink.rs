//! Where the rows of a profile go: into a sum, in order of time, or on in batches.

use crate::error::Result;
use crate::model::jit_names;
use crate::model::stacks::{Frame, FrameKind, Keep, Profile};
use std::borrow::Cow;
use std::num::NonZeroUsize;

/// Takes the rows of all inputs, in their order.
pub trait Sink {
    /// What is kept of the rows before they get here.
    fn keep(&self) -> Keep;

    /// Whether rows shall come in batches, so that a recording's need not all be in memory at once.
    fn in_batches(&self) -> bool {
        false
    }

    /// Takes rows: those of an input, or a batch of them, with the tables that say what their numbers mean. Rows
    /// that it leaves are dropped.
    fn take(&mut self, rows: &mut Profile) -> Result<()>;
}

/// All rows in one profile: as sums, or each in order of time.
#[derive(Debug)]
pub struct Whole {
    profile: Profile,
    keep: Keep,
    pretty_jit_names: bool,
    is_empty: bool,
}

impl Whole {
    /// No rows yet.
    pub fn new(keep: Keep, pretty_jit_names: bool) -> Self {
        Self { profile: Profile::keeping(keep), keep, pretty_jit_names, is_empty: true }
    }

    /// What was taken.
    pub fn into_profile(self) -> Profile {
        self.profile
    }
}

impl Sink for Whole {
    fn keep(&self) -> Keep {
        self.keep
    }

    fn take(&mut self, rows: &mut Profile) -> Result<()> {
        if std::mem::take(&mut self.is_empty) && !self.pretty_jit_names {
            self.profile = std::mem::take(rows);
            return Ok(());
        }
        self.profile.merge_renamed(rows, |frame, name| renamed(frame, name, self.pretty_jit_names));
        Ok(())
    }
}

fn renamed<'n>(frame: &Frame, name: &'n [u8], pretty_jit_names: bool) -> Cow<'n, [u8]> {
    match frame.kind {
        FrameKind::Jit if pretty_jit_names => jit_names::pretty(name),
        _ => Cow::Borrowed(name),
    }
}

/// Every row by itself, passed on in batches: memory grows with distinct stacks, not with samples.
#[derive(Debug)]
pub struct Batches<F> {
    /// How many rows a batch has at most.
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
