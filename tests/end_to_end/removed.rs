//! What jitgraft no longer does is recognized, and the refusal says what to use.

use crate::support::runner::jitgraft;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The message of a command that must fail with this status.
fn refusal(args: &[&str], input: &Path, status: i32) -> String {
    let output = jitgraft(args, input);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
    said
}

#[test]
fn our_own_json_is_no_input() {
    let dir = tempfile::tempdir().unwrap();
    let recording = fixture("php-recording/perf.data.zst");
    let again = dir.path().join("again.json");
    assert!(jitgraft(&["export", "--to", "json", "-o", again.to_str().unwrap()], &recording).status.success());
    let empty = dir.path().join("empty.json");
    let only_empty = ["export", "--to", "json", "--pid", "1", "-o", empty.to_str().unwrap()];
    let _ = jitgraft(&only_empty, &recording);
    let inputs = [fixture("json-php/own.json"), again, empty];
    assert!(inputs.iter().filter(|input| input.exists()).count() >= 2);
    for input in inputs.iter().filter(|input| input.exists()) {
        for command in ["report", "collapse", "flamegraph", "view", "merge"] {
            let said = refusal(&[command], input, 1);
            assert!(said.contains("jitgraft's own JSON") && said.contains("-o x.pb.gz"), "{command}: {said}");
        }
    }
}

#[test]
fn flags_that_are_gone_name_what_replaces_them() {
    let recording = fixture("php-recording/perf.data.zst");
    for (args, replacement) in [
        (&["annotate", "--format", "html", "-i"][..], "--to html was removed: jitgraft view"),
        (&["annotate", "--format=html", "-i"], "--to html was removed: jitgraft view"),
        (&["annotate", "-o", "/nowhere/x.html", "-i"], "annotate no longer writes HTML pages"),
        (&["annotate", "-o", "/nowhere/x.htm", "-i"], "annotate no longer writes HTML pages"),
        (&["flamegraph", "--palette", "palette.map"], "--palette was removed: --hash"),
        (&["flamegraph", "--palette=palette.map"], "--palette was removed: --hash"),
        (&["export", "--to", "arrow"], "--to arrow was removed: use --to parquet"),
        (&["merge", "--to", "arrow"], "--to arrow was removed: use --to parquet"),
        (&["export", "--compact"], "--compact was removed: DuckDB"),
    ] {
        let said = refusal(args, &recording, 2);
        assert!(said.contains(replacement), "{args:?}: {said}");
    }
    // What never was is said as before.
    let said = refusal(&["export", "--to", "x"], &recording, 2);
    assert!(said.contains("possible values") && !said.contains("removed"), "{said}");
    assert!(refusal(&["flamegraph", "--pallette", "x"], &recording, 2).contains("unexpected argument"));
}
