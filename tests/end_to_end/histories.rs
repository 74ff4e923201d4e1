//! Long histories: what happens four times as often takes about four times as many instructions, as valgrind counts them.
//! `tests/tools/growth.py` measures the same kinds of history at sizes that matter, and in time.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::bytes::Order;
use support::jitdump::{JitDump, Load};
use support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};

/// The number of times that something happens in the shorter history. With fewer, tables that double count too much.
const FEW: u64 = 300;

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
        let now = self.now(pid);
        self.data.mmap2(now, Mmap { addr, len, pgoff: 0, path });
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

/// The program without debugging information, which valgrind would otherwise read for seconds at each start.
fn stripped_program() -> &'static Path {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let stripped = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jitgraft-stripped");
        let strip = Command::new("strip").arg("-o").arg(&stripped).arg(env!("CARGO_BIN_EXE_jitgraft")).status();
        assert!(strip.unwrap().success(), "strip failed (tests/run.sh installs binutils)");
        stripped
    })
}

/// The instructions that a command takes for an input.
fn instructions(words: &str, input: &Path) -> f64 {
    let command = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(stripped_program())
        .args(["-q", "--threads=1"])
        .args(words.split(' '))
        .arg(input)
        .output()
        .expect("valgrind is installed (tests/run.sh)");
    let said = String::from_utf8_lossy(&command.stderr);
    assert!(command.status.success(), "{words}: {said}");
    let counted = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    counted.unwrap_or_else(|| panic!("{words}: valgrind counted nothing: {said}"))
}

/// N repetitions take instructions in proportion to N.
fn is_linear(commands: &[&str], make: impl Fn(&Path, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let inputs = [1, FEW, 4 * FEW].map(|times| {
        let path = dir.path().join(format!("{times}.data"));
        make(&path, times);
        path
    });
    for words in commands {
        let [start, few, many] = [0, 1, 2].map(|at| instructions(words, &inputs[at]));
        let ratio = (many - start) / (few - start);
        assert!(ratio < MOST, "{words}: {ratio:.2} times the instructions for 4 times the history");
    }
}

#[test]
fn a_plugin_that_is_loaded_again_and_again() {
    for distinct in [false, true] {
        is_linear(&["report"], |path, times| {
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
    for (is_chain, apart) in [(true, 0x2000), (false, 0x2000), (false, 0)] {
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
    is_linear(&["report", "inject -f -o /dev/null"], |path, times| {
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
