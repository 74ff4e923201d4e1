//! Files cut anywhere, and files with any one byte changed: no panic, nothing good lost, no half output.

use super::odd::{AT, Odd, PID, load};
use super::support::jitdump::JitDump;
use super::support::perf_data::{Mode, PerfData, Stamp};
use jitgraft::commands::inject::{BuildIdMode, InjectOptions, run};
use jitgraft::io::{InPath, OutPath};
use jitgraft::parallel::Pool;
use jitgraft::pipeline::Job;
use jitgraft::sources::SourceOptions;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

const SAMPLES: u64 = 3;

fn recording() -> (tempfile::TempDir, PerfData) {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    dump.load(11, load(b"second", AT + 0x100, 1));
    let map = format!("{AT:x} 40 mapped\n{:x} 10 more\n", AT + 0x200);
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes()).file("perf-77.map", map.as_bytes());
    let mut odd = odd.sample(PID, 20, AT);
    odd.recording.auxtrace(&[0xaa; 16]);
    odd.recording.fork(Stamp::new(78, 21), PID);
    let mut odd = odd.sample(PID, 30, AT + 0x100);
    odd.recording.finished_round();
    let odd = odd.sample(78, 40, AT + 0x200);
    (odd.dir, odd.recording)
}

/// Injects in this process. True if it was done.
fn inject(dir: &Path, job: &Job) -> bool {
    let options = InjectOptions {
        input: InPath::from(dir.join("perf.data")),
        output: OutPath::from(dir.join("out.data")),
        image_dir: None,
        all_functions: false,
        cache: false,
        jit: true,
        build_ids: BuildIdMode::None,
        known_build_ids: None,
        convert_callchain: false,
        drop_bad_chain_entries: false,
        relocate: false,
        image_root: None,
        sources: SourceOptions::default(),
    };
    let _ = fs::remove_file(dir.join("out.data"));
    let _ = fs::remove_file(dir.join("jitted-77.so"));
    let done = run(&options, job).is_ok();
    assert_eq!(dir.join("out.data").exists(), done, "output and result disagree");
    let left = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with('.')), "a temporary file stays");
    done
}

fn job() -> Job {
    Job { pool: Pool::new(NonZeroUsize::new(1)).unwrap(), ..Job::quiet().unwrap() }
}

/// The whole records of a stream: kinds and numbers.
fn samples(mut records: &[u8]) -> u64 {
    let mut count = 0;
    while records.len() >= 8 {
        let size = usize::from(u16::from_le_bytes([records[6], records[7]]));
        let payload = if records[0] == 71 && records.len() >= 16 { usize::from(records[8]) } else { 0 };
        let Some(rest) = records.get((size + payload).max(8)..) else { break };
        count += u64::from(records[0] == 9);
        records = rest;
    }
    count
}

/// The records of a file; in a pipe all follow a header of 16 bytes.
fn records(file: &[u8]) -> &[u8] {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    if word(8) == 16 { &file[16..] } else { &file[word(40)..file.len().min(word(40) + word(48))] }
}

#[test]
fn every_prefix_of_a_recording_keeps_its_whole_samples() {
    let (dir, recording) = recording();
    let job = job();
    for mode in [Mode::File, Mode::Pipe] {
        let whole = recording.clone().into_bytes(mode);
        let start = whole.len() - records(&whole).len();
        let mut most = 0;
        for len in 0..=whole.len() {
            fs::write(dir.path().join("perf.data"), &whole[..len]).unwrap();
            let done = inject(dir.path(), &job);
            let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
            // In a file, the header and the attrs must be there; a pipe states them by and by.
            let begun = if mode == Mode::File { word(40) } else { start };
            assert!(done || len < begun + 256, "{mode:?}: {len} of {} bytes are refused", whole.len());
            if done && len >= begun {
                let end = if mode == Mode::File { word(40) + word(48) } else { whole.len() };
                let expected = samples(&whole[begun..len.min(end)]);
                let out = fs::read(dir.path().join("out.data")).unwrap();
                assert_eq!(samples(records(&out)), expected, "{mode:?}: {len} bytes");
                most = most.max(expected);
            }
        }
        assert_eq!(most, SAMPLES);
    }
}

#[test]
fn any_changed_byte_of_a_recording_is_survived() {
    let (dir, recording) = recording();
    let job = job();
    for mode in [Mode::File, Mode::Pipe] {
        let whole = recording.clone().into_bytes(mode);
        let mut done = 0;
        for at in 0..whole.len() {
            for change in [0xff, 0x01] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                fs::write(dir.path().join("perf.data"), &changed).unwrap();
                done += usize::from(inject(dir.path(), &job));
            }
        }
        assert!(done * 10 > whole.len() * 2 * 9, "{mode:?}: {done} of {} were read", whole.len() * 2);
    }
}

#[test]
fn no_cut_or_change_of_dump_or_map_stops_the_recording() {
    let (dir, recording) = recording();
    let job = job();
    fs::write(dir.path().join("perf.data"), recording.into_bytes(Mode::File)).unwrap();
    for name in ["jit-77.dump", "perf-77.map"] {
        let path = dir.path().join(name);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            for bytes in [&whole[..at], &changed] {
                fs::write(&path, bytes).unwrap();
                assert!(inject(dir.path(), &job), "{name} at {at:#x}");
                let out = fs::read(dir.path().join("out.data")).unwrap();
                assert_eq!(samples(records(&out)), SAMPLES, "{name} at {at:#x}");
            }
        }
        fs::write(&path, whole).unwrap();
    }
}
