//! A recording, read and named, with all that the names came from.

use crate::pipeline::recording::{Named, Resolution, Samples};
use crate::sources::Account;

/// What the causes are found in.
#[derive(Debug)]
pub(super) struct Examined<'a> {
    /// Processes, mappings, dumps, maps and files.
    pub(super) resolution: &'a Resolution<'a>,
    /// Sums of samples.
    pub(super) samples: &'a Samples,
    /// The names of their places.
    pub(super) named: &'a Named,
}

impl Examined<'_> {
    /// What became of every dump and map.
    pub(super) fn accounts(&self) -> &[Account] {
        &self.resolution.sources.accounts
    }
}
