//! Callgrind files: PHP's, with its map and without it.

use super::scene::doctor;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/callgrind-jit").join(name);
    let file = fs::File::open(&path).unwrap();
    if name.ends_with(".zst") { zstd::decode_all(file).unwrap() } else { fs::read(&path).unwrap() }
}

/// A callgrind file with these beside it.
fn scene(name: &str, beside: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("callgrind.out");
    fs::write(&path, fixture(name)).unwrap();
    for (name, bytes) in beside {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    (dir, path)
}

fn findings(path: &Path) -> Vec<(String, f64, String)> {
    let output = doctor(&["--format", "json"], path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&list[0]["what"], &list[0]["runtime"]), (&"callgrind".into(), &"PHP".into()));
    let finding = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        (text("problem"), finding["percent"].as_f64().unwrap(), text("remedy"))
    };
    list[0]["findings"].as_array().unwrap().iter().map(finding).collect()
}

#[test]
fn without_a_map_it_states_how_the_program_is_run_again() {
    let (_dir, path) = scene("php-tracing.callgrind.zst", &[]);
    let findings = findings(&path);
    let (problem, percent, remedy) = &findings[0];
    assert_eq!(problem, "no-dump-or-map", "{findings:?}");
    assert!(
        *percent > 70.0 && remedy.contains("php -d opcache.jit_debug=48 -d opcache.enable_cli=1"),
        "{percent} {remedy}"
    );
}

#[test]
fn with_its_map_it_states_which_command_names_it_and_then_nothing() {
    let (dir, path) = scene("php-tracing.callgrind.zst", &[("perf-560.map", fixture("php-tracing.map"))]);
    // Costs are no frames, and what `report` names isn't said to have no name.
    let text = String::from_utf8(doctor(&[], &path).stdout).unwrap();
    assert!(!text.contains("frames") && !text.contains("without a name") && text.contains("perf-560.map"), "{text}");
    let (problem, percent, remedy) = &findings(&path)[0];
    assert_eq!((&problem[..], &remedy[..]), ("not-named-yet", &format!("jitgraft callgrind {}", path.display())[..]));
    assert!(*percent > 70.0, "{percent}");
    let named =
        std::process::Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&path).output().unwrap();
    assert!(named.status.success());
    let of_jit = |(problem, ..): &(String, f64, String)| !problem.starts_with("stripped");
    let left: Vec<_> = findings(&dir.path().join("callgrind.out.jit")).into_iter().filter(of_jit).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_file_without_instruction_addresses_is_reported() {
    let (_dir, path) = scene("php-noinstr.callgrind.zst", &[("perf-809.map", fixture("php-noinstr.map"))]);
    let findings = findings(&path);
    let (.., remedy) = findings.iter().find(|(problem, ..)| problem == "no-instruction-addresses").unwrap();
    assert!(remedy.contains("--dump-instr=yes"), "{remedy}");
}

#[test]
fn a_map_of_another_run_names_nothing() {
    let (_dir, path) = scene("php-tracing.callgrind.zst", &[("perf-560.map", b"10 20 f\n".to_vec())]);
    assert_eq!(findings(&path)[0].0, "source-of-other-run");
}
