//! Finds the correct name of each frame of a recording in a slow and obvious way: with its own small parsers of
//! perf.data, jitdumps and perf maps, and a linear scan for every frame. It shares no code with jitgraft.
//!
//! The rules: among the process's loads and moves up to the time of the sample, the last one that covers the address
//! counts, unless a file was mapped over it later. A move also ends the old range. If there is none, the last line of
//! the process's perf map that covers the address counts. A forked child starts with its parent's code, and exec
//! removes all code.
//!
//! It reads little-endian recordings: files (even if perf was killed), pipes and directories, compressed or not.

use std::collections::HashMap;
use std::io::Write;

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn text_at(bytes: &[u8], at: usize) -> Vec<u8> {
    bytes[at..].iter().copied().take_while(|byte| *byte != 0).collect()
}

/// From `time` on, this code or mapped file is at these addresses.
#[derive(Clone, Debug)]
struct Event {
    time: u64,
    start: u64,
    end: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Code(Vec<u8>),
    /// No JIT code: the old range of a move, or a mapped file.
    Nothing,
}

/// Everything known about the processes of a recording.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    events: HashMap<u32, Vec<Event>>,
    maps: HashMap<u32, Vec<(u64, u64, Vec<u8>)>>,
    /// Child → parent and time. Only the latest fork is kept.
    forks: HashMap<u32, (u32, u64)>,
    execs: HashMap<u32, Vec<u64>>,
}

impl Truth {
    /// Adds the loads and moves in the jitdump of process `pid`.
    pub(crate) fn add_dump(&mut self, pid: u32, dump: &[u8]) {
        let events = self.events.entry(pid).or_default();
        let mut functions: HashMap<u64, (u64, Vec<u8>)> = HashMap::new();
        let mut at = u32_at(dump, 8) as usize;
        while at + 16 <= dump.len() {
            let (id, size, time) = (u32_at(dump, at), u32_at(dump, at + 4) as usize, u64_at(dump, at + 8));
            if size < 16 || at + size > dump.len() {
                break;
            }
            if id == 0 && size > 56 {
                let (start, len, index) = (u64_at(dump, at + 32), u64_at(dump, at + 40), u64_at(dump, at + 48));
                let name = text_at(dump, at + 56);
                functions.insert(index, (start, name.clone()));
                events.push(Event { time, start, end: start + len, what: What::Code(name) });
            } else if id == 1 {
                let [from, to, len, index] = [32, 40, 48, 56].map(|field| u64_at(dump, at + field));
                if let Some((start, name)) = functions.get_mut(&index) {
                    events.push(Event { time, start: from, end: from + len, what: What::Nothing });
                    events.push(Event { time, start: to, end: to + len, what: What::Code(name.clone()) });
                    *start = to;
                }
            }
            at += size;
        }
    }

    /// Adds code from any other source. `None` removes the code at these addresses.
    #[allow(dead_code, reason = "only tests of logs have other sources")]
    pub(crate) fn add_code(&mut self, pid: u32, time: u64, (start, end): (u64, u64), name: Option<&[u8]>) {
        let what = name.map_or(What::Nothing, |name| What::Code(name.to_vec()));
        self.events.entry(pid).or_default().push(Event { time, start, end, what });
    }

    /// Adds the perf map of process `pid`.
    pub(crate) fn add_map(&mut self, pid: u32, map: &[u8]) {
        let lines = self.maps.entry(pid).or_default();
        for line in map.split(|byte| *byte == b'\n') {
            let mut words = line.splitn(3, |byte| *byte == b' ');
            let mut number = || {
                let text = std::str::from_utf8(words.next()?).ok()?;
                u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
            };
            let (Some(start), Some(size)) = (number(), number()) else { continue };
            if let Some(name) = words.next() {
                lines.push((start, start + size, name.trim_ascii_end().to_vec()));
            }
        }
    }

    /// Adds what a recording says about its processes: mapped files, forks, execs.
    pub(crate) fn add_recording(&mut self, recording: &Recording) {
        for map in &recording.maps {
            let own = map.path.windows(7).any(|part| part == b"jitted-") || map.path.ends_with(b".dump");
            if map.path.starts_with(b"/") && !map.path.starts_with(b"//") && !map.path.starts_with(b"/memfd:") && !own {
                let (time, start, end) = (map.time, map.start, map.start + map.len);
                self.events.entry(map.pid).or_default().push(Event { time, start, end, what: What::Nothing });
            }
        }
        self.forks.extend(recording.forks.iter().map(|(child, parent, time)| (*child, (*parent, *time))));
        for (pid, time) in &recording.execs {
            self.execs.entry(*pid).or_default().push(*time);
        }
    }

    /// Sorts the events of each process by time. Call it after everything is added.
    pub(crate) fn settle(&mut self) {
        self.events.values_mut().for_each(|events| events.sort_by_key(|event| event.time));
    }

    /// The name of the code at an address. `None` if no dump or map of the process covers it.
    pub(crate) fn name(&self, pid: u32, addr: u64, time: u64) -> Option<&[u8]> {
        self.dumped(pid, addr, time, 8).or_else(|| self.mapped(pid, addr))
    }

    fn mapped(&self, pid: u32, addr: u64) -> Option<&[u8]> {
        let lines = self.maps.get(&pid)?;
        lines.iter().rev().find(|(start, end, _)| (*start..*end).contains(&addr)).map(|(_, _, name)| name.as_slice())
    }

    fn dumped(&self, pid: u32, addr: u64, time: u64, generations: u32) -> Option<&[u8]> {
        let born = self.execs.get(&pid).into_iter().flatten().copied().filter(|exec| *exec <= time).max();
        let events = self.events.get(&pid).map_or(&[][..], Vec::as_slice);
        let last = events.iter().rev().find(|event| {
            event.time <= time && born.is_none_or(|born| event.time >= born) && (event.start..event.end).contains(&addr)
        });
        match (last, self.forks.get(&pid)) {
            (Some(Event { what: What::Code(name), .. }), _) => Some(name),
            (Some(_), _) => None,
            (None, Some((parent, forked))) if born.is_none() && parent != &pid && generations > 0 => {
                self.dumped(*parent, addr, *forked, generations - 1)
            }
            (None, _) => None,
        }
    }
}

/// A `PERF_RECORD_MMAP2`.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) pid: u32,
    pub(crate) time: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) path: Vec<u8>,
}

/// A `PERF_RECORD_SAMPLE`. `addrs` is its call chain, leaf first: also kernel addresses, but no context markers.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    pub(crate) addrs: Vec<u64>,
}

impl Sample {
    pub(crate) fn key(&self) -> (u64, u32, u32) {
        (self.time, self.pid, self.tid)
    }
}

/// The parts of a recording that matter here.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) maps: Vec<Map>,
    pub(crate) samples: Vec<Sample>,
    /// Child, parent and time of forked processes; new threads are not included.
    pub(crate) forks: Vec<(u32, u32, u64)>,
    pub(crate) execs: Vec<(u32, u64)>,
    /// The type of each record, in file order. Compressed records are replaced by their contents.
    pub(crate) types: Vec<u32>,
    /// From the events' attributes. All events must have the same `sample_type`.
    sample_type: u64,
    read_format: u64,
}

impl Recording {
    /// Reads one file or pipe. All events must record the same fields.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        Self::read_parts(bytes, &[])
    }

    /// Reads a recording with its records in several files: a directory's `data`, followed by `data.0`, `data.1` and so
    /// on.
    pub(crate) fn read_parts(bytes: &[u8], more: &[Vec<u8>]) -> Self {
        assert_eq!(&bytes[..8], b"PERFILE2", "not a little-endian perf.data");
        let mut this = Self::default();
        if u64_at(bytes, 8) == 16 {
            this.walk(&bytes[16..]);
        } else {
            this.event(&bytes[u64_at(bytes, 24) as usize..]);
            let (data, size) = (u64_at(bytes, 40) as usize, u64_at(bytes, 48) as usize);
            // The size is 0 if perf was killed.
            this.walk(if size == 0 { &bytes[data..] } else { &bytes[data..data + size] });
        }
        more.iter().for_each(|part| this.walk(part));
        this.samples.sort_by_key(Sample::key);
        this
    }

    /// Reads a `perf_event_attr`.
    fn event(&mut self, attr: &[u8]) {
        let sample_type = u64_at(attr, 24);
        assert!(self.sample_type == 0 || self.sample_type == sample_type, "events with other fields");
        (self.sample_type, self.read_format) = (sample_type, self.read_format | u64_at(attr, 32));
    }

    /// Reads the records of one file. Compressed records may end in the middle of a record, which the next one
    /// completes.
    fn walk(&mut self, records: &[u8]) {
        let mut unpacker = zstd::stream::write::Decoder::new(Vec::new()).unwrap();
        let mut at = 0;
        while at + 8 <= records.len() {
            let (kind, misc, len) = (u32_at(records, at), u16_at(records, at + 4), u16_at(records, at + 6));
            assert!(len >= 8, "record of {len} bytes at {at:#x}");
            let Some(record) = records.get(at..at + len) else { break };
            at += len;
            match kind {
                // HEADER_ATTR, HEADER_TRACING_DATA, AUXTRACE. The last two are followed by data outside the record.
                64 => self.event(&record[8..]),
                66 => at += u32_at(record, 8).next_multiple_of(8) as usize,
                71 => at += u64_at(record, 8) as usize,
                81 | 83 => {
                    let packed = if kind == 81 { &record[8..] } else { &record[16..][..u64_at(record, 8) as usize] };
                    unpacker.write_all(packed).and_then(|()| unpacker.flush()).unwrap();
                    let plain = unpacker.get_mut();
                    let mut whole = 0;
                    while plain.len() >= whole + 8 && plain.len() >= whole + u16_at(plain, whole + 6) {
                        whole += u16_at(plain, whole + 6).max(8);
                    }
                    let plain: Vec<u8> = plain.drain(..whole).collect();
                    self.walk(&plain);
                    continue;
                }
                _ => {}
            }
            self.record(kind, misc, record);
        }
    }

    fn record(&mut self, kind: u32, misc: usize, record: &[u8]) {
        self.types.push(kind);
        // The sizes of the fields after TIME at the end of the record: ID, STREAM_ID, CPU, IDENTIFIER.
        let behind: usize = [6, 9, 7, 16].iter().filter(|bit| self.sample_type >> **bit & 1 == 1).count() * 8;
        let time = || u64_at(record, record.len() - behind - 8);
        match kind {
            3 if misc & 1 << 13 != 0 => self.execs.push((u32_at(record, 8), time())),
            7 if u32_at(record, 8) != u32_at(record, 12) => {
                self.forks.push((u32_at(record, 8), u32_at(record, 12), u64_at(record, 24)));
            }
            10 => self.maps.push(Map {
                pid: u32_at(record, 8),
                time: time(),
                start: u64_at(record, 16),
                len: u64_at(record, 24),
                path: text_at(record, 72),
            }),
            9 => self.samples.push(self.sample(record)),
            _ => {}
        }
    }

    fn sample(&self, record: &[u8]) -> Sample {
        let mut at = 8;
        let mut field = |bit: u32| {
            let here = self.sample_type >> bit & 1 == 1;
            at += if here { 8 } else { 0 };
            here.then(|| u64_at(record, at - 8))
        };
        field(16);
        let ip = field(0).unwrap();
        let who = field(1).unwrap();
        let time = field(2).unwrap();
        for bit in [3, 6, 9, 7, 8] {
            field(bit);
        }
        if self.sample_type >> 4 & 1 == 1 {
            let count = |bits: &[u64]| bits.iter().filter(|bit| self.read_format >> **bit & 1 == 1).count();
            let values = if self.in_groups() { u64_at(record, at) as usize } else { 1 };
            at += 8 * (usize::from(self.in_groups()) + count(&[0, 1]) + values * (1 + count(&[2, 4])));
        }
        let mut addrs = vec![ip];
        if self.sample_type >> 5 & 1 == 1 {
            let count = u64_at(record, at) as usize;
            let chain = (1..=count).map(|nth| u64_at(record, at + 8 * nth));
            // Values from PERF_CONTEXT_MAX on are context markers. perf drops call chains with unknown markers.
            let (marks, known): (Vec<u64>, Vec<u64>) = chain.partition(|addr| *addr >= -4095i64 as u64);
            let odd = marks.iter().any(|mark| ![-32i64, -128, -512].contains(&(*mark as i64)));
            addrs = if odd { Vec::new() } else { known };
        }
        Sample { pid: who as u32, tid: (who >> 32) as u32, time, addrs }
    }

    /// True if a sample has the counts of a whole group (`:S`). perf prints such a sample once for each event that
    /// counted.
    fn in_groups(&self) -> bool {
        self.read_format >> 3 & 1 == 1
    }
}

/// A sample as printed by `perf script --ns -F pid,tid,time,ip,sym,dso`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    /// The printed address or file offset, the name (maybe `[unknown]`), and the file.
    pub(crate) frames: Vec<(u64, Vec<u8>, Vec<u8>)>,
}

impl Printed {
    pub(crate) fn key(&self) -> (u64, u32, u32) {
        (self.time, self.pid, self.tid)
    }
}

/// Parses the output of perf script.
pub(crate) fn read_script(text: &[u8]) -> Vec<Printed> {
    let mut samples: Vec<Printed> = Vec::new();
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty()) {
        let words = String::from_utf8_lossy(line);
        let mut words = words.split_ascii_whitespace();
        if line[0] == b'\t' || !words.clone().next().unwrap().contains('/') {
            let addr = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
            let rest = line.trim_ascii_start();
            let rest = &rest[rest.iter().position(|byte| *byte == b' ').map_or(rest.len(), |at| at + 1)..];
            let split = rest.windows(2).rposition(|pair| pair == b" (").unwrap_or(rest.len());
            let dso = rest.get(split + 2..rest.len().max(1) - 1).unwrap_or_default();
            samples.last_mut().unwrap().frames.push((addr, rest[..split].to_vec(), dso.to_vec()));
        } else {
            let (pid, tid) = words.next().unwrap().split_once('/').unwrap();
            let (pid, tid) = (pid.parse().unwrap(), tid.parse().unwrap());
            let (seconds, nanos) = words.next().unwrap().trim_end_matches(':').split_once('.').unwrap();
            let time = seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap();
            samples.push(Printed { pid, tid, time, frames: Vec::new() });
        }
    }
    samples
}

/// How well perf's names agree with the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Frames in user code.
    pub(crate) user: u64,
    /// Frames without a name.
    pub(crate) unresolved: u64,
    /// Those frames without a name that are JIT code: in anonymous or unknown memory, or covered by a dump or map.
    pub(crate) unresolved_jit: u64,
    /// Frames that a dump or map covers.
    pub(crate) covered: u64,
    /// Covered frames for which perf prints the correct name.
    pub(crate) right: u64,
    /// The first 20 covered frames with another name: process, address, time, printed name, correct name.
    pub(crate) wrong: Vec<String>,
}

impl Verdict {
    /// Judges one frame.
    pub(crate) fn add(&mut self, truth: &Truth, (pid, addr, time): (u32, u64, u64), name: &[u8], dso: &[u8]) {
        if addr >> 63 == 1 {
            return;
        }
        self.user += 1;
        let unresolved = name == b"[unknown]";
        let expected = truth.name(pid, addr, time);
        let unknown_memory = [&b"//anon"[..], b"/memfd:", b"[", b"/tmp/perf-", b"anon_inode", b"/SYSV"];
        let in_jit = expected.is_some()
            || dso.windows(7).any(|part| part == b"jitted-")
            || unknown_memory.iter().any(|start| dso.starts_with(start)) && dso != b"[vdso]" && dso != b"[vsyscall]";
        self.unresolved += u64::from(unresolved);
        self.unresolved_jit += u64::from(unresolved && in_jit);
        let Some(expected) = expected else { return };
        self.covered += 1;
        if name == expected {
            self.right += 1;
        } else if self.wrong.len() < 20 {
            let [name, expected, dso] = [name, expected, dso].map(String::from_utf8_lossy);
            self.wrong.push(format!("pid {pid} addr {addr:x} time {time}: {name:?} ({dso}), not {expected:?}"));
        }
    }
}

/// Judges perf's names in a recording with call chains. Addresses are taken from the recording.
pub(crate) fn judge(truth: &Truth, recording: &Recording, printed: &[Printed]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut printed: Vec<&Printed> = printed.iter().collect();
    printed.sort_by_key(|sample| sample.key());
    if recording.in_groups() {
        printed.dedup_by_key(|sample| sample.key());
    }
    assert_eq!(printed.len(), recording.samples.len(), "perf script prints another number of samples");
    for (sample, printed) in recording.samples.iter().zip(printed) {
        assert_eq!(
            (sample.key(), sample.addrs.len()),
            (printed.key(), printed.frames.len()),
            "{sample:x?}\n{printed:x?}"
        );
        for (addr, (_, name, dso)) in sample.addrs.iter().zip(&printed.frames) {
            verdict.add(truth, (sample.pid, *addr, sample.time), name, dso);
        }
    }
    verdict
}

/// Judges perf's names by the addresses that perf prints, which are absolute since perf 7.3. This also works for stacks
/// that perf unwound itself.
pub(crate) fn judge_printed(truth: &Truth, printed: &[Printed]) -> Verdict {
    let mut verdict = Verdict::default();
    for sample in printed {
        for (addr, name, dso) in &sample.frames {
            verdict.add(truth, (sample.pid, *addr, sample.time), name, dso);
        }
    }
    verdict
}
