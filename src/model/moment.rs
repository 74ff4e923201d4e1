//! What a recording tells of its threads beside their samples: names, forks, ends, losses.

use super::units::{Nanos, Pid, Tid};
use std::sync::Arc;

/// Something that happened between samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Nanos,
    /// In which process.
    pub pid: Pid,
    /// In which of its threads.
    pub tid: Tid,
    /// What.
    pub kind: MomentKind,
}

/// What can happen.
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
    /// The recorder lost so many records.
    Lost(u64),
}
