//! Finds the list of registered objects in the memory of a process, whether in a core dump or a running process.

use crate::bytes::cursor::Endian;
use crate::error::Error;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Limit of entries. A program with more code than this would register few objects with many functions each.
const MOST: usize = 1 << 20;

/// Number of bytes searched at a time.
const CHUNK: usize = 1 << 16;

/// Size of a descriptor: version, action, and the addresses of two entries.
const DESCRIPTOR: usize = 24;

/// Size of an ELF header, and thus the smallest 64-bit ELF file.
const HEADER: u64 = 64;

/// The memory of a process.
pub trait Memory {
    /// The byte order.
    fn endian(&self) -> Endian;

    /// Fills a buffer with the memory from `addr` on. Returns false if not all of it can be read.
    fn read(&self, addr: u64, into: &mut [u8]) -> bool;
}

/// Reads `N` consecutive 64-bit words.
fn words<const N: usize>(memory: &impl Memory, addr: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (at, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        let addr = addr.checked_add(at as u64 * 8)?;
        memory.read(addr, &mut bytes).then_some(())?;
        *word = memory.endian().u64(bytes);
    }
    Some(words)
}

/// An entry of the list: a registered object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Address of its `jit_code_entry`.
    pub(super) addr: u64,
    /// Address of the object.
    pub(super) symfile: u64,
    /// Size of the object in bytes.
    pub(super) size: u64,
}

/// Everything that is registered.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Addresses of the descriptors. There are several if a library is loaded more than once.
    pub(super) descriptors: Vec<u64>,
    /// The entries, in list order.
    pub(super) entries: Vec<Entry>,
    /// Damage that ended a list early.
    pub(super) damage: Vec<Error>,
}

/// Searches ranges of memory for descriptors, and follows their lists.
pub(super) fn find(memory: &impl Memory, data: &[Range<u64>]) -> List {
    let mut list = List::default();
    let (mut seen, mut chunk) = (FxHashSet::default(), vec![0; CHUNK + DESCRIPTOR]);
    for (descriptor, first) in data.iter().flat_map(|range| descriptors(memory, range, &mut chunk)) {
        list.descriptors.push(descriptor);
        list.follow(memory, first, &mut seen);
    }
    list
}

/// Possible descriptors in a range: (address, address of the first entry).
fn descriptors(memory: &impl Memory, range: &Range<u64>, chunk: &mut [u8]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut at = range.start.next_multiple_of(8);
    while at < range.end {
        // Chunks overlap, so that a descriptor that begins in one chunk is read completely.
        let len = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(chunk.len());
        let bytes = &mut chunk[..len];
        if memory.read(at, bytes) {
            let starts = (0..len.saturating_sub(DESCRIPTOR - 1).min(CHUNK)).step_by(8);
            let is_one = |start: &usize| first_entry(&bytes[*start..*start + DESCRIPTOR], memory.endian());
            let candidates = starts.filter_map(|start| Some((at + start as u64, is_one(&start)?)));
            let leads = |(_, first): &(u64, u64)| leads_to_an_object(memory, *first);
            found.extend(candidates.filter(leads));
        }
        at = at.saturating_add(CHUNK as u64);
    }
    found
}

/// The first entry of a possible descriptor: it has version 1, a valid action and an entry.
fn first_entry(bytes: &[u8], endian: Endian) -> Option<u64> {
    let word = |at: usize| Some(endian.u64(*bytes.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(endian.u32(*bytes.get(at..)?.first_chunk()?));
    let (version, action) = (half(0)?, half(4)?);
    let is_entry = |addr: u64| addr != 0 && addr.is_multiple_of(8);
    let (relevant, first) = (word(8)?, word(16)?);
    let is_one = version == 1 && action <= 2 && (relevant == 0 || is_entry(relevant)) && is_entry(first);
    is_one.then_some(first)
}

fn leads_to_an_object(memory: &impl Memory, entry: u64) -> bool {
    let mut magic = [0; 5];
    words(memory, entry).is_some_and(|[_, _, symfile, size]: [u64; 4]| {
        size >= HEADER && memory.read(symfile, &mut magic) && magic == *b"\x7fELF\x02"
    })
}

impl List {
    fn follow(&mut self, memory: &impl Memory, first: u64, seen: &mut FxHashSet<u64>) {
        let mut next = first;
        while next != 0 {
            let addr = next;
            if !seen.insert(addr) {
                return self.ends(addr, "is in the list twice");
            }
            if self.entries.len() >= MOST {
                return self.ends(addr, "is over the limit");
            }
            let Some([behind, _before, symfile, size]) = words(memory, addr) else {
                return self.ends(addr, "cannot be read");
            };
            next = behind;
            // An object is read only once, even if several entries refer to it.
            if seen.insert(symfile) {
                self.entries.push(Entry { addr, symfile, size });
            }
        }
    }

    fn ends(&mut self, addr: u64, why: &str) {
        self.damage.push(Error::new(format!("the list of objects ends here: the entry at {addr:#x} {why}")));
    }
}
