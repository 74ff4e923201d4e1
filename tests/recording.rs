//! A real recording with JIT code, from the command line: names, filters, forms of input, threads.

#[path = "support/php_recording.rs"]
mod php_recording;

use jitgraft::contract::format::Detail;
use jitgraft::io::InPath;
use jitgraft::model::about::Module;
use jitgraft::model::stacks::{Keep, Profile, Row};
use jitgraft::parallel::Pool;
use jitgraft::pipeline::any::{LoadOptions, load};
use jitgraft::pipeline::sink::Batches;
use jitgraft::pipeline::{Job, Outcome};
use php_recording::{PID, dump, dump_name, recording};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording").join(name)
}

/// The recording and its dump, unpacked into a directory of their own.
fn unpacked() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::read(recording()).unwrap();
    let data = dir.path().join("perf.data");
    fs::write(&data, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    fs::copy(dump(), dir.path().join(dump_name())).unwrap();
    (dir, data)
}

fn run(args: &[&str], inputs: &[&Path], stdin: Option<&[u8]>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).args(inputs).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().unwrap();
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        // A program that has seen enough closes the pipe.
        let _ = pipe.write_all(bytes);
    }
    child.wait_with_output().unwrap()
}

fn text(args: &[&str], input: &Path) -> String {
    let output = run(args, &[input], None);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Samples by innermost JIT function, from folded stacks with `_[j]`.
fn leaves(folded: &str) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        if let Some(name) = stack.rsplit(';').next().and_then(|leaf| leaf.strip_suffix("_[j]"))
            // The name of its memory is that of no function.
            && !name.starts_with('[')
        {
            *leaves.entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    leaves
}

#[test]
fn jit_functions_are_those_that_perf_names() {
    let expected = fs::read_to_string(fixture("leaves.tsv")).unwrap();
    let expected: BTreeMap<String, u64> = expected
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(count, name)| (name.to_owned(), count.parse().unwrap()))
        .collect();
    let folded = text(&["collapse", "--weight", "samples", "--annotate", "jit"], &recording());
    assert_eq!(leaves(&folded), expected);
}

#[test]
fn script_prints_a_packed_recording_as_it_prints_a_plain_one() {
    let (dir, data) = unpacked();
    let packed = dir.path().join("packed.data");
    fs::copy(recording(), &packed).unwrap();
    let args = ["script", "--no-inline"];
    let plain = text(&args, &data);
    assert!(plain.lines().count() > 1000, "{plain}");
    assert_eq!(text(&args, &packed), plain);
    let piped = run(&args, &[], Some(&fs::read(&packed).unwrap()));
    assert_eq!(String::from_utf8_lossy(&piped.stdout).lines().count(), plain.lines().count());
}

#[test]
fn a_file_a_packed_file_and_a_pipe_are_the_same() {
    let (dir, data) = unpacked();
    let dump = dir.path().join(dump_name());
    let args = ["collapse", "--jitdump", dump.to_str().unwrap()];
    let plain = text(&args, &data);
    assert_eq!(text(&args, &recording()), plain);
    let piped = run(&args, &[], Some(&fs::read(&data).unwrap()));
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), plain);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (_dir, data) = unpacked();
    for args in [
        &["collapse"][..],
        &["script"],
        &["flamegraph", "--flamechart"],
        &["export", "--to", "speedscope"],
        &["export", "--to", "firefox"],
        &["export", "--to", "json"],
        &["report", "--sort", "total"],
    ] {
        let one = text(&[args, &["--threads", "1"]].concat(), &data);
        assert_eq!(text(&[args, &["--threads", "7"]].concat(), &data), one, "{args:?}");
    }
}

#[test]
fn filters_keep_what_they_state() {
    let (_dir, data) = unpacked();
    let total = |args: &[&str]| -> u64 {
        let folded = text(&[&["collapse", "--weight", "samples"], args].concat(), &data);
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let all = total(&[]);
    assert_eq!(total(&["--pid", PID, "--comm", "php"]), all);
    assert_eq!(total(&["--pid", "1,2"]), 0);
    assert_eq!(total(&["--event", "cpu-clock"]), all);
    let halves = (total(&["--time", "0%-50%"]), total(&["--time", "50%-100%"]));
    assert!(halves.0 > all / 4 && halves.1 > all / 4 && (all..=all + 1).contains(&(halves.0 + halves.1)), "{halves:?}");
    let by_pid = text(&["collapse", "--by", "pid"], &data);
    assert!(by_pid.lines().all(|line| line.starts_with(&format!("php-{PID};"))), "{by_pid}");
}

#[test]
fn script_text_is_read_back_to_the_same_stacks() {
    let (dir, data) = unpacked();
    let script = dir.path().join("script.txt");
    fs::write(&script, text(&["script", "--no-inline"], &data)).unwrap();
    let leaf = |args: &[&str], input: &Path| leaves(&text(&[&["collapse", "--annotate", "jit"], args].concat(), input));
    assert_eq!(leaf(&[], &script), leaf(&["--no-inline"], &data));
}

#[test]
fn damaged_recordings_are_errors_or_warnings() {
    let (dir, data) = unpacked();
    let bytes = fs::read(&data).unwrap();
    let damaged = dir.path().join("damaged.data");
    let said = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        let output = run(&["collapse", "--threads", "1", "--kallsyms", "/dev/null"], &[&damaged], None);
        // A panic is status 101, a signal none.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (works, cut) = said(&bytes[..bytes.len() / 2]);
    assert!(works && cut.contains("damaged.data"), "{cut}");
    for at in (0..bytes.len()).step_by(bytes.len() / 25) {
        let mut changed = bytes.clone();
        changed[at] ^= 0xff;
        said(&changed);
        said(&bytes[..at]);
    }
}

/// A line for each row of a profile: thread, stack, weight, samples.
fn rows(profile: &Profile, series: usize) -> Vec<(String, u64, u64)> {
    let line = |row: &Row| {
        let text = |name| String::from_utf8_lossy(profile.name_of(name)).into_owned();
        let frames = profile.frames_up(row.stack).map(|frame| profile.frame_of(frame));
        let spelled = frames.map(|frame| format!("{} {:?}", text(frame.name), frame.module.map(text)));
        let stack = spelled.collect::<Vec<_>>().join(";");
        (format!("{:?} {stack}", profile.track_of(row.track)), row.weight, row.count)
    };
    profile.series[series].rows.iter().map(line).collect()
}

#[test]
fn rows_in_batches_are_those_in_order_of_time_and_add_up_to_the_sums() {
    let (_dir, data) = unpacked();
    let inputs = [InPath::Path(data)];
    let options = LoadOptions::default();
    for threads in [1, 3] {
        let job = Job { pool: Pool::new(NonZeroUsize::new(threads)).unwrap(), ..Job::quiet().unwrap() };
        let mut outcome = Outcome::default();
        let each = load(&inputs, Keep::EachRow, &options, &job, &mut outcome).unwrap();
        let sums = load(&inputs, Keep::Sums, &options, &job, &mut outcome).unwrap();
        let (mut batched, mut longest) = (Vec::new(), 0);
        let take = |batch: &Profile| {
            let rows = rows(batch, 0);
            longest = longest.max(rows.len());
            batched.extend(rows);
            Ok(())
        };
        let mut batches = Batches { len: NonZeroUsize::new(7).unwrap(), each: take };
        jitgraft::pipeline::any::run(&inputs, &options, &mut batches, &job, &mut outcome).unwrap();
        assert_eq!(longest, 7);
        assert!(batched == rows(&each, 0));
        let mut by_stack: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (stack, weight, count) in batched {
            let sum = by_stack.entry(stack).or_default();
            *sum = (sum.0 + weight, sum.1 + count);
        }
        let summed = rows(&sums, 0).into_iter().map(|(stack, weight, count)| (stack, (weight, count)));
        assert!(sums.series[0].rows.len() < each.series[0].rows.len());
        assert!(summed.collect::<BTreeMap<_, _>>() == by_stack);
    }
}

#[test]
fn a_profile_has_whose_when_and_how_often() {
    let (_dir, data) = unpacked();
    let (job, mut outcome) = (Job::quiet().unwrap(), Outcome::default());
    let options = LoadOptions { detail: Detail::Addresses, ..LoadOptions::default() };
    let profile = load(&[InPath::from(data.clone())], Keep::Sums, &options, &job, &mut outcome).unwrap();
    let about = &profile.about;
    assert_eq!(about.command.last().unwrap(), b"2", "recorded with -a sleep 2");
    assert!(about.program().is_empty());
    let sampled = about.sampled.unwrap();
    let times: Vec<f64> = text(&["script", "-F", "time"], &data)
        .lines()
        .filter_map(|line| line.trim().trim_end_matches(':').parse().ok())
        .collect();
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    assert!((seconds(sampled.first.0) - times.iter().copied().fold(f64::MAX, f64::min)).abs() < 1e-5);
    assert!((seconds(sampled.duration()) - times.iter().copied().fold(0.0, f64::max) + times[0]).abs() < 1e-5);
    assert!(profile.series[0].sampling.is_some());
    // Each file that a frame is in was mapped somewhere in the process.
    let files: Vec<_> = profile.frames().filter_map(|(_, frame)| frame.module).map(|id| profile.name_of(id)).collect();
    let known: Vec<_> = files.iter().filter_map(|file| about.modules.get(*file)).collect();
    assert!(!known.is_empty(), "{files:?}");
    let of_process = |module: &&Module| module.mapped.iter().any(|range| range.pid.0.to_string() == PID);
    assert!(known.iter().filter(|module| !module.is_kernel).all(of_process));
}
