//! What our own writer says beside what the protocol has words for.

/// The attribute of our scope that says how names are spelled: see [`perf_names`](crate::model::stacks::Profile::perf_names).
pub(super) const NAMES_KEY: &[u8] = b"jitgraft.names";

/// What [`NAMES_KEY`] says then.
pub(super) const PERF_NAMES: &[u8] = b"perf";

/// The attribute of our scope that says of which clock times are, if that is not the wall clock.
pub(super) const CLOCK_KEY: &[u8] = b"jitgraft.clock";

/// What [`CLOCK_KEY`] says then: the recording's own, which nobody tied to the wall clock.
pub(super) const OWN_CLOCK: &[u8] = b"recording";

/// The attribute of our scope that says how many samples were lost.
pub(super) const LOST_KEY: &[u8] = b"jitgraft.lost";

/// What the name of an event ends in whose values are the numbers of samples of another.
pub(super) const COUNTS: &str = ":samples";
