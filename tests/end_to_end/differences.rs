//! Differences between two profiles: which functions are the same, and what is said of a change.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// A row of `report --diff`, by the function's name.
#[derive(Debug, PartialEq)]
struct Row {
    change: String,
    before: f64,
    after: f64,
}

struct Dir(TempDir);

impl Dir {
    fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Self(dir)
    }

    fn run(&self, args: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .current_dir(self.0.path())
            .args(args.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn rows(&self, args: &str) -> BTreeMap<String, Row> {
        let json: serde_json::Value = serde_json::from_str(&self.run(&format!("report --format json {args}"))).unwrap();
        let row = |row: &serde_json::Value| {
            let number = |key: &str| row[key].as_f64().unwrap();
            let change = row["change"].as_str().unwrap_or_default().to_owned();
            let row_of = Row { change, before: number("before%"), after: number("after%") };
            (row["symbol"].as_str().unwrap().to_owned(), row_of)
        };
        json.as_array().unwrap().iter().map(row).collect()
    }

    fn changes(&self, args: &str) -> BTreeMap<String, String> {
        self.rows(args).into_iter().map(|(name, row)| (name, row.change)).collect()
    }
}

fn map(rows: &[(&str, &str)]) -> BTreeMap<String, String> {
    rows.iter().map(|(name, change)| ((*name).to_owned(), (*change).to_owned())).collect()
}

/// Lines of perf script: samples of one frame each.
fn script(pid: u32, samples: &[(&str, u32)]) -> String {
    let mut text = String::new();
    for (name, count) in samples {
        for _ in 0..*count {
            text += &format!("app {pid} 1.000000: 1 cpu-clock:\n\t7f0000000010 {name} (/tmp/perf-{pid}.map)\n\n");
        }
    }
    text
}

#[test]
fn names_that_belong_to_a_run_are_paired_unless_exact_names_are_wanted() {
    let before = [
        ("L$$Lambda$14/0x00007f01e4000a08.run", 400),
        ("L$$Lambda$15/0x00007f01e4000c48.run", 100),
        ("julia_f_1234", 100),
        ("TRACE-8$App\\f$5", 100),
        ("jdk.internal.reflect.GeneratedMethodAccessor3.invoke", 300),
    ];
    let after = [
        ("L$$Lambda$21/0x00007fad04000a08.run", 410),
        ("L$$Lambda$22/0x00007fad04000c48.run", 90),
        ("julia_f_77", 100),
        ("TRACE-11$App\\f$5", 100),
        ("jdk.internal.reflect.GeneratedMethodAccessor12.invoke", 300),
    ];
    let dir = Dir::with(&[("before", &script(7, &before)), ("after", &script(8, &after))]);
    let rows = dir.rows("--diff before after");
    assert_eq!(rows.len(), 5, "{rows:#?}");
    assert!(rows.values().all(|row| row.change == "noise"), "{rows:#?}");
    let lambda = &rows["L$$Lambda$22/0x00007fad04000c48.run"];
    assert_eq!((lambda.before, lambda.after), (10.0, 9.0));
    let exact = dir.changes("--exact-names --diff before after");
    assert_eq!(exact.values().filter(|change| *change == "new").count(), 5, "{exact:#?}");
}

#[test]
fn an_edited_line_or_another_directory_makes_no_new_function() {
    let before = [("JS:*f /old/app.js:10:3", 500), ("JS:*f /old/app.js:90:3", 300), ("py::g:/old/m.py", 200)];
    let after = [("JS:*f /new/app.js:12:3", 500), ("JS:*f /new/app.js:95:3", 300), ("py::g:/new/lib/m.py", 200)];
    let dir = Dir::with(&[("before", &script(7, &before)), ("after", &script(8, &after))]);
    for exact in ["", "--exact-names "] {
        let rows = dir.rows(&format!("{exact}--diff before after"));
        assert!(rows.len() == 3 && rows.values().all(|row| row.before == row.after), "{rows:#?}");
    }
}

#[test]
fn what_was_measured_is_compared_by_amount() {
    let trace = |work: f64| {
        format!(
            r#"[{{"name":"work","ph":"X","ts":0,"dur":{work},"pid":1,"tid":1}},{{"name":"rest","ph":"X","ts":70000,"dur":2000,"pid":1,"tid":1}}]"#
        )
    };
    let callgrind = |helper: u32| {
        format!(
            "version: 1\ncreator: callgrind-3.19.0\npositions: line\nevents: Ir\n\nfn=main\n3 1000\n\nfn=helper\n9 {helper}\n"
        )
    };
    let dir = Dir::with(&[
        ("before.json", &trace(68000.0)),
        ("after.json", &trace(900.0)),
        ("before.cg", &callgrind(100)),
        ("after.cg", &callgrind(130)),
        ("same.cg", &callgrind(100)),
    ]);
    assert_eq!(dir.changes("--diff before.json after.json"), map(&[("work", "less"), ("rest", "same")]));
    assert_eq!(dir.changes("--diff before.cg after.cg"), map(&[("main", "same"), ("helper", "more")]));
    let text = dir.run("report --diff before.json after.json");
    assert!(text.contains("# the runs differ in length: 70.0 ms before, 2.90 ms after (-95.86%)"), "{text}");
    assert!(text.contains("# 1 of 2 functions changed ("), "{text}");
    assert!(!dir.run("report --diff before.cg same.cg").contains("differ in length"));
    let costs = dir.run("report --diff before.cg after.cg");
    assert!(costs.contains("1,100 Ir before, 1,130 Ir after"), "{costs}");
}

#[test]
fn sums_are_not_judged_unless_the_weight_of_a_sample_is_known() {
    let dir = Dir::with(&[("before", "main;a 100000\nmain;b 900000\n"), ("after", "main;a 400000\nmain;b 600000\n")]);
    let unjudged = map(&[("a", ""), ("b", "")]);
    assert_eq!(dir.changes("--diff before after"), unjudged);
    assert!(dir.run("report --diff before after").contains("# cannot tell changes from noise"));
    let judged = dir.changes("--sample-weight 1000 --diff before after");
    assert_eq!(judged, map(&[("a", "more"), ("b", "less")]));
    // Ten samples of each side.
    let few = dir.changes("--sample-weight 100000 --diff before after");
    assert_eq!(few, map(&[("a", "noise"), ("b", "noise")]));
    let picture = dir.run("flamegraph --diff before after");
    assert!(picture.contains("the number of samples is unknown") && !picture.contains("within noise"));
    let picture = dir.run("flamegraph --sample-weight 1000 --diff before after");
    assert!(picture.contains("within noise"));
}

#[test]
fn a_flame_graph_pairs_functions_as_the_table_does() {
    let lambda = |number: u32, address: u32| format!("L$$Lambda${number}/0x{address:016x}.run");
    let before = script(7, &[(&lambda(1, 0xa08), 50), (&lambda(2, 0xc48), 50)]);
    let after = script(7, &[(&lambda(1, 0xfa08), 50), (&lambda(2, 0xfc48), 50)]);
    let dir = Dir::with(&[("before", &before), ("after", &after)]);
    assert!(!dir.run("flamegraph --diff before after").contains("in calls that no longer occur"));
    assert!(dir.run("flamegraph --exact-names --diff before after").contains("in calls that no longer occur"));
    dir.run("view --no-open --diff before after -o page.html");
}
