//! Fields of `script -F` that are data of a sample, beside what perf 7.3 prints of the same recording. Given a perf in
//! `JITGRAFT_PERF`, its text is compared, too.

use crate::support::writers;

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use writers::bytes::Order;
use writers::perf_data::{
    ADDR, CGROUP, CODE_PAGE_SIZE, DATA_PAGE_SIZE, DATA_SRC, Event, KERNEL, Mmap, Mode, More, PHYS_ADDR, PerfData, RAW,
    Stamp, USER, USUAL, WEIGHT, WEIGHT_STRUCT,
};

const PID: u32 = 4711;
const ACCESS: u64 = ADDR | DATA_SRC | PHYS_ADDR | CGROUP | DATA_PAGE_SIZE | CODE_PAGE_SIZE;

/// Samples with everything that perf records of an access, of events of several types.
fn accesses(order: Order) -> Vec<u8> {
    let event = |name: &'static str, kind: u32, more: u64, id: u64| Event {
        name,
        kind,
        sample_type: USUAL | writers::perf_data::ID | ACCESS | more,
        ids: vec![id],
        ..Event::usual()
    };
    let events = vec![event("cpu-clock", 1, WEIGHT, 1), event("cpu/mem-loads/P", 4, WEIGHT_STRUCT, 2)];
    let mut data = PerfData::with_events(order, events);
    let stamp = |id: u64, time: u64| Stamp { id, ..Stamp::new(PID, time) };
    data.comm(stamp(1, 1), "mem", true);
    data.cgroup(stamp(1, 1), 77, "/user.slice/app");
    data.mmap2(stamp(1, 2), Mmap { addr: 0x40_0000, len: 0x1000, pgoff: 0x2000, path: "/none/mem" });
    let words = [
        0x1e_0508_0021,
        2 | 0xa << 5 | 2 << 19 | 2 << 24 | 0x12 << 26 | 1 << 33 | 4 << 40,
        4 | 0x84 << 5 | 0x14 << 19 | 0x2c << 26 | 1 << 38 | 3 << 40,
        8 | 1 << 33 | 1 << 37 | 2 << 43 | 4 << 5,
        16 | 7 << 33,
        0,
    ];
    for (at, &data_src) in words.iter().enumerate() {
        let number = at as u64;
        let more = More {
            addr: 0x7000 + number,
            weight: number << 48 | 5 << 32 | (300 + number),
            data_src,
            phys_addr: 0x1234_5000 * number,
            cgroup: if at == 1 { 5 } else { 77 },
            page_sizes: ([0, 4096, 2 << 20, 1 << 30, 16384, 1][at], 4096),
            ..More::default()
        };
        for event in 0..2 {
            let stamp = stamp(event as u64 + 1, 1_000_000_000 * (1 + number) + event as u64);
            let (misc, context) =
                if at == 2 { (KERNEL, (-128i64).cast_unsigned()) } else { (USER, (-512i64).cast_unsigned()) };
            data.sample_with(event, misc, stamp, 0x40_0010, &[context, 0x40_0010, 0x40_0020], &more);
        }
    }
    data.into_bytes(Mode::File)
}

/// Samples of BPF programs' output.
fn outputs(order: Order) -> Vec<u8> {
    let event = Event { name: "bpf-output", config: 10, sample_type: (USUAL & !32) | RAW, ..Event::usual() };
    let mut data = PerfData::new(order, event);
    data.comm(Stamp::new(PID, 1), "bpf", true);
    for (at, raw) in
        [&b"hello, world\0\0\0\0\0\0\0\0"[..], &[1, 2, 3, 4], b"no end..!!..", b"a\0b\0", &[0; 12]].iter().enumerate()
    {
        let stamp = Stamp::new(PID, 1_000_000_000 * (1 + at as u64));
        data.sample_with(0, USER, stamp, 0x10, &[], &More { raw, ..More::default() });
    }
    data.into_bytes(Mode::File)
}

/// What is printed of a recording with these fields, or by default.
fn script(program: &str, fields: &str, dir: &Path) -> String {
    let mut command = Command::new(program);
    command.arg("script").args(["-i", "perf.data"]).current_dir(dir);
    if !fields.is_empty() {
        command.args(["-F", fields]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{fields}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn written(bytes: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("perf.data"), bytes).unwrap();
    dir
}

/// The text, after it is compared with perf's, if there is one.
fn text(bytes: &[u8], fields: &str) -> String {
    let dir = written(bytes);
    let ours = script(env!("CARGO_BIN_EXE_jitgraft"), fields, dir.path());
    if let Ok(perf) = std::env::var("JITGRAFT_PERF") {
        assert_eq!(ours, with_narrow_ids(&script(&perf, fields, dir.path())), "{fields}");
    }
    ours
}

/// perf 7 pads the thread's number to 7 digits, perf 6.1 and we to 5.
fn with_narrow_ids(text: &str) -> String {
    text.replace(&format!("{PID:7}"), &format!("{PID:5}"))
}

/// The lines that begin samples.
fn first_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric())).collect()
}

#[test]
fn data_of_accesses_are_printed_as_perf_does() {
    for order in [Order::Little, Order::Big] {
        let bytes = accesses(order);
        // Events of the processor's own have them by default; the words get as wide as the widest so far.
        let default = text(&bytes, "");
        assert_eq!(
            first_lines(&default)[..3],
            [
                "mem  4711     1.000000:    1000000       cpu-clock: ",
                "mem  4711     1.000000:    1000000 cpu/mem-loads/P:             7000      1e05080021 |OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A             300               5               0",
                "mem  4711     2.000000:    1000000       cpu-clock: ",
            ]
        );
        assert!(default.contains("     4024a100142 |OP LOAD|LVL L1 hit|SNP None|TLB L2 hit|LCK Yes|BLK  Addr             301               5               1\n"), "{default}");
        assert!(default.contains("LCK No|B             302               5               2\n"), "{default}");
        assert!(default.contains(" (/none/mem)\n        12345000 4K 4K\n"), "{default}");
        for fields in
            ["comm,ip,sym,phys_addr", "comm,ip,data_page_size,code_page_size", "comm,weight", "comm,event,data_src"]
        {
            text(&bytes, fields);
        }
        for fields in
            ["+cgroup", "+misc", "+flags", "+synth,+callindent,+ipc", "+dsoff", "+weight,+data_src,+phys_addr,+addr"]
        {
            text(&bytes, fields);
        }
        let said = text(&bytes, "+cgroup,+misc,+dsoff");
        assert!(said.contains("mem  4711 U         1.000000:    1000000       cpu-clock:  /user.slice/app\n\t          400010 [unknown] (/none/mem+0x2010)\n"), "{said}");
        assert!(said.contains("mem  4711 U         2.000000:    1000000       cpu-clock:  unknown\n"), "{said}");
        assert!(text(&bytes, "+flags").contains("cpu-clock:                         \n"));
    }
}

#[test]
fn output_of_bpf_programs_is_printed_as_perf_does() {
    let bytes = outputs(Order::Little);
    let head = |time: u32| {
        format!(
            "{:>16} {PID:5}     {time}.000000:    1000000 bpf-output:                10 [unknown] ([unknown])\n",
            "bpf"
        )
    };
    let default = text(&bytes, "");
    let hello = "      BPF output: 0000: 68 65 6c 6c 6f 2c 20 77  hello, w\n                  0008: 6f 72 6c 64 00 00 00 00  orld....\n\
        \x20                 0010: 00 00 00 00              ....    \n      BPF string: \"hello, world\"\n\n";
    let numbers = "      BPF output: 0000: 01 02 03 04              ....    \n\n";
    assert!(default.starts_with(&[&head(1), hello, &head(2), numbers].concat()), "{default}");
    assert_eq!(default.matches("BPF string").count(), 2, "{default}");
    // A list with a sign in it changes the default.
    assert_eq!(text(&bytes, "comm,time,bpf-output"), default);
    assert!(!text(&bytes, "-bpf-output").contains("BPF"));
}
