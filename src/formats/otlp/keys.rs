//! The facts that own writer states for which the protocol has no words for.

/// The attribute of our scope that shows how names are spelled: see
/// [`perf_names`](crate::model::stacks::Profile::perf_names).
pub(super) const NAMES_KEY: &[u8] = b"jitgraft.names";

/// The value of [`NAMES_KEY`] then.
pub(super) const PERF_NAMES: &[u8] = b"perf";

/// The attribute of our scope that states about which clock times are, if that is not the wall clock.
pub(super) const CLOCK_KEY: &[u8] = b"jitgraft.clock";

/// The value of [`CLOCK_KEY`] then: the recording's own, which nobody tied to the wall clock.
pub(super) const OWN_CLOCK: &[u8] = b"recording";

/// The attribute of our scope that shows how many samples were lost.
pub(super) const LOST_KEY: &[u8] = b"jitgraft.lost";

/// The end of the name of an event whose values are the numbers of samples of another.
pub(super) const COUNTS: &str = ":samples";
