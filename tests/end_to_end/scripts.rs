//! What scripts and Makefiles rely on: exit statuses, standard input, options in any place, manual pages.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn jitgraft(args: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

fn scene() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.folded"), "a;b 5\n").unwrap();
    fs::write(
        dir.path().join("trace.json"),
        r#"{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]}"#,
    )
    .unwrap();
    dir
}

#[test]
fn doctor_distinguishes_findings_from_inputs_that_cannot_be_examined() {
    let dir = scene();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-java/perf.data.zst");
    let status = |args: &[&str]| jitgraft(args, dir.path()).status.code();
    assert_eq!(status(&["doctor", "--exit-code", "-q", "missing.data"]), Some(2));
    assert_eq!(status(&["doctor", "--exit-code", "-q", "x.folded"]), Some(2));
    assert_eq!(status(&["doctor", "-q", "missing.data"]), Some(1));
    assert_eq!(status(&["doctor", "--exit-code", "-q", "--symfs", "/dev", recording]), Some(1));
}

#[test]
fn stats_reads_what_is_piped_into_it() {
    let dir = scene();
    let text = fs::read(dir.path().join("trace.json")).unwrap();
    let piped = |args: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        output.stdout
    };
    assert_eq!(piped(&["stats", "--format", "json"]), piped(&["stats", "--format", "json", "-"]));
    // Recordings, which other commands read by default, have no spans.
    assert_eq!(jitgraft(&["stats"], dir.path()).status.code(), Some(2));
}

#[test]
fn more_threads_than_a_machine_has_use_for_are_not_started() {
    let dir = scene();
    let one = jitgraft(&["report", "--threads", "1", "x.folded"], dir.path());
    for threads in ["64", "4000", "100000", "18446744073709551615"] {
        let many = jitgraft(&["report", "--threads", threads, "x.folded"], dir.path());
        assert_eq!((many.status.code(), &many.stdout), (Some(0), &one.stdout), "{threads}");
    }
}

#[test]
fn an_input_that_is_missing_from_a_sum_is_told_by_the_status_and_even_quietly() {
    let dir = scene();
    for args in [&["-q", "merge"][..], &["merge", "-q"], &["merge"]] {
        let output = jitgraft(&[args, &["x.folded", "missing.folded"]].concat(), dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"a;b 5\n"[..]), "{said}");
        assert!(said.contains("error: missing.folded: skipped: "), "{said}");
    }
}

#[test]
fn options_may_stand_before_the_file() {
    let dir = scene();
    let plain = jitgraft(&["x.folded"], dir.path());
    assert!(plain.status.success());
    for options in
        [&["-q"][..], &["--strict"], &["--threads", "1"], &["--threads=1"], &["-v", "-v"], &["--comm", "x"], &["--"]]
    {
        let output = jitgraft(&[options, &["x.folded"]].concat(), dir.path());
        // Folded stacks have no names of processes.
        let status = if options[0] == "--comm" { Some(1) } else { Some(0) };
        assert_eq!(output.status.code(), status, "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for words in [&["-q", "x.folded"][..], &["-i", "x.folded"], &["-q", "--input", "x.folded"], &["--input=x.folded"]] {
        let output = jitgraft(words, dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &output.stdout), (Some(0), &plain.stdout), "{words:?}: {said}");
    }
    for options in [&["-"][..], &["-q", "-"], &["-i", "-"], &["--", "-"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let input = std::fs::File::open(dir.path().join("x.folded")).unwrap();
        let output = command.args(options).current_dir(dir.path()).stdin(input).output().unwrap();
        assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
        let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').nth(1).map(<[u8]>::to_vec);
        assert_eq!(lines(&output.stdout), lines(&plain.stdout), "{options:?}");
    }
    // After two dashes, everything is a file, even if it has the name of a command or an option.
    for name in ["report", "-q", "data"] {
        std::fs::copy(dir.path().join("x.folded"), dir.path().join(name)).unwrap();
        let output = jitgraft(&["--threads", "1", "--", name], dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout.starts_with(name.as_bytes()), "{name}: {said}");
    }
    assert_eq!(jitgraft(&["--no-such", "x.folded"], dir.path()).status.code(), Some(2));
    // A command is recognized after options, too.
    assert!(jitgraft(&["-q", "report", "x.folded"], dir.path()).status.success());
}

#[test]
fn filters_that_leave_nothing_leave_an_older_output_as_it_is() {
    let dir = scene();
    let out = dir.path().join("out.txt");
    for args in [
        &["report", "--dso", "nothing"][..],
        &["report", "--symbols", "nothing"],
        &["report", "--symbol", "nothing"],
        &["report", "--comm", "nothing"],
        &["collapse", "--pid", "7"],
        &["export", "--to", "csv", "--tid", "7"],
        &["flamegraph", "--comm", "nothing"],
        &["merge", "--comm", "nothing"],
        &["merge", "--tid", "7"],
    ] {
        fs::write(&out, "older\n").unwrap();
        let output = jitgraft(&[args, &["-o", "out.txt", "x.folded"]].concat(), dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("match the filters"), "{args:?}: {said}");
        assert_eq!(fs::read_to_string(&out).unwrap(), "older\n", "{args:?}");
    }
}

#[test]
fn every_option_of_a_manual_page_has_a_text() {
    let dir = tempfile::tempdir().unwrap();
    assert!(jitgraft(&["man", "."], dir.path()).status.success());
    let mut options = 0;
    for page in fs::read_dir(dir.path()).unwrap() {
        let page = page.unwrap().path();
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == ".TP") {
            if lines.get(at + 1).is_some_and(|line| line.starts_with("\\fB\\-")) {
                options += 1;
                let described = lines.get(at + 2).is_some_and(|line| !line.is_empty() && !line.starts_with(".TP"));
                assert!(described, "{}: {}", page.display(), lines[at + 1]);
            }
        }
    }
    assert!(options > 200, "{options}");
}
