//! Writes perf.data in file mode and in pipe mode, in both byte orders.
//!
//! Layouts: `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`. Supported of
//! `sample_type`: IP, TID, TIME, ID, STREAM_ID, CPU, PERIOD, READ (of groups), CALLCHAIN, BRANCH_STACK, REGS_USER,
//! STACK_USER, RAW, WEIGHT, DATA_SRC, REGS_INTR, PHYS_ADDR, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, IDENTIFIER.

use super::bytes::{Order, Out};

/// Bits of `sample_type`.
pub(crate) const IP: u64 = 1;
pub(crate) const TID: u64 = 1 << 1;
pub(crate) const TIME: u64 = 1 << 2;
pub(crate) const ADDR: u64 = 1 << 3;
pub(crate) const READ: u64 = 1 << 4;
pub(crate) const CALLCHAIN: u64 = 1 << 5;
pub(crate) const ID: u64 = 1 << 6;
pub(crate) const CPU: u64 = 1 << 7;
pub(crate) const PERIOD: u64 = 1 << 8;
pub(crate) const STREAM_ID: u64 = 1 << 9;
pub(crate) const RAW: u64 = 1 << 10;
pub(crate) const BRANCH_STACK: u64 = 1 << 11;
pub(crate) const REGS_USER: u64 = 1 << 12;
pub(crate) const STACK_USER: u64 = 1 << 13;
pub(crate) const WEIGHT: u64 = 1 << 14;
pub(crate) const DATA_SRC: u64 = 1 << 15;
pub(crate) const REGS_INTR: u64 = 1 << 18;
pub(crate) const PHYS_ADDR: u64 = 1 << 19;
pub(crate) const CGROUP: u64 = 1 << 21;
pub(crate) const DATA_PAGE_SIZE: u64 = 1 << 22;
pub(crate) const CODE_PAGE_SIZE: u64 = 1 << 23;
pub(crate) const WEIGHT_STRUCT: u64 = 1 << 24;
pub(crate) const IDENTIFIER: u64 = 1 << 16;

/// The fields of `perf record -k mono -g`.
pub(crate) const USUAL: u64 = IP | TID | TIME | PERIOD | CALLCHAIN;

/// `PERF_SAMPLE_BRANCH_USER`, a bit of `branch_sample_type`.
pub(crate) const BRANCH_USER: u64 = 1;

/// In a call chain: kernel addresses, user addresses follow.
pub(crate) const CONTEXT_KERNEL: u64 = -128i64 as u64;
pub(crate) const CONTEXT_USER: u64 = -512i64 as u64;

/// `PERF_RECORD_MISC_KERNEL`, `PERF_RECORD_MISC_USER`.
pub(crate) const KERNEL: u16 = 1;
pub(crate) const USER: u16 = 2;

const HEADER_SIZE: usize = 104;
const ATTR_SIZE: usize = 128;

/// File or pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Pipe,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    /// `PERF_TYPE_*`, and the number of that type's event.
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) sample_type: u64,
    /// Needed with several events.
    pub(crate) ids: Vec<u64>,
    /// 1 is CLOCK_MONOTONIC; `None` is perf's own clock.
    pub(crate) clockid: Option<u32>,
    /// `PERF_FORMAT_*`.
    pub(crate) read_format: u64,
    /// `PERF_SAMPLE_BRANCH_*`.
    pub(crate) branches: u64,
    /// The registers, by `PERF_REG_*` numbers.
    pub(crate) registers: u64,
    /// The part of the user stack that is copied.
    pub(crate) stack: u32,
    /// `sample_max_stack`; 0 is the machine's own limit.
    pub(crate) max_stack: u16,
}

/// `PERF_FORMAT_ID`
pub(crate) const READ_ID: u64 = 4;

/// The other fields of a sample, beside address and call chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct More<'a> {
    /// The data address.
    pub(crate) addr: u64,
    /// Value and id of each counter of a group.
    pub(crate) values: &'a [(u64, u64)],
    /// From, to, flags.
    pub(crate) branches: &'a [[u64; 3]],
    /// `PERF_SAMPLE_REGS_ABI_*`, and the registers' values: the user's, those at the interrupt, or both.
    pub(crate) registers: (u64, &'a [u64]),
    /// From the stack pointer up.
    pub(crate) stack: &'a [u64],
    /// The raw data: with their size in front a multiple of 8, as the kernel pads them.
    pub(crate) raw: &'a [u8],
    pub(crate) weight: u64,
    pub(crate) data_src: u64,
    pub(crate) phys_addr: u64,
    pub(crate) cgroup: u64,
    /// Of the data and of the instruction.
    pub(crate) page_sizes: (u64, u64),
}

impl Event {
    /// cpu-clock as `perf record -k mono -g` opens it.
    pub(crate) fn usual() -> Self {
        Self {
            name: "cpu-clock",
            kind: 1,
            config: 0,
            sample_type: USUAL,
            ids: Vec::new(),
            clockid: Some(1),
            read_format: READ_ID,
            branches: 0,
            registers: 0,
            stack: 0,
            max_stack: 0,
        }
    }
}

/// The process and time: that every record's sample or trailer states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) id: u64,
}

impl Stamp {
    /// A process's only thread.
    pub(crate) fn new(pid: u32, time: u64) -> Self {
        Self { pid, tid: pid, time, cpu: 0, id: 0 }
    }
}

/// A file mapped, or anonymous memory (`//anon`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mmap<'a> {
    pub(crate) addr: u64,
    pub(crate) len: u64,
    pub(crate) pgoff: u64,
    pub(crate) path: &'a str,
}

/// A recording being written. Records are in the order of the calls.
#[derive(Clone, Debug)]
pub(crate) struct PerfData {
    pub(crate) order: Order,
    events: Vec<Event>,
    pub(crate) records: Out,
    features: Vec<(u8, Vec<u8>)>,
}

impl PerfData {
    /// One event, and the features that every recording has.
    pub(crate) fn new(order: Order, event: Event) -> Self {
        Self::with_events(order, vec![event])
    }

    /// Several events; the trailers follow the first one's `sample_type`.
    pub(crate) fn with_events(order: Order, events: Vec<Event>) -> Self {
        let mut this = Self { order, events, records: Out::new(order), features: Vec::new() };
        for (bit, text) in [(3, "host"), (4, "6.1.0"), (5, "6.1.0"), (6, "x86_64")] {
            let text = this.string(text);
            this.feature(bit, text);
        }
        this.command(&["perf", "record"]);
        let desc = this.event_desc();
        this.feature(12, desc);
        this
    }

    /// Sets the recorder's command line.
    pub(crate) fn command(&mut self, words: &[&str]) {
        let mut cmdline = Out::new(self.order);
        cmdline.u32(words.len() as u32);
        for word in words {
            cmdline.raw(&self.string(word));
        }
        self.feature(11, cmdline.bytes);
    }

    /// Sets a feature section.
    pub(crate) fn feature(&mut self, bit: u8, bytes: Vec<u8>) {
        self.features.retain(|(other, _)| *other != bit);
        self.features.push((bit, bytes));
        self.features.sort();
    }

    /// `PERF_RECORD_MMAP2` of executable memory.
    pub(crate) fn mmap2(&mut self, stamp: Stamp, map: Mmap) {
        // No file system is on this device.
        let inode = if map.path.starts_with("//") { 0 } else { 77 };
        self.mmap2_of(stamp, map, (0, 0), inode);
    }

    /// Like [`Self::mmap2`], for the file with this inode on the device with these numbers.
    pub(crate) fn mmap2_of(&mut self, stamp: Stamp, map: Mmap, device: (u32, u32), inode: u64) {
        let mut body = Out::new(self.order);
        body.u32(stamp.pid).u32(stamp.tid).u64(map.addr).u64(map.len).u64(map.pgoff);
        body.u32(device.0).u32(device.1).u64(inode).u64(0); // device, inode, generation
        body.u32(5).u32(2).padded_text(map.path.as_bytes()); // r-x, private
        self.stamped(10, USER, body, stamp);
    }

    /// `PERF_RECORD_MMAP` of the kernel.
    pub(crate) fn kernel_mmap(&mut self, stamp: Stamp, map: Mmap) {
        let mut body = Out::new(self.order);
        body.u32(u32::MAX).u32(0).u64(map.addr).u64(map.len).u64(map.pgoff).padded_text(map.path.as_bytes());
        self.stamped(1, KERNEL, body, stamp);
    }

    /// `PERF_RECORD_KSYMBOL` of a BPF program: it appears, or with flag 1 is gone.
    pub(crate) fn ksymbol(&mut self, stamp: Stamp, addr: u64, len: u32, flags: u16, name: &str) {
        let mut body = Out::new(self.order);
        body.u64(addr).u32(len).u16(1).u16(flags).padded_text(name.as_bytes());
        self.stamped(17, 0, body, stamp);
    }

    /// `PERF_RECORD_BPF_EVENT`: a program is loaded (1) or unloaded (2).
    pub(crate) fn bpf_event(&mut self, stamp: Stamp, what: u16, id: u32, tag: &[u8; 8]) {
        let mut body = Out::new(self.order);
        body.u16(what).u16(0).u32(id).raw(tag);
        self.stamped(18, 0, body, stamp);
    }

    /// `PERF_RECORD_COMM`; after an exec if `exec`.
    pub(crate) fn comm(&mut self, stamp: Stamp, name: &str, exec: bool) {
        let mut body = Out::new(self.order);
        body.u32(stamp.pid).u32(stamp.tid).padded_text(name.as_bytes());
        self.stamped(3, if exec { 1 << 13 } else { 0 }, body, stamp);
    }

    /// `PERF_RECORD_FORK`: `stamp`'s process appears as the child of `parent`.
    pub(crate) fn fork(&mut self, stamp: Stamp, parent: u32) {
        self.task(7, stamp, parent);
    }

    /// `PERF_RECORD_EXIT`.
    pub(crate) fn exit(&mut self, stamp: Stamp, parent: u32) {
        self.task(4, stamp, parent);
    }

    fn task(&mut self, kind: u32, stamp: Stamp, parent: u32) {
        let mut body = Out::new(self.order);
        body.u32(stamp.pid).u32(parent).u32(stamp.tid).u32(parent).u64(stamp.time);
        self.stamped(kind, 0, body, stamp);
    }

    /// `PERF_RECORD_SAMPLE` of the first event in user code: its address and, if asked for, the chain from the leaf on.
    pub(crate) fn sample(&mut self, stamp: Stamp, chain: &[u64]) {
        self.sample_of(0, USER, stamp, chain[0], &[&[CONTEXT_USER], chain].concat());
    }

    /// `PERF_RECORD_SAMPLE` of any event; `chain` is written unchanged.
    pub(crate) fn sample_of(&mut self, event: usize, misc: u16, stamp: Stamp, ip: u64, chain: &[u64]) {
        self.sample_with(event, misc, stamp, ip, chain, &More::default());
    }

    /// `PERF_RECORD_SAMPLE` with all that it may hold.
    pub(crate) fn sample_with(
        &mut self,
        event: usize,
        misc: u16,
        stamp: Stamp,
        ip: u64,
        chain: &[u64],
        more: &More<'_>,
    ) {
        let kinds = self.events[event].sample_type;
        let mut body = Out::new(self.order);
        let mut field = |bit: u64, write: &dyn Fn(&mut Out)| {
            if kinds & bit != 0 {
                write(&mut body);
            }
        };
        field(IDENTIFIER, &|out| {
            out.u64(stamp.id);
        });
        field(IP, &|out| {
            out.u64(ip);
        });
        field(TID, &|out| {
            out.u32(stamp.pid).u32(stamp.tid);
        });
        field(TIME, &|out| {
            out.u64(stamp.time);
        });
        field(ADDR, &|out| {
            out.u64(more.addr);
        });
        field(ID, &|out| {
            out.u64(stamp.id);
        });
        field(STREAM_ID, &|out| {
            out.u64(stamp.id);
        });
        field(CPU, &|out| {
            out.u32(stamp.cpu).u32(0);
        });
        field(PERIOD, &|out| {
            out.u64(1_000_000);
        });
        field(READ, &|out| {
            out.u64(more.values.len() as u64);
            more.values.iter().for_each(|(value, id)| {
                out.u64(*value).u64(*id);
            });
        });
        field(CALLCHAIN, &|out| {
            out.u64(chain.len() as u64).words(chain);
        });
        field(RAW, &|out| {
            out.u32(more.raw.len() as u32).raw(more.raw);
        });
        field(BRANCH_STACK, &|out| {
            out.u64(more.branches.len() as u64).words(more.branches.as_flattened());
        });
        field(REGS_USER, &|out| {
            out.u64(more.registers.0).words(more.registers.1);
        });
        field(STACK_USER, &|out| {
            let size = 8 * more.stack.len() as u64;
            out.u64(size).words(more.stack);
            // How many bytes of the copy are real. Absent if there is no copy.
            (size > 0).then(|| out.u64(size));
        });
        field(WEIGHT | WEIGHT_STRUCT, &|out| {
            out.u64(more.weight);
        });
        field(DATA_SRC, &|out| {
            out.u64(more.data_src);
        });
        field(REGS_INTR, &|out| {
            out.u64(more.registers.0).words(more.registers.1);
        });
        for (bit, word) in [
            (PHYS_ADDR, more.phys_addr),
            (CGROUP, more.cgroup),
            (DATA_PAGE_SIZE, more.page_sizes.0),
            (CODE_PAGE_SIZE, more.page_sizes.1),
        ] {
            field(bit, &|out| {
                out.u64(word);
            });
        }
        self.record(9, misc, &body.bytes);
    }

    /// `PERF_RECORD_NAMESPACES` of a thread in the pid namespace of that inode; the others are those of the machine.
    pub(crate) fn namespaces(&mut self, stamp: Stamp, pid_namespace: u64) {
        let mut body = Out::new(self.order);
        body.u32(stamp.pid).u32(stamp.tid).u64(7);
        (0..7).for_each(|kind| {
            body.u64(4).u64(if kind == 3 { pid_namespace } else { 0xf000_0000 + kind });
        });
        self.stamped(16, 0, body, stamp);
    }

    /// `PERF_RECORD_AUXTRACE`, whose payload is not counted in its size.
    pub(crate) fn auxtrace(&mut self, payload: &[u8]) {
        let mut body = Out::new(self.order);
        body.u64(payload.len() as u64).u64(0).u64(0).u32(0).u32(77).u32(0).u32(0);
        self.record(71, 0, &body.bytes);
        self.records.raw(payload);
    }

    /// `PERF_RECORD_FINISHED_ROUND`.
    pub(crate) fn finished_round(&mut self) {
        self.record(68, 0, &[]);
    }

    /// Any record, without a trailer.
    pub(crate) fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        self.records.u32(kind).u16(misc).u16((8 + body.len()) as u16).raw(body);
    }

    pub(crate) fn stamped(&mut self, kind: u32, misc: u16, mut body: Out, stamp: Stamp) {
        let kinds = self.events[0].sample_type;
        if kinds & TID != 0 {
            body.u32(stamp.pid).u32(stamp.tid);
        }
        if kinds & TIME != 0 {
            body.u64(stamp.time);
        }
        for bit in [ID, STREAM_ID] {
            if kinds & bit != 0 {
                body.u64(stamp.id);
            }
        }
        if kinds & CPU != 0 {
            body.u32(stamp.cpu).u32(0);
        }
        if kinds & IDENTIFIER != 0 {
            body.u64(stamp.id);
        }
        self.record(kind, misc, &body.bytes);
    }

    /// The file, or what a pipe carries.
    pub(crate) fn into_bytes(self, mode: Mode) -> Vec<u8> {
        match mode {
            Mode::File => self.file(),
            Mode::Pipe => self.pipe(),
        }
    }

    fn file(self) -> Vec<u8> {
        let ids: Vec<u64> = self.events.iter().flat_map(|event| event.ids.iter().copied()).collect();
        let attrs_at = HEADER_SIZE + 8 * ids.len();
        let attrs_size = (ATTR_SIZE + 16) * self.events.len();
        let data_at = attrs_at + attrs_size;
        let mut out = Out::new(self.order);
        out.u64(0x3245_4c49_4652_4550).u64(HEADER_SIZE as u64).u64(ATTR_SIZE as u64 + 16); // PERFILE2
        out.u64(attrs_at as u64).u64(attrs_size as u64);
        out.u64(data_at as u64).u64(self.records.bytes.len() as u64).u64(0).u64(0);
        let bits = self.features.iter().fold(0u64, |bits, (bit, _)| bits | 1 << bit);
        out.u64(bits).u64(0).u64(0).u64(0);
        ids.iter().for_each(|id| {
            out.u64(*id);
        });
        let mut ids_at = HEADER_SIZE;
        for event in &self.events {
            let size = 8 * event.ids.len();
            out.raw(&self.attr(event)).u64(ids_at as u64).u64(size as u64);
            ids_at += size;
        }
        out.raw(&self.records.bytes);
        let mut at = out.bytes.len() + 16 * self.features.len();
        for (_, bytes) in &self.features {
            out.u64(at as u64).u64(bytes.len() as u64);
            at += bytes.len();
        }
        self.features.iter().for_each(|(_, bytes)| {
            out.raw(bytes);
        });
        out.bytes
    }

    fn pipe(mut self) -> Vec<u8> {
        let mut out = Out::new(self.order);
        out.u64(0x3245_4c49_4652_4550).u64(16);
        let records = std::mem::replace(&mut self.records, out);
        for event in self.events.clone() {
            let mut body = Out::new(self.order);
            body.raw(&self.attr(&event));
            event.ids.iter().for_each(|id| {
                body.u64(*id);
            });
            self.record(64, 0, &body.bytes);
        }
        for (bit, bytes) in std::mem::take(&mut self.features) {
            let mut body = Out::new(self.order);
            body.u64(u64::from(bit)).raw(&bytes);
            let len = body.bytes.len().next_multiple_of(8);
            body.bytes.resize(len, 0);
            self.record(80, 0, &body.bytes);
        }
        self.records.raw(&records.bytes);
        self.records.bytes
    }

    /// `struct perf_event_attr` of a software clock.
    fn attr(&self, event: &Event) -> Vec<u8> {
        // inherit, mmap, comm, freq, task, sample_id_all, mmap2, comm_exec; use_clockid
        let usual = [1, 8, 9, 10, 13, 18, 23, 24].iter().fold(0u64, |flags, bit| flags | 1 << bit);
        let flags = usual | u64::from(event.clockid.is_some()) << 25;
        // A big-endian compiler allots bit fields from the highest bit on.
        let flags = if self.order == Order::Little { flags } else { flags.reverse_bits() };
        let mut out = Out::new(self.order);
        out.u32(event.kind).u32(ATTR_SIZE as u32).u64(event.config).u64(999).u64(event.sample_type);
        out.u64(event.read_format).u64(flags);
        out.bytes.resize(72, 0);
        out.u64(event.branches).u64(event.registers).u32(event.stack).u32(event.clockid.unwrap_or(0));
        out.u64(if event.sample_type & REGS_INTR != 0 { event.registers } else { 0 });
        out.u32(0).u16(event.max_stack);
        out.bytes.resize(ATTR_SIZE, 0);
        out.bytes
    }

    fn event_desc(&self) -> Vec<u8> {
        let mut out = Out::new(self.order);
        out.u32(self.events.len() as u32).u32(ATTR_SIZE as u32);
        for event in &self.events {
            out.raw(&self.attr(event)).u32(event.ids.len() as u32).raw(&self.string(event.name));
            event.ids.iter().for_each(|id| {
                out.u64(*id);
            });
        }
        out.bytes
    }

    /// perf's string in a feature: its room, then the text, padded to a multiple of 64.
    pub(crate) fn string(&self, text: &str) -> Vec<u8> {
        let room = (text.len() + 1).next_multiple_of(64);
        let mut out = Out::new(self.order);
        out.u32(room as u32).raw(text.as_bytes());
        out.bytes.resize(4 + room, 0);
        out.bytes
    }
}
