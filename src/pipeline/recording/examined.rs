//! A recording, read and named, with all that the names came from: for those who ask for more than stacks.

use super::frame_counts;
use super::named::Named;
use super::resolution::Resolution;
use super::samples::Samples;
use crate::analysis::code_shares::CodeShares;
use crate::model::frame_counts::FrameCounts;
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

    /// How many frames have a name.
    pub(crate) fn frame_counts(&self) -> FrameCounts {
        frame_counts::count(self.samples, self.named)
    }

    /// How much of each event ends in what code.
    pub(crate) fn code_shares(&self) -> Vec<CodeShares> {
        frame_counts::code_shares(self.samples, self.named, &self.resolution.survey.recording.events)
    }
}
