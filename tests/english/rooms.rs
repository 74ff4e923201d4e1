//! The texts of the repository by room, and the phrases found there.

use crate::phrases::phrases;
use crate::texts::{Parts, Passage, code, document, script};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are of one kind.
pub(crate) struct Room {
    name: String,
    passages: Vec<(String, usize, String)>,
}

/// The phrases in a room.
pub(crate) struct Found {
    name: String,
    pub(crate) words: usize,
    pub(crate) hits: Vec<String>,
}

impl Found {
    pub(crate) fn summary(&self) -> String {
        let rate = 1000.0 * self.hits.len() as f64 / self.words.max(1) as f64;
        format!("{}: {} in {} words, {rate:.2} per 1,000", self.name, self.hits.len(), self.words)
    }

    pub(crate) fn listed(&self) -> String {
        self.hits.iter().fold(String::new(), |mut listed, hit| {
            let _ = writeln!(listed, "{hit}");
            listed
        })
    }
}

impl Room {
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), passages: Vec::new() }
    }

    pub(crate) fn add(&mut self, file: &str, passages: &[Passage]) {
        self.passages.extend(passages.iter().map(|passage| (file.to_owned(), passage.line, passage.text.clone())));
    }

    /// A line for each text, behind its place and a tab.
    pub(crate) fn lines(&self) -> String {
        self.passages.iter().fold(String::new(), |mut lines, (file, line, text)| {
            let _ = writeln!(lines, "{file}:{line}\t{text}");
            lines
        })
    }

    pub(crate) fn find(&self) -> Found {
        let phrases = phrases();
        let mut hits = Vec::new();
        for (file, line, text) in &self.passages {
            for phrase in &phrases {
                hits.extend(phrase.find(text).map(|hit| format!("{file}:{line}: '{hit}' → {}: {text}", phrase.better)));
            }
        }
        let words = self.passages.iter().map(|(_, _, text)| text.split_whitespace().count()).sum();
        Found { name: self.name.clone(), words, hits }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder, by path, without what is recorded or built.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if entry.is_dir() && !["target", "node_modules", "kept", "corpus"].contains(&name.as_str()) {
                folders.push(entry);
            } else if entry.is_file() {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

fn parts(path: &Path) -> Option<Parts> {
    let extension = path.extension()?.to_str()?;
    let text = fs::read_to_string(path).ok()?;
    Some(match extension {
        "rs" => code(&text, true),
        "js" | "css" | "c" | "cc" | "cpp" | "java" | "ts" => code(&text, false),
        "sh" | "py" => Parts { comments: script(&text), strings: Vec::new() },
        _ => return None,
    })
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Comments of programs, a room for each folder of `src/` and for each other folder.
pub(crate) fn comments() -> Vec<Room> {
    let mut rooms = BTreeMap::<String, Room>::new();
    for path in ["src", "tests", "benches", "python", "examples"].iter().flat_map(|folder| files(folder)) {
        let Some(parts) = parts(&path) else { continue };
        let file = shown(&path);
        let depth = if file.starts_with("src/") { 2 } else { 1 };
        let name = file.split('/').take(depth).collect::<Vec<_>>().join("/");
        rooms.entry(name.clone()).or_insert_with(|| Room::named(&name)).add(&file, &parts.comments);
    }
    rooms.into_values().collect()
}

/// String literals of `src/` that are sentences, without those of unit tests.
pub(crate) fn messages() -> Room {
    let mut room = Room::named("messages");
    let is_test = |path: &PathBuf| {
        path.components().any(|part| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name))
    };
    for path in files("src").into_iter().filter(|path| !is_test(&path.strip_prefix(root()).unwrap().to_owned())) {
        let Some(parts) = parts(&path) else { continue };
        let text = fs::read_to_string(&path).unwrap();
        let tests = text.lines().position(|line| line.trim() == "#[cfg(test)]").map_or(usize::MAX, |at| at + 1);
        let is_sentence = |text: &str| text.split_whitespace().count() > 2;
        let strings: Vec<Passage> =
            parts.strings.into_iter().filter(|string| string.line < tests && is_sentence(&string.text)).collect();
        room.add(&shown(&path), &strings);
    }
    room
}

/// The documents that users and contributors read, and those of the wheel, of tests and of benchmarks.
pub(crate) fn documents() -> Room {
    let mut room = Room::named("documents");
    let top = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name));
    let below = ["docs", "python", "benches", "tests", "examples"].into_iter().flat_map(files);
    for path in top.into_iter().chain(below).filter(|path| path.extension().is_some_and(|end| end == "md")) {
        room.add(&shown(&path), &document(&fs::read_to_string(&path).unwrap()));
    }
    room
}

/// Names of tests, read as sentences.
pub(crate) fn test_names() -> Room {
    let mut room = Room::named("test names");
    for path in ["src", "tests"].iter().flat_map(|folder| files(folder)) {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut after_mark = false;
        for (at, line) in text.lines().map(str::trim).enumerate() {
            let name = line.strip_prefix("fn ").filter(|_| after_mark).and_then(|rest| rest.split('(').next());
            if let Some(name) = name {
                let mut text = name.replace('_', " ");
                text[..1].make_ascii_uppercase();
                room.add(&shown(&path), &[Passage { line: at + 1, text }]);
            }
            after_mark = line == "#[test]" || (after_mark && line.starts_with("#["));
        }
    }
    room
}
