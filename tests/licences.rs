//! The program's dependencies may be passed on as they are: `deny.toml` names each license. `cargo deny` looks further
//! (at texts and known weaknesses), but is not available everywhere.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The crates of the program itself, without those of tests, with their licenses.
fn crates() -> BTreeMap<String, String> {
    let words = ["metadata", "--format-version=1", "--all-features", "--locked", "--offline"];
    let mut command = Command::new(env!("CARGO"));
    command.args(words).args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let resolve = &metadata["resolve"];
    let nodes: BTreeMap<&str, &Value> =
        resolve["nodes"].as_array().unwrap().iter().map(|node| (node["id"].as_str().unwrap(), node)).collect();
    let (mut reached, mut left) = (BTreeSet::new(), vec![resolve["root"].as_str().unwrap()]);
    while let Some(id) = left.pop() {
        let deps = nodes[id]["deps"].as_array().unwrap().iter();
        let is_built = |dep: &&Value| dep["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] != "dev");
        if reached.insert(id) {
            left.extend(deps.filter(is_built).map(|dep| dep["pkg"].as_str().unwrap()));
        }
    }
    let packages = metadata["packages"].as_array().unwrap().iter();
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    packages
        .filter(|package| reached.contains(package["id"].as_str().unwrap()))
        .map(|package| (text(package, "name"), text(package, "license")))
        .collect()
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
    assert!(crates.len() > 50 && crates.contains_key("inferno"), "{crates:?}");
    for (name, licence) in &crates {
        let allowed = if name == "inferno" { &of_inferno } else { &allowed };
        assert!(is_allowed(licence, allowed), "{name} is under {licence}: deny.toml allows {allowed:?}");
    }
    let licences: Vec<&String> = crates.values().collect();
    for licence in &allowed {
        assert!(licences.iter().any(|used| used.contains(licence.as_str())), "nothing is under {licence}");
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
