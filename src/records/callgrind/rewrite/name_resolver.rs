//! Determines the new name of a function.

use super::index::FileIndex;
use super::jit_functions::{Covered, JitFunctions};
use crate::records::callgrind::grammar::{NameField, has_raw_caller, raw_name, replace_callers};

/// The new name of a function.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResolvedName<'a> {
    /// It is a JIT function: its entry, and the suffix of the old name.
    Jit(usize, Vec<u8>),
    /// The name stays, but addresses of callers in it were replaced. Holds the ID, if it has one, and the new name.
    CallersReplaced(Option<u32>, Vec<u8>),
    /// A reference to a name made of an address. The definition may have been removed.
    Raw(u32, &'a [u8]),
    /// The name in the input stays.
    Unchanged,
}

/// Resolves names in the file.
#[derive(Clone, Copy)]
pub(super) struct NameResolver<'a> {
    pub(super) index: &'a FileIndex<'a>,
    pub(super) jit: &'a dyn JitFunctions,
}

impl<'a> NameResolver<'a> {
    /// Resolves a name as of a file offset. `in_unknown` tells whether the function's object is `???`.
    pub(super) fn resolve(self, field: NameField<'a>, in_unknown: bool, offset: u64) -> ResolvedName<'a> {
        self.resolve_with(field, in_unknown, offset, |addr| self.jit.at(addr))
    }

    /// Like [`Self::resolve`], for a function in an unknown object. Its address is probably in the range of `covered`.
    pub(super) fn resolve_near(self, field: NameField<'a>, offset: u64, covered: &Covered) -> ResolvedName<'a> {
        let at = |addr| if covered.range.contains(&addr) { covered.entry } else { self.jit.at(addr) };
        self.resolve_with(field, true, offset, at)
    }

    fn resolve_with(
        self,
        field: NameField<'a>,
        in_unknown: bool,
        offset: u64,
        at: impl FnOnce(u64) -> Option<usize>,
    ) -> ResolvedName<'a> {
        let (id, name, defines) = match field {
            NameField::Plain(name) => (None, name, true),
            NameField::Define(id, name) => (Some(id), name, true),
            NameField::Refer(id) => match self.index.raw_function(id, offset) {
                Some(name) => (Some(id), name, false),
                None => return ResolvedName::Unchanged,
            },
        };
        let head = raw_name(name).and_then(|(addr, tail)| Some((at(addr)?, tail)));
        match (head, id) {
            (Some((entry, tail)), _) if in_unknown => return ResolvedName::Jit(entry, self.callers(tail)),
            (Some(_), Some(id)) if !defines => return ResolvedName::Raw(id, name),
            _ => {}
        }
        if !defines || !has_raw_caller(name) {
            return ResolvedName::Unchanged;
        }
        let edited = self.callers(name);
        if edited != name { ResolvedName::CallersReplaced(id, edited) } else { ResolvedName::Unchanged }
    }

    /// A name whose callers' addresses are replaced.
    pub(super) fn callers(self, tail: &[u8]) -> Vec<u8> {
        let resolve = |addr| {
            let entry = self.jit.at(addr).filter(|_| self.index.is_raw_head(addr))?;
            Some(self.jit.name(entry).to_vec())
        };
        replace_callers(tail, resolve).into_owned()
    }

    /// The callers after the function's own name, as in the file.
    pub(super) fn callers_of(self, function: NameField<'a>, offset: u64) -> &'a [u8] {
        let name = self.full_name(function, offset);
        match raw_name(name) {
            Some((_, tail)) => tail,
            None => name.iter().position(|&byte| byte == b'\'').map_or(&[], |at| &name[at..]),
        }
    }

    /// The name of a function, as in the file.
    pub(super) fn full_name(self, function: NameField<'a>, offset: u64) -> &'a [u8] {
        match function {
            NameField::Plain(name) | NameField::Define(_, name) => name,
            NameField::Refer(id) => self.index.raw_function(id, offset).unwrap_or(b"(unnamed)"),
        }
    }
}
