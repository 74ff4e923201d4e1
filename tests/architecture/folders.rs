//! Circles of the entries of one folder: a file or folder that uses another one there, and is used by it.

use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Entry → the entries of the same folder that it uses, each with one example: the files that use and are used.
type Uses = BTreeMap<String, BTreeMap<String, (usize, usize)>>;

/// Each circle as its uses, in words. `x.rs` and the folder `x/` are one entry; a folder's own `mod.rs` is none of its
/// entries, since it is the folder's front door.
pub(super) fn folder_circles(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, uses) in uses_by_folder(tree) {
        for (entry, used) in &uses {
            for (other, example) in used.iter().filter(|(other, _)| *other > entry && reaches(&uses, other, entry)) {
                let back = uses.get(other).and_then(|used| used.get(entry));
                let examples = [Some(example), back].into_iter().flatten();
                let lines = examples.map(|(from, to)| {
                    format!("    src/{} uses src/{}\n", tree.files[*from].name, tree.files[*to].name)
                });
                found.push(format!(
                    "in src/{folder}, {entry} and {other} need each other:\n{}",
                    lines.collect::<String>()
                ));
            }
        }
    }
    found
}

fn uses_by_folder(tree: &Tree) -> BTreeMap<String, Uses> {
    let mut folders: BTreeMap<String, Uses> = BTreeMap::new();
    for from in 0..tree.files.len() {
        for mention in tree.mentions(from) {
            let (one, other) = (parts(&tree.files[from].name), parts(&tree.files[mention.to].name));
            let shared = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            if let (Some(entry), Some(used)) = (one.get(shared), other.get(shared)) {
                let uses = folders.entry(one[..shared].join("/")).or_default();
                uses.entry(entry.clone()).or_default().entry(used.clone()).or_insert((from, mention.to));
            }
        }
    }
    folders
}

/// The folders that lead to a file, and the file's own name without its ending unless it is a front door.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    parts.pop_if(|last| last == "mod");
    parts
}

fn reaches(uses: &Uses, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(entry) = open.pop() {
        for next in uses.get(entry).into_iter().flat_map(|used| used.keys()) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}
