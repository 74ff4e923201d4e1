//! Odd dumps and odd recordings through the real program and the real perf: the right names, or one clear warning, and
//! nothing lost that is good.

use super::perf::script;
use super::support::bytes::Order;
use super::support::jitdump::{Header, JitDump, Line, Load};
use super::support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use super::truth::read_script;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) const PID: u32 = 77;
pub(super) const AT: u64 = 0x1_0000;
const CODE: [u8; 0x40] = [0x90; 0x40];

/// A directory with dumps (or none), and a recording under way.
pub(super) struct Odd {
    pub(super) dir: tempfile::TempDir,
    pub(super) recording: PerfData,
}

impl Odd {
    /// A process whose memory and marker are mapped. `dump` is the marker's file name.
    pub(super) fn new(dump: &str) -> Self {
        Self::with_event(dump, Event::usual())
    }

    pub(super) fn with_event(dump: &str, event: Event) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = PerfData::new(Order::Little, event);
        recording.comm(Stamp::new(PID, 1), "program", true);
        recording.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
        let marker = dir.path().join(dump);
        let marker = Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker.to_str().unwrap() };
        recording.mmap2(Stamp::new(PID, 3), marker);
        Self { dir, recording }
    }

    pub(super) fn file(self, name: &str, bytes: &[u8]) -> Self {
        fs::write(self.dir.path().join(name), bytes).unwrap();
        self
    }

    pub(super) fn sample(mut self, pid: u32, time: u64, addr: u64) -> Self {
        self.recording.sample(Stamp::new(pid, time), &[addr]);
        self
    }

    pub(super) fn map(mut self, time: u64, path: &str) -> Self {
        self.recording.mmap2(Stamp::new(PID, time), Mmap { addr: AT, len: 0x8000, pgoff: 0, path });
        self
    }

    /// The names that perf prints for the samples, and what jitgraft warned of.
    pub(super) fn inject(self, options: &[&str]) -> (Vec<String>, Vec<String>) {
        let (dir, warnings) = self.inject_into(options);
        (names(&dir.path().join("out.data")), warnings)
    }

    /// The directory that has the output, and what jitgraft warned of.
    pub(super) fn inject_into(self, options: &[&str]) -> (tempfile::TempDir, Vec<String>) {
        self.inject_in(&[], options)
    }

    /// Runs `inject` with additional environment variables.
    pub(super) fn inject_in(self, environment: &[(&str, &Path)], options: &[&str]) -> (tempfile::TempDir, Vec<String>) {
        let input = self.dir.path().join("perf.data");
        self.inject_from(&input, environment, options)
    }

    /// Runs `inject` with the recording at another path.
    pub(super) fn inject_from(
        self,
        input: &Path,
        environment: &[(&str, &Path)],
        options: &[&str],
    ) -> (tempfile::TempDir, Vec<String>) {
        let output = self.dir.path().join("out.data");
        fs::write(input, self.recording.into_bytes(Mode::File)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.envs(environment.iter().copied());
        let said = command.arg("inject").args(options).arg("-i").arg(input).arg("-o").arg(&output).output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success(), "{text}");
        let warnings = text.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect();
        (self.dir, warnings)
    }
}

pub(super) fn names(recording: &Path) -> Vec<String> {
    let said = script(recording);
    assert_eq!(said.err, "", "perf script complains");
    let leaf = |sample: super::truth::Printed| String::from_utf8_lossy(&sample.frames[0].1).into_owned();
    read_script(&said.out).into_iter().map(leaf).collect()
}

pub(super) fn load(name: &'static [u8], addr: u64, index: u64) -> Load<'static> {
    Load { tid: PID, addr, index, name, code: &CODE }
}

/// `first` at the start of the memory from time 10 on, whatever the header and the byte order.
pub(super) fn plain(order: Order, header: Header) -> Vec<u8> {
    let mut dump = JitDump::with_header(order, header);
    dump.load(10, load(b"first", AT, 0));
    dump.into_bytes()
}

pub(super) fn expect(odd: Odd, expected: &[&str]) {
    let (names, warnings) = odd.inject(&[]);
    assert_eq!((names, warnings), (expected.iter().map(|&name| name.to_owned()).collect(), Vec::new()));
}

/// All good names are there, and there is one warning, with these words.
pub(super) fn expect_warning(odd: Odd, expected: &[&str], words: &[&str]) {
    let (names, warnings) = odd.inject(&[]);
    assert_eq!(names, expected);
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(words.iter().all(|word| warnings[0].contains(word)), "{words:?} are not in {}", warnings[0]);
}

#[test]
fn code_at_an_address_used_again_has_its_name_by_time() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    dump.load(50, load(b"second", AT + 0x20, 1));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let odd = odd.sample(PID, 20, AT + 0x24).sample(PID, 60, AT + 0x24).sample(PID, 61, AT + 4);
    expect(odd, &["first", "second", "first"]);
}

#[test]
fn moved_code_keeps_its_name_and_an_index_may_repeat() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 5));
    dump.moved(30, 5, (AT, AT + 0x2000), 0x40);
    dump.load(40, load(b"second", AT, 5));
    dump.load(41, load(b"third", AT + 0x1000, 2));
    dump.moved(60, 5, (AT, AT + 0x4000), 0x40);
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let odd = odd.sample(PID, 20, AT + 4).sample(PID, 35, AT + 0x2004).sample(PID, 50, AT + 4);
    let odd = odd.sample(PID, 51, AT + 0x2004).sample(PID, 70, AT + 0x4004).sample(PID, 71, AT + 0x1004);
    expect(odd, &["first", "first", "second", "first", "second", "third"]);
}

#[test]
fn records_behind_a_close_and_unknown_ones_count() {
    let mut dump = JitDump::new(PID);
    dump.close(5);
    dump.record(99, 6, &[]);
    dump.record(98, 6, b"a body of any length");
    dump.load(10, load(b"first", AT, 0));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    expect(odd.sample(PID, 20, AT), &["first"]);
}

#[test]
fn headers_of_any_length_are_read() {
    for total_size in [40, 48, 56, 96] {
        let dump = plain(Order::Little, Header { total_size, ..Header::of(PID) });
        expect(Odd::new("jit-77.dump").file("jit-77.dump", &dump).sample(PID, 20, AT), &["first"]);
    }
}

#[test]
fn a_dump_in_the_other_byte_order_is_read() {
    let dump = plain(Order::Big, Header { machine: 62, ..Header::of(PID) });
    expect(Odd::new("jit-77.dump").file("jit-77.dump", &dump).sample(PID, 20, AT), &["first"]);
}

#[test]
fn code_of_no_bytes_and_lines_without_end_do_no_harm() {
    let mut dump = JitDump::new(PID);
    dump.load(10, Load { code: &[], ..load(b"empty", AT, 0) });
    dump.load(11, load(b"first", AT, 1));
    // DEBUG_INFO that claims 2^64 - 1 entries, and has none.
    let entries: Vec<u8> = [AT + 0x40, u64::MAX].iter().flat_map(|word| word.to_le_bytes()).collect();
    dump.record(2, 12, &entries);
    dump.load(13, load(b"second", AT + 0x40, 2));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let (names, warnings) = odd.sample(PID, 20, AT).sample(PID, 21, AT + 0x40).inject(&[]);
    assert_eq!(names, ["first", "second"]);
    assert!(warnings.len() <= 1 && warnings.iter().all(|warning| warning.contains("jit-77.dump")), "{warnings:?}");
}

#[test]
fn records_before_a_torn_end_are_kept_and_a_complete_last_name_counts() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    dump.load(11, load(b"second", AT + 0x100, 1));
    let dump = dump.into_bytes();
    let of_code = CODE.len();
    // In the code, behind the name, in the name, in the header, in the prefix.
    for (cut, last) in [
        (30, "second"),
        (of_code, "second"),
        (of_code + 3, "[unknown]"),
        (of_code + 20, "[unknown]"),
        (of_code + 56, "[unknown]"),
    ] {
        let dump = &dump[..dump.len() - cut];
        let odd = Odd::new("jit-77.dump").file("jit-77.dump", dump).sample(PID, 20, AT).sample(PID, 21, AT + 0x100);
        expect_warning(odd, &["first", last], &["jit-77.dump", "at byte"]);
    }
}

#[test]
fn a_dump_whose_times_are_all_one_is_used_like_a_map_with_one_warning() {
    for time in [0, 40] {
        let mut dump = JitDump::with_header(Order::Little, Header { timestamp: time, ..Header::of(PID) });
        dump.load(time, load(b"first", AT, 0));
        dump.load(time, load(b"second", AT + 0x100, 1));
        dump.load(time, load(b"third", AT, 2));
        let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
        let odd = odd.sample(PID, 20, AT).sample(PID, 50, AT + 0x100);
        expect_warning(odd, &["third", "second"], &["jit-77.dump", "all records of the jitdump have the same time"]);
    }
}

#[test]
fn a_load_that_claims_more_code_than_it_has_does_not_hide_the_next() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let at = dump.out.bytes.len() - (CODE.len() + 6 + 16);
    dump.out.bytes[at..at + 8].copy_from_slice(&0xffff_ffffu64.to_le_bytes());
    dump.load(11, load(b"second", AT + 0x100, 1));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let odd = odd.sample(PID, 20, AT).sample(PID, 21, AT + 0x100);
    expect_warning(odd, &["[unknown]", "second"], &["jit-77.dump", "at byte", "code_size"]);
}

#[test]
fn one_missing_dump_stops_no_other() {
    let dump = plain(Order::Little, Header::of(78));
    let mut odd = Odd::new("jit-77.dump").file("jit-78.dump", &dump);
    let marker = odd.dir.path().join("jit-78.dump");
    let marker = Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker.to_str().unwrap() };
    odd.recording.comm(Stamp::new(78, 4), "other", true);
    odd.recording.mmap2(Stamp::new(78, 5), marker);
    expect_warning(odd.sample(78, 20, AT).sample(PID, 21, AT), &["first", "[unknown]"], &["jit-77.dump"]);
}

#[test]
fn code_stays_visible_where_memory_that_grows_is_mapped_over_it() {
    let dump = plain(Order::Little, Header::of(PID));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump).sample(PID, 20, AT);
    let odd = odd.map(30, "//anon").sample(PID, 40, AT + 4).map(50, "//anon").sample(PID, 60, AT + 8);
    expect(odd, &["first", "first", "first"]);
}

#[test]
fn a_forked_child_has_its_parents_code_until_it_execs() {
    let dump = plain(Order::Little, Header::of(PID));
    let mut odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump).sample(PID, 20, AT);
    odd.recording.fork(Stamp::new(78, 30), PID);
    let mut odd = odd.sample(78, 40, AT);
    odd.recording.comm(Stamp::new(78, 50), "other", true);
    odd.recording.mmap2(Stamp::new(78, 51), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    expect(odd.sample(78, 60, AT), &["first", "first", "[unknown]"]);
}

#[test]
fn a_process_in_a_namespace_is_found_by_its_marker_or_by_the_users_word() {
    let dump = plain(Order::Little, Header::of(1));
    let odd = Odd::new("jit-1.dump").file("jit-1.dump", &dump).sample(PID, 20, AT);
    assert_eq!(odd.inject(&[]).0, ["first"]);
    let odd = Odd::new("library.so").file("jit-1.dump", &dump).sample(PID, 20, AT);
    assert_eq!(odd.inject(&["--map-pid", "1=77"]).0, ["first"]);
}

#[test]
fn without_the_dumps_clock_the_offset_is_estimated_and_said() {
    let event = Event { clockid: None, ..Event::usual() };
    let mut dump = JitDump::with_header(Order::Little, Header { timestamp: 9_000_000_003, ..Header::of(PID) });
    dump.load(9_000_000_010, load(b"first", AT, 0));
    let odd = Odd::with_event("jit-77.dump", event).file("jit-77.dump", &dump.into_bytes()).sample(PID, 20, AT);
    let (names, warnings) = odd.inject(&[]);
    assert_eq!(names, ["first"]);
    assert!(warnings.iter().any(|warning| warning.contains("clock")), "{warnings:?}");
}

/// A recording of one sample in the code of a dump with this header.
fn with_header(header: Header) -> Odd {
    let dump = plain(Order::Little, header);
    Odd::new("jit-77.dump").file("jit-77.dump", &dump).sample(PID, 20, AT)
}

#[test]
fn version_2_is_read_and_a_later_one_is_with_a_word() {
    expect(with_header(Header { version: 2, ..Header::of(PID) }), &["first"]);
    let later = with_header(Header { version: 9, ..Header::of(PID) });
    expect_warning(later, &["first"], &["version 9 is newer"]);
}

#[test]
fn flags_that_nobody_has_are_reported_and_not_heeded() {
    expect_warning(with_header(Header { flags: 0x8000, ..Header::of(PID) }), &["first"], &["unknown flags 0x8000"]);
}

#[test]
fn images_are_for_the_recorded_machine_whatever_the_dump_states() {
    for machine in [183, 62, 0] {
        let odd = with_header(Header { machine, ..Header::of(PID) });
        let dir = odd.dir.path().to_owned();
        let (input, output) = (dir.join("perf.data"), dir.join("out.data"));
        fs::write(&input, odd.recording.into_bytes(Mode::File)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let said = command.args(["inject", "-q", "-i"]).arg(&input).arg("-o").arg(&output).output().unwrap();
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
        assert_eq!(names(&output), ["first"]);
        let mut readelf = Command::new("readelf");
        let header = readelf.arg("-hW").arg(dir.join("jitted-77.so")).output().expect("readelf is needed (binutils)");
        let text = String::from_utf8(header.stdout).unwrap();
        let said = text.lines().find(|line| line.trim_start().starts_with("Machine:")).unwrap();
        assert!(said.contains("X86-64"), "{machine}: {said}");
    }
}

#[test]
fn records_behind_a_length_that_is_nonsense_are_found() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    dump.lying_record(0, 9, 11, &[0x55; 48]);
    dump.load(12, load(b"second", AT + 0x40, 1));
    dump.load(13, load(b"small", AT + 0xc0, 3));
    dump.lying_record(0, 0x7fff_ffff, 13, &[0xaa; 60]);
    dump.load(14, load(b"third", AT + 0x80, 2));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let odd = odd.sample(PID, 20, AT).sample(PID, 20, AT + 0x40).sample(PID, 20, AT + 0x80);
    expect_warning(odd, &["first", "second", "third"], &["2 jitdump records skipped", "total_size is 9"]);
}

#[test]
fn a_dump_that_the_user_names_is_meant_whatever_lies_at_the_recorded_path() {
    let dump = |name: &'static [u8]| {
        let mut dump = JitDump::new(PID);
        dump.load(10, load(name, AT, 0));
        dump.into_bytes()
    };
    for moved in ["moved.dump", "elsewhere/jit-77.dump", "elsewhere"] {
        let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump(b"stale")).sample(PID, 20, AT);
        let path = odd.dir.path().join(moved);
        fs::create_dir(odd.dir.path().join("elsewhere")).unwrap();
        let file = if path.is_dir() { path.join("jit-77.dump") } else { path.clone() };
        fs::write(file, dump(b"meant")).unwrap();
        let (names, warnings) = odd.inject(&["--jitdump", path.to_str().unwrap()]);
        assert_eq!((names, warnings), (vec!["meant".to_owned()], Vec::new()), "{moved}");
    }
}

#[test]
fn a_dump_of_another_process_of_that_number_is_reported_to_be_one() {
    let at = |seconds: u64| seconds * 1_000_000_000;
    let mut dump = JitDump::new(PID);
    dump.load(at(5), load(b"first", AT, 0));
    let dir = Odd::new("none");
    let mut recording = PerfData::new(Order::Little, Event::usual());
    recording.comm(Stamp::new(PID, at(100)), "program", true);
    recording.mmap2(Stamp::new(PID, at(100)), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    let odd = Odd { recording, ..dir }.file("jit-77.dump", &dump.into_bytes()).sample(PID, at(101), AT);
    // The program that ran then is gone with all its code.
    expect_warning(odd, &["[unknown]"], &["5.000 s", "process 77 began at 100.000 s", "another process with that PID"]);
}

/// All records of a recording packed as `perf record -z` packs them: one zstd stream over several records, cut at any
/// byte. The newer kind states its length and is padded.
fn packed(recording: PerfData, newer: bool) -> Vec<u8> {
    let plain = recording.clone().into_bytes(Mode::File);
    let word = |at: usize| u64::from_le_bytes(plain[at..at + 8].try_into().unwrap()) as usize;
    let records = &plain[word(40)..word(40) + word(48)];
    let mut packed = recording.without_records();
    let mut zstd = zstd::stream::raw::Encoder::new(1).unwrap();
    for part in records.chunks(150) {
        use zstd::stream::raw::Operation;
        let mut out = vec![0; 4096];
        let mut into = zstd::stream::raw::OutBuffer::around(&mut out);
        let mut from = zstd::stream::raw::InBuffer::around(part);
        zstd.run(&mut from, &mut into).unwrap();
        assert_eq!(zstd.flush(&mut into).unwrap(), 0);
        let len = into.pos();
        if newer {
            let mut body = (len as u64).to_le_bytes().to_vec();
            body.extend(&out[..len]);
            body.resize(body.len().next_multiple_of(8), 0);
            packed.record(83, 0, &body);
        } else {
            packed.record(81, 0, &out[..len]);
        }
    }
    // COMPRESSED: version, type (zstd), level, ratio, and the length of the recorder's buffer.
    packed.feature(27, [1u32, 1, 1, 2, 4096].iter().flat_map(|word| word.to_le_bytes()).collect());
    packed.into_bytes(Mode::File)
}

#[test]
fn a_marker_inside_compressed_records_is_found() {
    for newer in [false, true] {
        let mut dump = JitDump::new(PID);
        dump.load(10, load(b"first", AT, 0));
        dump.load(50, load(b"second", AT, 1));
        let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
        let odd = odd.sample(PID, 20, AT + 4).sample(PID, 60, AT + 4);
        let (input, output) = (odd.dir.path().join("perf.data"), odd.dir.path().join("out.data"));
        fs::write(&input, packed(odd.recording, newer)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let said = command.args(["inject", "-q", "-i"]).arg(&input).arg("-o").arg(&output).output().unwrap();
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
        assert_eq!(names(&output), ["first", "second"], "{newer}");
    }
}

#[test]
fn perf_annotates_with_the_text_of_scripts_whose_names_v8_damaged() {
    let odd =
        Odd::new("jit-77.dump").file("long-enough-a-name.js", b"// nothing\nfunction hot() {\n  return spin();\n}\n");
    let script = odd.dir.path().join("long-enough-a-name.js").to_str().unwrap().to_owned();
    let name: &'static str = format!("JS:*hot {script}:2:13").leak();
    // Two pointers of the allocator over the first 16 bytes, as node 20 logs most names.
    let mut file = script.into_bytes();
    file[..16].copy_from_slice(b"D\x16\x03\0\0\0\0\0{q\x10\x1d\xf7\xa93\r");
    let line = |offset: u64, line| Line { addr: AT + 0x40 + offset, line, discriminator: 3, file: &file };
    let mut dump = JitDump::new(PID);
    dump.debug_info(10, AT, &[line(0, 2), line(0x10, 3)]);
    dump.load(10, load(name.as_bytes(), AT, 0));
    let odd = odd.file("jit-77.dump", &dump.into_bytes()).sample(PID, 20, AT + 0x14).sample(PID, 21, AT + 0x15);
    let out = odd.dir.path().join("out.data");
    let (dir, said) = odd.inject_into(&[]);
    assert_eq!(said, [""; 0]);
    let said = super::perf::perf(&["annotate", "--stdio", "-s", name], &out);
    drop(dir);
    assert_eq!(said.err, "");
    let text = String::from_utf8_lossy(&said.out).into_owned();
    assert!(text.contains("return spin();") && text.contains("function hot() {"), "{text}");
}

#[test]
fn code_is_gone_where_a_library_is_mapped_over_it() {
    let dump = plain(Order::Little, Header::of(PID));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump).sample(PID, 20, AT);
    let odd = odd.map(30, "/nowhere/library.so").sample(PID, 40, AT + 4);
    let (names, _) = odd.inject(&[]);
    assert_eq!(names, ["first", "[unknown]"]);
}
