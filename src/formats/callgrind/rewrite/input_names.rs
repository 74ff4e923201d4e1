//! What the names and IDs of the input mean at the current line, and which new names functions get.

use super::index::{FileIndex, UnknownObjects};
use super::jit_functions::JitFunctions;
use crate::formats::callgrind::grammar::{
    IdSpace, Keyword, NameField, NameRef, Statement, UNKNOWN, has_raw_caller, name_field, raw_name, replace_callers,
};
use rustc_hash::FxHashMap;

/// The new name of a function.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NewName<'a> {
    /// The name of a JIT function, given by its number (see [`JitFunctions`]), followed by the suffix of the old name.
    Jit(usize, Vec<u8>),
    /// The name stays, except that addresses of callers in it were replaced. Holds the name's ID (`None` if the input
    /// has the name without an ID) and the new name.
    CallersReplaced(Option<u32>, Vec<u8>),
    /// The name stays, but it is given by an ID whose definition may not have been copied, so the name may have to be
    /// written next to the ID. Holds the ID and the name, which contains an address.
    Raw(u32, &'a [u8]),
    /// The name in the input stays.
    Unchanged,
}

/// The object of a function whose name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    /// `???`: memory without a file, in which JIT code may be.
    Unknown,
    /// A file, which contains no JIT code.
    Known,
}

/// What IDs in the input stand for. Of function names, only those that contain an address are kept.
pub(super) struct InputNames<'a> {
    index: &'a FileIndex<'a>,
    pub(super) jit: &'a dyn JitFunctions,
    unknown_objects: UnknownObjects,
    /// Names of functions that contain an address, by their IDs.
    raw_functions: FxHashMap<u32, &'a [u8]>,
}

impl<'a> InputNames<'a> {
    pub(super) fn new(index: &'a FileIndex<'a>, jit: &'a dyn JitFunctions) -> Self {
        Self { index, jit, unknown_objects: UnknownObjects::default(), raw_functions: FxHashMap::default() }
    }

    /// Notes that an ID is defined as `name`. An ID may be defined again: if the new name contains no address, the old
    /// one is forgotten.
    pub(super) fn define(&mut self, space: IdSpace, id: u32, name: &'a [u8]) {
        match space {
            IdSpace::Object => self.unknown_objects.define(id, name == UNKNOWN),
            IdSpace::Function if raw_name(name).is_some() || has_raw_caller(name) => {
                self.raw_functions.insert(id, name);
            }
            IdSpace::Function => _ = self.raw_functions.remove(&id),
            IdSpace::File => {}
        }
    }

    pub(super) fn object_kind(&self, object: Option<NameRef<'_>>) -> ObjectKind {
        if self.unknown_objects.contain(object) { ObjectKind::Unknown } else { ObjectKind::Known }
    }

    /// The name that a function's ID stands for; `None` if it contains no address.
    pub(super) fn raw_function(&self, id: u32) -> Option<&'a [u8]> {
        self.raw_functions.get(&id).copied()
    }

    /// Determines the new name of a function. A function of an unknown object whose name is an address in JIT code gets
    /// the name of the JIT function. In any object, addresses among the callers in a name become names of JIT
    /// functions.
    pub(super) fn resolve(&self, field: NameField<'a>, object: ObjectKind) -> NewName<'a> {
        let (id, name) = match field {
            NameField::Plain(name) => (None, name),
            NameField::Define(id, name) => (Some(id), name),
            NameField::Refer(id) => match self.raw_function(id) {
                Some(name) => (Some(id), name),
                None => return NewName::Unchanged,
            },
        };
        if let Some((addr, tail)) = raw_name(name)
            && let Some(entry) = self.jit.find(addr)
        {
            if object == ObjectKind::Unknown {
                return NewName::Jit(entry, self.name_callers(tail));
            }
            // In a known object, the address isn't one of JIT code, so the name stays. But the ID's definition may not
            // have been copied: in a block of an unknown object, a JIT function's name took its place.
            if let NameField::Refer(id) = field {
                return NewName::Raw(id, name);
            }
        }
        // A reference stays as it is, because the callers are replaced where the ID is defined.
        if matches!(field, NameField::Refer(_)) || !has_raw_caller(name) {
            return NewName::Unchanged;
        }
        let new_name = self.name_callers(name);
        if new_name == name { NewName::Unchanged } else { NewName::CallersReplaced(id, new_name) }
    }

    /// Replaces the addresses of callers in a function's name, or in the part of a name that lists the callers.
    pub(super) fn name_callers(&self, name: &[u8]) -> Vec<u8> {
        let resolve = |addr| {
            // Only an address that also names a function of an unknown object is certainly absolute.
            let entry = self.jit.find(addr)?;
            self.index.is_unknown_function(addr).then(|| self.jit.name(entry).to_vec())
        };
        replace_callers(name, resolve).into_owned()
    }

    /// The part of a function's name in the input that lists its callers (`'caller'caller`); empty if it has none.
    pub(super) fn callers(&self, function: NameField<'a>) -> &'a [u8] {
        let name = self.full_name(function);
        match raw_name(name) {
            Some((_, tail)) => tail,
            None => name.iter().position(|&byte| byte == b'\'').map_or(&[], |quote| &name[quote..]),
        }
    }

    /// The name of a function in the input. `(unnamed)` if it is given by an ID whose name contains no address.
    pub(super) fn full_name(&self, function: NameField<'a>) -> &'a [u8] {
        match function {
            NameField::Plain(name) | NameField::Define(_, name) => name,
            NameField::Refer(id) => self.raw_function(id).unwrap_or(b"(unnamed)"),
        }
    }
}

/// The object and files in effect at a line of the input.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InputContext<'a> {
    /// The object, from the last `ob=`.
    pub(super) object: Option<NameRef<'a>>,
    /// The file of the function, from the last `fl=`.
    pub(super) fl: Option<NameRef<'a>>,
    /// The last `fi=` or `fe=` since the last `fl=`; `None` if there was none. It matters beyond the end of a block,
    /// because some readers assume that the next function is in this file.
    pub(super) open_file: Option<NameRef<'a>>,
}

impl<'a> InputContext<'a> {
    /// Updates the object and files that are in effect, after a line was read.
    pub(super) fn apply(&mut self, line: Statement<'a>) {
        let Statement::Spec(keyword, value) = line else { return };
        let name = Some(name_field(value).into());
        match keyword {
            Keyword::Ob => self.object = name,
            Keyword::Fl => (self.fl, self.open_file) = (name, None),
            Keyword::Fi | Keyword::Fe => self.open_file = name,
            _ => {}
        }
    }
}
