//! Odd dumps in front of every job that reads dumps: the right names, or one clear word to the user who runs it.

use super::odd::{AT, PID};
use super::perf::script;
use super::support::bytes::Order;
use super::support::jitdump::{Header, JitDump, Load};
use super::support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use super::truth::read_script;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SECOND: u64 = 1_000_000_000;

/// When the process begins, is sampled for the first time, and ends.
const BEGAN: u64 = 100 * SECOND;
const SAMPLED: u64 = 105 * SECOND;
const ENDED: u64 = 110 * SECOND;

/// Each millisecond one, in two functions by turns.
const SAMPLES: u64 = 120;

const CODE: [u8; 0x40] = [0x90; 0x40];

/// Bytes of the prefix and the fixed fields of a load, of its name with the zero, and of its code.
const FIXED: usize = 56;
const RECORD: usize = FIXED + NAME + CODE.len();
const NAME: usize = "other".len() + 1;
const HEADER: usize = 40;

/// The place of the message about a file: on standard error by every job, or in doctor's findings, too.
#[derive(Debug, Clone, Copy)]
enum Told {
    Nothing,
    /// One line on standard error has the file's name and this.
    Line(&'static str),
    /// A line as for [`Self::Line`], with the first text, and doctor's finding with the second one as its key.
    Finding(&'static str, &'static str),
}

struct Case {
    what: &'static str,
    /// True if the process had mapped `jit-77.dump`.
    is_marked: bool,
    files: Vec<(&'static str, Vec<u8>)>,
    /// The names of the two functions that were sampled.
    names: [&'static str; 2],
    told: Told,
}

/// Three functions: the first and the last are sampled, the one between them is not.
fn dump(times: [u64; 3]) -> Vec<u8> {
    let mut dump = JitDump::with_header(Order::Little, Header { timestamp: times[0], ..Header::of(PID) });
    let load = |index, name, addr| Load { tid: PID, addr, index, name, code: &CODE };
    dump.load(times[0], load(0, b"first", AT));
    dump.load(times[1], load(1, b"other", AT + 0x1000));
    dump.load(times[2], load(2, b"third", AT + 0x100));
    dump.into_bytes()
}

/// The dump of this process.
fn sound() -> Vec<u8> {
    dump([BEGAN + 10, BEGAN + 20, BEGAN + 30])
}

/// The dump of another run of the same program, which started this many seconds later.
fn of_another_run(seconds: u64) -> Vec<u8> {
    dump([0, 10, 20].map(|more| seconds * SECOND + more))
}

fn cut(bytes: usize) -> Vec<u8> {
    let mut dump = sound();
    dump.truncate(dump.len() - bytes);
    dump
}

/// The dump with other bytes from a place in that record on.
fn damaged(record: usize, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut dump = sound();
    let at = HEADER + record * RECORD + at;
    dump[at..at + bytes.len()].copy_from_slice(bytes);
    dump
}

fn cases() -> Vec<Case> {
    use Told::{Finding, Line, Nothing};
    let (both, none) = (["first", "third"], ["[unknown]"; 2]);
    let (own, of_99) = ("jit-77.dump", "jit-99.dump");
    let case =
        |what, is_marked, file, bytes, names, told| Case { what, is_marked, files: vec![(file, bytes)], names, told };
    let one_time = Line("all records of the jitdump have the same time, so each address got the name of the last code");
    let torn = Finding("the dump is truncated here", "source-torn");
    let is_damaged = Line("the record is damaged");
    let began =
        Finding("process 77 began at 100.000 s; the jitdump seems to be from another process", "source-refused");
    let ended =
        Finding("process 77 ended at 110.000 s; the jitdump seems to be from another process", "source-refused");
    let offered = Finding("or only the addresses match. To use the file, pass --jitdump", "source-of-other-process");
    vec![
        case("sound", true, own, sound(), both, Nothing),
        case("all times are 0", true, own, dump([0; 3]), both, one_time),
        case("all times are equal", true, own, dump([BEGAN + 5; 3]), both, one_time),
        case(
            "cut in the last code",
            true,
            own,
            cut(CODE.len() / 2),
            both,
            Line("truncated here, in the code of the last"),
        ),
        case(
            "cut behind the last name",
            true,
            own,
            cut(CODE.len()),
            both,
            Line("truncated here, in the code of the last"),
        ),
        case("cut in the last name", true, own, cut(CODE.len() + 3), ["first", "[unknown]"], torn),
        case("cut in the last header", true, own, cut(RECORD - 30), ["first", "[unknown]"], torn),
        case("cut in the last prefix", true, own, cut(RECORD - 6), ["first", "[unknown]"], torn),
        case("zeros in the middle", true, own, damaged(1, 0, &[0; RECORD]), both, is_damaged),
        case("a length that is too short", true, own, damaged(1, 4, &[7, 0, 0, 0]), both, is_damaged),
        case("a length that is too long", true, own, damaged(1, 4, &[0xff, 0xff, 0xff, 0x7f]), both, is_damaged),
        case(
            "damage where it matters",
            true,
            own,
            damaged(0, 0, &[0xff; RECORD]),
            ["[unknown]", "third"],
            Finding("the record is damaged", "source-torn"),
        ),
        Case {
            what: "two dumps of other numbers that fit",
            is_marked: false,
            files: vec![("jit-98.dump", sound()), (of_99, sound())],
            names: none,
            told: offered,
        },
        case(
            "one that fits",
            false,
            of_99,
            sound(),
            both,
            Line("used for process 77, because the times in the file fit the lifetime of the process"),
        ),
        case("an old one of the same number, mapped", true, own, of_another_run(20), none, began),
        case("an old one of the same number", false, own, of_another_run(20), none, began),
        case("one of the same number, later, mapped", true, own, of_another_run(200), none, ended),
        case("one of the same number, later", false, own, of_another_run(200), none, ended),
        case(
            "an old one of another number",
            false,
            of_99,
            of_another_run(20),
            none,
            Finding("but the process began at 100.000 s", "source-refused"),
        ),
        case(
            "a later one of another number",
            false,
            of_99,
            of_another_run(200),
            none,
            Finding("but the process was last seen at 110.000 s", "source-refused"),
        ),
    ]
}

fn recording(marker: Option<&Path>) -> PerfData {
    let mut data = PerfData::new(Order::Little, Event::usual());
    let stamp = Stamp::new(PID, BEGAN);
    data.comm(stamp, "program", true);
    data.mmap2(stamp, Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    if let Some(marker) = marker {
        let path = marker.to_str().unwrap();
        data.mmap2(Stamp::new(PID, BEGAN + 1), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path });
    }
    for number in 0..SAMPLES {
        data.sample(Stamp::new(PID, SAMPLED + number * SECOND / 1000), &[AT + number % 2 * 0x100 + 8]);
    }
    data.exit(Stamp::new(PID, ENDED), 1);
    data
}

/// A directory with the case's recording and files.
fn scene(case: &Case) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("jit-77.dump");
    let data = recording(case.is_marked.then_some(&*marker));
    fs::write(dir.path().join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    for (name, bytes) in &case.files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

fn run(words: &str, dir: &Path) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(words.split(' ')).current_dir(dir).env("HOME", "/nonexistent").env_remove("JITDUMPDIR");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [out, err] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(status.success(), "{words}: {err}");
    (out, err)
}

/// One line of the messages is about the file, and has the words.
#[track_caller]
fn assert_told(said: &str, case: &Case, job: &str) {
    let words = match case.told {
        Told::Nothing => None,
        Told::Line(words) | Told::Finding(words, _) => Some(words),
    };
    for (name, _) in &case.files {
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(name)).collect();
        assert_eq!(lines.len(), usize::from(words.is_some()), "{}: {job} of {name}:\n{said}", case.what);
        assert!(lines.iter().all(|line| line.contains(words.unwrap_or_default())), "{}: {job}:\n{said}", case.what);
    }
}

fn names_of_inject(case: &Case, dir: &Path) -> [String; 2] {
    let (_, said) = run("inject -i perf.data -o out.data", dir);
    assert_told(&said, case, "inject");
    let printed = script(&dir.join("out.data"));
    let leaves =
        read_script(&printed.out).into_iter().map(|sample| String::from_utf8(sample.frames[0].1.clone()).unwrap());
    two(leaves.collect())
}

/// The names that the samples have by turns: all odd ones the same, and all even ones.
fn two(leaves: Vec<String>) -> [String; 2] {
    assert_eq!(leaves.len() as u64, SAMPLES);
    [0, 1].map(|first| {
        let names: BTreeSet<&String> = leaves.iter().skip(first).step_by(2).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        names.into_iter().next().unwrap().clone()
    })
}

fn names_of_script(case: &Case, dir: &Path) -> [String; 2] {
    let (text, said) = run("script perf.data -F ip,sym", dir);
    assert_told(&said, case, "script");
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    two(lines.map(|(_, name)| name.to_owned()).collect())
}

fn assert_collapsed(case: &Case, dir: &Path) {
    let (text, said) = run("collapse perf.data", dir);
    assert_told(&said, case, "collapse");
    let named = case.names.iter().filter(|name| **name != "[unknown]");
    let mut expected: Vec<String> =
        named.map(|name| format!("program;{name} {}", SAMPLES / 2 * SECOND / 1000)).collect();
    let rest = SAMPLES - SAMPLES / 2 * expected.len() as u64;
    if rest > 0 {
        expected.push(format!("program;[perf-77.map] {}", rest * SECOND / 1000));
    }
    expected.sort();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{}", case.what);
}

fn assert_diagnosed(case: &Case, dir: &Path) {
    let (text, _) = run("doctor perf.data --format json", dir);
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    let findings = list[0]["findings"].as_array().unwrap();
    let of_sources = findings.iter().filter(|finding| {
        let key = finding["problem"].as_str().unwrap();
        key.starts_with("source-") || key.starts_with("dump-") || key.starts_with("no-dump")
    });
    let keys: Vec<&str> = of_sources.map(|finding| finding["problem"].as_str().unwrap()).collect();
    match case.told {
        Told::Finding(_, key) => assert_eq!(keys, [key], "{}: {findings:#?}", case.what),
        _ => assert_eq!(keys, [""; 0], "{}", case.what),
    }
    // The account of each file is one line, too.
    let (text, _) = run("doctor perf.data", dir);
    for (name, _) in &case.files {
        let accounts = text.lines().filter(|line| line.starts_with("  jitdump ") && line.contains(name));
        assert_eq!(accounts.count(), 1, "{}:\n{text}", case.what);
    }
}

#[test]
fn odd_dumps_give_right_names_or_one_clear_word_in_every_job() {
    for case in cases() {
        let dir = scene(&case);
        assert_eq!(names_of_inject(&case, dir.path()), case.names, "inject: {}", case.what);
        assert_eq!(names_of_script(&case, dir.path()), case.names, "script: {}", case.what);
        assert_collapsed(&case, dir.path());
        assert_diagnosed(&case, dir.path());
    }
}

#[test]
fn samples_behind_the_last_record_of_a_dump_are_reported() {
    let mut data = recording(None);
    // Code that came later than all of the dump.
    for number in 0..30 {
        data.sample(Stamp::new(PID, SAMPLED + SECOND + number), &[AT + 0x2000]);
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    fs::write(dir.path().join("jit-77.dump"), dump([BEGAN, BEGAN + 10, SAMPLED + SECOND / 2])).unwrap();
    let (_, said) = run("inject -i perf.data -o out.data", dir.path());
    // The last function was sampled before it was logged.
    let words = "90 frames that no dump or map names; 60 of them were sampled before their code was logged or \
                 after it was replaced; 30 of them were sampled after the last record of its jitdump";
    assert!(said.contains(words), "{said}");
}
