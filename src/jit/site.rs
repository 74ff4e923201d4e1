//! Where an input is, and when and on which machine it was recorded. Used to decide whether a jitdump or perf map
//! belongs to it.

use crate::io::read_system_file;
use crate::model::about::TimeExtent;
use crate::model::process::Clock;
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where an input is, and when and on which machine it was recorded. Unknown fields are `None`; fewer sources are then
/// found.
#[derive(Clone, Copy, Default)]
pub struct Site<'a> {
    /// The input's directory.
    pub input_dir: Option<&'a Path>,
    /// The input's modification time.
    pub written: Option<SystemTime>,
    /// The host name of the recorded machine.
    pub host: Option<&'a [u8]>,
    /// `/proc`, for looking up processes that are still running.
    pub proc: Option<&'a Path>,
    /// Reads the samples. This takes time, so it is only called if the samples are needed to find out which process a
    /// file belongs to, or when a log started.
    pub samples: Option<&'a dyn Fn() -> Sampled>,
}

impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input_dir, written, host, proc, samples } = self;
        let fields = (input_dir, written, host, proc, samples.is_some());
        f.debug_tuple("Site").field(&fields).finish()
    }
}

/// Which addresses were sampled in each process, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampled {
    /// The times of the first and last sample.
    pub times: Option<TimeExtent>,
    /// For each process, the sampled instruction addresses and how often each occurred.
    pub address_counts: BTreeMap<Pid, BTreeMap<Addr, u64>>,
    /// For each process, when each address first occurred in a sample or its call chain.
    pub first_times: BTreeMap<Pid, BTreeMap<Addr, Nanos>>,
}

/// True if `host`, the host name in a recording, is the name of this machine. Also true if the name isn't known.
pub fn is_this_machine(host: Option<&[u8]>) -> bool {
    host.is_none_or(|host| is_our_name(Path::new("/proc"), host))
}

/// True if this is the name of the machine that jitgraft runs on. `proc` is the path of `/proc`.
pub(super) fn is_our_name(proc: &Path, host: &[u8]) -> bool {
    read_system_file(&proc.join("sys/kernel/hostname")).is_ok_and(|name| name.trim_ascii() == host)
}

/// Converts a time on the recording's clock to the wall clock; `None` if the recording doesn't relate the two
/// clocks.
pub(super) fn wall_time(clock: &Clock, time: Nanos) -> Option<SystemTime> {
    let (wall, recorded) = clock.reference?;
    let nanos = u64::try_from(i128::from(wall.0) + i128::from(time.0) - i128::from(recorded.0)).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
}
