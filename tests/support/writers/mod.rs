//! Writers of recordings that share no code with the readers under test. Tests, benchmarks and fuzz targets use them.

pub(crate) mod bytes;
pub(crate) mod jitdump;
pub(crate) mod perf_data;
