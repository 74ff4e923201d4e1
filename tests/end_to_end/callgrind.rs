//! `jitgraft callgrind` over real recordings, read back by callgrind_annotate, objdump and an independent reader.

mod callgrind_check;

use crate::support::effort::{is_thorough, step};
use callgrind_check::{Entry, Found, by_address, compare, jitdump, perf_map, raw, read};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Recordings of `fixtures/callgrind-jit`.
const RECORDINGS: &[&str] = &[
    "php-tracing",
    "php-sepcallers",
    "php-nocompress-jumps",
    "php-combine-parts",
    "node-septhreads",
    "moarvm-blocking",
    "moarvm-sepcallers",
    "openjdk-perfmap",
    "wasmtime-perfmap",
    "erlang-perf",
    "cpython-perfjit",
];

/// Recordings of runtimes in which callgrind's functions are those of the runtime: nothing is split.
const ONE_TO_ONE: &[&str] = &["moarvm-blocking", "wasmtime-perfmap", "cpython-perfjit"];

/// The bytes of a fixture, packed or not; `None` if absent of that name.
fn fixture_if_any(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/callgrind-jit");
    let packed = || Some(zstd::decode_all(&fs::read(folder.join(format!("{name}.zst"))).ok()?[..]).unwrap());
    fs::read(folder.join(name)).ok().or_else(packed)
}

fn fixture(name: &str) -> Vec<u8> {
    fixture_if_any(name).unwrap_or_else(|| panic!("fixtures/callgrind-jit has no {name}"))
}

/// The source that names the code of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Map,
    Dump,
}

impl Source {
    fn of(self, recording: &str) -> Option<Vec<u8>> {
        let extension = if self == Self::Map { "map" } else { "dump" };
        fixture_if_any(&format!("{recording}.{extension}"))
    }

    fn file_name(self, pid: &str) -> String {
        if self == Self::Map { format!("perf-{pid}.map") } else { format!("jit-{pid}.dump") }
    }
}

/// A recording in a directory of its own, with what names its code, under a number that no process has: nothing in
/// the machine's usual places is taken for the recording's.
struct Case {
    dir: tempfile::TempDir,
    name: String,
    pid: String,
}

impl Case {
    /// With all sources that there are.
    fn new(recording: &str) -> Self {
        Self::with(recording, &[Source::Map, Source::Dump])
    }

    /// With those of these sources that there are.
    fn with(recording: &str, sources: &[Source]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text = fixture(&format!("{recording}.callgrind"));
        let at = memchr::memmem::find(&text, b"\npid: ").unwrap() + "\npid: ".len();
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let pid = format!("999{}", std::str::from_utf8(&text[at..at + digits]).unwrap());
        let name = format!("callgrind.out.{pid}");
        let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
        put(&name, &[&text[..at], pid.as_bytes(), &text[at + digits..]].concat());
        for source in sources {
            let Some(mut bytes) = source.of(recording) else { continue };
            if *source == Source::Dump {
                // The pid in the header.
                bytes[20..24].copy_from_slice(&pid.parse::<u32>().unwrap().to_le_bytes());
            }
            put(&source.file_name(&pid), &bytes);
        }
        Self { dir, name, pid }
    }

    fn source(&self, source: Source) -> PathBuf {
        self.path(&source.file_name(&self.pid))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn input(&self) -> PathBuf {
        self.path(&self.name)
    }

    fn named(&self) -> PathBuf {
        self.path(&format!("{}.jit", self.name))
    }

    fn object(&self) -> String {
        format!("jitted-{}.elf", self.pid)
    }

    /// The entries of its sources, by address: a dump is better than a map.
    fn entries(&self) -> Vec<Entry> {
        let map = fs::read(self.source(Source::Map)).map_or_else(|_| Vec::new(), |text| perf_map(&text));
        let dump = fs::read(self.source(Source::Dump)).map_or_else(|_| Vec::new(), |bytes| jitdump(&bytes));
        by_address([map, dump].concat())
    }

    /// Runs the command in the recording's directory.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.current_dir(self.dir.path()).arg("callgrind").args(arguments);
        command.output().unwrap()
    }

    /// Runs the command, which must succeed, and returns the summary that it prints.
    fn graft(&self, arguments: &[&str]) -> String {
        let mut all = vec![&self.name[..]];
        all.extend(arguments);
        let output = self.run(&all);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", self.name);
        said
    }

    fn compare(&self) -> Found {
        let (before, after) = (read(&fs::read(self.input()).unwrap()), read(&fs::read(self.named()).unwrap()));
        assert_eq!(before.id_errors, after.id_errors, "{}: ids", self.name);
        compare(&before, &after, &self.entries(), &self.object())
    }
}

fn tool(name: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(name).args(arguments).output().unwrap_or_else(|error| panic!("{name}: {error}: see tests/run.sh"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{name} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn self_costs_are_those_of_the_addresses_and_nothing_else_changes() {
    for recording in RECORDINGS {
        let ways: [&[Source]; 3] = [&[Source::Map, Source::Dump], &[Source::Map], &[Source::Dump]];
        let possible = ways.iter().filter(|ways| ways.iter().all(|source| source.of(recording).is_some()));
        // All sources together exercise the most code: that is enough for a quick run.
        for sources in possible.step_by(step(3)) {
            let case = Case::with(recording, sources);
            let said = case.graft(&[]);
            let found = case.compare();
            assert!(found.entries_with_cost > 2, "{recording}: {found:?}");
            assert!(found.jit_nodes >= found.entries_with_cost, "{recording}: {found:?}");
            assert!(!ONE_TO_ONE.contains(recording) || !said.contains("; split "), "{recording}: {said}");
        }
    }
}

#[test]
fn a_second_run_changes_nothing_nor_do_threads() {
    for recording in RECORDINGS.iter().step_by(step(2)) {
        let case = Case::new(recording);
        case.graft(&["--threads", "1"]);
        let once = fs::read(case.named()).unwrap();
        case.graft(&["--threads", "4", "-o", "other"]);
        assert!(once == fs::read(case.path("other")).unwrap(), "{recording}: the number of threads shows");
        let again = format!("{}.jit", case.name);
        assert!(case.run(&[&again, "-o", "again", "--pid", &case.pid]).status.success());
        assert!(once == fs::read(case.path("again")).unwrap(), "{recording}: the second run changes something");
    }
}

#[test]
fn an_empty_map_leaves_every_byte() {
    for recording in RECORDINGS {
        let case = Case::with(recording, &[Source::Map]);
        fs::write(case.source(Source::Map), "").unwrap();
        let said = case.graft(&[]);
        assert!(said.contains("nothing was changed"), "{said}");
        assert!(fs::read(case.input()).unwrap() == fs::read(case.named()).unwrap(), "{recording}");
        assert!(!case.path(&case.object()).exists());
    }
}

#[test]
fn callgrind_annotate_finds_the_same_costs() {
    // Every second one has a runtime of each kind; callgrind_annotate takes a second for each.
    for recording in RECORDINGS.iter().step_by(step(2)) {
        let case = Case::new(recording);
        case.graft(&[]);
        let all = is_thorough() || ONE_TO_ONE.contains(recording);
        for inclusive in if all { &["no", "yes"][..] } else { &["yes"] } {
            let annotate = |path: PathBuf| {
                let inclusive = format!("--inclusive={inclusive}");
                let arguments = ["--threshold=100", "--auto=no", &inclusive, path.to_str().unwrap()];
                if !recording.contains("parts") && !recording.contains("septhreads") {
                    return tool("callgrind_annotate", &arguments);
                }
                // It warns of the headers of every part but the first, ours or not.
                let output = Command::new("callgrind_annotate").args(arguments).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                let other = said
                    .lines()
                    .filter(|line| !line.contains("malformed, ignoring") && !line.starts_with("    line: '"));
                assert_eq!(other.filter(|line| !line.is_empty()).count(), 0, "{said}");
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            let (before, after) = (annotate(case.input()), annotate(case.named()));
            let totals = |text: &str| text.lines().find(|line| line.ends_with("PROGRAM TOTALS")).unwrap().to_owned();
            assert_eq!(totals(&before), totals(&after), "{recording}");
            assert!(after.contains(&format!("[{}]", case.object())), "{recording}");
            if ONE_TO_ONE.contains(recording) {
                // The numbers of all rows, without the names.
                let numbers = |text: &str| {
                    let mut rows: Vec<String> =
                        text.lines().filter_map(|line| Some(line.split_once(")  ")?.0.trim().to_owned())).collect();
                    rows.sort();
                    rows
                };
                assert_eq!(numbers(&before), numbers(&after), "{recording} --inclusive={inclusive}");
            }
        }
    }
}

#[test]
fn lines_of_the_dump_become_lines_of_the_profile() {
    let case = Case::new("node-septhreads");
    case.graft(&[]);
    let after = read(&fs::read(case.named()).unwrap());
    let lines: BTreeSet<(&str, u64)> = after
        .lines
        .keys()
        .filter(|(node, file, _)| node.0 == case.object() && file.ends_with("/bench.js"))
        .map(|(node, _, line)| (&node.2[..], *line))
        .collect();
    // V8 distorts the names of most of these files; functions state in their names which it was, and where they begin.
    assert!(lines.contains(&("JS:^collatz /tmp/demo/bench.js:2:17", 2)), "{lines:?}");
    assert!(lines.contains(&("JS:*collatz /tmp/demo/bench.js:2:17", 2)), "{lines:?}");
}

#[test]
fn raw_addresses_among_callers_get_names_too() {
    for recording in ["php-sepcallers", "moarvm-sepcallers"] {
        let case = Case::new(recording);
        case.graft(&[]);
        let (before, after) = (read(&fs::read(case.input()).unwrap()), read(&fs::read(case.named()).unwrap()));
        let entries = case.entries();
        let heads: BTreeSet<u64> =
            before.functions().filter(|node| node.0 == "???").filter_map(|n| raw(&n.2)).collect();
        let mut replaced = 0;
        // Only an address at which unknown code was entered is surely one of memory, and not of some object's file.
        let mut caller = |part: &str| {
            let addr = raw(part).filter(|addr| heads.contains(addr));
            let entry = addr.and_then(|addr| entries.iter().find(|entry| entry.start <= addr && addr < entry.end));
            replaced += u32::from(entry.is_some());
            let Some(entry) = entry else { return part.to_owned() };
            // Pieces of one name are distinguished.
            let twins = entries.iter().filter(|other| other.name == entry.name && other.start != entry.start).count();
            let suffix = if twins > 0 { format!("#{:#x}", entry.start) } else { String::new() };
            format!("{}{suffix}", entry.name)
        };
        let mut expected = BTreeSet::new();
        for node in before.functions().filter(|node| node.0 != "???") {
            let mut parts = node.2.split('\'');
            let head = parts.next().unwrap().to_owned();
            expected.insert(parts.fold(head, |name, part| format!("{name}'{}", caller(part))));
        }
        let names: BTreeSet<String> =
            after.functions().filter(|n| n.0 != "???" && n.0 != case.object()).map(|n| n.2.clone()).collect();
        let wrong: Vec<_> = names.symmetric_difference(&expected).collect();
        assert!(wrong.is_empty(), "{recording}: {wrong:?}");
        assert!(replaced > 0, "{recording}");
    }
}

#[test]
fn code_in_functions_of_known_objects_is_reported() {
    for (recording, told) in [("node-septhreads", true), ("php-tracing", false)] {
        let said = Case::new(recording).graft(&[]);
        assert_eq!(said.contains("native functions still include the cost of"), told, "{recording}: {said}");
    }
}

#[test]
fn code_at_addresses_of_earlier_code_gets_the_costs_and_is_reported() {
    let (dir, text) = made_up(1000);
    let input = dir.path().join("callgrind.out.9997");
    fs::write(&input, text).unwrap();
    let graft = |map: &str| {
        fs::write(dir.path().join("perf-9997.map"), map).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&input).output().unwrap();
        assert!(output.status.success());
        let named = fs::read(dir.path().join("callgrind.out.9997.jit")).unwrap();
        (String::from_utf8_lossy(&output.stderr).into_owned(), read(&named))
    };
    let (said, after) = graft("10000000 40 first\n10000000 40 second\n10000040 40 other\n");
    let named: Vec<_> = after.nodes.keys().filter(|node| node.0 == "jitted-9997.elf").map(|node| &node.2[..]).collect();
    assert_eq!(named, ["other", "second"]);
    assert!(said.contains("1 of the named functions reused the addresses of earlier ones"), "{said}");
    let (said, _) = graft("10000000 40 second\n10000040 40 other\n");
    assert!(!said.contains("reused the addresses"), "{said}");
}

/// The first addresses of functions with code, as the profile has them, and what objdump makes of the object there.
fn assert_disassembles(case: &Case) {
    let object = case.path(&case.object());
    let text = tool("objdump", &["-d", object.to_str().unwrap()]);
    let addresses: BTreeSet<u64> =
        text.lines().filter_map(|line| u64::from_str_radix(line.trim_start().split_once(":\t")?.0, 16).ok()).collect();
    let before = read(&fs::read(case.input()).unwrap());
    let entries = case.entries();
    let covered =
        before.unknown.keys().filter(|addr| entries.iter().any(|entry| entry.start <= **addr && **addr < entry.end));
    let covered: Vec<_> = covered.collect();
    let missing: Vec<_> = covered.iter().filter(|addr| !addresses.contains(addr)).collect();
    // A linear disassembly goes out of step behind data between instructions; only a few may be off.
    assert!(
        covered.len() > 50 && missing.len() * 50 <= covered.len(),
        "{} of {} addresses are no instructions",
        missing.len(),
        covered.len()
    );
}

#[test]
fn the_object_has_the_machine_code_at_its_addresses() {
    let case = Case::new("php-tracing");
    let said = case.graft(&[]);
    assert!(said.contains("with machine code"), "{said}");
    assert_disassembles(&case);
}

#[test]
fn moarvm_s_directory_of_raw_code_becomes_the_object() {
    let case = Case::with("moarvm-blocking", &[Source::Map]);
    let tar = case.path("code.tar");
    fs::write(&tar, fixture("moarvm-blocking.code.tar")).unwrap();
    let beside = format!("moar-jit.{}", case.pid);
    tool("tar", &["-xf", tar.to_str().unwrap(), "-C", case.dir.path().to_str().unwrap()]);
    let said = case.graft(&["--bytecode-dir", "code"]);
    assert!(said.contains("75 functions, 75 with machine code"), "{said}");
    assert!(!said.contains("warning"), "{said}");
    assert_disassembles(&case);
    // Under its own name it is found beside the profile; a file too many is reported.
    fs::rename(case.path("code"), case.path(&beside)).unwrap();
    fs::write(case.path(&beside).join("moar-jit-9999.bin"), "x").unwrap();
    let said = case.graft(&[]);
    assert!(said.contains("1 of 76 files"), "{said}");
}

#[test]
fn without_instruction_addresses_it_states_what_that_means() {
    let case = Case::with("php-noinstr", &[Source::Map]);
    let said = case.graft(&[]);
    assert!(said.contains("--dump-instr=yes"), "{said}");
    // All cost is booked on what was called; a share that is nearly all would read as if the names were right.
    assert!(
        said.contains(" by their entry points") && said.contains("part of that may be from other functions"),
        "{said}"
    );
    let after = read(&fs::read(case.named()).unwrap());
    let named: Vec<_> = after.nodes.keys().filter(|node| node.0 == case.object()).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(read(&fs::read(case.input()).unwrap()).totals, after.totals);
}

#[test]
fn wrong_maps_and_maps_of_others_are_reported() {
    let case = Case::with("php-tracing", &[Source::Map]);
    let map = case.source(Source::Map);
    fs::write(&map, "1000 10 elsewhere\n").unwrap();
    let said = case.graft(&[]);
    assert!(said.contains("are map and profile from the same run?"), "{said}");
    assert!(fs::read(case.input()).unwrap() == fs::read(case.named()).unwrap());
    fs::write(case.path("perf-9991.map"), fixture("php-tracing.map")).unwrap();
    let said = case.graft(&["--perf-map", "perf-9991.map"]);
    let process = format!("process {}", case.pid);
    assert!(said.contains("perf-9991.map") && said.contains(&process), "{said}");
    let said = case.graft(&["--perf-map", "perf-9991.map", "--map-pid", &format!("9991={}", case.pid)]);
    assert!(!said.contains("warning"), "{said}");
    fs::remove_file(&map).unwrap();
    fs::remove_file(case.path("perf-9991.map")).unwrap();
    let output = case.run(&[&case.name]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&format!("perf-{}.map", case.pid)), "{said}");
}

#[test]
fn cut_files_are_named_as_far_as_they_go() {
    let case = Case::new("php-combine-parts");
    let whole = fs::read(case.input()).unwrap();
    for part in 1..24 {
        let cut = &whole[..whole.len() * part / 24];
        fs::write(case.input(), cut).unwrap();
        case.graft(&[]);
        let named = fs::read(case.named()).unwrap();
        let last = |text: &[u8]| text.iter().rposition(|&byte| byte == b'\n').map(|at| text[at + 1..].to_vec());
        // The torn line is not touched, unless it belongs to a block that is written anew.
        assert!(last(&named) == last(cut) || named.ends_with(b"\n"), "cut at {part}/24");
    }
}

/// A made-up file whose unknown functions stand 64 bytes apart, and a map that names every 1000th.
fn made_up(functions: u64) -> (tempfile::TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let mut text = b"version: 1\ncreator: callgrind-3.19.0\npid: 9997\npositions: instr line\nevents: Ir\n\nob=(1) ???\nfl=(1) ???\n".to_vec();
    for id in 0..functions {
        let addr = 0x1000_0000 + id * 64;
        text.extend_from_slice(format!("fn=({}) {addr:#018x}\n{addr:#x} 0 3\n+1 0 4\n\n", id + 1).as_bytes());
    }
    let map: String =
        (0..functions / 1000).map(|at| format!("{:x} 40 jit{at}\n", 0x1000_0000 + at * 64 * 1000)).collect();
    fs::write(dir.path().join("perf-9997.map"), map).unwrap();
    (dir, text)
}

#[test]
fn a_million_ids() {
    let (ids, named) = if is_thorough() { (1_000_000, "1,000") } else { (200_000, "200") };
    let (dir, text) = made_up(ids);
    let input = dir.path().join("callgrind.out.9997");
    fs::write(&input, &text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains(&format!("callgrind.out.9997.jit: named {named} functions")),
        "{said}"
    );
    let output = fs::read(dir.path().join("callgrind.out.9997.jit")).unwrap();
    assert_eq!(
        memchr::memmem::find_iter(&output, b") jit").count() as u64,
        ids / 1000 + 1,
        "the functions and their object"
    );
    assert_eq!(memchr::memmem::find_iter(&output, b" 0 3\n").count(), ids as usize);
}

#[test]
fn a_file_larger_than_the_memory_it_may_use() {
    let (dir, mut text) = made_up(1000);
    text.extend_from_slice(b"ob=(2) /usr/lib/libx.so\nfl=(2) x.c\n");
    let block = [&b"fn=(2000000) f\n0x10 1 5\n"[..], &b"+3 +1 10\n".repeat(1 << 16)].concat();
    for _ in 0..320 {
        text.extend_from_slice(&block);
    }
    text.extend_from_slice(b"totals: 7\n");
    let limit = 120_000_000;
    assert!(text.len() > limit * 3 / 2);
    let input = dir.path().join("callgrind.out.9997");
    fs::write(&input, &text).unwrap();
    let mut command = Command::new("prlimit");
    command.arg(format!("--data={limit}")).args([env!("CARGO_BIN_EXE_jitgraft"), "callgrind", "--threads", "2"]);
    let output = command.arg(&input).output().expect("prlimit is part of util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(": named 1 function"), "{said}");
    let named = fs::read(dir.path().join("callgrind.out.9997.jit")).unwrap();
    assert!(named.ends_with(b"totals: 7\n"));
    assert_eq!(memchr::memmem::find_iter(&named, b"+3 +1 10\n").count(), 320 << 16);
}

#[test]
fn reports_of_other_tools_get_names_too() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("massif.out.9997");
    fs::write(&input, fixture("php-massif.massif")).unwrap();
    fs::write(dir.path().join("perf-9997.map"), fixture("php-massif.map")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("massif.out.9997.jit: named 5 of 697 unknown frames"), "{said}");
    let printed = tool("ms_print", &[dir.path().join("massif.out.9997.jit").to_str().unwrap()]);
    assert!(printed.contains("0x10400CA3: JIT$leaf"), "{printed}");
    let cachegrind = dir.path().join("cachegrind.out.9997");
    fs::write(&cachegrind, "desc: I1 cache: 1\ncmd: php\nevents: Ir\nfl=???\nfn=???\n0 5\nsummary: 5\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&cachegrind).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no addresses") && said.contains("--tool=callgrind"), "{said}");
}

#[test]
fn stacks_keep_the_total_and_other_inputs_become_callgrind_files() {
    let case = Case::with("moarvm-blocking", &[Source::Map]);
    case.graft(&[]);
    let run = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_jitgraft")).current_dir(case.dir.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let named = case.named();
    let folded = run(&["collapse", named.to_str().unwrap()]);
    let sum: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    let costs: u64 = read(&fs::read(&named).unwrap()).nodes.values().map(|costs| costs[0]).sum();
    assert_eq!(sum, costs);
    fs::write(case.path("x.folded"), "node;main;f;g 5\nnode;main;g 3\nnode;main;f 2\n").unwrap();
    run(&["export", "--to", "callgrind", "x.folded", "-o", "x.callgrind"]);
    let path = case.path("x.callgrind");
    let own = tool("callgrind_annotate", &["--threshold=100", "--auto=no", path.to_str().unwrap()]);
    assert!(own.contains("10 (100.0%)  PROGRAM TOTALS") && own.contains(":g [???]"), "{own}");
    let inclusive = tool("callgrind_annotate", &["--threshold=100", "--inclusive=yes", path.to_str().unwrap()]);
    assert!(inclusive.lines().any(|line| line.trim_start().starts_with("7 (") && line.contains(":f")), "{inclusive}");
}
