//! Decodes the `scopes` of a source map. It is a list of items, each with a tag and VLQ numbers, most of which are
//! relative to earlier ones.
//!
//! ```text
//! BHAAA   scope of an authored file starts: flags, lines, columns, [name], [kind]
//! CCB     it ends: lines, columns
//! FGAAA   range of the script starts: flags, [lines], columns, [index of its scope]
//! GBB     it ends: [lines], columns
//! ```
//!
//! The trees of scopes come first, one per authored file; an empty item stands for a file without scopes. Variables,
//! bindings, calls and items of later versions are skipped.
//!
//! <https://github.com/tc39/ecma426/blob/main/proposals/scopes.md>

use super::vlq;
use crate::error::{Error, Result};
use crate::model::script_map::{NONE, Place};
use crate::model::script_scopes::{AuthoredScope, FunctionRange, ScriptScopes};

/// Bits in the flags of an authored scope.
const HAS_NAME: u64 = 1;
const HAS_KIND: u64 = 2;
/// Bits in the flags of a range of the script.
const HAS_LINE: u64 = 1;
const HAS_DEFINITION: u64 = 2;
const IS_HIDDEN: u64 = 8;
/// A bit in the flags of authored scopes and of ranges of the script: the scope or range is a function.
const IS_FUNCTION: u64 = 4;

/// Decodes the scopes of a map, or of a section of one. `start` is where the code of the map or section begins in the
/// script. `names` is how many names the map or section has; an index of a name that doesn't exist is an error.
pub(super) fn read(text: &str, names: usize, start: Place) -> Result<ScriptScopes> {
    let mut reader = ScopesReader { names, generated: start, ..ScopesReader::default() };
    for (index, item) in text.split(',').enumerate() {
        if reader.read_item(item.as_bytes()).is_none() {
            return Err(Error::new(format!("the scopes in the source map are damaged at item {index}")));
        }
    }
    Ok(reader.scopes)
}

#[derive(Default)]
struct ScopesReader {
    scopes: ScriptScopes,
    names: usize,
    /// Index of the authored file whose scopes come next.
    source: u32,
    /// Indices of the scopes that have not ended.
    open: Vec<usize>,
    /// Where the last scope started or ended in its authored file.
    authored: Place,
    /// Where the last range started or ended in the script.
    generated: Place,
    /// The index of the last scope name. The next index is relative to it.
    name: i64,
    /// The index of the authored scope to which the last range belongs. The next index is relative to it.
    definition: i64,
}

impl ScopesReader {
    /// Reads an item, whose first number says what the item is. Items of other kinds are skipped. `None` if the item is
    /// damaged.
    fn read_item(&mut self, bytes: &[u8]) -> Option<()> {
        let mut item = ScopeItem(bytes);
        match item.tag()? {
            // An empty item: the authored file has no scopes. For other files, `end_scope` moves on to the next one.
            0 => self.source = self.source.checked_add(1)?,
            1 => self.start_scope(&mut item)?,
            2 => self.end_scope(&mut item)?,
            5 => self.start_range(&mut item)?,
            6 => self.end_range(&mut item)?,
            _ => {}
        }
        Some(())
    }

    /// Reads the start of a scope in an authored file. `None` if the item is invalid.
    fn start_scope(&mut self, item: &mut ScopeItem<'_>) -> Option<()> {
        let flags = item.unsigned()?;
        self.authored = advance(self.authored, item.unsigned()?, item.unsigned()?)?;
        let name = if flags & HAS_NAME == 0 { NONE } else { self.next_name(item.signed()?)? };
        // Skip the kind, which isn't needed.
        if flags & HAS_KIND != 0 {
            item.signed()?;
        }
        let (source, start, is_function) = (self.source, self.authored, flags & IS_FUNCTION != 0);
        self.open.push(self.scopes.authored.len());
        // The end isn't known yet. `end_scope` sets it.
        self.scopes.authored.push(AuthoredScope { source, start, end: start, name, is_function });
        Some(())
    }

    fn next_name(&mut self, difference: i64) -> Option<u32> {
        self.name = self.name.checked_add(difference)?;
        u32::try_from(self.name).ok().filter(|name| (*name as usize) < self.names)
    }

    /// Reads the end of the innermost open scope. `None` if the item is invalid or no scope is open.
    fn end_scope(&mut self, item: &mut ScopeItem<'_>) -> Option<()> {
        self.authored = advance(self.authored, item.unsigned()?, item.unsigned()?)?;
        self.scopes.authored[self.open.pop()?].end = self.authored;
        // The outermost scope of a file has ended, and the next scope is in the next file.
        if self.open.is_empty() {
            (self.authored, self.source) = (Place::default(), self.source.checked_add(1)?);
        }
        Some(())
    }

    /// Reads the start of a range in the script. `None` if the item is invalid.
    fn start_range(&mut self, item: &mut ScopeItem<'_>) -> Option<()> {
        let flags = item.unsigned()?;
        let lines = if flags & HAS_LINE == 0 { 0 } else { item.unsigned()? };
        self.generated = advance(self.generated, lines, item.unsigned()?)?;
        let mut definition = NONE;
        if flags & HAS_DEFINITION != 0 {
            self.definition = self.definition.checked_add(item.signed()?)?;
            definition = u32::try_from(self.definition).ok()?;
        }
        // Only functions matter. A hidden function has no counterpart in the authored file, even if the range names
        // one.
        if flags & IS_FUNCTION != 0 {
            let definition = if flags & IS_HIDDEN == 0 { definition } else { NONE };
            self.scopes.push_range(FunctionRange { start: self.generated, definition });
        }
        Some(())
    }

    /// Reads the end of a range in the script. `None` if the item is invalid.
    fn end_range(&mut self, item: &mut ScopeItem<'_>) -> Option<()> {
        let first = item.unsigned()?;
        // If the item has only one number, it is that of columns: the range ends on the line of the last position.
        let (lines, columns) = match item.unsigned() {
            Some(columns) => (first, columns),
            None => (0, first),
        };
        // Only the starts of ranges are kept. The end matters because the next position is relative to it.
        self.generated = advance(self.generated, lines, columns)?;
        Some(())
    }
}

/// The position after `place` by this many lines and columns. If `lines` isn't 0, `columns` counts from the start of
/// the new line. `None` on overflow.
fn advance(place: Place, lines: u64, columns: u64) -> Option<Place> {
    let (lines, columns) = (u32::try_from(lines).ok()?, u32::try_from(columns).ok()?);
    let column = if lines == 0 { place.column.checked_add(columns)? } else { columns };
    Some(Place { line: place.line.checked_add(lines)?, column })
}

/// The numbers of an item that weren't read yet.
struct ScopeItem<'a>(&'a [u8]);

impl ScopeItem<'_> {
    /// Reads the tag. An empty item, which stands for a file without scopes, has the tag 0.
    fn tag(&mut self) -> Option<u64> {
        if self.0.is_empty() { Some(0) } else { self.unsigned() }
    }

    fn unsigned(&mut self) -> Option<u64> {
        vlq::unsigned(&mut self.0)
    }

    fn signed(&mut self) -> Option<i64> {
        vlq::signed(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32, column: u32) -> Place {
        Place { line, column }
    }

    /// Three files: the second has no scopes, the third has a function `g` in a function `f`. In the script, `f` starts
    /// at 0:4, `g` at 1:2, and a helper of the bundler at 1:9.
    const SCOPES: &str = "BAAA,CCA,,BAAA,BFBJA,DAC,BFBEC,CBB,CBB,CCA,FAAA,FGEE,GC,FHBCC,GD,FEE,JAAA,GB,GBA";

    #[test]
    fn functions_are_found_by_where_they_start() {
        let scopes = read(SCOPES, 2, Place::default()).unwrap();
        let names: Vec<(u32, u32, bool)> =
            scopes.authored.iter().map(|scope| (scope.source, scope.name, scope.is_function)).collect();
        assert_eq!(names, [(0, NONE, false), (2, NONE, false), (2, 0, true), (2, 1, true)]);
        assert_eq!((scopes.authored[2].start, scopes.authored[2].end), (place(1, 9), place(4, 1)));
        let function = |from, to| scopes.function(from, to).map(|scope| scope.name);
        assert_eq!(function(place(0, 0), place(0, 4)), Some(0));
        assert_eq!(function(place(0, 5), place(1, 1)), None, "none starts here");
        assert_eq!(function(place(1, 0), place(1, 2)), Some(1));
        assert_eq!(function(place(1, 3), place(1, 20)), None, "nobody wrote it");
    }

    #[test]
    fn broken_scopes_are_an_error() {
        for broken in
            ["B", "BAA", "C", "CAA", "BFAAG", "BFAAD", "F", "FBA", "FCAD", "B!AA", "Bggggggggggggg", "BAAA,CA"]
        {
            assert!(read(broken, 2, Place::default()).is_err(), "{broken}");
        }
        assert!(read("", 0, Place::default()).is_ok() && read("ZZZ,HA", 0, Place::default()).is_ok());
    }
}
