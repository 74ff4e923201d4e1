//! Writers of recordings that share no code with the readers under test: jitdumps, perf.data, measureme, traces.
//!
//! The tests, the benchmarks and the fuzz targets use them.

pub(crate) mod bytes;
pub(crate) mod generated;
pub(crate) mod jitdump;
pub(crate) mod perf_data;
pub(crate) mod random;
