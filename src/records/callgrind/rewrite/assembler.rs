//! Joins rewritten chunks into a file.
//!
//! Chunks are rewritten independently, so none knows whether a new name is already defined. They contain placeholders
//! for new names, which [`Assembler`] fills in file order: an ID above all IDs of the input, followed by the name at
//! its first use. KCachegrind forgets all IDs at the headers of a part of the dump, so names are defined again there.

use super::draft::{Piece, RewrittenChunk};
use super::index::FileIndex;
use super::jit_functions::JitFunctions;
use super::stats::EntrySet;
use crate::error::{Error, Result};
use crate::records::callgrind::grammar::{IdSpace, push_id, same_name};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::io::{ErrorKind, IoSlice, Write};

/// Output is collected up to about this many bytes, or up to [`MOST_PARTS`] ranges of the input, and then written in
/// one system call.
const AT_ONCE: usize = 3 << 15;
const MOST_PARTS: usize = 500;

/// Writes the chunks of a file. They must come in order.
pub struct Assembler<'a> {
    jit: &'a dyn JitFunctions,
    last_ids: [u32; 3],
    /// New names by ID space; the index is an [`IdSpace`].
    names: [AddedNames<'a>; 3],
    /// For each JIT function, the index of its name in `names`; [`NOT_YET`] if it has none.
    entries: Vec<AddedName>,
    dropped: DroppedIds,
    /// Number of headers so far at which readers forget all IDs.
    era: u32,
    /// New text that isn't written yet.
    buffer: Vec<u8>,
    /// Ranges of the input to insert into `buffer`, each with its position there.
    parts: Vec<(usize, &'a [u8])>,
    /// Total length of `parts` in bytes.
    in_parts: usize,
}

impl std::fmt::Debug for Assembler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembler").field("last_ids", &self.last_ids).finish_non_exhaustive()
    }
}

/// Names in one ID namespace that are added because the input doesn't have them.
#[derive(Debug, Default)]
struct AddedNames<'a> {
    names: Vec<NewName<'a>>,
    /// Hash table for finding a name; holds indices into `names`.
    indices: HashTable<AddedName>,
    /// The name used last, which is usually needed again.
    last: Option<AddedName>,
}

/// Index into [`AddedNames::names`].
type AddedName = u32;

#[derive(Debug)]
struct NewName<'a> {
    name: Cow<'a, [u8]>,
    id: u32,
    /// The [`Assembler::era`] in which the name was last written next to its ID.
    era: u32,
}

fn hash(name: &[u8]) -> u64 {
    FxBuildHasher.hash_one(name)
}

impl<'a> Assembler<'a> {
    /// Creates an assembler. New IDs start above those of the file.
    pub fn new(index: &FileIndex<'_>, jit: &'a dyn JitFunctions) -> Self {
        let mut names: [AddedNames<'a>; 3] = Default::default();
        // Roughly this many functions will get a name.
        let functions = &mut names[IdSpace::Function as usize];
        let expected = index.unknown_functions().len();
        functions.names.reserve(expected);
        functions.indices.reserve(expected, |_| 0);
        Self {
            jit,
            last_ids: index.max_ids,
            names,
            entries: Vec::new(),
            dropped: DroppedIds::default(),
            era: 0,
            buffer: Vec::with_capacity(AT_ONCE),
            parts: Vec::with_capacity(MOST_PARTS),
            in_parts: 0,
        }
    }

    /// Writes the next chunk. A new name is written in full at its first use, and as an ID after that.
    pub fn write(&mut self, chunk: &RewrittenChunk<'a>, out: &mut dyn Write) -> Result<()> {
        let mut written = 0;
        for piece in &chunk.pieces {
            if self.buffer.len() + self.in_parts >= AT_ONCE || self.parts.len() == MOST_PARTS {
                self.flush(out)?;
            }
            match piece {
                Piece::Own(end) => {
                    self.buffer.extend_from_slice(&chunk.own[written..*end]);
                    written = *end;
                }
                Piece::Input(bytes) => {
                    self.parts.push((self.buffer.len(), bytes));
                    self.in_parts += bytes.len();
                }
                Piece::Object(name) => self.put_shared(IdSpace::Object, name)?,
                Piece::File(name) => self.put_shared(IdSpace::File, name)?,
                Piece::Jit(entry, tail) => self.put_code(*entry, tail)?,
                Piece::Callee(entry, tail) => {
                    self.buffer.extend_from_slice(b"cob=");
                    self.put_shared(IdSpace::Object, self.jit.object())?;
                    self.buffer.extend_from_slice(b"\ncfi=");
                    self.put_shared(IdSpace::File, self.jit.file(*entry))?;
                    self.buffer.extend_from_slice(b"\ncfn=");
                    self.put_code(*entry, tail)?;
                    self.buffer.push(b'\n');
                }
                Piece::Function(name) => {
                    let added = self.add_name(IdSpace::Function, name, || Cow::Owned(name.to_vec()))?;
                    self.put_name(IdSpace::Function, added);
                }
                Piece::InputFunction(id, name) => {
                    push_id(*id, &mut self.buffer);
                    if self.dropped.remove(*id) {
                        push_name(name, &mut self.buffer);
                    }
                }
                Piece::Dropped(id) => self.dropped.insert(*id),
                Piece::Forget => self.era += 1,
            }
        }
        self.flush(out)
    }

    /// Writes everything collected so far. Ranges of the input are written from the input's memory; copying them first
    /// would double the time.
    fn flush(&mut self, out: &mut dyn Write) -> Result<()> {
        let mut slices = Vec::with_capacity(2 * self.parts.len() + 1);
        let mut done = 0;
        for (place, part) in &self.parts {
            slices.extend([IoSlice::new(&self.buffer[done..*place]), IoSlice::new(part)]);
            done = *place;
        }
        slices.push(IoSlice::new(&self.buffer[done..]));
        let mut left = &mut slices[..];
        // Removes empty slices at the front.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match out.write_vectored(left) {
                Ok(0) => return Err(std::io::Error::from(ErrorKind::WriteZero).into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.buffer.clear();
        self.parts.clear();
        self.in_parts = 0;
        Ok(())
    }

    /// The number of distinct function names that were added to the file.
    pub fn functions(&self) -> usize {
        self.names[IdSpace::Function as usize].names.len()
    }

    fn put_shared(&mut self, space: IdSpace, name: &'a [u8]) -> Result<()> {
        let names = &mut self.names[space as usize];
        let added = match names.last {
            Some(last) if same_name(&names.names[last as usize].name, name) => last,
            _ => self.add_name(space, name, || Cow::Borrowed(name))?,
        };
        self.names[space as usize].last = Some(added);
        self.put_name(space, added);
        Ok(())
    }

    /// Writes the name of the JIT function `entry`, followed by the suffix `tail`, such as the recursion level `'2`.
    fn put_code(&mut self, entry: usize, tail: &[u8]) -> Result<()> {
        let name = self.jit.name(entry);
        if !tail.is_empty() {
            let name = [name, tail].concat();
            let added = self.add_name(IdSpace::Function, &name, || Cow::Owned(name.clone()))?;
            self.put_name(IdSpace::Function, added);
            return Ok(());
        }
        if self.entries.len() <= entry {
            self.entries.resize(entry + 1, NOT_YET);
        }
        if self.entries[entry] == NOT_YET {
            self.entries[entry] = self.add_name(IdSpace::Function, name, || Cow::Borrowed(name))?;
        }
        self.put_name(IdSpace::Function, self.entries[entry]);
        Ok(())
    }

    /// Finds a name, or adds it with a new ID. Returns its index. `to_cow` is only called for a new name. Fails if no
    /// ID is left.
    fn add_name(&mut self, space: IdSpace, name: &[u8], to_cow: impl FnOnce() -> Cow<'a, [u8]>) -> Result<AddedName> {
        let AddedNames { names, indices, .. } = &mut self.names[space as usize];
        let hash = hash(name);
        if let Some(index) = indices.find(hash, |index| *names[*index as usize].name == *name) {
            return Ok(*index);
        }
        let last = &mut self.last_ids[space as usize];
        let Some(id) = last.checked_add(1) else {
            let message = format!("no ID is left for a new name (the largest in the file is {last})");
            return Err(Error::new(message));
        };
        *last = id;
        // There are fewer than 2^32 names, because each has an ID.
        let index = names.len() as AddedName;
        names.push(NewName { name: to_cow(), id, era: NOT_YET });
        indices.insert_unique(hash, index, |index| self::hash(&names[*index as usize].name));
        Ok(index)
    }

    /// Writes an ID, followed by the name unless it is already defined.
    fn put_name(&mut self, space: IdSpace, added: AddedName) {
        let NewName { name, id, era } = &mut self.names[space as usize].names[added as usize];
        let is_known = std::mem::replace(era, self.era) == self.era;
        push_id(*id, &mut self.buffer);
        if !is_known {
            push_name(name, &mut self.buffer);
        }
    }
}

/// Stands for an era or index that doesn't exist yet.
const NOT_YET: u32 = u32::MAX;

/// Appends a name after its ID. Line breaks become blanks because they would end the statement.
fn push_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    let start = out.len();
    out.extend_from_slice(name);
    for byte in out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}

/// IDs whose definitions were removed from the file. Optimized for IDs that count up from 1, as writers assign them.
#[derive(Debug, Default)]
struct DroppedIds {
    near: EntrySet,
    others: FxHashSet<u32>,
}

/// IDs below this are kept in a bit set of at most 8 MiB.
const NEAR: u32 = 1 << 26;

impl DroppedIds {
    fn insert(&mut self, id: u32) {
        if id < NEAR {
            self.near.insert(id as usize);
        } else {
            self.others.insert(id);
        }
    }

    /// Removes an ID. True if it was in the set.
    fn remove(&mut self, id: u32) -> bool {
        if id < NEAR { self.near.remove(id as usize) } else { self.others.remove(&id) }
    }
}
