//! A perf.data of x86-64 with one event, read the slow and obvious way.

/// The content of a recording of `perf record -g -e cpu-clock`.
pub(super) struct Recorded {
    pub(super) samples: Vec<Sample>,
    pub(super) symbols: Vec<Symbol>,
    /// Those whose code is in the recording.
    pub(super) functions: Vec<Function>,
}

pub(super) struct Sample {
    pub(super) time: u64,
    /// Kernel addresses, innermost first.
    pub(super) chain: Vec<u64>,
}

pub(super) struct Symbol {
    time: u64,
    pub(super) addr: u64,
    pub(super) len: u64,
    pub(super) gone: bool,
    pub(super) name: String,
}

#[derive(Clone)]
pub(super) struct Function {
    /// The kernel's name for it.
    pub(super) symbol: String,
    /// When its symbol appeared.
    since: u64,
    pub(super) program: u32,
    pub(super) name: Option<String>,
    pub(super) addr: u64,
    pub(super) bytes: Vec<u8>,
    lines: Vec<(u64, Line)>,
}

#[derive(Clone)]
pub(super) struct Line {
    pub(super) file: String,
    pub(super) number: u32,
    pub(super) text: String,
}

struct Event {
    time: u64,
    id: u32,
    loaded: bool,
}

const SAMPLE: u32 = 9;
const KSYMBOL: u32 = 17;
const BPF_EVENT: u32 = 18;
const CONTEXT: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn text_at(bytes: &[u8], at: usize) -> String {
    bytes[at..].iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
}

/// A feature's section, by its number.
pub(super) fn feature(file: &[u8], wanted: usize) -> &[u8] {
    let has = |bit: usize| file[72 + bit / 8] >> (bit % 8) & 1 == 1;
    assert!(has(wanted), "feature {wanted} is not there");
    let place = u64_at(file, 40) + u64_at(file, 48) + 16 * (0..wanted).filter(|bit| has(*bit)).count() as u64;
    let (start, len) = (u64_at(file, place as usize) as usize, u64_at(file, place as usize + 8) as usize);
    &file[start..start + len]
}

impl Recorded {
    pub(super) fn new(file: Vec<u8>) -> Self {
        assert_eq!((&file[..8], u64_at(&file, 8)), (&b"PERFILE2"[..], 104));
        let (mut samples, mut symbols, mut events) = (Vec::new(), Vec::new(), Vec::new());
        let (mut at, end) = (u64_at(&file, 40) as usize, (u64_at(&file, 40) + u64_at(&file, 48)) as usize);
        while at < end {
            let record = &file[at..at + usize::from(u16_at(&file, at + 6))];
            // Every record but samples ends with pid, tid and time.
            let time = || u64_at(record, record.len() - 8);
            match u32_at(record, 0) {
                SAMPLE => samples.push(sample(record)),
                KSYMBOL => symbols.push(Symbol {
                    time: time(),
                    addr: u64_at(record, 8),
                    len: u32_at(record, 16).into(),
                    gone: u16_at(record, 22) == 1,
                    name: text_at(record, 24),
                }),
                BPF_EVENT => {
                    events.push(Event { time: time(), id: u32_at(record, 12), loaded: u16_at(record, 8) == 1 });
                }
                _ => {}
            }
            at += record.len();
        }
        symbols.sort_by_key(|symbol| symbol.time);
        events.sort_by_key(|event| event.time);
        let functions = functions(&file, &symbols, &events);
        Self { samples, symbols, functions }
    }

    /// The BPF program's function at an address, and how far into it that is.
    pub(super) fn function_at(&self, addr: u64, time: u64) -> Option<(Function, u64)> {
        let covers = |symbol: &&Symbol| symbol.time <= time && (symbol.addr..symbol.addr + symbol.len).contains(&addr);
        let symbol = self.symbols.iter().rfind(covers).filter(|symbol| !symbol.gone)?;
        let is_it = |function: &&Function| function.since == symbol.time && function.addr == symbol.addr;
        let known = self.functions.iter().find(is_it).cloned();
        let bare = || Function {
            symbol: symbol.name.clone(),
            since: symbol.time,
            program: 0,
            name: None,
            addr: symbol.addr,
            bytes: Vec::new(),
            lines: Vec::new(),
        };
        symbol.name.starts_with("bpf_prog_").then(|| (known.unwrap_or_else(bare), addr - symbol.addr))
    }
}

/// Address, pid and tid, time, period, then the chain.
fn sample(record: &[u8]) -> Sample {
    let count = u64_at(record, 40) as usize;
    let chain = (0..count).map(|number| u64_at(record, 48 + 8 * number));
    let kernel = chain.skip_while(|addr| *addr != CONTEXT_KERNEL).skip(1).take_while(|addr| *addr < CONTEXT);
    let mut chain: Vec<u64> = kernel.collect();
    if chain.is_empty() {
        chain.push(u64_at(record, 8));
    }
    Sample { time: u64_at(record, 24), chain }
}

/// Each symbol's program is the next one that was loaded.
fn functions(file: &[u8], symbols: &[Symbol], events: &[Event]) -> Vec<Function> {
    let mut functions = Vec::new();
    let infos = infos(file);
    for symbol in symbols.iter().filter(|symbol| !symbol.gone) {
        let Some(event) = events.iter().find(|event| event.loaded && event.time >= symbol.time) else { continue };
        let Some(info) = infos.iter().find(|info| u32_at(info.info, 4) == event.id) else { continue };
        functions.extend(info.function(symbol, &strings(file, u32_at(info.info, 128))));
    }
    functions
}

/// A program: `struct bpf_prog_info`, and what its offsets point into.
struct Info<'a> {
    info: &'a [u8],
    data: &'a [u8],
}

fn infos(file: &[u8]) -> Vec<Info<'_>> {
    let section = feature(file, 25);
    let (mut infos, mut at) = (Vec::new(), 4);
    for _ in 0..u32_at(section, 0) {
        let (info_len, data_len) = (u32_at(section, at) as usize, u32_at(section, at + 4) as usize);
        let (info, data) = section[at + 16..at + 16 + info_len + data_len].split_at(info_len);
        infos.push(Info { info, data });
        at += 16 + info_len + data_len;
    }
    assert_eq!(at, section.len());
    infos
}

/// A BTF object; empty if absent of this number.
fn strings(file: &[u8], id: u32) -> Vec<u8> {
    let section = feature(file, 26);
    let mut at = 4;
    while at < section.len() {
        let len = u32_at(section, at + 4) as usize;
        if u32_at(section, at) == id {
            return section[at + 8..at + 8 + len].to_vec();
        }
        at += 8 + len;
    }
    Vec::new()
}

impl Info<'_> {
    fn array(&self, place: usize) -> &[u8] {
        &self.data[u64_at(self.info, place) as usize..]
    }

    fn function(&self, symbol: &Symbol, btf: &[u8]) -> Option<Function> {
        let count = u32_at(self.info, 104) as usize;
        let number = (0..count).find(|number| u64_at(self.array(112), 8 * number) == symbol.addr)?;
        let len = |number: usize| u32_at(self.array(120), 4 * number) as usize;
        let start: usize = (0..number).map(len).sum();
        let bytes = self.array(24)[start..start + len(number)].to_vec();
        let text = |at: u32| text_at(btf, (24 + u32_at(btf, 16) + at) as usize);
        let inside = symbol.addr..symbol.addr + bytes.len() as u64;
        let mut lines = Vec::new();
        for entry in 0..u32_at(self.info, 148) as usize {
            let (addr, row) = (u64_at(self.array(160), 8 * entry), &self.array(152)[16 * entry..]);
            if inside.contains(&addr) {
                let line =
                    Line { file: text(u32_at(row, 4)), number: u32_at(row, 12) >> 10, text: text(u32_at(row, 8)) };
                lines.push((addr - symbol.addr, line));
            }
        }
        let name = (!btf.is_empty()).then(|| symbol.name[26..].to_owned());
        let (symbol_name, addr, program) = (symbol.name.clone(), symbol.addr, u32_at(self.info, 4));
        Some(Function { symbol: symbol_name, since: symbol.time, program, name, addr, bytes, lines })
    }
}

impl Function {
    /// The line of the byte so far into it: that of the last entry before; 0 is none.
    pub(super) fn line(&self, offset: u64) -> Option<&Line> {
        self.lines
            .iter()
            .filter(|(start, _)| *start <= offset)
            .max_by_key(|(start, _)| *start)
            .map(|(_, line)| line)
            .filter(|line| line.number > 0)
    }
}
