//! No run writes over what it reads: every job, every kind of input, every way in which two paths can be one file.

use crate::support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::bytes::Order;
use support::jitdump::{JitDump, Load};
use support::perf_data::{
    CONTEXT_USER, Event, IDENTIFIER, Mmap, Mode, More, PerfData, REGS_USER, STACK_USER, Stamp, USER, USUAL,
};
use support::tool::small_program;

const PID: u32 = 999_077;
const AT: u64 = 0x1_0000;
const STACKS: &str = "main;f 3\nmain;f;g 4\n";

/// A directory with one input of each kind, and with what names its code.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        let marker = scene.path(&dump());
        scene.write("stacks", STACKS);
        scene.write("perf.data", recording(&["cpu-clock"], &marker));
        scene.write(&dump(), jitdump());
        scene.write(&map(), format!("{:x} 40 mapped\n", AT + 0x100));
        scene.write("text", fs::read(fixture("script-layouts/default.txt")).unwrap());
        scene.write("trace.json", fs::read(fixture("trace-miri/input.json")).unwrap());
        let profile = fs::read(fixture("callgrind-jit/php-sepcallers.callgrind.zst")).unwrap();
        scene.write("callgrind.out", zstd::decode_all(&profile[..]).unwrap());
        scene.write("callgrind.map", fs::read(fixture("callgrind-jit/php-sepcallers.map")).unwrap());
        fs::copy(small_program(), scene.path("object")).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program, run in the directory by words that are separated by spaces.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(words.split(' ')).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("HOME", self.0.path()).env_remove("JITDUMPDIR");
        command
    }

    fn done(&self, words: &str) -> String {
        done(&mut self.command(words))
    }

    /// A link that leads where `/dev/stdout` does, but is not a loss if it is replaced.
    fn link_to_stdout(&self) -> &'static str {
        symlink("/proc/self/fd/1", self.path("stdout")).unwrap();
        "stdout"
    }

    /// Refused as a misuse, and every file and link is there as it was, and no other.
    fn refuses(&self, words: &str) {
        self.refuses_run(&mut self.command(words));
    }

    fn refuses_run(&self, command: &mut Command) {
        let before = self.content();
        let output = command.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.contains("choose another output"), "{command:?}: {said}");
        let after = self.content();
        let names = |content: &BTreeMap<PathBuf, Vec<u8>>| content.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&before), "{command:?}");
        let changed: Vec<_> = before.iter().filter(|(path, bytes)| after[*path] != **bytes).collect();
        assert!(changed.is_empty(), "{command:?} changes {:?}", changed[0].0);
        assert!(output.stdout.is_empty(), "{command:?} writes to standard output");
    }

    /// Everything below the directory: files by their bytes, links by where they lead.
    fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut content, mut left) = (BTreeMap::new(), vec![self.0.path().to_owned()]);
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
                if kind.is_dir() {
                    left.push(path);
                } else if kind.is_symlink() {
                    let to = fs::read_link(&path).unwrap();
                    content.insert(path, to.into_os_string().into_encoded_bytes());
                } else {
                    let bytes = fs::read(&path).unwrap();
                    content.insert(path, bytes);
                }
            }
        }
        content
    }
}

fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn dump() -> String {
    format!("jit-{PID}.dump")
}

fn map() -> String {
    format!("perf-{PID}.map")
}

fn jitdump() -> Vec<u8> {
    let mut dump = JitDump::new(PID);
    dump.load(10, Load { tid: PID, addr: AT, index: 0, name: b"dumped", code: &[0x90; 0x40] });
    dump.into_bytes()
}

/// A process with code that a dump and a map name, sampled by these events.
fn recording(events: &[&'static str], marker: &Path) -> Vec<u8> {
    let sample_type = if events.len() > 1 { USUAL | IDENTIFIER } else { USUAL };
    let ids = |id: u64| if events.len() > 1 { vec![id] } else { Vec::new() };
    let event = |(&name, id): (&&'static str, u64)| Event { name, sample_type, ids: ids(id), ..Event::usual() };
    let mut data = PerfData::with_events(Order::Little, events.iter().zip(1..).map(event).collect());
    let stamp = |time: u64, id: u64| Stamp { id, ..Stamp::new(PID, time) };
    data.comm(stamp(1, 1), "program", true);
    data.mmap2(stamp(2, 1), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    data.mmap2(stamp(3, 1), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker.to_str().unwrap() });
    for (event, id) in (0..events.len()).zip(1..) {
        for addr in [AT, AT + 0x100] {
            data.sample_of(event, USER, stamp(20 + id, id), addr, &[CONTEXT_USER, addr]);
        }
    }
    data.into_bytes(Mode::File)
}

#[test]
fn no_job_writes_over_its_input() {
    let scene = Scene::new();
    // Under a name that commands accept which write no recordings.
    fs::copy(scene.path("perf.data"), scene.path("recorded")).unwrap();
    for words in [
        "flamegraph stacks -o stacks",
        "flamegraph recorded -o recorded",
        "collapse recorded -o recorded",
        "collapse text -o text",
        "collapse trace.json -o trace.json",
        "report stacks -o stacks",
        "export --to speedscope stacks -o stacks",
        "export --to pprof recorded -o recorded",
        "export --to chrome trace.json -o trace.json",
        "doctor recorded -o recorded",
        "stats trace.json -o trace.json",
        "stats --spans trace.json -o trace.json",
        "script recorded -o recorded",
        "script text -o text",
        "callgrind callgrind.out --perf-map callgrind.map -o callgrind.out",
        "inject -i perf.data -o perf.data",
        "annotate recorded -o recorded",
        "view --no-open recorded -o recorded",
        "merge --to folded stacks stacks -o stacks",
        "export --to folded recorded -o recorded",
        #[cfg(feature = "tables")]
        "export --to parquet recorded -o recorded",
    ] {
        scene.refuses(words);
    }
}

#[test]
fn an_input_is_known_by_any_name() {
    let scene = Scene::new();
    fs::create_dir(scene.path("below")).unwrap();
    fs::hard_link(scene.path("stacks"), scene.path("hard")).unwrap();
    symlink("stacks", scene.path("soft")).unwrap();
    symlink("../soft", scene.path("below/softer")).unwrap();
    let absolute = scene.path("stacks");
    for output in ["hard", "soft", "below/softer", "below/../stacks", "./stacks", absolute.to_str().unwrap()] {
        scene.refuses(&format!("collapse stacks -o {output}"));
        scene.refuses(&format!("collapse {output} -o stacks"));
    }
}

#[test]
fn one_of_several_inputs_is_not_an_output() {
    let scene = Scene::new();
    scene.write("other", STACKS);
    scene.write("other.json", fs::read(scene.path("trace.json")).unwrap());
    scene.refuses("collapse stacks other -o other");
    scene.refuses("flamegraph stacks --diff other -o other");
    scene.refuses("stats trace.json other.json -o other.json");
    scene.refuses("export --to chrome trace.json other.json -o other.json");
    fs::copy(scene.path("perf.data"), scene.path("also")).unwrap();
    scene.refuses("doctor perf.data also -o also");
}

#[test]
fn standard_input_is_an_input() {
    let scene = Scene::new();
    // Under a name that commands accept which write no recordings.
    fs::copy(scene.path("perf.data"), scene.path("recorded")).unwrap();
    for words in [
        "inject -o perf.data",
        "script -o recorded",
        "collapse - -o recorded",
        "callgrind --perf-map callgrind.map - -o callgrind.out",
        "script -o text",
        "stats - -o trace.json",
        "flamegraph /dev/stdin -o stacks",
    ] {
        let input = words.rsplit(' ').next().unwrap();
        scene.refuses_run(scene.command(words).stdin(File::open(scene.path(input)).unwrap()));
    }
}

#[test]
fn standard_output_that_is_an_input_is_refused() {
    let scene = Scene::new();
    scene.link_to_stdout();
    for (words, file) in [
        ("collapse stacks", "stacks"),
        ("inject -i perf.data", "perf.data"),
        ("script text", "text"),
        ("doctor perf.data", "perf.data"),
        ("stats trace.json", "trace.json"),
        ("flamegraph stacks -o stdout", "stacks"),
        ("callgrind callgrind.out --perf-map callgrind.map -o - --object other", "callgrind.out"),
    ] {
        let appending = File::options().append(true).open(scene.path(file)).unwrap();
        scene.refuses_run(scene.command(words).stdout(appending));
        // `1<> file` of a shell.
        let in_place = File::options().read(true).write(true).open(scene.path(file)).unwrap();
        scene.refuses_run(scene.command(words).stdout(in_place));
    }
    let read = File::open(scene.path("stacks")).unwrap();
    let appending = File::options().append(true).open(scene.path("stacks")).unwrap();
    scene.refuses_run(scene.command("collapse -").stdin(read).stdout(appending));
}

#[test]
fn a_descriptor_that_is_an_input_is_refused() {
    let scene = Scene::new();
    let program = env!("CARGO_BIN_EXE_jitgraft");
    // A file of this process, which is the shell's; and of another one, which has it open still.
    for output in ["/dev/fd/7", "/proc/self/fd/7", "/proc/thread-self/fd/7", "/proc/$$/fd/7"] {
        for (words, file) in
            [("collapse stacks", "stacks"), ("inject -i perf.data", "perf.data"), ("report -", "stacks")]
        {
            let script = format!("exec 7>>{file}; {program} {words} -o {output} <{file}; exit $?");
            let mut command = Command::new("sh");
            command.args(["-c", &script]).current_dir(scene.0.path());
            scene.refuses_run(&mut command);
        }
    }
}

#[test]
#[ignore = "needs unshare: tests/run.sh --all"]
fn a_place_where_an_input_is_mounted_is_that_input() {
    let scene = Scene::new();
    scene.write("bound", "");
    fs::create_dir(scene.path("below")).unwrap();
    let program = env!("CARGO_BIN_EXE_jitgraft");
    for output in ["bound", "below/stacks"] {
        let script =
            format!("mount --bind stacks bound && mount --bind . below && {program} collapse stacks -o {output}");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]).current_dir(scene.0.path());
        scene.refuses_run(&mut command);
    }
    // A mounted file cannot be replaced.
    let script = format!("mount --bind perf.data bound && {program} collapse stacks -o bound");
    let mut command = Command::new("unshare");
    let output = command.args(["-rm", "sh", "-c", &script]).current_dir(scene.0.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("the finished temporary file cannot be renamed to this name"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_directory_is_not_an_output() {
    let scene = Scene::new();
    fs::create_dir(scene.path("below")).unwrap();
    symlink("below", scene.path("link")).unwrap();
    for output in ["below", "link", "below/", ".", "new/"] {
        for words in ["collapse stacks", "inject -i perf.data", "view --no-open stacks"] {
            let before = scene.content();
            let output = scene.command(&format!("{words} -o {output}")).output().unwrap();
            assert!(!output.status.success(), "{words}: {}", stderr(&output));
            assert!(stderr(&output).contains("director"), "{words}: {}", stderr(&output));
            assert!(scene.content() == before, "{words} made something");
        }
    }
}

#[test]
fn an_image_is_not_put_where_an_input_of_its_name_is() {
    let scene = Scene::new();
    let image = format!("jitted-{PID}.so");
    // The recording itself is called as the image would be.
    fs::copy(scene.path("perf.data"), scene.path(&image)).unwrap();
    let recording = fs::read(scene.path(&image)).unwrap();
    scene.done(&format!("inject -i {image} -o new.data"));
    assert!(fs::read(scene.path(&image)).unwrap() == recording);
    assert!(scene.path(&format!("jitted-{PID}.2.so")).exists());
    // A link of that name, which leads to what must not be touched, and one that leads nowhere.
    for target in ["object", "nowhere"] {
        let scene = Scene::new();
        symlink(target, scene.path(&image)).unwrap();
        let before = scene.content();
        scene.done("inject -i perf.data -o new.data");
        let after = scene.content();
        assert!(before.iter().all(|(path, bytes)| after[path] == *bytes), "{target}");
        assert!(!scene.path("nowhere").exists());
        assert!(scene.path(&format!("jitted-{PID}.2.so")).exists());
    }
}

#[test]
fn sources_of_names_are_inputs() {
    let scene = Scene::new();
    let words = |job: &str, output: &str| format!("{job} -o {output}");
    for job in [
        "inject -i perf.data",
        "script perf.data",
        "collapse perf.data",
        "flamegraph perf.data",
        "report perf.data",
        "export --to pprof perf.data",
        "doctor perf.data",
    ] {
        scene.refuses(&words(job, &dump()));
        scene.refuses(&words(job, &map()));
        scene.refuses(&words(&format!("{job} --elf object@70000000"), "object"));
    }
    let callgrind = "callgrind callgrind.out --perf-map callgrind.map";
    scene.refuses(&words(callgrind, "callgrind.map"));
    scene.refuses(&words(&format!("{callgrind} --elf object@70000000"), "object"));
    fs::create_dir(scene.path("code")).unwrap();
    scene.write("code/0x10200000.bin", [0x90; 0x5f]);
    scene.refuses(&words(&format!("{callgrind} --bytecode-dir code"), "code/0x10200000.bin"));
}

#[test]
fn a_dump_that_appending_would_change_is_left() {
    let scene = Scene::new();
    for file in [dump(), map()] {
        let appending = File::options().append(true).open(scene.path(&file)).unwrap();
        scene.refuses_run(scene.command("script perf.data").stdout(appending));
    }
}

#[test]
fn lists_that_options_name_are_inputs() {
    let scene = Scene::new();
    scene.write("questions", "spans\n");
    scene.refuses("stats --preset questions trace.json -o questions");
    scene.write("ids", "00112233445566778899aabbccddeeff00112233 /bin/true\n");
    scene.refuses("inject -b -i perf.data --known-build-ids file://ids -o ids");
}

#[test]
fn the_object_of_callgrind_takes_no_inputs_place() {
    let scene = Scene::new();
    let callgrind = "callgrind callgrind.out --perf-map callgrind.map";
    scene.refuses(&format!("{callgrind} -o new --object callgrind.out"));
    scene.refuses(&format!("{callgrind} -o new --object callgrind.map"));
    scene.refuses(&format!("{callgrind} -o - --object callgrind.out"));
    scene.refuses(&format!("{callgrind} -o new --elf object@70000000 --object object"));
}

#[test]
fn two_outputs_have_two_names() {
    let scene = Scene::new();
    scene.refuses("callgrind callgrind.out --perf-map callgrind.map -o new --object new");
    scene.refuses("callgrind callgrind.out --perf-map callgrind.map -o new --object ./new");
    scene.refuses(&format!("inject -i perf.data -o jitted-{PID}.so"));
    scene.refuses(&format!("inject -i perf.data --image-dir . -o ../{}/jitted-{PID}.so", directory_name(&scene)));
    scene.write("perf.data", recording(&["a/b/", "a_b_"], &scene.path(&dump())));
    for job in ["collapse", "flamegraph", "report", "export --to folded"] {
        // Different events have different files, even if their names become one word.
        scene.done(&format!("{job} perf.data -o new.out"));
        for name in ["new.a_b_.out", "new.a_b_-2.out"] {
            fs::remove_file(scene.path(name)).unwrap();
        }
    }
}

fn directory_name(scene: &Scene) -> String {
    scene.0.path().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn an_image_that_is_there_already_does_not_become_the_output() {
    let scene = Scene::new();
    scene.done("inject -i perf.data -o new.data");
    scene.refuses(&format!("inject -i perf.data -o jitted-{PID}.so"));
}

/// Code on both sides of a library, and copies of stacks that are unwound through it: two images.
fn recording_of_two_images(scene: &Scene) -> Vec<u8> {
    const LIBRARY: u64 = AT + 0x100_0000;
    let event = Event { sample_type: USUAL | REGS_USER | STACK_USER, registers: 1 << 8, stack: 8, ..Event::usual() };
    let mut data = PerfData::new(Order::Little, event);
    data.comm(Stamp::new(PID, 1), "program", true);
    let maps = [(AT, "//anon"), (LIBRARY, "/nowhere/library.so"), (2 * LIBRARY, "//anon"), (3 * LIBRARY, &dump())];
    for (addr, path) in maps {
        data.mmap2(Stamp::new(PID, 2), Mmap { addr, len: 0x1000, pgoff: 0, path });
    }
    let more = More { registers: (2, &[AT]), stack: &[0], ..More::default() };
    for addr in [AT, 2 * LIBRARY] {
        data.sample_with(0, USER, Stamp::new(PID, 20), addr, &[CONTEXT_USER, addr], &more);
    }
    scene.write(&map(), format!("{AT:x} 40 low\n{:x} 40 high\n", 2 * LIBRARY));
    data.into_bytes(Mode::File)
}

#[test]
fn one_refused_image_takes_the_others_along() {
    let scene = Scene::new();
    fs::remove_file(scene.path(&dump())).unwrap();
    scene.write("perf.data", recording_of_two_images(&scene));
    let second = format!("jitted-{PID}.2.so");
    scene.refuses(&format!("inject -i perf.data -o {second}"));
    scene.done("inject -i perf.data -o new.data");
    assert!(scene.path(&second).exists(), "there is only one image");
}

#[test]
fn nothing_is_written_into_a_recording_that_is_a_directory() {
    let scene = Scene::new();
    fs::create_dir(scene.path("recording")).unwrap();
    fs::rename(scene.path("perf.data"), scene.path("recording/data")).unwrap();
    symlink("recording", scene.path("alias")).unwrap();
    for job in ["inject -i recording", "collapse recording", "doctor alias", "script recording", "report alias"] {
        for output in ["recording/data", "recording/data.0", "alias/data.1"] {
            scene.refuses(&format!("{job} -o {output}"));
        }
    }
    scene.done("inject -i recording -o new.data");
}

#[test]
fn devices_and_descriptors_are_outputs() {
    let scene = Scene::new();
    let folded = scene.done("collapse stacks");
    assert_eq!(folded, STACKS);
    scene.done("collapse stacks -o /dev/null");
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert_eq!(scene.done(&format!("collapse stacks -o {path}")), STACKS, "{path}");
    }
    for path in [scene.link_to_stdout(), "/dev/fd/1", "/proc/self/fd/1"] {
        // The file that standard output goes to is appended to, not replaced.
        scene.write("log", "before\n");
        let log = File::options().append(true).open(scene.path("log")).unwrap();
        done(scene.command(&format!("collapse stacks -o {path}")).stdout(log));
        assert_eq!(scene.text("log"), format!("before\n{STACKS}"), "{path}");
    }
    let output = scene.command("collapse -q stacks -o /dev/stderr").output().unwrap();
    assert_eq!((output.status.success(), stderr(&output).as_str()), (true, STACKS));
    assert!(fs::symlink_metadata(scene.path("stdout")).unwrap().is_symlink(), "the link was replaced");
}

#[test]
fn a_device_gets_the_first_event_as_standard_output_does() {
    let scene = Scene::new();
    scene.write("perf.data", recording(&["first", "second"], &scene.path(&dump())));
    let standard = scene.done("collapse perf.data");
    assert_eq!(scene.done(&format!("collapse perf.data -o {}", scene.link_to_stdout())), standard);
    symlink("/dev/null", scene.path("null")).unwrap();
    let before = scene.content();
    scene.done("collapse perf.data -o null");
    assert!(scene.content() == before, "a file was made beside the device");
}

#[test]
fn images_and_objects_do_not_go_beside_a_device() {
    let scene = Scene::new();
    fs::create_dir(scene.path("devices")).unwrap();
    symlink("/dev/null", scene.path("devices/null")).unwrap();
    scene.done("inject -i perf.data -o devices/null");
    assert!(scene.path(&format!("jitted-{PID}.so")).exists());
    scene.done("callgrind callgrind.out --perf-map callgrind.map -o devices/null");
    assert!(scene.path("jitted-640.elf").exists());
    assert_eq!(fs::read_dir(scene.path("devices")).unwrap().count(), 1);
}

#[test]
fn a_named_pipe_is_written_to() {
    let scene = Scene::new();
    let pipe = scene.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = scene.command("collapse stacks -o pipe");
    let reader = std::thread::spawn(move || fs::read_to_string(pipe).unwrap());
    done(&mut command);
    assert_eq!(reader.join().unwrap(), STACKS);
    assert!(fs::symlink_metadata(scene.path("pipe")).unwrap().file_type().is_fifo());
}

#[test]
fn a_link_is_written_through() {
    let scene = Scene::new();
    fs::create_dir(scene.path("below")).unwrap();
    scene.write("below/old", "old");
    symlink("below/old", scene.path("first")).unwrap();
    symlink("first", scene.path("second")).unwrap();
    symlink("below/new", scene.path("dangling")).unwrap();
    for (output, target) in [("second", "below/old"), ("dangling", "below/new"), ("dangling", "below/new")] {
        scene.done(&format!("collapse stacks -o {output}"));
        assert_eq!(scene.text(target), STACKS, "{output}");
        assert!(!fs::symlink_metadata(scene.path(target)).unwrap().is_symlink());
        for link in ["first", "second", "dangling"] {
            assert!(fs::symlink_metadata(scene.path(link)).unwrap().is_symlink(), "{link} was replaced");
        }
        scene.write(target, "old");
    }
}

#[test]
fn a_result_may_be_written_again() {
    let scene = Scene::new();
    for words in [
        "inject -i perf.data -o new.data",
        "inject -i new.data -o new.again",
        "collapse new.data -o new.folded",
        "callgrind callgrind.out --perf-map callgrind.map",
        "export --to chrome trace.json -o new.json",
    ] {
        scene.done(words);
        scene.done(words);
    }
}
