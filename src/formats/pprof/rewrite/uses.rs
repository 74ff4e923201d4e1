//! The locations that have no function, and the processes whose samples run through them.

use crate::bytes::protobuf::{FieldValue, Fields};
use crate::contract::unsymbolized::{BareAddress, may_hold_jit_code};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::pprof::tables::{Label, Location, Tables, is_pid};
use crate::model::backing::Backing;
use crate::model::{Addr, FrameAddr, Pid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::num::NonZero;

/// A location without a function, as samples of one process run through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Use {
    /// Its place in [`Tables::locations`].
    pub(super) location: u32,
    /// The process of the samples, if they state it.
    pub(super) pid: Option<Pid>,
    /// True if it called what the sample was in.
    pub(super) is_caller: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// In ascending order.
    pub(super) list: Vec<Use>,
    /// The addresses that they request, each once, in ascending order.
    pub(super) addresses: Vec<BareAddress>,
    places: LocationPlaces,
    /// The numbers of locations in the kernel.
    in_kernel: FxHashSet<u64>,
}

/// The places of locations without a function, by their numbers.
#[derive(Debug, Default)]
struct LocationPlaces {
    /// Of numbers that are hardly higher than there are locations, as most writers count them.
    dense: Vec<Option<NonZero<u32>>>,
    /// Of others.
    sparse: FxHashMap<u64, u32>,
}

/// Uses as they are found, each hardly more than once.
#[derive(Debug)]
struct FoundUses {
    list: Vec<Use>,
    /// The number at the time of the last sort.
    distinct: usize,
    /// The process in which a location was last run through, as a leaf and as a caller: mostly it is the same again.
    last: Vec<[Option<Option<Pid>>; 2]>,
}

impl Uses {
    /// Walks the samples. Those that cannot be read are passed on as they are.
    pub(super) fn find(tables: &Tables<'_>, warnings: &mut Warnings) -> Self {
        let mut uses = Self { places: places(tables, warnings), in_kernel: in_kernel(tables), ..Self::default() };
        let (mut found, mut skipped) = (FoundUses::among(tables.locations.len()), Skipped::new("sample"));
        let mut calls = SampleCalls::default();
        for sample in &tables.samples {
            match calls.read(sample, tables) {
                Ok(()) => uses.of(&calls).for_each(|one| found.add(one)),
                Err(error) => skipped.add(error),
            }
        }
        warnings.extend(skipped.into_warning());
        uses.list = found.sorted();
        uses.addresses = uses.list.iter().map(|one| one.address(tables)).collect();
        uses.addresses.sort_unstable();
        uses.addresses.dedup();
        uses
    }

    /// The locations of a sample that have no function.
    fn of(&self, calls: &SampleCalls) -> impl Iterator<Item = Use> {
        let pid = calls.pid;
        let places = calls.locations.iter().enumerate();
        places.filter_map(move |(depth, id)| {
            let is_caller = self.is_caller(&calls.locations, depth);
            Some(Use { location: self.places.get(*id)?, pid, is_caller })
        })
    }

    /// The one that a sample of this process has at this depth.
    pub(super) fn at(&self, calls: &SampleCalls, depth: usize) -> Option<Use> {
        let location = self.places.get(*calls.locations.get(depth)?)?;
        Some(Use { location, pid: calls.pid, is_caller: self.is_caller(&calls.locations, depth) })
    }

    /// True if the code at that depth of a stack called the code below it. The kernel was entered at any instruction.
    fn is_caller(&self, locations: &[u64], depth: usize) -> bool {
        depth.checked_sub(1).and_then(|inner| locations.get(inner)).is_some_and(|inner| !self.in_kernel.contains(inner))
    }

    /// The place of its request in the list of all requests.
    pub(super) fn asked(&self, one: &Use, tables: &Tables<'_>) -> Option<usize> {
        self.addresses.binary_search(&one.address(tables)).ok()
    }
}

impl FoundUses {
    fn among(locations: usize) -> Self {
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
        // Samples of several processes may come in turn.
        if self.list.len() > 2 * self.distinct + 1024 {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.list.sort_unstable();
        self.list.dedup();
        self.distinct = self.list.len();
    }

    /// Each once, in ascending order.
    fn sorted(mut self) -> Vec<Use> {
        self.sort();
        self.list
    }
}

impl LocationPlaces {
    /// For this many locations.
    fn of(locations: usize) -> Self {
        Self { dense: vec![None; 2 * locations + 1], sparse: FxHashMap::default() }
    }

    fn get(&self, id: u64) -> Option<u32> {
        match usize::try_from(id).ok().and_then(|id| self.dense.get(id)) {
            Some(place) => place.map(|place| place.get() - 1),
            None => self.sparse.get(&id).copied(),
        }
    }

    /// The later one of two with one number is meant.
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

/// The places of locations without a function, by their numbers. The later one of two with one number is meant.
fn places(tables: &Tables<'_>, warnings: &mut Warnings) -> LocationPlaces {
    let (mut places, mut skipped) = (LocationPlaces::of(tables.locations.len()), Skipped::new("location"));
    for (at, location) in (0..).zip(&tables.locations) {
        let damage = Fields::of(location.message).find_map(Result::err);
        let lacks_name = damage.is_none() && lacks_name(location, tables);
        places.set(location.id, lacks_name.then_some(at));
        damage.into_iter().for_each(|error| skipped.add(error));
    }
    warnings.extend(skipped.into_warning());
    places
}

/// The numbers of locations in the kernel.
fn in_kernel(tables: &Tables<'_>) -> FxHashSet<u64> {
    let file =
        |location: &Location<'_>| tables.mappings.get(&location.mapping).map_or(&b""[..], |of| tables.string(of.file));
    let inside = tables.locations.iter().filter(|location| Backing::of(file(location)).is_kernel_object());
    inside.map(|location| location.id).collect()
}

/// True if it has an address where JIT code may be, and no function.
fn lacks_name(location: &Location<'_>, tables: &Tables<'_>) -> bool {
    let mapping = tables.mappings.get(&location.mapping).copied().unwrap_or_default();
    location.address != 0 && location.lines().next().is_none() && may_hold_jit_code(tables.string(mapping.file))
}

/// A sample's locations.
#[derive(Debug, Default)]
pub(super) struct SampleCalls {
    /// Their numbers, the leaf's first.
    pub(super) locations: Vec<u64>,
    pub(super) pid: Option<Pid>,
}

impl SampleCalls {
    /// Reads a sample in place of the one before.
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
            // A value that not a number ends them: as many bytes as there are numbers end them.
            FieldValue::Bytes(bytes) => {
                bytes.iter().filter(|byte| **byte < 0x80).count() == self.locations.len() - before
                    && bytes.last().is_none_or(|last| *last < 0x80)
            }
        };
        if whole { Ok(()) } else { Err(Error::new("its numbers of locations are damaged")) }
    }

    fn add_label(&mut self, label: &Label<'_>) {
        if is_pid(label.key) {
            self.pid = label.id().map(Pid);
        }
    }
}
