//! The amount of memory that a test grants the program.

use object::{Object, ObjectSegment};

/// The part of the address space the program takes before it does anything, in KiB. It that is unoptimized, and grows
/// with what is built in: a limit counts from there.
pub(crate) fn loaded_kib() -> u64 {
    let program = std::fs::read(env!("CARGO_BIN_EXE_jitgraft")).unwrap();
    let file = object::File::parse(&*program).unwrap();
    file.segments().map(|segment| segment.size()).sum::<u64>() / 1024
}
