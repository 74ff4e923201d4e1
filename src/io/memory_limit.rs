//! Limits the program's own memory (`--max-memory`, `RLIMIT_DATA` of setrlimit(2)). Without a limit, a file that
//! decompresses to more than the machine's memory would make the system kill other programs first. Mapped files don't
//! count.

use super::typed::text_of_system;
use crate::error::{Error, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

/// How much memory the program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// This many bytes.
    Bytes(u64),
    /// This percentage of the machine's memory, or of the control group's memory limit if that is lower.
    Share(u8),
}

impl Default for MemoryLimit {
    fn default() -> Self {
        Self::Share(90)
    }
}

impl FromStr for MemoryLimit {
    type Err = Error;

    /// Parses `4G`, `512M`, `64K`, a number of bytes, or `50%`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::new("is neither a size such as 4G or 512M nor a share such as 50%");
        if let Some(digits) = text.strip_suffix('%') {
            let share = digits.parse().ok().filter(|share| (1..=100).contains(share));
            return share.map(Self::Share).ok_or_else(wrong);
        }
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return Err(wrong()),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        bytes.filter(|bytes| *bytes > 0).map(Self::Bytes).ok_or_else(wrong)
    }
}

/// The limit that was in effect when the program was started.
static OLD_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Sets the limit for this process.
pub fn limit_memory(limit: MemoryLimit) -> Result<()> {
    let bytes = match limit {
        MemoryLimit::Bytes(bytes) => Some(bytes),
        MemoryLimit::Share(share) => available_memory().map(|bytes| bytes / 100 * u64::from(share)),
    };
    let Some(bytes) = bytes else { return Ok(()) };
    let old = getrlimit(Resource::Data);
    OLD_LIMIT.get_or_init(|| old);
    let current = old.current.map_or(bytes, |old| old.min(bytes));
    setrlimit(Resource::Data, Rlimit { current: Some(current), maximum: old.maximum })
        .map_err(|error| Error::new("cannot limit memory").because(std::io::Error::from(error)))
}

/// Runs `start`, which starts another program, with the original limit.
pub(super) fn without_limit<T>(start: impl FnOnce() -> T) -> T {
    let Some(old) = OLD_LIMIT.get() else { return start() };
    let own = getrlimit(Resource::Data);
    // The original limit can always be restored, and lowering the limit always works.
    let _ = setrlimit(Resource::Data, *old);
    let started = start();
    let _ = setrlimit(Resource::Data, own);
    started
}

/// The machine's memory, or the control group's limit if that is lower; `None` if neither is known.
fn available_memory() -> Option<u64> {
    let groups = text_of_system(Path::new("/proc/self/cgroup")).unwrap_or_default();
    groups.lines().filter_map(group_limit).chain(machine_memory()).min()
}

fn machine_memory() -> Option<u64> {
    let text = text_of_system(Path::new("/proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest limit of a control group and its ancestors, given a line of /proc/self/cgroup: `0::/a/b`, or
/// `9:memory:/a/b` in version 1 (cgroups(7)).
fn group_limit(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (root, file) = match fields.next()? {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let group = Path::new(fields.next()?);
    let limits = group.ancestors().filter_map(|group| {
        let path = Path::new(root).join(group.strip_prefix("/").unwrap_or(group)).join(file);
        text_of_system(&path).ok()?.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let sizes = [("1", 1), ("64K", 64 << 10), ("512m", 512 << 20), ("4GiB", 4 << 30), ("1T", 1 << 40)];
        for (text, bytes) in sizes {
            assert_eq!(text.parse::<MemoryLimit>().unwrap(), MemoryLimit::Bytes(bytes), "{text}");
        }
        assert_eq!("50%".parse::<MemoryLimit>().unwrap(), MemoryLimit::Share(50));
        for wrong in ["", "0", "G", "-1", "4X", "0%", "101%", "99999999999999T"] {
            assert!(wrong.parse::<MemoryLimit>().is_err(), "{wrong}");
        }
    }
}
