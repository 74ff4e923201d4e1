//! Circles of files: each mentions the next, and the last the first.

use super::tree::{Mention, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of one file that another mentions.
pub(super) struct Edge {
    /// The file that mentions.
    pub(super) from: usize,
    /// The file mentioned.
    pub(super) to: usize,
    /// As what.
    pub(super) paths: Vec<String>,
}

/// The circles of a tree, each with what holds it together; every file is in one at most.
pub(super) fn circles(tree: &Tree) -> Vec<Vec<Edge>> {
    let mentions: Vec<BTreeSet<Mention>> = (0..tree.files.len()).map(|file| tree.mentions(file)).collect();
    let reach: Vec<BTreeSet<usize>> = (0..mentions.len()).map(|file| reachable(&mentions, file)).collect();
    let mut circles: BTreeMap<usize, Vec<Edge>> = BTreeMap::new();
    for (from, mentioned) in mentions.iter().enumerate().filter(|(file, _)| reach[*file].contains(file)) {
        // A circle goes by the first of its files.
        let first = reach[from].iter().copied().find(|to| reach[*to].contains(&from)).unwrap_or(from);
        let mut paths: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for Mention { to, path } in mentioned.iter().filter(|mention| reach[mention.to].contains(&from)) {
            paths.entry(*to).or_default().push(path.clone());
        }
        circles.entry(first).or_default().extend(paths.into_iter().map(|(to, paths)| Edge { from, to, paths }));
    }
    circles.into_values().collect()
}

/// All files that are mentioned by a file, or by one that it mentions, and so on.
fn reachable(mentions: &[BTreeSet<Mention>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        open.extend(mentions[file].iter().map(|mention| mention.to).filter(|to| reached.insert(*to)));
    }
    reached
}
