//! Profiles that hold addresses without names, and how they get names.
//!
//! A rewriter lists its unnamed addresses, is given the functions at them, and writes the file with these names. It
//! doesn't know where names come from. Whatever stays unnamed is copied byte for byte.

use crate::error::{Result, Warnings};
use crate::model::backing::Backing;
use crate::model::process::BuildId;
use crate::model::{FrameAddr, Pid};
use rustc_hash::FxHashMap;
use std::fmt::Debug;
use std::io::Write;

/// An unnamed address: in a file, or in memory for which the profile names no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BareAddress {
    /// The process; `None` if the profile doesn't state it.
    pub pid: Option<Pid>,
    /// The index in [`Unsymbolized::files`] of the file that contains it; `None` if it is in no file.
    pub file: Option<u32>,
    /// The address, in the process's memory or in the file.
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
    /// ([`Image::htl_hash`](crate::resolve::symbols::image::Image)).
    pub htl_hash: Option<[u8; 16]>,
    /// The base of the addresses in this file.
    pub base: FileBase,
}

/// The base of the addresses in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileBase {
    /// Addresses are offsets from the start of the file.
    Start,
    /// Addresses are those that the file was linked for.
    Linked,
}

/// True if a mapping with this name may hold JIT code: memory without a file (some tools name it after its perf map), a
/// file that was deleted, or a file in a location for shared memory.
pub fn may_hold_jit_code(name: &[u8]) -> bool {
    match Backing::of(name) {
        file @ Backing::File(_) => file.is_perf_map() || file.is_likely_jit_file(),
        Backing::Other(_) => true,
        Backing::Bracketed(text) => text == b"[jit]" || text == b"[JIT]" || text == b"[unknown]",
        backing => backing.may_hold_jit_code(),
    }
}

/// A function at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedCall<'a> {
    /// The name as the runtime gave it. It need not be UTF-8.
    pub name: &'a [u8],
    /// The source file; empty if unknown.
    pub file: &'a [u8],
    /// The line in the file, counted from 1; 0 if unknown.
    pub line: u32,
}

/// Looks up the functions at an address, given its index in [`Unsymbolized::addresses`]. Inlined functions come first,
/// from the innermost outwards; the compiled function is last. Empty if none is known.
pub type Ask<'a> = dyn Fn(usize) -> Vec<NamedCall<'a>> + 'a;

/// The functions at a location for some of its users, because the same address may be different functions in different
/// processes.
#[derive(Debug)]
pub struct Meaning<'a, U> {
    /// The functions at the location, in the order of [`Ask`].
    pub calls: Vec<NamedCall<'a>>,
    /// The users for which the location has these functions.
    pub uses: Vec<U>,
}

/// Groups the users of a location by the functions that the location has for them. The first group contains the first
/// user; the caller keeps the original location for this group.
pub fn meanings<'a, U: Copy>(of_location: &[U], calls: impl Fn(&U) -> Vec<NamedCall<'a>>) -> Vec<Meaning<'a, U>> {
    let mut meanings: Vec<Meaning<'a, U>> = Vec::new();
    // Users with the same functions may still have different lines, for example a return address and an innermost
    // frame.
    let mut by_names: FxHashMap<Vec<&[u8]>, usize> = FxHashMap::default();
    for one in of_location {
        let calls = calls(one);
        let names = calls.iter().map(|call| call.name).collect();
        let next = meanings.len();
        let at = *by_names.entry(names).or_insert(next);
        match meanings.get_mut(at) {
            Some(meaning) => meaning.uses.push(*one),
            None => meanings.push(Meaning { calls, uses: vec![*one] }),
        }
    }
    meanings
}

/// A parsed profile with unnamed addresses.
pub trait Unsymbolized: Debug {
    /// The unnamed addresses, distinct and ascending.
    fn addresses(&self) -> &[BareAddress];

    /// The files that contain addresses.
    fn files(&self) -> &[CodeFile] {
        &[]
    }

    /// True if the format can store inlined calls. If not, each address gets only the compiled function, under the full
    /// name that its runtime gave it.
    fn expands_calls(&self) -> bool {
        true
    }

    /// Writes the profile, with the names that `ask` returns.
    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()>;
}

/// Parses a profile to find its unnamed addresses.
pub type OpenUnsymbolized = for<'d> fn(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>>;
