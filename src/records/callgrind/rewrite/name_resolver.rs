//! Determines the names that functions get in the rewritten file.

use super::index::FileIndex;
use super::jit_functions::{Covered, JitFunctions};
use crate::records::callgrind::grammar::{NameField, has_raw_caller, raw_name, replace_callers};

/// The new name of a function.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResolvedName<'a> {
    /// The new name is a JIT function's, given by its entry, followed by the suffix of the old name.
    Jit(usize, Vec<u8>),
    /// The name stays, except that addresses of callers in it were replaced. Holds the ID, if there is one, and the new
    /// name.
    CallersReplaced(Option<u32>, Vec<u8>),
    /// The name stays, but it was given by an ID whose definition may have been removed. Holds the ID and the name,
    /// which contains an address.
    Raw(u32, &'a [u8]),
    /// The name in the input stays.
    Unchanged,
}

/// Determines the new names of functions.
#[derive(Clone, Copy)]
pub(super) struct NameResolver<'a> {
    pub(super) index: &'a FileIndex<'a>,
    pub(super) jit: &'a dyn JitFunctions,
}

impl<'a> NameResolver<'a> {
    /// Determines the new name of a function. `in_unknown` means that its object is `???`. An ID is looked up as of the
    /// file offset `offset`.
    pub(super) fn resolve(self, field: NameField<'a>, in_unknown: bool, offset: u64) -> ResolvedName<'a> {
        self.resolve_with(field, in_unknown, offset, |addr| self.jit.find(addr))
    }

    /// Like [`Self::resolve`], for a function in an unknown object. `covered` saves the address lookup if it contains
    /// the function's address.
    pub(super) fn resolve_near(self, field: NameField<'a>, offset: u64, covered: &Covered) -> ResolvedName<'a> {
        self.resolve_with(field, true, offset, |addr| match covered.range.contains(&addr) {
            true => covered.entry,
            false => self.jit.find(addr),
        })
    }

    /// Like [`Self::resolve`]. `find_entry` finds the entry that covers the function's address.
    fn resolve_with(
        self,
        field: NameField<'a>,
        in_unknown: bool,
        offset: u64,
        find_entry: impl FnOnce(u64) -> Option<usize>,
    ) -> ResolvedName<'a> {
        let (id, name) = match field {
            NameField::Plain(name) => (None, name),
            NameField::Define(id, name) => (Some(id), name),
            NameField::Refer(id) => match self.index.raw_function(id, offset) {
                Some(name) => (Some(id), name),
                None => return ResolvedName::Unchanged,
            },
        };
        if let Some((addr, tail)) = raw_name(name)
            && let Some(entry) = find_entry(addr)
        {
            if in_unknown {
                return ResolvedName::Jit(entry, self.name_callers(tail));
            }
            if let NameField::Refer(id) = field {
                return ResolvedName::Raw(id, name);
            }
        }
        if matches!(field, NameField::Refer(_)) || !has_raw_caller(name) {
            return ResolvedName::Unchanged;
        }
        let new_name = self.name_callers(name);
        if new_name == name { ResolvedName::Unchanged } else { ResolvedName::CallersReplaced(id, new_name) }
    }

    /// Replaces the addresses of callers in a function's name, or in the part of a name that lists the callers.
    pub(super) fn name_callers(self, name: &[u8]) -> Vec<u8> {
        let resolve = |addr| {
            let entry = self.jit.find(addr)?;
            self.index.is_raw_head(addr).then(|| self.jit.name(entry).to_vec())
        };
        replace_callers(name, resolve).into_owned()
    }

    /// The part of a function's name in the input that lists its callers (`'caller'caller`); empty if it has none.
    pub(super) fn callers(self, function: NameField<'a>, offset: u64) -> &'a [u8] {
        let name = self.full_name(function, offset);
        match raw_name(name) {
            Some((_, tail)) => tail,
            None => name.iter().position(|&byte| byte == b'\'').map_or(&[], |quote| &name[quote..]),
        }
    }

    /// The name of a function in the input. `(unnamed)` if it is given by an ID whose name contains no address.
    pub(super) fn full_name(self, function: NameField<'a>, offset: u64) -> &'a [u8] {
        match function {
            NameField::Plain(name) | NameField::Define(_, name) => name,
            NameField::Refer(id) => self.index.raw_function(id, offset).unwrap_or(b"(unnamed)"),
        }
    }
}
