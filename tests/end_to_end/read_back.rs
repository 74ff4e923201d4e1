//! The files of other tools, and those of the exporters, read back: the same stacks, as far as the format holds them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The output of the program, without any message.
fn run(arguments: &[&str], input: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(arguments).arg(input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} {}: {said}", input.display());
    String::from_utf8(output.stdout).unwrap()
}

/// Formats that hold the names, the threads and the weights of a recording.
const WHOLE: &[&str] = &["pprof", "otlp", "otlp-json", "speedscope", "firefox", "chrome"];

/// The recordings, and how many distinct stacks they have at least.
const RECORDINGS: &[(&str, usize)] = &[("php-recording/perf.data.zst", 60), ("tiers-recording/perf.data.zst", 300)];

/// Exports with the names as they are: by default they are made readable for viewers.
fn export(format: &str, recording: &Path, to: &Path) {
    run(&["export", "--quiet", "--jit-names", "raw", "--to", format, "-o", to.to_str().unwrap()], recording);
}

#[test]
fn an_export_read_back_is_the_recording_again() {
    let dir = tempfile::tempdir().unwrap();
    for (recording, stacks) in RECORDINGS {
        let recording = fixture(recording);
        let whole = run(&["collapse", "--by", "tid", "--quiet"], &recording);
        assert!(whole.lines().count() > *stacks, "{whole}");
        for format in WHOLE {
            let file = dir.path().join(format);
            export(format, &recording, &file);
            let again = run(&["collapse", "--by", "tid"], &file);
            assert!(again == whole, "{format} of {}:\n{}", recording.display(), difference(&whole, &again));
        }
    }
}

/// The self weight of each function.
fn own(folded: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *sums.entry(stack.rsplit(';').next().unwrap().to_owned()).or_insert(0) += weight.parse::<u64>().unwrap();
    }
    sums
}

#[test]
fn a_callgrind_profile_read_back_has_the_same_functions() {
    // It holds calls and no stacks, and no threads: what a function has of its own is left.
    let dir = tempfile::tempdir().unwrap();
    for (recording, _) in RECORDINGS {
        let recording = fixture(recording);
        let file = dir.path().join("callgrind.out");
        export("callgrind", &recording, &file);
        let named = |mut sums: BTreeMap<String, u64>| {
            sums.retain(|name, weight| *weight > 0 && !name.starts_with('['));
            sums
        };
        let whole = named(own(&run(&["collapse", "--quiet"], &recording)));
        assert!(whole.len() > 5, "{whole:?}");
        assert_eq!(named(own(&run(&["collapse", "--quiet"], &file))), whole, "{}", recording.display());
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

/// The cells of a line of CSV, by RFC 4180.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cells.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "{line}");
    cells
}

#[test]
fn the_lines_of_csv_are_the_samples() {
    let recording = fixture("php-recording/perf.data.zst");
    let csv = run(&["export", "--quiet", "--to", "csv"], &recording);
    let mut lines = csv.lines().map(cells);
    let columns = lines.next().unwrap();
    let column = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let mut sums = BTreeMap::new();
    let mut count = 0;
    for line in lines {
        assert_eq!(line.len(), columns.len(), "{line:?}");
        let (comm, stack) = (&line[column("comm")], &line[column("stack")]);
        let leaf = stack.rsplit(';').next().unwrap();
        assert_eq!(&line[column("function")], leaf);
        assert_eq!(line[column("time_ns")].len(), "14983370402954".len());
        *sums.entry(format!("{comm};{stack}")).or_insert(0) += line[column("weight")].parse::<u64>().unwrap();
        count += line[column("count")].parse::<u64>().unwrap();
    }
    assert_eq!(count, 922);
    let folded: Vec<String> = sums.iter().map(|(stack, weight)| format!("{stack} {weight}")).collect();
    let whole = run(&["collapse", "--quiet"], &recording);
    let mut whole: Vec<&str> = whole.lines().collect();
    whole.sort_unstable();
    let mut folded: Vec<&str> = folded.iter().map(String::as_str).collect();
    folded.sort_unstable();
    assert_eq!(folded, whole);
}

#[test]
fn a_format_that_is_known_and_not_read_is_named_with_what_gives_one_that_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, b"FLR\0\0\x02\0\x01").unwrap();
    let trace = dir.path().join("x.trace");
    std::fs::create_dir(&trace).unwrap();
    std::fs::write(trace.join("form.template"), "").unwrap();
    for (input, name, remedy) in [(&file, "Flight Recorder", "jfrconv"), (&trace, "Instruments", "xctrace export")] {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("report").arg(input).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(name) && said.contains("which jitgraft does not read\nhint: ") && said.contains(remedy),
            "{said}"
        );
    }
}

#[test]
fn sums_over_stretches_of_time_read_back_have_their_numbers_of_samples() {
    let dir = tempfile::tempdir().unwrap();
    let report = |file: &Path| run(&["report", "--quiet", "--format", "csv", "--group-by", "sym"], file);
    for (recording, _) in RECORDINGS {
        let recording = fixture(recording);
        let wanted = report(&recording);
        for format in ["otlp", "otlp-json"] {
            let file = dir.path().join(format);
            let to = file.to_str().unwrap();
            let arguments = ["export", "--quiet", "--jit-names", "raw", "--bucket", "100ms", "--to", format, "-o", to];
            run(&arguments, &recording);
            let again = report(&file);
            assert!(again == wanted, "{format}:\n{}", difference(&wanted, &again));
        }
    }
}
