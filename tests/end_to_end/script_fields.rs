//! perf script's text with each field that `-F` knows: `script` names the frames of JIT code in it, and `collapse`
//! reads the same stacks.

use crate::support::effort::step;
use crate::support::runner;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The fields that `perf script -F help` lists in perf 7.2.13.
const FIELDS: &str = "comm,tid,pid,time,cpu,event,trace,ip,sym,dso,dsoff,addr,symoff,srcline,period,iregs,uregs,brstack,\
    brstacksym,flags,data_src,weight,bpf-output,brstackinsn,brstackinsnlen,brstackdisasm,brstackoff,callindent,insn,\
    disasm,insnlen,synth,phys_addr,metric,misc,srccode,ipc,tod,data_page_size,code_page_size,ins_lat,machine_pid,vcpu,\
    cgroup,retire_lat,brcntr";

/// What a field changes in the text of a sample.
enum Change {
    /// The whole text: what is a header, frames and an empty line by default.
    Text(&'static str),
    /// The first line.
    Header(&'static str),
    /// What follows the event on the first line.
    BehindEvent(&'static str),
    /// What perf prints below the frames instead of an empty line.
    Below(&'static str),
}

use Change::{BehindEvent, Below, Header, Text};

const HEADER: &str = "mj   4711   726.238425:    1001001 cpu-clock: ";

const FRAMES: &str = "\t    7f97f0b5c009 [unknown] (/tmp/perf-4711.map)
\t    5588c79c0da7 main+0x93a (/opt/demo/mj)
\t    7f97f099924a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)
";

/// As perf 7.2.13 prints a sample with this field, or without it if the name begins with `-`; a few flags that change
/// the text, too.
const CHANGES: &[(&str, Change)] = &[
    ("comm", Header("mj   4711   726.238425:    1001001 cpu-clock: ")),
    ("-comm", Header("   4711   726.238425:    1001001 cpu-clock: ")),
    ("tid", Header("mj   4711   726.238425:    1001001 cpu-clock: ")),
    ("-tid", Header("mj   726.238425:    1001001 cpu-clock: ")),
    ("pid", Header("mj    4711/4711    726.238425:    1001001 cpu-clock: ")),
    ("time", Header("mj   4711   726.238425:    1001001 cpu-clock: ")),
    ("-time", Header("mj   4711    1001001 cpu-clock: ")),
    ("-time,-period", Header("mj   4711 cpu-clock: ")),
    ("-time,-period,-event", Header("mj   4711 ")),
    ("-time,-period,-event,-tid", Header("mj ")),
    ("-time,-event,-comm,-tid", Header("   1001001 ")),
    ("-comm,-tid,-time,-period,-event", Header("")),
    ("--ns", Header("mj   4711   726.238425123:    1001001 cpu-clock: ")),
    ("--reltime", Header("mj   4711     0.000000:    1001001 cpu-clock: ")),
    ("cpu", Header("mj   4711 [001]   726.238425:    1001001 cpu-clock: ")),
    ("event", Header("mj   4711   726.238425:    1001001 cpu-clock: ")),
    ("-event", Header("mj   4711   726.238425:    1001001 ")),
    ("-event,-period", Header("mj   4711   726.238425: ")),
    ("period", Header("mj   4711   726.238425:    1001001 cpu-clock: ")),
    ("-period", Header("mj   4711   726.238425: cpu-clock: ")),
    (
        "trace",
        Header("mj   4711   726.238425: sched:sched_switch: prev_comm=mj prev_pid=4711 prev_state=R ==> next_comm=a b"),
    ),
    ("ip", Text("mj   4711   726.238425:    1001001 cpu-clock: \nFRAMES\n")),
    ("sym", Text("mj   4711   726.238425:    1001001 cpu-clock: \nFRAMES\n")),
    (
        "dso",
        Text(
            "mj   4711   726.238425:    1001001 cpu-clock: \n\t    7f97f0b5c009 [unknown] (/tmp/perf-4711.map)\nREST\n",
        ),
    ),
    (
        "-dso",
        Text(
            "mj   4711   726.238425:    1001001 cpu-clock: \n\t    7f97f0b5c009 [unknown]\n\t    5588c79c0da7 main+0x93a\n\
             \t    7f97f099924a __libc_start_call_main+0x7a\n\n",
        ),
    ),
    (
        "dsoff",
        Text(
            "mj   4711   726.238425:    1001001 cpu-clock: \n\t    7f97f0b5c009 [unknown] (/tmp/perf-4711.map+0x7f97f0b5c009)\n\
             \t    5588c79c0da7 main+0x93a (/opt/demo/mj+0x1da7)\n\
             \t    7f97f099924a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6+0x2724a)\n\n",
        ),
    ),
    ("symoff", Text("mj   4711   726.238425:    1001001 cpu-clock: \nFRAMES\n")),
    (
        "-symoff",
        Text(
            "mj   4711   726.238425:    1001001 cpu-clock: \n\t    7f97f0b5c009 [unknown] (/tmp/perf-4711.map)\n\
             \t    5588c79c0da7 main (/opt/demo/mj)\n\
             \t    7f97f099924a __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)\n\n",
        ),
    ),
    (
        "srcline",
        Text(
            "mj   4711   726.238425:    1001001 cpu-clock: \n\t    7f97f0b5c009 [unknown] (/tmp/perf-4711.map)\n\
             \x20 perf-4711.map[7f97f0b5c009]\n\t    5588c79c0da7 main+0x93a (/opt/demo/mj)\n  mj.c:12\n\
             \t    7f97f099924a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)\n  libc-start.o:0\n\n",
        ),
    ),
    ("addr", BehindEvent("               0")),
    ("addr (page faults)", BehindEvent("    5628752de5c0 __progname+0x0 (/opt/demo/mj)")),
    ("iregs", Below(" ABI:2    AX:0x22c13    BX:0x7ffd1ce8de88    IP:0x401624 FLAGS:0x202 ")),
    ("uregs", Below(" ABI:2    AX:0x22c13    BX:0x7ffd1ce8de88    IP:0x401624 FLAGS:0x202 ")),
    ("brstack", Below(" 0x402ce1/0x4028bf/P/-/-/37/CALL/-  0x402ce1/0x4028bf/P/-/-/37/CALL/- ")),
    ("brstacksym", Below(" main+0x9/leaf+0x0/P/-/-/0/CALL/-  leaf+0x9/main+0x0/M/-/-/0/RET/- ")),
    ("brstackoff", Below(" 0x2ce1/0x28bf/P/-/-/37/CALL/-  0x2ce1/0x28bf/P/-/-/37/CALL/- ")),
    (
        "brstackinsn",
        Below("\tmain+9:\n\t00005588c79c0da7\tinsn: 48 89 e5 \t# PRED 37 cycles [37]\n\t00005588c79c0daa\tinsn: c3 "),
    ),
    (
        "brstackinsnlen",
        Below("\tmain+9:\n\t00005588c79c0da7\tinsn: 48 89 e5 ilen: 3\t# PRED\n\t00005588c79c0daa\tinsn: c3 ilen: 1"),
    ),
    ("brstackdisasm", Below("\tmain+9:\n\t00005588c79c0da7\tmovq %rsp, %rbp\t# PRED\n\t00005588c79c0daa\tretq ")),
    ("brcntr", Below(" 0x402ce1/0x4028bf/P/-/-/37/CALL/-/AB  0x402ce1/0x4028bf/P/-/-/37/CALL/-/- ")),
    ("flags", BehindEvent("                        ")),
    ("data_src", BehindEvent("      1e05080021 |OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A")),
    ("weight", BehindEvent("               0")),
    ("ins_lat", BehindEvent("               0")),
    ("retire_lat", BehindEvent("               0")),
    ("cgroup", BehindEvent(" /user.slice/app")),
    ("bpf-output", Below("      BPF output: 0000: 68 65 6c 6c 6f 00 00 00  hello...\n      BPF string: \"hello\"")),
    ("callindent", BehindEvent("")),
    ("insn", Below(" insn: 48 01 c8")),
    ("insnlen", Below(" ilen: 3")),
    ("disasm", Below("\t\taddq %rcx, %rax")),
    ("synth", BehindEvent("")),
    ("phys_addr", Below("        12345678")),
    ("data_page_size", Below(" N/A")),
    ("code_page_size", Below(" 4K")),
    ("phys_addr,data_page_size,code_page_size", Below("        12345678 4K 2M")),
    ("metric", Below("\tmetric:    0.50  insn per cycle\n")),
    ("misc", Header("mj   4711 U       726.238425:    1001001 cpu-clock: ")),
    ("ipc", Below(" \t IPC: 0.52 (100/192)")),
    ("srccode", Below("\n|5        \t\ta += b;")),
    ("tod", Header("mj   4711 2026-11-27 04:11:16.695520   726.238425:    1001001 cpu-clock: ")),
    ("machine_pid", Header("VM: 4710 mj   4711   726.238425:    1001001 cpu-clock: ")),
    ("vcpu", Header("VM: 4710 VCPU:001 mj   4711   726.238425:    1001001 cpu-clock: ")),
    (
        "--show-mmap-events",
        Text(
            "mj   4711   726.1: PERF_RECORD_MMAP2 4711/4711: [0x5588c79c0000(0x1000) @ 0x1000 <a7d8>]: r-xp /opt/demo/mj\n\
             mj   4711   726.238425:    1001001 cpu-clock: \nFRAMES\n",
        ),
    ),
    (
        "--show-task-events, --show-switch-events, --show-lost-events",
        Text(
            "mj   4711   726.100000: PERF_RECORD_FORK(4711:4711):(4710:4710)\n\
             mj   4711   726.200000: PERF_RECORD_SWITCH OUT          next pid/tid:  4712/4712 \n\
             mj   4711   726.200001: PERF_RECORD_LOST lost 12\nPERF_RECORD_FINISHED_ROUND\n\
             mj   4711   726.238425:    1001001 cpu-clock: \nFRAMES\n",
        ),
    ),
    ("expand", Text("mj   4711   726.238425:    1001001 cpu-clock: \nBLANKS\n")),
];

/// The text of two samples with a change.
fn text(change: &Change) -> String {
    let one = match change {
        Text(text) => {
            let rest = FRAMES.split_once('\n').unwrap().1;
            text.replace("FRAMES\n", FRAMES)
                .replace("BLANKS\n", &FRAMES.replace('\t', "        "))
                .replace("REST\n", rest)
        }
        Header(header) => format!("{header}\n{FRAMES}\n"),
        BehindEvent(more) => format!("{HEADER}{more}\n{FRAMES}\n"),
        Below(lines) => format!("{HEADER}\n{FRAMES}{lines}\n"),
    };
    one.repeat(2)
}

/// A directory with the map of the process.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("perf-4711.map"), "7f97f0b5c000 400 jitted_beta\n").unwrap();
    directory
}

fn filter(map: &Path, text: &str, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["script", "-q", "--perf-map"]).arg(map).args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_field_of_perf_is_in_the_table() {
    for field in FIELDS.split(',').map(str::trim) {
        assert!(CHANGES.iter().any(|(name, _)| name.split([',', ' ']).any(|word| word == field)), "{field}");
    }
}

#[test]
fn every_field_leaves_the_frames_names_and_the_stacks_as_they_are() {
    let directory = directory();
    let map = directory.path();
    for (at, (field, change)) in CHANGES.iter().enumerate() {
        let text = text(change);
        // Where the process isn't shown, the map's name in the object is.
        let is_anonymous = !text.contains("4711");
        if !is_anonymous {
            let named = filter(map, &text, &[]);
            assert_eq!(named.matches(" jitted_beta").count(), 2, "{field}:\n{named}");
            let before: Vec<_> = text.lines().filter(|line| !line.contains("7f97f0b5c009")).collect();
            let after: Vec<_> = named.lines().filter(|line| !line.contains("7f97f0b5c009")).collect();
            assert_eq!(before, after, "{field}");
        }
        let file = map.join(format!("{at}.txt"));
        fs::write(&file, &text).unwrap();
        let folded = runner::stdout(&["collapse", "-q", "--strict", "--perf-map", map.to_str().unwrap()], &file);
        let (stack, weight) = folded.trim_end().rsplit_once(' ').unwrap();
        let frames = stack.strip_prefix("mj;").unwrap_or(stack);
        assert_eq!(frames, "__libc_start_call_main;main;jitted_beta", "{field}: {folded}");
        assert!(["2", "2002002"].contains(&weight), "{field}: {folded}");
        assert_eq!(stack.starts_with("mj;"), text.contains("mj "), "{field}: {folded}");
        if at % step(4) == 0 {
            let by_threads = |threads: &str| runner::stdout(&["collapse", "-q", "--threads", threads], &file);
            assert_eq!(by_threads("1"), by_threads("3"), "{field}");
        }
    }
}

/// The frame of a sample of one line, behind other fields.
#[test]
fn samples_of_one_line_have_their_frame_behind_other_fields() {
    let directory = directory();
    let map = directory.path();
    let frame = "    7f97f0b5c009 [unknown] (/tmp/perf-4711.map)";
    let one_line = [
        format!("              mj   4711   726.238425:    1001001 cpu-clock: {frame}\n"),
        format!("              mj   4711   726.238425:    1001001 cpu-clock:                0 {frame}\n"),
        format!(
            "              mj   4711   726.238425:    1001001 cpu-clock:      7f980ddb5d40 rfv.9+0x0 (/x.so) {frame}\n"
        ),
        format!("              mj   4711   726.238425:    1001001 cpu-clock: {frame} ABI:2    AX:0x22c13    BX:0x7f\n"),
        format!("              mj   4711   726.238425:    1001001 cpu-clock: {frame} 0x10/0x20/P/-/-/37/CALL \n"),
        format!("              mj   4711   726.238425:    1001001 cpu-clock: {frame}                0 4K\n"),
        format!("              mj   4711    1001001 cpu-clock: {frame}\n"),
        format!("              mj   4711 2026-11-27 04:11:16.695520   726.238425:    1001001 cpu-clock: {frame}\n"),
    ];
    for (at, line) in one_line.iter().enumerate() {
        let file = map.join(format!("line-{at}.txt"));
        fs::write(&file, line).unwrap();
        let folded = runner::stdout(&["collapse", "-q", "--strict", "--perf-map", map.to_str().unwrap()], &file);
        assert_eq!(folded, "mj;jitted_beta 1001001\n", "{line}");
    }
}

/// Without empty lines between samples, each frame belongs to the header above it.
#[test]
fn frames_belong_to_the_nearest_header() {
    let directory = directory();
    let map = directory.path();
    let sample = |tid: u32| {
        format!(
            "mj   {tid}   726.238425:    1001001 cpu-clock: \n\t    7f97f0b5c009 [unknown] (//anon)\n ABI:2    AX:0x1\n"
        )
    };
    let text = sample(4712) + &sample(4711) + &sample(4713);
    let wanted = text.clone();
    let (before, after) = wanted.split_at(sample(4712).len() + sample(4711).len());
    let named = filter(map, &text, &[]);
    assert!(named.starts_with(&before[..sample(4712).len()]) && named.ends_with(after), "{named}");
    assert_eq!(named.matches("jitted_beta+0x9").count(), 1, "{named}");
}

#[test]
fn all_generations_of_simpleperfs_text_are_read() {
    let directory = directory();
    let directory = directory.path();
    let generations = [
        // 2016: microseconds without leading zeros.
        "app\t4711 [001] 726.42:\t\t1001001 cpu-clock:\n    7f97f0b5c009\tdecode (/data/app/libshop.so)\n\
         ffffff8008081234\tel0_svc ([kernel.kallsyms])\n\n",
        // 2018
        "app\t4711 [001] 726.000042:\t\t1001001 cpu-clock:\n    7f97f0b5c009\tdecode (/data/app/libshop.so)\n\
         ffffff8008081234\tel0_svc ([kernel.kallsyms])\n\n",
        // 2021
        "app\t4711/4711 [001] 726.000042: 1001001 cpu-clock:\n\t    7f97f0b5c009 decode (/data/app/libshop.so)\n\
         \tffffff8008081234 el0_svc ([kernel.kallsyms])\n\ttracing data:\n\t\tprev_comm : php\n\n",
    ];
    for (at, text) in generations.iter().enumerate() {
        let file = directory.join(format!("simpleperf-{at}.txt"));
        fs::write(&file, text).unwrap();
        let folded = runner::stdout(&["collapse", "-q", "--strict", "--annotate", "kernel"], &file);
        assert_eq!(folded, "app;el0_svc_[k];decode 1001001\n", "{text}");
        let csv = runner::stdout(&["export", "--to", "csv", "-o", "-"], &file);
        assert!(csv.contains("726000042000") || csv.contains("726.000042"), "{csv}");
    }
}
