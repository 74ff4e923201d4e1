//! Assigns samples to functions, and sums the cost of each address in a function.

use super::costs::{Cost, Costs};
use crate::analysis::category::Category;
use crate::contract::rows::clamp;
use crate::error::Warnings;
use crate::model::bpf::BpfFunctionId;
use crate::model::chains::{Chains, PlaceId};
use crate::model::code::OriginId;
use crate::model::interner::Interner;
use crate::model::process::CpuMode;
use crate::model::stacks::{Frame, FrameKind, NameId, UNKNOWN, Weight};
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::Job;
use crate::pipeline::recording::{Examined, FrameLocation, Resolution, Samples};
use crate::resolve::Location;
use crate::resolve::code_map::CodeId;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::kernel::link_shift;
use crate::resolve::symbols::functions::extents;
use crate::resolve::symbols::{Base, Request, SymbolOptions};
use crate::runtimes::Tiers;
use crate::sources::{Account, Kind};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// One compiled version of a function: a code range of JIT code, or a symbol in a file.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: Vec<u8>,
    pub(super) module: Option<Vec<u8>>,
    pub(super) category: Category,
    pub(super) place: CodePlace,
    /// The cost of all samples in the function.
    pub(super) costs: Costs,
    /// The cost of each address, by its offset in the function in bytes.
    pub(super) at: BTreeMap<u64, Costs>,
    /// When and where the function was sampled last.
    pub(super) last: Moment,
}

/// All functions that have samples themselves (rather than only their callees), hottest first.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) list: Vec<Function>,
    /// For each [`PlaceId`] of the recording, the function and the offset there; `None` if no innermost frame is there.
    pub(super) of_place: Vec<Option<FunctionPlace>>,
}

/// An offset in one of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FunctionPlace {
    /// The function's index in [`Functions::list`].
    pub(super) function: usize,
    /// The offset from the function's start, in bytes.
    pub(super) offset: u64,
}

/// Where a function's machine code is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CodePlace {
    /// In a jitdump or another source of JIT code.
    Jit(CodeId),
    /// In an ELF file, at these addresses as linked.
    File(DsoId, Range<u64>),
    /// In the recording itself: it contains the code of BPF programs.
    Bpf(BpfFunctionId),
    /// Not available; the text says why.
    Unknown(&'static str),
}

/// The process, time, address and CPU mode of a function's last sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Moment {
    pub(super) pid: Pid,
    pub(super) time: Nanos,
    /// The run-time address of the function's first byte.
    pub(super) base: u64,
    pub(super) mode: CpuMode,
}

/// What identifies a function: its code, name and module.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PlaceKey {
    place: CodePlace,
    name: Vec<u8>,
    module: Option<Vec<u8>>,
}

/// A symbolized recording, and the options with which its symbols were looked up.
pub(super) struct Sampled<'a> {
    pub(super) examined: &'a Examined<'a>,
    pub(super) symbols: &'a SymbolOptions,
}

/// The cost of all samples whose innermost frame is at one code location, and the last of these samples.
#[derive(Debug, Clone, Default)]
struct PlaceSum {
    costs: Costs,
    /// The process, time and address of the last sample.
    pid: Pid,
    time: Nanos,
    ip: Addr,
}

/// The time that samples without a time get: after all others, so at the end of the recording.
const UNTIMED: Nanos = Nanos(u64::MAX - 1);

impl Sampled<'_> {
    /// Sums the samples by function. Code locations in the same code range or symbol belong to the same function.
    pub(super) fn functions(&self, weight: Weight, job: &Job, warnings: &mut Warnings) -> Functions {
        let linked = self.linked(job, warnings);
        let mut list: Vec<Function> = Vec::new();
        let mut numbers: FxHashMap<PlaceKey, usize> = FxHashMap::default();
        let mut of_place = vec![None; self.examined.samples.chains.places().len()];
        let (mut tiers, mut names) = (Tiers::default(), Interner::<Vec<u8>, NameId>::default());
        for (at, sum) in self.sums().into_iter().enumerate().filter(|(_, sum)| sum.costs.samples() > 0) {
            let place = &self.examined.samples.chains.places()[at];
            let mut function = self.name(PlaceId(at as u32), &mut tiers, &mut names);
            let offset = self.locate(place, linked.get(&at), &mut function);
            let (place_of, name, module) = (function.place.clone(), function.name.clone(), function.module.clone());
            let key = PlaceKey { place: place_of, name, module };
            let number = *numbers.entry(key).or_insert(list.len());
            if number == list.len() {
                list.push(function);
            }
            list[number].add(offset, &sum, place.mode);
            of_place[at] = Some(FunctionPlace { function: number, offset });
        }
        Functions { list, of_place }.sorted(weight)
    }

    /// Sums the samples by the code location of their innermost frame, indexed by [`PlaceId`].
    fn sums(&self) -> Vec<PlaceSum> {
        let Samples { rows, chains, tracks, .. } = self.examined.samples;
        let mut sums = vec![PlaceSum::default(); chains.places().len()];
        for row in rows {
            let Some(place) = chains.up(row.chain).next() else { continue };
            let (sum, time) = (&mut sums[place.0 as usize], row.time.unwrap_or(UNTIMED));
            sum.costs.add(row.event as usize, Cost { weight: clamp(row.period), count: row.count });
            if time >= sum.time {
                let pid = tracks.items().get(row.track as usize).and_then(|track| track.pid);
                (sum.time, sum.pid, sum.ip) = (time, pid.unwrap_or(Pid(-1)), row.ip);
            }
        }
        sums
    }

    /// Creates a function with the name, module and category of a code location. Where its code is remains unknown.
    fn name(&self, place: PlaceId, tiers: &mut Tiers, names: &mut Interner<Vec<u8>, NameId>) -> Function {
        let mut named = None;
        // The frames at a code location are the inlined calls and, as the last one, the function itself, whose name is
        // needed.
        self.examined.named.each(place, |frame| {
            let name = frame.name.unwrap_or(UNKNOWN).to_vec();
            let jit = frame.name.filter(|_| frame.kind == FrameKind::Jit);
            let tier = jit.and_then(|text| tiers.find(names.intern(text.to_vec()), text, frame.runtimes));
            let category = Category::of(&Frame { tier, ..Frame::new(NameId(0), frame.kind) });
            named = Some((name, frame.module.map(<[u8]>::to_vec), category));
        });
        let (name, module, category) = named.unwrap_or((UNKNOWN.to_vec(), None, Category::Unknown));
        let (costs, at, last) = (Costs::default(), BTreeMap::new(), Moment::default());
        Function {
            name,
            module,
            category,
            place: CodePlace::Unknown("nothing is known about this code"),
            costs,
            at,
            last,
        }
    }

    /// Determines where the function's machine code is. Returns the offset of the code location in it, in bytes.
    fn locate(&self, place: &FrameLocation, linked: Option<&Linked>, function: &mut Function) -> u64 {
        match (place.location, linked) {
            (Location::Code(code, offset), _) => {
                let piece = self.examined.resolution.sources.map.code(code);
                function.place = if piece.bytes.is_some() || piece.lines.positions.is_some() {
                    CodePlace::Jit(code)
                } else {
                    CodePlace::Unknown(without_code(self.examined.accounts(), piece.origin))
                };
                offset
            }
            (Location::File(dso, _), Some(Linked { addr, extent: Some(extent) })) => {
                function.place = CodePlace::File(dso, extent.clone());
                addr - extent.start
            }
            (Location::File(_, offset), Some(_)) => {
                function.place = CodePlace::Unknown("no symbol marks the start of the function");
                offset
            }
            (Location::File(dso, offset), None) => {
                let kind = self.kind(dso);
                function.place = self.bpf(kind).map_or(CodePlace::Unknown(missing(kind)), CodePlace::Bpf);
                offset
            }
            (Location::Nothing(addr), _) => addr.0,
        }
    }

    fn kind(&self, dso: DsoId) -> DsoKind {
        self.examined.resolution.spaces.dsos().get(dso).kind
    }

    /// The BPF function whose code this is; `None` for other code, or if the recording doesn't contain it.
    fn bpf(&self, kind: DsoKind) -> Option<BpfFunctionId> {
        let DsoKind::KernelSymbol(Some(id)) = kind else { return None };
        let functions = &self.examined.resolution.survey.processes.bpf_functions;
        functions.get(id.0 as usize).filter(|function| !function.bytes.is_empty()).map(|_| id)
    }

    /// Whether the recording's addresses in this file are file offsets or linked addresses.
    fn base(&self, dso: DsoId) -> Base {
        let Resolution { spaces, images, .. } = self.examined.resolution;
        match self.kind(dso) {
            DsoKind::Kernel => Base::Linked(link_shift(spaces.kernel_reference(), images, dso)),
            _ => Base::File,
        }
    }

    /// For each code location in a file that exists on this machine (by index): its address as linked, and the range of
    /// the function there.
    fn linked(&self, job: &Job, warnings: &mut Warnings) -> FxHashMap<usize, Linked> {
        let mut by_file: BTreeMap<DsoId, Vec<(u64, usize)>> = BTreeMap::new();
        for (at, place) in self.examined.samples.chains.places().iter().enumerate() {
            let Location::File(dso, offset) = place.location else { continue };
            if matches!(self.kind(dso), DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::Kernel) {
                by_file.entry(dso).or_default().push((offset, at));
            }
        }
        let mut linked = FxHashMap::default();
        for (dso, mut places) in by_file {
            let Some(image) = self.examined.resolution.images.get(dso) else { continue };
            places.sort_unstable();
            let mut offsets: Vec<u64> = places.iter().map(|&(offset, _)| offset).collect();
            offsets.dedup();
            let request = Request { dso, offsets, base: self.base(dso) };
            let extents = extents(&request, &self.examined.resolution.images, self.symbols, &job.pool, warnings);
            for (offset, at) in places {
                let number = request.offsets.partition_point(|&other| other < offset);
                let extent = extents.get(number).cloned().flatten();
                linked.extend(request.vaddr(image, offset).map(|addr| (at, Linked { addr, extent })));
            }
        }
        linked
    }
}

/// Explains why the code in a mapping of this kind is not available.
fn missing(kind: DsoKind) -> &'static str {
    match kind {
        DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => "its file is missing, or is a different version",
        DsoKind::Kernel => {
            "the kernel image is missing; pass an uncompressed one with --vmlinux (jitgraft does not read memory such \
             as /proc/kcore)"
        }
        DsoKind::Module => "jitgraft does not read the code of kernel modules",
        DsoKind::KernelSymbol(_) => {
            "the recording lacks this code, which the kernel generated; perf saves the code of loaded BPF programs \
             (as root, without --no-bpf-event), but never that of trampolines"
        }
        DsoKind::Anonymous => "no dump covers this memory",
        DsoKind::Guest => "the guest's files are missing",
    }
}

impl Function {
    fn add(&mut self, offset: u64, sum: &PlaceSum, mode: CpuMode) {
        self.costs.join(&sum.costs);
        self.at.entry(offset).or_default().join(&sum.costs);
        if sum.time >= self.last.time {
            self.last = Moment { pid: sum.pid, time: sum.time, base: sum.ip.0.wrapping_sub(offset), mode };
        }
    }
}

impl Functions {
    /// Sorts the functions, hottest first.
    fn sorted(mut self, weight: Weight) -> Self {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_cached_key(|&at| Reverse(self.list[at].costs.heat(weight)));
        let mut numbers = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| numbers[old] = new);
        self.of_place.iter_mut().flatten().for_each(|place| place.function = numbers[place.function]);
        let mut list: Vec<Option<Function>> = self.list.into_iter().map(Some).collect();
        self.list = order.into_iter().filter_map(|at| list[at].take()).collect();
        self
    }
}

/// A code location in a file on this machine, as linked.
#[derive(Debug, Clone)]
struct Linked {
    addr: u64,
    /// The address range of the function there; `None` if no symbol states it.
    extent: Option<Range<u64>>,
}

/// Code locations that no sample has but that need names, such as the targets of jumps and calls.
pub(super) type Places = Chains<FrameLocation>;

/// Explains why JIT code from this source has no machine code.
pub(super) fn without_code(accounts: &[Account], origin: OriginId) -> &'static str {
    match accounts.get(origin.0 as usize).map(|account| account.kind) {
        Some(Kind::Log(_)) => "its log has names but no code; record with a jitdump",
        _ => "a perf map has names but no code; record with a jitdump",
    }
}
