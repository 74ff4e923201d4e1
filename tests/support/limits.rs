//! How much memory a test allows the program.

use object::{Object, ObjectSegment};

/// The address space that the program needs just to be loaded, in KiB. It is large without optimization, and grows with
/// the program, so tests add their limits to it.
pub(crate) fn loaded_kib() -> u64 {
    let program = std::fs::read(env!("CARGO_BIN_EXE_jitgraft")).unwrap();
    let file = object::File::parse(&*program).unwrap();
    file.segments().map(|segment| segment.size()).sum::<u64>() / 1024
}
