//! Reads the log of `-XX:+LogCompilation`, which contains everything that HotSpot compiled.
//!
//! ```text
//! <hotspot_log version='160 1' process='7635' time_ms='1795332023031'>
//! <tty>
//! <nmethod compile_id='3' compiler='c1' level='3' entry='0x…' size='1288' address='0x…' relocation_offset='…'
//!   insts_offset='248' stub_offset='1208' … method='java.lang.String hashCode ()I' … stamp='0.066'/>     (in one line)
//! <make_not_entrant thread='7657' … compile_id='1' … stamp='0.130'/>
//! </tty>
//! <compilation_log thread='7658'>
//! <task compile_id='3' method='java.lang.String hashCode ()I' … stamp='0.066'> … </task>
//! ```
//!
//! **Addresses.** `address` is the start of a header, `entry` the start of the code, `size` the size of everything.
//! After the instructions and their stubs comes data, as far as it is in the code cache: up to JDK 22 all data, in
//! later versions hardly any. Offsets of data that is elsewhere are nonsense, beyond `size` or negative. Code thus ends
//! at the first data, as in a perf map.
//!
//! **Clock.** Stamps are seconds since the JVM started, in whole milliseconds. `time_ms` is the wall-clock time of the
//! start (computed as the current time minus the elapsed time, both truncated to milliseconds:
//! `defaultStream::init_log` in share/utilities/ostream.cpp). Times are therefore accurate to [`MOST_DEVIATION`]. Code
//! is assumed to exist that much earlier. A time that is too early does no harm, because freed memory is not reused
//! immediately. With a time that is too late, the first samples in the code would get a wrong name or none.
//!
//! **Removal.** Code that is "made not entrant" still runs to its end, and its freeing is not logged. But once other
//! code overlaps an older code range, all of the older range is gone.
//!
//! **Pitfalls.** The parts that compiler threads write (`compilation_log`, with the inlined calls) are in separate
//! files, `/tmp/hs_cTHREAD_pidPID.log`, until the JVM exits. A JVM that was killed leaves all `nmethod` elements, but
//! no inlined calls. Newer JDKs move code (`<relocated nmethod …>`, with a blank in the element's name).

use super::element::{address, attribute, attributes, tag, unescape};
use super::inlining::Inlining;
use super::method::{Method, compiler_mark};
use crate::bytes::digits::number;
use crate::error::{Error, Result};
use crate::jit::engine_logs::code_log::{CodeLog, LogClock, LogCode, LogEvent, LogEventKind};
use memchr::memmem;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// How far the time of an event may be off, in nanoseconds. The start of the JVM is only known to a millisecond, and a
/// stamp to half a millisecond; this is the sum, rounded up.
const MOST_DEVIATION: u64 = 2_000_000;

/// True if a file that starts with `head` is a compilation log.
pub(super) fn sniff(head: &[u8]) -> bool {
    find_root(head).is_some()
}

/// The tag of the root element.
fn find_root(bytes: &[u8]) -> Option<&[u8]> {
    let head = &bytes[..bytes.len().min(4096)];
    if !head.starts_with(b"<?xml ") && !head.starts_with(b"<hotspot_log ") {
        return None;
    }
    let start = memmem::find(head, b"<hotspot_log ")?;
    tag(&head[start..])
}

/// Reads a compilation log. Fails only if its root element is missing.
pub(super) fn read(bytes: &[u8]) -> Result<CodeLog> {
    let root = find_root(bytes).ok_or_else(|| Error::new("has no <hotspot_log> element"))?;
    // When the JVM started, in nanoseconds since 1970.
    let began = attribute(root, b"time_ms").and_then(number::<u64>).and_then(|ms| ms.checked_mul(1_000_000));
    let mut log = CodeLog::new(LogClock::SinceStart { began }, "nmethod element");
    log.pid = attribute(root, b"process").and_then(number);
    // If the last line is incomplete, the JVM is still running or was killed.
    log.torn = !bytes.trim_ascii_end().ends_with(b">");
    let mut reader = CompilationReader { log, loads_by_id: FxHashMap::default(), blobs: BTreeMap::new() };
    reader.read_methods(bytes);
    reader.find_tasks(bytes);
    reader.log.line_decoder = Some(Box::new(Inlining));
    Ok(reader.log)
}

struct CompilationReader {
    log: CodeLog,
    /// Index of the load event, by compilation ID.
    loads_by_id: FxHashMap<u32, usize>,
    /// The memory of the compiled methods that haven't been unloaded, by start address. The ranges don't overlap.
    blobs: BTreeMap<u64, LoadedBlob>,
}

/// The memory of a compiled method (which HotSpot calls a blob): header, code and data.
#[derive(Debug, Clone, Copy)]
struct LoadedBlob {
    /// End address, exclusive.
    end: u64,
    /// Index of the load event.
    load: usize,
}

impl CompilationReader {
    /// Reads all `nmethod` elements, which describe compiled methods.
    fn read_methods(&mut self, bytes: &[u8]) {
        for name_start in memmem::find_iter(bytes, b"nmethod compile_id='") {
            let before = &bytes[..name_start];
            let start = if before.ends_with(b"<") {
                name_start - b"<".len()
            } else if before.ends_with(b"<relocated ") {
                name_start - b"<relocated ".len()
            } else {
                // The search has found the text inside of another element's name or in the log's free text, so this is
                // no `nmethod` element.
                continue;
            };
            let Some(tag) = tag(&bytes[start..]) else {
                self.log.skipped.add(Error::new("an nmethod element has no end").at_offset(start as u64));
                continue;
            };
            match Nmethod::parse(tag) {
                Some(method) => self.load(&method),
                None => {
                    self.log
                        .skipped
                        .add(Error::new("an nmethod element has no address or name").at_offset(start as u64));
                }
            }
        }
    }

    /// Adds the code of a compiled method. Earlier code in the same memory is unloaded at the time of this load.
    fn load(&mut self, method: &Nmethod) {
        // The code must exist before its first sample, so take the earliest time that it can have been installed.
        let time = method.stamp.map(|stamp| stamp.saturating_sub(MOST_DEVIATION));
        self.unload_overlapping(&method.blob, time);
        let name = self.log.texts.intern(&method.name);
        let load = self.log.events.len();
        self.blobs.insert(method.blob.start, LoadedBlob { end: method.blob.end, load });
        if let Some(id) = method.id {
            self.loads_by_id.insert(id, load);
        }
        let code = LogCode::new(name, method.code.start, method.code.end - method.code.start);
        self.log.load(time, code);
    }

    /// Adds unload events for all code in the code cache that overlaps this range of memory.
    fn unload_overlapping(&mut self, range: &Range<u64>, time: Option<u64>) {
        while let Some((&start, &LoadedBlob { end, load })) = self.blobs.range(..range.end).next_back() {
            // Code in the code cache doesn't overlap other code, so all code before this ends even earlier.
            if end <= range.start {
                break;
            }
            self.blobs.remove(&start);
            if let LogEventKind::Load(code) = self.log.events[load].kind {
                self.log.events.push(LogEvent { time, kind: LogEventKind::Unload { load, addr: code.addr } });
            }
        }
    }

    /// Finds the `task` element that describes the compilation of each code range, and stores where in the log this
    /// element is (`line_range`).
    fn find_tasks(&mut self, bytes: &[u8]) {
        let mut starts = memmem::find_iter(bytes, b"<task compile_id='").peekable();
        while let Some(start) = starts.next() {
            // A task without an end, as in the log of a killed JVM, extends at most to the start of the next one.
            let task = &bytes[start..starts.peek().copied().unwrap_or(bytes.len())];
            let id = tag(task).and_then(|tag| attribute(tag, b"compile_id")).and_then(number::<u32>);
            // Tasks whose compilation gave no code, for example because it failed, are left out.
            if let Some(load) = id.and_then(|id| self.loads_by_id.get(&id))
                && let LogEventKind::Load(code) = &mut self.log.events[*load].kind
            {
                let len = memmem::find(task, b"</task>").unwrap_or(task.len());
                code.line_range = (start as u64, (start + len) as u64);
            }
        }
    }
}

/// An `nmethod` element of the log, which describes the code of a compiled method.
struct Nmethod {
    /// The compilation ID, by which the method's `task` element is found.
    id: Option<u32>,
    name: Vec<u8>,
    /// Address range of the whole method, from its header to the end of its data.
    blob: Range<u64>,
    /// Address range of the method's code.
    code: Range<u64>,
    /// When the code was installed, in nanoseconds since the JVM started.
    stamp: Option<u64>,
}

impl Nmethod {
    /// Parses the tag of an `nmethod` element. `None` if the address, size or name is missing, or if they contradict
    /// each other.
    fn parse(tag: &[u8]) -> Option<Self> {
        let (mut id, mut level, mut compiler, mut method, mut stamp) = (None, None, &b""[..], None, None);
        let (mut entry, mut header, mut size) = (None, None, None);
        // All offsets count from the header. Those of data may lie outside of the method's memory, and are then
        // ignored.
        let (mut insts_offset, mut stub_offset, mut data_offsets) = (None, 0, Vec::new());
        for (key, value) in attributes(tag) {
            match key {
                b"compile_id" => id = number(value),
                b"compiler" => compiler = value,
                b"level" => level = number(value),
                b"entry" => entry = address(value),
                b"address" | b"new_address" => header = address(value),
                b"size" => size = number::<u64>(value),
                b"insts_offset" => insts_offset = number::<u64>(value),
                b"stub_offset" => stub_offset = number(value).unwrap_or(0),
                b"method" => method = Some(unescape(value)),
                b"stamp" => stamp = parse_seconds(value),
                _ if key.ends_with(b"_offset") => data_offsets.extend(number::<u64>(value)),
                _ => {}
            }
        }
        // The memory of a compiled method (blob) has the header, then the code (from `entry` on) with its stubs, then
        // data.
        let (entry, size) = (entry?, size?);
        // If the address of the header isn't stated, the instructions' offset from the header gives it.
        let header = header.or_else(|| entry.checked_sub(insts_offset?))?;
        // The offset of the last piece of code: the instructions or, if there are any, the stubs after them.
        let last_code = insts_offset.unwrap_or(entry.checked_sub(header)?).max(stub_offset);
        // All data follows the code, so the code ends where the first part of the data begins.
        data_offsets.retain(|offset| *offset > last_code && *offset <= size);
        let first_data = data_offsets.into_iter().min().unwrap_or(size);
        let code = entry..header.checked_add(first_data)?;
        let blob = header..header.checked_add(size)?;
        let mut name = Method::from_words(&method?)?.spell();
        name.extend_from_slice(compiler_mark(compiler, level));
        if code.is_empty() { None } else { Some(Self { id, name, blob, code, stamp }) }
    }
}

/// Parses seconds such as `12.345`. Returns nanoseconds.
fn parse_seconds(stamp: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', stamp)?;
    let (seconds, fraction) = (&stamp[..point], &stamp[point + 1..]);
    if fraction.len() > 9 {
        return None;
    }
    let nanos = number::<u64>(fraction)? * 10u64.pow(9 - fraction.len() as u32);
    number::<u64>(seconds)?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element as JDK 17 writes it, with data after the code, then one of JDK 25, with the data elsewhere.
    const LOG: &str = "<?xml version='1.0' encoding='UTF-8'?>
<hotspot_log version='160 1' process='7635' time_ms='1795332023031'>
<tty>
<writer thread='7643'/>
<nmethod compile_id='1' compiler='c1' level='3' entry='0x7000000620' size='760' address='0x7000000490' relocation_offset='352' insts_offset='400' stub_offset='624' scopes_data_offset='688' scopes_pcs_offset='704' dependencies_offset='752' metadata_offset='672' method='java.lang.Object &lt;init&gt; ()V' bytes='1' count='330' iicount='330' stamp='0.091'/>
<make_not_entrant thread='7657' reason='not used' compile_id='1' compiler='c1' level='3' stamp='0.130'/>
<nmethod compile_id='4' compile_kind='c2n' compiler='' level='0' entry='0x7000003900' size='1368' address='0x7000003808' relocation_offset='-111571496' insts_offset='248' stub_offset='1366' method='A nat (J)LB;' bytes='0' count='128' iicount='128' stamp='0.5'/>
<nmethod compile_id='5' compile_kind='osr' compiler='c2' level='4' entry='0x7000000700' size='500' address='0x7000000608' relocation_offset='-1387452488' insts_offset='248' stub_offset='464' oops_offset='488' scopes_data_offset='1387452512' method='A f (I)I' bytes='9' stamp='12.345'/>
</tty>
<compilation_log thread='7658'>
<task compile_id='5' compile_kind='osr' method='A f (I)I' bytes='9' osr_bci='4' stamp='12.300'>
</task>
</compilation_log>
</hotspot_log>
";

    /// One line per event, for comparisons. Loaded code: time in milliseconds (`-` if unknown), address and size in
    /// hexadecimal, name. Unloaded code: time, address, `no`, and the number of the event that loaded it.
    fn events(log: &CodeLog) -> Vec<String> {
        let mut lines = Vec::new();
        for event in &log.events {
            let time = event.time.map_or_else(|| "-".to_owned(), |time| format!("{}", time / 1_000_000));
            lines.push(match event.kind {
                LogEventKind::Load(code) => {
                    let name = String::from_utf8_lossy(log.texts.get(code.name)).into_owned();
                    format!("{time} {:x} {:x} {name}", code.addr, code.size)
                }
                LogEventKind::Unload { load, addr } => format!("{time} {addr:x} no {load}"),
                LogEventKind::Move { .. } => unreachable!(),
            });
        }
        lines
    }

    #[test]
    fn methods_have_place_tier_and_time_and_end_where_their_memory_is_used_again() {
        assert!(sniff(LOG.as_bytes()));
        let log = read(LOG.as_bytes()).unwrap();
        let expected = [
            "89 7000000620 110 void java.lang.Object.<init>() [c1]",
            "498 7000003900 460 B A.nat(long)",
            "12343 7000000620 no 0",
            "12343 7000000700 f0 int A.f(int) [c2]",
        ];
        assert_eq!(events(&log), expected);
        assert_eq!(log.clock, LogClock::SinceStart { began: Some(1_795_332_023_031_000_000) });
        assert_eq!((log.pid, log.torn, log.skipped.count()), (Some(7635), false, 0));
        let LogEventKind::Load(code) = log.events[3].kind else { panic!() };
        assert!(LOG[code.line_range()].starts_with("<task compile_id='5'"));
    }

    #[test]
    fn a_relocated_method_is_where_it_went() {
        let log = LOG.replace("<nmethod compile_id='5' compile_kind='osr'", "<relocated nmethod compile_id='5'");
        let log = log.replace(" address='0x7000000608'", " original_address='0x7000009000' new_address='0x7000000608'");
        assert_eq!(events(&read(log.as_bytes()).unwrap())[3], "12343 7000000700 f0 int A.f(int) [c2]");
    }

    #[test]
    fn elements_that_show_too_little_are_counted() {
        for (whole, bent) in [("entry='0x7000003900'", "entry=''"), ("'A nat (J)LB;'", "'A'"), ("'1368'", "'-1'")] {
            let log = read(LOG.replace(whole, bent).as_bytes()).unwrap();
            assert_eq!((events(&log).len(), log.skipped.count()), (3, 1), "{bent}");
        }
        let cut = &LOG[..LOG.find(" bytes='9' stamp").unwrap()];
        let log = read(cut.as_bytes()).unwrap();
        assert_eq!((events(&log).len(), log.skipped.count(), log.torn), (2, 1, true));
        assert!(read(b"<?xml version='1.0'?>\n").is_err());
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_read() {
        let whole = events(&read(LOG.as_bytes()).unwrap());
        for at in 0..LOG.len() {
            if let Ok(log) = read(&LOG.as_bytes()[..at]) {
                assert!(events(&log).iter().all(|event| whole.contains(event)), "cut at {at}");
            }
            let mut bent = LOG.as_bytes().to_vec();
            bent[at] ^= 1 << (at % 8);
            if let Ok(log) = read(&bent) {
                assert!(log.events.len() <= whole.len() + 2, "byte {at}");
            }
        }
    }
}
