#![no_main]
//! inject, of a pprof profile: what has no name, the file with names, and that it can be read again.

use jitgraft::error::Warnings;
use jitgraft::formats::pprof;
use jitgraft::formats::unsymbolized::NamedCall;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = pprof::open_unsymbolized(bytes, &mut Warnings::new()) else { return };
    let name = |at: usize| match at % 3 {
        0 => Vec::new(),
        1 => vec![NamedCall { name: b"f\xff", file: b"a.js", line: 3 }],
        _ => vec![NamedCall { name: b"inner", file: b"", line: 0 }, NamedCall { name: b"g", file: b"", line: 1 }],
    };
    let mut out = Vec::new();
    if profile.write(&name, &mut out).is_ok() {
        assert!(pprof::open_unsymbolized(&out, &mut Warnings::new()).is_ok(), "what was read is read again");
    }
});
