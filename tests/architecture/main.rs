//! Keeps the arrows of `src/lib.rs`: which room may import which, and that no files of a room import each other in a
//! circle. A message shows what to do instead.

mod circles;
mod code;
mod folders;
mod tree;

use circles::{Edge, circles};
use code::Token;
use std::path::Path;
use tree::Tree;

/// Room → the rooms it may import from, besides itself and `error`.
const ARROWS: &[(&str, &str)] = &[
    ("main", "cli commands io"),
    ("cli", "commands annotate pipeline jit formats render symbolize contract analysis runtimes model parallel io"),
    (
        "commands",
        "annotate doctor pipeline jit formats render symbolize contract analysis runtimes model bytes parallel io",
    ),
    ("api", "pipeline jit formats render symbolize contract analysis runtimes model parallel io"),
    ("annotate", "pipeline jit formats symbolize contract analysis runtimes model parallel io"),
    ("doctor", "pipeline jit formats symbolize contract analysis runtimes model parallel io"),
    ("pipeline", "jit formats symbolize contract analysis runtimes model bytes parallel io"),
    ("jit", "formats symbolize runtimes model bytes parallel io"),
    ("formats", "render contract analysis runtimes model bytes"),
    ("render", "contract analysis runtimes model bytes"),
    ("symbolize", "runtimes model parallel io"),
    ("contract", "analysis runtimes model"),
    ("analysis", "runtimes model"),
    ("runtimes", "model bytes"),
    ("model", ""),
    ("bytes", ""),
    ("parallel", ""),
    ("io", ""),
    ("error", ""),
];

/// Rooms whose entries don't know each other. Only `formats/mod.rs`, the table, has all formats.
const KEPT_APART: &[&str] = &["formats", "commands"];

fn source_tree() -> Tree {
    let tree = Tree::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(tree.files.len() > 10, "found only {} files", tree.files.len());
    tree
}

#[test]
fn imports_point_down() {
    let wrong = wrong_arrows(&source_tree());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn wrong_arrows(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, file) in tree.files.iter().enumerate() {
        let Some(room) = file.module.first() else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| name == room) else {
            wrong.push(format!(
                "src/{} is a room that ARROWS does not know: give it its arrows there and in src/lib.rs",
                file.name
            ));
            continue;
        };
        for import in tree.paths(at) {
            let Some(to) = import.first().filter(|to| ARROWS.iter().any(|(name, _)| name == to)) else {
                continue; // an item of the crate root, or a macro
            };
            if to != room && to != "error" && !allowed.split(' ').any(|one| one == to) {
                wrong.push(format!(
                    "src/{} imports crate::{}: {room} may only use {allowed}; pass a plain value or a callback down \
                     instead, or move the type to model",
                    file.name,
                    import.join("::"),
                ));
            }
            if !may_know(&file.module, &import) {
                wrong.push(format!(
                    "src/{} imports crate::{}: a format or command uses no other; let the reader record the mention and \
                     `jit` or `commands` connect the two, or move what both need to bytes, contract, analysis or pipeline",
                    file.name,
                    import.join("::"),
                ));
            }
        }
    }
    wrong
}

/// Entries that others may use: V8's profiles may be a file of their own or a part of a trace.
const SHARED_ENTRIES: &[&str] = &["cpuprofile"];

/// False if a module imports another entry of its own room, and that room is kept apart.
fn may_know(module: &[String], import: &[String]) -> bool {
    let (Some(own), Some(to)) = (module.get(1), import.get(1)) else { return true };
    module[0] != import[0] || !KEPT_APART.contains(&&module[0][..]) || own == to || SHARED_ENTRIES.contains(&&to[..])
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let tree = source_tree();
    let found: Vec<String> = circles(&tree).iter().map(|circle| said_of(&tree, circle)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_entries_of_a_folder_need_each_other() {
    let found = folders::folder_circles(&source_tree());
    let remedy = "move what both need into an entry of its own, or one of them into the other's folder";
    assert!(found.is_empty(), "\n{}\n{remedy}", found.join("\n"));
}

#[test]
fn a_circle_of_a_file_and_a_folder_is_found_through_what_is_passed_on() {
    let files = [
        ("model/mod.rs", "mod memo; mod rewrite;"),
        ("model/memo.rs", "use super::rewrite::Named;"),
        ("model/rewrite/mod.rs", "mod naming; mod job; pub use naming::Named;"),
        ("model/rewrite/naming.rs", "pub struct Named;"),
        ("model/rewrite/job.rs", "use crate::model::memo::Memo;"),
    ];
    let found = folders::folder_circles(&tree_of(&files));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("in src/model, memo and rewrite need each other"), "{found:?}");
    assert!(folders::folder_circles(&tree_of(&files[..4])).is_empty());
}

fn said_of(tree: &Tree, circle: &[Edge]) -> String {
    let name = |file: usize| format!("src/{}", tree.files[file].name);
    let line = |edge: &Edge| format!("    {} uses {} of {}\n", name(edge.from), said_paths(&edge.paths), name(edge.to));
    format!(
        "these files need each other, so none can be read alone:\n{}  move what both sides need into a file of its own, \
         or pass it in as a value or a callback",
        circle.iter().map(line).collect::<String>()
    )
}

/// The last words of paths; what is below another path goes without saying.
fn said_paths(paths: &[String]) -> String {
    let is_below =
        |path: &str, other: &String| path.strip_prefix(&other[..]).is_some_and(|rest| rest.starts_with("::"));
    let tops = paths.iter().filter(|path| !paths.iter().any(|other| is_below(path, other)));
    tops.filter_map(|path| path.rsplit("::").next()).collect::<Vec<_>>().join(", ")
}

/// The files of a small crate: their names and texts.
fn tree_of(files: &[(&str, &str)]) -> Tree {
    Tree::of(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
}

#[test]
fn an_upward_arrow_is_found_however_it_is_written() {
    let ways = [
        "use crate::jit::Found;",
        "use crate::{error::Result, jit::{Found, find}};",
        "use super::super::jit;",
        "mod inner { fn f() { super::super::super::jit::find() } }",
    ];
    for way in ways {
        let wrong = wrong_arrows(&tree_of(&[("formats/x.rs", way), ("jit/mod.rs", "")]));
        assert!(!wrong.is_empty(), "{way}");
        assert!(wrong[0].starts_with("src/formats/x.rs imports crate::jit"), "{wrong:?}");
    }
    let comment = [("formats/x.rs", "/// crate::jit::find\nuse crate::model::Pid; use crate::bytes::cursor::Cursor;")];
    assert!(wrong_arrows(&tree_of(&comment)).is_empty());
    let in_a_test = [
        ("formats/x.rs", "#[cfg(test)] mod tests { use crate::jit::Found; }"),
        ("formats/x_tests.rs", "use crate::jit::Found;"),
        ("jit/mod.rs", ""),
    ];
    assert!(wrong_arrows(&tree_of(&in_a_test)).is_empty());
}

#[test]
fn a_circle_is_found_however_it_is_closed() {
    let ways = [
        "use super::a::A;",
        "use super::{a::{self, A}};",
        "use crate::model::a::A as Other;",
        "use super::a; fn f(a: a::A) {}",
        "fn f(a: crate::model::a::A) {}",
        "use super::A;",
        "use super::super::model::A;",
    ];
    for way in ways {
        let door = ("model/mod.rs", "mod a; mod b; pub use a::A;");
        let tree = tree_of(&[door, ("model/a.rs", "use super::b::B;"), ("model/b.rs", way)]);
        let found = circles(&tree);
        assert_eq!(found.len(), 1, "{way}");
        assert_eq!(found[0].iter().map(|edge| (edge.from, edge.to)).collect::<Vec<_>>(), [(0, 1), (1, 0)], "{way}");
    }
    let parent = ("model/mod.rs", "mod a; pub struct Parent; fn f() { a::f() }");
    assert_eq!(circles(&tree_of(&[parent, ("model/a.rs", "use super::Parent;")])).len(), 1);
}

#[test]
fn doors_tests_and_visibility_close_no_circle() {
    let door = (
        "model/mod.rs",
        "mod a; pub use a::{A, f}; pub struct Parent { f: u8 } #[cfg(test)] mod tests { use super::A; }",
    );
    assert!(circles(&tree_of(&[door, ("model/a.rs", "use super::Parent; pub(in super::super) fn f() {}")])).is_empty());
    let test = ("model/a.rs", "#[cfg(test)] use super::b::B; #[cfg(test)] mod tests { use super::super::b::B; }");
    let tree = tree_of(&[("model/mod.rs", "mod a; mod b;"), test, ("model/b.rs", "use super::a::A;")]);
    assert!(circles(&tree).is_empty());
}

#[test]
fn threads_and_memory_maps_have_one_place() {
    let owners = [
        ("thread::spawn", "parallel"),
        ("thread::scope", "parallel"),
        ("Mmap::map", "io"),
        ("MmapOptions::new", "io"),
        ("unsafe {", "io"),
    ];
    for file in &source_tree().files {
        for (what, owner) in owners {
            assert!(
                file.module.first().is_some_and(|room| room == owner) || !contains(&file.product, &code::tokens(what)),
                "src/{} has {what}: that is {owner}'s alone",
                file.name
            );
        }
    }
}

fn contains(code: &[Token], what: &[Token]) -> bool {
    code.windows(what.len()).any(|window| window == what)
}
