//! C++ names of a program that was written to have hard ones, and of the C++ library, spelled as c++filt spells them.

#[path = "support/tool.rs"]
mod tool;

use jitgraft::resolve::symbols::demangle::demangle;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tool::run;

/// The mangled names of a file.
fn names(nm: &[&str], dir: &Path) -> BTreeSet<String> {
    let listed = run("nm", nm, dir);
    let names = listed.lines().filter_map(|line| line.split_whitespace().last()?.split('@').next());
    names.filter(|name| name.starts_with("_Z")).map(str::to_owned).collect()
}

/// Compares each name that c++filt reads; how many.
fn compare(names: &BTreeSet<String>, dir: &Path) -> usize {
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    fs::write(dir.join("names"), list.join("\n")).unwrap();
    let theirs = run("sh", &["-c", "c++filt --no-params --no-verbose < names"], dir);
    assert_eq!(theirs.lines().count(), list.len());
    let read = list.iter().zip(theirs.lines()).filter(|(mangled, theirs)| *mangled != theirs);
    read.inspect(|(mangled, theirs)| {
        assert_eq!(demangle(mangled.as_bytes()).as_deref(), Some(*theirs), "{mangled}");
    })
    .count()
}

#[test]
fn names_are_spelled_as_by_cxxfilt() {
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/names.cpp");
    let mut of_program = BTreeSet::new();
    for standard in ["-std=c++14", "-std=c++17", "-std=c++20"] {
        run("g++", &[standard, "-O0", "-w", "-o", "names", source], dir.path());
        of_program.extend(names(&["names"], dir.path()));
    }
    assert!(compare(&of_program, dir.path()) > 90);
    let library = run("g++", &["-print-file-name=libstdc++.so.6"], dir.path());
    let of_library = names(&["-D", library.trim()], dir.path());
    assert!(compare(&of_library, dir.path()) > 4000);
}
