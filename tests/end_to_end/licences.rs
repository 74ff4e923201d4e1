//! The program's dependencies may be passed on as they are: `deny.toml` names each license. `cargo deny` looks further
//! (at texts and known weaknesses), but is not available everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The crates of the program itself, without those of tests and of other systems, with their licenses.
fn crates() -> BTreeMap<String, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--all-features", "--locked", "--offline", "--edges=no-dev", "--prefix=none"]);
    command.args(["--target=x86_64-unknown-linux-gnu", "--format={p}\t{l}"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.split_once('\t').unwrap());
    lines.map(|(package, licence)| (package.to_owned(), licence.trim_end_matches(" (*)").to_owned())).collect()
}

/// The name of a package that is written with its version (and, for this one, its place).
fn name(package: &str) -> &str {
    package.split_once(' ').map_or(package, |(name, _)| name)
}

/// The words of a list behind a key.
fn list(text: &str, key: &str) -> BTreeSet<String> {
    let (_, behind) = text.split_once(key).unwrap_or_else(|| panic!("{key} is missing"));
    let (list, _) = behind.split_once(']').unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// True if a license's expression is met: any side of `OR` (or `/`, as it was once written), both of `AND`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    let every = |part: &str| part.split(" OR ").any(|licence| allowed.contains(licence.trim()));
    expression.split(" AND ").all(every)
}

#[test]
fn every_license_is_one_that_deny_toml_allows() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml")).unwrap();
    let allowed = list(&text, "\nallow = [");
    let of_inferno = list(&text, "crate = \"inferno\", allow = [");
    let crates = crates();
    assert!(crates.len() > 50 && crates.keys().any(|package| name(package) == "inferno"), "{crates:?}");
    for (package, licence) in &crates {
        let allowed = if name(package) == "inferno" { &of_inferno } else { &allowed };
        assert!(is_allowed(licence, allowed), "{package} is under {licence}: deny.toml allows {allowed:?}");
    }
    let licences: Vec<&String> = crates.values().collect();
    for licence in &allowed {
        assert!(licences.iter().any(|used| used.contains(licence.as_str())), "nothing is under {licence}");
    }
}

#[test]
fn every_crate_is_in_the_notices_that_packages_contain() {
    let notices =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("LICENSE-THIRD-PARTY.txt")).unwrap();
    let (list, texts) = notices.split_once("\n====").unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--all-features", "--locked", "--offline", "--edges=normal", "--prefix=none"]);
    command.args(["--target=x86_64-unknown-linux-gnu", "--format={p}"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let tree = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let mut checked = 0;
    for package in tree.lines().filter(|package| name(package) != "jitgraft") {
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap().trim_start_matches('v'));
        let entry = list.lines().find(|line| line.starts_with(&format!("{name} {version}: ")));
        let entry = entry.unwrap_or_else(|| panic!("{name} {version} is missing: run .ci/notices"));
        assert!(entry.contains("; text "), "{entry}");
        checked += 1;
    }
    assert!(checked > 50, "{checked} crates");
    // Whoever passes on the program must say where the source of inferno is, and under which license.
    assert!(list.contains("inferno's (CDDL-1.0) included, is available from https://crates.io/crates/"));
    assert!(texts.contains("COMMON DEVELOPMENT AND DISTRIBUTION LICENSE"));
    // The static program contains a C library that is no crate.
    assert!(list.contains("\nmusl ") && texts.contains("Rich Felker"));
}

#[test]
fn the_wheel_contains_the_same_licenses_and_notices() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = std::fs::read_to_string(root.join("python/pyproject.toml")).unwrap();
    let files = list(&project, "\nlicense-files = [");
    assert!(files.contains("LICENSE-THIRD-PARTY.txt"), "{files:?}");
    for file in files {
        let in_wheel = std::fs::read(root.join("python").join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(in_wheel == std::fs::read(root.join(&file)).unwrap(), "{file}");
    }
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Unicode-3.0".to_owned()]);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-2.0", false),
        ("GPL-2.0 OR MIT", true),
        ("Apache-2.0/MIT", true),
        ("MIT AND GPL-2.0", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
