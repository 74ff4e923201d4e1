//! A recording, read and named, with all that the names came from: for those who ask for more than stacks.

use super::frame_counts;
use super::named::Named;
use super::resolution::Resolution;
use super::samples::Samples;
use crate::analysis::code_shares::CodeShares;
use crate::model::frame_counts::FrameCounts;
use crate::sources::Account;

/// The facts about a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examined<'a> {
    /// Processes, mappings, dumps, maps and files.
    pub(crate) resolution: &'a Resolution<'a>,
    /// Samples: each, or sums.
    pub(crate) samples: &'a Samples,
    /// The names of their places.
    pub(crate) named: &'a Named,
    /// The number of bytes that the input has, unpacked.
    pub(crate) input_len: u64,
}

impl Examined<'_> {
    /// The outcome for every dump and map.
    pub(crate) fn accounts(&self) -> &[Account] {
        &self.resolution.sources.accounts
    }

    /// The number of frames that have a name.
    pub(crate) fn frame_counts(&self) -> FrameCounts {
        frame_counts::count(self.samples, self.named)
    }

    /// The share of each event that ends in each kind of code.
    pub(crate) fn code_shares(&self) -> Vec<CodeShares> {
        frame_counts::code_shares(self.samples, self.named, &self.resolution.survey.recording.events)
    }
}
