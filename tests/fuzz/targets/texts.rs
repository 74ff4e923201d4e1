#![no_main]
//! Texts of profilers of other systems: each reader reads everything.

use jitgraft::error::{Result, Warnings};
use jitgraft::formats::format::ReadOptions;
use jitgraft::formats::{dtrace, ghcprof, sample, vsprof, vtune, xctrace};
use jitgraft::model::stacks::Profile;
use libfuzzer_sys::fuzz_target;

type Reader = fn(&[u8], &ReadOptions, &mut Warnings) -> Result<Profile>;

fuzz_target!(|bytes: &[u8]| {
    for (sniff, read) in [
        (dtrace::sniff as fn(&[u8]) -> bool, dtrace::read as Reader),
        (ghcprof::sniff, ghcprof::read),
        (sample::sniff, sample::read),
        (vsprof::sniff, vsprof::read),
        (vtune::sniff, vtune::read),
        (xctrace::sniff, xctrace::read),
    ] {
        let _ = sniff(bytes);
        if let Ok(profile) = read(bytes, &ReadOptions::default(), &mut Warnings::new()) {
            assert!(profile.stack_count() <= bytes.len(), "more stacks than the text could tell");
        }
    }
});
