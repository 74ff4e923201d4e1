//! Frames, names and values that recorders keep elsewhere than in the sample: deferred call chains, off-CPU samples,
//! tracepoints, simpleperf's symbols, periods in the attr.

use crate::support::bytes::{Order, Out};
use crate::support::runner::{jitgraft, stdout};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const CALLCHAIN: u64 = 1 << 5;
const PERIOD: u64 = 1 << 8;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// mmap, comm, task, sample_id_all, mmap2, comm_exec, use_clockid
const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24 | 1 << 25;
const FREQUENCY: u64 = 1 << 10;
const DEFER: u64 = 1 << 38 | 1 << 39;

const USER: u64 = -512i64 as u64;
const KERNEL: u64 = -128i64 as u64;
const DEFERRED: u64 = -640i64 as u64;

const PID: u32 = 999_077;
const JIT: u64 = 0x7f10_0000_0000;
const SYSCALL: u64 = 0xffff_ffff_8123_4567;
const START: u64 = 1_000_000_000_000;

/// An event. Its number, from 1 on, is its id.
struct Event {
    name: &'static str,
    kind: u32,
    config: u64,
    sample_type: u64,
    flags: u64,
    period: u64,
}

/// cpu-clock as `perf record -g` opens it.
const CLOCK: Event = Event {
    name: "cpu-clock",
    kind: 1,
    config: 0,
    sample_type: IDENTIFIER | IP | TID | TIME | PERIOD | CALLCHAIN,
    flags: FLAGS | FREQUENCY,
    period: 999,
};

/// A perf.data being written.
struct Recording {
    order: Order,
    events: Vec<Event>,
    records: Out,
    features: Vec<(u16, Vec<u8>)>,
}

impl Recording {
    fn new(order: Order, events: Vec<Event>) -> Self {
        Self { order, events, records: Out::new(order), features: Vec::new() }
    }

    fn out(&self) -> Out {
        Out::new(self.order)
    }

    fn attr(&self, event: &Event) -> Vec<u8> {
        let flags = if self.order == Order::Little { event.flags } else { event.flags.reverse_bits() };
        let mut attr = self.out();
        attr.u32(event.kind).u32(128).words(&[event.config, event.period, event.sample_type, 0, flags]);
        attr.words(&[0, 0, 0, 0, 0]).u32(0).u32(1);
        attr.bytes.resize(128, 0);
        attr.bytes
    }

    fn record(&mut self, kind: u32, misc: u16, body: &Out) {
        let size = body.bytes.len() as u16 + 8;
        self.records.u32(kind).u16(misc).u16(size).raw(&body.bytes);
    }

    /// A record that is not a sample, of the first event.
    fn stamped(&mut self, kind: u32, misc: u16, mut body: Out, (tid, time): (u32, u64)) {
        body.u32(PID).u32(tid).words(&[time, 1]);
        self.record(kind, misc, &body);
    }

    fn comm(&mut self, name: &str, time: u64) {
        let mut body = self.out();
        body.u32(PID).u32(PID).padded_text(name.as_bytes());
        self.stamped(3, 1 << 13, body, (PID, time));
    }

    fn mmap(&mut self, path: &str, addr: u64, len: u64, pgoff: u64, prot: u32) {
        self.mmap_at(path, addr, len, pgoff, prot, START);
    }

    fn mmap_at(&mut self, path: &str, addr: u64, len: u64, pgoff: u64, prot: u32, time: u64) {
        let mut body = self.out();
        body.u32(PID).u32(PID).words(&[addr, len, pgoff, 0, 0, 0]).u32(prot).u32(2).padded_text(path.as_bytes());
        self.stamped(10, 2, body, (PID, time));
    }

    fn kernel_mmap(&mut self, path: &str, addr: u64, len: u64) {
        let mut body = self.out();
        body.u32(u32::MAX).u32(0).words(&[addr, len, 0]).padded_text(path.as_bytes());
        self.stamped(1, 1, body, (PID, START));
    }

    /// A sample whose event has identifier, ip, tid, time, period and call chain.
    fn sample(&mut self, misc: u16, (tid, time): (u32, u64), ip: u64, chain: &[u64]) {
        let mut body = self.out();
        body.words(&[1, ip]).u32(PID).u32(tid).words(&[time, 1_000_000, chain.len() as u64]).words(chain);
        self.record(9, misc, &body);
    }

    /// The user's part of the chain of earlier samples.
    fn deferred(&mut self, (tid, time): (u32, u64), cookie: u64, chain: &[u64]) {
        let mut body = self.out();
        body.words(&[cookie, chain.len() as u64 + 1, USER]).words(chain);
        self.stamped(22, 2, body, (tid, time));
    }

    fn string(&self, text: &str) -> Vec<u8> {
        let mut string = self.out();
        let len = (text.len() + 1).next_multiple_of(64);
        string.u32(len as u32).raw(text.as_bytes());
        string.bytes.resize(4 + len, 0);
        string.bytes
    }

    fn write(mut self, path: &Path) {
        let mut names = self.out();
        names.u32(self.events.len() as u32).u32(128);
        for (id, event) in (1..).zip(&self.events) {
            names.raw(&self.attr(event)).u32(1).raw(&self.string(event.name)).u64(id);
        }
        if !self.features.iter().any(|(feature, _)| *feature >= 128) {
            self.features.push((12, names.bytes));
        }
        self.features.sort();
        let count = self.events.len() as u64;
        let (attrs, data) = (104 + 8 * count, 104 + (8 + 144) * count);
        let mut file = self.out();
        file.u64(u64::from_le_bytes(*b"PERFILE2"));
        if self.order == Order::Big {
            file.bytes.copy_from_slice(b"2ELIFREP");
        }
        file.words(&[104, 144, attrs, 144 * count, data, self.records.bytes.len() as u64, 0, 0]);
        let mut bits = [0u64; 4];
        for (feature, _) in &self.features {
            bits[usize::from(feature / 64)] |= 1 << (feature % 64);
        }
        file.words(&bits);
        file.words(&(1..=count).collect::<Vec<_>>());
        for (at, event) in self.events.iter().enumerate() {
            file.raw(&self.attr(event)).words(&[104 + 8 * at as u64, 8]);
        }
        file.raw(&self.records.bytes);
        let mut at = file.bytes.len() as u64 + 16 * self.features.len() as u64;
        for (_, bytes) in &self.features {
            file.words(&[at, bytes.len() as u64]);
            at += bytes.len() as u64;
        }
        for (_, bytes) in &self.features {
            file.raw(bytes);
        }
        fs::write(path, &file.bytes).unwrap();
    }
}

/// A directory with a perf map of functions of 0x100 bytes, one behind the other.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new(functions: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lines =
            functions.iter().enumerate().map(|(at, name)| format!("{:x} 100 {name}\n", JIT + 0x100 * at as u64));
        fs::write(dir.path().join(format!("perf-{PID}.map")), lines.collect::<String>()).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, recording: Recording) -> PathBuf {
        let path = self.path("perf.data");
        recording.write(&path);
        path
    }

    /// Folded stacks, sorted, with names by the map.
    fn folded(&self, args: &[&str], recording: &Path) -> Vec<String> {
        let dir = self.dir.path().to_str().unwrap();
        let text = stdout(&[&["collapse", "-q", "--perf-map", dir], args].concat(), recording);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

fn function(number: u64) -> u64 {
    JIT + 0x100 * number + 0x10
}

fn deferring(order: Order) -> Recording {
    let mut recording = Recording::new(order, vec![Event { flags: CLOCK.flags | DEFER, ..CLOCK }]);
    recording.comm("vm", START);
    recording.mmap("//anon", JIT, 0x10000, 0, 7);
    recording
}

#[test]
fn deferred_chains_complete_the_samples_of_their_thread_and_cookie() {
    for order in [Order::Little, Order::Big] {
        let scene = Scene::new(&["a", "b", "c", "d"]);
        let mut recording = deferring(order);
        let other = PID + 1;
        // In the file before its sample, as from another processor's buffer: times decide.
        recording.deferred((PID, START + 110), 1, &[function(0), function(1)]);
        recording.sample(1, (PID, START + 100), SYSCALL, &[KERNEL, SYSCALL, SYSCALL, DEFERRED, 1]);
        // Two samples of one cookie, the second in user code; the same cookie in another thread.
        recording.sample(2, (PID, START + 200), function(2), &[DEFERRED, 2]);
        recording.sample(1, (PID, START + 210), SYSCALL, &[KERNEL, SYSCALL, DEFERRED, 2]);
        recording.sample(1, (other, START + 220), SYSCALL, &[KERNEL, SYSCALL, DEFERRED, 2]);
        recording.deferred((other, START + 230), 2, &[function(3)]);
        recording.deferred((PID, START + 240), 2, &[function(2), function(3)]);
        // An earlier record is not for a later sample.
        recording.sample(1, (PID, START + 300), SYSCALL, &[KERNEL, SYSCALL, DEFERRED, 2]);
        let path = scene.write(recording);
        let folded = scene.folded(&[], &path);
        let expected = [
            "vm;[unknown] 1000000",
            "vm;b;a;[unknown];[unknown] 1000000",
            "vm;d;[unknown] 1000000",
            "vm;d;c 1000000",
            "vm;d;c;[unknown] 1000000",
        ];
        assert_eq!(folded, expected, "{order:?}");
        let output = jitgraft(&["collapse", "--strict"], &path);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(told.matches("samples without their user call chain: 1").count(), 1, "{told}");
        assert!(!told.contains("complete"), "{told}");
        let text = stdout(&["script", "-q", "-F", "ip"], &path);
        assert!(!text.contains("               2\n") && !text.contains("               1\n"), "{text}");
    }
}

#[test]
fn a_deferred_chain_that_completes_nothing_is_counted() {
    let scene = Scene::new(&["a"]);
    let mut recording = deferring(Order::Little);
    recording.deferred((PID, START + 10), 7, &[function(0)]);
    recording.sample(2, (PID, START + 20), function(0), &[USER, function(0)]);
    let path = scene.write(recording);
    for command in ["collapse", "report", "script"] {
        let output = jitgraft(&[command], &path);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.matches("because they belong to no sample: 1").count(), 1, "{command}: {told}");
    }
}

#[test]
fn user_frames_are_what_was_there_when_the_deferred_chain_was_written() {
    let scene = Scene::new(&["new"]);
    let mut recording = deferring(Order::Little);
    recording.mmap("/opt/old", 0x40_0000, 0x1000, 0, 5);
    recording.sample(1, (PID, START + 100), SYSCALL, &[KERNEL, SYSCALL, DEFERRED, 1]);
    // The call is exec: it returns into another program.
    recording.comm("after", START + 200);
    recording.mmap_at("/opt/new", 0x40_0000, 0x1000, 0, 5, START + 210);
    recording.deferred((PID, START + 300), 1, &[0x40_0010]);
    let path = scene.write(recording);
    assert_eq!(scene.folded(&[], &path), ["vm;[new];[unknown] 1000000"]);
}

#[test]
fn deferred_chains_are_joined_across_chunks_that_are_read_in_parallel() {
    const COUNT: u64 = 20_000;
    let scene = Scene::new(&["a", "b"]);
    let mut recording = deferring(Order::Little);
    for number in 0..COUNT {
        let chain = [KERNEL, SYSCALL, SYSCALL + 16, SYSCALL + 32, DEFERRED, number];
        recording.sample(1, (PID, START + 10 + number), SYSCALL, &chain);
    }
    for number in 0..COUNT {
        recording.deferred((PID, START + 100_000 + number), number, &[function(0), function(1)]);
    }
    let path = scene.write(recording);
    let one = scene.folded(&["--threads", "1", "--strict"], &path);
    assert_eq!(one, [format!("vm;b;a;[unknown];[unknown];[unknown] {}", COUNT * 1_000_000)]);
    for threads in ["2", "5"] {
        assert_eq!(scene.folded(&["--threads", threads, "--strict"], &path), one);
    }
}

#[test]
fn inject_shows_the_code_of_deferred_chains() {
    for more in [&[][..], &["--relocate"], &["-j", "-b", "--drop-bad-chain-entries"], &["--convert-callchain"]] {
        let scene = Scene::new(&["a", "b"]);
        let mut recording = deferring(Order::Little);
        for number in 0..10 {
            let time = START + 1000 * number;
            recording.sample(1, (PID, time + 100), SYSCALL, &[KERNEL, SYSCALL, DEFERRED, number]);
            recording.deferred((PID, time + 200), number, &[function(0), function(1), u64::MAX]);
        }
        let path = scene.write(recording);
        let out = scene.path("out.data");
        let dir = scene.dir.path().to_str().unwrap();
        let args = [&["inject", "--perf-map", dir, "-o", out.to_str().unwrap()], more].concat();
        let output = jitgraft(&args, &path);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        assert!(told.contains("; 20 of 20 JIT frames"), "{more:?}: {told}");
        // By the image alone.
        fs::remove_file(scene.path(&format!("perf-{PID}.map"))).unwrap();
        assert_eq!(stdout(&["collapse", "-q"], &out), "vm;b;a;[unknown] 10000000\n", "{more:?}");
    }
}

/// `perf record --off-cpu`, before 6.16 or since.
fn off_cpu(order: Order, in_raw: bool) -> Recording {
    let fields = if in_raw { RAW } else { CALLCHAIN };
    let sample_type = IDENTIFIER | IP | TID | TIME | PERIOD | fields;
    let event = Event { name: "offcpu-time", kind: 1, config: 10, sample_type, flags: FLAGS, period: 1 };
    let mut recording = Recording::new(order, vec![CLOCK, event]);
    recording.comm("vm", START);
    recording.mmap("//anon", JIT, 0x10000, 0, 7);
    for number in 0..10 {
        recording.sample(2, (PID, START + 1_000_000 * (number + 1)), function(0), &[USER, function(0), function(3)]);
    }
    let slept = [(START + 7_500_000, 1, 100), (0xffff_ffff_0000_0000, 1, 200), (0xffff_ffff_0000_0001, 2, 400)];
    for (time, leaf, period) in slept {
        let chain = [USER, function(leaf), function(3)];
        let mut body = recording.out();
        if in_raw {
            // Somebody else was running when it was written.
            body.words(&[2, 0]).u32(0).u32(0).words(&[time, 0]).u32(4 + 4 + 8 * 6 + 4);
            body.u32(PID).u32(PID).words(&[period, 3]).words(&chain).u64(1).u32(0);
        } else {
            body.words(&[2, chain[1]]).u32(PID).u32(PID).words(&[time, period, 3]).words(&chain);
        }
        recording.record(9, 2, &body);
    }
    recording
}

#[test]
fn off_cpu_samples_of_both_layouts_have_process_period_and_chain() {
    for order in [Order::Little, Order::Big] {
        for in_raw in [false, true] {
            let scene = Scene::new(&["busy", "lock", "io", "root"]);
            let path = scene.write(off_cpu(order, in_raw));
            let folded = scene.folded(&["--event", "offcpu-time"], &path);
            assert_eq!(folded, ["vm;root;io 400", "vm;root;lock 300"], "{order:?} {in_raw}");
            let out = scene.path("out.data");
            let dir = scene.dir.path().to_str().unwrap();
            let relocated = ["inject", "-q", "--relocate", "--perf-map", dir, "-o", out.to_str().unwrap()];
            stdout(&relocated, &path);
            fs::remove_file(scene.path(&format!("perf-{PID}.map"))).unwrap();
            assert_eq!(scene.folded(&["--event", "offcpu-time"], &out), folded, "{order:?} {in_raw}");
        }
    }
}

#[test]
fn times_that_off_cpu_samples_do_not_have_stretch_nothing() {
    let scene = Scene::new(&["busy", "lock", "io", "root"]);
    let path = scene.write(off_cpu(Order::Little, true));
    let clock = |range: &str| scene.folded(&["--event", "cpu-clock", "--time", range], &path);
    assert_eq!(clock("0%-50%"), ["vm;root;busy 5000000"]);
    let slept = |range: &str| scene.folded(&["--event", "offcpu-time", "--time", range], &path);
    assert_eq!(slept("50%-100%"), ["vm;root;lock 100"]);
    let end = (START + 10_000_000) as f64;
    for format in ["json", "firefox", "chrome", "speedscope"] {
        for event in ["cpu-clock", "offcpu-time"] {
            let text = stdout(&["export", "-q", "--to", format, "--event", event], &path);
            let json: Value = serde_json::from_str(&text).unwrap();
            let latest = latest(&json);
            assert!(latest <= end, "{format} of {event}: {latest}");
        }
    }
    // perf script's text has such times, too.
    let text = stdout(&["script", "-q"], &path);
    assert!(text.contains(" 18446744069.414584:        200 offcpu-time: "), "{text}");
    let script = scene.path("perf.txt");
    fs::write(&script, text).unwrap();
    let json: Value = serde_json::from_str(&stdout(&["export", "-q", "--to", "json"], &script)).unwrap();
    assert!(latest(&json) <= end);
    assert_eq!(scene.folded(&["--event", "cpu-clock", "--time", "0%-50%"], &script).len(), 1);
}

/// The largest number in a document.
fn latest(json: &Value) -> f64 {
    match json {
        Value::Number(number) => number.as_f64().unwrap(),
        Value::Array(list) => list.iter().map(latest).fold(0.0, f64::max),
        Value::Object(map) => map.values().map(latest).fold(0.0, f64::max),
        _ => 0.0,
    }
}

#[test]
fn events_of_a_fixed_period_print_it() {
    let scene = Scene::new(&[]);
    let sample_type = IDENTIFIER | IP | TID | TIME | CALLCHAIN;
    let fixed = Event { sample_type, flags: FLAGS, period: 3_000_000, ..CLOCK };
    let mut recording = Recording::new(Order::Little, vec![fixed]);
    recording.comm("c", START);
    let mut body = recording.out();
    body.words(&[1, 0x1000]).u32(PID).u32(PID).words(&[START, 1, 0x1000]);
    recording.record(9, 2, &body);
    let path = scene.write(recording);
    let line = stdout(&["script", "-q", "-F", "comm,tid,time,period,event"], &path);
    assert_eq!(line.trim(), format!("c {PID}  1000.000000:    3000000 cpu-clock:"));
    assert!(stdout(&["script", "-q"], &path).contains(":    3000000 cpu-clock: \n"));
    assert!(!stdout(&["script", "-q", "-F", "-period"], &path).contains("3000000"));
}

/// TRACING_DATA with the formats of these events: their fields behind the common ones, and print lines.
fn tracing_data(order: Order, events: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut data = Out::new(order);
    data.raw(b"\x17\x08\x44tracing0.6\0").raw(&[u8::from(order == Order::Big), 8]).u32(4096);
    for head in ["header_page", "header_event"] {
        data.raw(head.as_bytes()).raw(b"\0").u64(4).raw(b"text");
    }
    data.u32(0).u32(1).raw(b"test\0").u32(events.len() as u32);
    for (id, (name, fields, print)) in (100..).zip(events) {
        let mut format = format!("name: {name}\nID: {id}\nformat:\n");
        let common = "unsigned short common_type,0,2,0;unsigned char common_flags,2,1,0;\
                      unsigned char common_preempt_count,3,1,0;int common_pid,4,4,1";
        for field in common.split(';').chain(fields.split(';').filter(|field| !field.is_empty())) {
            let [declaration, offset, size, signed] = field.split(',').collect::<Vec<_>>()[..] else {
                panic!("{field}")
            };
            format += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        format += &format!("\nprint fmt: {print}\n");
        data.u64(format.len() as u64).raw(format.as_bytes());
    }
    let printk = "0xffffffff81000001 : \"printed text\"\n";
    data.u32(0).u32(printk.len() as u32).raw(printk.as_bytes()).u64(0);
    data.bytes
}

/// A field in the data of a tracepoint's sample.
enum Part {
    Byte(u8),
    Half(u16),
    Word(u32),
    Long(u64),
    Text(&'static str, usize),
}

/// Name, fields, print line, data behind the common fields, and what perf 7.2 prints without plugins.
type Tracepoint = (&'static str, &'static str, &'static str, &'static [Part], &'static str);

use Part::{Byte, Half, Long, Text, Word};

const TRACEPOINTS: &[Tracepoint] = &[
    (
        "numbers",
        "u8 a,8,1,0;s8 b,9,1,1;u16 c,10,2,0;s16 d,12,2,1;int e,16,4,1;unsigned int f,20,4,0;long g,24,8,1;void * p,32,8,0",
        r#""a=%u c=%hu d=%hd e=%d f=%x g=%ld p=%p %5d|%-5d|%05d|%#x|%+d|%X|%o|%c|%08lx|%3.2d 100%%", REC->a, REC->c, REC->d, REC->e, REC->f, REC->g, REC->p, REC->e, REC->e, REC->e, REC->f, REC->e, REC->f, REC->f, REC->a, REC->p, REC->a"#,
        &[
            Byte(65),
            Byte(251),
            Half(60000),
            Half(65533),
            Half(0),
            Word(-77i32 as u32),
            Word(0xdead_beef),
            Long(-5i64 as u64),
            Long(0xffff_8880_0000_1000),
        ],
        "a=65 c=60000 d=-3 e=-77 f=deadbeef g=-5 p=0xffff888000001000   -77|-77  |-0077|0xdeadbeef|-77|DEADBEEF|33653337357|A|ffff888000001000| 65 100%",
    ),
    (
        "flags",
        "unsigned long f,8,8,0;int s,16,4,1",
        r#""f=%s s=%s z=%s", __print_flags(REC->f, "|", { 0x1, "A" }, { (1 << 1), "B" }, {(0x4 | 0x8), "CD"}), __print_symbolic(REC->s, { 0, "zero" }, { SOME_ENUM, "x" }, { -1, "minus" }), __print_symbolic(REC->s + 5, {4, "four"})"#,
        &[Long(0x11d), Word(u32::MAX)],
        "f=A|CD|0x110 s=0xffffffff z=0x100000004",
    ),
    (
        "choice",
        "int a,8,4,1;int b,12,4,1",
        r#""%s %d %d %d", REC->a > 1 ? "big" : "small", REC->a ? REC->b : 9, (REC->a + REC->b) * 3 - 1, !REC->a"#,
        &[Word(2), Word(5)],
        "big 5 20 0",
    ),
    (
        "far",
        "__data_loc char[] name,8,4,0;__rel_loc char[] more,12,4,0;__data_loc u32[] list,16,4,0",
        r#""name=%s more=%-6s| list=%s len=%d", __get_str(name), __get_rel_str(more), __print_array(__get_dynamic_array(list), 2, 4), __get_dynamic_array_len(list)"#,
        &[
            Word(20 | 6 << 16),
            Word(12 | 4 << 16),
            Word(36 | 8 << 16),
            Text("hello", 8),
            Text("abc", 8),
            Word(7),
            Word(3_000_000_000),
        ],
        "name=hello more=abc   | list={0x7,0xb2d05e00} len=8",
    ),
    (
        "arrays",
        "u32 v[4],8,16,0;unsigned char hex[6],24,6,0;char comm[16],32,16,0",
        r#""v0=%u v2=%u hex=%s hs=%s comm=%s c=%.3s w=%10s|%*d mac=%pM", REC->v[0], REC->v[2], __print_hex(REC->hex, 6), __print_hex_str(REC->hex, 3), REC->comm, REC->comm, REC->comm, 4, REC->v[1], REC->hex"#,
        &[
            Word(1),
            Word(2),
            Word(3),
            Word(4),
            Byte(0xde),
            Byte(0xad),
            Byte(0xbe),
            Byte(0xef),
            Byte(0),
            Byte(1),
            Half(0),
            Text("python3", 16),
        ],
        "v0=1 v2=3 hex=de ad be ef 00 01 hs=deadbe comm=python3 c=pyt w=   python3|   2 mac=de:ad:be:ef:00:01",
    ),
    (
        "casts",
        "u64 a,8,8,0;u32 dev,16,4,0;int set,20,4,1",
        r#""%u %d dev %d,%d %d %d", (u32)REC->a, (int)REC->a, ((unsigned int) ((REC->dev) >> 20)), ((unsigned int) ((REC->dev) & ((1U << 20) - 1))), (u8)(REC->a), __builtin_expect(!!(REC->set), 1)"#,
        &[Long(0xffff_fff1_dead_beef), Word(8 << 20 | 17), Word(9)],
        "3735928559 -559038737 dev 8,17 239 1",
    ),
    (
        "pointers",
        "const char * s,8,8,0;void * ip,16,8,0",
        r#""s=%s ip=%ps nil=%p", REC->s, REC->ip, REC->ip & 0"#,
        &[Long(0xffff_ffff_8100_0001), Long(0xffff_ffff_8123_4567)],
        "s=printed text ip=0xffffffff81234567 nil=(nil)",
    ),
    (
        "kernel_names",
        "unsigned long state,8,8,0;unsigned long flags,16,8,0;unsigned long pfn,24,8,0;unsigned long when,32,8,0",
        r#""state=%s flags=%s gfp=%s page=%p age=%lu", __print_flags(REC->state, "|", {I_DIRTY, "I_DIRTY"}, {I_NEW, "I_NEW"} ), __print_flags(REC->flags, "|", {I_DIRTY, "I_DIRTY"}, {I_NEW, "I_NEW"} ), (REC->flags) ? __print_flags(REC->flags, "|", {( unsigned long)(( gfp_t)((((1UL))) << (4))), "__GFP_RECLAIMABLE"}, { 0, ((void *)0) } ) : "none", (((struct page *)vmemmap_base) + (REC->pfn)), (jiffies - REC->when) / 250"#,
        &[Long(0), Long(0x70), Long(0x1a_84d3), Long(4_299_267_809)],
        "state=I_DIRTY flags=0x70 gfp=__GFP_RECLAIMABLE|0x60 page=0x1a84d3 age=73786976277641135",
    ),
    (
        "addresses",
        "__u8 mapped[16],8,16,0;__u8 v6[16],24,16,0;__u8 socket[28],40,28,0;__u8 end[4],68,4,0",
        r#""%pI6c %pI6c %pISpc %pI4", REC->mapped, REC->v6, REC->socket, REC->end"#,
        &[
            Text("\0\0\0\0\0\0\0\0\0\0\u{7f}\u{7f}\u{7f}\0\0\u{1}", 16),
            Text("\u{20}\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\u{2}", 16),
            Half(2),
            Text("\0\u{50}\u{7f}\0\0\u{1}", 26),
            Text("\u{a}\0\0\u{1}", 4),
        ],
        "::7f7f:7f00:1 2001::2 127.0.0.1:80 10.0.0.1",
    ),
    (
        "unknown",
        "int a,8,4,1;unsigned long b,16,8,0;char comm[16],24,16,0;u8 raw[4],40,4,0;s16 c,44,2,1;long d,48,8,1;void * e,56,8,0",
        r#""a=%d %s", REC->a, some_function(REC->b)"#,
        &[
            Word(-3i32 as u32),
            Word(0),
            Long(0xabc),
            Text("comm", 16),
            Byte(1),
            Byte(2),
            Byte(0),
            Byte(255),
            Half(-7i16 as u16),
            Half(0),
            Long(-9i64 as u64),
            Long(0x1234),
        ],
        "[FAILED TO PARSE] a=-3 b=0xabc comm=comm raw=ARRAY[01, 02, 00, ff] c=-7 d=-9 e=0x1234",
    ),
    (
        "uuids",
        "u8 id[16],8,16,0;u64 n,24,8,0",
        r#""%pU: %pUb %pUB %pUl,%pUL n=%llu", REC->id, REC->id, REC->id, REC->id, REC->id, REC->n"#,
        &[Text("\0\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}\u{9}\u{a}\u{b}\u{c}\u{d}\u{e}\u{f}", 16), Long(5)],
        "00010203-0405-0607-0809-0a0b0c0d0e0f: 00010203-0405-0607-0809-0a0b0c0d0e0f \
         00010203-0405-0607-0809-0A0B0C0D0E0F 03020100-0504-0706-0809-0a0b0c0d0e0f,\
         03020100-0504-0706-0809-0A0B0C0D0E0F n=5",
    ),
    (
        "null_name",
        "int len,8,4,1;int none,12,4,1;char name[8],16,8,0;__u8 socket[28],24,28,0",
        r#""%.*s|%.*s|src=%pISpc", REC->len, REC->len ? REC->name : ((void *)0), REC->none, REC->none ? REC->name : ((void *)0), REC->socket"#,
        &[Word(3), Word(0), Text("names", 8), Half(1), Text("\u{1}\u{2}", 26)],
        "nam||src=",
    ),
    (
        "short_uuid",
        "u8 id[8],8,8,0;char comm[8],16,8,0;char no_text[4],24,4,0;u8 none[4],28,4,0",
        r#""%pU", REC->id"#,
        &[Text("\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}", 8), Text("", 8), Text("\u{1}\u{2}", 4), Word(0)],
        "[FAILED TO PARSE] id=ARRAY[01, 02, 03, 04, 05, 06, 07, 08] comm= no_text=ARRAY[01, 02, 00, 00] none=",
    ),
    // No kernel writes so many `h`.
    ("halved", "s8 a,8,1,1", r#""%hhd %hhhhhhhd", REC->a, REC->a"#, &[Byte(0xc1)], "-63 -63"),
];

fn tracepoints(order: Order, sample_type: u64) -> Recording {
    let mut events = Vec::new();
    for (config, (name, ..)) in (100..).zip(TRACEPOINTS) {
        events.push(Event { name, kind: 2, config, sample_type, flags: FLAGS, period: 1 });
    }
    let mut recording = Recording::new(order, events);
    recording.comm("app", START);
    for (id, (.., parts, _)) in (1..).zip(TRACEPOINTS) {
        let mut raw = recording.out();
        raw.u16(99 + id as u16).raw(&[0, 0]).u32(PID);
        for part in *parts {
            match part {
                Byte(byte) => _ = raw.raw(&[*byte]),
                Half(half) => _ = raw.u16(*half),
                Word(word) => _ = raw.u32(*word),
                Long(long) => _ = raw.u64(*long),
                Text(text, size) => {
                    let end = raw.bytes.len() + size;
                    raw.raw(text.as_bytes()).bytes.resize(end, 0);
                }
            }
        }
        raw.bytes.resize((raw.bytes.len() + 4).next_multiple_of(8) - 4, 0);
        let mut body = recording.out();
        body.words(&[id, SYSCALL]).u32(PID).u32(PID).words(&[START + 1000 * id, 1]);
        if sample_type & CALLCHAIN != 0 {
            body.words(&[2, KERNEL, SYSCALL]);
        }
        body.u32(raw.bytes.len() as u32).raw(&raw.bytes);
        recording.record(9, 1, &body);
    }
    let formats: Vec<_> = TRACEPOINTS.iter().map(|&(name, fields, print, ..)| (name, fields, print)).collect();
    recording.features.push((1, tracing_data(order, &formats)));
    recording
}

#[test]
fn tracepoints_print_their_fields_and_no_period() {
    // perf pads the names of events to the longest.
    let width = TRACEPOINTS.iter().map(|(name, ..)| name.len()).max().unwrap();
    for order in [Order::Little, Order::Big] {
        let scene = Scene::new(&[]);
        let path = scene.write(tracepoints(order, IDENTIFIER | IP | TID | TIME | PERIOD | RAW));
        let text = stdout(&["script", "-q"], &path);
        assert_eq!(text.lines().count(), TRACEPOINTS.len(), "{text}");
        for (line, (id, (name, .., expected))) in text.lines().zip((1..).zip(TRACEPOINTS)) {
            let head = format!("{:>16} {PID}  1000.{id:06}: {name:>width$}: ", "app");
            assert_eq!(line, format!("{head}{expected}"), "{order:?}");
        }
        let with_period = stdout(&["script", "-q", "-F", "period,event,trace"], &path);
        assert!(
            with_period.starts_with(&format!("         1 {:>width$}: {}\n", TRACEPOINTS[0].0, TRACEPOINTS[0].4)),
            "{with_period}"
        );
        assert!(!stdout(&["script", "-q", "-F", "-trace"], &path).contains("a=65"));
    }
}

#[test]
fn tracepoints_with_call_chains_print_both_and_pass_through_a_pipe() {
    let scene = Scene::new(&[]);
    let path = scene.write(tracepoints(Order::Little, IDENTIFIER | IP | TID | TIME | PERIOD | RAW | CALLCHAIN));
    let text = stdout(&["script", "-q"], &path);
    assert!(text.contains(" choice: big 5 20 0\n\tffffffff81234567 [unknown] ([unknown])\n\n"), "{text}");
    let pipe = scene.path("pipe.data");
    let output = jitgraft(&["inject", "-q", "-o", "-"], &path);
    assert!(output.status.success());
    fs::write(&pipe, output.stdout).unwrap();
    assert_eq!(stdout(&["script", "-q"], &pipe), text);
}

#[test]
fn tracepoints_without_formats_are_reported() {
    let scene = Scene::new(&[]);
    let mut recording = tracepoints(Order::Little, IDENTIFIER | IP | TID | TIME | PERIOD | RAW);
    let (_, whole) = recording.features.pop().unwrap();
    recording.features.push((1, whole[..200].to_vec()));
    let path = scene.write(recording);
    let output = jitgraft(&["script"], &path);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.contains("tracepoints are printed without their fields"), "{told}");
}

#[test]
fn page_faults_name_the_data_address() {
    let scene = Scene::new(&[]);
    let sample_type = IDENTIFIER | IP | TID | TIME | ADDR | PERIOD;
    let faults = Event { name: "page-faults", kind: 1, config: 2, sample_type, flags: FLAGS, period: 1 };
    let mut recording = Recording::new(Order::Little, vec![faults]);
    recording.comm("app", START);
    recording.mmap("[heap]", 0x5000_0000, 0x10000, 0, 3);
    recording.mmap("//anon", JIT, 0x10000, 0, 3);
    for (time, addr) in [(1, 0x5000_1000), (2, JIT + 8), (3, 0x10)] {
        let mut body = recording.out();
        body.words(&[1, 0x5000_0010]).u32(PID).u32(PID).words(&[START + time, addr, 1]);
        recording.record(9, 2, &body);
    }
    let path = scene.write(recording);
    let text = stdout(&["script", "-q", "-F", "event,addr,sym,dso,ip"], &path);
    let addrs: Vec<&str> = text.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert!(addrs[0].starts_with("        50001000 [unknown] ([heap])"), "{text}");
    assert!(addrs[1].starts_with("    7f1000000008 [unknown] (//anon)"), "{text}");
    assert!(addrs[2].starts_with("              10 [unknown] ([unknown])"), "{text}");
    // Nothing that was asked for is left out in silence.
    let output = jitgraft(&["script", "-F", "+addr,+cgroup,+phys_addr"], &path);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the field cgroup is not printed, because no event recorded it"), "{said}");
    assert!(said.contains("(perf record -d --phys-data)") && !said.contains("the field addr"), "{said}");
    let output = jitgraft(&["script", "-F", "comm,addr"], &path);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("is not printed"));
}

/// Fields of a protocol buffer.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    bytes.extend(varint(value.len() as u64));
    bytes.extend(value);
    bytes
}

fn number(number: u8, value: u64) -> Vec<u8> {
    let mut bytes = vec![number << 3];
    bytes.extend(varint(value));
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A file with symbols of simpleperf's: path, type, lowest address, where that is, symbols.
type SymbolFile<'a> = (&'a str, u64, u64, Option<u64>, &'a [(u64, u32, &'a str)]);

/// As features FILE2 has it.
fn file2((path, kind, min_vaddr, place, symbols): SymbolFile<'_>) -> Vec<u8> {
    let mut message = [field(1, path.as_bytes()), number(2, kind), number(3, min_vaddr)].concat();
    for (addr, len, name) in symbols {
        message.extend(field(4, &[number(1, *addr), number(2, (*len).into()), field(3, name.as_bytes())].concat()));
    }
    if let Some(place) = place {
        message.extend(field(if kind == 1 { 7 } else { 6 }, &number(1, place)));
    }
    [&(message.len() as u32).to_le_bytes()[..], &message].concat()
}

/// As FILE has it.
fn file1((path, kind, min_vaddr, place, symbols): SymbolFile<'_>) -> Vec<u8> {
    let mut body = Out::new(Order::Little);
    body.raw(path.as_bytes()).raw(b"\0").u32(kind as u32).u64(min_vaddr).u32(symbols.len() as u32);
    for (addr, len, name) in symbols {
        body.u64(*addr).u32(*len).raw(name.as_bytes()).raw(b"\0");
    }
    match place {
        _ if kind == 3 => _ = body.u32(1).u64(0x28),
        Some(place) => _ = body.u64(place),
        None => {}
    }
    [&(body.bytes.len() as u32).to_le_bytes()[..], &body.bytes].concat()
}

#[test]
fn simpleperf_names_frames_itself() {
    const CACHE: &str = "/data/local/tmp/perf.data_jit_zygote_cache:0-4096";
    const LIB: &str = "/apex/com.android.runtime/lib64/bionic/libc.so";
    const OLD_LIB: &str = "/system/lib64/libold.so";
    const DEX: &str = "/data/app/org.example/base.vdex";
    const MODULE: &str = "/vendor/lib/modules/wlan.ko";
    const KERNEL_NAME: &str = "[kernel.kallsyms]";
    const MEMORY: &str = "/memfd:jit-cache (deleted)";
    let files: &[SymbolFile<'_>] = &[
        (CACHE, 2, 0, Some(0), &[(0x7000_1000, 0x200, "org.example.Cart.total")]),
        (LIB, 2, 0x5000, Some(0x4000), &[(0x5100, 0x40, "_Z4readi"), (0x5140, 0, "write")]),
        (OLD_LIB, 2, 0x1000, None, &[(0x1100, 0x40, "old_function")]),
        (DEX, 3, 0, None, &[(0x2100, 0x80, "org.example.Main.run")]),
        (MODULE, 1, 0, Some(0), &[(0x300, 0x40, "wlan_interrupt")]),
        (KERNEL_NAME, 0, 0, None, &[(0xffff_ffc0_1008_1000, 0x100, "el0_svc")]),
        (MEMORY, 4, 0, None, &[(0x7500_0100, 0x40, "org.example.Memory.run")]),
    ];
    for (feature, write) in [(132, file2 as fn(SymbolFile<'_>) -> Vec<u8>), (128, file1)] {
        let scene = Scene::new(&[]);
        let event = Event { name: "unnamed", kind: 2, config: 91, ..CLOCK };
        let mut recording = Recording::new(Order::Little, vec![event]);
        let mut meta = Vec::new();
        for text in ["simpleperf_version", "1", "event_type_info", "cpu-clock,1,0\nsched:sched_switch,2,91"] {
            meta.extend(text.as_bytes());
            meta.push(0);
        }
        recording.features.push((129, meta));
        recording.features.push((feature, files.iter().flat_map(|file| write(*file)).collect()));
        recording.comm("org.example", START);
        recording.kernel_mmap(KERNEL_NAME, 0xffff_ffc0_1000_0000, 0x1000_0000);
        recording.kernel_mmap(MODULE, 0xffff_ffc0_2000_0000, 0x10000);
        recording.mmap(CACHE, 0x7000_1000, 0x200, 0x1000, 0x4000);
        recording.mmap(LIB, 0x7200_0000, 0x4000, 0x4000, 5);
        recording.mmap(OLD_LIB, 0x7300_0000, 0x4000, 0x2000, 5);
        recording.mmap(DEX, 0x7400_0000, 0x10000, 0x1000, 1);
        recording.mmap(MEMORY, 0x7500_0000, 0x1000, 0, 5);
        let kernel = [0xffff_ffc0_2000_0310, 0xffff_ffc0_1008_1010];
        let user = [0x7200_0110, 0x7200_0150, 0x7300_0111, 0x7400_1104, 0x7000_1040];
        let chain = [&[KERNEL], &kernel[..], &[USER], &user[..]].concat();
        recording.sample(1, (PID, START + 10), kernel[0], &chain);
        // In a gap between symbols there is no name.
        recording.sample(2, (PID, START + 20), 0x7300_0200, &[USER, 0x7300_0200]);
        recording.sample(3, (PID, START + 30), 0x7500_0110, &[USER, 0x7500_0110]);
        let path = scene.write(recording);
        let expected = [
            "org.example;[libold.so] 1000000".to_owned(),
            "org.example;org.example.Cart.total;org.example.Main.run;old_function;write;read;el0_svc;wlan_interrupt 1000000"
                .to_owned(),
            "org.example;org.example.Memory.run 1000000".to_owned(),
        ];
        assert_eq!(scene.folded(&["--event", "sched:sched_switch"], &path), expected, "{feature}");
        let report = stdout(&["report", "-q", "--sort", "dso,sym"], &path);
        assert!(report.contains("[JIT zygote cache]"), "{report}");
        let kinds = stdout(&["report", "-q", "--sort", "kind,sym"], &path);
        let in_memory = kinds.lines().find(|line| line.ends_with("org.example.Memory.run")).unwrap();
        assert!(in_memory.contains("JIT") && !in_memory.contains("unnamed"), "{in_memory}");
        // inject passes the symbols on.
        let out = scene.path("out.data");
        stdout(&["inject", "-q", "-o", out.to_str().unwrap()], &path);
        assert_eq!(scene.folded(&[], &out), expected, "{feature}");
    }
}

#[test]
fn damaged_symbols_of_simpleperf_are_counted() {
    let scene = Scene::new(&[]);
    let mut recording = Recording::new(Order::Little, vec![CLOCK]);
    let good = file2(("/lib/a.so", 2, 0, Some(0), &[(0x100, 0x100, "good")]));
    let mut bad = file2(("/lib/b.so", 2, 0, Some(0), &[(0x100, 0x100, "bad")]));
    let end = bad.len() - 3;
    bad[end] = 0xff;
    recording.features.push((132, [bad, good].concat()));
    recording.comm("app", START);
    recording.mmap("/lib/a.so", 0x7200_0000, 0x4000, 0, 5);
    recording.sample(2, (PID, START + 10), 0x7200_0110, &[USER, 0x7200_0110]);
    let path = scene.write(recording);
    let output = jitgraft(&["collapse"], &path);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "app;good 1000000\n");
    assert!(told.contains("1 symbol table skipped"), "{told}");
}
