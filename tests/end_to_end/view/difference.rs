//! The difference to a profile recorded before: the functions that changed are those of `jitgraft report --diff`.

use super::shown::Shown;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

const BEFORE: &str = "main;a;b 301\nmain;a;c 199\nmain;d 501\nmain 100\n";
const AFTER: &str = "main;a;b 703\nmain;a;c 211\nmain;e 400\nmain 110\n";

/// Files of two profiles.
fn profiles() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, stacks) in [("before.folded", BEFORE), ("after.folded", AFTER)] {
        fs::write(dir.path().join(name), stacks).unwrap();
    }
    dir
}

/// The rows of the page's table: before, after and change as text, the word, samples before and after, module, name.
fn rows(shown: &mut Shown) -> Vec<Vec<String>> {
    let rows = shown.page.evaluate(
        "Array.from(document.querySelectorAll('#difference-table tbody tr'), (row) => \
         Array.from(row.cells, (cell) => cell.textContent))",
    );
    let text = |cell: &Value| cell.as_str().unwrap().to_owned();
    rows.as_array().unwrap().iter().map(|row| row.as_array().unwrap().iter().map(text).collect()).collect()
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_functions_that_changed_are_those_of_report() {
    let dir = profiles();
    let [before, after] = ["before.folded", "after.folded"].map(|name| dir.path().join(name));
    let before = before.to_str().unwrap();
    let mut shown = Shown::with(&after, &[], &["--diff", before, "--sample-weight", "1"]).part("difference");
    shown.page.click_on("#difference-noise");
    let reported: Vec<Value> =
        serde_json::from_str(&shown.report(&["--format", "json", "--diff", before, "--sample-weight", "1"])).unwrap();
    let mut expected: Vec<Vec<String>> = Vec::new();
    for row in &reported {
        let percent = |key: &str| format!("{:.2}%", row[key].as_f64().unwrap());
        let delta = row["delta"].as_f64().unwrap();
        let delta = format!("{}{:.2}", if delta < 0.0 { "−" } else { "+" }, delta.abs());
        let word = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| row[key].as_u64().unwrap().to_string();
        let (before, after) = (number("samples before"), number("samples after"));
        expected.push(vec![
            percent("before%"),
            percent("after%"),
            delta,
            word("change"),
            before,
            after,
            word("module"),
            word("symbol"),
        ]);
    }
    expected.sort();
    let mut told = rows(&mut shown);
    told.sort();
    assert_eq!(told, expected);
    shown.page.click_on("#difference-noise");
    let left = rows(&mut shown);
    assert!(!left.is_empty() && left.len() < told.len() && left.iter().all(|row| row[3] != "noise"), "{left:?}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_profile_and_itself_do_not_differ() {
    let dir = profiles();
    let after = dir.path().join("after.folded");
    let mut shown =
        Shown::with(&after, &[], &["--diff", after.to_str().unwrap(), "--sample-weight", "1"]).part("difference");
    assert_eq!(rows(&mut shown), [["No function changed by more than sampling noise"]]);
    assert!(shown.text_of("#difference-facts").contains("+0.0%"));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn amounts_as_they_are_differ_where_shares_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let [before, after] = ["before.folded", "after.folded"].map(|name| dir.path().join(name));
    fs::write(&before, "main;a 101\nmain;b 203\n").unwrap();
    fs::write(&after, "main;a 202\nmain;b 406\n").unwrap();
    let mut shown =
        Shown::with(&after, &[], &["--diff", before.to_str().unwrap(), "--sample-weight", "1"]).part("difference");
    assert_eq!(change_of_b(&mut shown), "+0.0%, may be noise");
    shown.page.click_on("#difference-normalize");
    assert_eq!(change_of_b(&mut shown), "+100.0%, may be noise");
    shown.reload();
    assert_eq!(change_of_b(&mut shown), "+100.0%, may be noise");
}

/// The end of the tooltip of the box of `b`.
fn change_of_b(shown: &mut Shown) -> String {
    let place = shown.page.evaluate("document.getElementById('difference-flame').view.placeOf('b')");
    shown.page.point_at((place["x"].as_f64().unwrap(), place["y"].as_f64().unwrap()));
    let told = shown.text_of("#difference-flame-tip");
    told.rsplit_once(", ")
        .unwrap()
        .0
        .rsplit_once(", ")
        .map_or(told.clone(), |(before, _)| told[before.len() + 2..].to_owned())
}
