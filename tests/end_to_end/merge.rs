//! `jitgraft merge`: the output is the sum of the inputs, of any kind; what is damaged is left out and reported.

mod go;

use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn run(args: &[&str], inputs: &[&Path], stdin: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).args(inputs).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Input that a program does not read is not an error here.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn merge(args: &[&str], inputs: &[&Path]) -> Output {
    run(&[&["merge"], args].concat(), inputs, b"")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A profile of one function, its value of `event` in `unit`, sampled by one thread of that number.
fn pprof(event: &str, unit: &str, value: u64, pid: u8) -> Vec<u8> {
    fn field(tag: u8, inside: &[u8]) -> Vec<u8> {
        let mut out = vec![tag * 8 + 2, u8::try_from(inside.len()).unwrap()];
        out.extend(inside);
        out
    }
    fn number(tag: u8, mut number: u64) -> Vec<u8> {
        let mut out = vec![tag * 8];
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
        out
    }
    let label = field(3, &[number(1, 4), number(3, pid.into())].concat());
    let sample = field(2, &[number(1, 1), number(2, value), label].concat());
    let location = field(4, &[number(1, 1), field(4, &number(1, 1))].concat());
    let strings = ["", event, unit, "f", "pid"].map(|text| field(6, text.as_bytes())).concat();
    let types = field(1, &[number(1, 1), number(2, 2)].concat());
    let message = [types, sample, location, field(5, &[number(1, 1), number(2, 3)].concat()), strings].concat();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&message).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn the_sum_is_that_of_all_inputs_for_any_number_of_threads() {
    let dir = Dir::new();
    let (mut total, mut files) = (0, Vec::new());
    for file in 0..60_u64 {
        let lines: String = (0..20).map(|line| format!("main;f{};g{} {}\n", line % 7, file % 5, file + line)).collect();
        total += (0..20).map(|line| file + line).sum::<u64>();
        files.push(dir.write(&format!("{file:02}.folded"), lines));
    }
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let merged = merge(&[], &paths);
    let text = stdout(&merged);
    let weights = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!((weights.sum::<u64>(), text.lines().count()), (total, 35));
    assert_eq!(text, stdout(&run(&["collapse"], &paths, b"")));
    assert!(stderr(&merged).contains("60 of 60 inputs merged"), "{}", stderr(&merged));
    for threads in ["1", "7"] {
        assert_eq!(stdout(&merge(&["--threads", threads], &paths)), text);
    }
}

#[test]
fn a_directory_a_list_and_a_list_on_standard_input_are_the_files_they_name() {
    let dir = Dir::new();
    let a = dir.write("set/host=a/1.folded", "main;f 1\n");
    let b = dir.write("set/host=b/1.folded", "main;f 2\n");
    let list = format!("{}\n{}\n", a.display(), b.display());
    let at = format!("@{}", dir.write("list", &list).display());
    let expected = "main;f 3\n";
    assert_eq!(stdout(&merge(&[], &[&dir.path("set")])), expected);
    assert_eq!(stdout(&merge(&[&at], &[])), expected);
    assert_eq!(stdout(&run(&["merge", "@-"], &[], list.as_bytes())), expected);
    assert_eq!(stdout(&run(&["merge", "@-"], &[], list.replace('\n', "\0").as_bytes())), expected);
    assert_eq!(stdout(&run(&["merge", "-"], &[&b], b"main;f 1\n")), expected);
}

#[test]
fn a_damaged_part_is_skipped_counted_and_named() {
    let dir = Dir::new();
    let good = dir.write("good.folded", "main;f 3\n");
    let packed = pprof("cpu", "nanoseconds", 7, 1);
    let cut = dir.write("cut.pb.gz", &packed[..packed.len() - 9]);
    let (empty, missing) = (dir.write("empty.folded", ""), dir.path("missing.folded"));
    let inputs = [&*cut, &*good, &*empty, &*missing];
    let output = merge(&[], &inputs);
    // What can be read is written; that it is not all, the status shows.
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"main;f 3\n"[..]));
    let said = stderr(&output);
    assert!(said.contains("1 of 4 inputs merged, 3 skipped"), "{said}");
    let quiet = stderr(&merge(&["-q"], &inputs));
    assert!(quiet.lines().count() == 3 && quiet.lines().all(|line| line.starts_with("error: ")), "{quiet}");
    for (file, why) in [("cut.pb.gz", "cannot decompress"), ("empty.folded", "is empty"), ("missing.folded", "No such")]
    {
        let line = said.lines().find(|line| line.contains(file)).unwrap_or_else(|| panic!("{file}: {said}"));
        assert!(line.starts_with("error: ") && line.contains(": skipped: ") && line.contains(why), "{line}");
    }
    let strict = merge(&["--strict"], &inputs);
    assert_eq!((strict.status.code(), strict.stdout), (Some(1), b"main;f 3\n".to_vec()));
    let none = merge(&["-o", dir.path("out.folded").to_str().unwrap()], &[&cut, &empty]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("none of 2 inputs can be read; the first one: "), "{}", stderr(&none));
    assert!(!dir.path("out.folded").exists());
}

/// Small stacks are read as one text: none may run into the next one, and what is skipped is reported about its own
/// file.
#[test]
fn skipped_parts_are_reported_for_their_own_file_even_if_many_are_read_together() {
    let dir = Dir::new();
    let paths = [
        dir.write("a.folded", "main;f 1\nmain;g 2"),
        dir.write("b.folded", "main;f 10\n".repeat(9000) + "no stack\nmain;f 3\n"),
        dir.write("none.folded", ""),
        dir.write("c.folded", "main;g 4\n\n"),
        dir.write("d.pb.gz", pprof("cycles", "count", 7, 1)),
        dir.write("e.folded", "main;f 5\r\nmain;g 6\n\n"),
    ];
    let output = merge(&["--event", "samples"], &paths.each_ref().map(PathBuf::as_path));
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"main;f 90009\nmain;g 12\n"[..]));
    let said = stderr(&output);
    assert!(said.contains("b.folded: at byte 0x15f90: 1 line skipped"), "{said}");
    assert!(said.contains("none.folded: skipped: "), "{said}");
    assert_eq!(said.matches("line skipped").count(), 1, "{said}");
}

#[test]
fn of_many_damaged_inputs_some_are_named_and_the_others_counted() {
    let dir = Dir::new();
    dir.write("set/good", "main;f 3\n");
    (0..50).for_each(|at| drop(dir.write(&format!("set/{at}.empty"), "")));
    let said = stderr(&merge(&[], &[&dir.path("set")]));
    assert!(
        said.contains("30 more inputs could not be read (-v lists them all)") && said.contains("50 skipped"),
        "{said}"
    );
    let said = stderr(&merge(&["-v"], &[&dir.path("set")]));
    assert_eq!(said.lines().filter(|line| line.contains(": skipped: is empty")).count(), 50, "{said}");
}

#[test]
fn values_in_other_units_are_never_added() {
    let dir = Dir::new();
    let time = dir.write("a.pb.gz", pprof("cpu", "nanoseconds", 7, 1));
    let seconds = dir.write("b.pb.gz", pprof("cpu", "seconds", 2, 1));
    let cycles = dir.write("c.pb.gz", pprof("cpu", "cycles", 5, 1));
    let out = dir.path("out.folded");
    let output = merge(&["-o", out.to_str().unwrap()], &[&time, &seconds, &cycles]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = |name: &str| fs::read_to_string(dir.path(name)).unwrap();
    assert_eq!(text("out.cpu.folded"), "f 2000000007\n");
    assert_eq!(text("out.cpu__cycles_.folded"), "f 5\n");
}

#[test]
fn numbers_of_processes_are_kept_where_they_are_requested() {
    let dir = Dir::new();
    let (a, b) = (pprof("cpu", "nanoseconds", 7, 1), pprof("cpu", "nanoseconds", 5, 2));
    let (a, b) = (dir.write("a.pb.gz", a), dir.write("b.pb.gz", b));
    let rows = |args: &[&str]| {
        let out = dir.path("out.csv");
        let output = merge(&[args, &["-o", out.to_str().unwrap()]].concat(), &[&a, &b]);
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read_to_string(&out).unwrap().lines().count() - 1
    };
    assert_eq!((rows(&[]), rows(&["--by", "pid"]), rows(&["--by", "tid"])), (1, 2, 2));
}

#[test]
fn pprof_stays_pprof_with_the_types_of_its_values() {
    let dir = Dir::new();
    let (a, out) = (dir.write("a.pb.gz", pprof("alloc_space", "bytes", 7, 1)), dir.path("out"));
    let output = merge(&["-o", out.to_str().unwrap()], &[&a, &a]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut bytes = Vec::new();
    let mut gzip = flate2::read::GzDecoder::new(fs::File::open(&out).unwrap());
    std::io::Read::read_to_end(&mut gzip, &mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    // Nobody counted the number of samples behind these.
    assert!(text.contains("alloc_space") && !text.contains("samples"), "{text}");
    assert_eq!(stdout(&run(&["collapse"], &[&out], b"")), "f 14\n");
}

/// Small texts are read as one, which must not show: neither what else is between them, nor one of which lines are
/// skipped.
#[test]
fn folded_stacks_that_are_given_at_once_are_what_they_are_one_by_one() {
    let dir = Dir::new();
    let mut inputs: Vec<PathBuf> =
        (0..20).map(|n| dir.write(&format!("{n}.folded"), format!("main;f{};g 2\nmain 1", n % 3))).collect();
    inputs.insert(7, dir.write("in.txt", "a 1 1.000001: 5 cycles: \n\t 7f1 f+0x1 (/bin/x)\n\n"));
    inputs.push(dir.write("torn.folded", "main;f0;g 1\n".repeat(9000) + "main;torn\n"));
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    for threads in ["1", "2", "8"] {
        let output = run(&["collapse", "--threads", threads, "--event", "samples"], &inputs, b"");
        assert_eq!(stdout(&output), "main 20\nmain;f0;g 9014\nmain;f1;g 14\nmain;f2;g 12\n");
        assert!(stderr(&output).contains("torn.folded: at byte 0x1a5e0: 1 line skipped"), "{}", stderr(&output));
    }
    let absent = dir.path("absent.folded");
    let output = run(&["collapse"], &[inputs[0], inputs[1], &absent], b"");
    assert!(!output.status.success() && stderr(&output).contains("absent.folded"), "{}", stderr(&output));
}

#[test]
fn names_of_folded_stacks_are_the_same_however_large_the_inputs_are() {
    let dir = Dir::new();
    let small = dir.write("small.folded", "main;_ZN3foo3barEi 1\n");
    // Inputs of more than 2 MiB aren't read together with others.
    let large = dir.write("large.folded", "main;_ZN3foo3barEi 1\n".repeat(110_000));
    assert_eq!(stdout(&merge(&[], &[&small, &small])), "main;foo::bar 2\n");
    assert_eq!(stdout(&merge(&[], &[&small, &large])), "main;foo::bar 110001\n");
    assert_eq!(stdout(&merge(&["--no-demangle"], &[&small, &large])), "main;_ZN3foo3barEi 110001\n");
}

#[test]
fn source_maps_beside_folded_stacks_apply_to_one_input_and_to_many() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/source-maps/dist/recorded.folded");
    let dir = Dir::new();
    let elsewhere = dir.write("elsewhere.folded", "r0;JS:*w /srv/app/dist/app.min.js:1:1669 1\n");
    for command in ["merge", "collapse"] {
        let lines = |inputs: &[&Path]| stdout(&run(&[command, "--source-maps", "auto"], inputs, b""));
        let once = lines(&[&recorded]);
        assert!(once.contains("/srv/app/src/words.ts"), "{once}");
        let twice: String = once.lines().map(|line| line.strip_suffix(" 1").unwrap().to_owned() + " 2\n").collect();
        assert_eq!(lines(&[&recorded, &recorded]), twice, "{command}");
        // The source map is only beside the other input.
        let apart = lines(&[&elsewhere, &recorded]);
        assert_eq!(apart, "r0;JS:*w /srv/app/dist/app.min.js:1:1669 1\n".to_owned() + &once, "{command}");
    }
}

#[test]
fn filters_that_leave_nothing_fail_even_if_an_input_was_skipped() {
    let dir = Dir::new();
    let good = dir.write("good.folded", "main;f 3\n");
    let bad = dir.write("bad.pb.gz", b"\x1f\x8b\x08 damaged");
    for inputs in [&[&*good][..], &[&good, &bad], &[&bad, &good]] {
        let out = dir.path("out.folded");
        let output = merge(&["--comm", "nobody", "-o", out.to_str().unwrap()], inputs);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no samples") && !out.exists(), "{said}");
    }
}

#[test]
fn whole_weights_and_weights_with_fractions_are_one_event() {
    let dir = Dir::new();
    let whole = dir.write("whole.folded", "main;a 3\nmain;b 5\n");
    let fractions = dir.write("fractions.folded", "main;a 1.5\nmain;c 2.25\n");
    let sum = "main;a 4.5\nmain;b 5\nmain;c 2.25\n";
    for inputs in [[&*whole, &*fractions], [&fractions, &whole]] {
        for threads in ["1", "2"] {
            assert_eq!(stdout(&merge(&["-q", "--threads", threads], &inputs)), sum);
            assert_eq!(stdout(&run(&["collapse", "-q", "--threads", threads], &inputs, b"")), sum);
        }
    }
    // Too large to count in millionths, so the two stay separate.
    let large = dir.write("large.folded", "main;a 18446744073709551615\n");
    let csv = stdout(&run(&["report", "-q", "--format", "csv"], &[&large, &fractions], b""));
    assert!(csv.contains("\nsamples,") && csv.contains("\nsamples (millionths),"), "{csv}");
}
