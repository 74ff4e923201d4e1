//! A directory full of recordings that were made to do harm, and what they name, read by every command one after the
//! other, as root reads what strangers left in /tmp: what is not in the output directory stays as it was, nothing of
//! the secrets is reported, and each run ends, in bounded memory and with little left on disk.

use crate::support;

use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::bytes::Order;
use support::effort;
use support::jitdump::{JitDump, Line, Load};
use support::perf_data::{CONTEXT_USER, Event, IDENTIFIER, Mmap, Mode, PerfData, Stamp, USER, USUAL};

const AT: u64 = 0x1_0000;
const FIRST_PID: u32 = 999_100;
const NOBODY: u32 = 65534;

/// The text that must not be in any output or message.
const SECRET: &str = "correct horse battery staple";

/// So much memory of its own each run may take, beside what the program takes to be loaded.
const MEMORY: &str = "600M";

/// So much disk all outputs together may take.
const DISK: u64 = 400 << 20;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["in", "out", "home", "tmp", "victim"] {
            fs::create_dir(place.at(name)).unwrap();
        }
        // Others must be able to go there, as to /tmp.
        fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(place.at("in"), fs::Permissions::from_mode(0o1777)).unwrap();
        for (name, mode) in [("secret", 0o600), ("out.svg", 0o644), ("jitted-999100.so", 0o644)] {
            fs::write(place.at("victim").join(name), format!("{SECRET}\n{SECRET}\n")).unwrap();
            fs::set_permissions(place.at("victim").join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn input(&self, name: &str) -> PathBuf {
        self.at("in").join(name)
    }

    fn victim(&self) -> String {
        self.at("victim/secret").to_str().unwrap().to_owned()
    }

    /// A file of a stranger's, where strangers can be made.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.input(name), bytes).unwrap();
        self.give_away(name);
    }

    fn give_away(&self, name: &str) {
        let _ = std::os::unix::fs::lchown(self.input(name), Some(NOBODY), Some(NOBODY));
    }
}

/// Everything in a directory: kind, mode, owner, length and what is in it.
fn listing(directory: &Path, into: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let (path, about) = (entry.path(), fs::symlink_metadata(entry.path()).unwrap());
        let kind = about.file_type();
        let content = match kind {
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
            // For a file that mostly holes the length and times are enough.
            kind if kind.is_file() && about.len() < 64 << 20 => hex(&Sha1::digest(fs::read(&path).unwrap())),
            _ => String::new(),
        };
        let (mode, uid, len) = (about.mode(), about.uid(), if kind.is_dir() { 0 } else { about.len() });
        let changed = if kind.is_dir() { 0 } else { about.mtime_nsec() };
        into.insert(path.clone(), format!("{mode:o} {uid} {len} {changed} {content}"));
        if kind.is_dir() {
            listing(&path, into);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A recording of one process with JIT code, which maps these files.
fn recording(pid: u32, events: &[&'static str], files: &[&str]) -> PerfData {
    let sample_type = if events.len() > 1 { USUAL | IDENTIFIER } else { USUAL };
    let ids = |id: u64| if events.len() > 1 { vec![id] } else { Vec::new() };
    let event = |(&name, id): (&&'static str, u64)| Event { name, sample_type, ids: ids(id), ..Event::usual() };
    let mut data = PerfData::with_events(Order::Little, events.iter().zip(1..).map(event).collect());
    let stamp = |time: u64, id: u64| Stamp { id, ..Stamp::new(pid, time) };
    data.comm(stamp(1, 1), "\x1b[2J../..", true);
    data.mmap2(stamp(2, 1), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    for (file, number) in files.iter().zip(0..) {
        let addr = 0x70_0000 + 0x10_0000 * number;
        data.mmap2(stamp(3, 1), Mmap { addr, len: 0x1000, pgoff: 0, path: file });
        data.sample_of(0, USER, stamp(30 + number, 1), addr + 0x10, &[CONTEXT_USER, addr + 0x10, AT]);
    }
    for (event, id) in (0..events.len()).zip(1..) {
        data.sample_of(event, USER, stamp(20 + id, id), AT, &[CONTEXT_USER, AT, AT + 0x100]);
    }
    data
}

/// A dump of that process, whose code is claimed to come from that file.
fn dump(pid: u32, name: &[u8], file: &[u8]) -> Vec<u8> {
    let mut dump = JitDump::new(pid);
    dump.debug_info(9, AT, &[Line { addr: AT, line: 1, discriminator: 0, file }]);
    dump.load(10, Load { tid: pid, addr: AT, index: 0, name, code: &[0x90; 0x40] });
    dump.into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// All of them, made: what to give to commands. Those that are not recordings but what recordings find are next to.
fn hostile(place: &Place) -> Vec<String> {
    let mut names = Recordings { place, names: Vec::new() };
    names.that_name_files();
    names.with_dumps_that_are_none();
    names.with_odd_events();
    names.damaged();
    names.packed();
    names.texts();
    names.directories();
    names.names
}

struct Recordings<'a> {
    place: &'a Place,
    names: Vec<String>,
}

impl Recordings<'_> {
    fn pid(&self) -> u32 {
        FIRST_PID + self.names.len() as u32
    }

    fn add(&mut self, bytes: impl AsRef<[u8]>) {
        let name = format!("{:02}.data", self.names.len());
        self.place.write(&name, bytes);
        self.names.push(name);
    }

    /// One whose process has a dump at a place of that name.
    fn add_with_dump(&mut self, make: impl FnOnce(&Path, u32)) {
        let pid = self.pid();
        let dump = self.place.input(&format!("jit-{pid}.dump"));
        make(&dump, pid);
        self.place.give_away(&format!("jit-{pid}.dump"));
        self.add(recording(pid, &["cpu-clock"], &[dump.to_str().unwrap()]).into_bytes(Mode::File));
    }

    fn that_name_files(&mut self) {
        let victim = self.place.victim();
        let above = format!("{}/../victim/secret", self.place.at("in").display());
        let endless = ["/dev/zero", "/proc/kmsg", "/proc/self/mem", "/dev/tty", "/dev/random", "/proc/self/fd/0"];
        let fifo = self.place.input("pipe.so");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let link = self.place.input("link.so");
        symlink(&victim, &link).unwrap();
        for files in [
            vec![victim.as_str()],
            vec![&above],
            endless.to_vec(),
            vec![fifo.to_str().unwrap()],
            vec![link.to_str().unwrap(), "/etc/shadow"],
            vec!["/", "//", "", "/.", "relative/../../x", "/nowhere\n/etc/shadow"],
        ] {
            let data = recording(self.pid(), &["cpu-clock"], &files);
            self.add(data.into_bytes(Mode::File));
        }
        // A marker that is the victim.
        let dump = self.place.at("victim").join(format!("jit-{}.dump", self.pid()));
        fs::write(&dump, SECRET).unwrap();
        let data = recording(self.pid(), &["cpu-clock"], &[dump.to_str().unwrap()]);
        self.add(data.into_bytes(Mode::Pipe));
    }

    fn with_dumps_that_are_none(&mut self) {
        let victim = self.place.victim();
        self.add_with_dump(|path, _| symlink(&victim, path).unwrap());
        self.add_with_dump(|path, _| symlink("/dev/zero", path).unwrap());
        self.add_with_dump(|path, _| fs::create_dir(path).unwrap());
        self.add_with_dump(|path, _| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()));
        self.add_with_dump(|path, _| File::create(path).unwrap().set_len(60 << 30).unwrap());
        self.add_with_dump(|path, pid| {
            fs::write(path, dump(pid, b"f", victim.as_bytes())).unwrap();
            File::options().write(true).open(path).unwrap().set_len(60 << 30).unwrap();
        });
        // Lines of code that come from the victim: its text is nobody's.
        self.add_with_dump(|path, pid| fs::write(path, dump(pid, b"../../victim/f", victim.as_bytes())).unwrap());
        self.add_with_dump(|path, pid| {
            fs::write(path, dump(pid, &b"\x1b]0;x\x07".repeat(150_000), b"/dev/zero")).unwrap()
        });
        self.add_with_dump(|path, pid| {
            let mut bytes = dump(pid, b"f", b"x");
            let at = bytes.len() - 200;
            bytes[at..].fill(0xff);
            fs::write(path, bytes).unwrap();
        });
        let long = format!("10000 40 {}", "a".repeat(1 << 20));
        for map in ["0 ffffffffffffffff all\n".to_owned(), long] {
            let pid = self.pid();
            self.place.write(&format!("perf-{pid}.map"), map);
            self.add(recording(pid, &["cpu-clock"], &[]).into_bytes(Mode::File));
        }
        let pid = self.pid();
        symlink(&victim, self.place.input(&format!("perf-{pid}.map"))).unwrap();
        symlink(self.place.at("victim/jitted-999100.so"), self.place.at(&format!("out/jitted-{pid}.so"))).unwrap();
        self.add(recording(pid, &["cpu-clock"], &[]).into_bytes(Mode::File));
        let pid = self.pid();
        symlink(&victim, self.place.input(&format!("core.{pid}"))).unwrap();
        self.place.write("v8.log", format!("v8-version,1,2,3,4,0\ncode-creation,JS,0,0,0x10000,64,{victim},0x1,*\n"));
        self.add(recording(pid, &["cpu-clock"], &[]).into_bytes(Mode::File));
    }

    fn with_odd_events(&mut self) {
        for events in [
            &["../../victim/secret", "x"][..],
            &["a/b", "a_b"],
            &["/", "."],
            &["\x1b[2J</script>", "=cmd|'/C calc'!A0"],
        ] {
            let data = recording(self.pid(), events, &[]);
            self.add(data.into_bytes(Mode::File));
        }
        for pid in [0, u32::MAX, 1 << 31, 1] {
            self.add(recording(pid, &["cpu-clock"], &["/proc/self/exe"]).into_bytes(Mode::File));
        }
        let mut data = recording(self.pid(), &["cpu-clock"], &[]);
        // `HEADER_HOSTNAME`
        data.string_feature(3, "../../../victim");
        self.add(data.into_bytes(Mode::File));
    }

    fn damaged(&mut self) {
        let whole = recording(self.pid(), &["a", "b"], &["/bin/true"]).into_bytes(Mode::File);
        for end in [3, 50, whole.len() / 2, whole.len() - 1] {
            self.add(&whole[..end]);
        }
        // Places and lengths in the header: of attributes, records and features.
        for word in [2, 3, 4, 5, 6, 7, 9] {
            let mut bytes = whole.clone();
            bytes[word * 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes()[..8]);
            self.add(bytes);
        }
    }

    fn packed(&mut self) {
        let whole = recording(self.pid(), &["cpu-clock"], &[]).into_bytes(Mode::File);
        let bomb: Vec<u8> = whole.iter().copied().chain(std::iter::repeat_n(0, 32 << 20)).collect();
        self.add(gzip(&bomb));
        self.add(zstd(&bomb));
        self.add(gzip(&gzip(&gzip(&bomb))));
        self.add(gzip(&gzip(&gzip(&gzip(&gzip(&whole))))));
        self.add(zstd(&vec![b'a'; 32 << 20]));
    }

    fn texts(&mut self) {
        let victim = self.place.victim();
        self.add(format!("main{} 1\n", ";f".repeat(20_000)));
        self.add("[".repeat(200_000));
        self.add(format!("{{\"traceEvents\":[{}", "{\"args\":".repeat(50_000)));
        self.add(r#"{"traceEvents":[{"name":"a","ph":"X","ts":-1e308,"dur":1e308,"pid":1,"tid":1}]}"#);
        self.add(format!(
            "# callgrind format\nevents: Ir\nob={victim}\nfl={victim}\nfn=(1) f\n1 18446744073709551615\nfn=(9)\n"
        ));
        self.add(format!("program 77 1.000000: 1 cycles: \n\t    10040 f+0x4 ({victim})\n\n"));
    }

    fn directories(&mut self) {
        let victim = self.place.victim();
        let whole = recording(self.pid(), &["cpu-clock"], &[]).into_bytes(Mode::File);
        for part in 0..3 {
            let name = format!("{:02}.dir", self.names.len());
            let (directory, part_path) = (self.place.input(&name), self.place.input(&name).join("data.1"));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("data"), &whole).unwrap();
            match part {
                0 => assert!(Command::new("mkfifo").arg(&part_path).status().unwrap().success()),
                1 => symlink(&victim, &part_path).unwrap(),
                _ => symlink("/dev/zero", &part_path).unwrap(),
            }
            let _ = chown(&directory, Some(NOBODY), Some(NOBODY));
            self.names.push(name);
        }
    }
}

/// The commands that are run on each; outputs go into one directory.
const COMMANDS: &[&str] = &[
    "inject -i IN -o ../out/NAME.injected",
    "inject --cache --relocate -i IN -o ../out/NAME.relocated",
    "script IN -o ../out/NAME.script",
    "collapse IN -o ../out/NAME.folded",
    "flamegraph IN -o ../out/out.svg",
    "report IN -o ../out/NAME.txt",
    "export --to pprof IN -o ../out/NAME.pb.gz",
    "export --to firefox IN -o ../out/NAME.json",
    "annotate --limit 5 IN -o ../out/NAME.annotated",
    "view IN -o ../out/NAME.html",
    "doctor IN -o ../out/NAME.doctor",
    "pack --with sources,scripts IN -o ../out/NAME.tar.zst",
    "stats IN -o ../out/NAME.stats",
    "callgrind IN -o ../out/NAME.callgrind",
];

fn run(place: &Place, words: &str, input: &str) -> Output {
    let words = words.replace("IN", input).replace("NAME", input);
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_jitgraft"), "--max-memory", MEMORY]);
    command.args(words.split(' ')).current_dir(place.at("in")).stdin(Stdio::null());
    command.env("HOME", place.at("out")).env("TMPDIR", place.at("tmp"));
    command.env_remove("JITDUMPDIR").env_remove("JITGRAFT_OPTS");
    command.output().unwrap()
}

fn everything_but_outputs(place: &Place) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for name in ["in", "home", "tmp", "victim"] {
        listing(&place.at(name), &mut all);
    }
    // More to be watched, by hand: directories, separated by `:`.
    for directory in std::env::var_os("JITGRAFT_WATCH").iter().flat_map(std::env::split_paths) {
        listing(&directory, &mut all);
    }
    all
}

#[test]
fn fifty_hostile_recordings_in_a_row_change_nothing_and_show_nothing() {
    let place = Place::new();
    let step = effort::step(5);
    let names = hostile(&place);
    assert!(names.len() >= 50, "only {}", names.len());
    let before = everything_but_outputs(&place);
    let mut slowest = (Duration::ZERO, String::new());
    for name in names.iter().step_by(step) {
        for words in COMMANDS {
            let start = Instant::now();
            let output = run(&place, words, name);
            let said = [&output.stdout[..], &output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let code = output.status.code();
            assert!(matches!(code, Some(0..=2)), "{words} on {name}: {:?}: {said:.2000}", output.status);
            assert!(code == Some(0) || said.contains("error: "), "{words} on {name} says nothing: {said}");
            assert!(!said.contains(SECRET), "{words} on {name} tells what it must not: {said:.2000}");
            assert!(!said.contains('\x1b'), "{words} on {name}: {said:.2000}");
            slowest = slowest.max((start.elapsed(), format!("{words} on {name}")));
        }
    }
    let after = everything_but_outputs(&place);
    let changed: Vec<_> = after.iter().filter(|(path, about)| before.get(*path) != Some(about)).collect();
    assert!(changed.is_empty(), "changed or new: {changed:#?}");
    assert_eq!(after.len(), before.len(), "something is gone");
    let mut outputs = BTreeMap::new();
    listing(&place.at("out"), &mut outputs);
    let taken: u64 = outputs.keys().map(|path| fs::symlink_metadata(path).unwrap().blocks() * 512).sum();
    assert!(taken < DISK, "{taken} bytes of disk");
    for path in outputs.keys().filter(|path| fs::symlink_metadata(path).unwrap().is_file()) {
        let bytes = fs::read(path).unwrap();
        let tells = memchr::memmem::find(&bytes, SECRET.as_bytes()).is_some();
        assert!(!tells, "{} tells what it must not", path.display());
    }
    println!("{} recordings, {taken} bytes of outputs, slowest {slowest:?}", names.len().div_ceil(step));
}
