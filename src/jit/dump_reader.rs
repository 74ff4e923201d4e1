//! Reads a jitdump into code events with the recording's times and process IDs.

mod parallel_records;
mod rundown;

use super::account::SourceEvents;
use super::account::SourceState;
use super::clock::{Conversion, DumpTimes, explain_other_process};
use super::found::Source;
use super::guest::{GuestFiles, GuestNames};
use super::options::{NamespacePids, SourceOptions, outer_pid};
use crate::bytes::cursor::Endian;
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::jit::jitdump::{Body, DebugInfo, Header, JitDump, Record, decode_lines};
use crate::model::code::{Code, Lines, OriginId, Unwind};
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::symbolize::code_map::CodeList;
use rustc_hash::FxHashMap;

/// The warning for a jitdump whose records all have the same time.
const NO_TIMES: &str = "all records of the jitdump have the same time, so each address got the name of the last code \
                        loaded there, as with a perf map";

/// The warning if a jitdump ends within the code of a LOAD record whose name is complete.
const CUT_IN_CODE: &str = "the dump is truncated here, in the code of the last function, whose name is complete";

/// Reads a jitdump. If there is a `pool`, its threads parse records ahead of time.
pub(super) fn read<'data>(
    origin: OriginId,
    source: &'data Source,
    processes: &Processes,
    options: &SourceOptions,
    pool: Option<&Pool>,
    warnings: &mut Warnings,
) -> Result<SourceEvents<'data>> {
    let dump = JitDump::parse(&source.contents.bytes)?;
    let header = dump.header;
    warn_about_header(&header, source, warnings);
    let times = DumpTimes {
        is_tsc: header.has_arch_timestamps(),
        header_time: header.timestamp,
        first_time: dump.records().flatten().next().map(|record| record.timestamp),
        marker_time: source.marker_time,
    };
    let is_timed = has_times(&dump);
    let conversion = choose_conversion(is_timed, &times, source, processes, warnings);
    // A cache. It is filled when a process is first looked up by the ID in its own PID namespace.
    let in_namespaces = NamespacePids::default();
    let pids = Pids { source, header_pid: Pid(header.pid), processes, options, in_namespaces };
    pids.warn_if_foreign(warnings);
    // If the emulator QEMU wrote the jitdump, its names are addresses in the emulated program (the guest). `guest` has
    // the names of the functions there.
    let guest_files = GuestFiles { user_files: &options.guest, command: &processes.command, force: options.force };
    let guest = source.guest.get_or_init(|| GuestNames::from_jitdump(&dump, guest_files));
    let mut reader = DumpReader {
        origin,
        conversion,
        pids,
        big_endian: header.endian == Endian::Big,
        guest,
        list: CodeList::default(),
        pending_lines: FxHashMap::default(),
        pending_unwind: None,
        loads: FxHashMap::default(),
        loads_with_lines: 0,
        loads_with_bias: 0,
    };
    let end = reader.read_records(&dump, source, pool, warnings);
    // A jitdump of another process may be recognized by its times. Only times on the recording's clock can be compared
    // with those of the process.
    if let (Conversion::Same, Some(first), Some(last)) = (conversion, times.first_time, end.last_time)
        && let Some(message) = explain_other_process(source.pid, source.marker_time, processes, first, last)
    {
        warnings.push(Warning::new(message).in_file(&source.path, None));
    }
    // Whether most line entries have V8's bias, and whether the jitdump begins with a list of code that is older than
    // the file (a rundown), is only known after the last record.
    reader.unbias_lines();
    rundown::correct_times(&mut reader.list, source.pid, source.marker_time, processes);
    let first = times.first_time.and_then(|time| conversion.apply(time));
    let last = end.last_time.and_then(|time| conversion.apply(time));
    let state = SourceState::Loaded {
        codes: reader.list.code_count() as u64,
        skipped: end.skipped,
        clock: is_timed.then(|| conversion.to_clock_use()),
        torn: end.torn,
        times: first.zip(last),
        lent: 0,
    };
    // Some runtimes (CPython) write 0 for the machine, which means that it is unknown.
    Ok(SourceEvents { list: reader.list, state, machine: Some(header.machine).filter(|machine| *machine != 0) })
}

/// Warns about flags and versions of the header that this program doesn't know. The warnings state the offsets of these
/// fields in the file (32 and 4).
fn warn_about_header(header: &Header, source: &Source, warnings: &mut Warnings) {
    let unknown = header.unknown_flags();
    if unknown != 0 {
        let message = Warning::new(format!("unknown flags {unknown:#x} in the header were ignored"));
        warnings.push(message.in_file(&source.path, Some(32)));
    }
    if header.version > 2 {
        let message = Warning::new(format!(
            "version {} is newer than the known versions 1 and 2; read as version 2",
            header.version
        ));
        warnings.push(message.in_file(&source.path, Some(4)));
    }
}

/// Chooses how to convert the jitdump's times to the recording's clock. `is_timed` says whether the jitdump has usable
/// times ([`has_times`]). Warns if they are unusable or can't be converted.
fn choose_conversion(
    is_timed: bool,
    times: &DumpTimes,
    source: &Source,
    processes: &Processes,
    warnings: &mut Warnings,
) -> Conversion {
    let (conversion, problem) = if is_timed {
        Conversion::choose(&processes.clock, times)
    } else {
        (Conversion::None, Some(NO_TIMES.to_owned()))
    };
    if let Some(problem) = problem {
        warnings.push(Warning::new(problem).in_file(&source.path, None));
    }
    conversion
}

/// True if the times of loads and moves are of use. They are useless if all are 0, or if there are several and all are
/// equal. Without loads and moves, there is nothing to complain about, so the result is true.
fn has_times(dump: &JitDump<'_>) -> bool {
    let code = dump.records().flatten().filter(|record| matches!(record.body, Body::Load(_) | Body::Move(_)));
    let mut times = code.map(|record| record.timestamp);
    let Some(first) = times.next() else { return true };
    if first == 0 {
        return times.any(|time| time != 0);
    }
    // A single time has nothing to be equal to, so it is of use.
    let Some(second) = times.next() else { return true };
    second != first || times.any(|time| time != first)
}

/// Translates the process IDs in a jitdump to recorded ones. A process in a container writes the ID that it has there,
/// in its own PID namespace.
struct Pids<'a> {
    source: &'a Source,
    /// The process ID in the jitdump's header.
    header_pid: Pid,
    processes: &'a Processes,
    options: &'a SourceOptions,
    /// The recorded processes by their IDs in their own PID namespaces.
    in_namespaces: NamespacePids,
}

impl Pids<'_> {
    /// The recorded ID of the process whose ID in a record is `inner`. The ID in the jitdump's header or name stands
    /// for the process for which the jitdump was found. Other IDs belong to forked children that keep writing to their
    /// parent's jitdump; if no such process is known, the code is attributed to the parent.
    fn find_owner(&self, inner: Pid) -> Pid {
        if inner == self.header_pid || Some(inner) == self.source.inner {
            return self.source.pid;
        }
        let outer = self.to_recorded(inner);
        let is_known = self.processes.by_pid.contains_key(&outer) || self.options.outer_of(inner).is_some();
        if is_known { outer } else { self.source.pid }
    }

    fn to_recorded(&self, inner: Pid) -> Pid {
        outer_pid(inner, self.processes, self.options, &self.in_namespaces)
    }

    /// Warns if the header has the ID of another process than the one for which the file is used. That process may be
    /// stated by its recorded ID or by its ID in its own PID namespace. Doesn't warn if the user said for which process
    /// the file is used.
    fn warn_if_foreign(&self, warnings: &mut Warnings) {
        // `inner` is the ID that the process has in its own PID namespace.
        let expected = self.source.inner.unwrap_or(self.source.pid);
        let given = self.options.jitdump.iter().find(|given| given.path == self.source.path);
        if given.is_some_and(|given| given.pid == Some(self.source.pid)) {
            return;
        }
        let is_misnamed = self.header_pid != expected && self.header_pid != self.source.pid;
        // The ID may be right as a number, but the recording may show that another process has it: different namespaces
        // have processes with the same ID. If the process mapped the file as its marker, the file is certainly its own.
        let has_marker = self.source.marker_time.is_some();
        let is_of_other_process = !has_marker && self.to_recorded(self.header_pid) != self.source.pid;
        if is_misnamed || is_of_other_process {
            let message = format!(
                "the header of the jitdump says that the file is from process {}, but it was used for process {} of \
                 the recording",
                self.header_pid, self.source.pid
            );
            // The process ID is at offset 20 in the file.
            warnings.push(Warning::new(message).in_file(&self.source.path, Some(20)));
        }
    }
}

/// The addresses in V8's line entries are too high by this many bytes: the size of an ELF header, as if there were one
/// in front of the code.
const ELF_HEADER: u64 = 0x40;

/// Turns the records of a jitdump into a list of code events.
struct DumpReader<'a, 'data> {
    origin: OriginId,
    conversion: Conversion,
    pids: Pids<'a>,
    big_endian: bool,
    guest: &'data GuestNames,
    list: CodeList<'data>,
    /// Line entries that precede the LOAD record of their code, by the code's address.
    pending_lines: FxHashMap<u64, DebugInfo<'data>>,
    /// Unwinding information for the code in the next LOAD record, whichever that is.
    pending_unwind: Option<Unwind<'data>>,
    /// MOVE records refer to code by its `code_index`. For each `code_index`, the index in `list` of the latest load
    /// that has it.
    loads: FxHashMap<u64, u32>,
    /// The number of loads that have line entries.
    loads_with_lines: u64,
    /// The number of loads whose first line entry is [`ELF_HEADER`] bytes, or a few more, after the start of the code.
    loads_with_bias: u64,
}

/// The state after a jitdump's last record.
#[derive(Debug, Default)]
struct DumpEnd {
    /// The time of the last record that could be read, even if its code is cut off.
    last_time: Option<u64>,
    /// The number of records that could not be read completely.
    skipped: u64,
    /// True if the last record is damaged, or is cut off by the end of the file.
    torn: bool,
}

impl<'data> DumpReader<'_, 'data> {
    /// Reads all records of a jitdump. Returns the state after the last one.
    fn read_records(
        &mut self,
        dump: &JitDump<'data>,
        source: &Source,
        pool: Option<&Pool>,
        warnings: &mut Warnings,
    ) -> DumpEnd {
        let mut skipped = Skipped::new("jitdump record");
        let mut end = DumpEnd::default();
        parallel_records::for_each_record(dump, pool, parallel_records::PIECE, |record| match record {
            Ok(Record { timestamp, body, offset, .. }) => {
                // `last_time` and `torn` are overwritten by every record, so that in the end they describe the last
                // one.
                end.last_time = Some(timestamp);
                end.torn = matches!(&body, Body::Load(load) if load.code.is_none());
                // The file ends in this code. Its name and address are still used, but the record counts as skipped.
                if end.torn {
                    end.skipped = 1;
                    warnings.push(Warning::new(CUT_IN_CODE).in_file(&source.path, Some(offset)));
                }
                self.add(timestamp, body);
            }
            Err(error) => {
                end.torn = true;
                skipped.add(error);
            }
        });
        end.skipped += skipped.count();
        skipped.report(&source.path, warnings);
        end
    }

    /// Adds a record. Source lines and unwinding information precede the load of the code that they describe, so they
    /// are kept until then.
    fn add(&mut self, timestamp: u64, body: Body<'data>) {
        let time = self.conversion.apply(timestamp);
        match body {
            Body::Load(load) => {
                // If an emulator wrote the jitdump, `guest` translates addresses in the emulated program to names.
                let code = Code {
                    name: self.guest.resolve_name(load.name),
                    addr: Addr(load.addr),
                    size: load.size,
                    bytes: load.code,
                    lines: self.take_lines(load.addr, load.size, load.name),
                    unwind: self.pending_unwind.take(),
                    origin: self.origin,
                };
                // `find_owner` returns the recorded ID of the process, which may be a forked child of the one that
                // opened the file.
                let list_index = self.list.load(self.pids.find_owner(Pid(load.pid)), time, &code);
                self.loads.insert(load.index, list_index as u32);
            }
            Body::Move(moved) => {
                // A move of code that was never loaded is ignored, because that code has no name.
                if let Some(load) = self.loads.get(&moved.index).map(|load| *load as usize) {
                    let pid = self.pids.find_owner(Pid(moved.pid));
                    self.list.move_to(pid, time, load, Addr(moved.to));
                }
            }
            Body::DebugInfo(info) => {
                self.pending_lines.insert(info.addr, info);
            }
            Body::Unwinding(unwind) => self.pending_unwind = unwind,
            // CLOSE and unknown records say nothing about code.
            Body::Close | Body::Other(_) => {}
        }
    }

    /// Removes the pending line entries for the code at `addr` and returns them, not yet decoded; empty if there are
    /// none. `function` is the name of the code. Counts the loads with line entries, and those whose entries have V8's
    /// bias: addresses that are too high by [`ELF_HEADER`].
    fn take_lines(&mut self, addr: u64, size: u64, function: &'data [u8]) -> Lines<'data> {
        let Some(info) = self.pending_lines.remove(&addr) else { return Lines::default() };
        if let Some(first_line_addr) = info.first_addr {
            self.loads_with_lines += 1;
            let offset = first_line_addr.wrapping_sub(addr);
            // The first line may begin a few bytes after the start of the code, so the offset need not be exactly the
            // bias.
            if (ELF_HEADER..ELF_HEADER + 8).contains(&offset) {
                self.loads_with_bias += 1;
            }
        }
        Lines {
            raw: info.entries,
            decode: Some(decode_lines as _),
            count: info.count,
            base: addr,
            size,
            big_endian: self.big_endian,
            function,
            // A jitdump's entries are complete in themselves, and source maps are only searched for later.
            positions: None,
            authored: None,
        }
    }

    /// Subtracts V8's bias ([`ELF_HEADER`]) from the addresses of all line entries, if most loads have it.
    fn unbias_lines(&mut self) {
        if self.loads_with_bias * 2 > self.loads_with_lines {
            self.list.unbias_lines(ELF_HEADER);
        }
    }
}
