//! What rewriting a part of a file yields, and how the parts become one file again.
//!
//! Parts are rewritten independently, so none can know whether a new name was defined before it. A part therefore
//! leaves gaps where new names belong, and [`Assembler`] fills them in the order of the file: an id above all that
//! are in use, with the name behind it where it comes up for the first time. KCachegrind forgets all ids at the
//! headers of a part of the dump, so there they are defined anew.

use super::Result;
use super::index::Index;
use super::line::Space;
use super::strays::Strays;
use crate::error::{Error, Skipped};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Write;

/// A rewritten part.
#[derive(Debug)]
pub struct Piece {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
    /// What was done in it.
    pub done: Done,
}

/// What was done, in figures.
#[derive(Debug)]
pub struct Done {
    /// Blocks of code in unknown memory that were named or taken apart.
    pub blocks: u64,
    /// Of these, blocks that had code of several functions.
    pub split: u64,
    /// Calls made up to keep inclusive costs.
    pub synthetic_calls: u64,
    /// Self cost that was named, of the first event.
    pub named_cost: u64,
    /// Self cost in unknown memory that stays without a name, of the first event.
    pub unnamed_cost: u64,
    /// Functions with self cost that were named: their numbers in [`super::Grafts`].
    pub functions: FxHashSet<usize>,
    /// Costs of named code in functions of known objects, which stay there.
    pub strays: Strays,
    /// Blocks that could not be decoded and are passed on as they are.
    pub skipped: Skipped,
}

impl Default for Done {
    fn default() -> Self {
        let skipped = Skipped::new("callgrind block");
        Self {
            blocks: 0,
            split: 0,
            synthetic_calls: 0,
            named_cost: 0,
            unnamed_cost: 0,
            functions: FxHashSet::default(),
            strays: Strays::default(),
            skipped,
        }
    }
}

impl Done {
    /// Adds what was done in a later part.
    pub fn append(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.split += other.split;
        self.synthetic_calls += other.synthetic_calls;
        self.named_cost = self.named_cost.saturating_add(other.named_cost);
        self.unnamed_cost = self.unnamed_cost.saturating_add(other.unnamed_cost);
        self.functions.extend(other.functions);
        self.strays.append(other.strays);
        self.skipped.append(other.skipped);
    }
}

#[derive(Debug)]
struct Gap {
    at: usize,
    kind: Fill,
}

#[derive(Debug)]
enum Fill {
    /// A new name.
    New(Space, Box<[u8]>),
    /// A function of the input whose definition may have gone with the block that held it.
    Old(u32, Box<[u8]>),
    /// The definition of that function was in a statement that is gone.
    Dropped(u32),
    /// Ids mean nothing from here on.
    Forget,
}

/// A part under way.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) bytes: Vec<u8>,
    gaps: Vec<Gap>,
}

impl Draft {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn gap(&mut self, kind: Fill) {
        self.gaps.push(Gap { at: self.bytes.len(), kind });
    }

    pub(super) fn new_name(&mut self, space: Space, name: &[u8]) {
        self.gap(Fill::New(space, name.into()));
    }

    pub(super) fn old_function(&mut self, id: u32, name: &[u8]) {
        self.gap(Fill::Old(id, name.into()));
    }

    pub(super) fn dropped_function(&mut self, id: u32) {
        self.gap(Fill::Dropped(id));
    }

    pub(super) fn forget_ids(&mut self) {
        self.gap(Fill::Forget);
    }

    pub(super) fn finish(self, done: Done) -> Piece {
        Piece { bytes: self.bytes, gaps: self.gaps, done }
    }
}

/// Puts parts together. They must come in order.
#[derive(Debug)]
pub struct Assembler {
    last_ids: [u32; 3],
    names: FxHashMap<(Space, Box<[u8]>), Assigned>,
    dropped: FxHashSet<u32>,
    /// Counts the headers at which ids are forgotten.
    era: u64,
}

#[derive(Debug, Clone, Copy)]
struct Assigned {
    id: u32,
    era: u64,
}

impl Assembler {
    /// New ids start above those of the file.
    pub fn new(index: &Index) -> Self {
        Self { last_ids: index.max_ids(), names: FxHashMap::default(), dropped: FxHashSet::default(), era: 0 }
    }

    /// Writes a part.
    pub fn write(&mut self, piece: &Piece, out: &mut dyn Write) -> Result<()> {
        let mut written = 0;
        for Gap { at, kind } in &piece.gaps {
            out.write_all(&piece.bytes[written..*at])?;
            written = *at;
            match kind {
                Fill::New(space, name) => self.write_new(*space, name, out)?,
                Fill::Old(id, name) if self.dropped.remove(id) => write_definition(*id, name, out)?,
                Fill::Old(id, _) => write!(out, "({id})")?,
                Fill::Dropped(id) => _ = self.dropped.insert(*id),
                Fill::Forget => self.era += 1,
            }
        }
        out.write_all(&piece.bytes[written..])?;
        Ok(())
    }

    /// How many functions were put in.
    pub fn functions(&self) -> usize {
        self.names.keys().filter(|(space, _)| *space == Space::Function).count()
    }

    fn write_new(&mut self, space: Space, name: &[u8], out: &mut dyn Write) -> Result<()> {
        // Looked up by a key of its own: the map cannot be asked by a pair of borrowed parts.
        let key = (space, Box::from(name));
        if let Some(assigned) = self.names.get_mut(&key) {
            let id = assigned.id;
            if assigned.era == self.era {
                return Ok(write!(out, "({id})")?);
            }
            assigned.era = self.era;
            return write_definition(id, name, out);
        }
        let last = &mut self.last_ids[space as usize];
        let id = last
            .checked_add(1)
            .ok_or_else(|| Error::new(format!("no id is left for a new name: the largest in the file is {last}")))?;
        *last = id;
        self.names.insert(key, Assigned { id, era: self.era });
        write_definition(id, name, out)
    }
}

/// A line feed in a name would end the statement.
fn write_definition(id: u32, name: &[u8], out: &mut dyn Write) -> Result<()> {
    write!(out, "({id}) ")?;
    let mut parts = name.split(|&byte| byte == b'\n' || byte == b'\r');
    out.write_all(parts.next().unwrap_or_default())?;
    for part in parts {
        out.write_all(b" ")?;
        out.write_all(part)?;
    }
    Ok(())
}
