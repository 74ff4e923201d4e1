//! Looks for dumps and maps beside a recording that, by their names, belong to none of its processes.

use super::super::context::DoctorContext;
use super::super::problem::{OfProcess, Who};
use crate::io;
use crate::io::door::{Door, Named, Start};
use crate::model::Pid;
use crate::pipeline::recording::FrameLocation;
use crate::records::jitdump;
use crate::records::jitdump::{Body, JitDump};
use crate::records::perf_map;
use crate::resolve::Location;
use crate::resolve::dso::DsoKind;
use crate::sources::Kind;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The unused dumps and maps in the recording's directory.
#[derive(Debug)]
pub(super) struct Neighbours {
    files: Vec<Neighbour>,
}

#[derive(Debug)]
struct Neighbour {
    path: PathBuf,
    kind: Kind,
    of: Pid,
    /// Start and size of each code range in the file, read when first needed.
    ranges: OnceCell<Vec<(u64, u64)>>,
}

/// At most this many files are considered. A directory with more is a collection, in which we can't guess the right
/// one.
const MOST: usize = 16;

/// At most this many bytes of a file are read: enough for a guess, and the file may be of any size.
const START: u64 = 32 << 20;

impl Neighbours {
    /// Lists the dumps and maps in the recording's directory that were not loaded.
    pub(super) fn beside(context: DoctorContext<'_>) -> Self {
        let mut files: Vec<Neighbour> = context.beside.map(listed).unwrap_or_default();
        let used = |path: &Path| context.examined.accounts().iter().any(|account| account.path == path);
        files.retain(|file| !used(&file.path));
        files.truncate(MOST);
        Self { files }
    }

    /// The file that may belong to a process without names: one that has code where the process ran unnamed code.
    pub(super) fn of(&self, process: &Who, context: DoctorContext<'_>) -> Option<OfProcess> {
        let addresses = unnamed_addresses(process.pid, context);
        let fits = |file: &&Neighbour| file.tells_of(&addresses);
        let fitting: Vec<&Neighbour> = self.files.iter().filter(fits).collect();
        // Files that don't fit are left over from other runs.
        let file = fitting.first()?;
        let (path, kind, of) = (file.path.clone(), file.kind, file.of);
        Some(OfProcess::OtherProcess { path, kind, of, fits: fitting.len() })
    }
}

fn listed(dir: &Path) -> Vec<Neighbour> {
    // The parent of the relative path `perf.data` is the empty path.
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let entries = io::typed_names(dir).into_iter().flatten();
    let mut files: Vec<_> = entries.filter_map(|name| Neighbour::of(dir.join(name))).collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// The sorted addresses of unnamed code that a process ran.
fn unnamed_addresses(pid: Pid, context: DoctorContext<'_>) -> Vec<u64> {
    let address = |place: &FrameLocation| match place.location {
        // For memory without a file, the offset is the address itself.
        Location::File(dso, addr) if place.pid == pid && context.dso(dso).kind == DsoKind::Anonymous => Some(addr),
        _ => None,
    };
    let mut addresses: Vec<u64> = context.examined.samples.chains.places().iter().filter_map(address).collect();
    addresses.sort_unstable();
    addresses
}

impl Neighbour {
    fn of(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let number = |prefix: &str, suffix: &str| {
            let numbers = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            numbers.rsplit('-').next()?.parse().ok().map(Pid)
        };
        let (kind, of) = match (number("jit-", ".dump"), number("perf-", ".map")) {
            (Some(of), _) => (Kind::JitDump, of),
            (None, of) => (Kind::PerfMap, of?),
        };
        Some(Self { path, kind, of, ranges: OnceCell::new() })
    }

    /// True if at least half of these addresses are in code ranges of the file. `addresses` must be sorted.
    fn tells_of(&self, addresses: &[u64]) -> bool {
        let mut hit = vec![false; addresses.len()];
        for &(start, size) in self.ranges.get_or_init(|| self.read_ranges()) {
            let from = addresses.partition_point(|addr| *addr < start);
            let to = addresses.partition_point(|addr| *addr < start.saturating_add(size));
            hit[from..to.max(from)].fill(true);
        }
        let hits = hit.iter().filter(|hit| **hit).count();
        hits > 0 && hits * 2 >= addresses.len()
    }

    fn read_ranges(&self) -> Vec<(u64, u64)> {
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let door = Door { start: Start::Typed(beside), ..Named::Habit.door(false) };
        let Some(Ok(bytes)) = door.head(&self.path, START) else { return Vec::new() };
        if self.kind == Kind::PerfMap {
            return perf_map::read(&bytes).0.iter().map(|entry| (entry.start, entry.size)).collect();
        }
        let range = |record: jitdump::Record<'_>| match record.body {
            Body::Load(load) => Some((load.addr, load.size)),
            _ => None,
        };
        let dump = JitDump::parse(&bytes);
        dump.map(|dump| dump.records().flatten().filter_map(range).collect()).unwrap_or_default()
    }
}
