//! A recording of code that was registered with GDB's JIT interface, and the core dump that its process left. The names
//! of addresses are found by a second reader, which shares no code with `src/`: it finds the descriptor by its symbol's
//! address, and has the objects read by nm and addr2line.

use jitgraft::records::jit_logs::{CodeLog, JIT_LOGS, JitLog, LogCode, LogEventKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

const CORE: &str = "core.24209";

/// By `nm register`.
const DESCRIPTOR: u64 = 0x4a_60d0;

fn unpacked(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-gdb-jit").join(format!("{name}.zst"));
    zstd::decode_all(&fs::read(path).unwrap()[..]).unwrap()
}

/// The recording and, under this name, the core, in a directory of their own.
fn directory(core: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("perf.data"), unpacked("perf.data")).unwrap();
    if !core.is_empty() {
        fs::write(dir.path().join(core), unpacked(CORE)).unwrap();
    }
    dir
}

fn output(program: &str, arguments: &[&str], dir: &Path) -> Output {
    let output = Command::new(program).args(arguments).current_dir(dir).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    String::from_utf8_lossy(&output(program, arguments, dir).stdout).into_owned()
}

fn jitgraft(arguments: &[&str], dir: &Path) -> String {
    run(env!("CARGO_BIN_EXE_jitgraft"), arguments, dir)
}

fn core_log() -> &'static JitLog {
    JIT_LOGS.iter().find(|log| log.id == "core").unwrap()
}

fn codes(log: &CodeLog) -> impl Iterator<Item = (&LogCode, String)> {
    log.events.iter().map(|event| match &event.kind {
        LogEventKind::Load(code) => (code, String::from_utf8_lossy(log.texts.get(code.name)).into_owned()),
        other => panic!("{other:?}"),
    })
}

/// The second reader.
struct Core(Vec<u8>);

impl Core {
    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    /// The place in the file of the byte at an address.
    fn offset(&self, addr: u64) -> usize {
        let headers = (0..usize::from(self.0[56])).map(|header| 64 + header * 56);
        let mut loads = headers.filter(|header| self.0[*header] == 1);
        let load = loads.find(|header| addr.wrapping_sub(self.word(header + 16)) < self.word(header + 32));
        let load = load.unwrap_or_else(|| panic!("{addr:#x} is not in the core"));
        (addr - self.word(load + 16) + self.word(load + 8)) as usize
    }

    /// The registered objects, the newest first.
    fn objects(&self) -> Vec<Vec<u8>> {
        let mut objects = Vec::new();
        let mut entry = self.word(self.offset(DESCRIPTOR) + 16);
        while entry != 0 {
            let at = self.offset(entry);
            let (start, size) = (self.offset(self.word(at + 16)), self.word(at + 24) as usize);
            objects.push(self.0[start..start + size].to_vec());
            entry = self.word(at);
        }
        objects
    }
}

/// A function as nm has it, and the object's file.
#[derive(Debug)]
struct Function {
    addr: u64,
    size: u64,
    name: String,
    object: PathBuf,
}

fn functions(dir: &Path) -> Vec<Function> {
    let mut functions = Vec::new();
    for (number, bytes) in Core(unpacked(CORE)).objects().into_iter().enumerate() {
        let object = dir.join(format!("{number}.o"));
        fs::write(&object, bytes).unwrap();
        let symbols = run("nm", &["-S", object.to_str().unwrap()], dir);
        for line in symbols.lines() {
            let [addr, size, "T" | "t", name] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
            let hex = |text| u64::from_str_radix(text, 16).unwrap();
            functions.push(Function {
                addr: hex(addr),
                size: hex(size),
                name: name.to_owned(),
                object: object.clone(),
            });
        }
    }
    functions
}

/// The calls at an address by addr2line, innermost first, as `function file:line`.
fn by_addr2line(function: &Function, addr: u64, dir: &Path) -> Vec<String> {
    let object = function.object.to_str().unwrap();
    let lines = run("addr2line", &["-f", "-i", "-e", object, &format!("{addr:#x}")], dir);
    let lines: Vec<&str> = lines.lines().map(|line| line.split(" (discriminator").next().unwrap()).collect();
    lines.chunks(2).map(|call| call.join(" ")).collect()
}

/// The same by us.
fn by_us(log: &CodeLog, core: &[u8], addr: u64) -> Vec<String> {
    let (code, name) = codes(log).find(|(code, _)| (code.addr..code.addr + code.size).contains(&addr)).unwrap();
    let map = log.positions.as_ref().unwrap().source_map(core, log.texts.get(code.place.unwrap()));
    let line = map.at(addr - code.addr).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut calls, mut place) = (Vec::new(), format!("{}:{}", text(line.file), line.line));
    for call in map.calls_around(line) {
        calls.push(format!("{} {place}", text(&call.function)));
        place = format!("{}:{}", text(call.file), call.line);
    }
    calls.push(format!("{name} {place}"));
    calls
}

#[test]
fn every_function_is_called_and_placed_as_nm_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let expected: BTreeSet<_> =
        functions(dir.path()).into_iter().map(|function| (function.addr, function.size, function.name)).collect();
    assert_eq!(expected.len(), 3, "spin, fib and step; what was unregistered is gone: {expected:?}");
    let core = unpacked(CORE);
    let log = (core_log().read)(&core).unwrap();
    assert_eq!(codes(&log).map(|(code, name)| (code.addr, code.size, name)).collect::<BTreeSet<_>>(), expected);
    assert_eq!((log.pid, log.machine, log.torn, log.skipped.count()), (Some(24209), Some(62), false, 0));
}

#[test]
fn every_byte_of_code_has_the_lines_and_inlined_calls_that_addr2line_finds() {
    let dir = tempfile::tempdir().unwrap();
    let core = unpacked(CORE);
    let log = (core_log().read)(&core).unwrap();
    let (mut compared, mut inlined) = (0, 0);
    for function in functions(dir.path()) {
        for addr in function.addr..function.addr + function.size {
            let expected = by_addr2line(&function, addr, dir.path());
            assert_eq!(by_us(&log, &core, addr), expected, "at {addr:#x}");
            compared += 1;
            inlined += usize::from(expected.len() > 1);
        }
    }
    assert!(compared > 150 && inlined > 50, "{compared} {inlined}");
}

#[test]
fn code_is_that_of_the_objects() {
    let core = unpacked(CORE);
    let log = (core_log().read)(&core).unwrap();
    let objects = Core(core.clone()).objects();
    for (code, name) in codes(&log) {
        let bytes = &core[code.memory()];
        assert_eq!(bytes.len() as u64, code.size);
        let is_in = |object: &Vec<u8>| object.windows(bytes.len()).any(|window| window == bytes);
        assert!(objects.iter().any(is_in), "{name}");
    }
}

/// Stacks without the frames of the program itself, which has no symbols here, and how many samples have them.
fn stacks(folded: &str) -> BTreeMap<Vec<String>, u64> {
    let mut stacks = BTreeMap::new();
    for row in folded.lines() {
        let (stack, count) = row.rsplit_once(' ').unwrap();
        let own = stack.split(';').filter(|frame| matches!(*frame, "spin" | "twice" | "mix" | "fib" | "step"));
        *stacks.entry(own.map(str::to_owned).collect()).or_default() += count.parse::<u64>().unwrap();
    }
    stacks
}

#[test]
fn a_core_beside_the_recording_names_every_sample_and_unwinds_its_stack() {
    let dir = directory(CORE);
    let shown = run("perf", &["script", "-i", "perf.data", "-F", "ip,sym"], dir.path());
    assert!(!shown.contains("spin") && !shown.contains("step"), "perf alone names nothing");
    let known = functions(dir.path());
    let sampled = shown.lines().filter_map(|line| u64::from_str_radix(line.split_whitespace().next()?, 16).ok());
    let is_in = |addr: &u64| known.iter().any(|known| (known.addr..known.addr + known.size).contains(addr));
    let in_code = sampled.filter(is_in).count() as u64;
    assert!(in_code > 400, "{in_code}");

    let folded = jitgraft(&["collapse", "--weight", "samples", "perf.data"], dir.path());
    let stacks = stacks(&folded);
    let named: u64 = stacks.iter().filter(|(stack, _)| !stack.is_empty()).map(|(_, count)| count).sum();
    assert_eq!(named, in_code);
    for stack in stacks.keys().filter(|stack| !stack.is_empty()) {
        // Without the objects' unwinding information the callers of code without frame pointers would be lost.
        let is_whole = match stack[0].as_str() {
            "spin" => stack[1..].iter().all(|call| call == "twice" || call == "mix"),
            "fib" => stack[1..].iter().all(|call| call == "step"),
            _ => false,
        };
        assert!(is_whole, "{stack:?}");
    }
    assert!(stacks.keys().any(|stack| *stack == ["spin", "twice", "mix"]), "{stacks:?}");
    assert!(stacks.keys().any(|stack| stack.len() > 10), "{stacks:?}");
}

#[test]
fn a_core_shows_itself_whose_it_is() {
    let plain = directory("core");
    let named = jitgraft(&["collapse", "perf.data"], plain.path());
    assert!(named.contains("spin"), "{named}");
    let systemd = directory("core.register.0.d5a7c0e1b2f34c5d8e9f0a1b2c3d4e5f.24209.1700000000000000");
    assert_eq!(jitgraft(&["collapse", "perf.data"], systemd.path()), named);
    let given = directory("");
    let elsewhere = directory("what");
    let core = elsewhere.path().join("what");
    let core = core.to_str().unwrap();
    assert!(!jitgraft(&["collapse", "perf.data"], given.path()).contains("spin"));
    assert_eq!(jitgraft(&["collapse", "--jit-log", core, "perf.data"], given.path()), named);
}

#[test]
fn a_core_of_another_run_is_not_used_and_said() {
    let dir = directory("");
    let mut core = unpacked(CORE);
    // The program's own mapping, as the list of files has it, is of another file.
    let name = b"/register\0";
    let places: Vec<usize> = (0..core.len() - name.len()).filter(|at| core[*at..].starts_with(name)).collect();
    places.iter().for_each(|at| core[at + 1] = b'R');
    fs::write(dir.path().join(CORE), &core).unwrap();
    let output = output(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.data"], dir.path());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("spin"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is not what was recorded"), "{said}");
}

#[test]
fn a_map_of_the_process_comes_before_its_core() {
    let dir = directory(CORE);
    let spin = functions(dir.path()).into_iter().find(|function| function.name == "spin").unwrap();
    let map = format!("{:x} {:x} by_the_map\n", spin.addr, spin.size);
    fs::write(dir.path().join("perf-24209.map"), map).unwrap();
    let folded = jitgraft(&["collapse", "perf.data"], dir.path());
    assert!(folded.contains("by_the_map") && !folded.contains("spin"), "{folded}");
    assert!(folded.contains("step"), "the core names what the map does not have: {folded}");
}

#[test]
fn annotate_shows_the_code_that_the_core_has() {
    let dir = directory(CORE);
    let listing = jitgraft(&["annotate", "^step$", "perf.data"], dir.path());
    assert!(listing.contains("ret") && listing.contains("fib.c"), "{listing}");
}

#[test]
fn inject_writes_names_for_perf() {
    let dir = directory(CORE);
    jitgraft(&["inject", "-i", "perf.data", "-o", "perf.jit.data"], dir.path());
    let shown = run("perf", &["script", "--no-inline", "-i", "perf.jit.data", "-F", "ip,sym"], dir.path());
    let named = shown.lines().filter(|line| line.contains("spin") || line.contains("step")).count();
    assert!(named > 400, "{named}");
}

/// Ends when its owner does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_memory_of_a_process_that_still_runs_names_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-gdb-jit").join(name);
    let [register, spin, fib] = ["register.c", "spin.c", "fib.c"].map(|name| source(name).display().to_string());
    run("gcc", &["-O1", "-o", "register", &register], dir.path());
    run("gcc", &["-O1", "-g", "-fno-pic", "-fcf-protection=none", "-c", &spin, &fib], dir.path());
    let started = Command::new("./register").args(["spin.o", "fib.o", "100000000"]).current_dir(dir.path()).spawn();
    let running = Running(started.unwrap());
    let pid = running.0.id().to_string();
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "499", "-o", "perf.data", "-p", &pid, "--"];
    run("perf", &[&record[..], &["sleep", "0.5"]].concat(), dir.path());
    let output = output(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.data"], dir.path());
    let (folded, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(folded.contains(";spin ") && folded.contains("step"), "{folded}{said}");
    assert!(said.contains(&format!("/proc/{pid}/mem: used for process {pid}")), "{said}");
    drop(running);
    let folded = jitgraft(&["collapse", "perf.data"], dir.path());
    // As a frame of its own: the kernel has functions whose names contain it.
    let is_named = folded.lines().any(|line| line.rsplit_once(' ').is_some_and(|(stack, _)| stack.ends_with(";spin")));
    assert!(!is_named, "it has ended: {folded}");
}

#[test]
fn damaged_cores_do_no_harm() {
    let core = unpacked(CORE);
    let read_all = |bytes: &[u8]| {
        let Ok(log) = (core_log().read)(bytes) else { return };
        for (code, _) in codes(&log) {
            assert!(code.addr.checked_add(code.size).is_some());
            let (Some(positions), Some(place)) = (&log.positions, code.place) else { continue };
            let map = positions.source_map(bytes, log.texts.get(place));
            assert!(map.lines.iter().all(|line| line.inlined.is_none_or(|call| (call as usize) < map.calls.len())));
        }
    };
    // The headers and notes, the descriptor, and the objects, where damage matters: the rest is memory of others.
    let reader = Core(core.clone());
    let objects = reader.objects();
    let start = |object: &Vec<u8>| core.windows(object.len()).position(|window| window == &object[..]).unwrap();
    let mut places: Vec<usize> = (0..850).collect();
    places.extend(reader.offset(DESCRIPTOR)..reader.offset(DESCRIPTOR) + 24);
    objects.iter().for_each(|object| places.extend((start(object) - 64..start(object) + object.len()).step_by(3)));
    for at in places {
        read_all(&core[..at]);
        let mut changed = core.clone();
        changed[at] ^= 0x15;
        read_all(&changed);
    }
}
