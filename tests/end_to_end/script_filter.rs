//! `script` as a filter, from the command line: what it names, what it leaves, how it streams.

use crate::support;
use crate::support::effort::is_thorough;
use crate::support::limits;
use crate::support::php_recording;

use php_recording::PID;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::bytes::Order;
use support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

/// All layouts: name and text.
fn layouts() -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(fixture("script-layouts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() >= 12, "only {} layouts", found.len());
    found
}

fn whole() -> Vec<u8> {
    zstd::decode_all(&fs::read(fixture("script-layouts/whole.txt.zst")).unwrap()[..]).unwrap()
}

/// Runs the filter in a directory without dumps, with these flags.
fn filter(text: &[u8], flags: &[&str]) -> Output {
    // The current directory is where images would be: one and the same, that holds no dumps.
    let mut child = command(&fixture("script-layouts"), flags).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || pipe.write_all(&text));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn command(dir: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("script").args(flags).current_dir(dir).env_remove("JITDUMPDIR").env("HOME", dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn dump() -> String {
    php_recording::dump().to_str().unwrap().to_owned()
}

fn named(text: &[u8], flags: &[&str]) -> Vec<u8> {
    let output = filter(text, &[flags, &["--jitdump", &dump()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A text of another process, so that no dump or map of this machine can be meant.
fn of_nobody(text: &[u8]) -> Vec<u8> {
    String::from_utf8(text.to_owned()).unwrap().replace(PID, &format!("99{PID}")).into_bytes()
}

#[test]
fn frames_of_jit_code_are_named_in_every_layout_and_nothing_else_changes() {
    for (layout, text) in layouts() {
        let result = named(&text, &[]);
        let (before, after): (Vec<_>, Vec<_>) =
            (text.split(|b| *b == b'\n').collect(), result.split(|b| *b == b'\n').collect());
        assert_eq!(before.len(), after.len(), "{layout}");
        let mut changed = 0;
        for (old, new) in before.iter().zip(&after) {
            if old == new {
                continue;
            }
            changed += 1;
            let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
            // Without symbols, the name goes before the object.
            let place = old.find("[unknown]").or_else(|| old.find('('));
            let place = place.unwrap_or_else(|| panic!("{layout}: {old} became {new}"));
            assert_eq!(&old[..place], &new[..place], "{layout}");
            assert!(new[place..].starts_with("TRACE-") || new[place..].starts_with("JIT$"), "{layout}: {new}");
            assert_eq!(old.ends_with('\r'), new.ends_with('\r'), "{layout}");
        }
        assert_eq!(changed > 0, layout != "branches.txt", "{layout}: {changed} lines changed");
        assert_eq!(named(&result, &[]), result, "{layout}: a second run changes something");
    }
}

#[test]
fn a_text_without_sources_passes_byte_for_byte() {
    for (layout, text) in layouts() {
        let text = of_nobody(&text);
        assert_eq!(filter(&text, &[]).stdout, text, "{layout}");
    }
}

#[test]
fn noise_passes_byte_for_byte() {
    let (_, text) = layouts().swap_remove(1);
    let mut noise = of_nobody(&text);
    noise.extend(vec![b'x'; 10 << 20]);
    noise.extend(b" [unknown] (//anon)\n\0\0\0\xff\xfe [unknown]\n\t [unknown] (\n\t1 [unknown] ([unknown]\n\n\n");
    noise.extend((0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8));
    noise.extend(of_nobody(&text[..text.len() / 2]));
    let output = filter(&noise, &[]);
    assert!(output.status.success());
    assert!(output.stdout == noise, "{} bytes in, {} out", noise.len(), output.stdout.len());
}

#[test]
fn a_file_that_is_known_to_be_no_such_text_is_refused_before_anything_is_printed() {
    for text in [&b"{\"dhatFileVersion\":2\n,\"mode\":\"heap\"\n}\n"[..], b"desc: (none)\ncmd: php\ntime_unit: i\n"] {
        let output = filter(text, &[]);
        assert!(!output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn threads_do_not_change_the_result_and_packed_texts_are_read() {
    let text = whole().repeat(8);
    let one = named(&text, &["--threads", "1"]);
    assert!(one != text && one == named(&text, &["--threads", "7"]));
    assert!(one == named(&zstd::encode_all(&text[..], 1).unwrap(), &[]));
}

/// The symbols and offsets of JIT frames, in order.
fn jit_symbols(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let frames = text.lines().filter(|line| line.starts_with('\t') && line.contains(&format!("/jitted-{PID}.so)")));
    frames.map(|line| line.trim_start().split_once(' ').unwrap().1.rsplit_once(" (").unwrap().0.to_owned()).collect()
}

#[test]
fn source_lines_are_requested_in_two_ways() {
    let text = whole();
    assert_eq!(named(&text, &["--srcline"]), named(&text, &["-F", "+srcline"]));
}

#[test]
fn the_filter_names_what_inject_names() {
    let dir = tempfile::tempdir().unwrap();
    let recording = zstd::decode_all(&fs::read(php_recording::recording()).unwrap()[..]).unwrap();
    fs::write(dir.path().join("perf.data"), recording).unwrap();
    let inject = ["inject", "-i", "perf.data", "-o", "injected.data", "--jitdump", &dump()];
    let injected = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(inject).current_dir(dir.path()).output().unwrap();
    assert!(injected.status.success(), "{}", String::from_utf8_lossy(&injected.stderr));
    let perf = Command::new("perf")
        .args(["script", "--no-inline", "-i", "injected.data"])
        .current_dir(dir.path())
        .output()
        .expect("perf is needed: install linux-perf");
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    let by_inject = jit_symbols(&perf.stdout);
    assert!(by_inject.len() > 300, "{} frames", by_inject.len());
    assert_eq!(jit_symbols(&named(&whole(), &[])), by_inject);
}

#[test]
fn output_flows_before_the_input_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(dir.path(), &["-q", "--jitdump", &dump()]).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let text = whole();
    let half = memchr::memmem::rfind(&text[..text.len() / 2], b"\n\n").unwrap() + 2;
    pipe.write_all(&text[..half]).unwrap();
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.starts_with(&format!("php {PID}")), "{first}");
    drop(pipe);
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_has_seen_enough_is_not_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(dir.path(), &["--jitdump", &dump()]).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let text = whole();
    // The filter closes its end when nobody listens any more.
    while pipe.write_all(&text).is_ok() {}
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn memory_is_bounded_whatever_the_length() {
    const BESIDE_THE_PROGRAM_KIB: usize = 24_576;
    let limit = limits::loaded_kib() as usize + BESIDE_THE_PROGRAM_KIB;
    // Of what is not the program itself.
    let times_the_memory = if is_thorough() { 40 } else { 3 };
    let least = times_the_memory * BESIDE_THE_PROGRAM_KIB * 1024;
    let dir = tempfile::tempdir().unwrap();
    let script = format!("ulimit -v {limit}; exec \"$@\"");
    let mut child = Command::new("sh")
        .args([
            "-c",
            &script,
            "sh",
            env!("CARGO_BIN_EXE_jitgraft"),
            "-q",
            "script",
            "--threads",
            "2",
            "--jitdump",
            &dump(),
        ])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut out = child.stdout.take().unwrap();
    let part = whole().repeat(8);
    let times = least / part.len() + 1;
    let writer = std::thread::spawn(move || (0..times).try_for_each(|_| pipe.write_all(&part)));
    let len = std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(len > least as u64, "{len} bytes came out");
}

/// A frame pointer may lead to the address of a function that nobody called (`second`), or a function ends with a call
/// that never returns (`third`).
#[test]
fn callers_in_files_are_the_functions_that_called() {
    use object::{Object, ObjectSymbol};
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("x.c"), dir.path().join("libx.so"));
    let code = "
        __asm__(\".globl first, second, third, fourth; .type first, @function; .type second, @function; \"
                \".type third, @function; .type fourth, @function; \"
                \"first: ret; .size first, .-first; second: ret; .size second, .-second; \"
                \"third: call 0f; .size third, .-third; fourth: 0: ret; .size fourth, .-fourth\");";
    fs::write(&source, code).unwrap();
    let made = Command::new("gcc").args(["-shared", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(made.success());
    let bytes = fs::read(&library).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let address = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
    // The segment with the code is in the file where it is in memory, so addresses are also offsets.
    let frame = |name: &str| format!("\t {:x} [unknown] ({})\n", address(name), library.display());
    let named_frame = |name: &str, printed: &str| frame(name).replace("[unknown]", printed);
    let start = "app 5 8.000002:  1 c: \n\t 7f0000000000 [unknown] ([unknown])\n";
    let text = [start, &frame("second"), &frame("fourth"), "\n"].concat();
    let expected = [start, &named_frame("second", "second+0x0"), &named_frame("fourth", "third+0x5"), "\n"].concat();
    assert_eq!(String::from_utf8(named(text.as_bytes(), &["--native"])).unwrap(), expected);
}

#[test]
fn frames_of_files_are_named_if_that_is_requested() {
    use object::{Object, ObjectSegment, ObjectSymbol};
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("x.c"), dir.path().join("libx.so"));
    fs::write(&source, "int hot_native(int n) { int s = 0; while (n--) s += n; return s; }\n").unwrap();
    let made = Command::new("gcc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(made.success());
    let bytes = fs::read(&library).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok("hot_native")).unwrap();
    let segment =
        file.segments().find(|segment| symbol.address().wrapping_sub(segment.address()) < segment.size()).unwrap();
    let offset = symbol.address() - segment.address() + segment.file_range().0;
    let (page, base) = (offset & !0xfff, 0x7f00_0000_0000u64);
    let library = library.display();
    let map =
        format!("app 5 8.000001: PERF_RECORD_MMAP2 5/5: [{base:#x}(0x1000) @ {page:#x} fe:00 1 0]: r-xp {library}\n");
    let frame = |addr: u64, name: &str| format!("app 5 8.000002:  1 c: \n\t {addr:x} {name} ({library})\n\n");
    let run = |text: &str, flags: &[&str]| String::from_utf8(named(text.as_bytes(), flags)).unwrap();
    // As perf 6.1 prints it: relative to the file.
    let old = frame(offset + 3, "[unknown]");
    assert_eq!(run(&old, &["--native"]), frame(offset + 3, "hot_native+0x3"));
    assert_eq!(run(&old, &[]), old);
    // As perf 7 does: absolute, to be understood by the mappings only.
    let absolute = base + offset - page + 3;
    let new = frame(absolute, "[unknown]");
    assert_eq!(run(&(map.clone() + &new), &["--native"]), map + &frame(absolute, "hot_native+0x3"));
    assert_eq!(run(&new, &["--native"]), new);
}

#[test]
fn a_forked_child_runs_its_parents_code_until_it_execs() {
    let text = String::from_utf8(whole()).unwrap();
    let child = text.replace(&format!("php {PID} "), "php 9900001 ");
    assert_ne!(child, text);
    let fork = format!("php {PID} 99999.000001: PERF_RECORD_FORK(9900001:9900001):({PID}:{PID})\n");
    let exec = "other 9900001 1.000001: PERF_RECORD_COMM exec: other:9900001/9900001\n";
    let frames = |text: &str| jit_symbols(&named(text.as_bytes(), &[]));
    assert_eq!(frames(&(fork.clone() + &child)), frames(&text));
    let gone = fork.replace("99999.000001", "0.000001") + exec + &child;
    assert!(frames(&gone).is_empty());
}

#[test]
fn a_dump_that_is_mapped_late_is_looked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(dump(), dir.path().join("jit-7.dump")).unwrap();
    // A process that calls itself 7 in its namespace; that it has a dump shows only after its first frames.
    let text = String::from_utf8(of_nobody(&whole())).unwrap();
    let sample = text.find("\n\n").unwrap() + 2;
    let (pid, dump) = (format!("99{PID}"), dir.path().join("jit-7.dump"));
    let map = "[0x7f0000000000(0x1000) @ 0 fe:00 1 0]: r-xp";
    let marker = format!("php {pid} 100.000001: PERF_RECORD_MMAP2 {pid}/{pid}: {map} {}\n", dump.display());
    let mut child = command(dir.path(), &[]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let (early, late) = text.split_at(sample);
    let (early, late) = (early.to_owned().into_bytes(), (marker + late).into_bytes());
    let asked = format!("php {pid} 1.000001:  1 cpu-clock: \n\t 7f0000001000 [unknown] (//anon)\n\n");
    let writer = std::thread::spawn(move || {
        for part in [asked.as_bytes(), &early, &late] {
            input.write_all(part).unwrap();
            input.flush().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap().replace(&pid, PID);
    let frames = jit_symbols(printed.as_bytes()).len();
    let expected = jit_symbols(&named(&whole(), &[])).len();
    assert!(expected > 100 && frames + 20 > expected, "{frames} of {expected} named");
}

#[test]
fn nothing_in_a_pipe_is_passed_on_as_nothing_with_a_word() {
    let mut filter = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output = filter.arg("script").stdin(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("(standard input): is empty"), "{said}");
}

/// A jitdump of that process with functions of 16 bytes: when and where they are, and their names.
fn dump_of(pid: u32, functions: &[(u64, u64, &str)]) -> Vec<u8> {
    let words = [0x4A69_5444u32, 1, 40, 62, 0, pid].map(u32::to_le_bytes).concat();
    let mut bytes = [words, [5u64, 0].map(u64::to_le_bytes).concat()].concat();
    for (index, (time, addr, name)) in (0u64..).zip(functions) {
        bytes.extend([0u32, 56 + name.len() as u32 + 1 + 16].map(u32::to_le_bytes).concat());
        bytes.extend(time.to_le_bytes());
        bytes.extend([pid, pid].map(u32::to_le_bytes).concat());
        bytes.extend([0, *addr, 16, index].map(u64::to_le_bytes).concat());
        bytes.extend([name.as_bytes(), b"\0", &[0x90; 16]].concat());
    }
    bytes
}

#[test]
fn frames_at_addresses_used_again_are_counted_where_the_text_shows_no_times() {
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("jit-4000077.dump");
    let functions = [(10, 0x5000_0000, "early"), (20, 0x5000_0000, "later")];
    fs::write(&dump, dump_of(4_000_077, &functions)).unwrap();
    let frames = "\t        50000004 [unknown] (//anon)\n\t        50000008 [unknown] (//anon)\n\n";
    let said = |time: &str| {
        let text = format!("prog 4000077/4000077 {time}cycles:\n{frames}").repeat(3);
        let output = filter(text.as_bytes(), &["--jitdump", dump.to_str().unwrap()]);
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (named, warned) = said("");
    assert_eq!(named.matches("later+").count(), 6, "{named}");
    assert!(warned.contains("6 of the 6 named frames") && warned.contains("-F +time"), "{warned}");
    let (named, warned) = said("0.000000015: ");
    assert_eq!((named.matches("early+").count(), warned.contains("several functions")), (6, false), "{named}{warned}");
    // Names of a sample with a time are not used for one without, nor the other way round.
    for times in [["", "0.000000015: "], ["0.000000015: ", ""]] {
        let text = times.map(|time| format!("prog 4000077/4000077 {time}cycles:\n{frames}")).concat();
        let output = filter(text.repeat(3).as_bytes(), &["--jitdump", dump.to_str().unwrap()]);
        let named = String::from_utf8(output.stdout).unwrap();
        assert_eq!((named.matches("early+").count(), named.matches("later+").count()), (6, 6), "{named}");
    }
}

/// perf's output for a recording.
#[test]
fn a_dump_of_a_process_that_comes_later_is_not_taken_for_the_first_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (dump, map) = (dir.path().join("jit-4000078.dump"), dir.path().join("some.map"));
    fs::write(&dump, dump_of(4_000_078, &[(10, 0x5000_0000, "of_the_second")])).unwrap();
    fs::write(&map, "50000000 10 of_a_map\n").unwrap();
    let of = |pid: u32| format!("prog {pid}/{pid} 0.000000020: cycles:\n\t        50000004 [unknown] (//anon)\n\n");
    // Several blocks, so that nobody has read of the second process when the first one's frames are requested.
    let text = of(4_000_077).repeat(30_000) + &of(4_000_078);
    let (dump, map) = (dump.to_str().unwrap(), map.to_str().unwrap());
    let printed = |flags: &[&str]| {
        let mut texts: Vec<_> = ["1", "2", "8"]
            .map(|threads| filter(text.as_bytes(), &[flags, &["--threads", threads]].concat()))
            .map(|output| String::from_utf8(output.stdout).unwrap())
            .into();
        texts.dedup();
        assert_eq!(texts.len(), 1, "{flags:?}: threads change the result");
        let count = |name| texts[0].lines().filter(|line| line.contains(name)).count();
        (count("of_the_second"), count("of_a_map"), count("[unknown]"))
    };
    assert_eq!(printed(&["--jitdump", dump]), (1, 0, 30_000));
    assert_eq!(printed(&["--jitdump", &format!("{dump}@4000077")]), (30_000, 0, 1));
    // A line without a number is of the first one.
    assert_eq!(printed(&["--perf-map", map]), (0, 30_000, 1));
}

fn printed_by_perf(dir: &Path, args: &[&str]) -> Vec<u8> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "-i", "perf.data"]).args(args).current_dir(dir);
    let output = perf.output().expect("perf is needed: install linux-perf");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn samples_of_which_perf_printed_no_frame_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::File::open(fixture("php-bad-chains/perf.data.zst")).unwrap();
    fs::write(dir.path().join("perf.data"), zstd::decode_all(packed).unwrap()).unwrap();
    let text = printed_by_perf(dir.path(), &[]);
    let said = |text: &[u8]| String::from_utf8(filter(text, &[]).stderr).unwrap();
    let told = said(&text);
    assert!(told.contains("no frames for 208 of 220 samples") && told.contains("--drop-bad-chain-entries"), "{told}");
    assert!(said(&text.repeat(40)).contains("no frames for 8320 of 8800 samples"));
    // Without call chains each sample is one line, which has its frame.
    let alone = said(&printed_by_perf(dir.path(), &["-G"]));
    assert!(!alone.contains("no frames"), "{alone}");
    assert!(!said(&whole()).contains("no frames"));
}

/// A process, one forked from it and one with memory of its own name, all in JIT code that the first one's map reports.
fn forked_recording(dir: &Path) {
    const CODE: u64 = 0x7f00_0000_0000;
    let (parent, child) = (4_000_081, 4_000_082);
    let mut data = PerfData::new(Order::Little, Event::usual());
    data.comm(Stamp::new(parent, 1), "prog", true);
    data.mmap2(Stamp::new(parent, 2), Mmap { addr: CODE, len: 0x1000, pgoff: 0, path: "//anon" });
    let shared = Mmap { addr: CODE + 0x1000, len: 0x1000, pgoff: 0x3000, path: "/memfd:jit (deleted)" };
    data.mmap2(Stamp::new(parent, 3), shared);
    data.fork(Stamp::new(child, 1_000), parent);
    for (number, addr) in (0..20).zip([CODE + 0x10, CODE + 0x1010].into_iter().cycle()) {
        data.sample(Stamp::new(child, 10_000 + 1_000 * number), &[addr]);
    }
    fs::write(dir.join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    let map = format!("{CODE:x} 100 anonymous_code\n{:x} 100 code_of_a_file\n", CODE + 0x1000);
    fs::write(dir.join(format!("perf-{parent}.map")), map).unwrap();
}

#[test]
fn frames_of_forked_processes_and_of_files_are_named_if_the_text_reports_both() {
    let dir = tempfile::tempdir().unwrap();
    forked_recording(dir.path());
    let filtered = |text: &[u8]| {
        fs::write(dir.path().join("text"), text).unwrap();
        let output = command(dir.path(), &["text"]).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let names = |text: &str| ["anonymous_code+", "code_of_a_file+"].map(|name| text.matches(name).count());
    // If processes are printed, the child is one of its own; else perf's name for the memory gives the parent's.
    const FIELDS: &str = "-Fcomm,pid,tid,time,event,ip,sym,dso";
    let (text, _) = filtered(&printed_by_perf(dir.path(), &[]));
    assert_eq!(names(&text), [10, 0], "{text}");
    let (text, said) = filtered(&printed_by_perf(dir.path(), &[FIELDS]));
    assert_eq!(names(&text), [0, 0], "{text}");
    assert!(said.contains("--show-task-events") && said.contains("--show-mmap-events"), "{said}");
    let (text, said) = filtered(&printed_by_perf(dir.path(), &[FIELDS, "--show-task-events", "--show-mmap-events"]));
    assert_eq!(names(&text), [10, 10], "{text}");
    assert!(!said.contains("--show-"), "{said}");
}

/// As Erlang's processes do at their ends: nothing called what they return to.
#[test]
fn a_function_that_is_entered_by_a_return_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("jit-4000077.dump");
    let exit = "erts_beamasm:normal_exit/0";
    let header = format!("{exit}-CodeInfoPrologue");
    let functions = [(10, 0x5000_0000, &*header), (11, 0x5000_0010, exit), (12, 0x5000_0020, "w:loop/1")];
    fs::write(&dump, dump_of(4_000_077, &functions)).unwrap();
    let frames = "\t        50000024 [unknown] (//anon)\n\t        50000010 [unknown] (//anon)\n";
    let text = format!("beam 4000077/4000077 0.000000500: 1 cycles:\n{frames}\n");
    let output = filter(text.as_bytes(), &["--jitdump", dump.to_str().unwrap()]);
    let named = String::from_utf8(output.stdout).unwrap();
    assert!(named.contains("50000024 w:loop/1+0x4") && named.contains(&format!("50000010 {exit}+0x0")), "{named}");
    assert!(!named.contains("CodeInfoPrologue"), "{named}");
}
