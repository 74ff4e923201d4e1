//! Functions as a source map's scopes list them (the "scopes" proposal of ECMA-426): ranges of the script → functions of
//! the authored files, with the names that their authors gave them.

/// Instead of the number of a file or name.
pub const NONE: u32 = u32::MAX;

/// A line and a column, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in UTF-16 units.
    pub column: u32,
}

impl Place {
    /// A place whose line and column count from 1; `None` if one is 0.
    pub fn from_one(line: u32, column: u32) -> Option<Self> {
        Some(Self { line: line.checked_sub(1)?, column: column.checked_sub(1)? })
    }
}

/// The functions of one script.
#[derive(Debug, Default)]
pub struct ScriptScopes {
    /// The scopes of all authored files, in the order of the map: each before those in it.
    pub authored: Vec<AuthoredScope>,
    /// The ranges of the script that are functions, by their start.
    ranges: Vec<FunctionRange>,
}

/// A scope of an authored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthoredScope {
    /// The authored file.
    pub source: u32,
    /// Its start.
    pub start: Place,
    /// Its end.
    pub end: Place,
    /// Its name among the names of the map; [`NONE`] if it is anonymous.
    pub name: u32,
    /// True if it is a function.
    pub is_function: bool,
}

/// A function of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionRange {
    /// Its start.
    pub start: Place,
    /// The number of the scope that it was made from; [`NONE`] if a tool invented it.
    pub definition: u32,
}

impl ScriptScopes {
    /// Adds the scopes of a section, whose names and files are behind those that are here.
    pub fn append(&mut self, section: Self, first_name: u32, first_source: u32) {
        let first_scope = self.authored.len() as u32;
        let after = |number: u32, first: u32| if number == NONE { NONE } else { number.saturating_add(first) };
        self.authored.extend(section.authored.into_iter().map(|scope| AuthoredScope {
            source: scope.source.saturating_add(first_source),
            name: after(scope.name, first_name),
            ..scope
        }));
        self.ranges.extend(section.ranges.into_iter().map(|FunctionRange { start, definition }| FunctionRange {
            start,
            definition: after(definition, first_scope),
        }));
        self.ranges.sort_by_key(|range| range.start);
    }

    /// Adds a function of the script.
    pub fn push_range(&mut self, range: FunctionRange) {
        self.ranges.push(range);
    }

    /// The authored scope of the function that starts between two places of the script, if it is a function with a name.
    pub fn function(&self, from: Place, to: Place) -> Option<&AuthoredScope> {
        let before = &self.ranges[..self.ranges.partition_point(|range| range.start <= to)];
        let range = before.last().filter(|range| range.start >= from)?;
        let scope = self.authored.get(range.definition as usize)?;
        let is_innermost = |scope: &AuthoredScope| scope.is_function && scope.name != NONE;
        is_innermost(scope).then_some(scope)
    }
}
