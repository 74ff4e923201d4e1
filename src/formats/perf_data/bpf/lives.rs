//! Finds out which function of a BPF program a KSYMBOL record refers to. Programs come and go, and addresses are
//! reused.

use super::super::record::BpfEvent;
use crate::model::bpf::BpfFunctionId;
use rustc_hash::FxHashMap;

/// The [`BpfEvent::kind`] of the event that a program was loaded (`PERF_BPF_EVENT_PROG_LOAD`).
const LOADED: u16 = 1;
/// The [`BpfEvent::kind`] of the event that a program was unloaded (`PERF_BPF_EVENT_PROG_UNLOAD`).
const UNLOADED: u16 = 2;

/// When each program was loaded, and which functions were at each address. Points in time are given as positions: a
/// position is an index into the list of all BPF_EVENT and KSYMBOL records, sorted by time.
#[derive(Debug, Default)]
pub(super) struct ProgramLives {
    /// The life of each program. The key is the program's ID and hash.
    programs: FxHashMap<(u32, [u8; 8]), ProgramLife>,
    /// The functions that were at an address at some time, in the order in which their programs were loaded.
    candidates: FxHashMap<u64, Vec<FunctionCandidate>>,
}

/// The positions at which a program was first loaded and last unloaded; `None` if that wasn't recorded.
#[derive(Debug, Default, Clone, Copy)]
struct ProgramLife {
    loaded: Option<usize>,
    unloaded: Option<usize>,
}

/// A function that was at some address, with the facts that decide whether a symbol refers to it.
#[derive(Debug, Clone, Copy)]
struct FunctionCandidate {
    life: ProgramLife,
    function: BpfFunctionId,
    /// The hashes by which the name of a kernel symbol can refer to this function (see [`KnownFunction::tags`]).
    tags: [Option<[u8; 8]>; 2],
}

/// A function of a BPF program, with the values by which a KSYMBOL record identifies it.
#[derive(Debug)]
pub(super) struct KnownFunction {
    pub(super) id: BpfFunctionId,
    /// The program's ID and hash, as in BPF_EVENT.
    pub(super) program: (u32, [u8; 8]),
    pub(super) addr: u64,
    /// The hashes by which the name of a kernel symbol can refer to this function: the function's own and, for a
    /// program's first function, the program's.
    pub(super) tags: [Option<[u8; 8]>; 2],
}

/// A KSYMBOL record. The derived order, by address and then by position, puts the symbols of an address next to each
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SymbolMoment {
    pub(super) addr: u64,
    pub(super) position: usize,
    /// Index of the symbol in the list of kernel symbols.
    pub(super) index: usize,
}

impl ProgramLives {
    /// Adds the loading or unloading of a program. `position` is the event's place in the list of all events.
    pub(super) fn add_event(&mut self, position: usize, event: BpfEvent) {
        let life = self.programs.entry((event.id, event.tag)).or_default();
        match event.kind {
            // perf reports the loading twice if the program is loaded while perf lists those that were loaded before.
            // The first report counts.
            LOADED => drop(life.loaded.get_or_insert(position)),
            UNLOADED => life.unloaded = Some(position),
            _ => {}
        }
    }

    /// Adds the functions among which [`Self::find_function`] searches. Call this after the last [`Self::add_event`],
    /// because it copies the lives of the functions' programs.
    pub(super) fn add_functions(&mut self, known: &[KnownFunction]) {
        for &KnownFunction { id, program, addr, tags } in known {
            let life = self.programs.get(&program).copied().unwrap_or_default();
            self.candidates.entry(addr).or_default().push(FunctionCandidate { life, function: id, tags });
        }
        for candidates in self.candidates.values_mut() {
            candidates.sort_by_key(|candidate| candidate.life.loaded);
        }
    }

    /// Finds the function of the kernel symbol `name` that appeared at `moment`; `None` if no program matches.
    /// `next_symbol` is the position of the next symbol at the same address.
    ///
    /// Normally the program's load event follows the symbol and precedes the next symbol at the address. But the event
    /// can also precede the symbol: perf synthesizes events for programs that were loaded before the recording, and
    /// reports a program twice if it is loaded while perf does this. In these cases, and if there is no load event, the
    /// latest program at the address is taken, but only if the symbol's name contains its hash.
    pub(super) fn find_function(
        &self,
        moment: &SymbolMoment,
        next_symbol: usize,
        name: &[u8],
    ) -> Option<BpfFunctionId> {
        let candidates = self.candidates.get(&moment.addr)?;
        // Candidates are sorted by their load events. Those without a load event come first: `None` is less than any
        // position.
        let loaded_before = candidates.partition_point(|candidate| candidate.life.loaded < Some(moment.position));
        // The normal case: the program was loaded after the symbol appeared, and before the next symbol at this
        // address.
        if let Some(candidate) = candidates.get(loaded_before)
            && candidate.life.loaded < Some(next_symbol)
        {
            return Some(candidate.function);
        }
        let candidate = candidates[..loaded_before].last()?;
        // A program that was unloaded before the symbol appeared can't be the symbol's program.
        if candidate.life.unloaded.is_some_and(|unloaded| unloaded < moment.position) {
            return None;
        }
        let tag = parse_tag(name)?;
        candidate.tags.contains(&Some(tag)).then_some(candidate.function)
    }
}

/// Parses the hash in the name of a symbol such as `bpf_prog_6deef7357e7b4530_sd_devices`. `None` for other names.
fn parse_tag(name: &[u8]) -> Option<[u8; 8]> {
    let digits: &[u8; 16] = name.strip_prefix(b"bpf_prog_")?.first_chunk()?;
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some(number.to_be_bytes())
}
