//! Reads the opened sources into code events with the recording's times and process IDs, and builds the code map from
//! them.

use super::account::{Account, ClockUse, Kind, ReadSource, SourceEvents, SourceState};
use super::dump_reader;
use super::found::{Found, Source};
use super::guest::{GuestFiles, GuestNames};
use super::log_pairing;
use super::logs;
use super::native;
use super::options::SourceOptions;
use super::placed_elf;
use super::source_maps::{NativeFunctions, SourceMaps};
use crate::error::{Warning, Warnings};
use crate::jit::perf_map;
use crate::model::code::{Code, Lines, OriginId};
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::runtimes::script_name::ScriptName;
use crate::symbolize::calls::find_call_test;
use crate::symbolize::code_map::{CodeList, CodeMap, ListedCode};

/// Everything that the sources provide.
#[derive(Debug)]
pub struct Loaded<'data> {
    /// JIT code by address and time.
    pub map: CodeMap<'data>,
    /// What became of each source, indexed by [`OriginId`]. Sources that could not be opened follow at the end.
    pub accounts: Vec<Account>,
    /// The first machine (`e_machine`) that a jitdump or log states. Used for ELF images if the recording doesn't state
    /// one.
    pub machine: Option<u16>,
    /// The machine (`e_machine`) that each source states, indexed by [`OriginId`].
    pub machines: Vec<Option<u16>>,
    /// The source maps of the scripts that the code was compiled from.
    pub source_maps: &'data SourceMaps,
}

impl Loaded<'_> {
    /// Remarks about the sources that users see, one line each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.accounts.iter().filter_map(|account| account.remark.clone()).chain(self.source_maps.remarks())
    }
}

impl Found {
    /// Reads all sources in parallel and builds the code map.
    pub fn load(&self, processes: &Processes, pool: &Pool, warnings: &mut Warnings) -> Loaded<'_> {
        self.load_with(Vec::new(), processes, pool, warnings)
    }

    /// Reads all sources in parallel and builds the code map from them and from `extra_lists`: code events that come
    /// from no file.
    pub(crate) fn load_with<'data>(
        &'data self,
        extra_lists: Vec<CodeList<'data>>,
        processes: &Processes,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Loaded<'data> {
        let (mut lists, mut accounts, mut machines) = (Vec::new(), Vec::new(), Vec::new());
        for source in self.read(processes, pool) {
            warnings.append(source.warnings);
            lists.push(source.list);
            accounts.push(source.account);
            machines.push(source.machine);
        }
        // Sources that couldn't be used come last. So each other account is at the index that its source's `OriginId`
        // states.
        accounts.extend(self.failed.iter().cloned());
        // Later lists win over earlier ones, and ranges to hide (in which a mapped file's own symbols name the code)
        // only affect the lists before theirs. So the order matters.
        lists.extend(extra_lists);
        lists.push(native::find_ranges_to_hide(&lists, processes, &self.options.search));
        let source_maps = self.find_source_maps(&lists, warnings);
        // Code of generated scripts gets the names and lines of the sources that these were generated from.
        if !source_maps.is_empty() {
            for list in &mut lists {
                list.use_authored(|name| source_maps.name_of(name), source_maps);
            }
        }
        let machine = machines.iter().copied().flatten().next();
        let mut map = CodeMap::build(lists, processes, pool);
        // A source that states no machine has code of the recorded one.
        map.call_tests = machines.iter().map(|stated| stated.or(processes.machine).and_then(find_call_test)).collect();
        // If a jitdump's times couldn't be used, its code ranges overlap, too, but that has been reported already.
        if map.overlaps() > 0 && !accounts.iter().any(is_untimed_dump) {
            warnings.push(Warning::new(format!(
                "some entries of perf maps (or of logs without usable times) overlap earlier entries ({} in total). \
                 The last entry was used; a jitdump has times that tell overlapping entries apart",
                map.overlaps()
            )));
        }
        Loaded { map, accounts, machine, machines, source_maps }
    }

    /// Finds the source maps of all scripts with functions in these lists, once. Empty if the user doesn't want source
    /// maps.
    fn find_source_maps(&self, lists: &[CodeList<'_>], warnings: &mut Warnings) -> &SourceMaps {
        self.source_maps.get_or_init(|| {
            if !self.options.source_maps.is_on() {
                return SourceMaps::default();
            }
            let names = lists.iter().flat_map(CodeList::names).filter_map(ScriptName::parse);
            // Native code may contain WebAssembly functions whose names don't say which module they belong to. If the
            // user named a module that has all of these functions, its debugging information gives them their authored
            // names.
            let mut native = NativeFunctions::default();
            for list in lists {
                native.add(list.names());
            }
            SourceMaps::find(names, &native, &self.options.map_search(self.input_dir.as_deref()), warnings)
        })
    }

    /// Reads all sources in parallel, and combines each log with the jitdump or perf map of the same process.
    fn read(&self, processes: &Processes, pool: &Pool) -> Vec<ReadSource<'_>> {
        let sources: Vec<(usize, &Source)> = self.files.iter().enumerate().collect();
        // Several sources are read in parallel, each by one thread. A single source is read by all threads.
        let pool_for_records = if sources.len() == 1 { Some(pool) } else { None };
        let mut read = pool.map(sources, |(index, source)| {
            read_source(OriginId(index as u32), source, processes, &self.options, pool_for_records)
        });
        log_pairing::date_logs(&self.files, &mut read, processes);
        read
    }

    /// Calls `each` with every load and move of code, source by source in the order of its records. This is for outputs
    /// that list compilations; the code map only says which code was where. Reads the sources again, but doesn't repeat
    /// warnings.
    pub fn each_code(&self, processes: &Processes, pool: &Pool, mut each: impl FnMut(&ListedCode<'_>)) {
        for source in self.read(processes, pool) {
            source.list.iter().for_each(|code| each(&code));
        }
    }

    /// True if no sources were found.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// True for a jitdump whose times couldn't be used.
fn is_untimed_dump(account: &Account) -> bool {
    account.kind == Kind::JitDump
        && matches!(account.state, SourceState::Loaded { clock: None | Some(ClockUse::Dropped), .. })
}

/// Reads one source. If that fails, the result has no code, and its account (what users are told about the source) says
/// why. If there is a `pool`, its threads parse records ahead of time.
fn read_source<'data>(
    origin: OriginId,
    source: &'data Source,
    processes: &Processes,
    options: &SourceOptions,
    pool: Option<&Pool>,
) -> ReadSource<'data> {
    let mut warnings = Warnings::new();
    let guest_files = GuestFiles { user_files: &options.guest, command: &processes.command, force: options.force };
    let result = match source.kind {
        Kind::JitDump => dump_reader::read(origin, source, processes, options, pool, &mut warnings),
        Kind::PerfMap => Ok(read_perf_map(origin, source, guest_files, &mut warnings)),
        Kind::Log(id) => logs::read(id, source, &mut warnings),
        Kind::PlacedElf => placed_elf::codes(&source.contents.bytes, source.addr, origin)
            .map(|codes| untimed_events(source.pid, codes.into_iter())),
    };
    let SourceEvents { list, state, machine } = match result {
        Ok(events) => events,
        Err(error) => {
            let reason = error.refusal();
            let warning = error.in_file(&source.path).into_warning();
            let state = SourceState::Refused { why: warning.message.clone(), reason };
            warnings.push(warning);
            SourceEvents { list: CodeList::default(), state, machine: None }
        }
    };
    let Source { path, kind, pid, remark, .. } = source;
    // There is one remark per source, and why the source is used matters more than its guest addresses.
    let mut remark = remark.clone();
    if remark.is_none()
        && let Some(names) = source.guest.get()
    {
        remark = names.remark(path);
    }
    let account = Account { path: path.clone(), kind: *kind, pid: *pid, state, remark };
    ReadSource { list, account, machine, warnings }
}

/// Makes code events without times: they apply to the whole run of process `pid`.
fn untimed_events<'data>(pid: Pid, codes: impl ExactSizeIterator<Item = Code<'data>>) -> SourceEvents<'data> {
    let count = codes.len() as u64;
    let state = SourceState::Loaded { codes: count, skipped: 0, clock: None, torn: false, times: None, lent: 0 };
    let mut list = CodeList::with_capacity(codes.len());
    for code in codes {
        list.load(pid, None, &code);
    }
    SourceEvents { list, state, machine: None }
}

/// Reads a perf map. Its entries have no times, so they apply to the whole run of the process. If the emulator QEMU
/// wrote the perf map, its names are addresses in the emulated program (the guest). `guest_files` are the ELF files
/// that name them.
fn read_perf_map<'data>(
    origin: OriginId,
    source: &'data Source,
    guest_files: GuestFiles<'_>,
    warnings: &mut Warnings,
) -> SourceEvents<'data> {
    let (entries, skipped) = perf_map::read(&source.contents.bytes);
    let guest = source.guest.get_or_init(|| GuestNames::from_perf_map(&entries, guest_files));
    let codes = entries.into_iter().map(|entry| Code {
        name: guest.resolve_name(entry.name),
        addr: Addr(entry.start),
        size: entry.size,
        bytes: None,
        lines: Lines::default(),
        unwind: None,
        origin,
    });
    let mut events = untimed_events(source.pid, codes);
    if let SourceState::Loaded { skipped: count, torn, .. } = &mut events.state {
        *count = skipped.count();
        // Without a line break at its end, the last line may be incomplete.
        *torn = source.contents.bytes.last().is_some_and(|last| *last != b'\n');
    }
    skipped.report(&source.path, warnings);
    events
}

#[cfg(test)]
mod tests;
