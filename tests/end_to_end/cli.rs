//! Runs the program: messages, exit statuses, packed inputs, several inputs and events.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn jitgraft(args: &[&str], inputs: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).args(inputs).stdin(Stdio::null()).output().unwrap()
}

fn piped(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const STACKS: &str = "main;f 3\nmain;f;g 4\n";

#[test]
fn every_command_has_help() {
    for command in ["annotate", "collapse", "flamegraph", "report", "export", "formats"] {
        let help = stdout(&jitgraft(&[command, "--help"], &[]));
        assert!(help.contains("Usage: jitgraft"), "{help}");
    }
    let formats = stdout(&jitgraft(&["formats"], &[]));
    let row = |name: &str| formats.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("folded").contains(" - ") && row("pprof").contains(" inject ") && row("firefox").contains(" inject "));
}

#[test]
fn a_file_without_a_command_is_summarized_in_five_lines() {
    let fixture = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path);
    let recording = stdout(&jitgraft(&[], &[&fixture("php-recording/perf.data.zst")]));
    let lines: Vec<&str> = recording.lines().collect();
    let parts = [": perf", " samples of cpu-clock", "in JIT code", "doctor: ", "next: jitgraft doctor "];
    assert!(lines.len() == 5 && lines.iter().zip(parts).all(|(line, part)| line.contains(part)), "{recording}");
    // The share is doctor's.
    let (share, _) = lines[3].strip_prefix("doctor: ").unwrap().split_once(" of the samples: ").unwrap();
    let doctor = stdout(&jitgraft(&["doctor"], &[&fixture("php-recording/perf.data.zst")]));
    assert!(doctor.contains(share), "{share}: {doctor}");
    let other = stdout(&jitgraft(&[], &[&fixture("speedscope-pyspy/input.speedscope.json")]));
    assert!(other.lines().count() == 5 && other.contains(": speedscope"), "{other}");
}

#[test]
fn packed_inputs_are_unpacked_wherever_they_come_from() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(STACKS.as_bytes()).unwrap();
    let packed = zstd::bulk::compress(&gzip.finish().unwrap(), 1).unwrap();
    let dir = Dir::new();
    let file = dir.write("stacks.gz.zst", &packed);
    assert_eq!(stdout(&jitgraft(&["collapse"], &[&file])), STACKS);
    assert_eq!(stdout(&piped(&["collapse"], &packed)), STACKS);
    assert_eq!(stdout(&piped(&["collapse", "-"], STACKS.as_bytes())), STACKS);
    let cut = dir.write("cut.zst", &packed[..packed.len() - 4]);
    let output = jitgraft(&["collapse"], &[&cut]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cut.zst: cannot decompress (zstd)"), "{}", stderr(&output));
}

#[test]
fn an_input_from_a_pipe_is_exported_to_every_format() {
    let folded = b"a;b 2\na 1\n";
    let chrome = piped(&["export", "--to", "chrome", "-q"], folded);
    assert!(stdout(&chrome).contains("\"name\":\"b\""), "{}", stderr(&chrome));
    let spans = piped(&["export", "--to", "chrome", "-q", "--min-duration", "2us"], chrome.stdout.as_slice());
    assert!(stdout(&spans).contains("\"name\":\"b\""), "{}", stderr(&spans));
}

#[test]
fn inputs_are_merged() {
    let dir = Dir::new();
    let (a, b) = (dir.write("a", STACKS), dir.write("b", "main;f;g 1\nother;x 2\n"));
    assert_eq!(stdout(&jitgraft(&["collapse"], &[&a, &b])), "main;f 3\nmain;f;g 5\nother;x 2\n");
}

#[test]
fn an_unreadable_input_is_an_error_with_a_reason() {
    let dir = Dir::new();
    let cases = [(dir.write("text", "hello\n"), "is in an unknown format"), (dir.write("empty", ""), "is empty")];
    for (file, reason) in &cases {
        let output = jitgraft(&["report"], &[file]);
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.starts_with(&format!("error: {}: ", file.display())) && said.contains(reason), "{said}");
    }
    let missing = jitgraft(&["flamegraph"], &[&dir.path("missing")]);
    assert!(stderr(&missing).contains("missing: cannot open: No such file"), "{}", stderr(&missing));
}

#[test]
fn wrong_words_are_status_2() {
    let dir = Dir::new();
    let file = dir.write("stacks", STACKS);
    for args in [&["collapse", "--time", "x"][..], &["export", "--to", "nothing"], &["collapse", "--by", "cycles"]] {
        let output = jitgraft(args, &[&file]);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_output_that_fails_is_not_left_behind() {
    let dir = Dir::new();
    let nothing = dir.write("nothing", "a;b 0\n");
    let svg = dir.path("out.svg");
    let output = jitgraft(&["flamegraph", "-o", svg.to_str().unwrap()], &[&nothing]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no samples to draw"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir.0.path()).unwrap().count(), 1);
}

#[test]
fn damage_is_counted_and_strict_makes_it_a_failure() {
    let dir = Dir::new();
    let file = dir.write("damaged", format!("{STACKS}main;f;g x\n"));
    let long = format!("{}main;f;g x\n", STACKS.repeat(4000));
    let long = dir.write("long", long);
    let output = jitgraft(&["collapse"], &[&file]);
    assert!(output.status.success() && stderr(&output).contains("1 line skipped"), "{}", stderr(&output));
    assert_eq!(jitgraft(&["collapse", "--strict"], &[&file]).status.code(), Some(1));
    let output = jitgraft(&["collapse", "--strict"], &[&long]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("long: at byte 0x13880: 1 line skipped"), "{}", stderr(&output));
    assert_eq!(stdout(&jitgraft(&["collapse", "--quiet"], &[&long])), "main;f 12000\nmain;f;g 16000\n");
}

#[test]
fn grouping_by_what_the_input_lacks_is_refused() {
    let dir = Dir::new();
    let file = dir.write("stacks", STACKS);
    for (key, lacking) in [("cpu", "CPU numbers"), ("dso", "modules"), ("pid,line", "process IDs, source lines")] {
        let output = jitgraft(&["report", "--sort", key], &[&file]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{key}");
        assert!(
            stderr(&output).contains(&format!("cannot group by {lacking}, because the input has none")),
            "{}",
            stderr(&output)
        );
    }
    // With a key that it has, the others are only mentioned.
    let output = jitgraft(&["report", "--sort", "tid,sym"], &[&file]);
    assert!(stdout(&output).contains(" g"), "{}", stdout(&output));
    assert!(stderr(&output).contains("the input has no thread IDs"), "{}", stderr(&output));
}

#[test]
fn a_base_that_does_not_occur_is_answered_with_the_hottest_functions() {
    let dir = Dir::new();
    let file = dir.write("stacks", "a;b 1\nc;d 50\nc 7\n");
    let output = jitgraft(&["flamegraph", "--base", "nosuch"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("functions in this input: d, c, b, a"), "{}", stderr(&output));
}

#[test]
fn kinds_of_code_are_only_stated_if_the_input_states_them() {
    let dir = Dir::new();
    let kinds = |stacks: &str| {
        let output = jitgraft(&["report", "--by", "kind", "--to", "csv"], &[&dir.write("stacks", stacks)]);
        let text = stdout(&output);
        text.lines().map(|row| row.rsplit(',').next().unwrap().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(kinds("java;Main.run 3\njava;[libc.so.6] 1\n"), ["kind", "unknown"]);
    // One who marks the kernel's functions says that the others aren't.
    assert_eq!(kinds("java;Main.run 3\njava;read_[k] 1\n"), ["kind", "native", "kernel"]);
    let file = dir.write("stacks", STACKS);
    let output = jitgraft(&["report", "--kind", "native"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("kinds of code in this input: unknown"), "{}", stderr(&output));
}

#[test]
fn the_report_in_three_layouts() {
    let dir = Dir::new();
    let file = dir.write("stacks", STACKS);
    let text = stdout(&jitgraft(&["report", "--sort", "total", "--limit", "2"], &[&file]));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(text.lines().next(), Some("# 7 samples"));
    assert_eq!(rows[4], ["42.86%", "100.00%", "3", "7", "3", "unknown", "f"]);
    assert_eq!(rows.len(), 6);
    let csv = stdout(&jitgraft(&["report", "--format", "csv"], &[&file]));
    assert!(csv.contains("57.1429,57.1429,4,4,4,unknown,,,g,\n"), "{csv}");
    let json = stdout(&jitgraft(&["report", "--format", "json"], &[&file]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["symbol"], "g");
}

#[test]
fn a_difference_is_drawn_against_another_input() {
    let dir = Dir::new();
    let (before, after) = (dir.write("before", STACKS), dir.write("after", "main;f 3\nmain;f;g 1\n"));
    let args = ["flamegraph", "--style", "inferno", "--diff", before.to_str().unwrap()];
    let svg = stdout(&jitgraft(&args, &[&after]));
    assert!(svg.contains("g (1 samples, 25.00%; -75.00%)"), "{svg}");
}

#[test]
fn a_closed_pipe_is_a_quiet_success() {
    let dir = Dir::new();
    // More than a pipe holds.
    let lines: String = (0..20_000).map(|n| format!("main;f{n} 1\n")).collect();
    let file = dir.write("stacks", lines);
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("collapse").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}

#[test]
fn pictures_are_the_same_every_time() {
    let dir = Dir::new();
    let file = dir.write("stacks", STACKS);
    let draw = |threads| stdout(&jitgraft(&["flamegraph", "--threads", threads, "--title", "T & T"], &[&file]));
    let svg = draw("1");
    assert_eq!(svg, draw("4"));
    assert!(svg.contains("T &amp; T"));
}

#[test]
fn formats_states_of_tables_whether_this_build_has_them() {
    let told = stdout(&jitgraft(&["formats"], &[]));
    let line = told.lines().find(|line| line.starts_with("parquet")).unwrap();
    assert_eq!(line.contains("not in this build"), !cfg!(feature = "tables"), "{line}");
}

#[test]
fn an_error_of_default_flags_names_the_variable_that_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.folded");
    fs::write(&input, "main;f 3\n").unwrap();
    let run = |defaults: &str, flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.env("JITGRAFT_OPTS", defaults).arg("report").args(flags).arg(&input).output().unwrap()
    };
    for defaults in ["--limit x", "--nonsense", "--format png", "--threads 0", "--limit", "--source-maps", "-q --symfs"]
    {
        let output = run(defaults, &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{defaults}: {said}");
        assert!(said.starts_with("error: JITGRAFT_OPTS"), "{defaults}: {said}");
        assert!(!said.contains("invalid digit") && !said.contains("non-zero type"), "{defaults}: {said}");
    }
    // What is typed wrong is not blamed on the variable.
    let said = stderr(&run("--limit 3", &["--format", "png"]));
    assert!(!said.contains("JITGRAFT_OPTS"), "{said}");
    assert!(run("--limit 3 --width 80", &[]).status.success());
}

#[test]
fn a_list_of_inputs_may_have_lines_as_windows_ends_them() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.folded", "b.folded"] {
        fs::write(dir.path().join(name), "main;f 3\n").unwrap();
    }
    let list = dir.path().join("list");
    for ends in ["\r\n", "\n", "\0"] {
        let paths = ["a.folded", "b.folded"].map(|name| format!("{}{ends}", dir.path().join(name).display()));
        fs::write(&list, paths.concat()).unwrap();
        let output = jitgraft(&["merge", "-q", &format!("@{}", list.display())], &[]);
        assert_eq!(stdout(&output), "main;f 6\n", "{ends:?}");
        fs::write(&list, format!("\u{feff}{}", paths.concat())).unwrap();
        let output = jitgraft(&["merge", "-q", &format!("@{}", list.display())], &[]);
        assert_eq!(stdout(&output), "main;f 6\n", "{ends:?}, after a byte order mark");
    }
}
