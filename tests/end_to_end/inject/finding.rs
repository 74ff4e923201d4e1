//! The places where names come from: dumps, maps and objects are found wherever they may lie, whosever number they go
//! by and whatever their clock; what cannot be trusted is reported and stepped over.

use super::odd::{AT, Odd, PID, expect_warning, load, names};
use super::support::bytes::Order;
use super::support::jitdump::{Header, JitDump};
use super::support::perf_data::{Event, Mmap, Stamp};
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

fn dump(name: &'static [u8]) -> Vec<u8> {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(name, AT, 0));
    dump.into_bytes()
}

/// A recording whose process mapped no marker, with one sample.
fn unmarked() -> Odd {
    Odd::new("library.so").sample(PID, 20, AT)
}

fn path(odd: &Odd, name: &str) -> String {
    odd.dir.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_process_without_a_marker_is_looked_for_by_its_number() {
    assert_eq!(unmarked().file("jit-77.dump", &dump(b"beside")).inject(&[]), (vec!["beside".to_owned()], vec![]));
    let map = format!("{AT:x} 40 mapped\n");
    assert_eq!(unmarked().file("perf-77.map", map.as_bytes()).inject(&[]), (vec!["mapped".to_owned()], vec![]));
}

#[test]
fn code_that_a_map_alone_names_is_named_to_jitgraft_too_when_it_is_injected() {
    let map = format!("{AT:x} 40 mapped\n");
    let (dir, _) = unmarked().file("perf-77.map", map.as_bytes()).inject_into(&[]);
    fs::remove_file(dir.path().join("perf-77.map")).unwrap();
    let mut collapse = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let folded = collapse.arg("collapse").arg(dir.path().join("out.data")).output().unwrap();
    let folded = String::from_utf8(folded.stdout).unwrap();
    assert!(folded.contains(";mapped "), "{folded}");
}

#[test]
fn files_and_directories_that_the_user_names_are_used_together() {
    let map = format!("{:x} 40 mapped\n", AT + 0x1000);
    for (dump_at, map_at) in [("dumps", "maps"), ("dumps/jit-77.dump", "maps/perf-77.map")] {
        let odd = unmarked().sample(PID, 21, AT + 0x1000);
        for directory in ["dumps", "maps", "nothing"] {
            fs::create_dir(odd.dir.path().join(directory)).unwrap();
        }
        let odd = odd.file("dumps/jit-77.dump", &dump(b"dumped")).file("maps/perf-77.map", map.as_bytes());
        let [nothing, dump_at, map_at] = ["nothing", dump_at, map_at].map(|name| path(&odd, name));
        let options = ["--jitdump", &nothing, "--jitdump", &dump_at, "--perf-map", &nothing, "--perf-map", &map_at]
            .map(String::from);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let (names, warnings) = odd.inject(&options);
        assert_eq!((names, warnings), (vec!["dumped".to_owned(), "mapped".to_owned()], vec![]));
    }
}

/// Two processes with memory of their own at the same addresses, and a sample of each.
fn two_processes() -> Odd {
    let mut odd = unmarked();
    odd.recording.comm(Stamp::new(78, 4), "other", true);
    odd.recording.mmap2(Stamp::new(78, 5), Mmap { addr: AT, len: 0x1000, pgoff: 0, path: "//anon" });
    odd.sample(78, 21, AT)
}

#[test]
fn a_file_or_directory_may_be_given_for_one_process() {
    let inner = |name: &'static [u8]| {
        let mut dump = JitDump::with_header(Order::Little, Header::of(1));
        dump.load(10, load(name, AT, 0));
        dump.into_bytes()
    };
    let map = |name: &str| format!("{AT:x} 40 {name}\n");
    let expected = vec!["one".to_owned(), "two".to_owned()];
    for (option, file) in [("--perf-map", "perf-1.map"), ("--jitdump", "jit-1.dump")] {
        for named in ["DIR/FILE", "DIR"] {
            let odd = two_processes();
            for (directory, name) in [("a", &b"one"[..]), ("b", b"two")] {
                fs::create_dir(odd.dir.path().join(directory)).unwrap();
                let bytes = match file {
                    "perf-1.map" => map(std::str::from_utf8(name).unwrap()).into_bytes(),
                    _ => inner(if name == b"one" { b"one" } else { b"two" }),
                };
                fs::write(odd.dir.path().join(directory).join(file), bytes).unwrap();
            }
            let given = |directory: &str, pid: u32| {
                let named = named.replace("DIR", directory).replace("FILE", file);
                format!("{}@{pid}", path(&odd, &named))
            };
            let (a, b) = (given("a", PID), given("b", 78));
            // Directories are requested the number of the process in its own namespace.
            let numbers: &[&str] = if named == "DIR" { &["--map-pid", "1=77", "--map-pid", "1=78"] } else { &[] };
            let options = [&[option, &*a, option, &*b][..], numbers].concat();
            let (names, warnings) = odd.inject(&options);
            let warnings: Vec<_> =
                warnings.iter().filter(|said| !said.contains("header of the jitdump says")).collect();
            assert_eq!((&names, warnings.len()), (&expected, 0), "{option} {named}: {warnings:?}");
        }
    }
}

#[test]
fn a_file_for_a_process_that_was_not_recorded_is_a_warning() {
    let map = format!("{AT:x} 40 mapped\n");
    for (given, pid) in [("perf-9999.map", "9999"), ("perf-77.map@8888", "8888")] {
        let odd = two_processes().file("elsewhere", b"").file("perf-9999.map", map.as_bytes());
        fs::create_dir(odd.dir.path().join("maps")).unwrap();
        let odd = odd.file("maps/perf-77.map", map.as_bytes()).file("maps/perf-9999.map", map.as_bytes());
        let given = path(&odd, &format!("maps/{given}"));
        let (names, warnings) = odd.inject(&["--perf-map", &given]);
        assert_eq!((names, warnings.len()), (vec!["[unknown]".to_owned(); 2], 1), "{warnings:?}");
        assert!(warnings[0].contains(&format!("process {pid}, which is not in the recording")), "{warnings:?}");
    }
}

#[test]
fn runtimes_usual_places_are_looked_at() {
    for root in ["JITDUMPDIR", "HOME"] {
        let elsewhere = tempfile::tempdir().unwrap();
        let run = elsewhere.path().join(".debug/jit/java-jit-20260101.XXabc");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("jit-77.dump"), dump(b"usual")).unwrap();
        let odd = unmarked();
        let out = odd.dir.path().join("out.data");
        let environment = [("HOME", Path::new("/nonexistent")), (root, elsewhere.path())];
        let (_dir, said) = odd.inject_in(&environment, &[]);
        assert_eq!((names(&out), said), (vec!["usual".to_owned()], vec![]), "{root}");
    }
}

#[test]
fn buns_dumps_go_by_thread_and_process() {
    let odd = Odd::new("jit-78-77.dump").file("jit-78-77.dump", &dump(b"first")).sample(PID, 20, AT);
    assert_eq!(odd.inject(&[]), (vec!["first".to_owned()], vec![]));
}

#[test]
fn an_object_that_was_placed_has_its_functions_where_it_was_placed() {
    use object::{Object, ObjectSymbol};
    let program = std::env::current_exe().unwrap();
    let bytes = fs::read(&program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let main = object.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap();
    let base = 0x7000_0000;
    let addr = base + main.address() - object.relative_address_base();
    let mut odd = unmarked();
    let arena = Mmap { addr: base, len: 0x1000_0000, pgoff: 0, path: "//anon" };
    odd.recording.mmap2(Stamp::new(PID, 4), arena);
    let placed = format!("{}@{base:#x}", program.display());
    let (names, warnings) = odd.sample(PID, 21, addr).inject(&["--elf", &placed]);
    assert_eq!((names, warnings), (vec!["[unknown]".to_owned(), "main".to_owned()], vec![]));
}

#[test]
fn a_namespace_whose_beginning_was_recorded_shows_its_processes_numbers() {
    let inner = |pid| {
        let mut dump = JitDump::with_header(Order::Little, Header::of(pid));
        dump.load(10, load(if pid == 1 { b"of the first" } else { b"of the third" }, AT, 0));
        dump.into_bytes()
    };
    let mut odd = Odd::new("library.so").file("jit-1.dump", &inner(1)).file("jit-3.dump", &inner(3));
    odd.recording.namespaces(Stamp::new(PID, 4), 0x1111);
    // The namespace's number 2 is a program that is left alone.
    for (pid, parent, time) in [(501, PID, 5), (502, 501, 6), (503, 501, 7)] {
        odd.recording.fork(Stamp::new(pid, time), parent);
        odd.recording.namespaces(Stamp::new(pid, time), 0x2222);
        odd.recording.comm(Stamp::new(pid, time), "inner", true);
        odd.recording.mmap2(Stamp::new(pid, time + 1), Mmap { addr: AT, len: 0x1000, pgoff: 0, path: "//anon" });
    }
    let (names, warnings) = odd.sample(501, 20, AT).sample(503, 21, AT).sample(502, 22, AT).inject(&[]);
    assert_eq!((names, warnings), (["of the first", "of the third", "[unknown]"].map(String::from).to_vec(), vec![]));
}

#[test]
fn links_and_pipes_at_a_markers_path_are_not_opened_and_the_next_place_is_tried() {
    for special in ["link", "pipe", "directory"] {
        let odd = Odd::new("jit-77.dump").sample(PID, 20, AT);
        let marker = odd.dir.path().join("jit-77.dump");
        let input = odd.dir.path().join("input");
        fs::create_dir(&input).unwrap();
        match special {
            "link" => {
                fs::write(odd.dir.path().join("target"), dump(b"led astray")).unwrap();
                symlink("target", &marker).unwrap();
            }
            "pipe" => {
                let made = std::process::Command::new("mkfifo").arg(&marker).status();
                assert!(made.expect("mkfifo is needed (coreutils)").success());
            }
            _ => fs::create_dir(&marker).unwrap(),
        }
        fs::write(input.join("jit-77.dump"), dump(b"good")).unwrap();
        let (out, input) = (odd.dir.path().join("out.data"), input.join("perf.data"));
        let (_dir, said) = odd.inject_from(&input, &[], &[]);
        assert_eq!(names(&out), ["good"], "{special}");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("jit-77.dump"), "{said:?}");
    }
}

#[test]
fn files_of_others_are_used_only_by_force() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file away; but who is not root sees others' files everywhere.
        let odd = unmarked();
        assert!(odd.inject(&["--perf-map", "/etc/passwd"]).0 == ["[unknown]"]);
        return;
    }
    let map = format!("{AT:x} 40 mapped\n");
    for (options, name, count) in [(&[][..], "[unknown]", 1), (&["-f"], "mapped", 0), (&["--force"], "mapped", 0)] {
        let odd = unmarked().file("perf-77.map", map.as_bytes());
        chown(odd.dir.path().join("perf-77.map"), Some(65534), None).unwrap();
        let (names, warnings) = odd.inject(options);
        assert_eq!((names, warnings.len()), (vec![name.to_owned()], count), "{options:?}: {warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains("belongs to user 65534") && warning.contains("-f")));
    }
}

#[test]
fn a_map_names_what_a_dump_that_is_damaged_part_way_does_not() {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"first", AT, 0));
    dump.load(11, load(b"second", AT + 0x100, 1));
    let mut dump = dump.into_bytes();
    // Inside of the last name.
    dump.truncate(dump.len() - 0x40 - 3);
    let map = format!("{AT:x} 40 stale\n{:x} 40 fallback\n", AT + 0x100);
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump).file("perf-77.map", map.as_bytes());
    let odd = odd.sample(PID, 20, AT).sample(PID, 21, AT + 0x100);
    expect_warning(odd, &["first", "fallback"], &["jit-77.dump", "at byte"]);
    // If the jitdump isn't one at all, the perf map names everything.
    let odd = Odd::new("jit-77.dump").file("jit-77.dump", b"garbage").file("perf-77.map", map.as_bytes());
    let odd = odd.sample(PID, 20, AT).sample(PID, 21, AT + 0x100);
    expect_warning(odd, &["stale", "fallback"], &["jit-77.dump", "is not a jitdump"]);
}

/// TIME_CONV as newer recorders write it: shift 1, mult 3, zero 1000.
fn time_conv(odd: &mut Odd) {
    let words = [1u64, 3, 1000, 0, u64::MAX].iter().flat_map(|word| word.to_le_bytes());
    let body: Vec<u8> = words.chain([1, 0, 0, 0, 0, 0, 0, 0]).collect();
    odd.recording.record(79, 0, &body);
}

#[test]
fn processor_times_are_converted_as_the_recording_states() {
    let mut dump = JitDump::with_header(Order::Little, Header { flags: 1, ..Header::of(PID) });
    dump.load(100, load(b"first", AT, 0)); // 1150 ns
    dump.load(200, load(b"second", AT, 1)); // 1300 ns
    let mut odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    time_conv(&mut odd);
    let odd = odd.sample(PID, 1149, AT).sample(PID, 1150, AT).sample(PID, 1299, AT).sample(PID, 1300, AT);
    let (names, warnings) = odd.inject(&[]);
    // Nobody was there before the first load; it is offered, since none other ever was.
    assert_eq!(names[1..], ["first", "first", "second"]);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn wall_clock_times_are_converted_by_the_recordings_reference() {
    const WALL: u64 = 1_700_000_000_000_000_000;
    let mut dump = JitDump::with_header(Order::Little, Header { timestamp: WALL, ..Header::of(PID) });
    dump.load(WALL + 5_000_010, load(b"first", AT, 0));
    dump.load(WALL + 5_000_050, load(b"second", AT, 1));
    // The recorder's own clock was 20 when the wall clock was WALL + 5_000_000.
    let mut odd = Odd::with_event("jit-77.dump", Event { clockid: Some(4), ..Event::usual() });
    let words = [[1u32, 4].map(u32::to_le_bytes).concat(), [WALL + 5_000_000, 20].map(u64::to_le_bytes).concat()];
    odd.recording.feature(29, words.concat());
    let odd = odd.file("jit-77.dump", &dump.into_bytes());
    let odd = odd.sample(PID, 30, AT).sample(PID, 69, AT).sample(PID, 70, AT);
    assert_eq!(odd.inject(&[]), (["first", "first", "second"].map(String::from).to_vec(), vec![]));
}

#[test]
fn an_estimated_clock_is_reported_in_one_line_with_its_error() {
    let event = Event { clockid: None, ..Event::usual() };
    let mut dump = JitDump::with_header(Order::Little, Header { timestamp: 9_000_000_003, ..Header::of(PID) });
    dump.load(9_000_000_010, load(b"first", AT, 0));
    let odd = Odd::with_event("jit-77.dump", event).file("jit-77.dump", &dump.into_bytes()).sample(PID, 20, AT);
    expect_warning(odd, &["first"], &["-k mono", "accurate to about 1 ms"]);
}

#[test]
fn a_dump_of_an_earlier_process_of_that_number_is_passed_over_and_that_is_reported() {
    const SECOND: u64 = 1_000_000_000;
    let at = |time, name: &'static [u8]| {
        let mut dump = JitDump::with_header(Order::Little, Header { timestamp: time, ..Header::of(PID) });
        dump.load(time, load(name, AT, 0));
        dump.load(time + SECOND, load(b"other", AT + 0x100, 1));
        dump.into_bytes()
    };
    let mut odd = Odd::new("library.so").file("jit-77.dump", &at(2 * SECOND, b"old"));
    let marker = odd.dir.path().join("jit-77.dump");
    let marker = Mmap { addr: 0x80_0000, len: 0x1000, pgoff: 0, path: marker.to_str().unwrap() };
    odd.recording.mmap2(Stamp::new(PID, 100 * SECOND), marker);
    let input = odd.dir.path().join("input");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("jit-77.dump"), at(101 * SECOND, b"right")).unwrap();
    let odd = odd.sample(PID, 110 * SECOND, AT);
    let out = odd.dir.path().join("out.data");
    let (_dir, _) = odd.inject_from(&input.join("perf.data"), &[], &[]);
    assert_eq!(names(&out), ["right"]);
}

#[test]
fn a_map_written_before_the_process_began_is_not_its_map() {
    const WALL: u64 = 1_700_000_000_000_000_000;
    let map = format!("{AT:x} 40 mapped\n");
    for (written, expected) in [(WALL - 60_000_000_000, "[unknown]"), (WALL + 60_000_000_000, "mapped")] {
        let mut odd = unmarked();
        let words = [[1u32, 1].map(u32::to_le_bytes).concat(), [WALL, 0].map(u64::to_le_bytes).concat()];
        odd.recording.feature(29, words.concat());
        let odd = odd.file("perf-77.map", map.as_bytes());
        let file = fs::File::options().append(true).open(odd.dir.path().join("perf-77.map")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(written)).unwrap();
        assert_eq!(odd.inject(&[]).0, [expected]);
    }
}

#[test]
fn a_containers_map_beside_the_recording_is_used_if_it_was_written_then_and_else_offered() {
    const WALL: u64 = 1_700_000_000_000_000_000;
    let map = format!("{AT:x} 40 mapped\n");
    for (written, expected) in [(WALL - 1, "[unknown]"), (WALL + 5, "mapped"), (WALL + 90_000_000_000, "[unknown]")] {
        let mut odd = unmarked().sample(PID, 30, AT + 0x10);
        let words = [[1u32, 1].map(u32::to_le_bytes).concat(), [WALL, 20].map(u64::to_le_bytes).concat()];
        odd.recording.feature(29, words.concat());
        let odd = odd.file("perf-1.map", map.as_bytes());
        let file = fs::File::options().append(true).open(odd.dir.path().join("perf-1.map")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(written)).unwrap();
        let (input, output) = (odd.dir.path().join("perf.data"), odd.dir.path().join("out.data"));
        fs::write(&input, odd.recording.into_bytes(super::support::perf_data::Mode::File)).unwrap();
        let mut inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let said = inject.arg("inject").arg("-i").arg(&input).arg("-o").arg(&output).output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(names(&output), [expected; 2], "{said}");
        let told = if expected == "mapped" { "used for process 77" } else { "--perf-map" };
        assert!(said.contains("perf-1.map") && said.contains(told), "{said}");
    }
}

/// Two processes in containers of their own, each with the number 1 there, with code at addresses of their own.
fn two_containers() -> Odd {
    let mut odd = Odd::new("library.so");
    odd.recording.namespaces(Stamp::new(PID, 4), 0x1111);
    for (pid, namespace, addr) in [(501, 0x2222, AT), (502, 0x3333, 2 * AT)] {
        odd.recording.fork(Stamp::new(pid, 5), PID);
        odd.recording.namespaces(Stamp::new(pid, 5), namespace);
        odd.recording.comm(Stamp::new(pid, 6), "inner", true);
        odd.recording.mmap2(Stamp::new(pid, 7), Mmap { addr, len: 0x1000, pgoff: 0, path: "//anon" });
    }
    let odd = odd.sample(501, 20, AT).sample(502, 21, 2 * AT);
    for directory in ["a", "b"] {
        fs::create_dir(odd.dir.path().join(directory)).unwrap();
    }
    odd
}

#[test]
fn files_of_two_containers_go_each_to_its_own_process() {
    let map = |addr: u64, name: &str| format!("{addr:x} 40 {name}\n").into_bytes();
    let inner = |name: &'static [u8], addr| {
        let mut dump = JitDump::with_header(Order::Little, Header::of(1));
        dump.load(10, load(name, addr, 0));
        dump.load(11, load(b"other", addr + 0x100, 1));
        dump.into_bytes()
    };
    let files = [
        ("--perf-map", "perf-1.map", [map(2 * AT, "two"), map(AT, "one")]),
        ("--jitdump", "jit-1.dump", [inner(b"two", 2 * AT), inner(b"one", AT)]),
    ];
    for (option, file, [two, one]) in files {
        for given in ["DIR/FILE", "DIR"] {
            let odd = two_containers().file(&format!("a/{file}"), &two).file(&format!("b/{file}"), &one);
            let path = |directory: &str| path(&odd, &given.replace("DIR", directory).replace("FILE", file));
            let (a, b) = (path("a"), path("b"));
            let (names, _) = odd.inject(&[option, &a, option, &b]);
            assert_eq!(names, ["one", "two"], "{option} {given}");
        }
    }
}

#[test]
fn a_file_that_two_containers_may_have_written_is_not_used_for_the_wrong_one() {
    let map = format!("{:x} 40 two\n", 2 * AT);
    let odd = two_containers().file("perf-1.map", map.as_bytes());
    // Nothing shows when it was written: it is offered.
    assert_eq!(odd.inject(&[]).0, ["[unknown]", "[unknown]"]);
    // At the addresses of both it is nobody's.
    let mut odd = two_containers();
    odd.recording.mmap2(Stamp::new(501, 8), Mmap { addr: 2 * AT, len: 0x1000, pgoff: 0, path: "//anon" });
    let odd = odd.sample(501, 22, 2 * AT).file("a/perf-1.map", map.as_bytes());
    let given = path(&odd, "a");
    assert_eq!(odd.inject(&["--perf-map", &given]).0, ["[unknown]", "[unknown]", "[unknown]"]);
}

#[test]
fn a_dump_that_was_written_anew_at_the_markers_path_is_reported_to_be_another_file() {
    use std::os::unix::fs::MetadataExt;
    for (other, words) in [(0, None), (1, Some("its inode differs"))] {
        let mut odd = Odd::new("library.so").file("jit-77.dump", &dump(b"dumped"));
        let marker = odd.dir.path().join("jit-77.dump");
        let data = fs::metadata(&marker).unwrap();
        let device = (rustix::fs::major(data.dev()), rustix::fs::minor(data.dev()));
        let path = marker.to_str().unwrap();
        let marker = Mmap { addr: 0x80_0000, len: 0x1000, pgoff: 0, path };
        odd.recording.mmap2_of(Stamp::new(PID, 4), marker, device, data.ino() + other);
        let (names, warnings) = odd.sample(PID, 20, AT).inject(&[]);
        assert_eq!(names, ["dumped"]);
        assert_eq!(warnings.len(), usize::from(words.is_some()), "{warnings:?}");
        assert!(words.is_none_or(|words| warnings[0].contains(words)), "{warnings:?}");
    }
}

#[test]
fn the_place_of_a_containers_files_and_the_way_to_get_them_out_are_reported() {
    let odd = Odd::new("jit-5.dump").sample(PID, 20, AT);
    expect_warning(odd, &["[unknown]"], &["jit-5.dump", "docker cp CONTAINER:PATH"]);
    let odd = two_containers();
    let (input, output) = (odd.dir.path().join("perf.data"), odd.dir.path().join("out.data"));
    fs::write(&input, odd.recording.into_bytes(super::support::perf_data::Mode::File)).unwrap();
    let mut inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let said = inject.arg("inject").arg("-i").arg(&input).arg("-o").arg(&output).output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let way = "in its container it was process 1 (docker cp CONTAINER:/tmp/perf-1.map";
    assert_eq!(said.matches(way).count(), 2, "{said}");
}
