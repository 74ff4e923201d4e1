//! The likeliest mistakes on the command line: each is answered by what is wrong and what helps.

use crate::support;
use crate::support::scene;

use scene::{AT, PID, STACKS, Scene, fixture, recording, said};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use support::bytes::Order;
use support::perf_data::{CONTEXT_USER, Event, Mmap, Mode, PerfData, Stamp, USER};
use support::tool::small_program;

/// The command, the exit status, and parts of the answer.
type Mistake = (&'static str, i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    // Files that are taken for profiles.
    ("report jit-999077.dump", 1, &["jit-999077.dump: is a jitdump", "with --jitdump"]),
    ("collapse callgrind.map", 1, &["callgrind.map: is a perf map", "with --perf-map"]),
    ("script rustc.mm_profdata", 1, &["is a measureme file; script reads perf.data", "jitgraft report"]),
    ("script jit-999077.dump", 1, &["is a jitdump", "with --jitdump"]),
    ("inject jit-999077.dump -o new.data", 1, &["is a jitdump"]),
    ("report below", 1, &["below: is a directory", "did you mean below/perf.data?"]),
    ("report program", 1, &["program: is an ELF file, not a profile", "jitgraft record -- PROGRAM"]),
    ("flamegraph old.svg", 1, &["old.svg: is a picture (SVG)", "-o FILE"]),
    ("flamegraph page.html", 1, &["page.html: is a page (HTML)"]),
    ("report app.js", 1, &["app.js: is source code, not a profile", "`jitgraft record -- node app.js`"]),
    ("view below/app.py", 1, &["app.py: is source code", "`jitgraft record -- python below/app.py`"]),
    ("doctor app.js", 1, &["app.js: is source code", "`jitgraft record -- node app.js`"]),
    ("report odd.json", 1, &["odd.json: is JSON in an unknown format", "jitgraft formats"]),
    ("report report.txt", 1, &["report.txt: is output of perf report", "perf script"]),
    ("report report.txt.gz", 1, &["report.txt.gz: is output of perf report"]),
    ("collapse archive.tar.gz", 1, &["archive.tar.gz: is an archive (tar)", "unpack it ("]),
    ("report empty", 1, &["empty: is empty", "its writer was killed"]),
    ("inject empty -o new.data", 1, &["empty: is empty"]),
    ("report cut.data", 1, &["cut.data: at byte 0x32: the file is truncated", "record again"]),
    ("report first.data", 1, &["first.data: is a perf.data file of an unknown version"]),
    ("inject stacks -o new.data", 1, &["stacks: is a folded file; inject rewrites perf.data"]),
    ("inject stacks -o new.data", 1, &["to convert it to another format, use jitgraft export"]),
    ("script callgrind.out", 1, &["is a callgrind file; script reads perf.data", "jitgraft callgrind"]),
    ("script callgrind.out -o new.txt", 1, &["is a callgrind file; script reads perf.data"]),
    ("script callgrind.map", 1, &["is a perf map", "with --perf-map"]),
    ("script trace.json", 1, &["is a chrome file; script reads perf.data", "jitgraft report"]),
    ("script old.svg", 1, &["is a picture (SVG)"]),
    ("script letter", 1, &["is not output of perf script", "pass perf.data itself"]),
    ("script letter -o new.txt", 1, &["is not output of perf script"]),
    ("pack callgrind.out", 1, &["is a callgrind file; pack reads perf.data", "jitgraft callgrind"]),
    ("pack stacks", 1, &["is a folded file; pack reads perf.data", "jitgraft export"]),
    (
        "callgrind callgrind.out",
        1,
        &["next to this file or in /tmp", "--perf-map or --jitdump", "jitgraft runtimes node"],
    ),
    ("inject text -o new.data", 1, &["text: is a perf-script file", "jitgraft script"]),
    ("stats perf.data", 1, &["stats reads measureme", "for perf-data use `jitgraft report`"]),
    (
        "callgrind perf.data",
        1,
        &["perf.data: is neither a callgrind file", "the file contains perf.data from perf record"],
    ),
    ("callgrind jit-999077.dump", 1, &["is neither a callgrind file", "is a jitdump"]),
    // Files that are not there, or may not be used.
    ("report perf.dta", 1, &["perf.dta: cannot open", "did you mean perf.data?"]),
    ("report below/perf.dat", 1, &["did you mean below/perf.data?"]),
    ("report nowhere/perf.data", 1, &["no such directory: nowhere"]),
    ("flamegraph stacks new.svg", 1, &["new.svg: no such file", "-o new.svg"]),
    ("flamegraph stacks old.svg", 1, &["old.svg: is a picture (SVG)", "-o FILE"]),
    ("flamegraph stacks -o nowhere/new.svg", 1, &["nowhere/new.svg: cannot write there", "mkdir -p nowhere"]),
    ("flamegraph stacks -o below", 1, &["below: is a directory", "-o below/FILE"]),
    ("inject perf.data -o below", 1, &["below: is a directory"]),
    ("callgrind", 2, &["no input given", "the current directory contains callgrind.out"]),
    // Filters that leave nothing.
    (
        "flamegraph --comm progam perf.data",
        1,
        &["no samples match the filters", "command names in this input: program"],
    ),
    ("flamegraph --pid 1 perf.data", 1, &["processes in this input: 999077 (program)"]),
    ("flamegraph --tid 1 perf.data", 1, &["threads in this input: 999077 (program)"]),
    ("flamegraph --cpu 7 stacks", 1, &["processors in this input: none are recorded"]),
    ("flamegraph --time 1,2 perf.data", 1, &["times in this input: 0.000000020 to 0.000000021 s"]),
    ("collapse --comm progam perf.data", 1, &["error: no samples", "command names in this input: program"]),
    ("script --pid 1 perf.data", 1, &["no samples", "processes in this input: 999077 (program)"]),
    ("annotate . --comm progam -i perf.data", 1, &["no samples", "command names in this input: program"]),
    ("merge --comm progam perf.data", 1, &["error: no samples", "command names in this input: program"]),
    ("merge --pid 1 perf.data below/perf.data", 1, &["processes in this input: 999077 (program)"]),
    ("merge --time 1,2 --to pprof -o new.pb.gz perf.data", 1, &["times in this input: "]),
    ("report --dso nowhere.so stacks", 1, &["no rows match the filters", "modules in this input: "]),
    ("report --symbols nothing stacks", 1, &["no rows match the filters", "functions in this input: "]),
    ("report --kind nothing stacks", 1, &["no rows match the filters", "kinds of code in this input: "]),
    ("report --event cycels perf.data", 1, &["no event named cycels", "cpu-clock"]),
    ("script --event cycels perf.data", 1, &["no event named cycels", "cpu-clock"]),
    ("flamegraph --event cycels perf.data -o new.svg", 1, &["no event named cycels", "cpu-clock"]),
    (
        "flamegraph --base nothing stacks -o new.svg",
        1,
        &["no function is named nothing (--base)", "functions in this input: "],
    ),
    ("script --comm program report.script", 2, &["is text; `script` can only select", "perf script"]),
    ("script --time 1,2 report.script", 2, &["is text; `script` can only select"]),
    ("script --event cycles report.script", 2, &["is text; `script` can only select"]),
    (
        "flamegraph --diff stacks perf.data -o new.svg",
        1,
        &["no event cpu-clock, only samples", "have no event in common"],
    ),
    ("report --diff stacks perf.data", 1, &["no event cpu-clock, only samples"]),
    ("merge empty.directory", 1, &["no input files"]),
    // Names of outputs that are another format.
    ("view stacks -o new.data", 2, &["does not write .data files", "use jitgraft inject"]),
    ("report stacks -o new.speedscope.json", 2, &["does not write .speedscope.json files", "use jitgraft export"]),
    ("merge stacks -o new.data", 2, &["does not write .data files"]),
    ("export stacks -o new.data", 2, &["does not write .data files"]),
    ("export stacks -o new.firefox.json.gz", 2, &["does not write .gz files", "gzip"]),
    (
        "inject perf.data -o new.json",
        2,
        &["the input is perf-data, and inject keeps the format of its input", "jitgraft export"],
    ),
    ("inject perf.data -o new.pb.gz", 2, &["inject keeps the format of its input"]),
    ("report stacks -o new.xlsx", 2, &["does not write .xlsx files", "-o x.csv"]),
    ("stats trace.json -o new.ods", 2, &["does not write .ods files", "-o x.csv"]),
    ("doctor perf.data -o new.docx", 2, &["does not write .docx files", "report -o x.txt"]),
    ("annotate hot -o new.rtf -i perf.data", 2, &["does not write .rtf files"]),
    ("collapse stacks -o new.tgz", 2, &["does not write .tgz files", "jitgraft pack"]),
    ("flamegraph stacks -o new.tiff", 2, &["does not write .tiff files", "jitgraft flamegraph -o x.svg"]),
    ("record -o new.svg -- true", 2, &["does not write .svg files"]),
    // Flags whose files are not there.
    ("report --symfs nowhere perf.data", 2, &["'nowhere' for '--symfs", "it does not exist"]),
    ("report --debug-dir nowhere perf.data", 2, &["'nowhere' for '--debug-dir", "it does not exist"]),
    ("report --guest nowhere perf.data", 2, &["'nowhere' for '--guest", "it does not exist"]),
    ("report --jitdump nowhere perf.data", 2, &["'nowhere' for '--jitdump", "it does not exist"]),
    ("report --perf-map nowhere@77 perf.data", 2, &["'nowhere@77' for '--perf-map", "it does not exist"]),
    ("report --jit-log nowhere perf.data", 2, &["'nowhere' for '--jit-log", "it does not exist"]),
    ("report --kallsyms nowhere perf.data", 2, &["'nowhere' for '--kallsyms", "it does not exist"]),
    ("inject --vmlinux nowhere perf.data -o new.data", 2, &["'nowhere' for '--vmlinux", "it does not exist"]),
    ("report --elf nowhere@1000 perf.data", 2, &["--elf", "nowhere does not exist"]),
    // Texts that are not perf script's.
    ("script stacks", 1, &["stacks: is a folded file; script reads perf.data", "jitgraft report"]),
    ("script odd.json", 1, &["odd.json: is JSON in an unknown format"]),
    // A file without a command is summarized; a name that does not exist is not a command.
    ("perf.dta", 1, &["perf.dta: cannot open", "did you mean perf.data?"]),
    ("perfdata", 2, &["unrecognized subcommand 'perfdata'", "no command or file named"]),
    ("diff stacks perf.data", 2, &["unrecognized subcommand 'diff'", "report --diff BEFORE AFTER"]),
    ("inject perf.data new.data", 2, &["unexpected argument", "-o new.data"]),
    ("pack perf.data new.tar.zst", 2, &["unexpected argument", "-o new.tar.zst"]),
    ("script perf.data new.txt", 1, &["new.txt: no such file", "-o new.txt"]),
    ("script perf.data stacks", 2, &["pass a single input"]),
    ("export perf.data new.pb.gz", 1, &["new.pb.gz: no such file", "-o new.pb.gz"]),
    ("export perf.data stacks", 2, &["unknown output format"]),
    ("pack perf.data -o new.zip", 2, &["does not write .zip files", "ends in .tar.zst"]),
    ("pack perf.data -o new.tar.gz", 2, &["does not write .gz files", "ends in .tar.zst"]),
    ("report --by process stacks", 2, &["'process' for '--by", "--by pid"]),
    ("report --json stacks", 2, &["unexpected argument '--json'", "--to json"]),
    ("export --to perfeto stacks", 2, &["--to chrome"]),
    ("annotate perf.data hot", 2, &["FUNCTION comes first", "annotate hot -i perf.data"]),
    ("export --to perfetto stacks", 2, &["--to chrome"]),
    ("report --limit x stacks", 2, &["'x' for '--limit", "must be a whole number"]),
    ("report --max-stack 0 stacks", 2, &["must be at least 1"]),
    ("perf.data stacks", 2, &["the summary is for one file"]),
    // Words.
    ("inject --kallsyms stacks perf.data -o new.data", 0, &["--kallsyms was ignored: jitgraft inject does not name"]),
    ("callgrind --perf-map callgrind.map --kallsyms stacks callgrind.out -o new.out", 0, &["--kallsyms was ignored"]),
    (
        "callgrind --perf-map callgrind.map -k stacks callgrind.out -o new.out",
        0,
        &["--vmlinux was ignored: jitgraft callgrind does not name"],
    ),
    ("report --jitdump callgrind.map perf.data", 0, &["callgrind.map: is a perf map", "pass it with --perf-map"]),
    ("report --perf-map other.dump perf.data", 0, &["other.dump: is a jitdump", "pass it with --jitdump"]),
    ("report --map-pid 12 perf.data", 2, &["expected INNER=OUTER", "such as 1=4711"]),
    ("report --elf program perf.data", 2, &["expected FILE@ADDR", "such as"]),
    ("export --to svg stacks", 2, &["possible values", "flamegraph", "speedscope"]),
    ("doctor node", 1, &["node: cannot open", "pass its PID"]),
    ("doctor python3-nowhere", 1, &["cannot open", "pass its PID"]),
    ("flamegraph --minwidth x stacks", 2, &["'x' for '--minwidth", "must be a number"]),
    ("flamegraph --minwidth 101% stacks", 2, &["expected 0 to 100"]),
    ("flamegraph --minwidth 5% stacks -o new.svg", 0, &["wrote new.svg"]),
    ("flamegraf stacks", 2, &["a similar subcommand exists: 'flamegraph'"]),
    ("annotate hot --percent-limit 5 -i perf.data", 2, &["--percent-limit is a flag of jitgraft report"]),
    ("pack perf.data --minwidth 5", 2, &["--minwidth is a flag of jitgraft flamegraph"]),
    (
        "merge perf.data stacks -o new.folded",
        0,
        &["wrote new.cpu-clock.folded (event cpu-clock)", "wrote new.samples.folded"],
    ),
    ("doctor 99999999", 1, &["no process 99999999 is running, and no file has this name"]),
    ("record --dry-run -p 99999999", 1, &["no process 99999999 is running"]),
    ("record --dry-run -F 0 -- true", 2, &["must be at least 1"]),
    ("record --dry-run -g -F often -- true", 2, &["-F often: must be a whole number, or max"]),
    ("report --diff", 1, &["perf.data.old: cannot open", "perf makes this file by renaming perf.data"]),
    ("view --diff stacks perf.data -o new.html", 1, &["no event cpu-clock, only samples"]),
    ("perf.data report", 2, &["the command comes first: jitgraft report FILE"]),
    ("stacks flamegraph -o new.svg", 2, &["the command comes first: jitgraft flamegraph FILE"]),
    ("-o new.svg flamegraph stacks", 2, &["the command comes before its flags: jitgraft flamegraph -o"]),
    ("doctor --comm progam perf.data", 1, &["no samples match the filters", "command names in this input: program"]),
    ("doctor --pid 1 perf.data", 1, &["processes in this input: 999077 (program)"]),
    ("doctor --event cycels perf.data", 1, &["no event named cycels", "cpu-clock"]),
    ("report --name progam trace.json", 1, &["no samples match the filters", "spans in this input: "]),
    ("flamegraph --name progam trace.json -o new.svg", 1, &["spans in this input: "]),
    ("export --to csv --name progam trace.json", 1, &["spans in this input: "]),
    ("merge --name progam trace.json trace.json", 1, &["spans in this input: "]),
    ("report --pid program perf.data", 2, &["--comm program selects processes"]),
    ("runtimes cobol", 2, &["no runtime named cobol", "known runtimes: "]),
    ("flamegraph --to svg stacks", 2, &["unexpected argument '--to'", "(-o FILE) determines its format"]),
    ("report --to svg stacks", 2, &["possible values: text, csv, json", "jitgraft flamegraph"]),
    ("report -F overhead stacks", 2, &["--to csv has all"]),
    ("callgrind stacks", 1, &["is neither a callgrind file", "the file contains folded stacks"]),
    ("report --time 5 perf.data", 2, &["expected A,B in seconds or A%-B%"]),
];

/// A directory with all that is taken for something else.
fn scene() -> Scene {
    let scene = Scene::new();
    let dump = scene.path(&format!("jit-{PID}.dump"));
    scene.write("perf.data", recording(&[AT, AT + 1], &dump).into_bytes(Mode::File));
    fs::copy(&dump, scene.path("other.dump")).unwrap();
    fs::create_dir(scene.path("below")).unwrap();
    fs::copy(scene.path("perf.data"), scene.path("below/perf.data")).unwrap();
    fs::copy(small_program(), scene.path("program")).unwrap();
    scene.write("old.svg", scene.run("flamegraph stacks").stdout);
    scene.write("page.html", "<!DOCTYPE html>\n<html><body></body></html>\n");
    scene.write("app.js", "console.log(1 + 1);\n");
    scene.write("below/app.py", "print(1 + 1)\n");
    scene.write("letter", "Dear reader,\n\nthese are the words of the day:\n\nprofile\nstack\n");
    scene.write("odd.json", "{\"answer\": 42}\n");
    let report = "# To display the perf.data header info, please use --header/--header-only options.\n#\n";
    scene.write("report.txt", report);
    scene.write("report.txt.gz", gzip(report.as_bytes()));
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    scene.write("archive.tar.gz", gzip(&tar));
    scene.write("empty", "");
    scene.write("report.script", "program 999077 1.000000: 1 cycles: \n\t  400 main (/bin/program)\n\n");
    fs::create_dir(scene.path("empty.directory")).unwrap();
    fs::copy(fixture("measureme-interpreter/input.mm_profdata"), scene.path("rustc.mm_profdata")).unwrap();
    scene.write("cut.data", &fs::read(scene.path("perf.data")).unwrap()[..50]);
    scene.write("first.data", b"PERFFILE and more");
    scene
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn every_mistake_is_answered_by_what_helps() {
    let scene = scene();
    for (words, code, answer) in MISTAKES {
        let output = scene.run(words);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(*code), "{words}: {said}");
        for part in *answer {
            assert!(said.contains(part), "`{words}` is not answered by \"{part}\": {said}");
        }
        assert!(!said.contains(".jitgraft-") && !said.contains(".tmp"), "{words} tells of a temporary file: {said}");
    }
}

#[test]
fn an_input_is_named_by_i_in_every_command() {
    let scene = scene();
    for (with, without) in [
        ("report -i perf.data", "report perf.data"),
        ("report -i perf.data -i stacks", "report perf.data stacks"),
        ("collapse -i perf.data", "collapse perf.data"),
        ("flamegraph -i perf.data", "flamegraph perf.data"),
        ("script -i perf.data", "script perf.data"),
        ("doctor -i perf.data", "doctor perf.data"),
        ("export --to speedscope -i perf.data", "export --to speedscope perf.data"),
        ("stats -i trace.json", "stats trace.json"),
        ("inject -i perf.data", "inject perf.data"),
        (
            "callgrind -i callgrind.out --perf-map callgrind.map -o -",
            "callgrind callgrind.out --perf-map callgrind.map -o -",
        ),
    ] {
        let (with, without) = (scene.run(with), scene.run(without));
        assert!(with.status.success(), "{}", said(&with));
        assert!(with.stdout == without.stdout && !with.stdout.is_empty(), "{}", said(&without));
    }
}

#[test]
fn an_old_recording_is_a_recording() {
    let scene = scene();
    fs::rename(scene.path("perf.data"), scene.path("perf.data.old")).unwrap();
    assert!(scene.run("report perf.data.old").status.success());
    let said = said(&scene.run("report"));
    assert!(said.contains("perf.data: cannot open") && said.contains("did you mean perf.data.old?"), "{said}");
}

#[test]
fn without_a_recording_one_finds_how_to_make_one() {
    let scene = Scene::new();
    fs::remove_file(scene.path("perf.data")).unwrap();
    for words in ["report", "inject -o new.data"] {
        let said = said(&scene.run(words));
        assert!(said.contains("jitgraft record -- PROGRAM"), "{words}: {said}");
    }
}

#[test]
fn an_empty_pipe_beside_a_recording_points_to_it() {
    let scene = scene();
    // A filter of nothing gives nothing, and reports it.
    for (words, status) in [("report", 1), ("script", 0), ("inject -o new.data", 1), ("flamegraph -o new.svg", 1)] {
        let output = scene.command(words).stdin(Stdio::piped()).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words}: {said}");
        assert!(
            said.replace("\nhint: ", "; ")
                .contains("(standard input): is empty; to read perf.data in this directory, use -i perf.data"),
            "{said}"
        );
    }
}

#[test]
fn the_other_byte_order_is_not_a_mistake() {
    let scene = Scene::new();
    let mut data = PerfData::new(Order::Big, Event::usual());
    data.comm(Stamp::new(PID, 1), "program", true);
    data.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    data.sample_of(0, USER, Stamp::new(PID, 20), AT, &[CONTEXT_USER, AT]);
    scene.write("big.data", data.into_bytes(Mode::File));
    let output = scene.run("collapse big.data");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "program;dumped 1000000\n");
}

#[test]
fn a_recording_without_the_dumps_clock_is_reported_to_be() {
    let scene = Scene::new();
    let mut data = PerfData::new(Order::Little, Event { clockid: None, ..Event::usual() });
    let marker = scene.path(&format!("jit-{PID}.dump"));
    data.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    data.mmap2(Stamp::new(PID, 3), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker.to_str().unwrap() });
    data.sample_of(0, USER, Stamp::new(PID, 20), AT, &[CONTEXT_USER, AT]);
    scene.write("perf.data", data.into_bytes(Mode::File));
    let said = said(&scene.run("report perf.data"));
    assert!(said.contains("record with -k mono"), "{said}");
}

#[test]
fn a_file_that_may_not_be_read_shows_whose_it_is() {
    let scene = Scene::new();
    let file = scene.path("perf.data");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let program = env!("CARGO_BIN_EXE_jitgraft");
    // Root may read everything; nobody may run what is in root's directories.
    let copy = scene.path("jitgraft");
    fs::copy(program, &copy).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]).arg(&copy);
        command
    } else {
        Command::new(&copy)
    };
    let command = command.current_dir(scene.path("")).stdin(Stdio::null());
    let read = said(&command.args(["report", "perf.data"]).output().unwrap());
    assert!(read.contains("perf.data: cannot open: Permission denied") && read.contains("it belongs to "), "{read}");
    assert!(read.contains("(mode 0000), and jitgraft runs as "), "{read}");
}

#[test]
fn upside_down_is_requested_by_its_long_name() {
    let scene = Scene::new();
    scene.write("in.folded", STACKS);
    let upside_down = scene.run("flamegraph --inverted in.folded").stdout;
    let named = scene.run("flamegraph -i in.folded");
    assert!(named.status.success(), "{}", said(&named));
    assert!(named.stdout != upside_down);
}

#[test]
fn texts_of_perf_that_are_profiles_are_not_mistakes() {
    let scene = Scene::new();
    fs::copy(fixture("script-layouts/header.txt"), scene.path("header.txt")).unwrap();
    assert!(scene.run("report header.txt").status.success());
}

/// A recording of this many samples in code that the dump names, and this many in memory that nothing names.
fn partly_named(scene: &Scene, named: usize, unnamed: usize) {
    let addresses: Vec<u64> = [vec![AT; named], vec![AT + 0x200; unnamed]].concat();
    let dump = scene.path(&format!("jit-{PID}.dump"));
    scene.write("perf.data", recording(&addresses, &dump).into_bytes(Mode::File));
}

const STRICT: &[&str] = &["collapse", "report", "flamegraph", "script", "export --to json", "inject -o new.data"];

#[test]
fn strict_fails_where_jit_code_has_no_names() {
    let scene = Scene::new();
    for (named, unnamed, code) in [(0, 400, 1), (99, 1, 1), (100, 1, 0), (100, 0, 0)] {
        partly_named(&scene, named, unnamed);
        for command in STRICT {
            let output = scene.run(&format!("{command} --strict perf.data"));
            let said = said(&output);
            assert_eq!(output.status.code(), Some(code), "{command} {named} {unnamed}: {said}");
            assert_eq!(said.contains("run jitgraft doctor perf.data to find out why"), code == 1, "{command}: {said}");
            // Even quietly, the reason for the failure is printed.
            let output = scene.run(&format!("{command} -q --strict perf.data"));
            let quiet = self::said(&output);
            assert_eq!(output.status.code(), Some(code), "{command} -q: {quiet}");
            let reason = format!("error: JIT frames without a name: {unnamed} of ");
            let is_told = quiet.contains(&reason) && quiet.contains("hint: run jitgraft doctor perf.data");
            assert_eq!(is_told, code == 1, "{command} -q: {quiet}");
            assert_eq!(quiet.is_empty(), code == 0, "{command} -q: {quiet}");
            assert!(scene.run(&format!("{command} perf.data")).status.success());
        }
    }
}

#[test]
fn strict_does_not_mind_native_code_without_names() {
    let scene = Scene::new();
    let mut data = recording(&[AT], &scene.path(&format!("jit-{PID}.dump")));
    let library = 0x90_0000;
    data.mmap2(Stamp::new(PID, 4), Mmap { addr: library, len: 0x1000, pgoff: 0, path: "/nowhere/library.so" });
    for time in 30..430 {
        data.sample_of(0, USER, Stamp::new(PID, time), library, &[CONTEXT_USER, library, 0xdead_0000]);
    }
    scene.write("perf.data", data.into_bytes(Mode::File));
    for command in STRICT {
        let output = scene.run(&format!("{command} --strict perf.data"));
        assert!(output.status.success(), "{command}: {}", said(&output));
    }
    let said = said(&scene.run("collapse perf.data"));
    assert!(said.contains("resolved 0.1% of 801 frames (the only JIT frame)"), "{said}");
}

#[test]
fn details_are_english() {
    let scene = Scene::new();
    let said = said(&scene.run("inject -v perf.data -o new.data"));
    assert!(said.contains(&format!("jitdump of process {PID}: ")), "{said}");
    assert!(said.contains("loaded, 1 function; same clock as the recording"), "{said}");
}
