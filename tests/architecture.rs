//! Keeps the arrows of `src/lib.rs`: which room may import which. A message says what to do instead.

use std::fs;
use std::path::{Path, PathBuf};

/// Room → the rooms it may import from, besides itself and `error`.
const ARROWS: &[(&str, &[&str])] = &[
    ("main", &["cli", "commands"]),
    ("cli", &["commands", "pipeline", "sources", "formats", "resolve", "model", "parallel", "io"]),
    ("commands", &["pipeline", "sources", "formats", "resolve", "model", "parallel", "io"]),
    ("pipeline", &["sources", "formats", "resolve", "model", "parallel", "io"]),
    ("sources", &["formats", "resolve", "model", "parallel", "io"]),
    ("resolve", &["model", "parallel", "io"]),
    ("formats", &["model"]),
    ("model", &[]),
    ("parallel", &[]),
    ("io", &[]),
    ("error", &[]),
    ("lib", &[]),
];

/// Files of `formats` that every format may use.
const SHARED_FORMAT_FILES: &[&str] = &["cursor", "format"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The parts of a file's path below src, without the extension: `formats/perf_data/reader.rs` → 3 parts.
fn parts(path: &Path, root: &Path) -> Vec<String> {
    let relative = path.strip_prefix(root).unwrap().with_extension("");
    relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect()
}

/// All `crate::a::b` paths in the code of a file (comments left out).
fn imports(text: &str) -> Vec<Vec<String>> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    code.match_indices("crate::")
        .map(|(at, key)| {
            let path: String =
                code[at + key.len()..].chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
            path.split("::").map(str::to_owned).collect()
        })
        .collect()
}

#[test]
fn imports_point_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 10, "found only {} files below {}", files.len(), root.display());
    let mut wrong = Vec::new();
    for file in files {
        let place = parts(&file, &root);
        let room = place[0].as_str();
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!(
                "src/{} is a room that ARROWS does not know: give it its arrows there and in src/lib.rs",
                place.join("/")
            ));
            continue;
        };
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            let to = import[0].as_str();
            if ARROWS.iter().all(|(name, _)| *name != to) {
                continue; // an item of the crate root, or a macro
            }
            if to != room && to != "error" && !allowed.contains(&to) {
                wrong.push(format!(
                    "src/{}.rs imports crate::{}: {room} may only use {allowed:?}; pass a plain value or a callback down instead, or move the type to model",
                    place.join("/"), import.join("::"),
                ));
            }
            let own = place.get(1).map_or("mod", String::as_str);
            let shared =
                own == "mod" || import.get(1).is_none_or(|to| to == own || SHARED_FORMAT_FILES.contains(&to.as_str()));
            if room == "formats" && to == "formats" && !shared {
                wrong.push(format!(
                    "src/{}.rs imports crate::{}: a format knows no other format; let the reader record the mention and `sources` or `commands` connect the two",
                    place.join("/"), import.join("::"),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn threads_and_memory_maps_have_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let owners =
        [("thread::spawn", "parallel"), ("thread::scope", "parallel"), ("Mmap::map", "io"), ("unsafe {", "io")];
    for file in files {
        let place = parts(&file, &root);
        let text = fs::read_to_string(&file).unwrap();
        for (what, owner) in owners {
            assert!(
                place[0] == owner || !text.contains(what),
                "{} has {what}: that is {owner}'s alone",
                file.display()
            );
        }
    }
}
