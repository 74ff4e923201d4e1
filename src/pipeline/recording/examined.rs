//! A recording, read and named, with all that the names came from: for those who ask for more than stacks.

use super::named::Named;
use super::resolution::Resolution;
use super::samples::Samples;
use crate::sources::Account;

/// What is known of a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examined<'a> {
    /// Processes, mappings, dumps, maps and files.
    pub(crate) resolution: &'a Resolution<'a>,
    /// Samples: each, or sums.
    pub(crate) samples: &'a Samples,
    /// The names of their places.
    pub(crate) named: &'a Named,
    /// How many bytes the input has, unpacked.
    pub(crate) input_len: u64,
}

impl Examined<'_> {
    /// What became of every dump and map.
    pub(crate) fn accounts(&self) -> &[Account] {
        &self.resolution.sources.accounts
    }
}
