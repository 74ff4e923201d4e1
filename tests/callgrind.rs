//! `jitgraft callgrind` over real recordings, read back by callgrind_annotate, objdump and an independent reader.

mod callgrind_check;

use callgrind_check::{Entry, Found, compare, perf_map, read};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Recordings of `fixtures/callgrind-jit`: file, and whether a jitdump names its code, too.
const RECORDINGS: &[&str] = &[
    "php-tracing.callgrind.out.28678",
    "php-sepcallers.callgrind.out.28770",
    "php-nocompress-jumps.callgrind.out.28747",
    "php-combine-parts.callgrind.out.28816",
    "node-septhreads.callgrind.out.30460",
    "moarvm-blocking.callgrind.out.28887",
    "openjdk-perfmap.callgrind.out.28332",
    "wasmtime-perfmap.callgrind.out.28163",
    "erlang-perf.callgrind.out.29754",
];

/// Recordings of runtimes in which callgrind's functions are those of the runtime: nothing is split.
const ONE_TO_ONE: &[&str] = &["moarvm-blocking.callgrind.out.28887", "wasmtime-perfmap.callgrind.out.28163"];

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/callgrind-jit");
    match fs::read(folder.join(name)) {
        Ok(plain) => plain,
        Err(_) => {
            let packed = fs::read(folder.join(format!("{name}.zst"))).unwrap_or_else(|error| panic!("{name}: {error}"));
            zstd::decode_all(&packed[..]).unwrap()
        }
    }
}

fn pid(recording: &str) -> &str {
    recording.rsplit('.').next().unwrap()
}

/// A number that no process has, so that nothing in the machine's usual places is taken for a recording's.
fn absurd(pid: &str) -> String {
    format!("999{pid}")
}

/// A recording in a directory of its own, with its map and, if there is one, its dump, under an absurd number.
struct Case {
    dir: tempfile::TempDir,
    name: String,
    pid: String,
}

impl Case {
    fn new(recording: &str, with_dump: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let recorded = pid(recording);
        let pid = absurd(recorded);
        let put = |name: String, bytes: Vec<u8>| fs::write(dir.path().join(name), bytes).unwrap();
        let name = recording.replace(recorded, &pid);
        let text = fixture(recording);
        let (old, new) = (format!("\npid: {recorded}\n"), format!("\npid: {pid}\n"));
        let at = memchr::memmem::find(&text, old.as_bytes()).unwrap();
        put(name.clone(), [&text[..at], new.as_bytes(), &text[at + old.len()..]].concat());
        put(format!("perf-{pid}.map"), fixture(&format!("perf-{recorded}.map")));
        let dump = format!("jit-{recorded}.dump");
        let has_dump =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/callgrind-jit/{dump}.zst")).exists();
        if with_dump && has_dump {
            let mut dump = fixture(&dump);
            // The pid in the header.
            dump[20..24].copy_from_slice(&pid.parse::<u32>().unwrap().to_le_bytes());
            put(format!("jit-{pid}.dump"), dump);
        }
        Self { dir, name, pid }
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

    fn map(&self) -> Vec<Entry> {
        perf_map(&fs::read(self.path(&format!("perf-{}.map", self.pid))).unwrap())
    }

    /// Runs the command in the recording's directory.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.current_dir(self.dir.path()).arg("callgrind").args(arguments);
        command.output().unwrap()
    }

    /// The same, which must succeed; gives what it says.
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
        compare(&before, &after, &self.map(), &self.object())
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
        let case = Case::new(recording, false);
        case.graft(&[]);
        let found = case.compare();
        assert!(found.entries_with_cost > 2, "{recording}: {found:?}");
        assert!(found.jit_nodes >= found.entries_with_cost, "{recording}: {found:?}");
        let split = found.synthetic_edges > 0;
        assert!(!split || !recording.starts_with("moarvm"), "{recording}: {found:?}");
    }
}

#[test]
fn a_second_run_changes_nothing_nor_do_threads() {
    for recording in RECORDINGS {
        let case = Case::new(recording, true);
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
        let case = Case::new(recording, false);
        fs::write(case.path(&format!("perf-{}.map", case.pid)), "").unwrap();
        let said = case.graft(&[]);
        assert!(said.contains("nothing is changed"), "{said}");
        assert!(fs::read(case.input()).unwrap() == fs::read(case.named()).unwrap(), "{recording}");
        assert!(!case.path(&case.object()).exists());
    }
}

#[test]
fn callgrind_annotate_finds_the_same_costs() {
    for recording in RECORDINGS {
        let case = Case::new(recording, true);
        case.graft(&[]);
        for inclusive in ["no", "yes"] {
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
    let case = Case::new("node-septhreads.callgrind.out.30460", true);
    case.graft(&[]);
    let after = read(&fs::read(case.named()).unwrap());
    let lines: BTreeSet<(&str, u64)> = after
        .lines
        .keys()
        .filter(|(node, file, _)| node.0 == case.object() && file.ends_with("/bench.js"))
        .map(|(node, _, line)| (&node.2[..], *line))
        .collect();
    // V8 spoils the names of most of these files; functions say in their names which it was, and where they begin.
    assert!(lines.contains(&("JS:^collatz /work/rec/w/bench.js:2:17", 2)), "{lines:?}");
    assert!(lines.contains(&("JS:*fib /work/rec/w/bench.js:3:13", 3)), "{lines:?}");
}

/// The first addresses of functions with code, as the profile has them, and what objdump makes of the object there.
fn assert_disassembles(case: &Case) {
    let object = case.path(&case.object());
    let text = tool("objdump", &["-d", object.to_str().unwrap()]);
    let addresses: BTreeSet<u64> =
        text.lines().filter_map(|line| u64::from_str_radix(line.trim_start().split_once(":\t")?.0, 16).ok()).collect();
    let before = read(&fs::read(case.input()).unwrap());
    let map = case.map();
    let covered =
        before.unknown.keys().filter(|addr| map.iter().any(|entry| entry.start <= **addr && **addr < entry.end));
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
    let case = Case::new("php-tracing.callgrind.out.28678", true);
    let said = case.graft(&[]);
    assert!(said.contains("with machine code"), "{said}");
    assert_disassembles(&case);
}

#[test]
fn moarvm_s_directory_of_raw_code_becomes_the_object() {
    let case = Case::new("moarvm-blocking.callgrind.out.28887", false);
    let tar = case.path("code.tar");
    fs::write(&tar, fixture("moar-jit.28887.tar")).unwrap();
    let beside = format!("moar-jit.{}", case.pid);
    tool("tar", &["-xf", tar.to_str().unwrap(), "-C", case.dir.path().to_str().unwrap()]);
    let said = case.graft(&["--bytecode-dir", "moar-jit.28887"]);
    assert!(said.contains("76 functions, 76 with machine code"), "{said}");
    assert!(!said.contains("warning"), "{said}");
    assert_disassembles(&case);
    // Under its own name it is found beside the profile; a file too many is told.
    fs::rename(case.path("moar-jit.28887"), case.path(&beside)).unwrap();
    fs::write(case.path(&beside).join("moar-jit-9999.bin"), "x").unwrap();
    let said = case.graft(&[]);
    assert!(said.contains("1 of 77 files"), "{said}");
}

#[test]
fn without_instruction_addresses_it_says_what_that_means() {
    let case = Case::new("php-noinstr.callgrind.out.28701", false);
    let said = case.graft(&[]);
    assert!(said.contains("--dump-instr=yes"), "{said}");
    let after = read(&fs::read(case.named()).unwrap());
    let named: Vec<_> = after.nodes.keys().filter(|node| node.0 == case.object()).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(read(&fs::read(case.input()).unwrap()).totals, after.totals);
}

#[test]
fn wrong_maps_and_maps_of_others_are_told() {
    let case = Case::new("php-tracing.callgrind.out.28678", false);
    let map = case.path(&format!("perf-{}.map", case.pid));
    fs::write(&map, "1000 10 elsewhere\n").unwrap();
    let said = case.graft(&[]);
    assert!(said.contains("are map and profile of the same run?"), "{said}");
    assert!(fs::read(case.input()).unwrap() == fs::read(case.named()).unwrap());
    fs::write(case.path("perf-9991.map"), fixture("perf-28678.map")).unwrap();
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
    let case = Case::new("php-combine-parts.callgrind.out.28816", true);
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
    let (dir, text) = made_up(1_000_000);
    let input = dir.path().join("callgrind.out.9997");
    fs::write(&input, &text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1000 functions named"), "{said}");
    let named = fs::read(dir.path().join("callgrind.out.9997.jit")).unwrap();
    assert_eq!(memchr::memmem::find_iter(&named, b") jit").count(), 1000 + 1, "the functions and their object");
    assert_eq!(memchr::memmem::find_iter(&named, b" 0 3\n").count(), 1_000_000);
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
    command.arg(format!("--as={limit}")).args([env!("CARGO_BIN_EXE_jitgraft"), "callgrind", "--threads", "2"]);
    let output = command.arg(&input).output().expect("prlimit is part of util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 functions named"), "{said}");
    let named = fs::read(dir.path().join("callgrind.out.9997.jit")).unwrap();
    assert!(named.ends_with(b"totals: 7\n"));
    assert_eq!(memchr::memmem::find_iter(&named, b"+3 +1 10\n").count(), 320 << 16);
}

#[test]
fn reports_of_other_tools_get_names_too() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("massif.out.9996749");
    fs::write(&input, fixture("massif.out.6749")).unwrap();
    fs::write(dir.path().join("perf-9996749.map"), fixture("perf-6749.map")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&input).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("8 of 762 unknown frames named"), "{said}");
    let printed = tool("ms_print", &[dir.path().join("massif.out.9996749.jit").to_str().unwrap()]);
    assert!(printed.contains("0x10401083: JIT$/tmp/corpora/callgrind/php/bench.php"), "{printed}");
    let cachegrind = dir.path().join("cachegrind.out.6749");
    fs::write(&cachegrind, "desc: I1 cache: 1\ncmd: php\nevents: Ir\nfl=???\nfn=???\n0 5\nsummary: 5\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(&cachegrind).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no addresses") && said.contains("--tool=callgrind"), "{said}");
}

#[test]
fn stacks_keep_the_total_and_other_inputs_become_callgrind_files() {
    let case = Case::new("moarvm-blocking.callgrind.out.28887", false);
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
