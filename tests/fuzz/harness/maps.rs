//! Source maps: a map and a script, queried for positions and functions all over the script; and WebAssembly modules.

use crate::formats::source_map;
use crate::formats::source_map::Mention;
use crate::formats::wasm;
use crate::model::file_bytes::FileBytes;
use crate::symbolize::authored::{AuthoredModule, AuthoredScript};
use std::rc::Rc;

/// The map, a NUL, the script.
pub(super) fn source_map(bytes: &[u8]) {
    let (map, script) =
        bytes.iter().position(|byte| *byte == 0).map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + 1..]));
    let text = String::from_utf8_lossy(script);
    if let Some(data) =
        Mention::find(&text).url.and_then(|url| url.strip_prefix("data:")).and_then(source_map::decode_data_url)
    {
        assert!(data.len() <= script.len());
    }
    let Ok(map) = source_map::parse(&FileBytes::new(map.to_vec())) else { return };
    assert!(map.segments().is_sorted_by_key(|segment| segment.generated));
    let files: Vec<String> = map.sources.iter().map(|source| source.path.clone()).collect();
    let script = AuthoredScript::new(text.to_string(), map, files);
    let names = ["", "i", "get i", "#i", "e.i", "n"];
    for (line, text) in (1..9).zip(text.split('\n')) {
        for column in 0..text.len().min(400) as u32 {
            script.place(line, column);
            // One name a column: an input in which the text is moved asks for the others.
            let name = names[column as usize % names.len()];
            if let Ok(Some((place, Some(name)))) = script.function(name, line, column) {
                assert!(
                    place.line > 0 && place.column > 0 && !name.contains(['\n', ';', ' ']) || name.starts_with("get ")
                );
            }
        }
    }
    script.functions(names.iter().map(|name| (*name, Default::default())));
}

/// A WebAssembly module, and all that it states of its functions.
pub(super) fn wasm(bytes: &[u8]) {
    let Ok(module) = wasm::parse(&FileBytes::new(bytes.to_vec())) else { return };
    let functions = module.imports..module.imports + module.bodies.len().min(1000) as u32;
    assert!(module.bodies.iter().all(|body| module.code.start <= body.start && body.end <= module.code.end));
    let modules = [Rc::new(module)];
    let authored = AuthoredModule::new("x.wasm", &modules, functions.clone().map(|function| (function, function)));
    for (name, place) in functions.filter_map(|function| authored.function(function)) {
        assert!(!name.is_empty() && place.is_none_or(|place| place.line > 0 && !place.file.is_empty()));
    }
}
