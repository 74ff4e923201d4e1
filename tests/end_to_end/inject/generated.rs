//! Generated recordings through `jitgraft inject`: perf must name every frame as the generator did, in both byte
//! orders and both forms, and find nothing else changed.

use super::perf::{perf, script, stats};
use super::support::bytes::Order;
use super::support::generated::{Generated, Plan, generate, name};
use super::support::jitdump::{JitDump, Load};
use super::support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use super::truth::{Printed, Recording, Truth, judge, read_script};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording in a directory of its own, with its dumps.
struct Case {
    dir: tempfile::TempDir,
    made: Generated,
}

impl Case {
    fn new(plan: Plan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = generate(plan, dir.path().to_str().unwrap());
        fs::write(dir.path().join("perf.data"), &made.perf_data).unwrap();
        for (pid, dump) in &made.dumps {
            fs::write(dir.path().join(format!("jit-{pid}.dump")), dump).unwrap();
        }
        Self { dir, made }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// From file to file; what jitgraft states.
    fn inject(&self, options: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.arg("inject").args(options).arg("-i").arg(self.path("perf.data")).arg("-o").arg(self.path("out.data"));
        run(command)
    }

    /// From standard input to standard output.
    fn inject_streams(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.arg("inject").current_dir(self.dir.path());
        command.stdin(File::open(self.path("perf.data")).unwrap());
        command.stdout(File::create(self.path("out.data")).unwrap());
        run(command)
    }

    /// The frames whose printed name is another than the generator's.
    fn wrong_names(&self, printed: &[Printed]) -> Vec<String> {
        assert_eq!(printed.len(), self.made.truth.len());
        let mut wrong = Vec::new();
        for (printed, made) in printed.iter().zip(&self.made.truth) {
            assert_eq!((printed.pid, printed.time, printed.frames.len()), (made.pid, made.time, made.frames.len()));
            for ((_, said, dso), frame) in printed.frames.iter().zip(&made.frames) {
                if *said != name(frame.function).into_bytes() {
                    let [said, dso] = [said, dso].map(|text| String::from_utf8_lossy(text));
                    wrong.push(format!(
                        "{}: {:x} is {said} ({dso}), not {}",
                        made.pid,
                        frame.addr,
                        name(frame.function)
                    ));
                }
            }
        }
        wrong
    }

    /// perf's output for the recording, without a word on standard error.
    fn printed(&self) -> Vec<Printed> {
        let said = script(&self.path("out.data"));
        assert_eq!(said.err, "", "perf script complains");
        read_script(&said.out)
    }

    fn images(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let is_image = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "so");
        files.filter(is_image).collect()
    }
}

/// Runs a program that must succeed; its standard error.
fn run(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} (tests/run.sh installs tools): {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

fn run_on(tool: &str, option: &str, path: &Path) -> String {
    let mut command = Command::new(tool);
    command.arg(option).arg(path);
    run(command)
}

fn plan(order: Order, mode: Mode) -> Plan {
    Plan { loads: 1500, samples: 2500, processes: 3, heap: None, moves: true, order, mode }
}

#[test]
fn every_frame_has_the_name_of_the_code_that_was_there_then() {
    for order in [Order::Little, Order::Big] {
        let case = Case::new(plan(order, Mode::File));
        case.inject(&[]);
        assert_eq!(case.wrong_names(&case.printed()), [""; 0], "{order:?}");
    }
}

#[test]
fn pipes_are_as_good_as_files() {
    for mode in [Mode::Pipe, Mode::File] {
        let case = Case::new(plan(Order::Little, mode));
        case.inject_streams();
        assert_eq!(&fs::read(case.path("out.data")).unwrap()[8..12], b"\x10\0\0\0", "the output is in pipe form");
        assert_eq!(case.wrong_names(&case.printed()), [""; 0], "{mode:?}");
    }
}

#[test]
fn the_brute_force_look_up_agrees_with_perf() {
    let case = Case::new(plan(Order::Little, Mode::File));
    case.inject(&[]);
    let recording = Recording::read(&case.made.perf_data);
    let mut truth = Truth::default();
    case.made.dumps.iter().for_each(|(pid, dump)| truth.add_dump(*pid, dump));
    truth.add_recording(&recording);
    truth.settle();
    let verdict = judge(&truth, &recording, &case.printed());
    assert!(verdict.user > 5000);
    assert_eq!((verdict.covered, verdict.right, verdict.unresolved), (verdict.user, verdict.user, 0));
}

#[test]
fn only_mapping_records_come_in() {
    let case = Case::new(plan(Order::Little, Mode::File));
    let before = stats(&case.path("perf.data"));
    case.inject(&[]);
    let after = stats(&case.path("out.data"));
    let without = |stats: &[(String, u64)]| -> Vec<(String, u64)> {
        stats.iter().filter(|(name, _)| name != "MMAP2" && name != "TOTAL").cloned().collect()
    };
    assert!(before.iter().any(|(name, count)| name == "FINISHED_ROUND" && *count > 0), "{before:?}");
    assert_eq!(without(&before), without(&after));
    // In order, too, and byte for byte.
    let (old, new) = (Recording::read(&case.made.perf_data), fs::read(case.path("out.data")).unwrap());
    let new = Recording::read(&new);
    let mut rest = new.types.iter();
    assert!(old.types.iter().all(|kind| rest.any(|other| other == kind)));
    assert!(new.types.len() > old.types.len());
}

#[test]
fn reports_and_annotations_are_free_of_complaints() {
    let case = Case::new(plan(Order::Little, Mode::File));
    case.inject(&[]);
    let report = |name: &str| perf(&["report", "--stdio", "--no-children", "-g", "none"], &case.path(name));
    let (before, report) = (report("perf.data"), report("out.data"));
    assert_eq!(report.err, before.err, "perf report complains of something new");
    let report = String::from_utf8(report.out).unwrap();
    assert!(report.contains("JS:*work") && !report.contains("[unknown]"), "{report}");
    for image in case.images() {
        assert!(!run_on("readelf", "--all", &image).contains("readelf:"), "{}", image.display());
        run_on("eu-elflint", "--gnu-ld", &image);
    }
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let case = Case::new(plan(Order::Little, Mode::File));
    let mut seen: Option<(Vec<u8>, Vec<Vec<u8>>)> = None;
    for threads in ["1", "3"] {
        case.images().iter().for_each(|image| fs::remove_file(image).unwrap());
        case.inject(&["--threads", threads]);
        let images = case.images().iter().map(|image| fs::read(image).unwrap()).collect();
        let now = (fs::read(case.path("out.data")).unwrap(), images);
        let first = seen.get_or_insert_with(|| now.clone());
        assert!(*first == now, "--threads {threads} differs");
    }
}

#[test]
fn an_injected_profile_is_not_injected_again() {
    let case = Case::new(plan(Order::Little, Mode::File));
    case.inject(&[]);
    fs::rename(case.path("out.data"), case.path("perf.data")).unwrap();
    let once = fs::read(case.path("perf.data")).unwrap();
    case.inject(&[]);
    assert!(once == fs::read(case.path("out.data")).unwrap(), "the second run changes the recording");
}

#[test]
fn the_first_byte_of_code_has_a_name_as_a_return_address_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut dump = JitDump::new(77);
    dump.load(10, Load { tid: 77, addr: 0x10100, index: 0, name: b"alone", code: &[0x90; 32] });
    fs::write(dir.path().join("jit-77.dump"), dump.into_bytes()).unwrap();
    let mut out = PerfData::new(Order::Little, Event::usual());
    out.mmap2(Stamp::new(77, 1), Mmap { addr: 0x10000, len: 0x1000, pgoff: 0, path: "//anon" });
    out.mmap2(Stamp::new(77, 2), Mmap { addr: 0x20000, len: 0x1000, pgoff: 0, path: "/nowhere/jit-77.dump" });
    out.sample(Stamp::new(77, 20), &[0x10800, 0x10100]);
    fs::write(dir.path().join("perf.data"), out.into_bytes(Mode::File)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["inject", "-i", "perf.data", "-o", "out.data"]).current_dir(dir.path());
    run(command);
    let printed = read_script(&script(&dir.path().join("out.data")).out);
    assert_eq!(printed[0].frames[1].1, b"alone", "perf looks 0x10100 up, not the byte before it");
}
