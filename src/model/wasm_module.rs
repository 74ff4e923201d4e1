//! A WebAssembly module: its functions, and the sections that contain debugging information and names.

use super::file_bytes::FileBytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// A WebAssembly module. Ranges are byte ranges of its file.
#[derive(Debug)]
pub struct WasmModule {
    /// The content of the file.
    pub file: FileBytes,
    /// The number of imported functions. The module's own functions have indices from there on.
    pub imports: u32,
    /// The body of each of the module's own functions, by index.
    pub bodies: Vec<Range<usize>>,
    /// The contents of the code section. Positions in debugging information count from its start.
    pub code: Range<usize>,
    /// The module's name, from the name section.
    pub name: Option<String>,
    /// Function names by function index, from the name section.
    pub names: BTreeMap<u32, String>,
    /// Custom sections: names and contents.
    pub custom: Vec<(String, Range<usize>)>,
    /// Hashes by which V8 may identify the module: of all its bytes, and of its bytes without custom sections.
    pub hashes: Vec<WasmHash>,
}

/// One form of the module's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasmHash {
    /// V8's hash of the bytes.
    pub hash: u32,
    /// Where the contents of the code section start in these bytes.
    pub code: usize,
}

impl WasmModule {
    /// The body of a function; `None` if it is imported or doesn't exist.
    pub fn body(&self, function: u32) -> Option<&Range<usize>> {
        self.bodies.get(function.checked_sub(self.imports)? as usize)
    }

    /// The index of the function whose body starts at an offset into the code section's contents.
    pub fn function_starting_at(&self, offset: usize) -> Option<u32> {
        let start = self.code.start.checked_add(offset)?;
        let at = self.bodies.binary_search_by_key(&start, |body| body.start).ok()?;
        self.imports.checked_add(u32::try_from(at).ok()?)
    }

    /// The contents of a custom section; empty if there is none with this name.
    pub fn section(&self, name: &str) -> &[u8] {
        let Some((_, range)) = self.custom.iter().find(|(section, _)| section == name) else { return &[] };
        self.file.bytes().get(range.clone()).unwrap_or_default()
    }

    /// True if both modules have the same code and number of imports.
    pub fn has_code_of(&self, other: &Self) -> bool {
        let code = self.file.bytes().get(self.code.clone());
        let other_code = other.file.bytes().get(other.code.clone());
        self.imports == other.imports && code.is_some() && code == other_code
    }
}
