//! Properties of `inject`: the parts that it must leave as they are, and those that it must change: forms, byte orders,
//! broken files, refusals.

use super::perf::{perf, script};
use super::support::bytes::Order;
use super::support::effort::step;
use super::support::generated::{Generated, Plan, generate};
use super::support::perf_data::{Mmap, Mode, PerfData, Stamp};
use super::truth::{Recording, Truth, judge, read_script};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(super) const PLAN: Plan =
    Plan { loads: 600, samples: 1500, processes: 2, heap: None, moves: true, order: Order::Little, mode: Mode::File };

/// A generated recording and its dumps, in a directory.
pub(super) struct Case {
    dir: tempfile::TempDir,
    pub(super) made: Generated,
    /// The plan of the recording, as far as it still applies.
    plan: Option<Plan>,
}

impl Case {
    pub(super) fn new(plan: Plan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = generate(plan, dir.path().to_str().unwrap());
        for (pid, dump) in &made.dumps {
            fs::write(dir.path().join(format!("jit-{pid}.dump")), dump).unwrap();
        }
        fs::write(dir.path().join("perf.data"), &made.perf_data).unwrap();
        Self { dir, made, plan: Some(plan) }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.arg("inject").args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Injects, and gives standard output and standard error.
    pub(super) fn inject(&self, args: &[&str]) -> (Vec<u8>, String) {
        finished(&mut self.command(args))
    }

    /// Every frame that real perf prints has the name of the code that was there, and perf complains of nothing.
    pub(super) fn assert_true(&self, file: &str) {
        // The look-up reads plain files of this machine's order; the generator makes the same program in any form.
        let plain = self.plan.map(|plan| generate(Plan { order: Order::Little, mode: Mode::File, ..plan }, "/nowhere"));
        let made = plain.as_ref().unwrap_or(&self.made);
        let mut truth = Truth::default();
        made.dumps.iter().for_each(|(pid, dump)| truth.add_dump(*pid, dump));
        let recording = Recording::read(&made.perf_data);
        truth.add_recording(&recording);
        truth.settle();
        let said = script(&self.path(file));
        let verdict = judge(&truth, &recording, &read_script(&said.out));
        assert_eq!((verdict.right, verdict.unresolved), (verdict.covered, 0), "{file}: {:?}", verdict.wrong);
        assert_eq!(said.err, "", "{file}");
    }

    fn images(&self) -> Vec<String> {
        let names =
            fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut images: Vec<_> = names.filter(|name| name.starts_with("jitted-")).collect();
        images.sort();
        images
    }
}

fn finished(command: &mut Command) -> (Vec<u8>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{command:?}: {said}");
    (stdout, said)
}

/// The records of a little-endian file, each whole.
fn records(file: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let mut rest = &file[word(40)..word(40) + word(48)];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(usize::from(u16::from_le_bytes([rest[6], rest[7]])));
        records.push(record);
        rest = behind;
    }
    records
}

fn is_inserted(record: &&[u8]) -> bool {
    record[0] == 10 && record.windows(8).any(|part| part == b"/jitted-")
}

#[test]
fn every_record_of_the_input_stays_and_the_names_are_right() {
    let case = Case::new(PLAN);
    case.inject(&["-i", "perf.data", "-o", "out.data"]);
    case.assert_true("out.data");
    let output = case.bytes("out.data");
    let kept: Vec<&[u8]> = records(&output).into_iter().filter(|record| !is_inserted(record)).collect();
    assert!(kept == records(&case.made.perf_data), "a record of the input was changed, moved, or is missing");
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let case = Case::new(PLAN);
    case.inject(&["--threads", "1", "-i", "perf.data", "-o", "one.data"]);
    case.inject(&["--threads", "3", "-i", "perf.data", "-o", "three.data"]);
    assert!(case.bytes("one.data") == case.bytes("three.data"));
    assert_eq!(case.images(), ["jitted-4000100.so", "jitted-4000107.so"], "equal images are written once");
}

#[test]
fn files_and_pipes_of_both_byte_orders_become_each_other() {
    for order in [Order::Little, Order::Big] {
        for mode in [Mode::File, Mode::Pipe] {
            let case = Case::new(Plan { order, mode, ..PLAN });
            case.inject(&["-i", "perf.data", "-o", "file.data"]);
            let mut piped = case.command(&["-j"]);
            let (stdout, _) = finished(piped.stdin(File::open(case.path("perf.data")).unwrap()));
            fs::write(case.path("pipe.data"), &stdout).unwrap();
            let header_size = |name: &str| case.bytes(name)[8..16].iter().copied().max();
            assert_eq!((header_size("file.data"), header_size("pipe.data")), (Some(104), Some(16)));
            case.assert_true("file.data");
            case.assert_true("pipe.data");
        }
    }
}

#[test]
fn without_jit_code_the_copy_is_equal() {
    let case = Case::new(PLAN);
    fs::remove_file(case.path("jit-4000100.dump")).unwrap();
    fs::remove_file(case.path("jit-4000107.dump")).unwrap();
    let (_, said) = case.inject(&["-i", "perf.data", "-o", "out.data"]);
    assert!(case.bytes("out.data") == case.made.perf_data);
    // perf leaves room in the table for features that it then does not write.
    let gapped = with_gap(&case.made.perf_data, 32);
    fs::write(case.path("gapped.data"), &gapped).unwrap();
    case.inject(&["-i", "gapped.data", "-o", "out.data"]);
    assert!(case.bytes("out.data") == gapped);
    assert!(said.contains("jit-4000100.dump") && said.contains("jit-4000107.dump"), "{said}");
    assert_eq!(case.images(), [""; 0]);
}

/// The recording with this many bytes of nothing between the table of features and the features.
fn with_gap(data: &[u8], gap: u64) -> Vec<u8> {
    let mut data = data.to_vec();
    let word = |data: &[u8], at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let table = (word(&data, 40) + word(&data, 48)) as usize;
    let count = data[72..104].iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    assert!(count > 0);
    for entry in (0..count).map(|number| table + number * 16) {
        let moved = word(&data, entry) + gap;
        data[entry..entry + 8].copy_from_slice(&moved.to_le_bytes());
    }
    let end = table + count * 16;
    data.splice(end..end, vec![0; gap as usize]);
    data
}

#[test]
fn an_injected_recording_is_not_injected_again() {
    let case = Case::new(Plan { moves: false, ..PLAN });
    let perf = Command::new("perf")
        .args(["inject", "--jit", "-i", "perf.data", "-o", "perf.jit.data"])
        .current_dir(case.dir.path())
        .output()
        .expect("perf is needed (tests/run.sh installs linux-perf)");
    assert!(perf.status.success());
    case.inject(&["-i", "perf.data", "-o", "own.jit.data"]);
    for by in ["perf.jit.data", "own.jit.data"] {
        let (_, said) = case.inject(&["-i", by, "-o", "twice.data"]);
        assert!(records(&case.bytes("twice.data")) == records(&case.bytes(by)), "{by}");
        assert!(said.contains("was injected before"), "{said}");
    }
}

#[test]
fn an_image_that_another_output_refers_to_is_not_replaced() {
    let case = Case::new(Plan { processes: 1, ..PLAN });
    case.inject(&["-i", "perf.data", "-o", "a.data"]);
    let first = case.bytes("jitted-4000100.so");
    case.inject(&["-i", "perf.data", "-o", "b.data", "--all-functions"]);
    assert_eq!(case.images(), ["jitted-4000100.2.so", "jitted-4000100.so"]);
    assert!(case.bytes("jitted-4000100.so") == first);
    case.assert_true("a.data");
    case.assert_true("b.data");
}

#[test]
fn a_killed_recorder_loses_only_what_it_did_not_write() {
    let case = Case::new(PLAN);
    let mut killed = case.made.perf_data.clone();
    let word = |at: usize| u64::from_le_bytes(killed[at..at + 8].try_into().unwrap()) as usize;
    let end = word(40) + word(48);
    killed[48..56].fill(0);
    // The last record is a FINISHED_ROUND of 8 bytes: the sample before it is cut, too.
    killed.truncate(end - 12);
    fs::write(case.path("killed.data"), killed).unwrap();
    let (_, said) = case.inject(&["-i", "killed.data", "-o", "out.data"]);
    assert!(said.contains("killed"), "{said}");
    let printed = read_script(&script(&case.path("out.data")).out);
    assert_eq!(printed.len() + 1, case.made.truth.len());
    assert!(printed.iter().flat_map(|sample| &sample.frames).all(|(_, name, _)| name != b"[unknown]"));
    let strict = case.command(&["--strict", "-i", "killed.data", "-o", "strict.data"]).output().unwrap();
    assert_eq!(strict.status.code(), Some(1));
}

#[test]
fn memory_that_grows_over_code_does_not_hide_it() {
    let case = Case::new(Plan { processes: 1, loads: 50, samples: 50, ..PLAN });
    // The same recording with a mapping of the whole arena before every sample, as MoarVM's allocator makes them.
    let mut covered = PerfData::new(Order::Little, super::support::perf_data::Event::usual());
    let recording = Recording::read(&case.made.perf_data);
    let stamp = |time| Stamp::new(4_000_100, time);
    covered.comm(stamp(1), "made-up", true);
    let dump = case.path("jit-4000100.dump");
    covered.mmap2(stamp(1), Mmap { addr: 0x7f00_0000_0000, len: 4096, pgoff: 0, path: dump.to_str().unwrap() });
    for sample in &recording.samples {
        covered.mmap2(stamp(sample.time - 1), Mmap { addr: 0x7f10_0000_0000, len: 1 << 20, pgoff: 0, path: "//anon" });
        covered.sample(stamp(sample.time), &sample.addrs);
    }
    let mut case = Case { plan: None, ..case };
    case.made.perf_data = covered.into_bytes(Mode::File);
    fs::write(case.path("perf.data"), &case.made.perf_data).unwrap();
    case.inject(&["-i", "perf.data", "-o", "out.data"]);
    case.assert_true("out.data");
}

/// A file with a build ID, run by one sample: this very program.
fn recording_of_a_file(dir: &Path) -> String {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let mut out = PerfData::new(Order::Little, super::support::perf_data::Event::usual());
    let stamp = |time| Stamp::new(77, time);
    out.comm(stamp(1), "program", true);
    out.mmap2(stamp(2), Mmap { addr: 0x40_0000, len: 0x10_0000, pgoff: 0, path: &program });
    out.mmap2(stamp(3), Mmap { addr: 0x7f00_0000, len: 0x1000, pgoff: 0, path: "/nowhere/lib.so" });
    out.sample(stamp(4), &[0x40_1000]);
    out.recorded_here();
    fs::write(dir.join("perf.data"), out.into_bytes(Mode::File)).unwrap();
    program
}

#[test]
fn build_ids_of_other_files_are_added_as_perf_inject_adds_them() {
    let dir = tempfile::tempdir().unwrap();
    let program = recording_of_a_file(dir.path());
    fs::write(dir.path().join("known"), format!("00112233445566778899aabbccddeeff00112233 {program}\n")).unwrap();
    let of_file = perf(&["buildid-list"], Path::new(&program)).out;
    let of_file = String::from_utf8(of_file).unwrap().trim().to_owned();
    assert_eq!(of_file.len(), 40, "the test program has no build ID: {of_file}");
    let known = "00112233445566778899aabbccddeeff00112233";
    let listed = format!("--known-build-ids=ff /nowhere/else,{known} {program}");
    for (options, id, in_mapping) in [
        (&["-b"][..], &of_file[..], false),
        (&["--buildid-all"], &of_file, false),
        (&["-B"], &of_file, true),
        (&["--mmap2-buildid-all"], &of_file, true),
        (&["-B", "--known-build-ids=known"], known, true),
        (&["-b", "--known-build-ids", "known"], known, false),
        (&["-B", "--known-build-ids=file://known"], known, true),
        (&["-b", &listed], known, false),
    ] {
        for out in ["out.data", "-"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
            command.args(["inject", "-i", "perf.data", "-o", out]).args(options).current_dir(dir.path());
            let (stdout, _) = finished(&mut command);
            if out == "-" {
                fs::write(dir.path().join("out.data"), stdout).unwrap();
            }
            let said = perf(&["script", "--show-mmap-events"], &dir.path().join("out.data"));
            let text = String::from_utf8(said.out).unwrap();
            assert_eq!(text.contains(&format!("<{id}>]: r-xp {program}")), in_mapping, "{options:?}: {text}");
            let list = perf(&["buildid-list"], &dir.path().join("out.data"));
            let list = String::from_utf8(list.out).unwrap();
            assert!(list.contains(&format!("{id} {program}")), "{options:?} -o {out}: {list}");
        }
    }
}

#[test]
fn the_kernel_and_its_vdso_have_the_build_ids_of_those_that_run_here_only_if_they_were_recorded_here() {
    let dir = tempfile::tempdir().unwrap();
    let running =
        Command::new("perf").args(["buildid-list", "--kernel"]).output().expect("perf is needed (linux-perf)");
    let running = String::from_utf8(running.stdout).unwrap().trim().to_owned();
    assert_eq!(running.len(), 40, "the kernel's build ID cannot be read: {running}");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let recorded = "09".repeat(20);
    for (release, feature, expected) in [
        (release.trim(), None, Some(&running)),
        ("1.2.3-other", None, None),
        ("1.2.3-other", Some([9; 20]), Some(&recorded)),
        (release.trim(), Some([9; 20]), Some(&recorded)),
    ] {
        let mut out = PerfData::new(Order::Little, super::support::perf_data::Event::usual());
        let stamp = |time| Stamp::new(77, time);
        let kernel = Mmap { addr: 1 << 63, len: 0x1000, pgoff: 1 << 63, path: "[kernel.kallsyms]_text" };
        out.kernel_mmap(stamp(0), kernel);
        out.comm(stamp(1), "program", true);
        out.mmap2(stamp(2), Mmap { addr: 0x7fff_0000_0000, len: 0x2000, pgoff: 0, path: "[vdso]" });
        out.sample(stamp(3), &[0x7fff_0000_0100]);
        out.sample_of(0, 1, stamp(4), (1 << 63) + 8, &[-128i64 as u64, (1 << 63) + 8]);
        out.string_feature(4, release);
        out.recorded_here();
        if let Some(id) = feature {
            out.kernel_build_id(&id);
        }
        fs::write(dir.path().join("perf.data"), out.into_bytes(Mode::File)).unwrap();
        for option in ["-b", "--buildid-all"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
            command.args(["inject", option, "-i", "perf.data", "-o", "out.data"]).current_dir(dir.path());
            finished(&mut command);
            let list = perf(&["buildid-list"], &dir.path().join("out.data"));
            let list = String::from_utf8(list.out).unwrap();
            // Without any build ID perf lists what it would have asked for.
            let known = || list.lines().filter(|line| !line.starts_with(' '));
            let mut kernels: Vec<&str> = known().filter(|line| line.contains("[kernel")).collect();
            kernels.dedup();
            let line = expected.map(|id| format!("{id} [kernel.kallsyms]"));
            assert_eq!(kernels, line.as_deref().into_iter().collect::<Vec<_>>(), "{option} {release}: {list}");
            let vdso = known().any(|line| line.ends_with(" [vdso]"));
            assert_eq!(vdso, expected == Some(&running), "{option} {release}: {list}");
        }
    }
}

#[test]
fn memory_does_not_grow_with_the_recording() {
    const LIMIT: u64 = 24 << 20;
    let case = Case::new(PLAN);
    // A recorder that was killed: its records reach to the end of the file, which is eight times what may be allocated,
    // or almost three times in a quick run.
    let mut long = case.made.perf_data.clone();
    let word = |at: usize| u64::from_le_bytes(long[at..at + 8].try_into().unwrap()) as usize;
    let end = word(40) + word(48);
    long[48..56].fill(0);
    long.truncate(end);
    let mut file = std::io::BufWriter::new(File::create(case.path("long.data")).unwrap());
    file.write_all(&long).unwrap();
    // The same samples again and again, as much as may be allocated, or a third of that.
    let samples: Vec<u8> =
        records(&case.made.perf_data).into_iter().filter(|record| record[0] == 9).flatten().copied().collect();
    (0..LIMIT / samples.len() as u64 / step(3) as u64).for_each(|_| file.write_all(&samples).unwrap());
    // Records of a type that no recorder writes: they are to be passed on like any others.
    let mut other = [&0x1000u32.to_le_bytes()[..], &0u16.to_le_bytes(), &0xfff8u16.to_le_bytes()].concat();
    other.resize(0xfff8, 0x55);
    (0..7 * LIMIT / step(3) as u64 / 0xfff8 + 1).for_each(|_| file.write_all(&other).unwrap());
    drop(file);
    for input in ["long.data", "-"] {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--data={LIMIT}")).arg(env!("CARGO_BIN_EXE_jitgraft"));
        limited.args(["inject", "--threads", "2", "-i", input, "-o", "out.data"]).current_dir(case.dir.path());
        // A pipe is spooled to the disk.
        let mut cat = Command::new("cat").arg(case.path("long.data")).stdout(Stdio::piped()).spawn().unwrap();
        limited.stdin(cat.stdout.take().unwrap());
        let (_, said) = finished(&mut limited);
        drop(limited);
        cat.wait().unwrap();
        assert!(said.contains("(100.0%)"), "{said}");
        let length = |name: &str| fs::metadata(case.path(name)).unwrap().len();
        assert!(length("out.data") > length("long.data"));
    }
    // The same is not possible with less than what the code itself takes: the limit is one.
    let mut limited = Command::new("prlimit");
    limited.arg("--data=1000000").arg(env!("CARGO_BIN_EXE_jitgraft")).args(["inject", "-i", "long.data", "-o", "x"]);
    assert!(!limited.current_dir(case.dir.path()).output().unwrap().status.success());
}

#[test]
fn impossible_options_are_refused_by_name() {
    let case = Case::new(Plan { loads: 10, samples: 10, ..PLAN });
    for option in ["--itrace", "--itrace=i100", "--strip", "-s", "--guest-data=x", "--vm-time-correlation", "--aslr"] {
        let output = case.command(&["-i", "perf.data", "-o", "out.data", option]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{option}: {said}");
        assert!(said.contains("jitgraft does not support"), "{option}: {said}");
    }
    let own = case.command(&["-i", "perf.data", "-o", "perf.data"]).output().unwrap();
    assert_eq!(own.status.code(), Some(2));
    assert!(case.bytes("perf.data") == case.made.perf_data);
}
