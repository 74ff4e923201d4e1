//! The listed exceptions to "every record stays as it is", one test each: an index of offsets, the payloads that no
//! record's size counts, and changes of container.

use super::odd::{AT, Odd, PID, load, names};
use super::perf::perf;
use super::support::jitdump::JitDump;
use super::support::perf_data::{Mode, Stamp};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn jitgraft(odd: &Odd, args: &[&str], stdin: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("inject").args(args).current_dir(odd.dir.path());
    if let Some(file) = stdin {
        command.stdin(File::open(odd.dir.path().join(file)).unwrap());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// The sections of the features of a file, by number.
fn features(file: &[u8]) -> Vec<(usize, &[u8])> {
    let bits = (0..256).filter(|bit| file[72 + bit / 8] >> (bit % 8) & 1 == 1);
    let table = word(file, 40) + word(file, 48);
    let section = |at: usize| &file[word(file, at)..word(file, at) + word(file, at + 8)];
    bits.enumerate().map(|(nth, bit)| (bit, section(table + 16 * nth))).collect()
}

/// A recording with two traces among its samples, and the true index of them.
fn traced() -> (Odd, Vec<u8>) {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes()).sample(PID, 20, AT);
    let mut odd = odd.map(21, "//anon");
    odd.recording.auxtrace(&[0xa1; 64]);
    let mut odd = odd.sample(PID, 30, AT);
    odd.recording.auxtrace(&[0xa2; 128]);
    odd.recording.feature(18, vec![0; 40]);
    let mut file = odd.recording.clone().into_bytes(Mode::File);
    let places: Vec<usize> = [[0xa1; 64], [0xa2; 64]].map(|payload| find(&file, &payload) - 48).to_vec();
    let index: Vec<u8> =
        [2, places[0], 48, places[1], 48].iter().flat_map(|&word| (word as u64).to_le_bytes()).collect();
    odd.recording.feature(18, index);
    file = odd.recording.clone().into_bytes(Mode::File);
    (odd, file)
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

#[test]
fn the_index_of_traces_points_at_them_wherever_they_move() {
    let (odd, file) = traced();
    fs::write(odd.dir.path().join("perf.data"), &file).unwrap();
    jitgraft(&odd, &["-i", "perf.data", "-o", "out.data"], None);
    let out = fs::read(odd.dir.path().join("out.data")).unwrap();
    assert!(out.len() > file.len());
    let index = features(&out).into_iter().find(|(number, _)| *number == 18).unwrap().1;
    assert_eq!(word(index, 0), 2);
    for (entry, payload) in [(8, [0xa1; 64]), (24, [0xa2; 64])] {
        let at = word(index, entry);
        assert_eq!((out[at], word(index, entry + 8)), (71, 48), "no AUXTRACE record is at {at:#x}");
        assert_eq!(out[at + 48..at + 112], payload);
    }
    assert_eq!(find(&out, &[0xa2; 128]), find(&out, &[0xa2; 64]), "the payload is whole");
    // perf has no decoder for this trace, and need not have one.
    let said = perf(&["script", "--no-itrace", "-F", "ip,sym"], &odd.dir.path().join("out.data"));
    assert_eq!(String::from_utf8_lossy(&said.out).matches("first").count(), 2);
    // In the pipe's form the payloads stay behind their records, and the index goes.
    let piped = jitgraft(&odd, &["-i", "perf.data"], None).stdout;
    assert_eq!(find(&piped, &[0xa1; 64]) - 48, find(&piped, &file[find(&file, &[0xa1; 64]) - 48..][..112]));
    assert!(find(&piped, &[0xa2; 128]) > 0);
}

#[test]
fn trace_point_formats_pass_from_file_to_pipe_and_back() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let mut odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    // No multiple of 8: a pipe pads it.
    let formats: Vec<u8> = b"\x17\x08\x44tracing0.6\0".iter().copied().chain(0..70).collect();
    assert_ne!(formats.len() % 8, 0);
    odd.recording.feature(1, formats.clone());
    odd.recording.finished_round();
    let odd = odd.sample(PID, 20, AT);
    fs::write(odd.dir.path().join("perf.data"), odd.recording.clone().into_bytes(Mode::File)).unwrap();
    let piped = jitgraft(&odd, &["-i", "perf.data"], None).stdout;
    let at = find(&piped, &formats);
    let header = [66u32.to_le_bytes(), 0x000c_0000u32.to_le_bytes(), (formats.len() as u32).to_le_bytes()].concat();
    assert_eq!(piped[at - 12..at], header);
    fs::write(odd.dir.path().join("piped"), &piped).unwrap();
    // Nothing is left to inject, so the pipe's records pass as they are.
    assert!(jitgraft(&odd, &[], Some("piped")).stdout == piped);
    jitgraft(&odd, &["-o", "back.data"], Some("piped"));
    let back = fs::read(odd.dir.path().join("back.data")).unwrap();
    let input = fs::read(odd.dir.path().join("perf.data")).unwrap();
    assert_eq!(features(&back).len(), features(&input).len());
    for ((number, now), (_, then)) in features(&back).into_iter().zip(features(&input)) {
        // In a pipe, features are records: their lengths are multiples of 8.
        let padding = if number == 1 { 0 } else { then.len().next_multiple_of(8) - then.len() };
        assert!(now == [then, &vec![0; padding]].concat(), "feature {number}");
    }
}

#[test]
fn a_directory_becomes_one_plain_file_and_that_is_reported() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let recording = odd.dir.path().join("recording");
    fs::create_dir(&recording).unwrap();
    let mut main = odd.recording.clone();
    main.feature(24, 1u64.to_le_bytes().to_vec());
    fs::write(recording.join("data"), main.into_bytes(Mode::File)).unwrap();
    // A stream for each thread of the recorder: records alone.
    for (name, time) in [("data.0", 20), ("data.1", 21), ("data.10", 22)] {
        let mut stream = odd.recording.clone().without_records();
        stream.sample(Stamp::new(PID, time), &[AT]);
        let file = stream.into_bytes(Mode::File);
        let start = word(&file, 40);
        fs::write(recording.join(name), &file[start..start + word(&file, 48)]).unwrap();
    }
    let said = jitgraft(&odd, &["-i", "recording", "-o", "out.data"], None);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("the input was a directory of 3 streams; out.data is a single plain file"), "{said}");
    let out = fs::read(odd.dir.path().join("out.data")).unwrap();
    assert!(features(&out).iter().all(|(number, _)| *number != 24), "DIR_FORMAT goes");
    assert_eq!(names(&odd.dir.path().join("out.data")), ["first", "first", "first"]);
}

#[test]
fn only_the_process_that_was_not_injected_changes() {
    let mut one = JitDump::new(PID);
    one.load(10, load(b"first", AT, 0));
    let mut odd = Odd::new("jit-77.dump").file("jit-77.dump", &one.into_bytes()).sample(PID, 20, AT);
    let mut two = JitDump::new(78);
    two.load(10, load(b"other", AT, 0));
    let two = two.into_bytes();
    let memory = |path| super::support::perf_data::Mmap { addr: AT, len: 0x1000, pgoff: 0, path };
    odd.recording.mmap2(Stamp::new(78, 21), memory("//anon"));
    // A child of the first one, with its code.
    odd.recording.fork(Stamp::new(79, 22), PID);
    let odd = odd.sample(78, 30, AT).sample(79, 31, AT);
    let at = |name: &str| odd.dir.path().join(name);
    fs::write(at("perf.data"), odd.recording.clone().into_bytes(Mode::File)).unwrap();
    jitgraft(&odd, &["-i", "perf.data", "-o", "once.data"], None);
    assert_eq!(names(&at("once.data")), ["first", "[unknown]", "first"]);
    jitgraft(&odd, &["-i", "once.data", "-o", "again.data"], None);
    assert!(fs::read(at("once.data")).unwrap() == fs::read(at("again.data")).unwrap(), "the child is injected twice");
    fs::write(at("jit-78.dump"), &two).unwrap();
    let said = jitgraft(&odd, &["-i", "once.data", "-o", "both.data"], None);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("JIT code of process 77 was injected before") && !said.contains("process 78 was"), "{said}");
    assert_eq!(names(&at("both.data")), ["first", "other", "first"]);
    let maps = |name: &str| fs::read(at(name)).unwrap().windows(12).filter(|part| part == b"jitted-77.so").count();
    assert_eq!(maps("once.data"), maps("both.data"));
}

#[test]
fn a_recording_that_has_its_images_is_not_said_to_lack_its_dump() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes()).sample(PID, 20, AT);
    fs::write(odd.dir.path().join("perf.data"), odd.recording.clone().into_bytes(Mode::File)).unwrap();
    jitgraft(&odd, &["-i", "perf.data", "-o", "out.data"], None);
    fs::remove_file(odd.dir.path().join("jit-77.dump")).unwrap();
    for command in ["collapse", "report", "doctor", "script"] {
        let mut jitgraft = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let said = jitgraft.args([command, "out.data"]).current_dir(odd.dir.path()).output().unwrap();
        let [out, err] = [said.stdout, said.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(!err.contains("jitdump") && !out.contains("jit-77.dump"), "{command}: {out}{err}");
        assert!(command == "doctor" || out.contains("first"), "{command}: {out}");
    }
}

#[test]
fn a_child_has_the_code_that_was_injected_for_its_parent() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    // As perf inject leaves it: mapped for the parent alone, before the fork.
    let image = odd.dir.path().join("jitted-77-0.so");
    let mut odd = odd.map(11, image.to_str().unwrap()).sample(PID, 20, AT);
    odd.recording.fork(Stamp::new(79, 22), PID);
    let odd = odd.sample(79, 31, AT);
    let input = odd.recording.clone().into_bytes(Mode::File);
    fs::write(odd.dir.path().join("perf.data"), &input).unwrap();
    jitgraft(&odd, &["-i", "perf.data", "-o", "out.data"], None);
    assert!(fs::read(odd.dir.path().join("out.data")).unwrap() == input, "the child is injected once more");
}

#[test]
fn a_dump_that_grows_while_the_pipe_is_open_is_read_to_its_end() {
    let odd = Odd::new("jit-77.dump").sample(PID, 20, AT).sample(PID, 21, AT + 0x100);
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["inject", "-o", "out.data"]).current_dir(odd.dir.path()).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&odd.recording.clone().into_bytes(Mode::Pipe)).unwrap();
    // All of the recording is there but its end; only now does the runtime log its code.
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    fs::write(odd.dir.path().join("jit-77.dump"), &dump.out.bytes).unwrap();
    dump.load(11, load(b"second", AT + 0x100, 1));
    fs::write(odd.dir.path().join("jit-77.dump"), &dump.out.bytes).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    assert_eq!(names(&odd.dir.path().join("out.data")), ["first", "second"]);
}

/// The records of BPF programs, byte for byte.
fn bpf_records(file: &[u8]) -> Vec<&[u8]> {
    let (mut at, end, mut records) = (word(file, 40), word(file, 40) + word(file, 48), Vec::new());
    while at < end {
        let len = usize::from(u16::from_le_bytes([file[at + 6], file[at + 7]]));
        // KSYMBOL, BPF_EVENT
        if matches!(file[at], 17 | 18) && file[at + 1..at + 4] == [0; 3] {
            records.push(&file[at..at + len]);
        }
        at += len;
    }
    records
}

#[test]
fn the_data_of_bpf_programs_stays_as_it_is() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    let mut odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-bpf/perf.data.zst");
    let recorded = zstd::decode_all(&fs::read(packed).unwrap()[..]).unwrap();
    for (number, section) in features(&recorded).into_iter().filter(|(number, _)| matches!(number, 25 | 26)) {
        odd.recording.feature(u8::try_from(number).unwrap(), section.to_vec());
    }
    let (stamp, addr) = (Stamp::new(PID, 12), 0xffff_ffff_c002_54dc);
    odd.recording.ksymbol(stamp, addr, 131, 0, "bpf_prog_195684d36f6fb330_mix_words");
    odd.recording.bpf_event(stamp, 1, 122, &[7; 8]);
    let odd = odd.sample(PID, 20, AT);
    let input = odd.recording.clone().into_bytes(Mode::File);
    fs::write(odd.dir.path().join("perf.data"), &input).unwrap();
    jitgraft(&odd, &["-i", "perf.data", "-o", "out.data"], None);
    let out = fs::read(odd.dir.path().join("out.data")).unwrap();
    assert!(out.len() > input.len(), "nothing was injected");
    assert_eq!(bpf_records(&out).len(), 2);
    assert!(bpf_records(&out) == bpf_records(&input));
    let of_bpf = |file| features(file).into_iter().filter(|(number, _)| matches!(number, 25 | 26)).collect::<Vec<_>>();
    assert_eq!(of_bpf(&input).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [25, 26]);
    assert!(of_bpf(&out) == of_bpf(&input));
    // The pipe's form and back.
    let piped = jitgraft(&odd, &["-i", "perf.data"], None).stdout;
    fs::write(odd.dir.path().join("piped"), &piped).unwrap();
    jitgraft(&odd, &["-o", "back.data"], Some("piped"));
    let back = fs::read(odd.dir.path().join("back.data")).unwrap();
    assert!(bpf_records(&back) == bpf_records(&input));
    for ((number, now), (_, then)) in of_bpf(&back).into_iter().zip(of_bpf(&input)) {
        assert!(now.starts_with(then) && now.len() < then.len() + 8, "feature {number}");
    }
}
