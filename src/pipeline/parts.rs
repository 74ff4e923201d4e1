//! The contents of an input's parts, put together in their order: the same as if it had been read in one.

use super::job::Job;
use crate::contract::format::ReadPieces;
use crate::error::{Result, Skipped, Warnings};
use crate::model::stacks::{Keep, Profile};

/// The parts so far.
#[derive(Debug)]
pub(super) struct Parts {
    keep: Keep,
    profile: Option<Profile>,
    skipped: Skipped,
}

impl Parts {
    /// None yet; `what` is the singular noun of the parts that may be skipped.
    pub(super) fn of(what: &'static str, keep: Keep) -> Self {
        Self { keep, profile: None, skipped: Skipped::new(what) }
    }

    /// The next one.
    pub(super) fn add(&mut self, part: Profile, skipped: Skipped) {
        self.skipped.append(skipped);
        match &mut self.profile {
            Some(profile) => profile.merge(&part),
            none => *none = Some(part),
        }
    }

    /// All of them. Where something was skipped and nothing is left, that is an error.
    pub(super) fn into_profile(self, warnings: &mut Warnings) -> Result<Profile> {
        let profile = self.profile.unwrap_or_else(|| Profile::keeping(self.keep));
        let is_empty = profile.series.iter().all(|series| series.rows.is_empty());
        match self.skipped.into_warning() {
            Some(skipped) if is_empty => Err(skipped.into_error()),
            skipped => {
                warnings.extend(skipped);
                Ok(profile)
            }
        }
    }
}

/// Reads an input of pieces side by side.
pub(super) fn read(input: &dyn ReadPieces, keep: Keep, job: &Job, warnings: &mut Warnings) -> Result<Profile> {
    let mut parts = Parts::of(input.what(), keep);
    let make = |piece| {
        let mut skipped = Skipped::new(input.what());
        (input.read(piece, &mut skipped), skipped)
    };
    // Readers of many small inputs start no threads for each.
    let mut add = |(profile, skipped)| parts.add(profile, skipped);
    match input.count() {
        1 => add(make(0)),
        count => job.pool.each(0..count, make, add),
    }
    parts.into_profile(warnings)
}
