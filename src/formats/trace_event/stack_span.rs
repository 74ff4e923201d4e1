//! Spans that stacks become, before they are events.

use crate::model::stacks::{FrameId, Profile, Weight};

/// The parts of an event that are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writing<'p> {
    pub(super) profile: &'p Profile,
    pub(super) weight: Weight,
    /// True if weights are nanoseconds.
    pub(super) counts_time: bool,
    /// The time that a sample gets that counts no time.
    pub(super) stretch: i64,
}

/// One span of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackSpan {
    pub(super) frame: FrameId,
    pub(super) start: i64,
    pub(super) duration: i64,
    pub(super) samples: u64,
    pub(super) weight: u64,
}
