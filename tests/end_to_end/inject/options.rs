//! The command line as users of perf inject know it.

use super::odd::{AT, Odd, PID, load, names};
use super::support::jitdump::JitDump;
use super::support::perf_data::Mode;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn jitgraft(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("inject").args(args).current_dir(dir).output().unwrap()
}

/// A recording with its dump, written.
fn written() -> tempfile::TempDir {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes()).sample(PID, 20, AT);
    fs::write(odd.dir.path().join("perf.data"), odd.recording.into_bytes(Mode::File)).unwrap();
    odd.dir
}

/// The options of an installed perf's help, as they may be written, with a value where there must be one.
fn options_of_perf() -> BTreeSet<String> {
    let help = Command::new("perf").args(["inject", "-h"]).output();
    let help = help.expect("perf is needed (tests/run.sh installs linux-perf)");
    let text = [help.stdout, help.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
    let mut options = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("    -") || line.starts_with("        --")) {
        let mut words = line.split_ascii_whitespace().map(|word| word.trim_end_matches(',')).peekable();
        while let Some(word) = words.next_if(|word| word.starts_with('-')) {
            let (name, optional) = word.split_once('[').map_or((word, false), |(name, _)| (name, true));
            let valued = words.peek().is_some_and(|next| next.starts_with('<')) || line.contains(&format!("{name} <"));
            let valued = valued || word.len() == 2 && line.contains('<');
            match (valued, name.starts_with("--")) {
                (true, true) => drop(options.insert(format!("{name}=x"))),
                (true, false) => drop(options.insert(format!("{name}x"))),
                (false, _) => drop(options.insert(name.to_owned())),
            }
            if optional {
                options.insert(format!("{name}=x"));
            }
        }
    }
    options
}

#[test]
fn every_option_of_perf_inject_is_known_or_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    // Files and directories that options name must exist.
    std::fs::create_dir(dir.path().join("x")).unwrap();
    let mut options = options_of_perf();
    assert!(options.len() > 20 && options.contains("--itrace=x") && options.contains("-kx"), "{options:?}");
    // Of newer ones than may be installed.
    options.extend(
        [
            "-B",
            "--mmap2-buildids",
            "--mmap2-buildid-all",
            "--aslr",
            "--convert-callchain",
            "--unwind-style=libdw",
            "--guest-data",
        ]
        .map(String::from),
    );
    for option in &options {
        let said = jitgraft(&[option, "--input=nowhere.data"], dir.path());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        // `-i x` and `--input=x` come before: the last one counts, as in perf.
        let known = said.status.code() == Some(1) && text.contains("nowhere.data: cannot open");
        let name = option.split('=').next().unwrap();
        let name = if name.starts_with("--") { name } else { &name[..2] };
        let refused = said.status.code() == Some(2) && text.contains(name) && text.contains("use perf inject for it");
        assert!(known || refused, "{option}: {:?} {text}", said.status);
    }
}

#[test]
fn long_and_short_forms_mean_the_same() {
    let dir = written();
    for (args, out) in [
        (&["-i", "perf.data", "-o", "1", "-j", "-f", "-v"][..], "1"),
        (&["--input=perf.data", "--output=2", "--jit", "--force", "--verbose"], "2"),
        (&["--input", "perf.data", "--output", "3"], "3"),
        (&["-iperf.data", "-o4", "-jfv"], "4"),
        (&["-i", "nowhere.data", "-i", "perf.data", "-o", "5", "-jj"], "5"),
    ] {
        let said = jitgraft(args, dir.path());
        assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
        assert!(fs::read(dir.path().join(out)).unwrap() == fs::read(dir.path().join("1")).unwrap(), "{args:?}");
    }
    assert_eq!(names(&dir.path().join("1")), ["first"]);
}

#[test]
fn an_output_that_is_the_input_under_another_name_is_refused() {
    let dir = written();
    let at = |name: &str| dir.path().join(name);
    fs::hard_link(at("perf.data"), at("hard")).unwrap();
    symlink("perf.data", at("soft")).unwrap();
    fs::create_dir(at("recording")).unwrap();
    fs::copy(at("perf.data"), at("recording/data")).unwrap();
    symlink("recording", at("alias")).unwrap();
    let before = fs::read(at("perf.data")).unwrap();
    for (input, output) in [
        ("perf.data", "perf.data"),
        ("perf.data", "./recording/../perf.data"),
        ("perf.data", "hard"),
        ("perf.data", "soft"),
        ("soft", "perf.data"),
        ("recording", "recording/data"),
        ("recording", "recording/new"),
        ("recording", "alias/new"),
        ("alias", "recording/new"),
    ] {
        let said = jitgraft(&["-i", input, "-o", output], dir.path());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{input} {output}: {text}");
        assert!(text.contains(output) && text.contains("choose another output"), "{text}");
    }
    assert!(fs::read(at("perf.data")).unwrap() == before && fs::read(at("recording/data")).unwrap() == before);
    assert!(!at("recording/new").exists() && !at("jitted-77.so").exists());
}

#[test]
fn a_failure_leaves_neither_output_nor_images() {
    let dir = written();
    fs::create_dir(dir.path().join("taken")).unwrap();
    for output in ["taken", "missing/out.data"] {
        let said = jitgraft(&["-i", "perf.data", "-o", output], dir.path());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(1), "{text}");
        assert!(text.contains(output), "{text}");
    }
    // A device that is always full: the images are made by then, and go again.
    let said = jitgraft(&["-i", "perf.data", "-o", "/dev/full", "--image-dir", "."], dir.path());
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("No space left"));
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["jit-77.dump", "perf.data", "taken"]);
}

#[test]
fn a_killed_run_leaves_no_output_and_no_half_files() {
    let dir = written();
    let fifo = dir.path().join("known");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo is needed (coreutils)").success());
    // It waits for the list that nobody writes, with its images done and its output begun.
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["inject", "-j", "-b", "--known-build-ids=file://known", "-i", "perf.data", "-o", "out.data"]);
    let mut child = command.current_dir(dir.path()).spawn().unwrap();
    // A pipe can be opened like that as soon as somebody reads.
    let mut open = OpenOptions::new();
    let open = open.write(true).custom_flags(libc::O_NONBLOCK);
    let _writer = loop {
        assert!(child.try_wait().unwrap().is_none(), "it ends without having waited");
        match open.open(&fifo) {
            Ok(writer) => break writer,
            Err(_) => std::thread::yield_now(),
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["jit-77.dump", "known", "perf.data"]);
}

#[test]
fn the_summary_shows_what_was_done_and_q_and_v_change_it() {
    let dir = written();
    let said = |options: &[&str]| {
        let output = jitgraft(&[options, &["-i", "perf.data", "-o", "out.data"]].concat(), dir.path());
        assert!(output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let usual = said(&[]);
    for part in [
        "Loaded 1 function from 1 jitdump",
        "1 sample, 100.00% in JIT code (by innermost frame); 1 of 1 JIT frames have names (100.0%)",
        "out.data: inserted 1 mapping record for 1 code range",
    ] {
        assert!(usual.contains(part), "{part:?} is not in {usual}");
    }
    assert_eq!(said(&["-q"]), "");
    let more = said(&["-v"]);
    assert!(more.starts_with(&usual) && more.contains("jitted-77.so") && more.contains("jit-77.dump"), "{more}");
    fs::remove_file(dir.path().join("jit-77.dump")).unwrap();
    let none = said(&[]);
    assert!(none.contains("process 77 (program): 1 frame that no dump or map names"), "{none}");
    assert!(
        none.contains(
            "1 sample; no process runs a known JIT compiler, although 1 frame ran in memory that no file backs"
        ),
        "{none}"
    );
}

/// The shares of JIT code in what a command says: `33.95%` of `33.95% in JIT code`, for each event.
fn jit_shares(said: &str) -> BTreeSet<String> {
    let mut shares = BTreeSet::new();
    for line in said.lines().filter(|line| line.contains(" in JIT code")) {
        let before = line.split(" in JIT code").next().unwrap();
        let of_code = before.rsplit([';', ',']).next().unwrap();
        shares.extend(of_code.split(' ').filter(|word| word.ends_with('%')).map(str::to_owned));
    }
    shares
}

#[test]
fn the_share_of_jit_code_is_that_of_report() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let recordings = [
        ("php-recording", 1),
        ("tiers-recording", 1),
        ("recording-java", 1),
        ("recording-node", 1),
        ("recording-luajit", 1),
        ("recording-wasmtime", 2),
    ];
    for (name, events) in recordings {
        let dir = tempfile::tempdir().unwrap();
        let recording = fixtures.join(name).join("perf.data.zst");
        let recording = recording.to_str().unwrap();
        let inject = jitgraft(&["-i", recording, "-o", "out.data"], dir.path());
        let mut report = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let report = report.args(["report", "--limit", "1", recording]).output().unwrap();
        let [inject, report] = [inject.stderr, report.stdout].map(|said| jit_shares(&String::from_utf8_lossy(&said)));
        assert_eq!(inject, report, "{name}");
        assert_eq!(inject.len(), events, "{name}: {inject:?}");
    }
}

#[test]
fn perf_archive_takes_cached_images_along() {
    let dir = written();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(dir.path()).env("HOME", &home).output();
        let output = output.unwrap_or_else(|error| panic!("{program} is needed (tests/run.sh installs it): {error}"));
        assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(env!("CARGO_BIN_EXE_jitgraft"), &["inject", "--cache", "-b", "-i", "perf.data", "-j", "-o", "out.data"]);
    run("perf", &["archive", "out.data"]);
    fs::remove_file(dir.path().join("jitted-77.so")).unwrap();
    fs::remove_dir_all(&home).unwrap();
    let report = ["script", "-i", "out.data", "-F", "ip,sym"];
    assert!(!run("perf", &report).contains("first"), "without images there is no name");
    fs::create_dir_all(home.join(".debug")).unwrap();
    run("tar", &["xf", "out.data.tar.bz2", "-C", "home/.debug"]);
    assert!(run("perf", &report).contains("first"));
}

#[test]
fn a_terminal_shows_how_far_long_work_is_unless_it_must_be_quiet() {
    let dir = written();
    let mut long = fs::read(dir.path().join("perf.data")).unwrap();
    let word = |at: usize| u64::from_le_bytes(long[at..at + 8].try_into().unwrap()) as usize;
    let end = word(40) + word(48);
    // The recorder was killed; what follows are records of an unknown type.
    long[48..56].fill(0);
    long.truncate(end);
    let mut other = [&0x1000u32.to_le_bytes()[..], &0u16.to_le_bytes(), &0xfff8u16.to_le_bytes()].concat();
    other.resize(0xfff8, 0x55);
    (0..1100).for_each(|_| long.extend(&other));
    fs::write(dir.path().join("long.data"), long).unwrap();
    // Otherwise it is shown after a second.
    for (input, option, bar) in [("long.data", "-v", true), ("long.data", "-q", false)] {
        let line = format!("{} inject {option} -i {input} -o out.data", env!("CARGO_BIN_EXE_jitgraft"));
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &line, "/dev/null"]).current_dir(dir.path()).env("TERM", "xterm").stdin(Stdio::null());
        let output = terminal.output().expect("script is needed (bsdutils)");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        assert_eq!(text.contains("B/s"), bar, "{input} {option}: {text}");
        assert_eq!(text.is_empty(), option == "-q", "{text}");
    }
}
