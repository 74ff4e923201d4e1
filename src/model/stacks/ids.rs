//! The numbers of the entries of a profile.

use crate::model::interner::id;

id! {
    /// An interned byte string.
    NameId,
    /// An interned [`Frame`](super::Frame).
    FrameId,
    /// A node of the prefix tree: the stack from the root to here.
    StackId,
    /// A [`Track`](super::Track): the thread (or merged group) to which a row belongs.
    TrackId
}
