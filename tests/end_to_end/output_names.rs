//! The name of an output gives its format.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn jitgraft(arguments: &[&str], dir: &Path) -> Output {
    fs::write(dir.join("in.folded"), "main;f 3\nmain;g 4\n").unwrap();
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(arguments).current_dir(dir).output().unwrap()
}

/// Runs, and returns how the file begins.
fn beginning(arguments: &[&str], file: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = jitgraft(&[arguments, &["in.folded", "-o", file]].concat(), dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said == format!("wrote {file}\n"), "{arguments:?} -o {file}: {said}");
    let bytes = fs::read(dir.path().join(file)).unwrap();
    String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned()
}

#[test]
fn export_writes_what_the_output_is_called() {
    for (file, begins) in [
        ("a.svg", "<?xml"),
        ("a.folded", "main;f 3"),
        ("a.txt", "main;f 3"),
        ("a.csv", "event,unit,comm,"),
        ("a.json", "{\"frames\":["),
        ("a.speedscope.json", "{\"$schema\":\"https://www.speedscope.app"),
        ("a.firefox.json", "{\"meta\":"),
        ("a.trace.json", "{\"displayTimeUnit\""),
        ("callgrind.out.a", "# callgrind format"),
    ] {
        let text = beginning(&["export"], file);
        assert!(text.starts_with(begins), "{file}: {text}");
    }
    assert!(beginning(&["export"], "a.pb.gz").starts_with('\u{1f}'));
}

#[test]
fn collapse_writes_folded_stacks_unless_the_output_is_called_otherwise() {
    assert!(beginning(&["collapse"], "a").starts_with("main;f 3"));
    assert!(beginning(&["collapse"], "a.out").starts_with("main;f 3"));
    assert!(beginning(&["collapse"], "a.svg").starts_with("<?xml"));
    assert!(beginning(&["collapse"], "a.csv").starts_with("event,"));
}

#[test]
fn flamegraph_draws_unless_the_output_is_called_otherwise() {
    for file in ["a.svg", "A.SVG", "a.picture", "a"] {
        assert!(beginning(&["flamegraph"], file).starts_with("<?xml"), "{file}");
    }
    assert!(beginning(&["flamegraph"], "a.folded").starts_with("main;f 3"));
    assert!(beginning(&["flamegraph"], "a.speedscope.json").starts_with("{\"$schema\""));
}

#[test]
fn a_requested_format_is_written_under_any_output_name() {
    assert!(beginning(&["export", "--to", "folded"], "a.svg").starts_with("main;f 3"));
    assert!(beginning(&["export", "--to", "speedscope"], "a.json").starts_with("{\"$schema\""));
}

#[test]
fn an_export_that_does_not_state_its_format_states_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["export", "in.folded"][..], &["export", "in.folded", "-o", "x.mp3"]] {
        let output = jitgraft(arguments, dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("unknown output format; pass --to") && said.contains("speedscope"), "{said}");
    }
    assert!(!dir.path().join("x.mp3").exists());
}

#[test]
fn the_name_of_a_table_shows_its_layout() {
    assert!(beginning(&["report"], "a.csv").starts_with("self%,"), "{}", beginning(&["report"], "a.csv"));
    assert!(beginning(&["report"], "a.json").starts_with("[{\""), "{}", beginning(&["report"], "a.json"));
    let text = beginning(&["report"], "a.txt");
    assert!(!text.starts_with("self%,") && !text.starts_with('['), "{text}");
    assert_eq!(beginning(&["report", "--format", "text"], "a.csv"), text);
}

#[test]
fn tables_are_written_as_their_output_is_called() {
    for (command, file, begins) in [
        ("report", "a.json", "[{\"version\":1,\"event\":\"samples\",\"self%\":"),
        ("report", "A.JSON", "[{\"version\":1,\"event\":\"samples\",\"self%\":"),
        ("report", "a.csv", "self%,total%,"),
        ("report", "a.txt", "# 7 samples"),
        ("report", "a", "# 7 samples"),
    ] {
        let text = beginning(&[command], file);
        assert!(text.starts_with(begins), "{command} -o {file}: {text}");
    }
}

#[test]
fn a_name_of_another_kind_of_file_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    for (command, files) in [
        ("report", &["a.svg", "a.html", "a.pdf", "a.folded", "a.pprof", "a.data", "a.csv.zst"][..]),
        ("stats", &["a.svg", "a.html", "a.data"]),
        ("doctor", &["a.svg", "a.png", "a.data"]),
        ("annotate", &["a.csv", "a.svg", "a.data"]),
        ("view", &["a.svg", "a.json", "a.png", "a.txt", "a.data", "a.html.gz"]),
        ("flamegraph", &["a.png", "a.html", "a.pdf", "a.data"]),
        ("collapse", &["a.png", "a.html", "a.data", "a.folded.gz"]),
        ("export", &["a.data", "a.png", "a.firefox.json.gz"]),
        ("merge", &["a.png", "a.html", "a.data"]),
        ("script", &["a.json", "a.svg", "a.data"]),
        ("inject", &["a.svg", "a.html", "a.folded", "a.txt"]),
        ("callgrind", &["a.svg", "a.csv", "a.data"]),
        ("pack", &["a.zip", "a.svg", "a.txt", "a.data"]),
    ] {
        for file in files {
            let output = jitgraft(&[command, "in.folded", "-o", file], dir.path());
            let said = String::from_utf8_lossy(&output.stderr);
            let ending = file.rsplit('.').next().unwrap();
            assert!(said.contains(&format!("does not write .{ending} files")), "{command} -o {file}: {said}");
            assert_eq!(output.status.code(), Some(2), "{command} -o {file}");
            assert!(!dir.path().join(file).exists(), "{command} -o {file}");
        }
    }
    // The two parts of an extension belong together.
    for (command, file) in [
        ("report", "a.speedscope.json"),
        ("report", "a.pb.gz"),
        ("stats", "a.firefox.json"),
        ("doctor", "a.trace.json"),
        ("annotate", "a.otlp.json"),
        ("view", "a.firefox.json"),
    ] {
        let output = jitgraft(&[command, "in.folded", "-o", file], dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        let ending = file.strip_prefix('a').unwrap();
        assert!(said.contains(&format!("does not write {ending} files")), "{command} -o {file}: {said}");
        assert!(output.status.code() == Some(2) && said.contains("use jitgraft export"), "{said}");
        assert!(!dir.path().join(file).exists(), "{command} -o {file}");
    }
}

#[test]
fn a_command_says_which_file_it_wrote() {
    let fixture = |name: &str| format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let node = fixture("annotate-node/recorded.data.zst");
    let trace = fixture("trace-miri/input.json");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("before.folded"), "main;work 30\n").unwrap();
    for (arguments, file) in [
        (&["flamegraph", "in.folded"][..], "a.svg"),
        (&["flamegraph", "--style", "inferno", "in.folded"], "inferno.svg"),
        (&["collapse", "in.folded"], "below/a.folded"),
        (&["export", "--to", "pprof", "in.folded"], "a.pb.gz"),
        (&["export", "--to", "otlp", "in.folded"], "a.otlp"),
        (&["export", "--to", "chrome", &trace], "a.trace.json"),
        (&["report", "in.folded"], "a.txt"),
        (&["report", "--diff", "before.folded", "in.folded"], "a.csv"),
        (&["merge", "in.folded", "in.folded"], "b.folded"),
        (&["stats", &trace], "a.json"),
        (&["doctor", &node], "doctor.txt"),
        (&["annotate", "-i", &node], "annotate.txt"),
        (&["script", &node], "script.txt"),
    ] {
        fs::create_dir_all(dir.path().join("below")).unwrap();
        let last_line = |more: &[&str]| {
            let output = jitgraft(&[arguments, &["-o", file], more].concat(), dir.path());
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{arguments:?}: {said}");
            said.lines().last().map(str::to_owned)
        };
        assert_eq!(last_line(&[]), Some(format!("wrote {file}")), "{arguments:?}");
        assert_eq!(last_line(&["-q"]), None, "{arguments:?}");
        // Nothing is said about standard output, a device or a pipe.
        for stream in ["-", "/dev/stdout", "/dev/null"] {
            let output = jitgraft(&[arguments, &["-o", stream]].concat(), dir.path());
            let said = String::from_utf8(output.stderr).unwrap();
            let is_named = said.lines().any(|line| line.starts_with("wrote ") && line.ends_with(stream));
            assert!(output.status.success() && !is_named, "{arguments:?} -o {stream}: {said}");
        }
    }
}
