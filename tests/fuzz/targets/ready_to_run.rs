#![no_main]
//! Images of .NET with code that was compiled ahead of time: methods have begun before they end, and the names of all do
//! not grow beyond what the file can tell.

use jitgraft::resolve::symbols::ready_to_run::ReadyToRun;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(image) = ReadyToRun::read(bytes) else { return };
    assert!(image.methods.len() <= bytes.len());
    assert!(image.methods.iter().all(|method| method.start < method.end && !method.name.is_empty()));
});
