//! The entries of a DEBUG_INFO record, decoded when somebody asks for them.

use crate::formats::cursor::{Cursor, Endian};
use crate::model::code::{Line, Lines};

/// "The same file as the entry before", instead of a name (`jitdump.h`, used by V8).
const SAME_FILE: &[u8] = b"\xff";

/// Address, line, discriminator and an empty name.
const SHORTEST: usize = 8 + 4 + 4 + 1;

/// Decodes entries: `addr u64 · line u32 · discriminator u32 · file name NUL`. Entries have no length of their own:
/// where a name holds a NUL (node 20 writes such) all that follows is nonsense, so the walk ends at the first entry
/// that lies outside the code.
pub fn decode<'data>(lines: &Lines<'data>) -> Vec<Line<'data>> {
    let endian = if lines.big_endian { Endian::Big } else { Endian::Little };
    let mut cursor = Cursor::new(lines.raw, 0, endian);
    let room = (lines.raw.len() / SHORTEST) as u64;
    let mut entries: Vec<Line<'data>> = Vec::with_capacity(lines.count.min(room) as usize);
    while (entries.len() as u64) < lines.count {
        let last_file = entries.last().map(|line| line.file);
        match entry(&mut cursor, lines, last_file) {
            Some(line) => entries.push(line),
            None => break,
        }
    }
    entries.sort_by_key(|line| line.offset);
    entries
}

fn entry<'data>(cursor: &mut Cursor<'data>, lines: &Lines<'data>, last: Option<&'data [u8]>) -> Option<Line<'data>> {
    let addr = cursor.u64("addr").ok()?;
    let line = cursor.u32("line").ok()?;
    let discriminator = cursor.u32("discriminator").ok()?;
    let name = cursor.cstr("file name").ok()?;
    let offset = addr.checked_sub(lines.base).filter(|offset| *offset <= lines.size)?;
    let file = if name == SAME_FILE { last? } else { name };
    Some(Line { offset, file, line, discriminator })
}
