//! Names and statements of the output.

use super::draft::ChunkDraft;
use crate::formats::callgrind::grammar::{IdSpace, NameRef};

/// A name in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputName<'a> {
    /// One of the input.
    Input(NameRef<'a>),
    /// One that has no id yet.
    New(&'a [u8]),
}

impl OutputName<'_> {
    pub(super) fn write(self, space: IdSpace, draft: &mut ChunkDraft) {
        match self {
            Self::Input(NameRef::Id(id)) => draft.put(format!("({id})").as_bytes()),
            Self::Input(NameRef::Name(name)) => draft.put(name),
            Self::New(name) => draft.new_name(space, name),
        }
    }
}

/// What readers of the output have in mind where that is not what the input says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReaderContext<'a> {
    /// The object.
    pub(super) ob: Option<OutputName<'a>>,
    /// The last `fl=`, to which `fn=` returns.
    pub(super) fl: Option<OutputName<'a>>,
    /// The current file, after `fi=` and `fe=` too.
    pub(super) file: Option<OutputName<'a>>,
}

/// Writes `key=name`.
pub(super) fn put_statement(draft: &mut ChunkDraft, key: &[u8], name: OutputName<'_>, space: IdSpace) {
    draft.put(key);
    name.write(space, draft);
    draft.put(b"\n");
}
