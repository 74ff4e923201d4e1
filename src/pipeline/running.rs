//! Reads facts about a running process from `/proc`.

use crate::error::{Error, Result};
use crate::io;
use crate::io::door::{Door, Named, Opened, Root, Start};
use crate::jit::{SOURCE, status_pid, status_user};
use crate::model::Pid;
use crate::model::mapping_kind::MappingKind;
use crate::model::mapping_kind::base_name;
use crate::runtimes::{CommandLine, Environment, RUNTIMES, Runtime, RuntimeSet};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A running process, as `/proc` describes it.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    pub(crate) pid: Pid,
    pub(crate) comm: String,
    /// The ID that the process has in its own PID namespace.
    pub(crate) inner: Pid,
    /// The words of the command line.
    pub(crate) words: Vec<Vec<u8>>,
    /// The environment variables that runtimes read, as they were when the process started. They must never be printed.
    pub(crate) environment: Environment,
    pub(crate) mappings: Vec<MappedNow>,
    /// The root of the process's file system, as a path that is valid outside of its namespace (`/proc/PID/root`).
    root: PathBuf,
    /// The kernel's link to the executable of the process (`/proc/PID/exe`).
    program: PathBuf,
    /// The opened root directory of the process; `None` if we may not open it.
    files: Option<Root>,
}

/// A mapping of the process: a line of `/proc/PID/maps`.
#[derive(Debug)]
pub(crate) struct MappedNow {
    pub(crate) addresses: Range<u64>,
    pub(crate) executable: bool,
    /// The path of the mapped file, or a name such as `[heap]`; empty if there is none.
    pub(crate) path: Vec<u8>,
}

impl RunningProcess {
    /// Reads the facts about process `pid` from `dir`, its directory in `/proc`.
    pub(crate) fn read(pid: Pid, dir: &Path) -> Result<Self> {
        let read_file = |name: &str| io::read_system_file(&dir.join(name));
        let maps = read_file("maps").map_err(|error| {
            if io::is_there(dir) {
                return Error::new(format!("cannot read the mappings of process {pid}")).because(error);
            }
            Error::new(format!("no process {pid} is running"))
        })?;
        let comm = read_file("comm").unwrap_or_default();
        let status = read_file("status").unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let cmdline = read_file("cmdline").unwrap_or_default();
        // Only the owner of a process and root can read its environment. For others, it is unknown.
        let environment = match read_file("environ") {
            Ok(bytes) => known_variables(&bytes),
            Err(_) => Environment::Unknown,
        };
        let root = dir.join("root");
        let files = status_user(&status).and_then(|uid| Root::open(&root, uid).ok());
        Ok(Self {
            pid,
            comm: String::from_utf8_lossy(comm.trim_ascii_end()).into_owned(),
            // The ID that the process has in its container. Old kernels don't write this line.
            inner: status_pid(&status, "NSpid:").unwrap_or(pid),
            words: split_command_line(&cmdline),
            environment,
            mappings: maps.split(|&byte| byte == b'\n').filter_map(MappedNow::parse).collect(),
            root,
            program: dir.join("exe"),
            files,
        })
    }

    /// The runtimes in the process, judging by the files that it mapped. If these show none, by the symbols of its
    /// executable, which may contain a runtime. Empty if there are none.
    pub(crate) fn runtimes(&self) -> RuntimeSet {
        let mapped = RuntimeSet::from_files(self.mappings.iter().map(|map| &map.path[..]));
        if mapped != RuntimeSet::default() {
            return mapped;
        }
        let Ok(bytes) = io::map_file(&self.program) else { return mapped };
        object::File::parse(&bytes[..]).map_or(mapped, |file| RuntimeSet::from_elf(&file))
    }

    /// The command with which the process was started.
    pub(crate) fn command(&self) -> CommandLine<'_> {
        CommandLine { words: &self.words, environment: &self.environment }
    }

    /// The address ranges of executable memory that no file backs, which may contain JIT code.
    pub(crate) fn jit_memory(&self) -> impl Iterator<Item = &Range<u64>> {
        let is_jit = |map: &&MappedNow| map.executable && MappingKind::from_path(&map.path).may_hold_jit_code();
        self.mappings.iter().filter(is_jit).map(|map| &map.addresses)
    }

    /// Converts a path in the process's file system to one that is valid for us.
    pub(crate) fn seen_from_here(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a file of the process. It is copied, because the process may still be writing to it. `None` if it doesn't
    /// exist.
    pub(crate) fn open(&self, path: &Path, named: Named, force: bool) -> Option<Result<Opened>> {
        let door = Door { named, start: Start::Inside(self.files.as_ref()?), force };
        door.open(path, SOURCE).map(|opened| opened.map_err(|error| error.in_file(&self.seen_from_here(path))))
    }

    /// The paths of jitdumps that the process has mapped. Runtimes do that to let perf record where the jitdump is. As
    /// in `/proc/PID/maps`, ` (deleted)` follows the path of a file that is gone.
    pub(crate) fn markers(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for map in &self.mappings {
            let name = base_name(map.path.strip_suffix(b" (deleted)").unwrap_or(&map.path));
            if name.starts_with(b"jit-") && name.ends_with(b".dump") {
                paths.push(PathBuf::from(OsString::from_vec(map.path.clone())));
            }
        }
        paths.dedup();
        paths
    }
}

/// Splits the contents of `/proc/PID/cmdline` into words, each of which ends with NUL.
fn split_command_line(cmdline: &[u8]) -> Vec<Vec<u8>> {
    let words = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    if words.is_empty() {
        return Vec::new();
    }
    words.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Takes from the contents of `/proc/PID/environ` those environment variables that runtimes read.
fn known_variables(bytes: &[u8]) -> Environment {
    let known: BTreeSet<&[u8]> = RUNTIMES.iter().flat_map(Runtime::variables).map(str::as_bytes).collect();
    let assignments = bytes.split(|&byte| byte == 0).filter_map(|word| {
        let equals = memchr::memchr(b'=', word)?;
        let (name, value) = (&word[..equals], &word[equals + 1..]);
        known.contains(name).then(|| (name.to_vec(), value.to_vec()))
    });
    Environment::Known(assignments.collect())
}

impl MappedNow {
    /// Parses a line of the form `START-END PERMISSIONS OFFSET DEVICE INODE PATH`. `None` if it isn't valid.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut rest = line;
        let mut next_word = || {
            let end = rest.iter().position(|&byte| byte == b' ')?;
            let (word, after) = rest.split_at(end);
            rest = after.trim_ascii_start();
            std::str::from_utf8(word).ok()
        };
        let (start, end) = next_word()?.split_once('-')?;
        let permissions = next_word()?;
        let _offset = next_word()?;
        let _device = next_word()?;
        // If there is no path, the line may end directly after the inode. The inode is then still in `rest`, because no
        // blank follows it.
        let _inode = next_word();
        let path = if rest.first().is_some_and(u8::is_ascii_digit) { &[] } else { rest };
        Some(Self {
            addresses: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
            executable: permissions.contains('x'),
            path: path.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_have_paths_with_blanks_or_none() {
        let parse = |line: &str| {
            let map = MappedNow::parse(line.as_bytes()).unwrap();
            (map.addresses.start, map.executable, String::from_utf8(map.path).unwrap())
        };
        assert_eq!(parse("7f00-7f10 rwxp 00000000 00:00 0 "), (0x7f00, true, String::new()));
        assert_eq!(parse("7f00-7f10 rwxp 00000000 00:00 0"), (0x7f00, true, String::new()));
        assert_eq!(parse("7f00-7f10 r--p 00000000 08:01 77      /a b/c"), (0x7f00, false, "/a b/c".to_owned()));
        assert!(MappedNow::parse(b"").is_none());
    }

    #[test]
    fn the_innermost_number_is_the_last() {
        assert_eq!(status_pid("Name:\tx\nNSpid:\t4711\t77\t1\n", "NSpid:"), Some(Pid(1)));
        assert_eq!(status_pid("Name:\tx\n", "NSpid:"), None);
    }
}
