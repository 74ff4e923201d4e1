//! The place of an input, and its facts about the time and the machine it was recorded on: what dumps and maps are held
//! against that do not state themselves whose they are.

use crate::io::of_system;
use crate::model::about::TimeExtent;
use crate::model::process::Clock;
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The place of an input, and the time and machine of recording. Unknown values are `None`; less is found then.
#[derive(Clone, Copy, Default)]
pub struct Site<'a> {
    /// The directory of the input.
    pub beside: Option<&'a Path>,
    /// When the input was written.
    pub written: Option<SystemTime>,
    /// The name of the recorded machine.
    pub host: Option<&'a [u8]>,
    /// The directory of this machine's processes: `/proc`.
    pub proc: Option<&'a Path>,
    /// Reads the samples, which takes time: asked only where nothing else shows whose a file is.
    pub samples: Option<&'a dyn Fn() -> Sampled>,
}

impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { beside, written, host, proc, samples } = self;
        let fields = (beside, written, host, proc, samples.is_some());
        f.debug_tuple("Site").field(&fields).finish()
    }
}

/// The addresses of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampled {
    /// From the first to the last.
    pub times: Option<TimeExtent>,
    /// The addresses at which each process was interrupted, and how often.
    pub at: BTreeMap<Pid, BTreeMap<Addr, u64>>,
    /// When each process's addresses were first seen, in samples or their call chains.
    pub first: BTreeMap<Pid, BTreeMap<Addr, Nanos>>,
}

/// True if a machine of this name can be the one that this runs on.
pub fn is_this_machine(host: Option<&[u8]>) -> bool {
    host.is_none_or(|host| is_our_name(Path::new("/proc"), host))
}

pub(super) fn is_our_name(proc: &Path, host: &[u8]) -> bool {
    of_system(&proc.join("sys/kernel/hostname")).is_ok_and(|name| name.trim_ascii() == host)
}

/// A time of the recording's clock as the wall clock had it, if the recording shows how they relate.
pub(super) fn wall_time(clock: &Clock, time: Nanos) -> Option<SystemTime> {
    let (wall, own) = clock.reference?;
    let nanos = u64::try_from(i128::from(wall.0) + i128::from(time.0) - i128::from(own.0)).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
}
