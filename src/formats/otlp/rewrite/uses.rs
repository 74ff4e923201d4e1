//! Finds the locations without a function, and the processes whose samples contain them.

use crate::contract::unsymbolized::{BareAddress, CodeFile, FileBase, LocationUse, may_hold_jit_code};
use crate::formats::otlp::dictionary::entry_at;
use crate::formats::otlp::messages::{
    Dictionary, LocationMessage, MappingMessage, ProfilesData, ResourceProfiles, SampleMessage,
};
use crate::formats::otlp::modules::{GNU_BUILD_ID, HTL_HASH, htl_hash};
use crate::formats::otlp::owner::{Owner, Tracks};
use crate::model::about::About;
use crate::model::interner::Interner;
use crate::model::mapping_kind::MappingKind;
use crate::model::process::BuildId;
use crate::model::{Addr, FrameAddr, Pid};
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::FxHashSet;

/// The stack and process of each sample of a resource, in the order in which the resource's scopes and profiles list
/// them. A damaged sample gets an entry without a stack, so that each sample has one.
pub(super) fn sample_stacks(resource: &ResourceProfiles, dictionary: &Dictionary) -> Vec<SampleStack> {
    // Attributes may also state facts about the recording, which aren't needed here.
    let (mut owner, mut about) = (Owner::default(), About::default());
    for attribute in resource.resource.iter().flat_map(|resource| &resource.attributes) {
        owner.add(&dictionary.attribute(attribute), dictionary, &mut about);
    }
    let mut stacks = Vec::new();
    for profile in resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
        let tracks = Tracks::new(&owner, dictionary.attributes(&profile.attribute_indices));
        for sample in &profile.samples {
            stacks.push(match SampleMessage::decode(sample.clone()) {
                Ok(read) => SampleStack { pid: tracks.pid(&read, dictionary), stack_index: read.stack_index },
                Err(_) => SampleStack { pid: None, stack_index: 0 },
            });
        }
    }
    stacks
}

impl Dictionary {
    /// The locations of a stack, innermost frame first.
    pub(super) fn stack(&self, index: i32) -> &[i32] {
        entry_at(&self.stack_table, index).map_or(&[], |stack| &stack.location_indices)
    }
}

#[derive(Debug)]
pub(super) struct SampleStack {
    pub(super) pid: Option<Pid>,
    /// The stack's index in the dictionary; 0 if the sample has no stack.
    pub(super) stack_index: i32,
}

/// What the address of a location without a function refers to: memory or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bare {
    /// An address in the memory of a process.
    Memory(u64),
    /// The index of a file in the interner, and an address in that file.
    File(u32, u64),
}

/// How the samples of a message use the locations that have no function.
#[derive(Debug, Default)]
pub(super) struct LocationUses {
    /// What the address of each location refers to; `None` for locations that need no name or can't get one.
    bare: Vec<Option<Bare>>,
    /// For each location, whether it is in the kernel. Code that the kernel interrupted made no call, so its address
    /// isn't a return address.
    in_kernel: Vec<bool>,
    /// Number of locations that have no function and lie in files whose version the message doesn't state.
    pub(super) unversioned: u64,
    /// The distinct uses of the locations that have no function, in ascending order.
    pub(super) list: Vec<LocationUse>,
}

impl LocationUses {
    /// Finds the unnamed locations of a message, and how samples use them. Files of these locations are added to
    /// `files`.
    pub(super) fn find(message: &ProfilesData, files: &mut Interner<CodeFile, u32>) -> Self {
        let Some(dictionary) = &message.dictionary else { return Self::default() };
        let locations = &dictionary.location_table;
        let bare = locations.iter().map(|location| Bare::find(location, dictionary, files)).collect();
        // A location's address isn't a return address if the location one level further in is in the kernel: the kernel
        // interrupted the code. `uses.get` needs this.
        let in_kernel = locations.iter().map(|location| is_in_kernel(location, dictionary)).collect();
        let unversioned = locations.iter().filter(|location| is_unversioned(location, dictionary)).count() as u64;
        let mut uses = Self { bare, in_kernel, unversioned, list: Vec::new() };
        // Look at each stack of a process once: most samples share theirs with others.
        let mut stacks = FxHashSet::default();
        for resource in &message.resource_profiles {
            for sample in sample_stacks(resource, dictionary) {
                // Stack 0 is the empty one, which stands for damaged samples, too.
                if sample.stack_index > 0 {
                    stacks.insert((sample.stack_index, sample.pid));
                }
            }
        }
        let mut distinct_uses = FxHashSet::default();
        for (stack, pid) in stacks {
            let locations = dictionary.stack(stack);
            for depth in 0..locations.len() {
                // `get` returns `None` for a location that needs no name, so nothing is added for it.
                distinct_uses.extend(uses.get(locations, depth, pid));
            }
        }
        uses.list = distinct_uses.into_iter().collect();
        // A hash set has no fixed order, but the output must be the same each time: if uses of a location get different
        // names, the first use in this list names the location itself, and the others get copies.
        uses.list.sort_unstable();
        uses
    }

    /// The location at one depth of a stack, together with how it is used there. Depth 0 is the innermost frame. `None`
    /// if the location needs no name.
    pub(super) fn get(&self, locations: &[i32], depth: usize, pid: Option<Pid>) -> Option<LocationUse> {
        let location = *locations.get(depth)?;
        let pid = match self.bare(location)? {
            Bare::Memory(_) => pid,
            // The code in a file is the same in all processes, so the process doesn't matter.
            Bare::File(..) => None,
        };
        Some(LocationUse { location: u32::try_from(location).ok()?, pid, is_caller: self.is_caller(locations, depth) })
    }

    /// Whether the code at this depth of a stack called the code one level further in, so that its address is a return
    /// address. Code that was interrupted by the kernel made no call: it can have been at any instruction.
    fn is_caller(&self, locations: &[i32], depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        let Some(inner) = locations.get(depth - 1).and_then(|inner| usize::try_from(*inner).ok()) else { return false };
        !self.in_kernel.get(inner).copied().unwrap_or(false)
    }

    fn bare(&self, location: i32) -> Option<Bare> {
        self.bare.get(usize::try_from(location).ok()?).copied().flatten()
    }

    /// The address to look up for a use; `None` if the location needs no name or can't get one.
    pub(super) fn address(&self, location_use: &LocationUse) -> Option<BareAddress> {
        let LocationUse { location, pid, is_caller } = *location_use;
        let (file, addr) = match self.bare(location as i32)? {
            Bare::Memory(addr) => (None, addr),
            Bare::File(file, addr) => (Some(file), addr),
        };
        let addr = if is_caller { FrameAddr::Return(Addr(addr)) } else { FrameAddr::Ip(Addr(addr)) };
        Some(BareAddress { pid, file, addr })
    }

    /// The addresses to look up for all uses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = BareAddress> {
        self.list.iter().filter_map(|location_use| self.address(location_use))
    }
}

impl Bare {
    /// What the address of a location refers to. `None` if the location already has a function, has no address, is in
    /// the kernel, or is in a file whose version is unknown.
    fn find(location: &LocationMessage, dictionary: &Dictionary, files: &mut Interner<CodeFile, u32>) -> Option<Self> {
        if !needs_name(location, dictionary) {
            return None;
        }
        let (mapping, name) = mapping_and_file(location, dictionary);
        if let Some(mapping) = mapping
            && let Some(file) = code_file(mapping, name, location.address, dictionary)
        {
            let addr = match file.base {
                FileBase::Start => mapping.address_in_file(location.address),
                FileBase::Linked => location.address,
            };
            return Some(Self::File(files.intern(file), addr));
        }
        // For interpreted code without a mapping, profilers may store anything in the address field. The frame types
        // that are accepted here aren't those of an interpreter.
        let kind = frame_type(location, dictionary).unwrap_or_default();
        let is_address = mapping.is_some() || matches!(&kind[..], b"" | b"native" | b"unknown");
        if is_address && may_hold_jit_code(name) { Some(Self::Memory(location.address)) } else { None }
    }
}

/// The mapping of a location, and the mapping's file name (empty if there is none).
fn mapping_and_file<'m>(
    location: &LocationMessage,
    dictionary: &'m Dictionary,
) -> (Option<&'m MappingMessage>, &'m [u8]) {
    let mapping = entry_at(&dictionary.mapping_table, location.mapping_index);
    (mapping, mapping.map_or(&b""[..], |mapping| dictionary.string(mapping.filename_strindex)))
}

fn frame_type(location: &LocationMessage, dictionary: &Dictionary) -> Option<Bytes> {
    dictionary.attribute_text(&location.attribute_indices, "profile.frame.type")
}

fn is_in_kernel(location: &LocationMessage, dictionary: &Dictionary) -> bool {
    let (_, file) = mapping_and_file(location, dictionary);
    frame_type(location, dictionary).is_some_and(|kind| kind == "kernel")
        || MappingKind::from_path(file).is_kernel_object()
}

/// Whether a location needs a name: it has an address outside the kernel, and no function.
fn needs_name(location: &LocationMessage, dictionary: &Dictionary) -> bool {
    location.address != 0 && location.lines.is_empty() && !is_in_kernel(location, dictionary)
}

/// Whether a location needs a name but is in a file whose version the message doesn't state.
fn is_unversioned(location: &LocationMessage, dictionary: &Dictionary) -> bool {
    let (mapping, name) = mapping_and_file(location, dictionary);
    let is_version_stated = mapping.is_some_and(|mapping| has_version(mapping, dictionary));
    let is_file = matches!(MappingKind::from_path(name), MappingKind::File(_));
    needs_name(location, dictionary) && is_file && !is_version_stated && !may_hold_jit_code(name)
}

/// Whether a mapping states the version of its file.
fn has_version(mapping: &MappingMessage, dictionary: &Dictionary) -> bool {
    let has = |key| dictionary.attribute_text(&mapping.attribute_indices, key).is_some();
    has(GNU_BUILD_ID) || has(HTL_HASH)
}

/// The file that contains an address, if its version is known. `name` is the path of the mapping's file. `None` if it
/// isn't a file, if neither its build ID nor its hash is stated, or if the address is outside of the mapping.
fn code_file(mapping: &MappingMessage, name: &[u8], address: u64, dictionary: &Dictionary) -> Option<CodeFile> {
    let build_id = dictionary.attribute_text(&mapping.attribute_indices, GNU_BUILD_ID);
    let build_id = build_id.and_then(|digits| BuildId::from_digits(&digits));
    let hash = dictionary.attribute_text(&mapping.attribute_indices, HTL_HASH).and_then(|digits| htl_hash(&digits));
    let is_version_stated = build_id.is_some() || hash.is_some();
    let is_file = matches!(MappingKind::from_path(name), MappingKind::File(_) | MappingKind::Other(_));
    if !is_version_stated || !is_file {
        return None;
    }
    let base = if mapping.memory_limit == 0 {
        // If the mapping has no memory range, the location's address is the one in the file's symbol table.
        FileBase::Linked
    } else if (mapping.memory_start..mapping.memory_limit).contains(&address) {
        FileBase::Start
    } else {
        return None;
    };
    Some(CodeFile { path: name.to_vec(), build_id, htl_hash: hash, base })
}
