//! The parts of recordings for tests: writers of jitdumps and perf.data files that share no code with the readers under
//! test, and generated recordings whose truth is known.

pub(crate) mod bytes;
pub(crate) mod generated;
pub(crate) mod jitdump;
pub(crate) mod perf_data;
pub(crate) mod random;
