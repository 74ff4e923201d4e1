//! Collects WebAssembly functions in a profile's native code, by their names.

use crate::runtimes::wasm_name::WasmName;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The WebAssembly functions in a profile's native code.
#[derive(Debug, Default)]
pub(crate) struct NativeFunctions<'n> {
    /// The whole names, as the profile has them.
    pub(super) names: FxHashSet<&'n [u8]>,
    /// For each name, the function's index in its module and, if known, its name there.
    pub(super) functions: BTreeSet<(u32, Option<&'n str>)>,
    /// True if one source has two functions with the same name. They may belong to different modules.
    pub(super) is_repeated: bool,
}

impl<'n> NativeFunctions<'n> {
    /// Adds the WebAssembly functions among the names of one source. If a name occurs twice there, notes that the names
    /// may be from two modules (`is_repeated`).
    pub(crate) fn add(&mut self, names: impl Iterator<Item = &'n [u8]>) {
        let mut source_names = FxHashSet::default();
        for name in names {
            let Some(parts) = WasmName::parse(name) else { continue };
            self.is_repeated |= !source_names.insert(name);
            self.functions.insert((parts.number, parts.function));
        }
        self.names.extend(source_names);
    }
}
