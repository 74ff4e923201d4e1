//! The WebAssembly functions in the native code of a profile, by their names.

use crate::runtimes::wasm_name::WasmName;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The WebAssembly functions in the native code of a profile.
#[derive(Debug, Default)]
pub(crate) struct NativeFunctions<'n> {
    pub(super) names: FxHashSet<&'n [u8]>,
    pub(super) functions: BTreeSet<(u32, Option<&'n str>)>,
    /// True if one source has the code of two functions with one name: they may be of two modules.
    pub(super) is_repeated: bool,
}

impl<'n> NativeFunctions<'n> {
    /// Adds those of these names, which are all that one source has.
    pub(crate) fn add(&mut self, names: impl Iterator<Item = &'n [u8]>) {
        let mut own = FxHashSet::default();
        for name in names {
            let Some(parts) = WasmName::parse(name) else { continue };
            self.is_repeated |= !own.insert(name);
            self.functions.insert((parts.number, parts.function));
        }
        self.names.extend(own);
    }
}
