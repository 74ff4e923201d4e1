//! `libs`: the modules that contain functions, numbered in the order of their first use.

use crate::model::process::BuildId;
use crate::model::stacks::{NameId, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// An entry of `libs`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Library {
    arch: String,
    pub(super) name: String,
    path: String,
    debug_name: String,
    debug_path: String,
    breakpad_id: String,
    code_id: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Libraries {
    pub(super) list: Vec<Library>,
    numbers: FxHashMap<NameId, usize>,
}

impl Libraries {
    pub(super) fn number(&mut self, profile: &Profile, module: NameId) -> usize {
        let next = self.list.len();
        let number = *self.numbers.entry(module).or_insert(next);
        if number == next {
            self.list.push(library(profile, profile.name_of(module)));
        }
        number
    }

    pub(super) fn name(&self, number: usize) -> &str {
        &self.list[number].name
    }
}

/// Describes a module for Firefox Profiler.
fn library(profile: &Profile, module: &[u8]) -> Library {
    let path = String::from_utf8_lossy(module).into_owned();
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let build_id = profile.about.modules.get(module).and_then(|module| module.build_id.into_option());
    let arch = profile.about.arch.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    let code_id = build_id.map(|id| id.to_string());
    let (debug_name, debug_path) = (name.clone(), path.clone());
    Library { arch, name, path, debug_name, debug_path, breakpad_id: breakpad_id(build_id), code_id }
}

/// Breakpad's form of a build ID: the first 16 bytes as a GUID, whose first three fields are little endian, followed by
/// an age of 0. All zeros without a build ID.
fn breakpad_id(build_id: Option<BuildId>) -> String {
    let mut guid = [0; 16];
    let bytes = build_id.as_ref().map_or(&[][..], BuildId::as_bytes);
    let len = bytes.len().min(16);
    guid[..len].copy_from_slice(&bytes[..len]);
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    guid.iter().map(|byte| format!("{byte:02X}")).collect::<String>() + "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_spelled_as_breakpad_does() {
        let bytes: Vec<u8> = (1..=20).collect();
        assert_eq!(breakpad_id(BuildId::new(&bytes)), "0403020106050807090A0B0C0D0E0F100");
        assert_eq!(breakpad_id(None), "0".repeat(33));
    }
}
