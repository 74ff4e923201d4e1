//! Finds the locations without a function, and the processes whose samples contain them.

use crate::bytes::protobuf::{FieldValue, Fields};
use crate::contract::unsymbolized::{BareAddress, may_hold_jit_code};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::pprof::tables::{Label, Location, Tables, is_pid};
use crate::model::backing::Backing;
use crate::model::{Addr, FrameAddr, Pid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::num::NonZero;

/// A location without a function, together with how one process's samples use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Use {
    /// Index in [`Tables::locations`].
    pub(super) location: u32,
    /// The process, if the samples state it.
    pub(super) pid: Option<Pid>,
    /// Whether the location is a caller, so that its address is a return address.
    pub(super) is_caller: bool,
}

/// How samples use the locations that have no function.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The uses, each once, in ascending order.
    pub(super) list: Vec<Use>,
    /// The addresses to look up, each once, in ascending order.
    pub(super) addresses: Vec<BareAddress>,
    places: LocationPlaces,
    /// IDs of locations in the kernel.
    in_kernel: FxHashSet<u64>,
}

/// For the IDs of locations without a function: their indices in [`Tables::locations`].
#[derive(Debug, Default)]
struct LocationPlaces {
    /// The index plus 1, for IDs up to twice the number of locations; `None` for IDs of other locations. Most writers
    /// number locations from 1.
    dense: Vec<Option<NonZero<u32>>>,
    /// The indices for IDs that `dense` doesn't cover.
    sparse: FxHashMap<u64, u32>,
}

/// Collects uses while samples are read. The list has few duplicates and is compacted from time to time.
#[derive(Debug)]
struct FoundUses {
    list: Vec<Use>,
    /// The length of the list after it was last compacted.
    distinct: usize,
    /// By location: the process of its last use as the innermost frame, and of its last use as a caller. The outer
    /// `None` means that there was no such use. Usually the next use is the same as the last one.
    last: Vec<[Option<Option<Pid>>; 2]>,
}

impl Uses {
    /// Finds the uses in all samples. Damaged samples are skipped with a warning; `write` will copy them unchanged.
    pub(super) fn find(tables: &Tables<'_>, warnings: &mut Warnings) -> Self {
        let (places, in_kernel) = (find_unnamed(tables, warnings), kernel_locations(tables));
        let mut uses = Self { places, in_kernel, ..Self::default() };
        let (mut found, mut skipped) = (FoundUses::new(tables.locations.len()), Skipped::new("sample"));
        let mut calls = SampleCalls::default();
        for sample in &tables.samples {
            match calls.read(sample, tables) {
                Ok(()) => {
                    for depth in 0..calls.locations.len() {
                        if let Some(one) = uses.get(&calls, depth) {
                            found.add(one);
                        }
                    }
                }
                Err(error) => skipped.add(error),
            }
        }
        warnings.extend(skipped.into_warning());
        uses.list = found.into_sorted();
        uses.addresses = uses.list.iter().map(|one| one.address(tables)).collect();
        uses.addresses.sort_unstable();
        uses.addresses.dedup();
        uses
    }

    /// The use at one depth of a sample's stack, 0 being the innermost; `None` if that location needs no name.
    pub(super) fn get(&self, calls: &SampleCalls, depth: usize) -> Option<Use> {
        let location = self.places.get(*calls.locations.get(depth)?)?;
        Some(Use { location, pid: calls.pid, is_caller: self.is_caller(&calls.locations, depth) })
    }

    /// Whether the code at this depth called the code one level further in. Code interrupted by the kernel did not: it
    /// can have been at any instruction.
    fn is_caller(&self, locations: &[u64], depth: usize) -> bool {
        depth > 0 && locations.get(depth - 1).is_some_and(|inner| !self.in_kernel.contains(inner))
    }

    /// The index in `addresses` of the address of a use.
    pub(super) fn address_index(&self, one: &Use, tables: &Tables<'_>) -> Option<usize> {
        self.addresses.binary_search(&one.address(tables)).ok()
    }
}

impl FoundUses {
    /// `locations` is the number of locations in the file.
    fn new(locations: usize) -> Self {
        Self { list: Vec::new(), distinct: 0, last: vec![[None; 2]; locations] }
    }

    fn add(&mut self, one: Use) {
        let Some(last) = self.last.get_mut(one.location as usize) else { return };
        let last = &mut last[usize::from(one.is_caller)];
        if *last == Some(one.pid) {
            return;
        }
        *last = Some(one.pid);
        self.list.push(one);
        // Samples may alternate between processes, which adds duplicates.
        if self.list.len() > 2 * self.distinct + 1024 {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.list.sort_unstable();
        self.list.dedup();
        self.distinct = self.list.len();
    }

    /// Each use once, in ascending order.
    fn into_sorted(mut self) -> Vec<Use> {
        self.sort();
        self.list
    }
}

impl LocationPlaces {
    /// Makes room for this many locations.
    fn with_capacity(locations: usize) -> Self {
        Self { dense: vec![None; 2 * locations + 1], sparse: FxHashMap::default() }
    }

    fn get(&self, id: u64) -> Option<u32> {
        match usize::try_from(id).ok().and_then(|id| self.dense.get(id)) {
            Some(place) => place.map(|place| place.get() - 1),
            None => self.sparse.get(&id).copied(),
        }
    }

    /// Sets the index for a location's ID, or removes it if `place` is `None`. If an ID occurs twice, the later
    /// location wins.
    fn set(&mut self, id: u64, place: Option<u32>) {
        match (usize::try_from(id).ok().and_then(|id| self.dense.get_mut(id)), place) {
            (Some(slot), _) => *slot = place.and_then(|place| NonZero::new(place.wrapping_add(1))),
            (None, Some(place)) => drop(self.sparse.insert(id, place)),
            (None, None) => drop(self.sparse.remove(&id)),
        }
    }
}

impl Use {
    fn address(&self, tables: &Tables<'_>) -> BareAddress {
        let addr = Addr(tables.locations.get(self.location as usize).map_or(0, |location| location.address));
        let addr = if self.is_caller { FrameAddr::Return(addr) } else { FrameAddr::Ip(addr) };
        BareAddress { pid: self.pid, file: None, addr }
    }
}

/// Finds the locations without a function. If an ID occurs twice, the later location wins.
fn find_unnamed(tables: &Tables<'_>, warnings: &mut Warnings) -> LocationPlaces {
    let (mut places, mut skipped) = (LocationPlaces::with_capacity(tables.locations.len()), Skipped::new("location"));
    for (index, location) in (0..).zip(&tables.locations) {
        let mut place = None;
        if let Some(error) = Fields::of(location.message).find_map(Result::err) {
            skipped.add(error);
        } else if lacks_name(location, tables) {
            place = Some(index);
        }
        places.set(location.id, place);
    }
    warnings.extend(skipped.into_warning());
    places
}

/// The IDs of locations in the kernel.
fn kernel_locations(tables: &Tables<'_>) -> FxHashSet<u64> {
    let locations = tables.locations.iter();
    let in_kernel = locations.filter(|location| Backing::of(mapped_file(location, tables)).is_kernel_object());
    in_kernel.map(|location| location.id).collect()
}

/// The file of a location's mapping; empty if it has none.
fn mapped_file<'d>(location: &Location<'_>, tables: &Tables<'d>) -> &'d [u8] {
    let mapping = tables.mappings.get(&location.mapping).copied().unwrap_or_default();
    tables.string(mapping.file)
}

/// Whether a location has no function but an address where JIT code may be.
fn lacks_name(location: &Location<'_>, tables: &Tables<'_>) -> bool {
    let is_unnamed = location.address != 0 && location.lines().next().is_none();
    is_unnamed && may_hold_jit_code(mapped_file(location, tables))
}

/// The stack and the process of a sample.
#[derive(Debug, Default)]
pub(super) struct SampleCalls {
    /// Location IDs, innermost frame first.
    pub(super) locations: Vec<u64>,
    pub(super) pid: Option<Pid>,
}

impl SampleCalls {
    /// Reads a sample, replacing the previous one.
    pub(super) fn read(&mut self, sample: &[u8], tables: &Tables<'_>) -> Result<()> {
        self.locations.clear();
        self.pid = None;
        for field in Fields::of(sample) {
            match field? {
                (1, value) => self.add_locations(value)?,
                (3, value) => self.add_label(&Label::read(value.bytes(), tables)),
                _ => {}
            }
        }
        Ok(())
    }

    fn add_locations(&mut self, value: FieldValue<'_>) -> Result<()> {
        let before = self.locations.len();
        self.locations.extend(value.numbers());
        let whole = match value {
            FieldValue::Number(_) => true,
            // Decoding stops at an invalid varint. Every varint ends with one byte below 0x80, so the counts must
            // agree.
            FieldValue::Bytes(bytes) => {
                bytes.iter().filter(|byte| **byte < 0x80).count() == self.locations.len() - before
                    && bytes.last().is_none_or(|last| *last < 0x80)
            }
        };
        if whole { Ok(()) } else { Err(Error::new("its location IDs are damaged")) }
    }

    fn add_label(&mut self, label: &Label<'_>) {
        if is_pid(label.key) {
            self.pid = label.id().map(Pid);
        }
    }
}
