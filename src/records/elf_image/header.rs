//! The start of an image's file: how long its parts are.

use super::target::Target;
use object::elf;
use object::write::elf::Encoder;
use std::ops::Range;

/// Program headers of an image for perf; unused ones are of type PT_NULL.
pub(super) const SEGMENTS: usize = 5;

/// Length of the build-ID note: namesz, descsz, type, "GNU\0", 20 bytes.
const NOTE: u64 = 12 + 4 + 20;

/// Encodes the parts of an ELF file for a target.
pub(super) fn encoder(target: Target) -> Encoder<object::Endianness> {
    let endian = if target.is_big() { object::Endianness::Big } else { object::Endianness::Little };
    Encoder::new(endian, target.is_64, elf::Machine(target.machine))
}

fn note_at(target: Target, segments: usize) -> u64 {
    let encoder = encoder(target);
    encoder.file_header_size() + segments as u64 * encoder.program_header_size()
}

/// The possible start of the code behind this many program headers.
pub(super) fn header_size(target: Target, segments: usize) -> u64 {
    (note_at(target, segments) + NOTE).next_multiple_of(16)
}

/// The place of the build-ID note, first section.
pub(super) fn note(target: Target, segments: usize) -> Range<u64> {
    let at = note_at(target, segments);
    at..at + NOTE
}
