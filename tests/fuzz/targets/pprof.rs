#![no_main]
//! pprof: the fields, the tables, every sample.

use jitgraft::error::Warnings;
use jitgraft::formats::format::ReadOptions;
use jitgraft::formats::pprof;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = pprof::sniff(bytes);
    let Ok(profile) = pprof::read(bytes, &ReadOptions::default(), &mut Warnings::new()) else { return };
    assert!(profile.stack_count() <= 100 * bytes.len(), "more stacks than the file could tell");
});
