//! A recording, its dump and its map, all well formed, in which the bytes choose what happens: processes that come and
//! go, mappings over each other, code that is loaded, moved and loaded again where it was sampled. Few addresses and
//! few processes, so that everything meets everything. Then one command over it.

use super::commands::{Given, over_recording};
use super::framed::Bytes;
use crate::test_writers::bytes::Order;
use crate::test_writers::jitdump::{Header, JitDump, Line, Load};
use crate::test_writers::perf_data::{self as writer, Event, Mmap, Mode, More, PerfData, Stamp, USUAL};

/// No process of a machine has such a number.
pub const PID: u32 = 4_300_000;
const ARENA: u64 = 0x7f00_0000_0000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Runs one command over what the bytes stand for.
pub(super) fn scene(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (how, command) = (bytes.byte(), bytes.byte());
    let Recording { perf_data, dump, map } = recording(how, bytes.0, 1);
    over_recording(&Given { perf_data: &perf_data, dump: &dump, map: map.as_bytes(), pid: PID }, command);
}

/// A recording of [`PID`], and what names its code.
#[derive(Debug)]
pub struct Recording {
    pub perf_data: Vec<u8>,
    pub dump: Vec<u8>,
    pub map: String,
}

/// The meaning of the bytes, this many times in a row.
pub fn recording(how: u8, steps: &[u8], times: usize) -> Recording {
    let mut scene = Scene::new(how);
    for _ in 0..times {
        let mut bytes = Bytes(steps);
        while !bytes.is_empty() {
            scene.step(&mut bytes);
        }
    }
    let mode = if how & 2 == 0 { Mode::File } else { Mode::Pipe };
    Recording { perf_data: scene.data.into_bytes(mode), dump: scene.dump.into_bytes(), map: scene.map }
}

struct Scene {
    data: PerfData,
    dump: JitDump,
    map: String,
    now: u64,
    loaded: u64,
}

impl Scene {
    fn new(how: u8) -> Self {
        let order = if how & 1 == 0 { Order::Little } else { Order::Big };
        let more = [
            0,
            writer::REGS_USER | writer::STACK_USER,
            writer::BRANCH_STACK,
            writer::CPU | writer::ADDR | writer::READ,
        ];
        let sample_type = USUAL | more[usize::from(how >> 2 & 3)];
        let clockid = if how & 16 == 0 { Some(1) } else { None };
        let (registers, branches) = (0x00ff_0fff, writer::BRANCH_USER);
        let usual = Event { sample_type, clockid, registers, branches, stack: 64, ..Event::usual() };
        let mut events = vec![usual];
        if how & 32 != 0 {
            let ids = [vec![7], vec![8]];
            events =
                ids.map(|ids| Event { ids, sample_type: sample_type | writer::IDENTIFIER, ..events[0].clone() }).into();
        }
        let dump = JitDump::with_header(order, Header { flags: u64::from(how >> 6 & 1), ..Header::of(PID) });
        Self { data: PerfData::with_events(order, events), dump, map: String::new(), now: 1_000_000, loaded: 0 }
    }

    /// One thing that happens.
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let what = bytes.byte();
        self.now += u64::from(what >> 5) * 1000;
        let stamp = self.stamp(bytes.byte());
        match what & 31 {
            0..=5 => self.sample(stamp, bytes),
            6..=10 => self.load(bytes),
            11 => self.dump.moved(self.now, u64::from(bytes.byte()), (addr(bytes), addr(bytes)), size(bytes)),
            12 | 13 => self.lines(bytes),
            14 => {
                let (len, hdr) = (bytes.byte(), usize::from(bytes.byte() & 31));
                let unwinding = bytes.take(len.into());
                let (eh_frame, header) = unwinding.split_at(unwinding.len().saturating_sub(hdr));
                self.dump.unwinding(self.now, (eh_frame, header), size(bytes));
            }
            15 => self.dump.close(self.now),
            16..=18 => {
                let (from, len, name) = (addr(bytes), size(bytes), name(bytes));
                self.map += &format!("{from:x} {len:x} {name}\n");
            }
            19..=21 => self.mmap(stamp, bytes),
            22 => self.data.comm(stamp, &name(bytes), bytes.byte() & 1 == 1),
            23 => self.data.fork(stamp, PID + u32::from(bytes.byte() & 3)),
            24 => self.data.exit(stamp, PID),
            25 => self.data.finished_round(),
            26 => {
                let map = Mmap { addr: KERNEL, len: size(bytes) << 12, pgoff: KERNEL, path: "[kernel.kallsyms]_text" };
                self.data.kernel_mmap(stamp, map);
            }
            27 => {
                let flags = u16::from(bytes.byte() & 1);
                let (addr, len) = (KERNEL.wrapping_add(size(bytes)), size(bytes) as u32);
                self.data.ksymbol(stamp, addr, len, flags, &name(bytes));
            }
            28 => self.data.bpf_event(stamp, u16::from(bytes.byte() & 3), u32::from(bytes.byte()), &[7; 8]),
            29 => self.data.namespaces(stamp, u64::from(bytes.byte())),
            30 => {
                let (kind, len) = (bytes.byte(), bytes.byte() & 0xf8);
                let mut body = bytes.take(len.into()).to_vec();
                body.resize(len.into(), 0);
                self.data.record(u32::from(kind % 90), u16::from(kind), &body);
            }
            _ => {
                let (bit, len) = (bytes.byte() % 33, bytes.byte());
                self.data.feature(bit, bytes.take(len.into()).to_vec());
            }
        }
    }

    fn stamp(&self, byte: u8) -> Stamp {
        let pid = PID + u32::from(byte & 3);
        let (tid, cpu) = (pid + u32::from(byte >> 2 & 1), u32::from(byte >> 3 & 3));
        Stamp {
            pid,
            tid,
            time: self.now.saturating_sub(u64::from(byte >> 5) * 500),
            cpu,
            id: u64::from(7 + (byte >> 4 & 1)),
        }
    }

    fn sample(&mut self, stamp: Stamp, bytes: &mut Bytes<'_>) {
        let mut chain = vec![writer::CONTEXT_USER];
        let depth = bytes.byte();
        if depth & 0x80 != 0 {
            chain = vec![writer::CONTEXT_KERNEL, KERNEL.wrapping_add(size(bytes)), writer::CONTEXT_USER];
        }
        (0..=depth & 7).for_each(|_| chain.push(addr(bytes)));
        let ip = chain[1];
        let words: Vec<u64> =
            (0..8).map(|at| if at & 1 == 0 { addr(bytes) } else { 0x7ffc_0000_0000 + 8 * at }).collect();
        let branches = [[addr(bytes), addr(bytes), u64::from(depth)]];
        let mut registers = [0x7ffc_0000_0000; 20];
        registers[8] = ip;
        let registers = (2, &registers[..]);
        let more =
            More { addr: ip, values: &[(1, 7)], branches: &branches, registers, stack: &words, ..More::default() };
        let misc = if depth & 0x80 != 0 { writer::KERNEL } else { writer::USER };
        self.data.sample_with(0, misc, stamp, ip, &chain, &more);
    }

    fn load(&mut self, bytes: &mut Bytes<'_>) {
        let (addr, len, name) = (addr(bytes), bytes.byte(), name(bytes));
        let code = vec![0x90; len.into()];
        self.loaded += 1;
        let load = Load { tid: PID, addr, index: self.loaded, name: name.as_bytes(), code: &code };
        self.dump.load(self.now, load);
    }

    fn lines(&mut self, bytes: &mut Bytes<'_>) {
        let of = addr(bytes);
        let lines: Vec<Line<'_>> = (0..bytes.byte() & 7)
            .map(|_| Line { addr: addr(bytes), line: bytes.byte().into(), discriminator: 0, file: b"a.js" })
            .collect();
        self.dump.debug_info(self.now, of, &lines);
    }

    fn mmap(&mut self, stamp: Stamp, bytes: &mut Bytes<'_>) {
        const PATHS: [&str; 8] = [
            "//anon",
            "[heap]",
            "/memfd:jit (deleted)",
            "/nowhere/libx.so",
            "[vdso]",
            "/nowhere/perf-4300000.map",
            "/nowhere/jit-4300000.dump",
            "/dev/zero (deleted)",
        ];
        let path = PATHS[usize::from(bytes.byte() & 7)];
        let map = Mmap { addr: addr(bytes), len: size(bytes) << 6, pgoff: size(bytes), path };
        self.data.mmap2(stamp, map);
    }
}

/// One of a few, close to each other; some at the ends of the range.
fn addr(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.byte() {
        255 => u64::MAX - 15,
        254 => 0,
        byte => ARENA + 16 * u64::from(byte),
    }
}

fn size(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.byte() {
        255 => u64::MAX >> 12,
        byte => u64::from(byte),
    }
}

fn name(bytes: &mut Bytes<'_>) -> String {
    const NAMES: [&str; 8] =
        ["f", "JS:*work /app/a.js:1:2", "Lorg/App;::run", "py::f:/a.py", "<wasm>[1]", "", "a;b c", "TRACE-1$f$2"];
    NAMES[usize::from(bytes.byte() & 7)].to_owned()
}
