//! Profiles that hold addresses without names, and how they get names.
//!
//! A rewriter lists its unnamed addresses, is given the functions at these addresses, and writes the file with the
//! functions' names. It doesn't know where names come from. Whatever stays unnamed is copied byte for byte.

use crate::error::{Result, Warnings};
use crate::model::backing::Backing;
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
    /// The index in [`Unsymbolized::files`] of the file that contains it; `None` if it is in no file.
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
    /// ([`Image::htl_hash`](crate::resolve::symbols::image::Image)).
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
    match Backing::of(name) {
        file @ Backing::File(_) => file.is_perf_map() || file.is_likely_jit_file(),
        Backing::Other(_) => true,
        Backing::Bracketed(text) => text == b"[jit]" || text == b"[JIT]" || text == b"[unknown]",
        backing => backing.may_hold_jit_code(),
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
pub type Ask<'a> = dyn Fn(usize) -> Vec<NamedCall<'a>> + 'a;

/// The functions at a location of the profile, for those of its uses that agree. The same address may be different
/// functions in different processes.
#[derive(Debug)]
pub struct Meaning<'a, U> {
    /// The functions at the location, in the order of [`Ask`].
    pub calls: Vec<NamedCall<'a>>,
    /// The uses of the location, such as samples, for which it has these functions.
    pub uses: Vec<U>,
}

/// Groups the uses of a location, such as samples, by the functions that `calls` returns for them. The first group
/// contains the first use; the caller lets this group keep the original location and creates a new one for each other
/// group.
pub fn meanings<'a, U: Copy>(of_location: &[U], calls: impl Fn(&U) -> Vec<NamedCall<'a>>) -> Vec<Meaning<'a, U>> {
    let mut meanings: Vec<Meaning<'a, U>> = Vec::new();
    // Compare names only: uses with the same functions may have different lines, for example a return address and the
    // address of a running instruction.
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

    /// The files that addresses refer to ([`BareAddress::file`]).
    fn files(&self) -> &[CodeFile] {
        &[]
    }

    /// True if the format can store inlined calls. If not, each address gets only the compiled function, with the name
    /// unchanged from what the runtime gave it.
    fn expands_calls(&self) -> bool {
        true
    }

    /// Writes the profile, with the names that `ask` returns.
    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()>;
}

/// Parses a profile to find its unnamed addresses.
pub type OpenUnsymbolized = for<'d> fn(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>>;
