//! The questions of docs/sql.md, asked of DuckDB and of Spark: both give one answer, and that of `jitgraft report`.
#![cfg(feature = "tables")]

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

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn jitgraft(args: &[&str]) -> Vec<u8> {
    run(Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).args(recordings()))
}

/// A Python that has these packages.
fn python(packages: &[&str]) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{}", packages.join("-")));
    let python = home.join("bin/python");
    if !home.join("done").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages));
        std::fs::write(home.join("done"), "").unwrap();
    }
    python
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
    command.arg(root.join("tests/sql/cookbook.py")).arg(engine).arg(root.join("docs/sql.md")).current_dir(dir);
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
fn duckdb_answers_what_report_says() {
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
