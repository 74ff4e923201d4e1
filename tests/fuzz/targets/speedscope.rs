#![no_main]
//! speedscope's JSON: sampled and evented profiles.

use jitgraft::error::Warnings;
use jitgraft::formats::format::ReadOptions;
use jitgraft::formats::speedscope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = speedscope::sniff(bytes);
    let Ok(profile) = speedscope::read(bytes, &ReadOptions::default(), &mut Warnings::new()) else { return };
    assert!(profile.stack_count() <= bytes.len(), "more stacks than the file could tell");
});
