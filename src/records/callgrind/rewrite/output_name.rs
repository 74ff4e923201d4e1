//! Names and statements of the output.

use super::draft::{ChunkDraft, Piece};
use crate::records::callgrind::grammar::NameRef;

/// The name of an object or file in the output.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputName<'a> {
    /// One of the input.
    Input(NameRef<'a>),
    /// One that has no id yet.
    New(&'a [u8]),
}

impl PartialEq for OutputName<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Input(one), Self::Input(other)) => one == other,
            (Self::New(one), Self::New(other)) => same_name(one, other),
            _ => false,
        }
    }
}

/// True if two names are the same. Mostly they are one, or empty: then they need not be looked at. (Some processors
/// take very long to compare nothing at an address where nothing is.)
pub(super) fn same_name(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || std::ptr::eq(one, other) || one == other)
}

/// The context of readers of the output where that differs from the input's.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReaderContext<'a> {
    /// The object.
    pub(super) ob: Option<OutputName<'a>>,
    /// The last `fl=`, to which `fn=` returns.
    pub(super) fl: Option<OutputName<'a>>,
    /// The current file, after `fi=` and `fe=` too.
    pub(super) file: Option<OutputName<'a>>,
}

/// Writes `ob=name` or `cob=name`.
#[inline]
pub(super) fn put_object<'a>(draft: &mut ChunkDraft<'a>, key: &[u8], name: OutputName<'a>) {
    put_statement(draft, key, name, Piece::Object);
}

/// Writes `fl=name`, or one of the other statements that give a file.
#[inline]
pub(super) fn put_file<'a>(draft: &mut ChunkDraft<'a>, key: &[u8], name: OutputName<'a>) {
    put_statement(draft, key, name, Piece::File);
}

#[inline]
fn put_statement<'a>(
    draft: &mut ChunkDraft<'a>,
    key: &[u8],
    name: OutputName<'a>,
    new: impl FnOnce(&'a [u8]) -> Piece<'a>,
) {
    draft.put(key);
    match name {
        OutputName::Input(NameRef::Id(id)) => draft.put_id(id),
        OutputName::Input(NameRef::Name(name)) => draft.put(name),
        OutputName::New(name) => draft.place(new(name)),
    }
    draft.put(b"\n");
}
