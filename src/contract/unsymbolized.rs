//! Profiles that hold addresses without names, and how they get names.
//!
//! A rewriter lists its unnamed addresses, is given the functions at these addresses, and writes the file with the
//! functions' names. It doesn't know where names come from. Protocol buffers are decoded, changed and encoded again;
//! JSON keeps its bytes wherever nothing changes.

use crate::error::{Result, Warnings};
use crate::model::mapping_kind::MappingKind;
use crate::model::process::BuildId;
use crate::model::{FrameAddr, Pid};
use rustc_hash::FxHashMap;
use std::fmt::Debug;
use std::io::Write;

/// An unnamed address: in a file, or in memory if the profile names no file for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BareAddress {
    /// The process; `None` if the profile doesn't state it.
    pub pid: Option<Pid>,
    /// The file that contains the address, as an index in [`Unsymbolized::files`]; `None` if the address is in no file.
    pub file: Option<u32>,
    /// The address: in the file if there is one, otherwise in the process's memory.
    pub addr: FrameAddr,
}

/// A file with code, as a profile describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeFile {
    /// The file's path, or only its file name.
    pub path: Vec<u8>,
    /// The file's build ID; `None` if the profile doesn't state one.
    pub build_id: Option<BuildId>,
    /// Another kind of build ID: OpenTelemetry's hash of the start and end of the file
    /// ([`Image::htl_hash`](crate::symbolize::symbols::image::Image)).
    pub htl_hash: Option<[u8; 16]>,
    /// What addresses in this file are relative to.
    pub base: FileBase,
}

/// What the addresses in a file are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileBase {
    /// Addresses are offsets from the start of the file.
    Start,
    /// Addresses are virtual addresses, as in the file's symbol table.
    Linked,
}

/// True if a mapping with this name may hold JIT code: memory without a file (some tools name it after the process's
/// perf map), a deleted file, or a file in a directory for shared memory.
pub fn may_hold_jit_code(name: &[u8]) -> bool {
    match MappingKind::from_path(name) {
        file @ MappingKind::File(_) => file.is_perf_map() || file.is_likely_jit_file(),
        MappingKind::Other(_) => true,
        MappingKind::Bracketed(text) => text == b"[jit]" || text == b"[JIT]" || text == b"[unknown]",
        kind => kind.may_hold_jit_code(),
    }
}

/// A function at an address, or a call that was inlined there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedCall<'a> {
    /// The name as the runtime gave it. It need not be UTF-8.
    pub name: &'a [u8],
    /// The source file; empty if unknown.
    pub file: &'a [u8],
    /// The source line, counted from 1; 0 if unknown.
    pub line: u32,
}

/// Returns the functions at an address, given the address's index in [`Unsymbolized::addresses`]: first inlined calls,
/// from the innermost outwards, then the compiled function. Empty if no function is known.
pub type FindCalls<'a> = dyn Fn(usize) -> Vec<NamedCall<'a>> + 'a;

/// How the samples of one process use a location that has no name. A location is an entry of a table in the profile, to
/// which samples of all processes may refer (pprof, OTLP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationUse {
    /// Index in the profile's table of locations.
    pub location: u32,
    /// The process; `None` if the samples don't state it, or if the address is in a file and so means the same in every
    /// process.
    pub pid: Option<Pid>,
    /// Whether the location is a caller, so that its address is a return address.
    pub is_caller: bool,
}

/// The functions of a profile's locations. The same location can be in different functions if it is used by samples of
/// different processes, or both as a caller and as the innermost frame. The first use keeps the location; for each
/// other function, the location gets a copy.
#[derive(Debug, Default)]
pub struct LocationNames<'a> {
    /// Locations with their functions, the innermost inlined call first. Locations that stay unnamed are not listed.
    pub named: Vec<(u32, Vec<NamedCall<'a>>)>,
    /// The copies of locations that the profile gets: for each, the original location and the functions of the copy,
    /// which may be none.
    pub copies: Vec<(u32, Vec<NamedCall<'a>>)>,
    /// The uses that get a copy instead of the original location, each with the index of its copy in `copies`.
    copy_by_use: FxHashMap<LocationUse, usize>,
}

impl<'a> LocationNames<'a> {
    /// Looks up the functions of all locations. The samples of several processes may use the same location, but have
    /// different functions there. Then the location itself gets the functions of its first use, and a copy of it is
    /// made for each other list of functions. `uses` are in ascending order. `look_up` returns the functions for a use.
    pub fn new(uses: &[LocationUse], look_up: impl Fn(&LocationUse) -> Vec<NamedCall<'a>>) -> Self {
        let mut names = Self::default();
        for location_uses in uses.chunk_by(|one, other| one.location == other.location) {
            let [first, others @ ..] = location_uses else { continue };
            let calls = look_up(first);
            let first_names = function_names(&calls);
            // The copies of this location, by the names of their functions.
            let mut copies: FxHashMap<Vec<&[u8]>, usize> = FxHashMap::default();
            for other in others {
                let calls = look_up(other);
                let other_names = function_names(&calls);
                if other_names == first_names {
                    continue;
                }
                let copy = *copies.entry(other_names).or_insert(names.copies.len());
                // No copy of the location has these functions yet, so add one.
                if copy == names.copies.len() {
                    names.copies.push((other.location, calls));
                }
                names.copy_by_use.insert(*other, copy);
            }
            if !calls.is_empty() {
                names.named.push((first.location, calls));
            }
        }
        names
    }

    /// True if the profile's locations get neither names nor copies.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.copies.is_empty()
    }

    /// The index in `copies` of the copy that a use gets; `None` if the use keeps the original location.
    pub fn copy_of(&self, location_use: &LocationUse) -> Option<usize> {
        // Most profiles have no copies, so most look-ups are avoided.
        if self.copy_by_use.is_empty() { None } else { self.copy_by_use.get(location_use).copied() }
    }
}

/// The names of the functions. Two uses of a location need no copy if these agree. Lines aren't compared, because they
/// may differ between a return address and the address of a running instruction.
fn function_names<'a>(calls: &[NamedCall<'a>]) -> Vec<&'a [u8]> {
    calls.iter().map(|call| call.name).collect()
}

/// A parsed profile with unnamed addresses.
pub trait Unsymbolized: Debug {
    /// The unnamed addresses, distinct and ascending.
    fn addresses(&self) -> &[BareAddress];

    /// The files that addresses refer to ([`BareAddress::file`]).
    fn files(&self) -> &[CodeFile] {
        &[]
    }

    /// True if the format can store inlined calls. If not, each address only gets the compiled function, under the name
    /// that the runtime gave it.
    fn expands_calls(&self) -> bool {
        true
    }

    /// Adds the names that `find_calls` returns, and writes the profile.
    fn write(&mut self, find_calls: &FindCalls<'_>, out: &mut dyn Write) -> Result<()>;
}

/// Parses a profile to find its unnamed addresses.
pub type OpenUnsymbolized = for<'d> fn(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>>;
