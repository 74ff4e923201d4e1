//! Samples that this machine need not be able to record: branch stacks, LBR call chains, groups, hypervisors, other
//! architectures.

use crate::support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::bytes::Order;
use support::perf_data::*;
use support::recordings::{BRANCH_CALL_STACK, READ_GROUP};
use tempfile::TempDir;

fn run(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A program that is where its file states, and where its functions begin.
struct Program {
    dir: TempDir,
    path: PathBuf,
    functions: BTreeMap<String, u64>,
}

impl Program {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/deep.c");
        run("gcc", &["-O1", "-g0", "-no-pie", "-o", path.to_str().unwrap(), source]);
        let symbols = run("nm", &[path.to_str().unwrap()]);
        let function = |line: &str| {
            let [address, "t" | "T", name] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
            Some((name.to_owned(), u64::from_str_radix(address, 16).unwrap()))
        };
        Self { functions: symbols.lines().filter_map(function).collect(), dir, path }
    }

    /// An address so far into a function.
    fn at(&self, function: &str, offset: u64) -> u64 {
        self.functions[function] + offset
    }

    /// A recording of these samples.
    fn recording(&self, event: Event) -> PerfData {
        let mut out = PerfData::new(Order::Little, event);
        out.comm(Stamp::new(77, 1), "deep", true);
        let map = Mmap { addr: 0x40_1000, len: 0x1_0000, pgoff: 0x1000, path: self.path.to_str().unwrap() };
        out.mmap2(Stamp::new(77, 2), map);
        out
    }

    fn write(&self, out: PerfData) -> String {
        let data = self.dir.path().join("perf.data");
        std::fs::write(&data, out.into_bytes(Mode::File)).unwrap();
        data.to_str().unwrap().to_owned()
    }
}

fn ours(arguments: &[&str]) -> String {
    run(env!("CARGO_BIN_EXE_jitgraft"), arguments)
}

fn perf(arguments: &[&str]) -> String {
    run("perf", arguments)
}

/// Functions of each sample, innermost first, as perf script prints them.
fn chains(text: &str) -> Vec<Vec<String>> {
    let samples = text.split("\n\n").filter(|sample| !sample.trim().is_empty());
    let name = |line: &str| line.trim_start().split_once(' ').map(|(_, name)| name.to_owned());
    samples.map(|sample| sample.lines().skip(1).filter_map(name).collect()).collect()
}

/// Flags of branches: mispredicted; predicted; in a transaction; aborted; 37 cycles; a call; of an extended type.
const FLAGS: [u64; 7] = [1, 2, 4 | 2, 8, 2 | 37 << 4, 2 | 4 << 20, 2 | 15 << 20 | 1 << 26];

#[test]
fn branches_are_printed_as_perf_prints_them() {
    let program = Program::new();
    let event = Event { sample_type: USUAL | BRANCH_STACK, branches: BRANCH_USER, ..Event::usual() };
    let mut out = program.recording(event);
    let at = |function, offset| program.at(function, offset);
    for (sample, flags) in (0..).zip(FLAGS) {
        let branches = [
            [at("n_p", 9), at("n_p_a", 0), flags],
            [at("n", 17), at("n_p", 0), 2],
            [at("main", 30), at("n", 0), 0],
            [0x1234, at("main", 4), 2],
        ];
        let more = More { branches: &branches, ..More::default() };
        let chain = [CONTEXT_USER, at("n_p_a", 4), at("n_p", 14), at("n", 22), at("main", 60)];
        out.sample_with(0, USER, Stamp::new(77, 1000 + sample), chain[1], &chain, &more);
    }
    let data = program.write(out);
    for fields in ["comm,tid,time,brstack", "comm,brstacksym", "comm,dso,brstack", "comm,dso,brstacksym"] {
        let theirs = perf(&["script", "-F", fields, "-i", &data]);
        assert!(theirs.lines().count() == FLAGS.len() && theirs.contains("/P/-/-/37/"), "{theirs}");
        assert_eq!(ours(&["script", "-F", fields, &data]), theirs, "{fields}");
    }
    // The branches are above the callers; those callers whose calls are among the branches are not reported twice.
    let history = ours(&["collapse", "--branch-stack", "--weight", "samples", &data]);
    assert_eq!(history, "deep;main;[unknown];main;main;n;n;n_p;n_p;n_p_a 7\n");
}

#[test]
fn data_addresses_and_registers_are_printed_as_perf_prints_them() {
    let program = Program::new();
    let registers = 1 | 0b11 << 6 | 1 << 8 | 0b1001 << 16;
    for chain in [CALLCHAIN, 0] {
        let sample_type = (USUAL & !CALLCHAIN) | chain | ADDR | REGS_USER | REGS_INTR;
        let mut out = program.recording(Event { sample_type, registers, ..Event::usual() });
        for (time, abi) in [(1000, 2), (1001, 1), (1002, 0)] {
            let values = [0, 0x7ffd_d32c_7e88, 1, u64::MAX, 0x80, 9];
            let more = More {
                addr: 0x7f00_1234,
                registers: (abi, &values[..if abi == 0 { 0 } else { 6 }]),
                ..More::default()
            };
            let stack = [CONTEXT_USER, program.at("n", 22), program.at("main", 60)];
            out.sample_with(0, USER, Stamp::new(77, time), stack[1], &stack, &more);
        }
        let data = program.write(out);
        for fields in ["comm,tid,time,event,addr", "ip,sym,addr,iregs", "comm,uregs", "time,addr,ip,sym,iregs,uregs"] {
            let theirs = perf(&["script", "-F", fields, "-i", &data]);
            assert!(theirs.contains("7f001234") || theirs.contains("R11:0x9"), "{theirs}");
            // perf 6.1 prints addresses relative to their file.
            let ours = ours(&["script", "-F", fields, &data]).replace("\t          4040", "\t            40");
            assert_eq!(ours, theirs, "{fields}");
        }
    }
}

#[test]
fn lbr_call_chains_are_those_of_perf() {
    let program = Program::new();
    let event =
        Event { sample_type: USUAL | BRANCH_STACK, branches: BRANCH_USER | BRANCH_CALL_STACK, ..Event::usual() };
    let mut out = program.recording(event);
    let at = |function, offset| program.at(function, offset);
    let branches = [[at("n_p", 9), at("n_p_a", 0), 2], [at("n", 17), at("n_p", 0), 2], [at("main", 30), at("n", 0), 2]];
    let more = More { branches: &branches, ..More::default() };
    let ip = at("n_p_a", 4);
    out.sample_with(0, USER, Stamp::new(77, 1000), ip, &[CONTEXT_USER, ip], &more);
    let kernel = 0xffff_ffff_8100_1000;
    let chain = [CONTEXT_KERNEL, kernel, kernel + 0x100, CONTEXT_USER, ip];
    out.sample_with(0, KERNEL, Stamp::new(77, 2000), kernel, &chain, &more);
    // Nothing was recorded of the user's part.
    out.sample_with(0, KERNEL, Stamp::new(77, 3000), kernel, &chain[..3], &more);
    let data = program.write(out);
    let arguments = ["script", "-F", "comm,ip,sym"];
    let theirs = chains(&perf(&[&arguments[..], &["-i", &data]].concat()));
    assert_eq!(theirs[0], ["n_p_a", "n_p", "n", "main"]);
    assert_eq!(theirs.iter().map(Vec::len).collect::<Vec<_>>(), [4, 6, 2]);
    assert_eq!(chains(&ours(&[&arguments[..], &["--kallsyms", "/dev/null", &data]].concat())), theirs);
}

#[test]
fn a_group_sample_is_one_of_each_member() {
    let program = Program::new();
    let event =
        |name, id, sample_type| Event { name, sample_type, ids: vec![id], read_format: READ_GROUP, ..Event::usual() };
    let kinds = USUAL | READ | ID;
    let mut out = PerfData::with_events(Order::Little, vec![event("cpu-clock", 5, kinds), event("second", 6, kinds)]);
    out.comm(Stamp { id: 5, ..Stamp::new(77, 1) }, "deep", true);
    let map = Mmap { addr: 0x40_1000, len: 0x1_0000, pgoff: 0x1000, path: program.path.to_str().unwrap() };
    out.mmap2(Stamp { id: 5, ..Stamp::new(77, 2) }, map);
    let leaf = program.at("n_p_a", 4);
    // The second counter rests between the second and the third sample.
    for (time, values) in [(1000, [100, 7]), (2000, [250, 9]), (3000, [300, 9]), (4000, [301, 20])] {
        let more = More { values: &[(values[0], 5), (values[1], 6)], ..More::default() };
        out.sample_with(0, USER, Stamp { id: 5, ..Stamp::new(77, time) }, leaf, &[CONTEXT_USER, leaf], &more);
    }
    let data = program.write(out);
    let arguments = ["script", "-F", "comm,tid,time,period,event,ip,sym"];
    let theirs = perf(&[&arguments[..], &["-i", &data]].concat());
    assert_eq!(theirs.matches("second").count(), 3, "{theirs}");
    let header = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("deep")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(header(&ours(&[&arguments[..], &[&data]].concat())), header(&theirs));
    // Samples that a filter drops are counted all the same.
    let late = ours(&["collapse", "--event", "second", "--time", "0.000003,", &data]);
    assert_eq!(late, "deep;n_p_a 11\n");
}

/// Recordings of other machines, without their files: samples of a thread in two mapped files and the kernel.
fn foreign(machine: &str, order: Order, wide: bool, mode: Mode) -> Vec<u8> {
    let high = if wide { 0xffff_8000_0000_0000 } else { 0xc000_0000 };
    let mut out = PerfData::new(order, Event::usual());
    out.machine(machine);
    out.comm(Stamp::new(77, 1), "app", true);
    let map = |addr, path| Mmap { addr, len: 0x1_0000, pgoff: 0x2000, path };
    out.mmap2(Stamp::new(77, 2), map(0x1_0000, "/no/such/app"));
    out.mmap2(Stamp::new(77, 3), map(0x7654_0000, "/no/such/libwork.so"));
    out.sample(Stamp::new(77, 1000), &[0x7654_0100, 0x1_0444, 0x1_0200]);
    out.sample(Stamp::new(77, 2000), &[0x7654_0100, 0x1_0448, 0x1_0200]);
    let chain = [CONTEXT_KERNEL, high + 0x100, high + 0x200, CONTEXT_USER, 0x7654_0200, 0x1_0444, 0x4000];
    out.sample_of(0, KERNEL, Stamp::new(77, 3000), high + 0x100, &chain);
    out.into_bytes(mode)
}

#[test]
fn recordings_of_other_machines_are_grouped_by_file_and_offset() {
    let machines = [
        ("aarch64", Order::Little, true),
        ("armv7l", Order::Little, false),
        ("i686", Order::Little, false),
        ("s390x", Order::Big, true),
        ("riscv64", Order::Little, true),
        ("ppc", Order::Big, false),
        ("nosuch", Order::Little, true),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (machine, order, wide) in machines {
        for mode in [Mode::File, Mode::Pipe] {
            let data = dir.path().join("perf.data");
            std::fs::write(&data, foreign(machine, order, wide, mode)).unwrap();
            let data = data.to_str().unwrap();
            let samples = ["--weight", "samples"];
            let plain = ours(&[&["collapse"], &samples[..], &[data]].concat());
            let expected = "app;[app];[app];[libwork.so] 2\napp;[unknown];[app];[libwork.so];[unknown];[unknown] 1\n";
            assert_eq!(plain, expected, "{machine} {mode:?}");
            let addresses = ours(&[&["collapse", "--annotate", "addrs"], &samples[..], &[data]].concat());
            assert!(addresses.contains("app;[app <2200>];[app <2444>];[libwork.so <2100>] 1\n"), "{addresses}");
            // Asked for by address, calls at different ones are different rows; equal offsets of one file are one.
            let report = ours(&["report", "--addrs", "--format", "csv", "--sort", "samples", data]);
            let libwork: Vec<&str> = report.lines().filter(|line| line.contains("libwork.so")).collect();
            assert_eq!(libwork.len(), 2, "{report}");
            assert!(libwork[0].contains("0x2100") && libwork[1].contains("0x2200"), "{report}");
            let script = ours(&["script", "-F", "comm,ip,sym,dso", data]);
            assert!(script.contains("        76540100 [unknown] (/no/such/libwork.so)"), "{script}");
            assert!(ours(&["flamegraph", data]).contains("[libwork.so]"));
        }
    }
}

/// `PERF_REG_ARM64_*`: x29 (the frame pointer), x30, sp, pc; of a recording they are all there, from x0 on.
const ARM64_REGISTERS: u64 = (1 << 33) - 1;

#[test]
fn stacks_of_aarch64_are_unwound_without_its_files() {
    let (app, lib, stack) = (0xaaaa_0000_0000, 0xffff_a000_0000, 0xffff_f000_0000);
    let kinds = USUAL | REGS_USER | STACK_USER;
    let event = Event { sample_type: kinds, registers: ARM64_REGISTERS, stack: 8192, ..Event::usual() };
    let mut out = PerfData::new(Order::Little, event);
    out.machine("aarch64");
    out.comm(Stamp::new(77, 1), "app", true);
    for (time, addr, path) in [(2, app, "/no/such/app"), (3, lib, "/no/such/libwork.so")] {
        out.mmap2(Stamp::new(77, time), Mmap { addr, len: 0x1_0000, pgoff: 0, path });
    }
    // Frame records: the caller's, and where it goes on; one return address is signed.
    let words = [stack + 0x20, lib + 0x444, 0, 0, stack + 0x30, (0x2a << 48) | (app + 0x888), 0, 0];
    let mut registers = [0; 33];
    (registers[29], registers[30], registers[31], registers[32]) = (stack, lib + 0x440, stack, lib + 0x100);
    let more = More { registers: (2, &registers), stack: &words, ..More::default() };
    out.sample_with(0, USER, Stamp::new(77, 1000), lib + 0x100, &[], &more);
    // A 32-bit program on the same machine: its registers are others, and nothing is known of its stack.
    (registers[13], registers[15], registers[31], registers[32]) = (0, app + 0x200, 0, app + 0x200);
    let more = More { registers: (1, &registers), stack: &words, ..More::default() };
    out.sample_with(0, USER, Stamp::new(77, 2000), app + 0x200, &[], &more);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    std::fs::write(&data, out.into_bytes(Mode::File)).unwrap();
    let folded = ours(&["collapse", "--annotate", "addrs", "--weight", "samples", data.to_str().unwrap()]);
    let whole = "app;[app <888>];[libwork.so <444>];[libwork.so <100>] 1";
    assert_eq!(folded, format!("{whole}\napp;[truncated];[app <200>] 1\n"));
}

#[test]
fn the_kernels_image_names_its_functions_and_inlined_calls() {
    let dir = tempfile::tempdir().unwrap();
    let vmlinux = dir.path().join("vmlinux");
    let (image, source) = (vmlinux.to_str().unwrap(), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/inlined.c"));
    // Any program will do: its first function is what the recording calls the kernel's first.
    let arguments = ["-O2", "-g", "-no-pie", "-Wl,--build-id", "-Wl,--defsym=_text=hidden", "-o", image, source];
    run("gcc", &arguments);
    let symbols = run("nm", &["-S", image]);
    let hidden = symbols.lines().find(|line| line.ends_with(" hidden")).unwrap();
    let size = u64::from_str_radix(hidden.split(' ').nth(1).unwrap(), 16).unwrap();
    let text = 0xffff_ffff_a200_0000;
    let recording = |build_id: Option<[u8; 20]>| {
        let mut out = PerfData::new(Order::Little, Event::usual());
        if let Some(id) = build_id {
            out.kernel_build_id(&id);
        }
        let map = Mmap { addr: text, len: 0x100_0000, pgoff: text, path: "[kernel.kallsyms]_text" };
        out.kernel_mmap(Stamp::default(), map);
        out.comm(Stamp::new(77, 1), "app", true);
        let chain = [CONTEXT_KERNEL, text + size / 2, text + 4];
        out.sample_of(0, KERNEL, Stamp::new(77, 1000), chain[1], &chain);
        let data = dir.path().join("perf.data");
        std::fs::write(&data, out.into_bytes(Mode::File)).unwrap();
        data.to_str().unwrap().to_owned()
    };
    let fold = |data: &str, options: &[&str]| {
        let common = ["collapse", "--weight", "samples", "--annotate", "kernel", "--kallsyms", "/dev/null"];
        ours(&[&common[..], options, &[data]].concat())
    };
    let data = recording(None);
    assert_eq!(fold(&data, &["--vmlinux", image, "--no-inline"]), "app;hidden_[k];hidden_[k] 1\n");
    let inlined = fold(&data, &["--vmlinux", image]);
    assert!(inlined.contains("hidden_[k];middle;innermost"), "{inlined}");
    // A sample on a single line shows the function and the line of the innermost call, as in perf.
    for options in [&["-G"][..], &["-G", "--no-inline"]] {
        let common = ["script", "--kallsyms", "/dev/null", "--vmlinux", image, "-F", "ip,sym,srcline"];
        let text = ours(&[&common[..], options, &["-i", data.as_str()]].concat());
        let (symbol, line) = text.split_once("\n  inlined.c:").unwrap();
        assert!(symbol.ends_with(" hidden") && line.trim().parse::<u32>().unwrap() < 7, "{text}");
    }
    // Of another version nothing is believed.
    assert!(!fold(&recording(Some([7; 20])), &["--vmlinux", image]).contains("hidden"));
    let own = run("readelf", &["-n", image]);
    let own = own.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&own[2 * at..2 * at + 2], 16).unwrap()).collect();
    let data = recording(Some(id.try_into().unwrap()));
    assert!(fold(&data, &["--vmlinux", image]).contains("hidden"));
    // By itself it is found by its release.
    let boot = dir.path().join("boot");
    std::fs::create_dir(&boot).unwrap();
    std::fs::copy(&vmlinux, boot.join("vmlinux-6.1.0")).unwrap();
    assert!(fold(&data, &["--debug-dir", dir.path().to_str().unwrap()]).contains("hidden"));
}

#[test]
fn guests_and_hypervisors_are_distinguished_from_the_host() {
    let program = Program::new();
    let mut out = program.recording(Event::usual());
    let user = program.at("n_p", 12);
    let (guest_user, guest_kernel, hypervisor) = (-2048i64 as u64, -2176i64 as u64, -32i64 as u64);
    // The address of a program of the host, each time; in user mode only it is that program's.
    let chains = [
        (USER, vec![CONTEXT_USER, user]),
        (3, vec![hypervisor, user, CONTEXT_USER, user]),
        (4, vec![guest_kernel, user, user]),
        (5, vec![guest_user, user]),
        (KERNEL, vec![CONTEXT_KERNEL, 0xffff_ffff_8100_0000, hypervisor, user, CONTEXT_USER, user]),
    ];
    for (time, (misc, chain)) in (1..).zip(&chains) {
        out.sample_of(0, *misc, Stamp::new(77, 1000 * time), chain[1], chain);
    }
    // A program in the kernel has a name of its own for as long as it is loaded.
    let bpf = 0xffff_ffff_c000_0000;
    let chain = [CONTEXT_KERNEL, bpf + 0x10];
    for (time, flags) in [(7000, 0u16), (9000, 1)] {
        out.sample_of(0, KERNEL, Stamp::new(77, time - 500), chain[1], &chain);
        out.ksymbol(Stamp::new(77, time), bpf, 0x100, flags, "bpf_prog_6deef7357e7b4530_tracer");
    }
    out.sample_of(0, KERNEL, Stamp::new(77, 9500), chain[1], &chain);
    let data = program.write(out);
    let arguments = ["script", "-F", "comm,ip,sym"];
    let theirs = self::chains(&perf(&[&arguments[..], &["-i", &data]].concat()));
    let mut ours = self::chains(&ours(&[&arguments[..], &["--kallsyms", "/dev/null", &data]].concat()));
    // perf shows the samples of guests only as `perf kvm`.
    let guests: Vec<_> = ours.drain(2..4).collect();
    assert!(guests.iter().flatten().all(|name| name == "[unknown]"), "{guests:?}");
    assert_eq!(ours, theirs);
    assert_eq!(ours[4], ["bpf_prog_6deef7357e7b4530_tracer"]);
}
