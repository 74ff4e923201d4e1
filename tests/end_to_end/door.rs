//! Attacks by a stranger with links, devices, holes and files of their own on root's runs: the cases that got through
//! once, each with what became of its victim. Where the tests are not run by root, no stranger can be made, and only
//! what needs none is tried.

mod outputs;
mod scripts;
use crate::support;

use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use support::bytes::Order;
use support::jitdump::{JitDump, Line, Load};
use support::perf_data::{CONTEXT_USER, Event, Mmap, Mode, PerfData, Stamp, USER};

const NOBODY: u32 = 65534;
const AT: u64 = 0x1_0000;
const PID: u32 = 999_300;

/// The text that must not be in any output or message.
const SECRET: &str = "correct horse battery staple";

/// `st`: everybody's, sticky, and all in it a stranger's; `victim`: root's alone; `out`: root's, for outputs.
struct Scene(tempfile::TempDir);

impl Scene {
    /// `None` where no stranger can be made.
    fn new() -> Option<Self> {
        let scene = Self(tempfile::tempdir().unwrap());
        for (name, mode) in [("st", 0o1777), ("victim", 0o700), ("out", 0o755), ("tmp", 0o700)] {
            fs::create_dir(scene.at(name)).unwrap();
            fs::set_permissions(scene.at(name), Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(scene.0.path(), Permissions::from_mode(0o755)).unwrap();
        scene.victim("secret", SECRET.as_bytes(), 0o600);
        rustix::process::geteuid().is_root().then_some(scene)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn victim(&self, name: &str, bytes: &[u8], mode: u32) {
        fs::write(self.at("victim").join(name), bytes).unwrap();
        fs::set_permissions(self.at("victim").join(name), Permissions::from_mode(mode)).unwrap();
    }

    /// A stranger's file.
    fn stranger(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at("st").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        self.give_away(name);
        path
    }

    /// A stranger's link.
    fn link(&self, to: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.at("st").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap();
        self.give_away(name);
        path
    }

    /// The file, and the directories below `st` that it is in.
    fn give_away(&self, name: &str) {
        for path in Path::new(name).ancestors().filter(|path| !path.as_os_str().is_empty()) {
            lchown(self.at("st").join(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Runs the program in the stranger's directory.
    fn run(&self, words: &str) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_jitgraft"), "--max-memory", "600M"]);
        command.args(words.split(' ')).current_dir(self.at("st")).stdin(Stdio::null());
        command.env("HOME", self.at("out")).env("TMPDIR", self.at("tmp"));
        command.env_remove("JITDUMPDIR").env_remove("JITGRAFT_OPTS");
        command.output().unwrap()
    }

    /// The output and messages of a run.
    fn told(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.code().is_some(), "{words}: {:?}", output.status);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The content of all outputs.
    fn outputs(&self) -> Vec<u8> {
        let files = fs::read_dir(self.at("out")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file()).flat_map(|path| fs::read(path).unwrap()).collect()
    }

    /// The victims: mode, owner, length, times and hash of each.
    fn victims(&self) -> BTreeMap<PathBuf, String> {
        let entries = fs::read_dir(self.at("victim")).unwrap().map(|entry| entry.unwrap().path());
        let about = |path: PathBuf| {
            let about = fs::symlink_metadata(&path).unwrap();
            let (mode, uid, changed) = (about.mode(), about.uid(), about.ctime_nsec());
            let hash = Sha1::digest(fs::read(&path).unwrap());
            (path, format!("{mode:o} {uid} {changed} {hash:?}"))
        };
        entries.map(about).collect()
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// A recording of one process with JIT code, which maps these files.
fn recording(files: &[&Path]) -> Vec<u8> {
    let mut data = PerfData::with_events(Order::Little, vec![Event::usual()]);
    let stamp = |time: u64| Stamp::new(PID, time);
    data.comm(stamp(1), "program", true);
    data.mmap2(stamp(2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    for (file, number) in files.iter().zip(0..) {
        let addr = 0x70_0000 + 0x10_0000 * number;
        data.mmap2(stamp(3), Mmap { addr, len: 0x1_0000, pgoff: 0, path: file.to_str().unwrap() });
        let at = addr + code_of(file);
        data.sample_of(0, USER, stamp(30 + number), at, &[CONTEXT_USER, at]);
    }
    data.sample_of(0, USER, stamp(20), AT, &[CONTEXT_USER, AT]);
    data.into_bytes(Mode::File)
}

/// A dump of that process, whose code is claimed to come from that file.
fn dump(name: &str, file: &Path) -> Vec<u8> {
    let mut dump = JitDump::new(PID);
    let file = file.to_str().unwrap().as_bytes();
    dump.debug_info(9, AT, &[Line { addr: AT, line: 1, discriminator: 0, file }]);
    dump.load(10, Load { tid: PID, addr: AT, index: 0, name: name.as_bytes(), code: &[0x90; 0x40] });
    dump.into_bytes()
}

/// The place of the code of `binary` in its file; of other files, somewhere.
fn code_of(file: &Path) -> u64 {
    let code = |file: &Path| memchr::memmem::find(&fs::read(file).ok()?, &CODE);
    let is_regular = fs::symlink_metadata(file).is_ok_and(|about| about.is_file());
    Some(file).filter(|_| is_regular).and_then(code).map_or(0x80, |at| at as u64)
}

const CODE: [u8; 0x400] = [0xcc; 0x400];

/// An ELF file with a function `of_a_stranger`.
fn binary() -> Vec<u8> {
    use jitgraft::Addr;
    use jitgraft::internals::bytes::cursor::Endian;
    use jitgraft::internals::formats::elf_image::{Addressing, ImageBuilder, Target};
    use jitgraft::internals::model::code::{Code, OriginId};
    let code = Code::new(b"of_a_stranger", Addr(0x7000), &CODE, OriginId(0));
    let mut builder = ImageBuilder::new(Target::new(62, Endian::Little), Addressing::FileOffset);
    builder.add(&code, code.addr);
    let mut elf = std::io::Cursor::new(Vec::new());
    builder.build().write(&mut elf).unwrap();
    elf.into_inner()
}

/// True if somebody opens a named pipe for reading, until this is queried.
struct Watched {
    pipe: PathBuf,
    writer: std::thread::JoinHandle<()>,
}

impl Watched {
    fn new(pipe: PathBuf) -> Self {
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let path = pipe.clone();
        let writer = std::thread::spawn(move || drop(File::options().write(true).open(path).unwrap()));
        std::thread::sleep(std::time::Duration::from_millis(100));
        Self { pipe, writer }
    }

    fn was_opened(self) -> bool {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let was_opened = self.writer.is_finished();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let _reader = rustix::fs::open(&self.pipe, flags, rustix::fs::Mode::empty()).unwrap();
        self.writer.join().unwrap();
        was_opened
    }
}

const COMMANDS: &[&str] = &[
    "collapse r.data -o ../out/folded",
    "annotate r.data -o ../out/annotated",
    "inject -i r.data -o ../out/injected",
    "doctor r.data -o ../out/doctor",
    "pack r.data -o ../out/packed",
    "view r.data -o ../out/page.html",
];

/// A callgrind profile of MoarVM, which ran code at one address.
fn profile() -> String {
    format!(
        "# callgrind format\nversion: 1\ncreator: callgrind-3\npid: {PID}\ncmd: moar\npart: 1\npositions: instr line\n\
         events: Ir\n\nob=(1) ???\nfl=(1) ???\nfn=(1) 0x{AT:016x}\n0x{AT:x} 0 100\n\ntotals: 100\n"
    )
}

#[test]
fn a_link_to_machine_code_leads_nowhere() {
    let Some(scene) = Scene::new() else { return };
    let map = format!("{AT:x} {:x} compiled\n", SECRET.len());
    fs::write(scene.at("st/perf-999300.map"), map).unwrap();
    fs::write(scene.at("st/callgrind.out.999300"), profile()).unwrap();
    scene.link(scene.at("victim/secret"), "moar-jit.999300/moar-jit-0001.bin");
    let before = scene.victims();
    for words in ["callgrind callgrind.out.999300 -o ../out/named", "annotate callgrind.out.999300 -o ../out/listing"] {
        let said = scene.told(words);
        assert!(!said.contains(SECRET) && !holds(&scene.outputs(), SECRET), "{words}: {said}");
        assert!(said.contains("is a symbolic link"), "{words}: {said}");
    }
    // The same in a directory that is a link itself.
    fs::remove_dir_all(scene.at("st/moar-jit.999300")).unwrap();
    scene.victim("moar-jit-0001.bin", SECRET.as_bytes(), 0o600);
    fs::remove_file(scene.at("victim/secret")).unwrap();
    scene.link(scene.at("victim"), "moar-jit.999300");
    scene.told("callgrind callgrind.out.999300 -o ../out/named");
    assert!(!holds(&scene.outputs(), SECRET));
    // Root's own is read, and what repeats it is as readable as it is.
    fs::remove_file(scene.at("st/moar-jit.999300")).unwrap();
    fs::create_dir(scene.at("st/moar-jit.999300")).unwrap();
    fs::copy(scene.at("victim/moar-jit-0001.bin"), scene.at("st/moar-jit.999300/moar-jit-0001.bin")).unwrap();
    fs::remove_dir_all(scene.at("out")).unwrap();
    fs::create_dir(scene.at("out")).unwrap();
    let said = scene.told("callgrind callgrind.out.999300 -o ../out/mine");
    let images = fs::read_dir(scene.at("out")).unwrap().map(|entry| entry.unwrap().path());
    let of_code: Vec<_> = images.filter(|path| holds(&fs::read(path).unwrap(), SECRET)).collect();
    assert_eq!(of_code.len(), 1, "{said}");
    assert_eq!(fs::metadata(&of_code[0]).unwrap().mode() & 0o777, 0o600);
    assert_eq!(before.len(), scene.victims().len());
}

#[test]
fn a_dump_behind_a_linked_directory_is_not_read() {
    let Some(scene) = Scene::new() else { return };
    let name = "names_that_are_roots_alone";
    scene.victim("jit-999300.dump", &dump(name, Path::new("x.c")), 0o600);
    let linked = scene.link(scene.at("victim"), "linked");
    scene.stranger("r.data", recording(&[&linked.join("jit-999300.dump")]));
    let before = scene.victims();
    for words in COMMANDS {
        let said = scene.told(words);
        assert!(!said.contains(name) && !holds(&scene.outputs(), name), "{words}: {said}");
        assert!(
            said.contains("which somebody else may have put there, so the link was not followed")
                || words.contains("view"),
            "{said}"
        );
    }
    assert_eq!(scene.victims(), before);
}

#[test]
fn a_program_of_a_stranger_is_read_from_a_copy_if_it_is_believed() {
    let Some(scene) = Scene::new() else { return };
    let elf = binary();
    let program = scene.stranger("program", &elf);
    scene.stranger("r.data", recording(&[&program]));
    let said = scene.told("collapse r.data");
    assert!(said.contains("belongs to user 65534, not to root or to you (0); use -f to trust it"), "{said}");
    assert!(!said.contains("of_a_stranger"), "{said}");
    let said = scene.told("collapse -f r.data");
    assert!(said.contains("of_a_stranger"), "{said}");
    // However often it is cut meanwhile, no run ends by that.
    for _ in 0..20 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        child.args(["collapse", "-f", "r.data"]).current_dir(scene.at("st")).stdout(Stdio::null());
        let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            fs::write(&program, b"").unwrap();
            fs::write(&program, &elf).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(!said.contains("became shorter"), "{said}");
    }
}

#[test]
fn pipes_and_devices_are_not_opened() {
    let Some(scene) = Scene::new() else { return };
    for name in ["program.so", "jit-999300.dump", "perf-999300.map"] {
        let pipe = scene.at("st").join(name);
        scene.stranger("r.data", recording(&[&pipe]));
        for words in COMMANDS {
            let watched = Watched::new(pipe.clone());
            let said = scene.told(words);
            assert!(!watched.was_opened(), "{words} has opened {name}: {said}");
            fs::remove_file(&pipe).unwrap();
        }
    }
}

/// A process that does nothing, as this user, until it is dropped; and its map in /tmp.
struct Sleeper(Child, PathBuf);

impl Sleeper {
    fn of(user: u32) -> Self {
        use std::os::unix::process::CommandExt;
        let child = Command::new("sleep").arg("60").uid(user).spawn().unwrap();
        let map = PathBuf::from(format!("/tmp/perf-{}.map", child.id()));
        Self(child, map)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait(), fs::remove_file(&self.1));
    }
}

#[test]
fn a_map_that_is_mostly_a_hole_is_not_read_whole() {
    let Some(scene) = Scene::new() else { return };
    for (of_process, of_map, said_of_it) in
        [(0, NOBODY, "belongs to user 65534"), (NOBODY, NOBODY, "with a hole of"), (NOBODY, 0, "with a hole of")]
    {
        let sleeper = Sleeper::of(of_process);
        let mut map = File::create(&sleeper.1).unwrap();
        map.write_all(&b"10000 40 f\n".repeat(1000)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&map, b"20000 40 g\n", 40 << 30).unwrap();
        chown(&sleeper.1, Some(of_map), None).unwrap();
        let start = std::time::Instant::now();
        let said = scene.told(&format!("doctor {}", sleeper.0.id()));
        assert!(said.contains(said_of_it), "{of_process} {of_map}: {said}");
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}

#[test]
fn source_text_is_shown_by_root_only_if_everybody_can_get_to_it() {
    let Some(scene) = Scene::new() else { return };
    scene.victim("secret.c", SECRET.as_bytes(), 0o644);
    let source = scene.at("victim/secret.c");
    let path = scene.at("st/jit-999300.dump");
    fs::write(&path, dump("f", &source)).unwrap();
    scene.stranger("r.data", recording(&[&path]));
    let annotate = "annotate r.data --format json -o ../out/hot.json";
    let said = scene.told(annotate);
    assert!(!said.contains(SECRET) && !holds(&scene.outputs(), SECRET), "{said}");
    assert!(said.contains("not world-readable"), "{said}");
    fs::set_permissions(scene.at("victim"), Permissions::from_mode(0o755)).unwrap();
    let said = scene.told(annotate);
    assert!(holds(&scene.outputs(), SECRET), "{said}");
}

#[test]
fn a_source_file_that_is_read_is_not_an_output() {
    let scene = tempfile::tempdir().unwrap();
    fs::set_permissions(scene.path(), Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| scene.path().join(name);
    fs::write(at("s.c"), "int work(void);\n").unwrap();
    fs::write(at("jit-999300.dump"), dump("work", &at("s.c"))).unwrap();
    fs::write(at("r.data"), recording(&[&at("jit-999300.dump")])).unwrap();
    let annotate = |output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["annotate", "r.data", "-o", output]).current_dir(scene.path()).stdin(Stdio::null());
        command.output().unwrap()
    };
    let listed = annotate("listing");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(fs::read_to_string(at("listing")).unwrap().contains("int work(void)"), "its text is shown");
    let refused = annotate("s.c");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("is also an input"), "{said}");
    assert_eq!(fs::read_to_string(at("s.c")).unwrap(), "int work(void);\n");
}

#[test]
fn no_output_goes_where_a_strangers_link_leads() {
    let Some(scene) = Scene::new() else { return };
    scene.victim("out.svg", b"old", 0o644);
    scene.stranger("in.folded", "main;f 4\n");
    let before = scene.victims();
    scene.link(scene.at("victim/out.svg"), "st.svg");
    scene.link(scene.at("victim/new.svg"), "new.svg");
    scene.link(scene.at("victim"), "linked");
    // Root's own, where anybody could have exchanged it.
    symlink(scene.at("victim/out.svg"), scene.at("st/own.svg")).unwrap();
    for output in ["st.svg", "new.svg", "linked/out.svg", "linked/new.svg", "own.svg", "../st/linked/../st.svg"] {
        let refused = scene.run(&format!("flamegraph in.folded -o {output}"));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{output}: {said}");
        assert!(said.contains("not followed") && said.lines().count() == 1, "{output}: {said}");
        assert_eq!(scene.victims(), before, "{output}");
    }
    symlink("victim/out.svg", scene.at("through.svg")).unwrap();
    assert!(
        scene.run("flamegraph in.folded -o ../through.svg").status.success(),
        "a link of root's in root's directory"
    );
    assert!(fs::read(scene.at("victim/out.svg")).unwrap().len() > 1000);
}

/// An access list (acl(5)) as the kernel has it: the owner and `user` may read and write, its group may not, up to the
/// mask.
fn access_list(user: u32) -> Vec<u8> {
    const ANYBODY: u32 = u32::MAX;
    let entries = [(1u16, 6u16, ANYBODY), (2, 6, user), (4, 0, ANYBODY), (0x10, 6, ANYBODY), (0x20, 0, ANYBODY)];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()));
    }
    list
}

#[test]
fn a_replacing_file_is_no_more_open_than_the_old_one() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("in.folded"), "main;f 4\n").unwrap();
    fs::write(at("out.svg"), "old").unwrap();
    let list = access_list(12_345);
    let listed = setxattr(at("out.svg"), c"system.posix_acl_access", &list, XattrFlags::empty());
    let noted = setxattr(at("out.svg"), c"user.note", b"of somebody", XattrFlags::empty());
    if listed.is_err() || noted.is_err() {
        eprintln!("{}: no access lists here: nothing can be lost", dir.path().display());
        return;
    }
    let draw = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["flamegraph", "in.folded", "-o", "out.svg"]).current_dir(dir.path()).stdin(Stdio::null());
        assert!(command.status().unwrap().success());
    };
    let attribute = |name: &std::ffi::CStr| {
        let mut value = [0; 256];
        getxattr(at("out.svg"), name, &mut value[..]).map(|len| value[..len].to_vec()).ok()
    };
    draw();
    assert!(fs::read(at("out.svg")).unwrap().len() > 1000);
    assert_eq!(attribute(c"system.posix_acl_access"), Some(list.clone()));
    assert_eq!(attribute(c"user.note").as_deref(), Some(&b"of somebody"[..]));
    assert_eq!(fs::metadata(at("out.svg")).unwrap().mode() & 0o777, 0o660, "the group's bits are the mask");
    // One without a list, in a directory that gives new files one.
    fs::remove_file(at("out.svg")).unwrap();
    fs::write(at("out.svg"), "old").unwrap();
    fs::set_permissions(at("out.svg"), Permissions::from_mode(0o640)).unwrap();
    setxattr(dir.path(), c"system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
    draw();
    assert_eq!(attribute(c"system.posix_acl_access"), None);
    assert_eq!(fs::metadata(at("out.svg")).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn a_closed_standard_output_is_an_error_and_so_is_one_that_takes_a_part() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("in.folded"), "main;f 4\n".repeat(10)).unwrap();
    let run = |script: &str| {
        let script = script.replace("jitgraft", env!("CARGO_BIN_EXE_jitgraft"));
        Command::new("sh").args(["-c", &script]).current_dir(dir.path()).stdin(Stdio::null()).output().unwrap()
    };
    for words in ["collapse in.folded", "collapse in.folded -o /dev/stdout", "formats", "runtimes", "inputs", "--help"]
    {
        let output = run(&format!("exec jitgraft {words} >&-"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("is closed") || words == "--help", "{words}: {said}");
        let output = run(&format!("exec prlimit --fsize=8 jitgraft {words} > short"));
        assert_eq!(output.status.code(), Some(1), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(run(&format!("exec jitgraft {words} > /dev/null")).status.success(), "{words}");
    }
    assert!(run("exec jitgraft collapse in.folded -o named >&-").status.success(), "nothing is written there");
}

#[test]
fn callgrind_states_why_a_map_is_not_used() {
    let Some(scene) = Scene::new() else { return };
    scene.stranger("perf-999300.map", format!("{AT:x} 40 compiled\n"));
    let profile = format!(
        "# callgrind format\nversion: 1\ncreator: callgrind-3\npid: {PID}\ncmd: php\npart: 1\npositions: instr line\n\
         events: Ir\n\nob=(1) ???\nfl=(1) ???\nfn=(1) 0x{AT:016x}\n0x{AT:x} 0 100\n\ntotals: 100\n"
    );
    fs::write(scene.at("st/callgrind.out.999300"), profile).unwrap();
    let refused = scene.run("callgrind callgrind.out.999300 -o ../out/named");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("perf-999300.map: belongs to user 65534") && said.contains("use -f"), "{said}");
    assert!(scene.run("callgrind -f callgrind.out.999300 -o ../out/named").status.success());
}

#[test]
fn a_line_of_many_megabytes_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let megabytes = if support::effort::is_thorough() { 64 } else { 5 };
    let text = format!("main;{};leaf 1\nmain;f 4\n", "a".repeat(megabytes << 20));
    fs::write(dir.path().join("long.folded"), &text).unwrap();
    let script = format!(
        "exec {0} collapse long.folded > plain; cat long.folded | {0} collapse > piped",
        env!("CARGO_BIN_EXE_jitgraft")
    );
    let script = script.replace("exec ", "");
    let output = Command::new("sh").args(["-ec", &script]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["plain", "piped"] {
        let folded = fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(folded.len() == text.len() && folded.lines().count() == 2, "{name}: {} bytes", folded.len());
    }
}
