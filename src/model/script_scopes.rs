//! The functions that a source map lists (the "scopes" proposal for ECMA-426). The list says which ranges of the script
//! are which functions in the authored files, and what their authors called them.

/// Means "no file" or "no name" where an index is expected.
pub const NONE: u32 = u32::MAX;

/// A position in a text. Line and column count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in UTF-16 units.
    pub column: u32,
}

impl Place {
    /// Converts a line and column that count from 1. `None` if either is 0.
    pub fn from_one(line: u32, column: u32) -> Option<Self> {
        Some(Self { line: line.checked_sub(1)?, column: column.checked_sub(1)? })
    }
}

/// The functions of one script.
#[derive(Debug, Default)]
pub struct ScriptScopes {
    /// The scopes in all authored files, in the source map's order: each comes before the scopes nested in it.
    pub authored: Vec<AuthoredScope>,
    /// The ranges of the script that are functions, sorted by start.
    ranges: Vec<FunctionRange>,
}

/// A scope in an authored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthoredScope {
    /// Index of the authored file.
    pub source: u32,
    /// Where the scope starts.
    pub start: Place,
    /// Where the scope ends.
    pub end: Place,
    /// Index into the source map's names; [`NONE`] if the scope is anonymous.
    pub name: u32,
    /// True if the scope is a function.
    pub is_function: bool,
}

/// A range of the script that is a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionRange {
    /// Where the range starts.
    pub start: Place,
    /// The index of the scope in [`ScriptScopes::authored`] that the range was generated from; [`NONE`] if a tool made
    /// up the function.
    pub definition: u32,
}

impl ScriptScopes {
    /// Appends the scopes of one section of an index map, a source map that consists of several. `first_name` and
    /// `first_source` are where the section's names and files start in the lists of the whole map.
    pub fn append(&mut self, section: Self, first_name: u32, first_source: u32) {
        let first_scope = self.authored.len() as u32;
        for mut scope in section.authored {
            scope.source = scope.source.saturating_add(first_source);
            scope.name = shift_index(scope.name, first_name);
            self.authored.push(scope);
        }
        for mut range in section.ranges {
            range.definition = shift_index(range.definition, first_scope);
            self.ranges.push(range);
        }
        self.ranges.sort_by_key(|range| range.start);
    }

    /// Appends a range of the script.
    pub fn push_range(&mut self, range: FunctionRange) {
        self.ranges.push(range);
    }

    /// The authored scope of a function in the script that starts between `from` and `to`, both included. If several
    /// do, the last one. `None` if none does, or if the scope isn't a function with a name.
    pub fn function(&self, from: Place, to: Place) -> Option<&AuthoredScope> {
        let ranges = &self.ranges[..self.ranges.partition_point(|range| range.start <= to)];
        let range = ranges.last().filter(|range| range.start >= from)?;
        let scope = self.authored.get(range.definition as usize)?;
        if scope.is_function && scope.name != NONE { Some(scope) } else { None }
    }
}

/// Adds `first` to an index; [`NONE`] stays.
fn shift_index(index: u32, first: u32) -> u32 {
    if index == NONE { NONE } else { index.saturating_add(first) }
}
