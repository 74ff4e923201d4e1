//! Source maps: a map and a script, asked for positions and functions all over the script.

use jitgraft::model::file_bytes::FileBytes;
use jitgraft::records::source_map;
use jitgraft::records::source_map::Mention;
use jitgraft::resolve::authored::AuthoredScript;

/// The map, a NUL, the script.
pub(super) fn source_map(bytes: &[u8]) {
    let (map, script) =
        bytes.iter().position(|byte| *byte == 0).map_or((bytes, &b""[..]), |at| (&bytes[..at], &bytes[at + 1..]));
    let text = String::from_utf8_lossy(script);
    if let Some(data) = Mention::of(&text).url.and_then(|url| url.strip_prefix("data:")).and_then(source_map::data) {
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
            for name in names {
                if let Ok(Some((place, Some(name)))) = script.function(name, line, column) {
                    assert!(
                        place.line > 0 && place.column > 0 && !name.contains(['\n', ';', ' '])
                            || name.starts_with("get ")
                    );
                }
            }
        }
    }
    script.functions(names.iter().map(|name| (*name, Default::default())));
}
