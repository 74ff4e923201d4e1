//! Reads the opened sources into code events with the recording's times and process IDs, and builds the code map from
//! them.

use super::account::{Account, ClockUse, Kind, SourceState};
use super::beside::{self, ReadSource, SourceEvents};
use super::discover::{Found, Source};
use super::dump;
use super::guest::{GuestFiles, GuestNames};
use super::logs;
use super::native;
use super::options::SourceOptions;
use super::placed_elf;
use super::source_maps::{NativeFunctions, SourceMaps};
use crate::error::{Warning, Warnings};
use crate::model::code::{Code, CodeEvent, CodeEventKind, Lines, OriginId};
use crate::model::process::Processes;
use crate::model::{Addr, Pid, Tid};
use crate::parallel::Pool;
use crate::records::perf_map;
use crate::resolve::code_map::{CodeList, CodeMap, ListedCode};
use crate::runtimes::script_name::ScriptName;

/// Everything that the sources provide.
#[derive(Debug)]
pub struct Loaded<'data> {
    /// JIT code by address and time.
    pub map: CodeMap<'data>,
    /// What became of each source, indexed by [`OriginId`], followed by those that could not be opened.
    pub accounts: Vec<Account>,
    /// The first machine (`e_machine`) that a jitdump or log states. Used for ELF images if the recording doesn't state
    /// one.
    pub machine: Option<u16>,
    /// The machine (`e_machine`) that each source states, indexed by [`OriginId`].
    pub machines: Vec<Option<u16>>,
    /// The source maps of the scripts that the code was compiled from.
    pub maps: &'data SourceMaps,
}

impl Loaded<'_> {
    /// Remarks for users about the sources, one line each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.accounts.iter().filter_map(|account| account.remark.clone()).chain(self.maps.remarks())
    }
}

impl Found {
    /// Reads all sources in parallel and builds the code map.
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
                "{} perf map entries overlap earlier ones, and the later ones were used; a jitdump would have times \
                 to tell them apart",
                map.overlaps()
            )));
        }
        let machine = machines.iter().copied().flatten().next();
        Loaded { map, accounts, machine, machines, maps }
    }

    /// The source maps of all scripts with functions in these lists; empty if the user doesn't want any.
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

    /// Reads all sources and combines those of the same process.
    fn read(&self, processes: &Processes, pool: &Pool) -> Vec<ReadSource<'_>> {
        let sources: Vec<(usize, &Source)> = self.files.iter().enumerate().collect();
        // A single source gets all threads.
        let ahead = Some(pool).filter(|_| sources.len() == 1);
        let mut read =
            pool.map(sources, |(at, source)| read(OriginId(at as u32), source, (processes, &self.options), ahead));
        beside::date_logs(&self.files, &mut read, processes);
        read
    }

    /// Calls `each` with every load and move of code, source by source in the order of its records. For outputs that
    /// list compilations, because the code map only contains which code was where. Reads the sources again, without
    /// repeating warnings.
    pub fn each_code(&self, processes: &Processes, pool: &Pool, mut each: impl FnMut(&ListedCode<'_>)) {
        let read = self.read(processes, pool);
        read.iter().for_each(|read| read.list.iter().for_each(|code| each(&code)));
    }

    /// True if no sources were found.
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
        Kind::JitDump => dump::read(origin, source, (processes, options), ahead, &mut warnings),
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

#[cfg(test)]
mod tests;
