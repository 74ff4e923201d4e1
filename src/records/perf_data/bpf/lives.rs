//! The program whose function a KSYMBOL record means: programs come and go, and their code lies where others' lay.

use super::super::record::BpfEvent;
use crate::model::bpf::BpfFunctionId;
use rustc_hash::FxHashMap;

/// `PERF_BPF_EVENT_PROG_LOAD`
const LOADED: u16 = 1;
/// `PERF_BPF_EVENT_PROG_UNLOAD`
const UNLOADED: u16 = 2;

/// When each program was there, and what lay where. Positions count what happened, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Lives {
    of_programs: FxHashMap<(u32, [u8; 8]), Life>,
    /// By address, in the order of loading.
    at: FxHashMap<u64, Vec<FunctionCandidate>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Life {
    loaded: Option<usize>,
    unloaded: Option<usize>,
}

/// A function that may be meant.
#[derive(Debug, Clone, Copy)]
struct FunctionCandidate {
    life: Life,
    function: BpfFunctionId,
    tags: [Option<[u8; 8]>; 2],
}

/// A function, and by what a KSYMBOL record is known to mean it.
#[derive(Debug)]
pub(super) struct KnownFunction {
    pub(super) id: BpfFunctionId,
    /// Its program's number and hash: those of BPF_EVENT.
    pub(super) program: (u32, [u8; 8]),
    pub(super) addr: u64,
    /// The hash in its symbol's name, and another that may be there.
    pub(super) tags: [Option<[u8; 8]>; 2],
}

/// A KSYMBOL record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SymbolMoment {
    pub(super) addr: u64,
    pub(super) position: usize,
    /// The symbol.
    pub(super) index: usize,
}

impl Lives {
    pub(super) fn event(&mut self, position: usize, event: BpfEvent) {
        let life = self.of_programs.entry((event.id, event.tag)).or_default();
        match event.kind {
            LOADED => drop(life.loaded.get_or_insert(position)),
            UNLOADED => life.unloaded = Some(position),
            _ => {}
        }
    }

    /// All events are reported for.
    pub(super) fn settle(&mut self, known: &[KnownFunction]) {
        for &KnownFunction { id, program, addr, tags } in known {
            let life = self.of_programs.get(&program).copied().unwrap_or_default();
            self.at.entry(addr).or_default().push(FunctionCandidate { life, function: id, tags });
        }
        self.at.values_mut().for_each(|candidates| candidates.sort_by_key(|candidate| candidate.life.loaded));
    }

    /// The function of a symbol that appeared at this moment, while nothing else did at its address until `until`. Its
    /// program's event comes behind it. perf reports programs that were there before, and a program that was being
    /// loaded just then is reported for twice: then the event came before it, and as if absent, the hash in the
    /// symbol's name decides.
    pub(super) fn function(&self, moment: &SymbolMoment, until: usize, name: &[u8]) -> Option<BpfFunctionId> {
        let candidates = self.at.get(&moment.addr)?;
        let next = candidates.partition_point(|candidate| candidate.life.loaded < Some(moment.position));
        let behind = candidates.get(next).filter(|next| next.life.loaded < Some(until));
        let before = || {
            let candidate = candidates[..next].last()?;
            let gone = candidate.life.unloaded.is_some_and(|unloaded| unloaded < moment.position);
            let tag = tag_of(name);
            (!gone && tag.is_some() && candidate.tags.contains(&tag)).then_some(candidate)
        };
        behind.or_else(before).map(|candidate| candidate.function)
    }
}

/// The hash in a symbol's name: `bpf_prog_6deef7357e7b4530_sd_devices`.
fn tag_of(name: &[u8]) -> Option<[u8; 8]> {
    let digits: &[u8; 16] = name.strip_prefix(b"bpf_prog_")?.first_chunk()?;
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some(number.to_be_bytes())
}
