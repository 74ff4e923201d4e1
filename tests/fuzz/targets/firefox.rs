#![no_main]
//! Firefox's processed profile: tables that refer to each other.

use jitgraft::error::Warnings;
use jitgraft::formats::format::ReadOptions;
use jitgraft::formats::firefox;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = firefox::sniff(bytes);
    let Ok(profile) = firefox::read(bytes, &ReadOptions::default(), &mut Warnings::new()) else { return };
    assert!(profile.stack_count() <= bytes.len(), "more stacks than the file could tell");
});
