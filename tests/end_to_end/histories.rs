//! Long histories: what happens four times as often takes about four times as many instructions, as valgrind counts
//! them. `tests/tools/growth.py` measures the same kinds of history at sizes that matter, and in time.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use support::bytes::Order;
use support::effort::{is_thorough, step};
use support::jitdump::{JitDump, Load};
use support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use support::protobuf::{Value, encode};
use support::runner::jitgraft;
use support::tool::run;

/// The number of times that something happens in the shorter history. With fewer, tables that double count too much.
fn few() -> u64 {
    if is_thorough() { 320 } else { 80 }
}

/// Linear work of four times the size takes 4 times as long, quadratic work 16 times.
const MOST: f64 = 5.3;

/// The first process.
const PID: u32 = 7;

/// A recording, while time goes on in it.
struct History {
    data: PerfData,
    time: u64,
}

impl History {
    fn new() -> Self {
        Self { data: PerfData::new(Order::Little, Event::usual()), time: 1_000_000 }
    }

    fn now(&mut self, pid: u32) -> Stamp {
        self.time += 1000;
        Stamp::new(pid, self.time)
    }

    fn map(&mut self, pid: u32, addr: u64, len: u64, path: &str) {
        self.map_part(pid, addr, len, 0, path);
    }

    /// Maps the part of a file that begins at the offset `pgoff`.
    fn map_part(&mut self, pid: u32, addr: u64, len: u64, pgoff: u64, path: &str) {
        let now = self.now(pid);
        self.data.mmap2(now, Mmap { addr, len, pgoff, path });
    }

    fn fork(&mut self, pid: u32, parent: u32) {
        let now = self.now(pid);
        self.data.fork(now, parent);
    }

    fn sample(&mut self, pid: u32, chain: &[u64]) {
        let now = self.now(pid);
        self.data.sample(now, chain);
    }

    fn write(self, path: &Path) {
        fs::write(path, self.data.into_bytes(Mode::File)).unwrap();
    }
}

/// The program without symbols and lines: valgrind takes twice as long if it has to read them.
fn stripped_program() -> &'static Path {
    static STRIPPED: LazyLock<PathBuf> = LazyLock::new(|| {
        let stripped = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jitgraft-stripped");
        run("strip", &["-o", stripped.to_str().unwrap(), env!("CARGO_BIN_EXE_jitgraft")], Path::new("/"));
        stripped
    });
    &STRIPPED
}

/// The instructions that a command takes for an input.
fn instructions(words: &str, input: &Path) -> f64 {
    let command = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        // Most of the code runs only a few times: translating it with less care takes a quarter of the time off.
        .args(["--vex-iropt-level=0", "--vex-guest-chase=no"])
        .arg(stripped_program())
        .args(["-q", "--threads=1"])
        .args(words.split(' '))
        .arg(input)
        .output()
        .expect("valgrind is installed (tests/run.sh)");
    let said = String::from_utf8_lossy(&command.stderr);
    assert!(command.status.success(), "{words}: {said}");
    let count = |line: &str| line.split_once("refs:")?.1.trim().replace(',', "").parse().ok();
    let counted = said.lines().find_map(count);
    counted.unwrap_or_else(|| panic!("{words}: valgrind counted nothing: {said}"))
}

/// The number of instructions that `report` takes for a recording in which nearly nothing happens. It is measured once
/// for all histories.
static REPORT_START: LazyLock<f64> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("start.data");
    let mut history = History::new();
    history.map(PID, 0x1000_0000, 0x4000, "/nowhere/app");
    history.sample(PID, &[0x1000_0010, 0x1000_2000]);
    history.write(&path);
    instructions("report", &path)
});

/// N repetitions take instructions in proportion to N. A quick run tries the first of the commands only: valgrind takes
/// seconds for each.
fn is_linear(commands: &[&str], make: impl Fn(&Path, u64)) {
    is_linear_from(few(), commands, make);
}

fn is_linear_from(few: u64, commands: &[&str], make: impl Fn(&Path, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [1, few, 4 * few].map(|times| {
        let path = dir.path().join(format!("{times}.data"));
        make(&path, times);
        path
    });
    let tried = if is_thorough() { commands.len() } else { 1 };
    for words in &commands[..tried] {
        let is_recording = fs::read(&inputs[0]).is_ok_and(|bytes| bytes.starts_with(b"PERFILE2"));
        let start = if *words == "report" && is_recording { *REPORT_START } else { instructions(words, &inputs[0]) };
        let [few, many] = [1, 2].map(|at| instructions(words, &inputs[at]));
        let ratio = (many - start) / (few - start);
        assert!(ratio < MOST, "{words}: {ratio:.2} times the instructions for 4 times the history");
    }
}

#[test]
fn a_plugin_that_is_loaded_again_and_again() {
    for distinct in [true, false].into_iter().step_by(step(2)) {
        is_linear_from(2 * few(), &["report"], |path, times| {
            let mut history = History::new();
            for n in 0..times {
                let number = if distinct { n } else { 0 };
                history.map(PID, 0x1000_0000, 0x4000, &format!("/nowhere/plugin{number}.so"));
                history.sample(PID, &[0x1000_0010 + 16 * (n % 50), 0x1000_2000]);
            }
            history.write(path);
        });
    }
}

/// A program whose text is mapped in many parts, and memory that is mapped over one of them or over all, again and
/// again; and the same with memory in many parts.
#[test]
fn memory_over_text_in_many_parts() {
    let kinds = [("/nowhere/app", true), ("/nowhere/app", false), ("//anon", true)];
    for (below, over_all) in kinds.into_iter().step_by(step(3)) {
        is_linear(&["report", "inject -o /dev/null"], |path, times| {
            let mut history = History::new();
            for n in 0..times {
                history.map_part(PID, 0x1000_0000 + 0x1000 * n, 0x1000, 0x1000 * n, below);
            }
            for n in 0..times {
                let (start, len) = if over_all { (0, 0x1000 * times) } else { (0x1000 * n, 0x1000) };
                history.map(PID, 0x1000_0000 + start, len, "//anon");
                history.sample(PID, &[0x1000_0010 + 0x1000 * n, 0x1000_0020]);
            }
            history.write(path);
        });
    }
}

#[test]
fn mappings_that_lie_in_each_other_and_over_each_other() {
    is_linear(&["report"], |path, times| {
        let (mut history, middle) = (History::new(), 0x4000_0000);
        for n in 0..times {
            let half = 0x1000 * (times - n);
            history.map(PID, middle - half, 2 * half, &format!("/nowhere/lib{}.so", n % 50));
            history.sample(PID, &[middle + 16, middle - half + 16]);
        }
        (0..times).for_each(|n| history.sample(PID, &[middle + 0x1000 * n + 16, middle - 0x1000 * n - 16]));
        history.write(path);
    });
    is_linear(&["report"], |path, times| {
        let mut history = History::new();
        for n in 0..times {
            let start = 0x1000_0000 + 0x1000 * n;
            history.map(PID, start, 0x1000 * times, &format!("/nowhere/lib{}.so", n % 50));
            history.sample(PID, &[start + 16, start + 0x1000 * times - 16]);
        }
        history.write(path);
    });
}

#[test]
fn a_chain_of_forks() {
    is_linear(&["report", "doctor"], |path, times| {
        let mut history = History::new();
        history.map(PID, 0x40_0000, 0x10_0000, "/nowhere/app");
        for (n, pid) in (0..times).zip(PID..) {
            history.fork(pid + 1, pid);
            history.sample(pid + 1, &[0x40_0000 + 16 * (n % 50), 0x40_1000, 0x9000_0000]);
        }
        history.write(path);
    });
}

#[test]
fn forks_and_mappings_in_turn() {
    for (is_chain, apart) in [(true, 0x2000), (false, 0x2000), (false, 0)].into_iter().step_by(step(3)) {
        is_linear(&["report"], |path, times| {
            let mut history = History::new();
            for (n, next) in (0..times).zip(PID + 1..) {
                let parent = if is_chain { next - 1 } else { PID };
                history.map(parent, 0x1000_0000 + apart * n, 0x1000, &format!("/nowhere/lib{}.so", n % 50));
                history.fork(next, parent);
                history.sample(next, &[0x1000_0010 + apart * (n * 7919 % (n + 1)), 0x1000_0010]);
            }
            history.write(path);
        });
    }
}

#[test]
fn a_number_that_is_given_to_process_after_process() {
    is_linear(&["inject -f -o /dev/null", "report"], |path, times| {
        let directory = path.with_extension("dumps");
        fs::create_dir(&directory).unwrap();
        let (dump, child, code) = (directory.join("jit-8.dump"), 8, 0x7f00_0000_0000);
        let (mut history, mut loads) = (History::new(), JitDump::new(child));
        history.map(PID, 0x40_0000, 0x10_0000, "/nowhere/app");
        for n in 0..times {
            history.fork(child, PID);
            if n == 0 {
                history.map(child, 0x1000, 0x1000, dump.to_str().unwrap());
            }
            history.map(child, code, 0x2000 * times, "//anon");
            let addr = code + 0x2000 * n;
            history.sample(child, &[addr + 8, 0x40_0010]);
            history.time += 1000;
            let name = format!("function_{n}");
            loads.load(history.time, Load { tid: child, addr, index: n, name: name.as_bytes(), code: &[0x90; 48] });
            history.sample(child, &[addr + 8, 0x40_0010]);
            let now = history.now(child);
            history.data.exit(now, PID);
        }
        fs::write(&dump, loads.into_bytes()).unwrap();
        history.write(path);
    });
}

#[test]
fn forks_of_a_process_with_many_mappings() {
    is_linear(&["view --no-open -o /dev/null", "doctor"], |path, times| {
        let mut history = History::new();
        for n in 0..times {
            history.map(PID, 0x1000_0000 + 0x2000 * n, 0x1000, &format!("/nowhere/lib{}.so", n % 50));
        }
        for (n, child) in (0..times).zip(PID + 1..) {
            history.fork(child, PID);
            history.sample(child, &[0x1000_0010 + 0x2000 * (n * 7919 % times), 0x1000_0010]);
        }
        history.write(path);
    });
}

#[test]
fn a_list_of_the_kernel_that_is_one_long_line() {
    is_linear(&["report"], |path, times| {
        let mut history = History::new();
        let addr = 0xffff_ffff_8100_0000;
        let kernel = Mmap { addr, len: !addr, pgoff: addr, path: "[kernel.kallsyms]_text" };
        history.data.kernel_mmap(Stamp::default(), kernel);
        let in_kernel = -128i64 as u64;
        history.sample(PID, &[in_kernel, addr + 0x10]);
        fs::create_dir_all(path.join("kcore_dir")).unwrap();
        history.write(&path.join("data"));
        fs::write(path.join("kcore_dir/kallsyms"), "_text ".repeat(20 * times as usize)).unwrap();
    });
}

#[test]
fn spans_that_overlap_each_other() {
    is_linear(&["report", "report --clock active"], |path, times| {
        let span = |n| format!(r#"{{"name":"span {}","ph":"X","ts":{n},"dur":{times},"pid":7,"tid":7}}"#, n % 50);
        fs::write(path, format!("[{}]\n", (0..times).map(span).collect::<Vec<_>>().join(",\n"))).unwrap();
    });
}

/// A list of this many, as JSON has them.
fn list(times: u64, of: impl Fn(u64) -> String) -> String {
    (0..times).map(of).collect::<Vec<_>>().join(",")
}

/// A pprof of one sample that has a value of each of many types.
fn pprof_of_types(times: u64) -> Vec<u8> {
    let bytes = |tag: u64, content: Vec<u8>| (tag, Value::Bytes(content));
    let number = |tag: u64, number: u64| (tag, Value::Number(number));
    let kind = |n: u64| bytes(1, encode(&[number(1, 3 + n), number(2, 1)]));
    let mut fields: Vec<_> = (0..times).map(kind).collect();
    let values = (0..times).flat_map(|n| [n as u8 & 0x7f | 0x80, 1]).collect();
    fields.push(bytes(2, encode(&[bytes(1, vec![1]), bytes(2, values)])));
    fields.push(bytes(4, encode(&[number(1, 1), bytes(4, encode(&[number(1, 1)]))])));
    fields.push(bytes(5, encode(&[number(1, 1), number(2, 2)])));
    let names = (0..times).map(|n| format!("type{n}"));
    fields.extend(["", "count", "f"].map(str::to_owned).into_iter().chain(names).map(|text| bytes(6, text.into())));
    encode(&fields)
}

/// A profile in which many things were counted, in each format that has such.
#[test]
#[ignore = "needs minutes: tests/run.sh --all"]
fn events_by_the_hundred() {
    let commands =
        ["report", "export --to pprof -o /dev/null", "export --to otlp -o /dev/null", "view --no-open -o /dev/null"];
    is_linear(&commands, |path, times| fs::write(path, pprof_of_types(times)).unwrap());
    is_linear(&commands, |path, times| {
        let pprof = path.with_extension("pb");
        fs::write(&pprof, pprof_of_types(times)).unwrap();
        let output = jitgraft(&["export", "-q", "--to", "otlp", "-o", path.to_str().unwrap()], &pprof);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    is_linear(&commands, |path, times| {
        let one = |n| format!(r#"{{"type":"sampled","name":"p{n}","unit":"none","samples":[[0]],"weights":[1]}}"#);
        let schema = "https://www.speedscope.app/file-format-schema.json";
        let profiles = list(times, one);
        let text =
            format!(r#"{{"$schema":"{schema}","shared":{{"frames":[{{"name":"f"}}]}},"profiles":[{profiles}]}}"#);
        fs::write(path, text).unwrap();
    });
    is_linear(&commands, |path, times| {
        let thread = |n| {
            format!(
                r#"{{"name":"t{n}","pid":"{n}","tid":{n},"samples":{{"stack":[0],"weight":[1],"weightType":"w{n}"}},
                "stackTable":{{"frame":[0],"prefix":[null]}},"frameTable":{{"func":[0]}},"funcTable":{{"name":[0]}},
                "stringArray":["f{n}"],"markers":{{"length":0}}}}"#
            )
        };
        let threads = list(times, thread);
        fs::write(path, format!(r#"{{"meta":{{"preprocessedProfileVersion":50}},"threads":[{threads}]}}"#)).unwrap();
    });
    is_linear(&commands, |path, times| {
        let words = |of: fn(u64) -> String| (0..times).map(of).collect::<Vec<_>>().join(" ");
        let (names, costs) = (words(|n| format!("E{n}")), words(|n| n.to_string()));
        fs::write(
            path,
            format!("# callgrind format\nversion: 1\nevents: {names}\n\nfn=a\n1 {costs}\nfn=b\n2 {costs}\n"),
        )
        .unwrap();
    });
    is_linear(&commands, |path, times| {
        let sample = |n| format!("app 7/7 1.{:06}: 1 event{}: \n\t401000 f{} (/bin/app)\n\n", n, n % times, n % 50);
        fs::write(path, (0..3 * times).map(sample).collect::<String>()).unwrap();
    });
    is_linear(&["report", "script -o /dev/null", "doctor"], |path, times| {
        let mut history = History::new();
        history.data = PerfData::with_events(Order::Little, vec![Event::usual(); times as usize]);
        history.map(PID, 0x40_0000, 0x10_0000, "/nowhere/app");
        for event in 0..times {
            let now = history.now(PID);
            history.data.sample_of(event as usize, 2, now, 0x40_0010, &[0x40_0010, 0x40_1000]);
        }
        history.write(path);
    });
}

#[test]
fn events_by_the_thousand() {
    is_linear_from(500 / step(2) as u64, &["export --to otlp -o /dev/null"], |path, times| {
        let sample = |n| format!("app 7/7 1.{n:06}: 1 event{n}: \n\t401000 f{} (/bin/app)\n\n", n % 50);
        fs::write(path, (0..times).map(sample).collect::<String>()).unwrap();
    });
    is_linear_from(500 / step(2) as u64, &["report", "export --to pprof -o /dev/null"], |path, times| {
        fs::write(path, pprof_of_types(times)).unwrap();
    });
}

/// Spans of one thread, and what they may lack: ends of other names, ends in the wrong order, ends that come first.
#[test]
#[ignore = "needs a minute: tests/run.sh --all"]
fn spans_whose_ends_do_not_fit() {
    type Name = fn(u64, u64) -> u64;
    let orders: [(&str, Name); 4] =
        [("B E", |n, _| n), ("B E", |_, _| 9_999), ("b e", |n, _| n), ("e b", |n, times| times - 1 - n)];
    for (phases, name) in orders {
        is_linear(&["report"], |path, times| {
            let event = |phase: &str, time: u64, name: u64| {
                format!(r#"{{"name":"span {name}","ph":"{phase}","cat":"c","id":1,"ts":{time},"pid":7,"tid":7}}"#)
            };
            let (first, then) = phases.split_once(' ').unwrap();
            let starts = list(times, |n| event(first, n, n));
            let ends = list(times, |n| event(then, times + n, name(n, times)));
            fs::write(path, format!("[{starts},{ends}]")).unwrap();
        });
    }
    is_linear(&["report"], |path, times| {
        let open = list(times, |n| format!(r#"{{"name":"span {n}","ph":"B","ts":{n},"pid":7,"tid":7}}"#));
        fs::write(path, format!(r#"[{{"name":"all","ph":"X","ts":0,"dur":{},"pid":7,"tid":7}},{open}]"#, 2 * times))
            .unwrap();
    });
}

/// Record lines of perf script: mappings of files, of jitdumps, and forks of processes that have many of them.
#[test]
#[ignore = "needs a minute: tests/run.sh --all"]
fn record_lines_of_a_text() {
    let map = |n: u64, path: &str| {
        let addr = 0x1000_0000 + 0x2000 * n;
        format!("app 7/7 0.{n:06}: PERF_RECORD_MMAP2 7/7: [{addr:#x}(0x1000) @ 0 fe:00 {n} 0]: r-xp {path}\n")
    };
    let sample =
        |pid: u64, addr: u64| format!("app {pid}/{pid} 5.000000: 1 cycles: \n\t{addr:x} [unknown] (//anon)\n\n");
    let commands = ["script -o /dev/null", "report"];
    for path in ["/nowhere/lib{}.so", "/nowhere/lib.so", "/nowhere/{}/jit-7.dump"] {
        is_linear(&commands, |input, times| {
            let maps: String = (0..times).map(|n| map(n, &path.replace("{}", &n.to_string()))).collect();
            let samples: String = (0..times).map(|n| sample(7, 0x1000_0010 + 0x2000 * n)).collect();
            fs::write(input, maps + &samples).unwrap();
        });
    }
    is_linear(&commands, |input, times| {
        let mut text: String = (0..times).map(|n| map(n, "/nowhere/lib.so")).collect();
        for n in 0..times {
            let pid = 1000 + n;
            text += &format!("app 7/7 1.{n:06}: PERF_RECORD_FORK({pid}:{pid}):(7:7)\n{}", sample(pid, 0x1000_0010));
        }
        fs::write(input, text).unwrap();
    });
}

/// One instruction that calls many functions, and a function of many files.
#[test]
#[ignore = "needs a minute: tests/run.sh --all"]
fn calls_and_files_of_one_function() {
    let head = "# callgrind format\nversion: 1\npid: 7\npositions: instr line\nevents: Ir\nob=/nowhere/app\nfl=a.c\n";
    is_linear(&["annotate -o /dev/null", "report", "callgrind -o /dev/null"], |path, times| {
        let call = |n| format!("cfn=g{n}\ncalls=1 {:#x} 1\n0x1000 1 5\n", 0x10_0000 + 4 * n);
        let callee = |n| format!("fn=g{n}\n{:#x} 1 5\n", 0x10_0000 + 4 * n);
        let (calls, callees): (String, String) = ((0..times).map(call).collect(), (0..times).map(callee).collect());
        fs::write(path, format!("{head}fn=a\n{calls}{callees}")).unwrap();
        fs::write(path.with_file_name("perf-7.map"), "7f0000000000 40 generated\n").unwrap();
    });
    is_linear(&["annotate -o /dev/null", "report"], |path, times| {
        let part = |n| format!("fi=/nowhere/f{n}.c\n{:#x} {n} 1\n", 0x1000 + 4 * n);
        fs::write(path, format!("{head}fn=a\n{}", (0..times).map(part).collect::<String>())).unwrap();
    });
}

/// An archive of many members: each process has a map of its own.
#[test]
#[ignore = "needs a minute: tests/run.sh --all"]
fn members_of_an_archive() {
    is_linear(&["report", "inject -o /dev/null"], |path, times| {
        let directory = path.with_extension("recorded");
        fs::create_dir(&directory).unwrap();
        let mut history = History::new();
        for pid in (0..times as u32).map(|n| 100_000 + n) {
            history.map(pid, 0x1000_0000, 0x1_0000, "//anon");
            history.sample(pid, &[0x1000_0010]);
            fs::write(directory.join(format!("perf-{pid}.map")), format!("10000000 40 function_of_{pid}\n")).unwrap();
        }
        let recording = directory.join("perf.data");
        history.write(&recording);
        let archive = path.with_extension("tar.zst");
        let output = jitgraft(&["pack", "-q", "-o", archive.to_str().unwrap()], &recording);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(archive, path).unwrap();
    });
}
