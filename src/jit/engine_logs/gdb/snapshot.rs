//! Makes a small core dump of a running process, with only what it registered through GDB's JIT interface.

use super::list::{self, DESCRIPTOR, Memory};
use super::symfile::Symfile;
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use object::elf;
use std::ops::Range;

/// Memory is copied in whole pages.
const PAGE: u64 = 4096;

/// How much memory is copied at most, in bytes.
const MOST: u64 = 256 << 20;

/// The size of an entry of a list, `struct jit_code_entry`, in bytes.
const ENTRY: u64 = 32;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// The process to copy.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotProcess {
    /// The process ID in the process's own PID namespace.
    pub pid: i32,
    /// ELF `e_machine` of the process's program.
    pub machine: u16,
}

/// Makes a core dump of everything that was registered: the descriptors in the address ranges `data`, their lists, the
/// objects and their machine code. `None` if no object has a function, because then some data only looked like a
/// descriptor.
pub fn snapshot(memory: &impl Memory, data: &[Range<u64>], process: SnapshotProcess) -> Option<Vec<u8>> {
    let list = list::find(memory, data);
    let mut has_code = false;
    let mut pages = MemoryPages { ranges: Vec::new(), bytes_left: MOST };
    for addr in &list.descriptors {
        pages.add(*addr, DESCRIPTOR as u64);
    }
    // The small entries of all lists come first, so that large objects don't use up the room for them.
    for entry in &list.entries {
        pages.add(entry.addr, ENTRY);
    }
    for entry in &list.entries {
        // Leave out objects with which the snapshot would become too large.
        if entry.size > pages.bytes_left {
            continue;
        }
        pages.add(entry.symfile, entry.size);
        let mut object = vec![0; entry.size as usize];
        if !memory.read(entry.symfile, &mut object) {
            continue;
        }
        let Ok(symfile) = Symfile::parse(&object, process.machine) else { continue };
        let functions = symfile.functions();
        has_code |= !functions.is_empty();
        for function in &functions {
            pages.add(function.addr, function.size);
        }
    }
    if !has_code {
        return None;
    }
    Some(write_core(memory, pages.merge(), &list.descriptors, process))
}

/// The memory pages to copy into the core dump.
struct MemoryPages {
    ranges: Vec<Range<u64>>,
    /// How many more bytes may be added.
    bytes_left: u64,
}

impl MemoryPages {
    /// Adds the pages that contain these bytes, unless the snapshot would become too large.
    fn add(&mut self, addr: u64, len: u64) {
        let start = addr / PAGE * PAGE;
        let end = addr.checked_add(len).and_then(|end| end.checked_next_multiple_of(PAGE));
        let Some(end) = end.filter(|end| end - start <= self.bytes_left) else { return };
        // Consecutive requests are usually for the same pages, so only the last range is compared. `merge` removes all
        // other overlaps.
        if self.ranges.last().is_some_and(|last| last.start <= start && end <= last.end) {
            return;
        }
        self.bytes_left -= end - start;
        self.ranges.push(start..end);
    }

    /// The ranges to copy, sorted and without overlaps.
    fn merge(mut self) -> Vec<Range<u64>> {
        self.ranges.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in self.ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }
}

/// Writes a program header. `file` is the segment's range in the file.
fn write_program_header(out: &mut ByteWriter, kind: elf::ProgramType, flags: u32, addr: u64, file: Range<usize>) {
    let (offset, size) = (file.start as u64, file.len() as u64);
    out.u32(kind.0).u32(flags).u64(offset).u64(addr).u64(0).u64(size).u64(size).u64(1);
}

/// Writes a core dump with these parts of a process's memory: the ELF header, the program headers, a note with the
/// process ID, and the memory. `descriptors` are the addresses of GDB's JIT descriptors. Segments with one of them are
/// marked as writable, because readers look for descriptors only there.
fn write_core(memory: &impl Memory, ranges: Vec<Range<u64>>, descriptors: &[u64], process: SnapshotProcess) -> Vec<u8> {
    /// Size of `struct elf_prpsinfo` in 64-bit processes.
    const PRPSINFO: usize = 136;
    /// Size of the note: its header, its padded name and its contents.
    const NOTE: usize = 12 + 8 + PRPSINFO;
    let mut segments = Vec::new();
    for range in ranges {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        // Memory that disappeared in the meantime is left out.
        if memory.read(range.start, &mut bytes) {
            segments.push((range, bytes));
        }
    }
    // The header can't count more segments. Real lists don't need so many.
    segments.truncate(0xfff0);
    // One more than memory segments: the note has a program header, too.
    let header_count = segments.len() + 1;
    let mut out = ByteWriter::new(memory.endian());
    let data = if memory.endian() == Endian::Little { elf::ELFDATA2LSB.0 } else { elf::ELFDATA2MSB.0 };
    // e_ident: magic bytes, class, byte order, version 1, padding
    out.bytes(&[0x7f, b'E', b'L', b'F', elf::ELFCLASS64.0, data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // e_type, e_machine, e_version, e_entry, e_phoff, e_shoff, e_flags
    out.u16(elf::ET_CORE.0).u16(process.machine).u32(1).u64(0).u64(HEADER as u64).u64(0).u32(0);
    // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    out.u16(HEADER as u16).u16(PROGRAM_HEADER as u16).u16(header_count as u16).u16(0).u16(0).u16(0);
    let mut offset = HEADER + header_count * PROGRAM_HEADER;
    write_program_header(&mut out, elf::PT_NOTE, 0, 0, offset..offset + NOTE);
    offset += NOTE;
    for (range, bytes) in &segments {
        let has_descriptor = descriptors.iter().any(|addr| range.contains(addr));
        let flags = if has_descriptor { elf::PF_R.0 | elf::PF_W.0 } else { elf::PF_R.0 };
        write_program_header(&mut out, elf::PT_LOAD, flags, range.start, offset..offset + bytes.len());
        offset += bytes.len();
    }
    // The note: the length of its name, the length of its contents, its type, and its name.
    out.u32(5).u32(PRPSINFO as u32).u32(elf::NT_PRPSINFO.0).bytes(b"CORE\0\0\0\0");
    // In `elf_prpsinfo`, `pr_pid` comes after 24 bytes that aren't needed.
    out.bytes(&[0; 24]).u32(process.pid.cast_unsigned()).bytes(&[0; PRPSINFO - 28]);
    for (_, bytes) in &segments {
        out.bytes(bytes);
    }
    out.finish()
}
