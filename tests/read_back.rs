//! What other tools wrote, and what the exporters write, read back: the same stacks, as far as the format holds them.

use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// What the program prints, with nothing to say besides.
fn run(arguments: &[&str], input: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(arguments).arg(input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} {}: {said}", input.display());
    String::from_utf8(output.stdout).unwrap()
}

/// Formats that hold the names, the threads and the weights of a recording.
const WHOLE: &[&str] = &["pprof"];

#[test]
fn an_export_read_back_is_the_recording_again() {
    let dir = tempfile::tempdir().unwrap();
    for recording in ["php-recording/perf.data.zst", "tiers-recording/perf.data.zst"] {
        let recording = fixture(recording);
        let whole = run(&["collapse", "--by", "tid", "--quiet"], &recording);
        assert!(whole.lines().count() > 20, "{whole}");
        for format in WHOLE {
            let file = dir.path().join(format);
            run(&["export", "--quiet", "--to", format, "-o", file.to_str().unwrap()], &recording);
            let again = run(&["collapse", "--by", "tid"], &file);
            assert!(again == whole, "{format} of {}:\n{}", recording.display(), difference(&whole, &again));
        }
    }
}

/// The first lines that only one of two texts has.
fn difference(one: &str, other: &str) -> String {
    let only = |these: &str, those: &str| {
        let those: std::collections::HashSet<_> = those.lines().collect();
        these.lines().filter(|line| !those.contains(line)).take(5).collect::<Vec<_>>().join("\n")
    };
    format!("only before:\n{}\nonly after:\n{}", only(one, other), only(other, one))
}

#[test]
fn every_type_of_a_pprof_profile_is_an_event_and_the_default_comes_first() {
    let heap = fixture("pprof-go/heap.pb.gz");
    let sums = |event: &str| {
        let folded = run(&["collapse", "--quiet", "--event", event], &heap);
        let line = folded.lines().find(|line| line.contains("main.main;main.grow ")).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    // Six slices were made, of 64 KiB and one of 1 MiB, which the collector took again.
    assert_eq!(sums("inuse_space"), Some(5 << 16));
    assert_eq!(sums("inuse_objects"), Some(5));
    assert_eq!(sums("alloc_space"), Some((5 << 16) + (1 << 20)));
    assert_eq!(sums("alloc_objects"), Some(6));
    let shown = run(&["collapse", "--quiet"], &heap);
    assert!(shown.contains("main.main;main.grow 327680\n"), "{shown}");
}
