//! Information about a running process from `/proc`.

use crate::error::{Error, Result};
use crate::io;
use crate::io::door::{Door, Named, Opened, Root, Start};
use crate::model::Pid;
use crate::model::backing::Backing;
use crate::model::backing::base_name;
use crate::runtimes::{CommandLine, Environment, RUNTIMES, Runtime, RuntimeSet};
use crate::sources::{SOURCE, status_pid, status_user};
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A running process.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    pub(crate) pid: Pid,
    pub(crate) comm: String,
    /// The process ID in its own namespace.
    pub(crate) inner: Pid,
    /// Its command line.
    pub(crate) words: Vec<Vec<u8>>,
    /// Environment variables that runtimes read, as they were when the process started. Never printed.
    pub(crate) environment: Environment,
    pub(crate) mappings: Vec<MappedNow>,
    /// The root of its file system, as seen from outside.
    root: PathBuf,
    /// The kernel's link to its executable.
    program: PathBuf,
    /// Its root directory, opened, if we are allowed to.
    files: Option<Root>,
}

/// A line of `/proc/PID/maps`.
#[derive(Debug)]
pub(crate) struct MappedNow {
    pub(crate) addresses: Range<u64>,
    pub(crate) executable: bool,
    pub(crate) path: Vec<u8>,
}

impl RunningProcess {
    /// Reads a process's directory in `/proc`.
    pub(crate) fn read(pid: Pid, dir: &Path) -> Result<Self> {
        let read = |name: &str| io::of_system(&dir.join(name));
        let maps = read("maps").map_err(|error| {
            let message = match io::is_there(dir) {
                true => format!("what process {pid} has mapped cannot be read"),
                false => "is not a file, and no process with that ID is running".to_owned(),
            };
            Error::new(message).because(error)
        })?;
        let comm = read("comm").unwrap_or_default();
        let status = read("status").unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let words = read("cmdline").unwrap_or_default();
        let words = words.strip_suffix(b"\0").unwrap_or(&words);
        // The environment of other users' processes may not be readable.
        let environment = read("environ").map_or(Environment::Unknown, |bytes| known_variables(&bytes));
        let root = dir.join("root");
        let files = status_user(&status).and_then(|uid| Root::open(&root, uid).ok());
        Ok(Self {
            pid,
            comm: String::from_utf8_lossy(comm.trim_ascii_end()).into_owned(),
            inner: status_pid(&status, "NSpid:").unwrap_or(pid),
            words: if words.is_empty() {
                Vec::new()
            } else {
                words.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
            },
            environment,
            mappings: maps.split(|&byte| byte == b'\n').filter_map(MappedNow::parse).collect(),
            root,
            program: dir.join("exe"),
            files,
        })
    }

    /// The runtimes of the process, according to the files that it mapped, or else the contents of its executable.
    pub(crate) fn runtimes(&self) -> RuntimeSet {
        let mapped = RuntimeSet::of_files(self.mappings.iter().map(|map| &map.path[..]));
        if mapped != RuntimeSet::default() {
            return mapped;
        }
        let Ok(bytes) = io::map_file(&self.program) else { return mapped };
        object::File::parse(&bytes[..]).map_or(mapped, |file| RuntimeSet::of_elf(&file))
    }

    /// The command that it was started with.
    pub(crate) fn command(&self) -> CommandLine<'_> {
        CommandLine { words: &self.words, environment: &self.environment }
    }

    /// Its executable memory that no file backs.
    pub(crate) fn jit_memory(&self) -> impl Iterator<Item = &Range<u64>> {
        let jit = |map: &&MappedNow| map.executable && Backing::of(&map.path).may_hold_jit_code();
        self.mappings.iter().filter(jit).map(|map| &map.addresses)
    }

    /// A path of the process, as seen from outside.
    pub(crate) fn seen_from_here(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens one of the process's files and copies it, because the process may be writing to it. `None` if it doesn't
    /// exist.
    pub(crate) fn open(&self, path: &Path, named: Named, force: bool) -> Option<Result<Opened>> {
        let door = Door { named, start: Start::Inside(self.files.as_ref()?), force };
        door.open(path, SOURCE).map(|opened| opened.map_err(|error| error.in_file(&self.seen_from_here(path))))
    }

    /// The jitdumps that it has mapped so that perf records them.
    pub(crate) fn markers(&self) -> Vec<PathBuf> {
        let is_dump = |path: &[u8]| {
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            let name = base_name(path);
            name.starts_with(b"jit-") && name.ends_with(b".dump")
        };
        let mut paths: Vec<PathBuf> = self.mappings.iter().filter(|map| is_dump(&map.path)).map(path_of).collect();
        paths.dedup();
        paths
    }
}

/// Only the environment variables that runtimes read.
fn known_variables(bytes: &[u8]) -> Environment {
    let read: BTreeSet<&[u8]> = RUNTIMES.iter().flat_map(Runtime::variables).map(str::as_bytes).collect();
    let assignments = bytes.split(|&byte| byte == 0).filter_map(|word| {
        let equals = memchr::memchr(b'=', word)?;
        read.contains(&word[..equals]).then(|| (word[..equals].to_vec(), word[equals + 1..].to_vec()))
    });
    Environment::Known(assignments.collect())
}

fn path_of(map: &MappedNow) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(map.path.clone()))
}

impl MappedNow {
    /// `START-END PERMISSIONS OFFSET DEVICE INODE PATH`
    fn parse(line: &[u8]) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let end = rest.iter().position(|&byte| byte == b' ')?;
            let (word, behind) = rest.split_at(end);
            rest = behind.trim_ascii_start();
            std::str::from_utf8(word).ok()
        };
        let (start, end) = word()?.split_once('-')?;
        let executable = word()?.contains('x');
        word()?; // offset
        word()?; // device
        // If there is no path, the line may end right after the inode.
        let _inode = word();
        let path = if rest.first().is_some_and(u8::is_ascii_digit) { &[] } else { rest };
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self { addresses: number(start)?..number(end)?, executable, path: path.to_vec() })
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
