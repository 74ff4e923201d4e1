//! Processes that are still running. Files that a process left in its container are found in `/proc/PID/root`, under
//! its process ID in the container, as perf does.
//!
//! Process IDs are reused. The running process is considered the recorded one only if its mappings agree with the
//! recorded ones (address, and device and inode or build ID) and if it began before the first sample.

use super::site::{Site, is_our_name, wall_time};
use crate::error::Result;
use crate::io::door::{Door, Kind, Named, Opened, Root, Start};
use crate::io::{read_system_file, read_system_text, typed_metadata};
use crate::model::process::{BuildId, CpuMode, FileId, Mapping, Process, Processes, SharedMemory};
use crate::model::{Addr, Pid};
use crate::symbolize::symbols::files::ELF;
use object::Object;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tolerance when a process's start time is compared with other times. The kernel states the start in ticks of 10 ms
/// since boot, and the boot time only in seconds.
const SLACK: Duration = Duration::from_secs(2);

/// The comparison of mappings ends once those that agree with the recorded ones outnumber the missing ones by this
/// much.
const ENOUGH: u32 = 16;

/// The maximum number of ancestors to search. Workers are children or grandchildren of their server.
const GENERATIONS: usize = 8;

/// A recorded process that is still running.
#[derive(Debug)]
pub(super) struct LiveProcess {
    /// The process's root directory as we see it, `/proc/PID/root`.
    pub(super) root: PathBuf,
    /// The opened root directory. Files are opened relative to it.
    files: Root,
    /// The process ID in the process's innermost PID namespace.
    pub(super) inner: Option<Pid>,
    /// True if the process sees other files than we do under the same paths, as in a container.
    pub(super) has_own_files: bool,
}

impl LiveProcess {
    /// Finds a recorded process that is still running. `None` if it isn't running, or if its ID now belongs to another
    /// process outside of containers. An error if the process runs but its files can't be accessed, or if its ID now
    /// belongs to another process in a container; then the error says why that process isn't the recorded one.
    pub(super) fn find(pid: Pid, processes: &Processes, site: &Site<'_>) -> Option<Result<Self, String>> {
        let proc = site.proc?;
        // Only recordings state all the mappings by which a running process is recognized; other inputs don't.
        if pid.0 <= 0 || !processes.is_recording {
            return None;
        }
        let process = processes.by_pid.get(&pid)?;
        if process.exited.is_some() {
            return None;
        }
        let process_dir = proc.join(pid.to_string());
        let status = read_system_text(&process_dir.join("status")).ok()?;
        // Zombies have no mappings or files any more.
        if status_field(&status, "State:").is_some_and(|state| matches!(state[..], ["Z" | "X", ..])) {
            return None;
        }
        let root = process_dir.join("root");
        // The process sees other files than we do if it has another mount namespace or another root directory.
        let has_own_files = mount_namespace(&process_dir) != mount_namespace(&proc.join("self")) || !is_our_root(&root);
        // The ID that the process has in its own PID namespace.
        let inner = status_pid(&status, "NSpid:");
        // The recording is from a machine with another name, so its processes don't run here.
        if site.host.is_some_and(|host| !is_our_name(proc, host)) {
            return None;
        }
        let is_same_process = check_start_time(&process_dir, proc, process, processes, site)
            .and_then(|()| check_mappings(&process_dir, process));
        if let Err(why) = is_same_process {
            // A reused ID is only worth an error if the process might have left its files in a container.
            let is_in_container = has_own_files || inner.is_some_and(|inner| inner != pid);
            return if is_in_container { Some(Err(why)) } else { None };
        }
        let uid = status_user(&status)?;
        match Root::open(&root, uid) {
            Ok(files) => Some(Ok(Self { root, files, inner, has_own_files })),
            Err(error) => Some(Err(format!("the process's files cannot be accessed: {error}"))),
        }
    }

    /// The path by which we can open a file of the process, given the path that the process uses.
    pub(super) fn path_from_outside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// True if the process sees the same file under this path as we do.
    pub(super) fn sees(&self, path: &Path) -> bool {
        if !self.has_own_files {
            return true;
        }
        let our_door = Named::Recording.door(false);
        let its_door = Door { start: Start::Inside(&self.files), ..our_door };
        let (Some(its_file), Some(our_file)) = (its_door.look(path), our_door.look(path)) else { return false };
        (its_file.dev(), its_file.ino()) == (our_file.dev(), our_file.ino())
    }

    /// Opens a path that [`LiveProcess::path_from_outside`] returned. The file must belong to root, to us, or to the
    /// process's user. `None` if there is no such file.
    pub(super) fn open(&self, outside: &Path, kind: Kind, force: bool) -> Option<Result<Opened>> {
        let path = outside.strip_prefix(&self.root).ok()?;
        let door = Door { named: Named::Convention, start: Start::Inside(&self.files), force };
        door.open(path, kind).map(|opened| opened.map_err(|error| error.in_file(outside)))
    }
}

/// Opens a file by the path that a process in a container uses. `None` if the process isn't running or its files can't
/// be accessed, if it sees the same files as we do, or if the file doesn't exist.
pub(crate) fn open_inside(
    pid: Pid,
    path: &Path,
    kind: Kind,
    processes: &Processes,
    site: &Site<'_>,
    force: bool,
) -> Option<Result<Opened>> {
    let live = LiveProcess::find(pid, processes, site)?.ok()?;
    if !live.has_own_files {
        return None;
    }
    live.open(&live.path_from_outside(path), kind, force)
}

/// Finds running ancestors of process `pid` that map the same shared memory at the same address, from the parent
/// upwards; stops at the first ancestor that doesn't. Returns the process IDs that the ancestors have in their own PID
/// namespaces.
pub(super) fn find_parents_sharing(proc: &Path, pid: Pid, memory: SharedMemory) -> Vec<Pid> {
    let mut parents = Vec::new();
    // `/proc/PID/status` of the process whose parent is looked at next.
    let mut status = read_system_text(&proc.join(pid.to_string()).join("status"));
    while parents.len() < GENERATIONS
        && let Some(parent) = status.ok().and_then(|status| status_pid(&status, "PPid:"))
    {
        let parent_dir = proc.join(parent.to_string());
        let maps = read_system_file(&parent_dir.join("maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        if !maps.lines().filter_map(MapsLine::parse).any(|line| line.is_of(memory)) {
            break;
        }
        status = read_system_text(&parent_dir.join("status"));
        parents.extend(status.as_ref().ok().and_then(|status| status_pid(status, "NSpid:")));
    }
    parents
}

/// The process ID in a field of `/proc/PID/status`, such as `NSpid:`. If the field lists the ID in each nested
/// namespace, the innermost one.
pub(crate) fn status_pid(status: &str, key: &str) -> Option<Pid> {
    status_field(status, key)?.last()?.parse().ok().map(Pid)
}

/// The effective user ID in `/proc/PID/status`: the second number of `Uid:`.
pub(crate) fn status_user(status: &str) -> Option<u32> {
    status_field(status, "Uid:")?.get(1)?.parse().ok()
}

/// The words of a field of `/proc/PID/status`; `None` if there is no such field. `key` includes the colon.
fn status_field<'a>(status: &'a str, key: &str) -> Option<Vec<&'a str>> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_ascii_whitespace().collect())
}

fn mount_namespace(process_dir: &Path) -> Option<PathBuf> {
    std::fs::read_link(process_dir.join("ns/mnt")).ok()
}

fn is_our_root(root: &Path) -> bool {
    device_and_inode(root) == device_and_inode(Path::new("/"))
}

fn device_and_inode(path: &Path) -> Option<(u64, u64)> {
    typed_metadata(path).map(|about| (about.dev(), about.ino()))
}

/// Fails if the running process can't be the recorded one: it began at another time than the recorded fork or, if no
/// fork was recorded, after the first sample. `process_dir` is its directory in `proc`.
fn check_start_time(
    process_dir: &Path,
    proc: &Path,
    process: &Process,
    processes: &Processes,
    site: &Site<'_>,
) -> Result<(), String> {
    const REUSED: &str = "another process now has this PID";
    let began = read_start_time(process_dir, proc).ok_or("the start time of the running process is unknown")?;
    // If the fork was recorded, the start time must be that of the fork.
    if let Some((_, time)) = process.forked
        && let Some(forked) = wall_time(&processes.clock, time)
    {
        // If `began` is earlier, the error holds the difference.
        let distance = began.duration_since(forked).unwrap_or_else(|before| before.duration());
        return if distance <= SLACK { Ok(()) } else { Err(REUSED.to_owned()) };
    }
    // If the fork wasn't recorded, the process must have begun before the first sample, or at least before the
    // recording was written.
    match first_sample_time(processes, site).or(site.written) {
        Some(limit) if began > limit + SLACK => Err(REUSED.to_owned()),
        Some(_) => Ok(()),
        None => Err("the time of the recording is unknown".to_owned()),
    }
}

/// When the first sample was taken, on the wall clock. `None` if there are no samples or the recording doesn't relate
/// its clock to the wall clock.
fn first_sample_time(processes: &Processes, site: &Site<'_>) -> Option<SystemTime> {
    // Reading the samples takes time, and without a reference time it would be in vain.
    processes.clock.reference?;
    let samples = site.samples?;
    wall_time(&processes.clock, samples().times?.first)
}

/// When a process began, on the wall clock: field 22 of `/proc/PID/stat` (ticks since boot) plus the boot time from
/// `/proc/stat`.
fn read_start_time(process_dir: &Path, proc: &Path) -> Option<SystemTime> {
    let stat = read_system_text(&process_dir.join("stat")).ok()?;
    // The process name in parentheses may contain anything, including `)`. It is field 2.
    let after_name = &stat[stat.rfind(')')? + 1..];
    // The first field after the name is field 3, so field 22 is the 20th of the remaining ones.
    let ticks: u64 = after_name.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let system_stat = read_system_text(&proc.join("stat")).ok()?;
    let boot: u64 = system_stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    let millis = ticks % ticks_per_second * 1000 / ticks_per_second;
    let since_boot = Duration::from_secs(ticks / ticks_per_second) + Duration::from_millis(millis);
    UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(since_boot)
}

/// A line of `/proc/PID/maps`.
pub(super) struct MapsLine<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Major and minor number of the device that the file is on.
    device: (u32, u32),
    /// The inode of the mapped file; 0 if no file is mapped.
    pub(super) inode: u64,
    /// The path of the mapped file. If no file is mapped, the kernel's name for the memory, such as `[heap]`, or
    /// nothing.
    path: &'a str,
}

impl<'a> MapsLine<'a> {
    /// Parses a line of `/proc/PID/maps`. `None` if it is malformed.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (_permissions, _offset) = (fields.next()?, fields.next()?);
        let (major, minor) = fields.next()?.split_once(':')?;
        let device = (parse_hex(major)? as u32, parse_hex(minor)? as u32);
        let inode = fields.next()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim();
        Some(Self { start: parse_hex(start)?, end: parse_hex(end)?, device, inode, path })
    }

    fn contains(&self, addr: Addr) -> bool {
        (self.start..self.end).contains(&addr.0)
    }

    fn is_of(&self, memory: SharedMemory) -> bool {
        self.contains(memory.addr) && self.is_file(memory.file)
    }

    fn is_file(&self, file: FileId) -> bool {
        (self.device, self.inode) == ((file.major, file.minor), file.inode)
    }
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Fails if the running process's mappings don't agree with the recorded ones: another file at the same address, or too
/// many recorded files missing.
fn check_mappings(process_dir: &Path, process: &Process) -> Result<(), String> {
    let maps = read_system_file(&process_dir.join("maps"))
        .map_err(|error| format!("the process's mappings cannot be read: {error}"))?;
    let maps = String::from_utf8_lossy(&maps);
    let lines: Vec<MapsLine<'_>> = maps.lines().filter_map(MapsLine::parse).collect();
    // How many of the recorded files are still mapped at the same address, and how many aren't.
    let (mut same, mut missing): (u32, u32) = (0, 0);
    for mapping in recorded_files(process).into_values() {
        match lines.iter().find(|line| line.contains(mapping.addr)) {
            Some(line) if line.inode != 0 => match is_same_file(line, mapping, process_dir) {
                Some(true) => same += 1,
                Some(false) => {
                    let addr = mapping.addr.0;
                    return Err(format!(
                        "at address {addr:#x}, the running process has a different file mapped than the recorded one"
                    ));
                }
                // It can't be determined whether the process still has the recorded file at this address, so the
                // mapping isn't counted.
                None => {}
            },
            // At this address, nothing is mapped any more, or only memory that no file backs.
            _ => missing += 1,
        }
        // Comparing every build ID would take too long, so stop when there is enough agreement.
        if same >= missing.saturating_add(ENOUGH) {
            break;
        }
    }
    // Tolerates a few missing libraries, which the process may have unmapped since.
    if same > missing { Ok(()) } else { Err("too many of the recorded mappings are gone".to_owned()) }
}

/// For each address at which a mapping begins, the last executable file that was mapped there since the process's last
/// exec.
pub(super) fn recorded_files(process: &Process) -> BTreeMap<Addr, &Mapping> {
    let last_exec = process.execs.last().copied().unwrap_or_default();
    let mut files = BTreeMap::new();
    for mapping in process.mappings.iter().filter(|mapping| mapping.time >= last_exec && mapping.executable) {
        let is_file = mapping.path.starts_with(b"/") && !mapping.kind().may_hold_jit_code();
        // A process may map its jitdump as executable, so that the recording mentions it. The jitdump isn't code.
        let is_dump = mapping.path.ends_with(b".dump");
        if is_file && !is_dump && mapping.cpumode != CpuMode::Kernel {
            files.insert(mapping.addr, mapping);
        }
    }
    files
}

/// Tells whether a running process's mapping is of the same file as a recorded one. `None` if that can't be determined:
/// neither inode nor build ID was recorded, or the file's build ID can't be read.
fn is_same_file(line: &MapsLine<'_>, mapping: &Mapping, process_dir: &Path) -> Option<bool> {
    if let Some(file) = mapping.file {
        return Some(line.is_file(file));
    }
    let recorded = mapping.build_id?;
    let opened = open_mapped_file(line, process_dir)?;
    let object = object::File::parse(&*opened.bytes).ok()?;
    let found = BuildId::new(object.build_id().ok()??)?;
    Some(found == recorded)
}

/// Opens the file that a process has mapped. Opens the mapping itself if the kernel permits that, because users in the
/// container may have replaced the file at the mapping's path; otherwise opens the file at that path. Files of any
/// owner are opened, because only their build IDs are compared.
fn open_mapped_file(line: &MapsLine<'_>, process_dir: &Path) -> Option<Opened> {
    // Following this link is safe: the kernel provides it, and it always leads to the mapped file.
    let link = process_dir.join("map_files").join(format!("{:x}-{:x}", line.start, line.end));
    let door = Door { named: Named::User, start: Start::Here, force: true };
    if let Some(Ok(opened)) = door.open(&link, ELF) {
        return Some(opened);
    }
    // 0 (root) is a user whose files are trusted. That doesn't matter here, because `force` permits files of any owner.
    let root = Root::open(&process_dir.join("root"), 0).ok()?;
    let door = Door { named: Named::Recording, start: Start::Inside(&root), force: true };
    door.open(Path::new(line.path), ELF)?.ok()
}

#[cfg(test)]
mod tests;
