//! Reads LuaJIT's dump of its traces: `luajit -jdump=m,FILE` (or any mode with `m` for machine code).
//!
//! ```text
//! ---- TRACE 3 start 2/2 work.lua:9          a side trace: it leaves trace 2 at exit 2; root traces have none
//! 0007  KPRI     7   2                       bytecode, operations, snapshots, depending on the mode
//! ---- TRACE 3 mcode 171                     size of the machine code in bytes
//! 55fa9c02fdc5  mov dword [r14-0xec8], 0x3   each instruction with its address; the first is where the code begins
//! 55fa9c02fdd0  jnz 0x55fa9c02004c ->0        a jump to an exit
//! ->LOOP:                                    between two instructions
//! ---- TRACE 3 stop -> 2
//! ---- TRACE 12 abort work.lua:26 -- …       the trace was given up; the next one gets its number
//! ---- TRACE flush                           all code is discarded, and numbers start over
//! ```
//!
//! What to know about the format:
//! * There are no times and no bytes of machine code. Of two traces at the same address, the later one counts.
//! * A trace is compiled before its dump is written, and may already run before that.
//! * An exit without a side trace jumps to a stub of a few bytes. The dump names stubs only where they are jumped to
//!   (`->0`); several traces share them.
//! * In HTML dumps (`-jdump=H`), some lines are enclosed in tags; in colored ones (`A`), some contain escape sequences.
//! * By default, the dump goes to standard output, so the program's own output may be mixed in.
//! * `-jv` lists the same traces without addresses, which is no use here.
//!
//! Names are those of LuaJIT's own perf map (`-DLUAJIT_USE_PERFTOOLS`): `TRACE_3::work.lua:9`.
//!
//! Memory: less than the size of the dump. A trace takes at least about 40 bytes for each of its lines.
//!
//! See `src/jit/dump.lua`, `src/jit/v.lua` and `perftools_addtrace` in `src/lj_trace.c` of LuaJIT 2.1.

use super::{CodeLog, JitLog, LogClock, LogCode, LogEvent, LogEventKind, TextId};
use crate::bytes::digits::{decimal, hex};
use crate::bytes::lines::lines;
use crate::error::{Error, Result};
use memchr::memmem;
use rustc_hash::FxHashMap;

/// The table entry for LuaJIT's dump of its traces.
pub(super) const DUMP: JitLog = JitLog {
    name: "LuaJIT dump",
    id: "luajit-dump",
    about: "LuaJIT's dump of its traces (-jdump=m,FILE)",
    files: &["luajit.dump", "luajit-PID.dump", "jdump.txt", "jdump.html"],
    sniff,
    read,
    find_process: None,
};

fn sniff(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').any(|line| {
        let is_head = Head::parse(line).is_some_and(|head| head != Head::Other);
        is_head || is_verbose(line.trim_ascii_end())
    })
}

/// Reads a LuaJIT dump: traces with the addresses of their machine code.
fn read(bytes: &[u8]) -> Result<CodeLog> {
    let mut reader = TraceReader {
        log: CodeLog::new(LogClock::None, "line"),
        locations: FxHashMap::default(),
        live_loads: Vec::new(),
        expected_code: None,
        in_code: false,
        has_traces: false,
        has_code: false,
    };
    // True if the file is the output of `-jv`, which lists traces without addresses.
    let mut is_verbose_output = false;
    for (offset, line) in lines(bytes) {
        is_verbose_output |= is_verbose(line);
        reader.read_line(line, offset);
    }
    reader.end_code();
    let mut log = reader.log;
    if !reader.has_code && (is_verbose_output || reader.has_traces) {
        return Err(Error::new("contains no addresses of machine code; run LuaJIT with -jdump=m,FILE"));
    }
    // A dump that was cut off ends before the line that ends a trace's machine code, or in the middle of a line.
    log.torn = reader.in_code || bytes.last().is_some_and(|last| *last != b'\n');
    Ok(log)
}

/// A line that begins with `---- TRACE `, the head of a section of the dump.
#[derive(Debug, PartialEq, Eq)]
enum Head<'a> {
    /// A trace begins at a location in the source.
    Start { trace: u64, location: &'a [u8] },
    /// The given number of bytes of machine code follow.
    Code { trace: u64, size: u64 },
    /// A trace is finished or was aborted.
    Stop,
    /// All traces are discarded.
    Flush,
    /// A line about traces that doesn't matter here.
    Other,
}

impl<'a> Head<'a> {
    /// Parses a line that may be the head of a section. `None` if it doesn't begin with `---- TRACE `.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"---- TRACE ")?.trim_ascii_end();
        if rest == b"flush" {
            return Some(Self::Flush);
        }
        let (number, rest) = split_word(rest);
        // Sections without a number, or of an unknown kind, only end the section before.
        let Some(trace) = decimal(number) else { return Some(Self::Other) };
        let (what, rest) = split_word(rest);
        Some(match what {
            // A side trace states the exit of the other trace at which it starts (`2/2`) before its source location.
            b"start" => Self::Start { trace, location: strip_exit(rest) },
            b"mcode" => decimal(rest).map_or(Self::Other, |size| Self::Code { trace, size }),
            b"stop" | b"abort" => Self::Stop,
            _ => Self::Other,
        })
    }
}

/// Removes the exit of the parent trace (`2/2` or `2/stitch`) from the beginning of a text, so that the source location
/// at which a side trace starts is left.
fn strip_exit(text: &[u8]) -> &[u8] {
    let (word, location) = split_word(text);
    let mut parts = word.splitn(2, |&byte| byte == b'/');
    let is_exit = parts.next().and_then(decimal).is_some()
        && parts.next().is_some_and(|exit| exit == b"stitch" || decimal(exit).is_some());
    if is_exit && !location.is_empty() { location } else { text }
}

/// True for `[TRACE   1 work.lua:3 loop]`, the format of `-jv`.
fn is_verbose(line: &[u8]) -> bool {
    line.strip_prefix(b"[TRACE ").is_some_and(|rest| rest.ends_with(b"]"))
}

#[derive(Debug)]
struct TraceReader {
    log: CodeLog,
    /// The source location at which each current trace starts, by the trace's number.
    locations: FxHashMap<u64, TextId>,
    /// The load events of traces that aren't discarded yet: (index of the event, address of the code).
    live_loads: Vec<(usize, u64)>,
    /// The trace whose machine code was announced, but whose first instruction is still to come.
    expected_code: Option<ExpectedCode>,
    /// True while the current lines are the machine code of a trace.
    in_code: bool,
    /// True if any trace began.
    has_traces: bool,
    /// True if any trace had machine code.
    has_code: bool,
}

/// A trace of which the size is known, but not yet the address.
#[derive(Debug, Clone, Copy)]
struct ExpectedCode {
    trace: u64,
    size: u64,
    /// Offset in the log of the line that announced the code.
    offset: u64,
}

impl TraceReader {
    /// Reads a line. Only two kinds matter: heads of sections, and the first instruction of a trace, whose address is
    /// that of the trace's code.
    fn read_line(&mut self, line: &[u8], offset: u64) {
        if let Some(head) = Head::parse(line) {
            self.read_head(&head, offset);
        } else if let Some(code) = self.expected_code
            && let Some(addr) = instruction_address(line)
        {
            self.expected_code = None;
            self.load(code.trace, addr, code.size, offset);
        }
    }

    /// Applies the head of a section, which ends the section before it.
    fn read_head(&mut self, head: &Head<'_>, offset: u64) {
        self.end_code();
        match *head {
            Head::Start { trace, location } => {
                self.has_traces = true;
                let location = self.log.texts.intern(location);
                self.locations.insert(trace, location);
            }
            Head::Code { trace, size } => {
                self.expected_code = Some(ExpectedCode { trace, size, offset });
                self.in_code = true;
                self.has_code = true;
            }
            // The machine code before this line is complete. A dump that ends without this line was cut off.
            Head::Stop => self.in_code = false,
            Head::Flush => self.flush(),
            Head::Other => {}
        }
    }

    /// Ends the code of a trace. If no instruction was found, the code's address is unknown, and the code is skipped.
    fn end_code(&mut self) {
        if let Some(code) = self.expected_code.take() {
            let message = format!("trace {} has no instructions", code.trace);
            self.log.skipped.add(Error::new(message).at_offset(code.offset));
        }
    }

    /// Adds the machine code of a trace, named after the trace's number and its source line.
    fn load(&mut self, trace: u64, addr: u64, size: u64, offset: u64) {
        if addr.checked_add(size).is_none() {
            return self
                .log
                .skipped
                .add(Error::new(format!("trace {trace} extends beyond the address space")).at_offset(offset));
        }
        let mut name = format!("TRACE_{trace}").into_bytes();
        if let Some(&location) = self.locations.get(&trace) {
            name.extend_from_slice(b"::");
            name.extend_from_slice(self.log.texts.get(location));
        }
        let name = self.log.texts.intern(&name);
        // `flush` unloads the code, and needs the index of its load event for that.
        self.live_loads.push((self.log.events.len(), addr));
        self.log.load(None, LogCode::new(name, addr, size));
    }

    /// Unloads the code of all traces. Their numbers will be reused.
    fn flush(&mut self) {
        self.locations.clear();
        for (load, addr) in self.live_loads.drain(..) {
            self.log.events.push(LogEvent { time: None, kind: LogEventKind::Unload { load, addr } });
        }
    }
}

/// The address at the beginning of an instruction's line. `None` for other lines.
fn instruction_address(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_instruction = digits >= 8 && line[digits..].starts_with(b"  ");
    if is_instruction { hex(&line[..digits]) } else { None }
}

/// The text up to a blank, and the text after it.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memmem::find(text, b" ").unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
program's own line
---- TRACE 1 start work.lua:3
0011  FORL     3 => 0007
---- TRACE 1 IR
0001 rax   >  int SLOAD  #6    CRI
---- TRACE 1 mcode 32
55fa9c02ff3a  mov dword [r14-0xec8], 0x1
55fa9c02ff45  movsd xmm1, [r14+0xdbd0]
->LOOP:
55fa9c02ff4e  jnz 0x55fa9c02004c\t->0
---- TRACE 1 stop -> loop

---- TRACE 2 start 1/3 work.lua:9
---- TRACE 2 abort work.lua:10 -- leaving loop in root trace

---- TRACE 2 start 1/stitch C:55fa9c02
---- TRACE 2 mcode 16
0bcaff00  ret
---- TRACE 2 stop -> 1
---- TRACE 2 exit 0
---- TRACE flush

---- TRACE 1 start [builtin:ipairs_aux]
---- TRACE 1 mcode 8
55fa9c02ff3a  ret
---- TRACE 1 stop -> return
";

    fn loads(text: &str) -> Vec<(String, u64, u64)> {
        let log = read(text.as_bytes()).unwrap();
        let mut loads = Vec::new();
        for event in &log.events {
            if let LogEventKind::Load(code) = event.kind {
                let name = String::from_utf8_lossy(log.texts.get(code.name)).into_owned();
                loads.push((name, code.addr, code.size));
            }
        }
        loads
    }

    #[test]
    fn traces_are_named_as_in_luajits_own_perf_map() {
        let expected = [
            ("TRACE_1::work.lua:3", 0x55fa_9c02_ff3a, 32),
            ("TRACE_2::C:55fa9c02", 0x0bca_ff00, 16),
            ("TRACE_1::[builtin:ipairs_aux]", 0x55fa_9c02_ff3a, 8),
        ];
        assert_eq!(loads(DUMP), expected.map(|(name, addr, size)| (name.to_owned(), addr, size)));
        let log = read(DUMP.as_bytes()).unwrap();
        let gone = log.events.iter().filter(|event| matches!(event.kind, LogEventKind::Unload { .. }));
        assert_eq!((gone.count(), log.torn, log.skipped.count()), (2, false, 0));
    }

    #[test]
    fn tags_around_lines_are_not_matter() {
        let html = DUMP.replace("---- TRACE 1 start", "<pre class=\"ljdump\">\n---- TRACE 1 start");
        assert_eq!(loads(&html), loads(DUMP));
        assert!(sniff(html.as_bytes()));
    }

    #[test]
    fn a_dump_without_machine_code_states_what_to_switch_on() {
        for text in ["[TRACE   1 work.lua:3 loop]\n", "---- TRACE 1 start w.lua:3\n---- TRACE 1 stop -> loop\n"] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("-jdump=m"), "{error}");
            assert!(sniff(text.as_bytes()));
        }
        assert!(!sniff(b"7f00 10 f\n---- TRACE things ----\n"));
    }

    #[test]
    fn a_dump_that_ends_in_the_middle_is_torn() {
        let end = DUMP.find("55fa9c02ff45").unwrap();
        let log = read(&DUMP.as_bytes()[..end]).unwrap();
        assert_eq!((log.events.len(), log.torn), (1, true));
        let cut = DUMP.find("55fa9c02ff3a").unwrap();
        let log = read(&DUMP.as_bytes()[..cut]).unwrap();
        assert_eq!((log.events.len(), log.torn, log.skipped.count()), (0, true, 1));
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_read() {
        let check = |bytes: &[u8]| {
            let Ok(log) = read(bytes) else { return };
            for (at, event) in log.events.iter().enumerate() {
                match event.kind {
                    LogEventKind::Load(code) => assert!(code.addr.checked_add(code.size).is_some()),
                    LogEventKind::Unload { load, .. } | LogEventKind::Move { load, .. } => assert!(load < at),
                }
            }
        };
        for at in 0..DUMP.len() {
            check(&DUMP.as_bytes()[..at]);
            let mut bent = DUMP.to_owned().into_bytes();
            bent[at] ^= 0x15;
            check(&bent);
        }
    }

    #[test]
    fn a_damaged_recorded_dump_does_no_harm() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-luajit/luajit.dump");
        let bytes = std::fs::read(path).unwrap();
        // About 1000 positions, evenly spread. The unit tests try all positions of a small dump.
        for at in (0..bytes.len()).step_by(bytes.len() / 1000) {
            let _ = read(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 0x15;
            let _ = read(&changed);
        }
    }
}
