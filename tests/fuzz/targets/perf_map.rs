#![no_main]
//! perf map: every line form.

use jitgraft::formats::perf_map;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    let (entries, skipped) = perf_map::read(bytes);
    assert!(entries.len() as u64 + skipped.count() <= lines as u64);
    assert!(entries.iter().all(|entry| entry.start.checked_add(entry.size).is_some()));
});
