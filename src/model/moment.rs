//! The events of threads that a recording contains beside their samples: names, forks, ends, losses.

use super::units::{Nanos, Pid, Tid};
use std::sync::Arc;

/// Something that happened between samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Nanos,
    /// The process.
    pub pid: Pid,
    /// The thread in it.
    pub tid: Tid,
    /// The kind.
    pub kind: MomentKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MomentKind {
    /// The thread got a name.
    Named(Arc<[u8]>),
    /// The process became another program, whose name this is.
    Executed(Arc<[u8]>),
    /// It made another process.
    Forked(Pid),
    /// The process ended.
    Exited,
    /// The recorder lost this many records.
    Lost(u64),
}
