//! Trace events: Perfetto's answers, other writers' habits, and files larger than memory.

use crate::support::effort::is_thorough;
use crate::support::limits;
use crate::support::miri;
use crate::support::runner;

use runner::{jitgraft, stdout};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/trace-miri").join(name)
}

/// Rows of cells, those of a column that is not in the other table left out. Numbers are spelled alike.
fn cells(table: &str, separator: char, columns: &[&str]) -> Vec<Vec<String>> {
    let mut lines = table.lines().filter(|line| !line.is_empty());
    let header: Vec<&str> = lines.next().unwrap().split(separator).collect();
    let places: Vec<usize> =
        columns.iter().map(|wanted| header.iter().position(|column| column == wanted).unwrap()).collect();
    let spelled = |cell: &str| match (cell, cell.parse::<f64>()) {
        ("NULL", _) => String::new(),
        (_, Ok(number)) => number.to_string(),
        _ => cell.trim_matches('"').to_owned(),
    };
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(separator).collect();
            places.iter().map(|&at| spelled(cells[at])).collect()
        })
        .collect()
}

#[test]
fn answers_equal_perfettos() {
    let input = fixture("input.json");
    let cases: [(&[&str], &str, &[&str]); 4] = [
        (&["--spans"], "perfetto.spans.tsv", &["name", "count", "sum", "%", "min", "max", "avg", "stddev"]),
        (&["--all"], "perfetto.all.tsv", &["name", "count", "sum"]),
        (&["--gaps"], "perfetto.gaps.tsv", &["ts", "dur"]),
        (&["--sub", "borrow_tracker"], "perfetto.sub_borrow_tracker.tsv", &["name", "count", "sum", "min", "max"]),
    ];
    for (question, answer, columns) in cases {
        for compat in [&[][..], &["--perfetto-compat"]] {
            let args = [&["stats", "--format", "csv"], question, compat].concat();
            let theirs = fs::read_to_string(fixture(answer)).unwrap();
            assert_eq!(cells(&stdout(&args, &input), ',', columns), cells(&theirs, '\t', columns), "{args:?}");
        }
    }
}

/// Written by the program itself, from phases of all sorts.
fn edge_cases(dir: &Path) -> PathBuf {
    let path = dir.join("edges.json");
    let event = |rest: &str| format!("{{\"cat\":\"c\",\"pid\":1,{rest}}},\n");
    let mut text = String::from("[\n");
    for rest in [
        r#""name":"outer","ph":"B","tid":5,"ts":7"#,
        r#""name":"open","ph":"B","tid":5,"ts":8"#,
        r#""name":"outer","ph":"E","tid":5,"ts":9"#,
        r#""name":"next","ph":"B","tid":5,"ts":"10""#,
        r#""name":"next","ph":"E","tid":5,"ts":11.0004"#,
        r#""name":"x1","ph":"X","tid":6,"ts":20,"dur":10"#,
        r#""name":"over","ph":"X","tid":6,"ts":28,"dur":10"#,
        r#""name":"inner","ph":"X","tid":6,"ts":25,"dur":2"#,
        r#""name":"late","ph":"E","tid":9,"ts":71"#,
        r#""name":"late","ph":"B","tid":9,"ts":70"#,
        r#""name":"frame","ph":"b","id":-2,"tid":5,"ts":12,"args":{"message":"f \ud83d\ude00;"}"#,
        r#""name":"frame","ph":"e","id":-2,"tid":5,"ts":14"#,
        r#""name":"zero","ph":"B","tid":0,"ts":50"#,
        r#""name":"one","ph":"B","tid":1,"ts":51"#,
        r#""name":"zero","ph":"E","tid":0,"ts":52"#,
        r#""name":"one","ph":"E","tid":1,"ts":53"#,
        r#""name":"count","ph":"C","tid":1,"ts":53,"args":{"n":1}"#,
        r#""name":"never","ph":"B","tid":12,"ts":90"#,
    ] {
        text += &event(rest);
    }
    // The end is missing, as after a crash.
    text += "{\"cat\":\"c\",\"na";
    fs::write(&path, text).unwrap();
    path
}

fn spans(args: &[&str], path: &Path) -> BTreeMap<String, String> {
    let args = [&["stats", "--format", "csv", "-q", "--all"], args].concat();
    let rows = cells(&stdout(&args, path), ',', &["name", "count", "sum"]);
    rows.into_iter().map(|row| (row[0].clone(), format!("{} {}", row[1], row[2]))).collect()
}

#[test]
fn all_phases_and_their_oddities() {
    let dir = tempfile::tempdir().unwrap();
    let path = edge_cases(dir.path());
    let ours = spans(&[], &path);
    let expected = [
        ("frame", "1 2000"),
        ("inner", "1 2000"),
        ("late", "1 1000"),
        ("next", "1 1000"),
        ("one", "1 2000"),
        ("open", "1 1000"),
        ("outer", "1 2000"),
        ("over", "1 10000"),
        ("x1", "1 10000"),
        ("zero", "1 2000"),
    ];
    assert_eq!(ours, expected.map(|(name, sums)| (name.to_owned(), sums.to_owned())).into());
    // Perfetto drops the overlap, and gives thread 0 the track of thread 1, where it closes what is open.
    let compat = spans(&["--perfetto-compat"], &path);
    assert_eq!((compat.get("over"), compat["one"].as_str()), (None, "1 1000"));
    let said = String::from_utf8(jitgraft(&["stats"], &path).stderr).unwrap();
    for part in
        ["1 span without an end", "1 span that ended before inner spans", "1 trace event skipped: the file ends"]
    {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let folded = stdout(&["collapse", "-q", "--name", "frame"], &path);
    assert_eq!(folded, "thread;f 😀: 2000\n");
}

#[test]
fn interpreted_calls_nest_by_time() {
    let folded = stdout(&["collapse", "--name", "frame"], &fixture("input.json"));
    let total: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let deepest = folded.lines().map(|line| line.matches(';').count()).max().unwrap();
    assert!(deepest >= 3, "no nesting in {folded}");
    // The calls on top follow each other: together they are the trace, but for the time before the first.
    let all = stdout(&["collapse"], &fixture("input.json"));
    let whole: u64 = all.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(total, whole);
    assert!(all.contains(";step;borrow_tracker "), "{all}");
    let named = stdout(&["collapse", "--sub-names", "borrow_tracker"], &fixture("input.json"));
    assert!(named.contains(";step;on_stack_pop "), "{named}");
}

#[test]
fn a_smaller_trace_states_the_same_of_parts_that_it_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, smaller) = (dir.path().join("whole.json"), dir.path().join("smaller.json"));
    miri::trace(&mut fs::File::create(&whole).unwrap(), 300).unwrap();
    let out = smaller.to_str().unwrap();
    stdout(&["export", "--to", "chrome", "-q", "-o", out], &whole);
    for question in ["--spans", "--all", "--gaps"] {
        assert_eq!(stdout(&["stats", question], &whole), stdout(&["stats", question], &smaller), "{question}");
    }
    stdout(&["export", "--to", "chrome", "-q", "--min-duration", "1us", "-o", out], &whole);
    let (before, after) = (spans(&[], &whole), spans(&[], &smaller));
    assert!(after.len() < before.len() && after["frame"] == before["frame"]);
    stdout(&["export", "--to", "chrome", "-q", "--name", "step", "--sub-names", "step", "-o", out], &whole);
    let step = before["step"].clone();
    assert_eq!(spans(&[], &smaller), BTreeMap::from([("eval_statement".to_owned(), step)]));
}

#[test]
fn frames_on_a_thread_of_their_own_are_calls_for_every_viewer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("frames.json");
    let out = path.to_str().unwrap();
    stdout(
        &["export", "--to", "chrome", "-q", "--sub-names", "frame", "--name", "frame", "-o", out],
        &fixture("input.json"),
    );
    let events: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let phases: BTreeSet<&str> =
        events["traceEvents"].as_array().unwrap().iter().map(|event| event["ph"].as_str().unwrap()).collect();
    assert_eq!(phases, BTreeSet::from(["M", "X"]));
    let folded = stdout(&["collapse"], &path);
    assert_eq!(
        folded.replace("frame_of_main", "main"),
        stdout(&["collapse", "--name", "frame"], &fixture("input.json"))
    );
}

#[test]
fn other_members_may_precede_the_events() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, report) = (dir.path().join("trace.json"), dir.path().join("report.json"));
    let long = "x".repeat(100_000);
    let event = r#"{"name":"work","ph":"X","ts":1000000,"dur":5,"pid":1,"tid":1}"#;
    fs::write(&trace, format!(r#"{{"metadata":{{"command_line":"{long}"}},"traceEvents":[{event}]}}"#)).unwrap();
    assert!(stdout(&["collapse"], &trace).contains("work 5"));
    fs::write(&report, format!(r#"{{"metadata":"{long}"}}"#)).unwrap();
    let output = jitgraft(&["collapse"], &report);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("has no traceEvents"), "{said}");
}

#[test]
fn spans_without_a_name_count_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    fs::write(
        &trace,
        r#"[{"ph":"X","ts":1,"dur":5,"pid":1,"tid":1},{"name":"f","ph":"X","ts":9,"dur":2,"pid":1,"tid":1}]"#,
    )
    .unwrap();
    assert_eq!(
        spans(&[], &trace),
        [("[unnamed]", "1 5000"), ("f", "1 2000")].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
    );
    for args in [&["stats"][..], &["collapse"], &["export", "--to", "chrome"], &["flamegraph"]] {
        stdout(args, &trace);
    }
}

#[test]
fn a_time_at_which_nothing_was_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    fs::write(&trace, r#"[{"name":"work","ph":"X","ts":1500000,"dur":5,"pid":1,"tid":1}]"#).unwrap();
    let said = |time: &str| {
        let output = jitgraft(&["export", "--to", "chrome", "--time", time], &trace);
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said("7,8").contains("the input has 1, from 1.500000000 s to 1.500005000 s"), "{}", said("7,8"));
    assert!(!said("1,2").contains("warning"), "{}", said("1,2"));
}

#[test]
fn presets_ask_many_traces_at_once() {
    let input = fixture("input.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let both = command.args(["stats", "--preset", "miri", "--format", "json"]).args([&input, &input]).output().unwrap();
    let both: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    let one: serde_json::Value =
        serde_json::from_str(&stdout(&["stats", "--preset", "miri", "--format", "json"], &input)).unwrap();
    let sum = |tables: &serde_json::Value| tables["what step did"][0]["sum"].as_i64().unwrap();
    assert_eq!(sum(&both), 2 * sum(&one));
    let dir = tempfile::tempdir().unwrap();
    let preset = dir.path().join("mine");
    // What the command line excludes goes before what the file excludes.
    fs::write(&preset, "exclude frame step\nspans\n").unwrap();
    let mine = preset.to_str().unwrap();
    let excluding = |asked: &[&str]| stdout(&[&["stats", "--format", "json"], asked].concat(), &input);
    let by_flag = excluding(&["--preset", mine, "--exclude", "frame"]);
    assert_eq!(by_flag, excluding(&["--spans", "--exclude", "frame"]));
    assert_ne!(by_flag, excluding(&["--preset", mine]));
    fs::write(&preset, "sub step\nnonsense\n").unwrap();
    let output = jitgraft(&["stats", "--preset", preset.to_str().unwrap()], &input);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("mine: line 2: \"nonsense\" is not one of"));
}

/// The same events as other writers would have them: in one line; indented, in an object with members around them; each
/// with events in its arguments that are none of this trace; cut at the end.
fn spellings(trace: &str) -> Vec<(&'static str, Vec<u8>)> {
    let value: serde_json::Value = serde_json::from_str(trace).unwrap();
    let stray = serde_json::json!({"ph": "X", "name": "stray", "ts": 1, "dur": 9, "pid": 1, "tid": 0});
    let mut strays = value.clone();
    for event in strays.as_array_mut().unwrap() {
        event["args"]["calls"] = vec![stray.clone(); 9].into();
        event["args"]["text"] = "}],\n{\"ph\":\"X\"}\\".into();
    }
    let object = serde_json::json!({"a": ["]}", stray], "traceEvents": value, "z": vec![stray.clone(); 9000]});
    let cut = trace.trim_end().trim_end_matches(']');
    vec![
        ("lines", trace.into()),
        ("one line", trace.replace('\n', "").into()),
        ("indented", serde_json::to_vec_pretty(&object).unwrap()),
        ("strays", serde_json::to_vec(&strays).unwrap()),
        ("cut", cut.into()),
    ]
}

#[test]
fn pieces_of_any_spelling_state_the_same_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let mut trace = Vec::new();
    miri::trace(&mut trace, 500).unwrap();
    let trace = String::from_utf8(trace).unwrap();
    fs::write(&path, &trace).unwrap();
    let asked = ["stats", "-q", "--preset", "miri", "--threads"];
    let expected = stdout(&[&asked[..], &["1"]].concat(), &path);
    let folded = stdout(&["collapse", "--threads", "1"], &path);
    assert!(!expected.contains("stray") && expected.contains("borrow_tracker"), "{expected}");
    for (spelling, bytes) in spellings(&trace) {
        assert!(bytes.len() > 1 << 20, "{spelling} is one piece");
        fs::write(&path, bytes).unwrap();
        let all_threads: &[&str] = if is_thorough() { &["1", "2", "5"] } else { &["5"] };
        for &threads in all_threads {
            let said = jitgraft(&[&asked[..], &[threads]].concat(), &path);
            assert!(said.stdout == expected.as_bytes(), "{spelling}, {threads} threads");
            assert!(said.stderr.is_empty(), "{spelling}: {}", String::from_utf8_lossy(&said.stderr));
            assert!(stdout(&["collapse", "--threads", threads], &path) == folded, "{spelling}, {threads} threads");
        }
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(trace.as_bytes()).unwrap();
    let zstd = zstd::encode_all(trace.as_bytes(), 1).unwrap();
    for packed in [gzip.finish().unwrap(), zstd] {
        fs::write(&path, packed).unwrap();
        assert!(stdout(&[&asked[..], &["2"]].concat(), &path) == expected);
        let mut piped = Command::new("sh");
        let script = "cat \"$1\" | \"$0\" stats --preset miri --threads 2 -";
        let piped = piped.args(["-c", script, env!("CARGO_BIN_EXE_jitgraft")]).arg(&path).output().unwrap();
        assert!(piped.stdout == expected.as_bytes());
    }
}

#[test]
fn a_trace_larger_than_the_address_space() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.json");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    let long = "x".repeat(20_000);
    file.write_all(b"[\n").unwrap();
    for number in 0..12_000u64 {
        writeln!(file, r#"{{"name":"f","ph":"X","pid":1,"tid":1,"ts":{number},"dur":0.5,"args":{{"v":"{long}"}}}},"#)
            .unwrap();
    }
    drop(file);
    assert!(fs::metadata(&path).unwrap().len() > 220 << 20);
    // In KiB: beside the program a fourteenth of the file, half of which may be memory of its own.
    let (space, own) = (limits::loaded_kib() + 16_384, 8_192);
    let script = format!("ulimit -v {space}; ulimit -d {own}; exec \"$0\" stats --all --threads 1 --format csv \"$1\"");
    let mut command = Command::new("sh");
    let output = command.args(["-c", &script, env!("CARGO_BIN_EXE_jitgraft")]).arg(&path).output().unwrap();
    let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("f,12000,6000000,500,500,500,0"), "{out}{said}");
}

#[test]
fn spans_written_by_tracing_chrome() {
    use tracing_subscriber::layer::SubscriberExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spans.json");
    let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new().file(&path).include_args(true).build();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        for _ in 0..3 {
            let _outer = tracing::info_span!("outer").entered();
            let _inner = tracing::info_span!("inner", inner = "part").entered();
            tracing::info!("an event");
        }
    });
    drop(guard);
    let ours = spans(&[], &path);
    assert_eq!(ours.keys().collect::<Vec<_>>(), ["inner", "outer"]);
    assert!(ours.values().all(|sums| sums.starts_with("3 ")), "{ours:?}");
    let sub = stdout(&["stats", "--sub", "inner", "--format", "csv"], &path);
    assert_eq!(cells(&sub, ',', &["name", "count"]), [["part", "3"]]);
    let folded = stdout(&["collapse"], &path);
    assert!(folded.contains(";outer;inner "), "{folded}");
}
