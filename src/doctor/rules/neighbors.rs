//! Finds dumps and maps in the directory of a recording that were not loaded because, by their names, they belong to
//! none of its processes. One of them may still be a process's missing file: in a container, the process had another
//! ID.

use super::super::context::DoctorContext;
use super::super::process::ExaminedProcess;
use crate::io;
use crate::io::door::{Door, Named, Start};
use crate::jit::Kind;
use crate::jit::jitdump::{Body, JitDump};
use crate::jit::perf_map;
use crate::model::Pid;
use crate::symbolize::Location;
use crate::symbolize::dso::DsoKind;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The dumps and maps in the recording's directory that were not loaded.
#[derive(Debug)]
pub(super) struct Neighbors {
    files: Vec<Neighbor>,
}

/// A dump or map that may have the missing names of a process although, by its name, it belongs to another one.
#[derive(Debug)]
pub(super) struct ForeignFile {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The process that wrote the file, according to the file's name.
    pub(super) pid: Pid,
    /// The number of files whose addresses match the unnamed code, including this one. If there are several, we can't
    /// tell which is the right one.
    pub(super) fits: usize,
}

#[derive(Debug)]
struct Neighbor {
    path: PathBuf,
    kind: Kind,
    /// The process that wrote the file, according to its name.
    pid: Pid,
    /// The start address and size of each code range in the file. The file is read when these are first asked for.
    ranges: OnceCell<Vec<(u64, u64)>>,
}

/// Maximum number of dumps and maps to look at. A directory with more of them holds files of many runs, among which the
/// right one can't be guessed.
const MOST: usize = 16;

/// Maximum number of bytes to read of each file. The start of a file is enough to see whether its addresses match, and
/// files may be very large.
const START: u64 = 32 << 20;

impl Neighbors {
    /// Lists the dumps and maps in the recording's directory that were not loaded.
    pub(super) fn list(context: DoctorContext<'_>) -> Self {
        let mut files = context.directory.map(list_directory).unwrap_or_default();
        files.retain(|file| context.examined.accounts().iter().all(|account| account.path != file.path));
        files.truncate(MOST);
        Self { files }
    }

    /// Finds the file that may have the missing names of a process: the first one that has code at half or more of the
    /// addresses at which the process ran unnamed code. `None` if there is no such file.
    pub(super) fn find_for(&self, process: &ExaminedProcess, context: DoctorContext<'_>) -> Option<ForeignFile> {
        let addresses = unnamed_addresses(process.pid, context);
        // A file without code at most of these addresses is left over from another run.
        let fitting: Vec<&Neighbor> = self.files.iter().filter(|file| file.covers_half_of(&addresses)).collect();
        let Neighbor { path, kind, pid, .. } = fitting.first()?;
        Some(ForeignFile { path: path.clone(), kind: *kind, pid: *pid, fits: fitting.len() })
    }
}

/// The dumps and maps in a directory, sorted by path.
fn list_directory(dir: &Path) -> Vec<Neighbor> {
    // For the relative path `perf.data`, `dir` is the empty path, which stands for the current directory.
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let names = io::typed_names(dir).into_iter().flatten();
    let mut files: Vec<Neighbor> = names.filter_map(|name| Neighbor::from_path(dir.join(name))).collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// The sorted addresses at which a process ran unnamed JIT code.
fn unnamed_addresses(pid: Pid, context: DoctorContext<'_>) -> Vec<u64> {
    let mut addresses = Vec::new();
    for place in context.examined.samples.chains.places() {
        // In memory that no file backs, the offset is the address itself.
        if let Location::File(dso, addr) = place.location
            && place.pid == pid
            && context.dso(dso).kind == DsoKind::Anonymous
        {
            addresses.push(addr);
        }
    }
    addresses.sort_unstable();
    addresses
}

impl Neighbor {
    /// Recognizes a dump or map by its file name. `None` unless the name is that of a jitdump or perf map, and contains
    /// a process ID.
    fn from_path(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (kind, numbers) = if let Some(dump) = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"))
        {
            (Kind::JitDump, dump)
        } else {
            (Kind::PerfMap, name.strip_prefix("perf-")?.strip_suffix(".map")?)
        };
        // The process ID is the last number: there are also dumps called `jit-TID-PID.dump`.
        let pid = Pid(numbers.rsplit('-').next()?.parse().ok()?);
        Some(Self { path, kind, pid, ranges: OnceCell::new() })
    }

    /// True if at least half of `addresses` are in code ranges of the file. `addresses` must be sorted.
    fn covers_half_of(&self, addresses: &[u64]) -> bool {
        let mut covered = vec![false; addresses.len()];
        for &(start, size) in self.ranges.get_or_init(|| self.read_ranges()) {
            let count_below = |limit: u64| addresses.partition_point(|addr| *addr < limit);
            let (from, to) = (count_below(start), count_below(start.saturating_add(size)));
            covered[from..to.max(from)].fill(true);
        }
        let count = covered.iter().filter(|covered| **covered).count();
        count > 0 && count * 2 >= addresses.len()
    }

    /// Reads the start address and size of each code range. Empty if the file can't be read.
    fn read_ranges(&self) -> Vec<(u64, u64)> {
        let directory = self.path.parent().unwrap_or(Path::new(""));
        // The file was found by its name, so anybody may have put it there. `Named::Convention` says to open it with
        // care.
        let door = Door { named: Named::Convention, start: Start::Typed(directory), force: false };
        let Some(Ok(bytes)) = door.head(&self.path, START) else { return Vec::new() };
        if self.kind == Kind::PerfMap {
            let (entries, _skipped) = perf_map::read(&bytes);
            return entries.iter().map(|entry| (entry.start, entry.size)).collect();
        }
        let mut ranges = Vec::new();
        if let Ok(dump) = JitDump::parse(&bytes) {
            for record in dump.records().flatten() {
                if let Body::Load(load) = record.body {
                    ranges.push((load.addr, load.size));
                }
            }
        }
        ranges
    }
}
