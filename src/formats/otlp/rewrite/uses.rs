//! Finds the locations without a function, and the processes whose samples contain them.

use crate::bytes::protobuf::Fields;
use crate::contract::unsymbolized::{BareAddress, CodeFile, FileBase, LocationUse, may_hold_jit_code};
use crate::formats::otlp::dictionary::{Dictionary, Location, Mapping, entry_at, field_numbers};
use crate::formats::otlp::message::{Message, Sample, messages};
use crate::formats::otlp::modules::{GNU_BUILD_ID, HTL_HASH, htl_hash};
use crate::formats::otlp::owner::{Owner, Tracks};
use crate::model::about::About;
use crate::model::interner::Interner;
use crate::model::mapping_kind::MappingKind;
use crate::model::process::BuildId;
use crate::model::{Addr, FrameAddr, Pid};
use rustc_hash::FxHashSet;

impl<'d> Message<'d> {
    /// Calls `each` with every sample of a resource, in order. A damaged sample counts as one without a stack.
    pub(super) fn for_each_sample(&self, resource: &'d [u8], each: &mut dyn FnMut(SampleStack)) {
        let (mut owner, mut about) = (Owner::default(), About::default());
        for attribute in messages(resource, 1).flat_map(|resource| messages(resource, 1)) {
            owner.add(&self.dictionary.attribute(attribute), &self.dictionary, &mut about);
        }
        for profile in messages(resource, 2).flat_map(|scope| messages(scope, 2)) {
            let tracks = Tracks::new(&owner, self.dictionary.attributes(field_numbers(profile, 11)));
            for sample in messages(profile, 2) {
                each(match Sample::read(sample) {
                    Ok(read) => SampleStack { pid: tracks.pid(&read, &self.dictionary), stack: read.stack },
                    Err(_) => SampleStack { pid: None, stack: 0 },
                });
            }
        }
    }

    /// The locations of a stack in the dictionary, innermost frame first.
    pub(super) fn stack(&self, index: u64) -> Vec<u64> {
        match entry_at(&self.dictionary.stacks, index) {
            Some(stack) => field_numbers(stack, 1).collect(),
            None => Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct SampleStack {
    pub(super) pid: Option<Pid>,
    /// Index in the dictionary; 0 if the sample has no stack.
    pub(super) stack: u64,
}

/// What the address of a location without a function refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    /// An address in the memory of a process.
    Memory(u64),
    /// The index of a file in the interner, and an address in that file.
    File(u32, u64),
}

/// How the samples of a message use the locations that have no function.
#[derive(Debug)]
pub(super) struct LocationUses {
    /// What the address of each location refers to; `None` for locations that need no name or can't get one.
    bare: Vec<Option<Bare>>,
    /// For each location, whether it is in the kernel.
    in_kernel: Vec<bool>,
    /// Number of locations that have no function and lie in files whose version the message doesn't state.
    pub(super) unversioned: u64,
    /// The uses, each once, in ascending order.
    pub(super) list: Vec<LocationUse>,
}

impl LocationUses {
    /// Finds the uses in a message. The files of unnamed addresses are added to `files`.
    pub(super) fn find(message: &Message<'_>, files: &mut Interner<CodeFile, u32>) -> Self {
        let locations = &message.dictionary.locations;
        let bare = locations.iter().map(|location| Bare::find(location, message, files)).collect();
        let in_kernel = locations.iter().map(|location| is_in_kernel(location, message)).collect();
        let unversioned = locations.iter().filter(|location| is_unversioned(location, message)).count() as u64;
        let mut uses = Self { bare, in_kernel, unversioned, list: Vec::new() };
        let (mut list, mut stacks) = (FxHashSet::default(), FxHashSet::default());
        for resource in &message.resources {
            message.for_each_sample(resource, &mut |sample| {
                if sample.stack > 0 {
                    stacks.insert((sample.stack, sample.pid));
                }
            });
        }
        for (stack, pid) in &stacks {
            let locations = message.stack(*stack);
            list.extend((0..locations.len()).filter_map(|depth| uses.get(&locations, depth, *pid)));
        }
        uses.list = list.into_iter().collect();
        uses.list.sort_unstable();
        uses
    }

    /// The use at one depth of a stack, 0 being the innermost; `None` if the location there needs no name.
    pub(super) fn get(&self, locations: &[u64], depth: usize, pid: Option<Pid>) -> Option<LocationUse> {
        let location = *locations.get(depth)?;
        let pid = match self.bare(location)? {
            Bare::Memory(_) => pid,
            Bare::File(..) => None,
        };
        Some(LocationUse { location: u32::try_from(location).ok()?, pid, is_caller: self.is_caller(locations, depth) })
    }

    /// Whether the code at this depth called the code one level further in. Code interrupted by the kernel did not: it
    /// can have been at any instruction.
    fn is_caller(&self, locations: &[u64], depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        let Some(inner) = locations.get(depth - 1).and_then(|inner| usize::try_from(*inner).ok()) else { return false };
        !self.in_kernel.get(inner).copied().unwrap_or(false)
    }

    fn bare(&self, location: u64) -> Option<Bare> {
        self.bare.get(usize::try_from(location).ok()?).copied().flatten()
    }

    /// The address to look up for a use.
    pub(super) fn address(&self, one: &LocationUse) -> Option<BareAddress> {
        let (file, addr) = match self.bare(one.location.into())? {
            Bare::Memory(addr) => (None, addr),
            Bare::File(file, addr) => (Some(file), addr),
        };
        let addr = if one.is_caller { FrameAddr::Return(Addr(addr)) } else { FrameAddr::Ip(Addr(addr)) };
        Some(BareAddress { pid: one.pid, file, addr })
    }

    /// The addresses to look up for all uses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = BareAddress> {
        self.list.iter().filter_map(|one| self.address(one))
    }
}

impl Bare {
    /// What a location's address refers to. `None` if it has a function, has no address, is in the kernel, or is in a
    /// file whose version is unknown.
    fn find(location: &Location<'_>, message: &Message<'_>, files: &mut Interner<CodeFile, u32>) -> Option<Self> {
        let dictionary = &message.dictionary;
        if !needs_name(location, message) {
            return None;
        }
        let (mapping, name) = mapping_and_file(location, message);
        if let Some(mapping) = mapping
            && let Some(file) = code_file(mapping, name, location.address, dictionary)
        {
            let addr = match file.base {
                FileBase::Start => mapping.address_in_file(location.address),
                FileBase::Linked => location.address,
            };
            return Some(Self::File(files.intern(file), addr));
        }
        // For interpreted code without a mapping, profilers may store anything in the address field.
        let kind = dictionary.attribute_text(location.attributes(), "profile.frame.type").unwrap_or_default();
        let is_address = mapping.is_some() || matches!(kind, b"" | b"native" | b"unknown");
        if is_address && may_hold_jit_code(name) { Some(Self::Memory(location.address)) } else { None }
    }
}

/// The mapping of a location, and the mapping's file name (empty if there is none).
fn mapping_and_file<'m, 'd>(location: &Location<'_>, message: &'m Message<'d>) -> (Option<&'m Mapping<'d>>, &'d [u8]) {
    let mapping = entry_at(&message.dictionary.mappings, location.mapping);
    (mapping, mapping.map_or(&b""[..], |mapping| message.dictionary.string(mapping.file)))
}

fn is_in_kernel(location: &Location<'_>, Message { dictionary, .. }: &Message<'_>) -> bool {
    let mapping = entry_at(&dictionary.mappings, location.mapping);
    dictionary.attribute_text(location.attributes(), "profile.frame.type") == Some(b"kernel")
        || mapping.is_some_and(|mapping| MappingKind::from_path(dictionary.string(mapping.file)).is_kernel_object())
}

/// Whether a location needs a name: it has an address outside the kernel, and no function.
fn needs_name(location: &Location<'_>, message: &Message<'_>) -> bool {
    let is_whole = Fields::of(location.message).all(|field| field.is_ok());
    is_whole && location.address != 0 && location.lines().next().is_none() && !is_in_kernel(location, message)
}

/// Whether a location needs a name but is in a file whose version the message doesn't state.
fn is_unversioned(location: &Location<'_>, message: &Message<'_>) -> bool {
    let (mapping, name) = mapping_and_file(location, message);
    needs_name(location, message)
        && !mapping.is_some_and(|mapping| has_version(mapping, &message.dictionary))
        && matches!(MappingKind::from_path(name), MappingKind::File(_))
        && !may_hold_jit_code(name)
}

/// Whether a mapping states the version of its file.
fn has_version(mapping: &Mapping<'_>, dictionary: &Dictionary<'_>) -> bool {
    [GNU_BUILD_ID, HTL_HASH].iter().any(|key| dictionary.attribute_text(mapping.attributes(), key).is_some())
}

/// The file that contains an address, if its version is known.
fn code_file(mapping: &Mapping<'_>, name: &[u8], address: u64, dictionary: &Dictionary<'_>) -> Option<CodeFile> {
    let build_id = dictionary.attribute_text(mapping.attributes(), GNU_BUILD_ID).and_then(BuildId::from_digits);
    let hash = dictionary.attribute_text(mapping.attributes(), HTL_HASH).and_then(htl_hash);
    if build_id.is_none() && hash.is_none()
        || !matches!(MappingKind::from_path(name), MappingKind::File(_) | MappingKind::Other(_))
    {
        return None;
    }
    let base = match (mapping.limit, (mapping.start..mapping.limit).contains(&address)) {
        // A mapping without a memory range has addresses as the file's own symbol table has them.
        (0, _) => FileBase::Linked,
        (_, true) => FileBase::Start,
        (_, false) => return None,
    };
    Some(CodeFile { path: name.to_vec(), build_id, htl_hash: hash, base })
}
