//! Processes that are still running. Files that a process left in its container are found in `/proc/PID/root`, under
//! its process ID in the container, as perf does.
//!
//! Process IDs are reused. The running process is considered the recorded one only if its mappings agree with the
//! recorded ones (address, and device and inode or build ID) and if it began before the first sample.

use super::site::{Sampled, Site, is_our_name, wall_time};
use crate::error::Result;
use crate::io::door::{Door, Kind, Named, Opened, Root, Start};
use crate::io::{about, of_system, text_of_system};
use crate::model::process::{BuildId, CpuMode, FileId, Mapping, Process, Processes, SharedMemory};
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::symbols::files::ELF;
use object::Object;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tolerance: start times of processes have a resolution of 10 ms, the boot time one of a second.
const SLACK: Duration = Duration::from_secs(2);

/// If matching files outnumber missing ones by this many, stop comparing.
const ENOUGH: u32 = 16;

/// How many ancestors to search. Workers are children or grandchildren of their server.
const GENERATIONS: usize = 8;

/// A recorded process that is still running.
#[derive(Debug)]
pub(super) struct LiveProcess {
    /// `/proc/PID/root`
    pub(super) root: PathBuf,
    files: Root,
    /// Its process ID in its innermost PID namespace.
    pub(super) inner: Option<Pid>,
    /// True if its file system isn't ours, as in a container.
    pub(super) has_own_files: bool,
}

impl LiveProcess {
    /// Finds the running process for a recorded one. `None` if there is none. The error says why the process with this
    /// ID isn't the recorded one or can't be examined; given only for processes in a container.
    pub(super) fn find(pid: Pid, processes: &Processes, site: &Site<'_>) -> Option<Result<Self, String>> {
        let proc = site.proc?;
        let process = processes.by_pid.get(&pid).filter(|_| pid.0 > 0 && processes.is_recording)?;
        if process.exited.is_some() {
            return None;
        }
        let own = proc.join(pid.to_string());
        let status = text_of_system(&own.join("status")).ok()?;
        // Zombies no longer have mappings or files.
        if field(&status, "State:").is_some_and(|state| matches!(state[..], ["Z" | "X", ..])) {
            return None;
        }
        let namespace = |of: &Path| std::fs::read_link(of.join("ns/mnt")).ok();
        let root = own.join("root");
        let has_own_files = namespace(&own) != namespace(&proc.join("self")) || !is_our_root(&root);
        let inner = number(&status, "NSpid:");
        if site.host.is_some_and(|host| !is_our_name(proc, host)) {
            return None;
        }
        let is_elsewhere = has_own_files || inner.is_some_and(|inner| inner != pid);
        if let Err(why) = began_before(&own, proc, process, processes, site).and_then(|()| agrees(&own, process)) {
            return is_elsewhere.then_some(Err(why));
        }
        let uid = user(&status)?;
        let found = Root::open(&root, uid).map(|files| Self { root, files, inner, has_own_files });
        Some(found.map_err(|error| format!("its files cannot be accessed: {error}")))
    }

    /// The path of one of the process's files as seen from outside.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// True if the process sees the same file under this path as we do.
    pub(super) fn sees(&self, path: &Path) -> bool {
        let door = Named::Recording.door(false);
        let here = |door: Door<'_>| door.look(path).map(|about| (about.dev(), about.ino()));
        let inside = here(Door { start: Start::Inside(&self.files), ..door });
        !self.has_own_files || inside.is_some() && inside == here(door)
    }

    /// Opens a path that [`LiveProcess::outside`] returned. The file must belong to root, to us, or to the process's
    /// user.
    pub(super) fn open(&self, outside: &Path, kind: Kind, force: bool) -> Option<Result<Opened>> {
        let path = outside.strip_prefix(&self.root).ok()?;
        let door = Door { named: Named::Habit, start: Start::Inside(&self.files), force };
        door.open(path, kind).map(|opened| opened.map_err(|error| error.in_file(outside)))
    }
}

/// Opens a file that a process mapped as that process sees it, in its container. `None` if the process isn't running or
/// sees the same files as we do.
pub(crate) fn open_inside(
    (pid, path): (Pid, &Path),
    kind: Kind,
    (processes, site): (&Processes, &Site<'_>),
    force: bool,
) -> Option<Result<Opened>> {
    let live = LiveProcess::find(pid, processes, site)?.ok().filter(|live| live.has_own_files)?;
    live.open(&live.outside(path), kind, force)
}

/// Running ancestors of `pid`, nearest first, that have this memory mapped at its address. Returns their process IDs in
/// their own namespaces.
pub(super) fn parents_with(proc: &Path, pid: Pid, memory: SharedMemory) -> Vec<Pid> {
    let mut parents = Vec::new();
    let mut status = text_of_system(&proc.join(pid.to_string()).join("status"));
    while let Some(parent) =
        status.ok().and_then(|status| number(&status, "PPid:")).filter(|_| parents.len() < GENERATIONS)
    {
        let own = proc.join(parent.to_string());
        let maps = of_system(&own.join("maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        if !maps.lines().filter_map(maps_line).any(|line| line.is(memory)) {
            break;
        }
        status = text_of_system(&own.join("status"));
        parents.extend(status.as_ref().ok().and_then(|status| number(status, "NSpid:")));
    }
    parents
}

/// The last number in a field of `/proc/PID/status`: for namespaces, that of the innermost one.
pub(crate) fn number(status: &str, key: &str) -> Option<Pid> {
    field(status, key)?.last()?.parse().ok().map(Pid)
}

/// The effective user ID of a process: the second number of `Uid:`.
pub(crate) fn user(status: &str) -> Option<u32> {
    field(status, "Uid:")?.get(1)?.parse().ok()
}

fn is_our_root(root: &Path) -> bool {
    let identity = |path: &Path| about(path).map(|about| (about.dev(), about.ino()));
    identity(root) == identity(Path::new("/"))
}

fn field<'a>(status: &'a str, key: &str) -> Option<Vec<&'a str>> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_ascii_whitespace().collect())
}

/// Fails if the running process began later than the recorded one.
fn began_before(
    own: &Path,
    proc: &Path,
    process: &Process,
    processes: &Processes,
    site: &Site<'_>,
) -> Result<(), String> {
    let began = began(own, proc).ok_or("its start time is unknown")?;
    let is_later = |than: SystemTime| began > than + SLACK;
    let wall = |time: Nanos| wall_time(&processes.clock, time);
    if let Some(forked) = process.forked.and_then(|(_, time)| wall(time)) {
        let distance = began.duration_since(forked).unwrap_or_else(|before| before.duration());
        return if distance <= SLACK { Ok(()) } else { Err("another process has its PID by now".to_owned()) };
    }
    let first = || site.samples.map_or_else(Sampled::default, |samples| samples()).times;
    let first = if processes.clock.reference.is_some() { first() } else { None };
    let limit = first.and_then(|times| wall(times.first)).or(site.written);
    match limit {
        Some(limit) if is_later(limit) => Err("another process has its PID by now".to_owned()),
        Some(_) => Ok(()),
        None => Err("the time of the recording is unknown".to_owned()),
    }
}

/// When a process began: field 22 of `/proc/PID/stat` (ticks since boot) plus the boot time from `/proc/stat`.
fn began(own: &Path, proc: &Path) -> Option<SystemTime> {
    let stat = text_of_system(&own.join("stat")).ok()?;
    // The process name in parentheses may contain anything, including `)`.
    let behind_name = &stat[stat.rfind(')')? + 1..];
    let ticks: u64 = behind_name.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let boot = text_of_system(&proc.join("stat")).ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let rate = rustix::param::clock_ticks_per_second().max(1);
    let since_boot = Duration::from_secs(ticks / rate) + Duration::from_millis(ticks % rate * 1000 / rate);
    UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(since_boot)
}

/// A line of `/proc/PID/maps`.
pub(super) struct MapsLine<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    device: (u32, u32),
    pub(super) inode: u64,
    path: &'a str,
}

impl MapsLine<'_> {
    fn is(&self, memory: SharedMemory) -> bool {
        let FileId { major, minor, inode } = memory.file;
        (self.start..self.end).contains(&memory.addr.0) && (self.device, self.inode) == ((major, minor), inode)
    }
}

pub(super) fn maps_line(line: &str) -> Option<MapsLine<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let (_permissions, _offset) = (fields.next()?, fields.next()?);
    let (major, minor) = fields.next()?.split_once(':')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let device = (hex(major)? as u32, hex(minor)? as u32);
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim();
    Some(MapsLine { start: hex(start)?, end: hex(end)?, device, inode, path })
}

/// Fails if the process's mappings don't agree with the recorded ones: another file at the same address, or too many
/// files missing.
fn agrees(own: &Path, process: &Process) -> Result<(), String> {
    let maps = of_system(&own.join("maps")).map_err(|error| format!("its mappings cannot be read: {error}"))?;
    let maps = String::from_utf8_lossy(&maps);
    let lines: Vec<MapsLine<'_>> = maps.lines().filter_map(maps_line).collect();
    let (mut same, mut gone): (u32, u32) = (0, 0);
    for mapping in recorded_files(process).into_values() {
        let at = mapping.addr.0;
        match lines.iter().find(|line| (line.start..line.end).contains(&at)).filter(|line| line.inode != 0) {
            None => gone += 1,
            Some(line) => match is_same_file(line, mapping, own) {
                Some(true) => same += 1,
                Some(false) => return Err(format!("its mapping at {at:#x} is not the recorded one")),
                None => {}
            },
        }
        // Comparing all build IDs would take too long.
        if same >= gone.saturating_add(ENOUGH) {
            break;
        }
    }
    // Some libraries may have been unmapped meanwhile.
    if same > gone { Ok(()) } else { Err("its mappings are not the recorded ones".to_owned()) }
}

/// The last executable file mapping at each address, since the process's last exec.
pub(super) fn recorded_files(process: &Process) -> BTreeMap<Addr, &Mapping> {
    let since = process.execs.last().copied().unwrap_or_default();
    let of_files = process.mappings.iter().filter(|mapping| {
        let is_file = mapping.path.starts_with(b"/") && !mapping.backing().may_hold_jit_code();
        let is_dump = mapping.path.ends_with(b".dump");
        mapping.time >= since && mapping.executable && is_file && !is_dump && mapping.cpumode != CpuMode::Kernel
    });
    of_files.map(|mapping| (mapping.addr, mapping)).collect()
}

/// Compares a running process's mapping with a recorded one; `None` if that is impossible.
fn is_same_file(line: &MapsLine<'_>, mapping: &Mapping, own: &Path) -> Option<bool> {
    if let Some(file) = mapping.file {
        return Some((file.major, file.minor, file.inode) == (line.device.0, line.device.1, line.inode));
    }
    let recorded = mapping.build_id?;
    // Open the mapping itself, because users in the container may have replaced the file at its path.
    let mapped = own.join("map_files").join(format!("{:x}-{:x}", line.start, line.end));
    let by_path = || {
        let root = Root::open(&own.join("root"), 0).ok()?;
        let door = Door { named: Named::Recording, start: Start::Inside(&root), force: true };
        door.open(Path::new(line.path), ELF)?.ok()
    };
    // The kernel provides this link, and it can only lead to the mapped file.
    let opened = Named::User.door(true).open(&mapped, ELF).and_then(Result::ok).or_else(by_path)?;
    let here = object::File::parse(&*opened.bytes).ok().and_then(|file| BuildId::new(file.build_id().ok()??));
    here.map(|here| here == recorded)
}

#[cfg(test)]
mod tests;
