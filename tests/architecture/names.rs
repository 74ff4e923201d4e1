//! Names of definitions: how many types share theirs with another one, and which functions are more public than anybody needs.

use super::code::Token;
use super::tree::{SourceFile, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Words that define a type, with its name behind them.
const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The types that are defined outside of tests, each with the files that define one of this name.
pub(super) fn types(tree: &Tree) -> BTreeMap<&str, Vec<&str>> {
    let mut types: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in &tree.files {
        for name in types_of(file) {
            types.entry(name).or_default().push(&file.name);
        }
    }
    types
}

/// Those of one file; a type inside of `{}` is an associated one, or a function's own.
fn types_of(file: &SourceFile) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (token, next) in file.product.iter().zip(file.product.iter().skip(1)) {
        match token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 && TYPES.contains(&&word[..]) => found.extend(next.word()),
            _ => {}
        }
    }
    found
}

/// Functions and constants that are `pub`, and that no other room and nothing outside of the library mentions.
pub(super) fn too_public(tree: &Tree, outside: &BTreeSet<String>) -> Vec<String> {
    let mut rooms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in &tree.files {
        for word in file.code.iter().filter_map(Token::word) {
            rooms.entry(word).or_default().insert(room(file));
        }
    }
    let is_known = |name: &str, file| outside.contains(name) || rooms[name].iter().any(|other| *other != room(file));
    let public = tree.files.iter().flat_map(|file| public_items(file).into_iter().map(move |name| (file, name)));
    let found = public.filter(|(file, name)| !is_known(name, *file));
    found.map(|(file, name)| format!("src/{}: {name}", file.name)).collect()
}

fn room(file: &SourceFile) -> &str {
    file.module.first().map_or("", String::as_str)
}

fn public_items(file: &SourceFile) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for (at, token) in file.product.iter().enumerate() {
        match token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 && word == "pub" => {
                found.extend(function_or_constant(&file.product[at + 1..]))
            }
            _ => {}
        }
    }
    found
}

fn function_or_constant(behind_pub: &[Token]) -> Option<&str> {
    let mut words = behind_pub.iter().map_while(Token::word);
    match words.find(|word| !["unsafe", "async"].contains(word))? {
        "fn" | "static" => words.next(),
        "const" => words.find(|word| *word != "fn"),
        _ => None,
    }
}
