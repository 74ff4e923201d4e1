//! A WebAssembly module: its functions, and the sections that contain debugging information and names.

use super::file_bytes::FileBytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// A parsed WebAssembly module. All ranges in it are byte ranges of the file.
#[derive(Debug)]
pub struct WasmModule {
    /// The content of the file.
    pub file: FileBytes,
    /// The number of imported functions. These have the first function indices; the module's own functions follow.
    pub imports: u32,
    /// The bodies of the module's own functions, in the order of their indices.
    pub bodies: Vec<Range<usize>>,
    /// The contents of the code section. Offsets in debugging information count from its start.
    pub code: Range<usize>,
    /// The module's name, from the name section.
    pub name: Option<String>,
    /// Function names by function index, from the name section.
    pub names: BTreeMap<u32, String>,
    /// The name and contents of each custom section.
    pub custom: Vec<(String, Range<usize>)>,
    /// Hashes by which V8 may identify the module: of the whole file, of the file without custom sections, and of the
    /// file without names and debug information. Forms that would be equal are listed once.
    pub hashes: Vec<WasmHash>,
}

/// V8's hash of one form of the module: of the whole file, or of the file without some or all custom sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasmHash {
    /// V8's hash of the bytes of this form.
    pub hash: u32,
    /// Where the contents of the code section start, in bytes from the start of this form.
    pub code: usize,
}

impl WasmModule {
    /// The body of the function with this index; `None` if the function is imported or doesn't exist.
    pub fn body(&self, function: u32) -> Option<&Range<usize>> {
        self.bodies.get(function.checked_sub(self.imports)? as usize)
    }

    /// The index of the function whose body starts at an offset from the start of the code section's contents; `None`
    /// if none does.
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
