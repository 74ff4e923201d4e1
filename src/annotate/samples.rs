//! Turns the samples of a recording into functions with the cost of each address, and names what their code refers to.

use super::costs::{Cost, Costs};
use super::functions::{Function, FunctionCode, FunctionList, FunctionOffset, InputFacts, Moment, without_code};
use super::lister::{TargetNames, UnknownTarget};
use super::listing::TargetOwner;
use crate::analysis::category::Category;
use crate::contract::rows::clamp;
use crate::error::Warnings;
use crate::model::bpf::BpfFunctionId;
use crate::model::chains::{Chains, PlaceId};
use crate::model::interner::Interner;
use crate::model::lasting::UNTIMED;
use crate::model::process::CpuMode;
use crate::model::stacks::{Frame, FrameKind, NameId, UNKNOWN, Weight};
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::Job;
use crate::pipeline::recording::{Examined, FrameLocation, Resolution, Samples};
use crate::runtimes::Tiers;
use crate::symbolize::Location;
use crate::symbolize::disasm::TargetKind;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::kernel::link_shift;
use crate::symbolize::symbols::functions::extents;
use crate::symbolize::symbols::{Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A symbolized recording, and the options with which its symbols were looked up.
#[derive(Clone, Copy)]
pub(super) struct Sampled<'a> {
    pub(super) examined: &'a Examined<'a>,
    pub(super) symbols: &'a SymbolOptions,
}

/// All functions that have samples themselves (rather than only their callees), hottest first.
#[derive(Debug)]
pub(super) struct SampledFunctions {
    pub(super) list: Vec<Function>,
    /// For each code location ([`PlaceId`]) of the recording, its function and its offset in that function; `None` if
    /// no sample has its innermost frame at the location.
    pub(super) offsets: Vec<Option<FunctionOffset>>,
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

/// Why code isn't available at an address that belongs neither to a file nor to JIT code.
const NOTHING_KNOWN: &str = "nothing is known about this code";

impl Sampled<'_> {
    /// Sums the samples by the function of their innermost frame, hottest function first. Code locations in the same
    /// code range or symbol belong to the same function. Also returns the function and offset of each code location.
    pub(super) fn functions(&self, weight: Weight, job: &Job, warnings: &mut Warnings) -> SampledFunctions {
        let linked_places = self.link_places(job, warnings);
        let mut functions = FunctionList::default();
        let mut offsets = vec![None; self.examined.samples.chains.places().len()];
        let (mut tiers, mut names) = (Tiers::default(), Interner::<Vec<u8>, NameId>::default());
        for (index, sum) in self.sums().into_iter().enumerate() {
            // Skip a location at which no sample has its innermost frame. It only occurs among callers.
            if sum.costs.samples() == 0 {
                continue;
            }
            let place = &self.examined.samples.chains.places()[index];
            let mut function = self.new_function(PlaceId(index as u32), &mut tiers, &mut names);
            let LocatedCode { code, offset } = self.locate(place, linked_places.get(&index));
            function.code = code;
            let function_index = functions.insert(function);
            functions.list[function_index].add(offset, &sum, place.mode);
            offsets[index] = Some(FunctionOffset { function: function_index, offset });
        }
        SampledFunctions { list: functions.list, offsets }.sorted(weight)
    }

    /// Sums the samples by the code location of their innermost frame, indexed by [`PlaceId`].
    fn sums(&self) -> Vec<PlaceSum> {
        let Samples { rows, chains, tracks, .. } = self.examined.samples;
        let mut sums = vec![PlaceSum::default(); chains.places().len()];
        for row in rows {
            let Some(place) = chains.places_up(row.chain).next() else { continue };
            let sum = &mut sums[place.0 as usize];
            let time = row.time.unwrap_or(UNTIMED);
            sum.costs.add(row.event as usize, Cost { weight: clamp(row.period), count: row.count });
            // If this is the last sample at its code location so far, keep its time, process and address.
            // `Function::last` is later taken from these. The process ID -1 stands for an unknown process.
            if time >= sum.time {
                let pid = tracks.items().get(row.track as usize).and_then(|track| track.pid);
                (sum.time, sum.pid, sum.ip) = (time, pid.unwrap_or(Pid(-1)), row.ip);
            }
        }
        sums
    }

    /// Creates a function with the name, module and category of a code location. It has no costs yet, and the caller
    /// must set where its code is. `tiers` caches which compiler tier a name of JIT code indicates; `names` gives each
    /// name the ID by which the cache knows it.
    fn new_function(&self, place: PlaceId, tiers: &mut Tiers, names: &mut Interner<Vec<u8>, NameId>) -> Function {
        let mut named = None;
        // The frames at a code location are the inlined calls, and then the function itself. Each one overwrites the
        // one before, so that the function remains.
        for frame in self.examined.named.frames(place) {
            let name = frame.name.unwrap_or(UNKNOWN).to_vec();
            let jit_name = frame.name.filter(|_| frame.kind == FrameKind::Jit);
            let tier = jit_name.and_then(|text| tiers.find(names.intern(text.to_vec()), text, frame.runtimes));
            // The category doesn't depend on the frame's name, so any name will do.
            let category = Category::from_frame(&Frame { tier, ..Frame::new(NameId(0), frame.kind) });
            named = Some((name, frame.module.map(<[u8]>::to_vec), category));
        }
        let (name, module, category) = named.unwrap_or((UNKNOWN.to_vec(), None, Category::Unknown));
        Function {
            name,
            module,
            category,
            code: FunctionCode::Unknown(NOTHING_KNOWN),
            costs: Costs::default(),
            costs_at: BTreeMap::new(),
            last: Moment::default(),
            facts: InputFacts::default(),
        }
    }

    /// Determines where the machine code of the function at a code location is (or why it isn't available), and the
    /// location's offset in that code. `linked` is the location's address as linked; `None` unless the location is in a
    /// file that exists on this machine.
    fn locate(&self, place: &FrameLocation, linked: Option<&LinkedPlace>) -> LocatedCode {
        match (place.location, linked) {
            (Location::Code(code, offset), _) => {
                let code_range = self.examined.resolution.sources.map.code(code);
                // A log states source positions but no machine code. Its functions count as JIT code all the same,
                // because their inlined calls can be listed; `CodeFiles::machine_code` says why there are no
                // instructions.
                let code = if code_range.bytes.is_some() || code_range.lines.positions.is_some() {
                    FunctionCode::Jit(code)
                } else {
                    FunctionCode::Unknown(without_code(self.examined.accounts(), code_range.origin))
                };
                LocatedCode { code, offset }
            }
            (Location::File(dso, _), Some(LinkedPlace { addr, extent: Some(extent) })) => {
                LocatedCode { code: FunctionCode::File(dso, extent.clone()), offset: addr - extent.start }
            }
            (Location::File(_, offset), Some(_)) => {
                LocatedCode { code: FunctionCode::Unknown("no symbol marks the start of the function"), offset }
            }
            (Location::File(dso, offset), None) => {
                let kind = self.kind(dso);
                let code = self.find_bpf_function(kind).map_or(FunctionCode::Unknown(missing(kind)), FunctionCode::Bpf);
                LocatedCode { code, offset }
            }
            (Location::Nothing(addr), _) => LocatedCode { code: FunctionCode::Unknown(NOTHING_KNOWN), offset: addr.0 },
        }
    }

    fn kind(&self, dso: DsoId) -> DsoKind {
        self.examined.resolution.spaces.dsos().get(dso).kind
    }

    /// The BPF function whose code was mapped, given the kind of the mapping. `None` for mappings of other kinds, or if
    /// the recording lacks the function's code.
    fn find_bpf_function(&self, kind: DsoKind) -> Option<BpfFunctionId> {
        let DsoKind::KernelSymbol(Some(id)) = kind else { return None };
        let functions = &self.examined.resolution.survey.processes.bpf_functions;
        let has_code = functions.get(id.0 as usize).is_some_and(|function| !function.bytes.is_empty());
        has_code.then_some(id)
    }

    /// Finds out how the recording's addresses in this file relate to addresses as linked. They are file offsets,
    /// except in the kernel, whose addresses are shifted by a constant.
    fn base(&self, dso: DsoId) -> Base {
        let Resolution { spaces, images, .. } = self.examined.resolution;
        match self.kind(dso) {
            DsoKind::Kernel => Base::Linked(link_shift(spaces.kernel_reference(), images, dso)),
            _ => Base::File,
        }
    }

    /// For each code location in a file that exists on this machine: its address as linked, and the address range of
    /// the function there. The keys of the result are indexes of locations, like those in a [`PlaceId`].
    fn link_places(&self, job: &Job, warnings: &mut Warnings) -> FxHashMap<usize, LinkedPlace> {
        let mut by_file: BTreeMap<DsoId, Vec<(u64, usize)>> = BTreeMap::new();
        for (index, place) in self.examined.samples.chains.places().iter().enumerate() {
            let Location::File(dso, offset) = place.location else { continue };
            if matches!(self.kind(dso), DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::Kernel) {
                by_file.entry(dso).or_default().push((offset, index));
            }
        }
        let mut linked_places = FxHashMap::default();
        for (dso, mut places) in by_file {
            let Some(image) = self.examined.resolution.images.get(dso) else { continue };
            // Several locations may have the same offset, in different processes. Each offset is looked up only once.
            places.sort_unstable();
            let mut offsets: Vec<u64> = places.iter().map(|&(offset, _)| offset).collect();
            offsets.dedup();
            let request = Request { dso, offsets, base: self.base(dso) };
            let extents = extents(&request, &self.examined.resolution.images, self.symbols, &job.pool, warnings);
            for (offset, index) in places {
                // `extents` has one entry for each of the request's offsets, which are sorted and have no duplicates.
                let position = request.offsets.partition_point(|&requested| requested < offset);
                let extent = extents.get(position).cloned().flatten();
                if let Some(addr) = request.vaddr(image, offset) {
                    linked_places.insert(index, LinkedPlace { addr, extent });
                }
            }
        }
        linked_places
    }
}

/// Explains why the code in a mapping of this kind is not available.
fn missing(kind: DsoKind) -> &'static str {
    match kind {
        DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => {
            "the file with this code is missing, or is a different version"
        }
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
        DsoKind::Data => "this memory wasn't executable",
        DsoKind::Guest => "this code ran in a virtual machine, whose files cannot be found here",
    }
}

impl Function {
    /// Adds the cost of the samples at this offset of the function. The last of these samples becomes the function's
    /// last sample, unless the function has a later one at another offset.
    fn add(&mut self, offset: u64, sum: &PlaceSum, mode: CpuMode) {
        self.costs.join(&sum.costs);
        self.costs_at.entry(offset).or_default().join(&sum.costs);
        if sum.time >= self.last.time {
            self.last = Moment { pid: sum.pid, time: sum.time, base: sum.ip.0.wrapping_sub(offset), mode };
        }
    }
}

impl SampledFunctions {
    /// Returns the functions sorted by cost, hottest first. `offsets` then refers to their new positions.
    fn sorted(mut self, weight: Weight) -> Self {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_cached_key(|&index| Reverse(self.list[index].costs.heat(weight)));
        let mut ranks = vec![0; order.len()];
        for (rank, &index) in order.iter().enumerate() {
            ranks[index] = rank;
        }
        for offset in self.offsets.iter_mut().flatten() {
            offset.function = ranks[offset.function];
        }
        // Functions are moved to their new positions, because copying their costs would be slow.
        let mut list: Vec<Option<Function>> = self.list.into_iter().map(Some).collect();
        self.list = order.into_iter().filter_map(|index| list[index].take()).collect();
        self
    }
}

impl TargetNames for Sampled<'_> {
    /// Names what is at the addresses to which functions refer. Each address is looked up as of the last sample in the
    /// function that refers to it: in that sample's process, at that sample's time.
    fn name_targets(&self, targets: Vec<UnknownTarget<'_>>, job: &Job, warnings: &mut Warnings) {
        let resolution = self.examined.resolution;
        let mut places: Chains<FrameLocation> = Chains::default();
        let mut target_places: Vec<PlaceId> = Vec::with_capacity(targets.len());
        for target in &targets {
            let last = target.function.last;
            // `target.addr` is an address of the listing. Code in files is listed at its addresses as linked, but ran
            // elsewhere, so move the target by the distance between the two. An immediate value isn't moved, because it
            // needn't be an address.
            let shift = if target.kind == TargetKind::Immediate { 0 } else { last.base.wrapping_sub(target.code_addr) };
            let addr = Addr(target.addr.wrapping_add(shift));
            target_places.push(resolution.place_at(&mut places, last.pid, last.mode, addr, last.time));
        }
        let named = resolution.name(&places, job, warnings);
        for (target, place) in targets.into_iter().zip(target_places) {
            // The last frame is the function itself; those before it are inlined calls. Each one overwrites the one
            // before, so that the function remains.
            for frame in named.frames(place) {
                if let Some(name) = frame.name {
                    *target.owner = TargetOwner::Function(name.to_vec(), frame.offset);
                }
            }
        }
    }
}

/// Where a function's machine code is, and a location in it.
struct LocatedCode {
    code: FunctionCode,
    /// The offset of the location from the start of the function, in bytes. If the start isn't known, the offset in the
    /// file or the address.
    offset: u64,
}

/// A code location in a file on this machine.
#[derive(Debug, Clone)]
struct LinkedPlace {
    /// The address that the linker gave the location, which is the one in symbol tables.
    addr: u64,
    /// The address range of the function that contains the location; `None` if no symbol states it.
    extent: Option<Range<u64>>,
}
