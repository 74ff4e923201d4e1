use crate::model::interner::id;

id! {
    /// A name: an interned byte string.
    NameId,
    /// A [`Frame`](super::Frame).
    FrameId,
    /// A stack: a node of the prefix tree.
    StackId,
    /// A [`Track`](super::Track): the thread, or the group of threads, that a row belongs to.
    TrackId
}
