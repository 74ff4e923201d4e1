//! A WebAssembly module: its functions, and the sections that show how their authors called them.

use super::file_bytes::FileBytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// A module. Ranges are of its file.
#[derive(Debug)]
pub struct WasmModule {
    /// The file.
    pub file: FileBytes,
    /// The number of functions that it imports: its own have numbers from there on.
    pub imports: u32,
    /// The code of each function of its own, in the order of their numbers.
    pub bodies: Vec<Range<usize>>,
    /// The contents of the section that the bodies are in: positions in debugging information count from its start.
    pub code: Range<usize>,
    /// What the name section calls the module.
    pub name: Option<String>,
    /// What the name section calls functions, by their numbers.
    pub names: BTreeMap<u32, String>,
    /// The sections of tools: their names and contents.
    pub custom: Vec<(String, Range<usize>)>,
    /// What V8 can call the module: a hash of its bytes, as they are and without sections of tools; and where its code section
    /// starts then.
    pub hashes: Vec<WasmHash>,
}

/// One form of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasmHash {
    /// V8's hash.
    pub hash: u32,
    /// Where the contents of the code section start.
    pub code: usize,
}

impl WasmModule {
    /// The code of a function of its own.
    pub fn body(&self, function: u32) -> Option<&Range<usize>> {
        self.bodies.get(function.checked_sub(self.imports)? as usize)
    }

    /// The function whose code starts there, counted from the start of the code section's contents.
    pub fn starting_at(&self, offset: usize) -> Option<u32> {
        let start = self.code.start.checked_add(offset)?;
        let at = self.bodies.binary_search_by_key(&start, |body| body.start).ok()?;
        self.imports.checked_add(u32::try_from(at).ok()?)
    }

    /// The contents of a section of tools; empty if it has none of that name.
    pub fn section(&self, name: &str) -> &[u8] {
        let range = self.custom.iter().find(|(own, _)| own == name).map(|(_, range)| range.clone());
        range.and_then(|range| self.file.bytes().get(range)).unwrap_or_default()
    }

    /// True if another module has the same code.
    pub fn has_code_of(&self, other: &Self) -> bool {
        let (own, others) = (self.file.bytes().get(self.code.clone()), other.file.bytes().get(other.code.clone()));
        self.imports == other.imports && own.is_some() && own == others
    }
}
