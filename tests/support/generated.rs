//! Generates a recording of an imaginary JIT, with the correct function of every frame. Addresses are reused many
//! times, functions move, several processes use the same addresses, and samples have call chains.
//!
//! A sampled address is never the first byte of a function, or of what newer code has left of it. So the address before
//! it is in the same function, and readers that treat it as a return address find the same name.

use super::bytes::Order;
use super::jitdump::{Header, JitDump, Load};
use super::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use super::random::Random;
use std::collections::BTreeMap;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The number of JIT_CODE_LOAD records, over all processes.
    pub(crate) loads: u64,
    pub(crate) samples: u64,
    pub(crate) processes: u32,
    /// JIT memory of each process, in bytes. By default 40 for each function that it loads.
    pub(crate) heap: Option<u64>,
    /// If true, every tenth load is followed by a move of an earlier function.
    pub(crate) moves: bool,
    pub(crate) order: Order,
    pub(crate) mode: Mode,
}

/// A sampled frame, and the function that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) addr: u64,
    /// A number for [`name`].
    pub(crate) function: u64,
}

/// A sample, with its leaf first.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) pid: u32,
    pub(crate) time: u64,
    pub(crate) frames: Vec<Frame>,
}

/// A generated recording with its jitdumps. `truth` has all samples in order of time.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) perf_data: Vec<u8>,
    /// The jitdump of each process. The recording refers to it as `DIR/jit-PID.dump`.
    pub(crate) dumps: Vec<(u32, Vec<u8>)>,
    pub(crate) truth: Vec<Sample>,
}

/// The name of a function, in V8's format.
pub(crate) fn name(function: u64) -> String {
    format!("JS:*work{function} /app/module{}.js:{}:{}", function % 97, 1 + function % 1009, 1 + function % 31)
}

const ARENA: u64 = 0x7f10_0000_0000;
const FIRST_PID: u32 = 4_000_100;
const RECORDS_A_ROUND: usize = 4000;

/// What newer code has left of a function.
#[derive(Clone, Copy)]
struct Piece {
    end: u64,
    function: u64,
    index: u64,
    /// Start and size of the function when it was loaded or moved.
    whole: (u64, u64),
}

struct Process {
    pid: u32,
    arena: u64,
    dump: JitDump,
    live: BTreeMap<u64, Piece>,
    loaded: u64,
}

impl Process {
    /// Puts code at an address. It replaces whatever was there.
    fn put(&mut self, start: u64, piece: Piece) {
        self.cut(start, piece.end);
        self.live.insert(start, piece);
    }

    fn cut(&mut self, start: u64, end: u64) {
        let hit: Vec<(u64, Piece)> =
            self.live.range(..end).rev().take_while(|(_, old)| old.end > start).map(|(at, old)| (*at, *old)).collect();
        for (at, old) in hit {
            self.live.remove(&at);
            if at < start {
                self.live.insert(at, Piece { end: start, ..old });
            }
            if old.end > end {
                self.live.insert(end, old);
            }
        }
    }

    fn load(&mut self, time: u64, function: u64, random: &mut Random) {
        let size = 16 + random.below(12) * 16;
        let start = ARENA + random.below((self.arena - size) / 16) * 16;
        let code: Vec<u8> = (0..size).map(|at| (function as u8).wrapping_add(at as u8) | 1).collect();
        let index = self.loaded;
        self.loaded += 1;
        let text = name(function);
        self.dump.load(time, Load { tid: self.pid, addr: start, index, name: text.as_bytes(), code: &code });
        self.put(start, Piece { end: start + size, function, index, whole: (start, size) });
    }

    /// Moves a random function, unless newer code has already replaced a part of it.
    fn shift(&mut self, time: u64, random: &mut Random) {
        let Some((start, piece)) = self.pick(random) else { return };
        let (whole, size) = piece.whole;
        let to = ARENA + random.below((self.arena - size) / 16) * 16;
        if start != whole || piece.end != whole + size || to.abs_diff(whole) < size {
            return;
        }
        self.live.remove(&start);
        self.dump.moved(time, piece.index, (whole, to), size);
        self.put(to, Piece { end: to + size, whole: (to, size), ..piece });
    }

    /// Picks random code. Low addresses are picked most often, so that a few functions get most of the samples.
    fn pick(&self, random: &mut Random) -> Option<(u64, Piece)> {
        let mut at = random.below(self.arena);
        if random.below(4) != 0 {
            at = (at as f64 * (at as f64 / self.arena as f64).powi(4)) as u64;
        }
        self.live.range(..=ARENA + at).next_back().map(|(at, piece)| (*at, *piece))
    }
}

/// Generates a recording that expects its jitdumps in `dir`.
pub(crate) fn generate(plan: Plan, dir: &str) -> Generated {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut out = PerfData::new(plan.order, Event::usual());
    let usual = plan.loads / u64::from(plan.processes) * 40;
    let arena = plan.heap.unwrap_or(usual).max(4096).next_multiple_of(4096);
    let mut processes: Vec<Process> = (0..plan.processes)
        .map(|nth| {
            let pid = FIRST_PID + nth * 7;
            let dump = JitDump::with_header(plan.order, Header::of(pid));
            Process { pid, arena, dump, live: BTreeMap::new(), loaded: 0 }
        })
        .collect();
    let mut time = 1_000_000_000_000;
    for process in &processes {
        let stamp = Stamp::new(process.pid, time);
        out.comm(stamp, "made-up", true);
        out.mmap2(stamp, Mmap { addr: ARENA, len: arena, pgoff: 0, path: "//anon" });
        let path = format!("{dir}/jit-{}.dump", process.pid);
        out.mmap2(stamp, Mmap { addr: 0x7f00_0000_0000, len: 4096, pgoff: 0, path: &path });
    }
    // In each round, perf writes the buffers of two processors one after the other, so samples are not in order of
    // time.
    let mut round: [Vec<Sample>; 2] = Default::default();
    let mut truth = Vec::new();
    let mut flush = |round: &mut [Vec<Sample>; 2], truth: &mut Vec<Sample>| {
        for sample in round.iter().flatten() {
            let addrs: Vec<u64> = sample.frames.iter().map(|frame| frame.addr).collect();
            out.sample(Stamp::new(sample.pid, sample.time), &addrs);
        }
        out.finished_round();
        truth.extend(std::mem::take(round).into_iter().flatten());
    };
    for step in 0..plan.loads {
        let nth = random.below(processes.len() as u64) as usize;
        time += 1000 + random.below(1000);
        processes[nth].load(time, step, &mut random);
        if plan.moves && step % 10 == 9 {
            time += 100;
            processes[nth].shift(time, &mut random);
        }
        let due = plan.samples * (step + 1) / plan.loads - plan.samples * step / plan.loads;
        for _ in 0..due {
            time += 10 + random.below(100);
            let process = &processes[random.below(processes.len() as u64) as usize];
            let depth = 1 + random.below(7);
            let mut frames = Vec::new();
            for _ in 0..depth {
                if let Some((start, piece)) = process.pick(&mut random) {
                    let addr = start + 1 + random.below(piece.end - start - 1);
                    frames.push(Frame { addr, function: piece.function });
                }
            }
            if !frames.is_empty() {
                round[random.below(2) as usize].push(Sample { pid: process.pid, time, frames });
            }
        }
        if round[0].len() + round[1].len() >= RECORDS_A_ROUND {
            flush(&mut round, &mut truth);
        }
    }
    flush(&mut round, &mut truth);
    truth.sort_by_key(|sample| sample.time);
    let dumps = processes.into_iter().map(|process| (process.pid, process.dump.into_bytes())).collect();
    Generated { perf_data: out.into_bytes(plan.mode), dumps, truth }
}
