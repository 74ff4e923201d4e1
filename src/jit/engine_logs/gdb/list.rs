//! Finds the list of registered objects in the memory of a process, whether in a core dump or a running process.

use crate::bytes::cursor::Endian;
use crate::error::Error;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Limit for the number of entries. A program with more JIT code than this would register few objects with many
/// functions each.
const MOST_ENTRIES: usize = 1 << 20;

/// Number of bytes searched at a time.
const CHUNK: usize = 1 << 16;

/// Size of a descriptor: version, action, and the addresses of two entries.
pub(super) const DESCRIPTOR: usize = 24;

/// Size of an ELF header, and thus the smallest 64-bit ELF file.
const HEADER: u64 = 64;

/// Access to the memory of a process, whether in a core dump or a running process.
pub trait Memory {
    /// The byte order.
    fn endian(&self) -> Endian;

    /// Fills a buffer with the memory from `addr` on. Returns false if not all of it can be read.
    fn read(&self, addr: u64, into: &mut [u8]) -> bool;
}

/// Reads `N` consecutive 64-bit words of a process's memory; `None` if not all of them can be read.
fn words<const N: usize>(memory: &impl Memory, addr: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (index, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        let addr = addr.checked_add(index as u64 * 8)?;
        if !memory.read(addr, &mut bytes) {
            return None;
        }
        *word = memory.endian().u64(bytes);
    }
    Some(words)
}

/// An entry of the list: a registered object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Address of the entry's `jit_code_entry`.
    pub(super) addr: u64,
    /// Address of the object.
    pub(super) symfile: u64,
    /// Size of the object in bytes.
    pub(super) size: u64,
}

/// Everything that a process has registered through GDB's JIT interface.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Addresses of the descriptors. There are several if a library is loaded more than once.
    pub(super) descriptors: Vec<u64>,
    /// The entries, in list order.
    pub(super) entries: Vec<Entry>,
    /// Damage that ended the reading of a list early.
    pub(super) damage: Vec<Error>,
}

/// Searches these ranges of a process's data for descriptors of GDB's JIT interface, and follows the list of objects
/// that begins at each.
pub(super) fn find(memory: &impl Memory, data: &[Range<u64>]) -> List {
    let mut list = List::default();
    // Addresses of the entries and objects so far, so that a list that runs in a circle ends, and no entry or object is
    // read twice.
    let mut seen = FxHashSet::default();
    let mut chunk = vec![0; CHUNK + DESCRIPTOR];
    for range in data {
        for descriptor in find_descriptors(memory, range, &mut chunk) {
            list.descriptors.push(descriptor.addr);
            list.follow(memory, descriptor.first_entry, &mut seen);
        }
    }
    list
}

/// A `jit_descriptor` in memory.
struct Descriptor {
    addr: u64,
    /// Address of the first entry.
    first_entry: u64,
}

/// Finds descriptors in a range of memory; only those count whose first entry refers to an object. `chunk` is scratch
/// memory.
fn find_descriptors(memory: &impl Memory, range: &Range<u64>, chunk: &mut [u8]) -> Vec<Descriptor> {
    let mut descriptors = Vec::new();
    let mut chunk_start = range.start.next_multiple_of(8);
    while chunk_start < range.end {
        // Chunks overlap, so that a descriptor that begins in one chunk is read completely.
        let len = usize::try_from(range.end - chunk_start).unwrap_or(usize::MAX).min(chunk.len());
        let bytes = &mut chunk[..len];
        if memory.read(chunk_start, bytes) {
            // Descriptors that begin at `CHUNK` or later are found in the next chunk.
            let offsets = (0..len.saturating_sub(DESCRIPTOR - 1).min(CHUNK)).step_by(8);
            for offset in offsets {
                let bytes = &bytes[offset..offset + DESCRIPTOR];
                if let Some(first_entry) = parse_descriptor(bytes, memory.endian())
                    && leads_to_object(memory, first_entry)
                {
                    descriptors.push(Descriptor { addr: chunk_start + offset as u64, first_entry });
                }
            }
        }
        chunk_start = chunk_start.saturating_add(CHUNK as u64);
    }
    descriptors
}

/// Returns the address of the first entry if these bytes can be a descriptor: version 1, a valid action, and an entry.
fn parse_descriptor(bytes: &[u8], endian: Endian) -> Option<u64> {
    let version = endian.u32(*bytes.first_chunk()?);
    let action = endian.u32(*bytes.get(4..)?.first_chunk()?);
    let relevant = endian.u64(*bytes.get(8..)?.first_chunk()?);
    let first = endian.u64(*bytes.get(16..)?.first_chunk()?);
    let is_entry = |addr: u64| addr != 0 && addr.is_multiple_of(8);
    let is_descriptor = version == 1 && action <= 2 && (relevant == 0 || is_entry(relevant)) && is_entry(first);
    is_descriptor.then_some(first)
}

/// True if the list entry at this address refers to a 64-bit ELF file.
fn leads_to_object(memory: &impl Memory, entry: u64) -> bool {
    let Some([_next, _previous, symfile, size]) = words(memory, entry) else { return false };
    let mut magic = [0; 5];
    size >= HEADER && memory.read(symfile, &mut magic) && magic == *b"\x7fELF\x02"
}

impl List {
    /// Adds the entries of the list whose first entry is at the address `first`. `seen` holds the addresses of all
    /// entries and objects so far.
    fn follow(&mut self, memory: &impl Memory, first: u64, seen: &mut FxHashSet<u64>) {
        let mut addr = first;
        while addr != 0 {
            if !seen.insert(addr) {
                return self.add_damage(addr, "occurs in the list twice");
            }
            if self.entries.len() >= MOST_ENTRIES {
                return self.add_damage(addr, &format!("is beyond the limit of {MOST_ENTRIES} entries"));
            }
            let Some([next, _previous, symfile, size]) = words(memory, addr) else {
                return self.add_damage(addr, "cannot be read");
            };
            // An object is read only once, even if several entries refer to it.
            // Entries and objects share `seen`, because they can't be at the same address.
            if seen.insert(symfile) {
                self.entries.push(Entry { addr, symfile, size });
            }
            addr = next;
        }
    }

    fn add_damage(&mut self, addr: u64, why: &str) {
        self.damage.push(Error::new(format!(
            "the list of registered objects was read only up to the entry at {addr:#x}, which {why}"
        )));
    }
}
