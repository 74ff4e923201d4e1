#![no_main]
//! Our own JSON.

use jitgraft::error::Warnings;
use jitgraft::formats::format::ReadOptions;
use jitgraft::formats::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = json::sniff(bytes);
    let Ok(profile) = json::read(bytes, &ReadOptions::default(), &mut Warnings::new()) else { return };
    assert!(profile.stack_count() <= bytes.len(), "more stacks than the file could tell");
});
