//! The questions of docs/sql.md, asked of DuckDB and of Spark: both give one answer, and that of `jitgraft report`.
#![cfg(feature = "tables")]

use crate::support::python;

use python::{python, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Columns and rows of an answer, by the question's name.
type Answers = BTreeMap<String, Value>;

const RECORDINGS: [&str; 3] = ["tiers-recording", "recording-node", "recording-java"];

fn recordings() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    RECORDINGS.iter().map(|name| fixtures.join(name).join("perf.data.zst")).collect()
}

fn jitgraft(args: &[&str]) -> Vec<u8> {
    run(Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).args(recordings()))
}

/// A data set of the recordings.
fn fleet() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fleet = dir.path().join("fleet");
    jitgraft(&["export", "--quiet", "--to", "parquet", "--partition", "-o", fleet.to_str().unwrap()]);
    dir
}

fn answers(engine: &str, packages: &[&str], dir: &Path) -> Answers {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python(packages));
    command
        .arg(root.join("tests/end_to_end/sql/cookbook.py"))
        .arg(engine)
        .arg(root.join("docs/sql.md"))
        .current_dir(dir);
    serde_json::from_slice(&run(&mut command)).unwrap()
}

fn rows<'a>(answers: &'a Answers, name: &str) -> &'a [Value] {
    answers[name]["rows"].as_array().unwrap()
}

/// The rows of report for each function.
fn report() -> Vec<Value> {
    let report = ["report", "--quiet", "--format", "json", "--merge-tiers", "--event", "cpu-clock:u"];
    serde_json::from_slice(&jitgraft(&report)).unwrap()
}

#[test]
#[ignore = "needs python3: tests/run.sh --all"]
fn duckdb_answers_what_report_states() {
    let dir = fleet();
    let answers = answers("duckdb", &["duckdb"], dir.path());
    assert!(answers.len() >= 8 && answers.values().all(|answer| !answer["rows"].as_array().unwrap().is_empty()));
    let report = report();
    let base = |module: &Value| module.as_str().map(|path| path.rsplit('/').next().unwrap().to_owned());
    for row in rows(&answers, "hottest") {
        let of = |told: &&Value| told["symbol"] == row[0] && base(&told["module"]) == base(&row[1]);
        let sum = |field: &str| report.iter().filter(of).map(|told| told[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!((Some(sum("self")), Some(sum("samples"))), (row[2].as_u64(), row[3].as_u64()), "{row}");
    }
    let mut alone = 0;
    for row in rows(&answers, "total") {
        // Functions of one name in several modules are one here, and may be in one stack.
        let told: Vec<_> = report.iter().filter(|told| told["symbol"] == row[0]).collect();
        if let [told] = &told[..] {
            assert_eq!(told["total"], row[1], "{row}");
            alone += 1;
        }
    }
    assert!(alone >= 10, "{alone}");
}

#[test]
#[ignore = "needs python3 and javac: tests/run.sh --all"]
fn spark_answers_as_duckdb_does() {
    let dir = fleet();
    let duckdb = answers("duckdb", &["duckdb"], dir.path());
    let spark = answers("spark", &["pyspark"], dir.path());
    assert_eq!(duckdb.keys().collect::<Vec<_>>(), spark.keys().collect::<Vec<_>>());
    for name in duckdb.keys() {
        assert_eq!(duckdb[name]["columns"], spark[name]["columns"], "{name}");
        let (ours, theirs) = (rows(&duckdb, name), rows(&spark, name));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (one, other) in ours.iter().zip(theirs) {
            assert!(is_equal(one, other), "{name}: {one} and {other}");
        }
    }
}

/// A column more than this version writes stands for what a later version may add.
const NEWER: &str = "import duckdb, sys
duckdb.sql(f\"COPY (SELECT *, 7 AS added FROM '{sys.argv[1]}') TO '{sys.argv[2]}' (FORMAT parquet)\")";

#[test]
#[ignore = "needs python3 and javac: tests/run.sh --all"]
fn older_and_newer_files_are_queried_together() {
    let (dir, root) = (fleet(), Path::new(env!("CARGO_MANIFEST_DIR")));
    let samples = dir.path().join("fleet/samples");
    let host = std::fs::read_dir(&samples).unwrap().next().unwrap().unwrap().path();
    let day = std::fs::read_dir(host).unwrap().next().unwrap().unwrap().path();
    let some = std::fs::read_dir(day).unwrap().next().unwrap().unwrap().path();
    let [old, new] = ["host=old/day=2025-01-02", "host=new/day=2027-01-02"].map(|directory| samples.join(directory));
    for directory in [&old, &new] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::copy(root.join("tests/end_to_end/tables/version-1.parquet"), old.join("old.parquet")).unwrap();
    run(Command::new(python(&["duckdb"])).args(["-c", NEWER]).arg(&some).arg(new.join("new.parquet")));
    // The views are those of the document.
    let document = std::fs::read_to_string(root.join("docs/sql.md")).unwrap();
    let views = document.split("\n## Hottest functions").next().unwrap();
    let question = "SELECT host, count(*) AS n, sum(weight) AS weight, count(added) AS added, count(stack_id) AS numbered \
                    FROM samples WHERE host IN ('old', 'new') GROUP BY host ORDER BY host;";
    let asked = dir.path().join("sides.md");
    std::fs::write(&asked, format!("{views}\n```sql sides\n{question}\n```\n")).unwrap();
    let [duckdb, spark] = ["duckdb", "spark"].map(|engine| {
        let package = if engine == "spark" { "pyspark" } else { engine };
        let mut command = Command::new(python(&[package]));
        command.arg(root.join("tests/end_to_end/sql/cookbook.py")).arg(engine).arg(&asked).current_dir(dir.path());
        serde_json::from_slice::<Answers>(&run(&mut command)).unwrap()
    });
    let [newer, older] = rows(&duckdb, "sides") else { panic!("{duckdb:?}") };
    assert_eq!((&newer[0], &older[0]), (&Value::from("new"), &Value::from("old")));
    assert!(newer[1].as_u64() > Some(0) && newer[1] == newer[3] && newer[1] == newer[4], "{newer}");
    assert!(older[1].as_u64() > Some(0) && older[3] == 0 && older[4] == 0, "{older}");
    assert!(rows(&spark, "sides").iter().zip([newer, older]).all(|(one, other)| is_equal(one, other)), "{spark:?}");
}

/// Any answer becomes folded stacks by the query of the document: of all rows, those of `collapse`, and a picture.
#[test]
#[ignore = "needs python3: tests/run.sh --all"]
fn an_answer_becomes_the_stacks_of_collapse_and_a_flame_graph() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")));
    // Folded stacks leave out the parameters of C++'s functions, as inferno does. Of these, only thunks have (empty) ones.
    let inputs =
        ["tiers-recording", "recording-node"].map(|name| root.join("fixtures").join(name).join("perf.data.zst"));
    let jitgraft = |args: &[&str]| run(Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).args(&inputs));
    let fleet = dir.path().join("fleet");
    jitgraft(&["export", "--quiet", "--to", "parquet", "--partition", "-o", fleet.to_str().unwrap()]);
    let document = std::fs::read_to_string(root.join("docs/sql.md")).unwrap();
    let views = document.split("\n## Hottest functions").next().unwrap();
    let query = document.split("```sql folded\n").nth(1).unwrap().split("```").next().unwrap();
    let all = query.replace(" WHERE leaf_tier = 'optimized'", "");
    assert_ne!(all, query);
    let asked = dir.path().join("folded.md");
    std::fs::write(&asked, format!("{views}\n```sql all\n{all}```\n```sql part\n{query}```\n")).unwrap();
    let mut command = Command::new(python(&["duckdb"]));
    command.arg(root.join("tests/end_to_end/sql/cookbook.py")).arg("duckdb").arg(&asked).current_dir(dir.path());
    let answers: Answers = serde_json::from_slice(&run(&mut command)).unwrap();
    let without_parameters = |frame: &str| match frame.strip_prefix("virtual thunk to ") {
        Some(method) => format!("virtual thunk to {}", method.replace("()", "")),
        None => frame.to_owned(),
    };
    let lines = |name: &str| -> Vec<String> {
        let lines = rows(&answers, name).iter().map(|row| row[0].as_str().unwrap());
        lines.map(|line| line.split(';').map(without_parameters).collect::<Vec<_>>().join(";")).collect()
    };
    let folded = jitgraft(&["collapse", "--quiet", "--merge-tiers", "--event", "cpu-clock:u"]);
    let mut folded: Vec<_> = String::from_utf8(folded).unwrap().lines().map(str::to_owned).collect();
    let mut all = lines("all");
    folded.sort();
    all.sort();
    assert!(folded.len() > 100 && all == folded, "{:?}", all.iter().zip(&folded).find(|(one, other)| one != other));
    // What ran optimized is a part of it, and a picture.
    let (part, file) = (lines("part"), dir.path().join("part.folded"));
    let weight = |lines: &[String]| {
        lines.iter().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>()
    };
    assert!(0 < weight(&part) && weight(&part) < weight(&all));
    std::fs::write(&file, part.join("\n") + "\n").unwrap();
    let svg = run(Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(["flamegraph", "--quiet"]).arg(&file));
    let svg = String::from_utf8(svg).unwrap();
    let hottest = part.iter().max_by_key(|line| weight(std::slice::from_ref(line))).unwrap();
    let leaf = hottest.rsplit_once(' ').unwrap().0.rsplit(';').next().unwrap();
    assert!(svg.contains("<svg") && svg.contains(leaf.split(['<', '&', '>']).next().unwrap()), "{leaf}");
}

/// True if rows are equal, but for the last digits of quotients.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-9 * one.abs().max(1.0)
        }
        (one, other) => one == other,
    }
}
