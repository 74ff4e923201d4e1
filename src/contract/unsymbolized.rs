//! Profiles that hold addresses without names: what their rewriters ask, and how they are answered.
//!
//! A rewriter finds the addresses that have no name, gets what is there, and passes the file on with these names.
//! It has nothing of where names come from. Anything unnamed stays byte for byte.

use crate::error::{Result, Warnings};
use crate::model::backing::Backing;
use crate::model::process::BuildId;
use crate::model::{FrameAddr, Pid};
use rustc_hash::FxHashMap;
use std::fmt::Debug;
use std::io::Write;

/// An address without a name: in memory that no file backs as far as the profile gives, or in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BareAddress {
    /// The process; `None` if the profile does not give.
    pub pid: Option<Pid>,
    /// The number of the file among [`Unsymbolized::files`], if it is in one.
    pub file: Option<u32>,
    /// The address, in the memory of the process or in the file.
    pub addr: FrameAddr,
}

/// A file of code as a profile names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeFile {
    /// The path, or the last part of it.
    pub path: Vec<u8>,
    /// The build ID of the file.
    pub build_id: Option<BuildId>,
    /// The same by OpenTelemetry's hash of its two ends ([`Image::htl_hash`](crate::resolve::symbols::image::Image)).
    pub htl_hash: Option<[u8; 16]>,
    /// The base of its addresses.
    pub base: FileBase,
}

/// The base of addresses in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileBase {
    /// The start of the file.
    Start,
    /// Nothing: they are those that it was linked for.
    Linked,
}

/// True if a mapping of that name may hold JIT code: memory, or what tools call such memory after, a perf map; and files
/// that were deleted or lie where programs share memory.
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
    /// As the runtime gave it; need not be UTF-8.
    pub name: &'a [u8],
    /// The source file; empty if unknown.
    pub file: &'a [u8],
    /// The line in it, counted from 1; 0 if unknown.
    pub line: u32,
}

/// The functions at an address, by its place in [`Unsymbolized::addresses`]: the innermost call that was expanded there
/// first, the function that has the code last. Nothing if it is unknown.
pub type Ask<'a> = dyn Fn(usize) -> Vec<NamedCall<'a>> + 'a;

/// One function's meaning of a location, and its users.
#[derive(Debug)]
pub struct Meaning<'a, U> {
    /// The functions there, as [`Ask`] gives them.
    pub calls: Vec<NamedCall<'a>>,
    /// The users.
    pub uses: Vec<U>,
}

/// The meanings of a location for the stacks that contain it. The first is that of the location itself: of the first of
/// its users, in order of processes.
pub fn meanings<'a, U: Copy>(of_location: &[U], calls: impl Fn(&U) -> Vec<NamedCall<'a>>) -> Vec<Meaning<'a, U>> {
    let mut meanings: Vec<Meaning<'a, U>> = Vec::new();
    // A caller's line may be another than a leaf's at the same address.
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

/// A profile that is read and waits for names.
pub trait Unsymbolized: Debug {
    /// The addresses without names: each once, in ascending order.
    fn addresses(&self) -> &[BareAddress];

    /// The files that addresses are in.
    fn files(&self) -> &[CodeFile] {
        &[]
    }

    /// True if it has room for calls that were expanded into others. If it does not, the function that has the code is
    /// reported for each address, under all of the name that its runtime gave it.
    fn expands_calls(&self) -> bool {
        true
    }

    /// Writes the profile with the names that are known.
    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()>;
}

/// Reads which addresses of a profile have no name.
pub type OpenUnsymbolized = for<'d> fn(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>>;
