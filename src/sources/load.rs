//! Reads the opened sources into code events, on the recording's clock and with its process numbers, and builds the
//! code map.

mod ahead;
mod indexes;
mod rundown;

use super::account::{Account, ClockUse, Kind, SourceState};
use super::beside;
use super::clock::{Conversion, DumpTimes};
use super::discover::{Found, Source};
use super::guest::{GuestFiles, GuestNames};
use super::lifetime::of_another_process;
use super::logs;
use super::native;
use super::options::{SourceOptions, outer_pid};
use super::placed_elf;
use super::read_source::ReadSource;
use super::source_maps::{NativeFunctions, SourceMaps};
use crate::bytes::cursor::Endian;
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::model::code::{Code, CodeEvent, CodeEventKind, Lines, OriginId, Unwind};
use crate::model::process::Processes;
use crate::model::{Addr, Pid, Tid};
use crate::parallel::Pool;
use crate::records::jitdump::{Body, DebugInfo, JitDump, decode_lines};
use crate::records::perf_map;
use crate::resolve::code_map::{CodeList, CodeMap};
use crate::runtimes::script_name::ScriptName;
use indexes::Indexes;
use rustc_hash::FxHashMap;

/// All that the sources give.
#[derive(Debug)]
pub struct Loaded<'data> {
    /// The JIT code by place and time.
    pub map: CodeMap<'data>,
    /// The outcome for every source, in the order of [`OriginId`]; those that could not be opened follow.
    pub accounts: Vec<Account>,
    /// The first machine (e_machine) that a dump names, for images of recordings that do not state.
    pub machine: Option<u16>,
    /// The machine that each source, in that order, states for its code (e_machine).
    pub machines: Vec<Option<u16>>,
    /// The source maps of the scripts whose code it is.
    pub maps: &'data SourceMaps,
}

impl Loaded<'_> {
    /// The remarks for users about the sources of names, a line each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.accounts.iter().filter_map(|account| account.remark.clone()).chain(self.maps.remarks())
    }
}

impl Found {
    /// Reads all sources, in parallel, and builds the code map.
    pub fn load(&self, processes: &Processes, pool: &Pool, warnings: &mut Warnings) -> Loaded<'_> {
        let read = self.read(processes, pool);
        let (mut lists, mut accounts, mut machines) = (Vec::new(), Vec::new(), Vec::new());
        for read in read {
            warnings.append(read.warnings);
            lists.push(read.list);
            accounts.push(read.account);
            machines.push(read.machine);
        }
        accounts.extend(self.failed.iter().cloned());
        lists.push(native::named_by_files(&lists, processes, &self.options.search));
        let maps = self.source_maps(&lists, warnings);
        if !maps.is_empty() {
            lists.iter_mut().for_each(|list| list.author(|name| maps.name_of(name), maps));
        }
        let map = CodeMap::build(lists, processes, pool);
        let untimed = |account: &Account| {
            let is_dropped = |clock| matches!(clock, None | Some(ClockUse::Dropped));
            account.kind == Kind::JitDump
                && matches!(account.state, SourceState::Loaded { clock, .. } if is_dropped(clock))
        };
        if map.overlaps() > 0 && !accounts.iter().any(untimed) {
            warnings.push(Warning::new(format!(
                "{} perf map entries overlap earlier ones: the later ones are used (a map has no times; a jitdump does)",
                map.overlaps()
            )));
        }
        let machine = machines.iter().copied().flatten().next();
        Loaded { map, accounts, machine, machines, maps }
    }

    /// The maps of all scripts whose functions are in these lists, if they are wanted.
    fn source_maps(&self, lists: &[CodeList<'_>], warnings: &mut Warnings) -> &SourceMaps {
        self.maps.get_or_init(|| {
            if !self.options.source_maps.is_on() {
                return SourceMaps::default();
            }
            let names = lists.iter().flat_map(CodeList::names).filter_map(ScriptName::parse);
            let mut native = NativeFunctions::default();
            lists.iter().for_each(|list| native.add(list.names()));
            SourceMaps::of(names, &native, &self.options.map_search(self.beside.as_deref()), warnings)
        })
    }

    /// Reads each source, and brings together those of one process.
    pub(super) fn read(&self, processes: &Processes, pool: &Pool) -> Vec<ReadSource<'_>> {
        let sources: Vec<(usize, &Source)> = self.files.iter().enumerate().collect();
        // One that is alone has all threads.
        let ahead = Some(pool).filter(|_| sources.len() == 1);
        let mut read =
            pool.map(sources, |(at, source)| read(OriginId(at as u32), source, (processes, &self.options), ahead));
        beside::date_logs(&self.files, &mut read, processes);
        read
    }

    /// True if there is nothing to load.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

fn read<'data>(
    origin: OriginId,
    source: &'data Source,
    (processes, options): (&Processes, &SourceOptions),
    ahead: Option<&Pool>,
) -> ReadSource<'data> {
    let mut warnings = Warnings::new();
    let guest = GuestFiles { given: &options.guest, command: &processes.command, force: options.force };
    let result = match source.kind {
        Kind::JitDump => read_dump(origin, source, (processes, options), ahead, &mut warnings),
        Kind::PerfMap => Ok(read_map(origin, source, guest, &mut warnings)),
        Kind::Log(id) => logs::read(id, source, &mut warnings),
        Kind::PlacedElf => {
            placed_elf::codes(&source.bytes, source.addr, origin).map(|codes| untimed(source.pid, codes.into_iter()))
        }
    };
    let (list, state, machine) = match result {
        Ok(read) => read,
        Err(error) => {
            let warning = error.in_file(&source.path).into_warning();
            let state = SourceState::Refused(warning.message.clone());
            warnings.push(warning);
            (CodeList::default(), state, None)
        }
    };
    let Source { path, kind, pid, remark, .. } = source;
    let of_guest = || source.guest.get().and_then(|names| names.remark(path));
    let remark = remark.clone().or_else(of_guest);
    let account = Account { path: path.clone(), kind: *kind, pid: *pid, state, remark };
    ReadSource { list, account, machine, warnings }
}

type SourceEvents<'data> = (CodeList<'data>, SourceState, Option<u16>);

fn untimed<'data>(pid: Pid, codes: impl ExactSizeIterator<Item = Code<'data>>) -> SourceEvents<'data> {
    let codes_count = codes.len() as u64;
    let state = SourceState::Loaded { codes: codes_count, skipped: 0, clock: None, torn: false, times: None, lent: 0 };
    let event = |code| CodeEvent { pid, tid: Tid(0), time: None, kind: CodeEventKind::Load(code) };
    (codes.map(event).collect(), state, None)
}

fn read_map<'data>(
    origin: OriginId,
    source: &'data Source,
    guest: GuestFiles<'_>,
    warnings: &mut Warnings,
) -> SourceEvents<'data> {
    let (entries, skipped) = perf_map::read(&source.bytes);
    let guest = source.guest.get_or_init(|| GuestNames::of_map(&entries, guest));
    let code = |entry: perf_map::Entry<'data>| Code {
        name: guest.name(entry.name),
        addr: Addr(entry.start),
        size: entry.size,
        bytes: None,
        lines: Lines::default(),
        unwind: None,
        origin,
    };
    let (events, mut state, _) = untimed(source.pid, entries.into_iter().map(code));
    if let SourceState::Loaded { skipped: count, torn, .. } = &mut state {
        *count = skipped.count();
        *torn = source.bytes.last().is_some_and(|last| *last != b'\n');
    }
    skipped.report(&source.path, warnings);
    (events, state, None)
}

/// The message about a dump that ends inside a LOAD whose name is whole.
const CUT_IN_CODE: &str = "the dump was cut off here, in the code of its last function: that has its name all the same";

fn read_dump<'data>(
    origin: OriginId,
    source: &'data Source,
    (processes, options): (&Processes, &SourceOptions),
    ahead: Option<&Pool>,
    warnings: &mut Warnings,
) -> Result<SourceEvents<'data>> {
    let guest = GuestFiles { given: &options.guest, command: &processes.command, force: options.force };
    let dump = JitDump::parse(&source.bytes)?;
    let header = dump.header;
    if header.unknown_flags() != 0 {
        let said = Warning::new(format!("unknown flags {:#x} in the header are not heeded", header.unknown_flags()));
        warnings.push(said.in_file(&source.path, Some(32)));
    }
    if header.version > 2 {
        let said =
            Warning::new(format!("version {} is newer than any known (1 and 2): read as version 2", header.version));
        warnings.push(said.in_file(&source.path, Some(4)));
    }
    let times = DumpTimes {
        arch: header.has_arch_timestamps(),
        header: header.timestamp,
        first: dump.records().flatten().next().map(|record| record.timestamp),
        marker: source.marker,
    };
    let is_timed = has_times(&dump);
    let (conversion, said) = match is_timed {
        true => Conversion::choose(&processes.clock, &times),
        false => (Conversion::None, Some(NO_TIMES.to_owned())),
    };
    if let Some(said) = said {
        warnings.push(Warning::new(said).in_file(&source.path, None));
    }
    let pids = Pids { source, header: Pid(header.pid), processes, options };
    pids.say_if_foreign(warnings);
    let mut reader = DumpReader {
        origin,
        conversion,
        pids,
        big_endian: header.endian == Endian::Big,
        list: CodeList::default(),
        pending_lines: FxHashMap::default(),
        pending_unwind: None,
        guest: source.guest.get_or_init(|| GuestNames::of_dump(&dump, guest)),
        indexes: Indexes::default(),
        with_lines: 0,
        biased: 0,
    };
    let mut skipped = Skipped::new("jitdump record");
    let (mut last, mut cut, mut torn) = (None, 0, false);
    ahead::each_record(&dump, ahead, |record| {
        torn = record.is_err();
        match record {
            Ok(record) => {
                last = Some(record.timestamp);
                if let Body::Load(load) = record.body
                    && load.code.is_none()
                {
                    (cut, torn) = (1, true);
                    warnings.push(Warning::new(CUT_IN_CODE).in_file(&source.path, Some(record.offset)));
                }
                reader.record(record.timestamp, record.body);
            }
            Err(error) => skipped.add(error),
        }
    });
    if let (Conversion::Same, Some(first), Some(last)) = (conversion, times.first, last) {
        let said = of_another_process(source.pid, source.marker, processes, (first, last));
        warnings.extend(said.map(|said| Warning::new(said).in_file(&source.path, None)));
    }
    // A cut file could be used, but not wholly.
    let count = skipped.count() + cut;
    skipped.report(&source.path, warnings);
    reader.unbias_lines();
    rundown::date(&mut reader.list, source.pid, source.marker, processes);
    let codes = reader.list.code_count() as u64;
    let at = |time: Option<u64>| time.and_then(|time| conversion.apply(time));
    let (clock, times) = (is_timed.then(|| conversion.used()), at(times.first).zip(at(last)));
    let state = SourceState::Loaded { codes, skipped: count, clock, torn, times, lent: 0 };
    Ok((reader.list, state, Some(header.machine).filter(|machine| *machine != 0)))
}

/// The message about a dump whose times contain nothing.
const NO_TIMES: &str =
    "all its records have one time: it is used like a map, each address has the last code that was there";

/// True if the times of a dump report an order.
fn has_times(dump: &JitDump<'_>) -> bool {
    let code = dump.records().flatten().filter(|record| matches!(record.body, Body::Load(_) | Body::Move(_)));
    let mut times = code.map(|record| record.timestamp);
    match times.next() {
        None => true,
        Some(0) => times.any(|time| time != 0),
        Some(first) => times.next().is_none_or(|second| second != first || times.any(|time| time != first)),
    }
}

/// The processes of a dump's records.
struct Pids<'a> {
    source: &'a Source,
    header: Pid,
    processes: &'a Processes,
    options: &'a SourceOptions,
}

impl Pids<'_> {
    /// The recording's number of the process that a record names. A dump's own process is the one it was found for;
    /// a child that was forked and goes on writing into it is known by its own number.
    fn outer(&self, inner: Pid) -> Pid {
        if inner == self.header || Some(inner) == self.source.inner {
            return self.source.pid;
        }
        let outer = outer_pid(inner, self.processes, self.options);
        let known = self.processes.by_pid.contains_key(&outer) || self.options.outer_of(inner).is_some();
        if known { outer } else { self.source.pid }
    }

    /// A dump whose header names another process than its file is believed, but not without a word.
    fn say_if_foreign(&self, warnings: &mut Warnings) {
        let expected = self.source.inner.unwrap_or(self.source.pid);
        let given = self.options.jitdump.iter().find(|given| given.path == self.source.path);
        if given.is_some_and(|given| given.pid == Some(self.source.pid)) {
            return;
        }
        let misnamed = self.header != expected && self.header != self.source.pid;
        let unasked =
            self.source.marker.is_none() && outer_pid(self.header, self.processes, self.options) != self.source.pid;
        if misnamed || unasked {
            let said = format!(
                "its header names process {}: used for process {} of the recording",
                self.header, self.source.pid
            );
            warnings.push(Warning::new(said).in_file(&self.source.path, Some(20)));
        }
    }
}

/// The bias of V8's line entries: the size of an ELF header, which it takes to precede the code.
const ELF_HEADER: u64 = 0x40;

/// Puts the records of one dump together.
struct DumpReader<'a, 'data> {
    origin: OriginId,
    conversion: Conversion,
    pids: Pids<'a>,
    big_endian: bool,
    guest: &'data GuestNames,
    list: CodeList<'data>,
    /// By the address of the code that is to come.
    pending_lines: FxHashMap<u64, DebugInfo<'data>>,
    /// Belongs to the next load, whatever it is.
    pending_unwind: Option<Unwind<'data>>,
    indexes: Indexes,
    /// Loads with lines, and the number of these that begin about [`ELF_HEADER`] too far.
    with_lines: u64,
    biased: u64,
}

impl<'data> DumpReader<'_, 'data> {
    fn record(&mut self, timestamp: u64, body: Body<'data>) {
        let time = self.conversion.apply(timestamp);
        match body {
            Body::Load(load) => {
                let size = load.size;
                let lines = self.lines(load.addr, size, load.name);
                let unwind = self.pending_unwind.take();
                let (addr, origin, bytes) = (Addr(load.addr), self.origin, load.code);
                let name = self.guest.name(load.name);
                let code = Code { name, addr, size, bytes, lines, unwind, origin };
                self.indexes.push(load.index, self.list.len());
                let pid = self.pids.outer(Pid(load.pid));
                self.list.push(CodeEvent { pid, tid: Tid(load.tid), time, kind: CodeEventKind::Load(code) });
            }
            Body::Move(moved) => {
                if let Some(load) = self.indexes.last(moved.index) {
                    let pid = self.pids.outer(Pid(moved.pid));
                    let kind = CodeEventKind::Move { load, to: Addr(moved.to) };
                    self.list.push(CodeEvent { pid, tid: Tid(moved.tid), time, kind });
                }
            }
            Body::DebugInfo(info) => {
                self.pending_lines.insert(info.addr, info);
            }
            Body::Unwinding(unwind) => self.pending_unwind = unwind,
            Body::Close | Body::Other(_) => {}
        }
    }

    fn lines(&mut self, addr: u64, size: u64, function: &'data [u8]) -> Lines<'data> {
        let Some(info) = self.pending_lines.remove(&addr) else { return Lines::default() };
        if let Some(first) = info.first {
            self.with_lines += 1;
            let ahead = first.wrapping_sub(addr);
            self.biased += u64::from((ELF_HEADER..ELF_HEADER + 8).contains(&ahead));
        }
        let (raw, count, big_endian) = (info.entries, info.count, self.big_endian);
        let decode = Some(decode_lines as _);
        Lines { raw, decode, count, base: addr, size, big_endian, function, positions: None, authored: None }
    }

    /// Takes V8's bias off, if most of the dump's entries have it.
    fn unbias_lines(&mut self) {
        if self.biased * 2 > self.with_lines {
            self.list.unbias_lines(ELF_HEADER);
        }
    }
}

#[cfg(test)]
mod tests;
