//! What tests of the program share: writers of inputs, readers of outputs, ways to run it.

#[allow(dead_code, reason = "tests/tools/pages.rs drives more of it")]
pub(crate) mod browser;
pub(crate) mod effort;
pub(crate) mod frames;
pub(crate) mod generated;
pub(crate) mod hotspot_log;
pub(crate) mod interpreter;
pub(crate) mod limits;
pub(crate) mod miri;
pub(crate) mod names;
pub(crate) mod objdump;
pub(crate) mod page;
pub(crate) mod perf;
pub(crate) mod php_recording;
pub(crate) mod protobuf;
pub(crate) mod python;
pub(crate) mod random;
pub(crate) mod recordings;
pub(crate) mod runner;
// Beside the other second readers, but it is no unit test's.
#[path = "second_readers/sample_counts.rs"]
#[allow(dead_code, reason = "tests/tools need none of it")]
pub(crate) mod sample_counts;
pub(crate) mod scene;
#[allow(dead_code, reason = "unit tests need more of them")]
pub(crate) mod second_readers;
pub(crate) mod tool;
pub(crate) mod truth;
pub(crate) mod writers;

pub(crate) use writers::{bytes, jitdump, perf_data};
