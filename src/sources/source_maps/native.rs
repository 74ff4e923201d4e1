//! Native code of WebAssembly functions, of which nothing says which module it is: names where the user named the module.

use super::find::Finder;
use super::native_functions::NativeFunctions;
use super::{MapAccount, SourceMaps};
use crate::error::Warnings;
use crate::resolve::authored::AuthoredPlace;
use crate::runtimes::wasm_name::WasmName;

impl SourceMaps {
    pub(super) fn add_native(
        &mut self,
        NativeFunctions { names, functions, is_repeated }: &NativeFunctions<'_>,
        finder: &Finder<'_>,
        warnings: &mut Warnings,
    ) {
        if functions.is_empty() {
            return;
        }
        let mut account = MapAccount::new("native WebAssembly code", functions.len());
        let found = account.look_up(finder.given_module(functions));
        if *is_repeated && found.is_some() {
            account.trouble = Some("some functions were compiled twice: they may be of two modules".to_owned());
        } else if let Some(module) = found {
            self.native = Some(module);
            for name in names {
                let Some((spelled, _)) = self.native(name) else { continue };
                account.placed += 1;
                account.renamed += usize::from(spelled.as_bytes() != *name);
                self.names.insert((*name).into(), spelled.into_bytes().into());
            }
            account.functions = names.len();
        }
        warnings.extend(account.warning());
        self.accounts.push(account);
    }

    /// The authored name of a native function, spelled like the engine's, and where it was written, if that is known.
    pub fn native(&self, name: &[u8]) -> Option<(String, Option<AuthoredPlace<'_>>)> {
        let parts = WasmName::parse(name)?;
        let (function, place) = self.native.as_ref()?.function(parts.number)?;
        let shown = place
            .map_or_else(String::new, |AuthoredPlace { file, line, column, .. }| format!(" {file}:{line}:{column}"));
        Some((parts.spell(function, &shown), place))
    }
}
