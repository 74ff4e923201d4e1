//! Tests all places where debug information can be: in the file, compressed, split into separate files, packaged,
//! behind a debug link, in a build ID directory, in MiniDebugInfo. The files are made with gcc and binutils, and each
//! must give the same calls.

use crate::error::Warnings;
use crate::model::process::BuildId;
use crate::parallel::Pool;
use crate::symbolize::dso::{Dso, DsoId, DsoKind};
use crate::symbolize::frames::Frames;
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::images::Images;
use crate::symbolize::symbols::{self, Base, Request, SymbolOptions};
use object::{Object, ObjectSection, ObjectSymbol};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs a shell command in a directory.
fn sh(dir: &Path, command: &str) {
    let output = Command::new("sh").args(["-euc", command]).current_dir(dir).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said} (tests/run.sh installs what is missing)");
}

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/inlined.c");

/// The test program, and the offsets of its function `hidden` in the file.
struct Program {
    dir: TempDir,
    hidden: Vec<u64>,
}

impl Program {
    fn new(flags: &str) -> Self {
        Self::made_by(&format!("gcc -O2 -Wl,--build-id=sha1 {flags} -o prog {SOURCE}"))
    }

    fn made_by(command: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        sh(dir.path(), command);
        let bytes = std::fs::read(dir.path().join("prog")).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let hidden = object.symbols().find(|symbol| symbol.name() == Ok("hidden")).unwrap();
        let text = object.section_by_index(hidden.section_index().unwrap()).unwrap();
        let offset = text.file_range().unwrap().0 + hidden.address() - text.address();
        let hidden = (offset..offset + hidden.size()).collect();
        Self { dir, hidden }
    }

    fn sh(&self, command: &str) {
        sh(self.dir.path(), command);
    }

    fn build_id(&self) -> String {
        let bytes = std::fs::read(self.dir.path().join("prog")).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        object.build_id().unwrap().unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The functions found at the addresses of `hidden`: of all chains the longest one, innermost first. Also returns
    /// the source file of `hidden`, and the warnings.
    fn calls(&self, debug_dirs: &[&str]) -> (Vec<String>, String, Warnings) {
        let dso = Dso {
            path: self.dir.path().join("prog").as_os_str().as_bytes().into(),
            build_id: None,
            file: None,
            kind: DsoKind::File,
        };
        let debug_dirs = debug_dirs.iter().map(|dir| self.dir.path().join(dir)).collect();
        let search = SearchOptions { debug_dirs, cache: None, ..SearchOptions::default() };
        let images = Images::new([(DsoId(0), &dso)].into_iter(), search.clone());
        let options = SymbolOptions { search, lines: true, ..SymbolOptions::default() };
        let request = [Request { dso: DsoId(0), offsets: self.hidden.clone(), base: Base::File }];
        let mut warnings = Warnings::new();
        let parts = symbols::resolve(&request, &images, &options, &Pool::new(None).unwrap(), &mut warnings);
        let frames: &Frames = &parts[0];
        let longest =
            (0..frames.len()).map(|index| frames.get(index)).max_by_key(|frames| frames.clone().count()).unwrap();
        let text = |id| String::from_utf8_lossy(frames.text(id)).into_owned();
        let names = longest.clone().map(|frame| frame.name.map_or_else(String::new, text)).collect();
        let file = longest.clone().next().and_then(|frame| frame.file).map_or_else(String::new, text);
        (names, file, warnings)
    }
}

fn check(program: &Program, debug_dirs: &[&str]) {
    let (names, file, warnings) = program.calls(debug_dirs);
    assert_eq!(names, ["innermost", "middle", "hidden"]);
    assert!(file.ends_with("tests/programs/inlined.c"), "{file}");
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn in_the_file_plain_and_compressed() {
    for flags in ["-g", "-gdwarf-4", "-g -gz=zlib"] {
        check(&Program::new(flags), &[]);
    }
}

#[test]
fn units_that_aranges_does_not_list_and_ranges_that_it_leaves_out() {
    let other = "echo 'int unrelated(int x) { return x * 3; }' > other.c && gcc -O2 -g -c other.c";
    let unlisted = "objcopy -R .debug_aranges -R .rela.debug_aranges own.o";
    check(
        &Program::made_by(&format!(
            "{other} && gcc -O2 -g -c {SOURCE} -o own.o && {unlisted} && gcc -o prog own.o other.o"
        )),
        &[],
    );
    // Changes `.debug_aranges` so that it lists only `main`, which has a section of its own. All other code gets the
    // length 0.
    let in_part = r"sed -i '/\.debug_aranges/,/\.debug_rnglists/s/^\t\.quad\t\.Letext0-.*/\t.quad 0/' own.s";
    let program = Program::made_by(&format!("gcc -O2 -g -S {SOURCE} -o own.s && {in_part} && gcc -o prog own.s"));
    check(&program, &[]);
}

#[test]
fn split_units_beside_it_and_in_a_package() {
    check(&Program::new("-g -gsplit-dwarf"), &[]);
    // binutils 2.40's dwp doesn't support later versions of DWARF.
    let split = Program::new("-gdwarf-4 -gsplit-dwarf");
    check(&split, &[]);
    split.sh("dwp -e prog -o prog.dwp && rm *.dwo");
    check(&split, &[]);
    split.sh("rm prog.dwp");
    assert_eq!(split.calls(&[]).0, ["hidden"]);
}

#[test]
fn behind_a_debug_link() {
    let program = Program::new("-g");
    program.sh("objcopy --only-keep-debug prog prog.debug && strip --strip-all prog && objcopy --add-gnu-debuglink=prog.debug prog");
    check(&program, &[]);
    program.sh("mkdir .debug && mv prog.debug .debug");
    check(&program, &[]);
    program.sh("mkdir -p elsewhere/$PWD && mv .debug/prog.debug elsewhere/$PWD");
    assert!(program.calls(&[]).0.is_empty());
    check(&program, &["elsewhere"]);
}

#[test]
fn a_debug_link_to_another_build_is_reported_and_not_used() {
    let program = Program::new("-g");
    program.sh("objcopy --only-keep-debug prog prog.debug && strip --strip-all prog && objcopy --add-gnu-debuglink=prog.debug prog");
    let other = Program::new("-g -O3 -funroll-loops -DOTHER=1 -fno-pie -no-pie");
    other.sh("objcopy --only-keep-debug prog prog.debug");
    std::fs::copy(other.dir.path().join("prog.debug"), program.dir.path().join("prog.debug")).unwrap();
    assert_ne!(program.build_id(), other.build_id());
    let (names, _, warnings) = program.calls(&[]);
    assert!(names.is_empty(), "{names:?}");
    let said = warnings.iter().next().unwrap().to_string();
    assert!(said.contains("prog.debug: not used: it is not the debugging information of"), "{said}");
}

#[test]
fn below_a_build_id_directory() {
    let program = Program::new("-g");
    let id = program.build_id();
    let (first, rest) = id.split_at(2);
    program.sh(&format!(
        "mkdir -p ids/.build-id/{first} && objcopy --only-keep-debug prog ids/.build-id/{first}/{rest}.debug && strip --strip-all prog"
    ));
    assert!(program.calls(&[]).0.is_empty());
    check(&program, &["ids"]);
}

/// perf's cache keeps the first copy of a build that was recorded, and later a stripped one runs.
#[test]
fn in_a_copy_of_the_build_that_was_not_stripped() {
    let program = Program::new("-g");
    let id = program.build_id();
    let (first, rest) = id.split_at(2);
    let folder = format!("ids/.build-id/{first}");
    program.sh(&format!("cp prog full && strip --strip-all prog && mkdir -p {folder}/{rest}"));
    assert!(program.calls(&["ids"]).0.is_empty());
    program.sh(&format!("cp full {folder}/{rest}/elf"));
    check(&program, &["ids"]);
    // It may be a file itself, or lack debug information.
    program.sh(&format!("rm -r {folder}/{rest} && cp full {folder}/{rest}"));
    check(&program, &["ids"]);
    program.sh(&format!("strip --strip-debug -o {folder}/{rest} full"));
    assert_eq!(program.calls(&["ids"]).0, ["hidden"]);
    // The file that runs may have its symbols, too.
    program.sh(&format!("mv {folder}/{rest} prog && cp full {folder}/{rest}"));
    check(&program, &["ids"]);
    // A copy that is stripped, or of another build, is of no use.
    program.sh(&format!("strip --strip-all prog && cp prog {folder}/{rest}"));
    assert!(program.calls(&["ids"]).0.is_empty());
    program.sh(&format!("gcc -O1 -g -Wl,--build-id=sha1 -o {folder}/{rest} {SOURCE}"));
    assert!(program.calls(&["ids"]).0.is_empty());
}

#[test]
fn a_mini_symbol_table_names_the_function() {
    let program = Program::new("");
    program.sh("objcopy --only-keep-debug prog mini && objcopy -S --keep-symbol=hidden mini mini && xz mini \
         && strip --strip-all prog");
    assert!(program.calls(&[]).0.is_empty());
    program.sh("objcopy --add-section .gnu_debugdata=mini.xz prog");
    assert_eq!(program.calls(&[]).0, ["hidden"]);
}

#[test]
fn shared_parts_taken_out_by_dwz() {
    let program = Program::new("-g");
    // dwz moves debug information that several files have in common into a file of its own.
    program.sh("cp prog other && dwz -m shared.dwz prog other");
    let bytes = std::fs::read(program.dir.path().join("prog")).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let (name, id) = object.gnu_debugaltlink().unwrap().expect("dwz made no link");
    assert!(name.ends_with(b"shared.dwz") && BuildId::new(id).is_some());
    check(&program, &[]);
}
