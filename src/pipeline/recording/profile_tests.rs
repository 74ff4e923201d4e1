//! Tests that read a real recording through the library: as sums, in batches of single rows, and the facts about it.

use crate::contract::format::Detail;
use crate::io::InPath;
use crate::model::Pid;
use crate::model::about::Module;
use crate::model::stacks::{Keep, Profile, Row};
use crate::parallel::Pool;
use crate::pipeline::any::{LoadOptions, load, run};
use crate::pipeline::sink::Batches;
use crate::pipeline::{Job, Outcome};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

const PID: Pid = Pid(31795);

/// Unpacks the recording and its jitdump into a temporary directory. Returns the directory and the recording's path.
fn unpacked() -> (tempfile::TempDir, PathBuf) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording");
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::read(fixture.join("perf.data.zst")).unwrap();
    let data = dir.path().join("perf.data");
    fs::write(&data, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    fs::copy(fixture.join("jit-31795.dump"), dir.path().join("jit-31795.dump")).unwrap();
    (dir, data)
}

/// For each row of an event (`series` is its index): thread and stack as text, weight, number of samples.
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
        run(&inputs, &options, &mut batches, &job, &mut outcome).unwrap();
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
    let output = Command::new("perf").args(["script", "-F", "time", "-i"]).arg(&data).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let times = printed.lines().filter_map(|line| line.trim().trim_end_matches(':').parse::<f64>().ok());
    let times: Vec<u64> = times.map(|seconds| (seconds * 1e6).round() as u64).collect();
    // perf prints microseconds and truncates nanoseconds.
    let microseconds = |nanos: u64| nanos / 1000;
    assert_eq!(microseconds(sampled.first.0), *times.iter().min().unwrap());
    assert_eq!(microseconds(sampled.first.0 + sampled.duration()), *times.iter().max().unwrap());
    assert!(profile.series[0].sampling.is_some());
    // The file of each frame must be among the files that the process mapped.
    let files: Vec<_> = profile.frames().filter_map(|(_, frame)| frame.module).map(|id| profile.name_of(id)).collect();
    let known: Vec<_> = files.iter().filter_map(|file| about.modules.get(*file)).collect();
    assert!(!known.is_empty(), "{files:?}");
    let of_process = |module: &&Module| module.mapped.iter().any(|range| range.pid == PID);
    assert!(known.iter().filter(|module| !module.is_kernel).all(of_process));
}
