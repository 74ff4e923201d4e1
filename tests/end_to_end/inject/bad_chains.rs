//! `--drop-bad-chain-entries`: a recording of PHP's function JIT, of most of whose samples perf prints no frame.

use super::perf::{perf, stats};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Samples of the fixture, and those whose call chains hold a word above `PERF_CONTEXT_MAX` that is not a mark: counted
/// in what `perf report -D` prints.
const SAMPLES: usize = 220;
const BAD: usize = 208;

const FLAG: &str = "--drop-bad-chain-entries";

/// The fixture, unpacked into a directory of its own.
fn unpacked() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-bad-chains");
    let packed = File::open(fixture.join("perf.data.zst")).unwrap();
    fs::write(dir.path().join("perf.data"), zstd::decode_all(packed).unwrap()).unwrap();
    fs::copy(fixture.join("jit-27930.dump"), dir.path().join("jit-27930.dump")).unwrap();
    dir
}

fn inject(dir: &tempfile::TempDir, args: &[&str], to: &str) -> (PathBuf, String) {
    let out = dir.path().join(to);
    let output = run(dir, args, &["-o", to]);
    (out, String::from_utf8(output.stderr).unwrap())
}

fn run(dir: &tempfile::TempDir, args: &[&str], more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("inject").args(args).args(more).args(["-i", "perf.data"]).current_dir(dir.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The frames of every sample that perf prints, innermost first, as `symbol (file)`.
fn printed(data: &Path) -> Vec<Vec<String>> {
    let text = perf(&["script", "--no-inline", "-F", "comm,time,ip,sym,dso"], data).out;
    let text = String::from_utf8_lossy(&text).into_owned();
    let samples = text.split("\n\n").filter(|sample| !sample.trim().is_empty());
    let frame = |line: &str| line.trim_start().split_once(' ').unwrap().1.to_owned();
    samples.map(|sample| sample.lines().skip(1).map(frame).collect()).collect()
}

/// The number of samples that have no frame, and how many have one in a function of the image.
fn counts(samples: &[Vec<String>]) -> (usize, usize) {
    let is_jit = |frame: &String| frame.starts_with("JIT$") && frame.contains("/jitted-27930.");
    let in_jit = |frames: &&Vec<String>| frames.iter().any(is_jit);
    (samples.iter().filter(|frames| frames.is_empty()).count(), samples.iter().filter(in_jit).count())
}

#[test]
fn perf_prints_the_jit_frames_of_chains_without_their_bad_entries() {
    let dir = unpacked();
    let (without, said) = inject(&dir, &[], "without.data");
    assert!(
        said.contains(&format!("perf shows no frames for {BAD} of {SAMPLES} samples")) && said.contains(FLAG),
        "{said}"
    );
    let (before, now) = (printed(&without), inject(&dir, &[FLAG], "with.data"));
    assert_eq!((before.len(), counts(&before)), (SAMPLES, (BAD, 0)));
    let after = printed(&now.0);
    assert_eq!((after.len(), counts(&after)), (SAMPLES, (0, BAD)));
    assert!(
        now.1.contains(&format!("removed {BAD} invalid entries from {BAD} call chains")) && !now.1.contains(FLAG),
        "{}",
        now.1
    );
    // Samples with frames keep the same ones.
    for (before, after) in before.iter().zip(&after).filter(|(before, _)| !before.is_empty()) {
        assert_eq!(before, after);
    }
    assert_eq!(stats(&without), stats(&now.0));
    // Reading from a pipe and giving JIT functions unique addresses has the same result.
    let piped = dir.path().join("piped.data");
    fs::write(&piped, run(&dir, &[FLAG], &[]).stdout).unwrap();
    assert_eq!(counts(&printed(&piped)), (0, BAD));
    let (relocated, _) = inject(&dir, &[FLAG, "--relocate"], "relocated.data");
    assert_eq!(counts(&printed(&relocated)), (0, BAD));
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The records of a file, and what follows them.
fn records(file: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let (data, mut records) = (word(file, 40) as usize, Vec::new());
    let (mut at, end) = (data, data + word(file, 48) as usize);
    while at < end {
        let size = usize::from(u16::from_le_bytes(file[at + 6..at + 8].try_into().unwrap()));
        records.push(&file[at..at + size]);
        at += size;
    }
    assert_eq!(at, end);
    (records, &file[end..])
}

/// The sections of features behind the records: their bytes without their places.
fn sections(file: &[u8]) -> Vec<&[u8]> {
    let table = (word(file, 40) + word(file, 48)) as usize;
    let count = file[72..104].iter().map(|byte| byte.count_ones() as usize).sum();
    let section = |nth: usize| {
        let (offset, size) = (word(file, table + 16 * nth) as usize, word(file, table + 16 * nth + 8) as usize);
        &file[offset..offset + size]
    };
    (0..count).map(section).collect()
}

/// The expected form of a sample of the fixture. Its fields: ip, pid and tid, time, period, chain; a word each before
/// it.
fn remove_bad_entries(sample: &[u8]) -> Vec<u8> {
    const CHAIN: usize = 8 + 4 * 8;
    let marks = [-32, -128, -512, -640, -2048, -2176, -2560].map(|mark: i64| mark as u64);
    let words: Vec<u64> = (CHAIN + 8..sample.len()).step_by(8).map(|at| word(sample, at)).collect();
    let good: Vec<u64> = words.into_iter().filter(|word| *word < -4095i64 as u64 || marks.contains(word)).collect();
    let mut new = sample[..CHAIN].to_vec();
    new.extend((good.len() as u64).to_le_bytes());
    new.extend(good.iter().flat_map(|word| word.to_le_bytes()));
    let size = new.len() as u16;
    new[6..8].copy_from_slice(&size.to_le_bytes());
    new
}

#[test]
fn all_but_the_bad_entries_stays_byte_for_byte() {
    const SAMPLE: u8 = 9;
    let dir = unpacked();
    let runs = [("without", &[][..]), ("with", &[FLAG]), ("by_one", &[FLAG, "--threads", "1"])];
    let [without, with, by_one] = runs.map(|(to, args)| fs::read(inject(&dir, args, to).0).unwrap());
    assert_eq!(with, by_one);
    let ((old, _), (new, _)) = (records(&without), records(&with));
    assert_eq!(old.len(), new.len());
    let mut changed = 0;
    for (old, new) in old.iter().zip(&new) {
        let expected = if old[0] == SAMPLE { remove_bad_entries(old) } else { old.to_vec() };
        assert_eq!(expected, *new);
        changed += usize::from(old != new);
    }
    assert_eq!(changed, BAD);
    assert_eq!(sections(&without), sections(&with));
    // The recording's own samples are those of the output without the option.
    let input = fs::read(dir.path().join("perf.data")).unwrap();
    let samples = |file: &[u8]| -> Vec<Vec<u8>> {
        records(file).0.into_iter().filter(|record| record[0] == SAMPLE).map(<[u8]>::to_vec).collect()
    };
    assert_eq!(samples(&input), samples(&without));
}

#[test]
fn the_option_changes_nothing_if_no_entry_is_bad() {
    let dir = unpacked();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording/perf.data.zst");
    fs::write(dir.path().join("perf.data"), zstd::decode_all(File::open(fixture).unwrap()).unwrap()).unwrap();
    let [(without, _), (with, said)] =
        [(&[][..], "without"), (&[FLAG], "with")].map(|(args, to)| inject(&dir, args, to));
    assert_eq!(fs::read(without).unwrap(), fs::read(with).unwrap());
    assert!(!said.contains("entries") && !said.contains("no frames"), "{said}");
}
