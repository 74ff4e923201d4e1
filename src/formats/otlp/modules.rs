//! Collects the mapped files of all messages: their build IDs, and the address ranges they were mapped at.

use super::messages::{Dictionary, MappingMessage};
use crate::bytes::digits::hex_bytes;
use crate::model::about::Module;
use crate::model::process::BuildId;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Key of the attribute with the build ID of `.note.gnu.build-id`, in hexadecimal digits.
pub(super) const GNU_BUILD_ID: &str = "process.executable.build_id.gnu";

/// The files of all messages.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// The files by path.
    pub(super) modules: BTreeMap<Vec<u8>, Module>,
    /// Path and `[start, limit, file offset]` of each mapping that was added. Later messages repeat their mappings,
    /// which are then skipped.
    known: FxHashSet<(Vec<u8>, [u64; 3])>,
}

impl Modules {
    /// Adds the modules that a dictionary maps. Each message repeats the mappings, so known ones are ignored.
    pub(super) fn add(&mut self, dictionary: &Dictionary) {
        for mapping in &dictionary.mapping_table {
            let name = dictionary.string(mapping.filename_strindex);
            let range = [mapping.memory_start, mapping.memory_limit, mapping.file_offset];
            if !name.is_empty() && self.known.insert((name.to_vec(), range)) {
                add_mapping(self.modules.entry(name.to_vec()).or_default(), name, mapping, dictionary);
            }
        }
    }
}

/// Adds what a mapping says about a module: the build ID, the hash and the address range, as far as they are stated.
fn add_mapping(module: &mut Module, name: &[u8], mapping: &MappingMessage, dictionary: &Dictionary) {
    let build_id = dictionary.attribute_text(&mapping.attribute_indices, GNU_BUILD_ID);
    let hash = dictionary.attribute_text(&mapping.attribute_indices, HTL_HASH);
    module.build_id.add(build_id.and_then(|digits| BuildId::from_digits(&digits)));
    module.htl_hash.add(hash.and_then(|digits| htl_hash(&digits)));
    // The mapping table doesn't say which process a mapping belongs to, so the ranges of all processes are collected.
    module.map(name, mapping.memory_start..mapping.memory_limit, mapping.file_offset);
}

/// Key of the attribute with OpenTelemetry's own build ID: a hash of the start and the end of the file, in hexadecimal
/// digits.
pub(super) const HTL_HASH: &str = "process.executable.build_id.htlhash";

/// Decodes the value of an [`HTL_HASH`] attribute; `None` unless it has 32 hexadecimal digits.
pub(super) fn htl_hash(digits: &[u8]) -> Option<[u8; 16]> {
    hex_bytes(digits)?.try_into().ok()
}
