//! Puts rewritten chunks together to one file.
//!
//! Chunks are rewritten independently, so none can know whether a new name was defined before it. A chunk therefore
//! has placeholders where new names belong, and [`Assembler`] fills them in the order of the file: an id above all
//! that are in use, with the name behind it where it comes up for the first time. KCachegrind forgets all ids at the
//! headers of a part of the dump, so there they are defined anew.

use super::draft::{Placeholder, PlaceholderKind, RewrittenChunk};
use super::index::FileIndex;
use crate::error::{Error, Result};
use crate::formats::callgrind::grammar::IdSpace;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Write;

/// Writes the chunks of one file, which must come in order.
#[derive(Debug)]
pub struct Assembler {
    last_ids: [u32; 3],
    names: FxHashMap<(IdSpace, Box<[u8]>), AssignedId>,
    dropped: FxHashSet<u32>,
    /// Counts the headers at which ids are forgotten.
    era: u64,
}

#[derive(Debug, Clone, Copy)]
struct AssignedId {
    id: u32,
    era: u64,
}

impl Assembler {
    /// New ids start above those of the file.
    pub fn new(index: &FileIndex) -> Self {
        Self { last_ids: index.max_ids(), names: FxHashMap::default(), dropped: FxHashSet::default(), era: 0 }
    }

    /// Writes a chunk.
    pub fn write(&mut self, chunk: &RewrittenChunk, out: &mut dyn Write) -> Result<()> {
        let mut written = 0;
        for Placeholder { at, kind } in &chunk.placeholders {
            out.write_all(&chunk.bytes[written..*at])?;
            written = *at;
            match kind {
                PlaceholderKind::New(space, name) => self.write_new(*space, name, out)?,
                PlaceholderKind::InputFunction(id, name) if self.dropped.remove(id) => {
                    write_definition(*id, name, out)?
                }
                PlaceholderKind::InputFunction(id, _) => write!(out, "({id})")?,
                PlaceholderKind::Dropped(id) => _ = self.dropped.insert(*id),
                PlaceholderKind::Forget => self.era += 1,
            }
        }
        out.write_all(&chunk.bytes[written..])?;
        Ok(())
    }

    /// How many functions were put in.
    pub fn functions(&self) -> usize {
        self.names.keys().filter(|(space, _)| *space == IdSpace::Function).count()
    }

    fn write_new(&mut self, space: IdSpace, name: &[u8], out: &mut dyn Write) -> Result<()> {
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
        self.names.insert(key, AssignedId { id, era: self.era });
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
