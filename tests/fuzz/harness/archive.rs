//! The corpora: for each target the inputs that reached something new, packed as a tar archive (`corpus/NAME.tar.zst`).

use std::path::{Path, PathBuf};

/// The directory of the corpora.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

/// The inputs of a target, with their names.
pub(crate) fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = folder().join(format!("{target}.tar.zst"));
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries(&zstd::decode_all(&packed[..]).unwrap())
}

/// The files of an archive: a header of 512 bytes, in which octal digits at 124 are the size, then the contents,
/// padded.
fn entries(mut archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    const BLOCK: usize = 512;
    let mut entries = Vec::new();
    while let Some((header, rest)) = archive.split_at_checked(BLOCK).filter(|(header, _)| header[0] != 0) {
        let text = |range: std::ops::Range<usize>| {
            str::from_utf8(&header[range]).unwrap().trim_end_matches(['\0', ' ']).to_owned()
        };
        let size = usize::from_str_radix(&text(124..136), 8).unwrap();
        if header[156] == b'0' {
            entries.push((text(0..100), rest[..size].to_vec()));
        }
        archive = &rest[size.next_multiple_of(BLOCK)..];
    }
    entries
}
