//! A WebAssembly module that was found.

use crate::model::wasm_module::WasmModule;
use std::path::PathBuf;
use std::rc::Rc;

/// A module that is at hand.
#[derive(Debug, Clone)]
pub(super) struct ModuleFile {
    pub(super) path: PathBuf,
    pub(super) module: Rc<WasmModule>,
    /// True if the user named it for functions whose module is not known.
    pub(super) is_given: bool,
}
