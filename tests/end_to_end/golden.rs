//! Walks `fixtures/`: what the program makes of each input must be what the folder holds.
//!
//! A folder with a file `input.*` is a case; `expected.FORMAT` is what `export --to FORMAT` writes of it,
//! `expected.report` and `expected.script` what these commands print. `UPDATE_GOLDEN=1` rewrites them; look at the
//! difference before you commit it. Every folder's README.md must name every file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn folders() -> Vec<PathBuf> {
    let folders = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"));
    folders.into_iter().filter(|path| path.is_dir()).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The command that writes `expected.KIND`; graphs without their script, which is not ours.
fn arguments(kind: &str) -> Vec<&str> {
    match kind {
        "report" => vec!["report"],
        "script" => vec!["script"],
        "flamegraph" => vec!["flamegraph", "--pretty-xml", "--no-javascript"],
        "svg" => vec!["flamegraph", "--no-javascript"],
        format => vec!["export", "--to", format],
    }
}

/// Runs inside the folder, so that neither messages nor names of sources depend on where the crate is.
fn run(folder: &Path, input: &str, kind: &str, threads: &str) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.current_dir(folder).args(arguments(kind)).args(["--threads", threads, "--quiet"]).arg(input);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {kind}: {said}", folder.display());
    output.stdout
}

#[test]
fn every_case_comes_out_as_expected() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut cases, mut wrong) = (0, Vec::new());
    for folder in folders() {
        let all = files(&folder);
        let Some(input) = all.iter().map(|path| name(path)).find(|name| name.starts_with("input.")) else { continue };
        for expected in &all {
            let Some(kind) = name(expected).strip_prefix("expected.") else { continue };
            cases += 1;
            let one = run(&folder, input, kind, "1");
            assert!(run(&folder, input, kind, "5") == one, "{}: depends on --threads", expected.display());
            if update {
                fs::write(expected, &one).unwrap();
            } else if fs::read(expected).unwrap() != one {
                wrong.push(format!("{} (got {} bytes)", expected.display(), one.len()));
            }
        }
    }
    assert!(cases > 0, "no cases");
    let remedy =
        "UPDATE_GOLDEN=1 cargo test --test end_to_end golden rewrites them: look at git diff before you commit";
    assert!(wrong.is_empty(), "these differ:\n{}\n{remedy}", wrong.join("\n"));
}

#[test]
fn readmes_name_every_file() {
    for folder in folders() {
        let readme = folder.join("README.md");
        let text = fs::read_to_string(&readme).unwrap_or_else(|error| panic!("{}: {error}", readme.display()));
        for path in files(&folder).iter().filter(|path| **path != readme) {
            assert!(text.contains(name(path)), "{} does not name {}", readme.display(), name(path));
        }
    }
}
