//! Collects threads, processes and mappings from lines of perf script output that show other records than samples
//! (`perf script --show-mmap-events --show-task-events`).
//!
//! ```text
//! java 18314   551.186815: PERF_RECORD_MMAP2 18314/18314: [0x5602cc667000(0x1000) @ 0x1000 fe:00 314800 0]: r-xp /usr/bin/java
//! java 18314   551.191241: PERF_RECORD_FORK(18314:18315):(18314:18314)
//! java 18315   551.191299: PERF_RECORD_COMM: java:18314/18315
//! ```

use super::frame::parse_address;
use super::header::Header;
use crate::bytes::digits::decimal;
use crate::model::mapping_kind::base_name;
use crate::model::ranges::{Ranks, SharedRanges};
use crate::model::{Addr, Nanos, Pid, Tid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const RECORD: &[u8] = b"PERF_RECORD_";

/// True if a line shows a record that is not a sample.
pub(crate) fn is_record_line(line: &[u8]) -> bool {
    // Frames begin with a tab, and their symbols might contain `PERF_RECORD`. Most headers contain no "P", so searching
    // for that letter first is faster.
    let may_be = !line.starts_with(b"\t") && memchr::memchr(RECORD[0], line).is_some();
    may_be && memchr::memmem::find(line, RECORD).is_some()
}

/// How perf prints the address of a frame whose code is in a mapped file. It depends on perf's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAddresses {
    /// perf prints an offset in the file (perf up to at least 6.1).
    Relative,
    /// perf prints the address in the process's memory (perf 7).
    Absolute,
}

/// What all record lines so far say about threads, processes and mappings. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct RecordLineFacts {
    facts: Arc<Facts>,
}

#[derive(Debug, Clone, Default)]
struct Facts {
    /// The process of each thread.
    threads: BTreeMap<Tid, Pid>,
    /// The mappings of each process.
    maps: BTreeMap<Pid, Mappings>,
    /// Each mapped file's path, with a number for it.
    paths: BTreeMap<Vec<u8>, u32>,
    /// Generates the random ranks that keep the trees in `maps` balanced.
    ranks: Ranks,
    /// The mappings of jitdumps, by process.
    markers: BTreeMap<Pid, Vec<JitdumpMarker>>,
    /// All elements of `markers`, so that a repeated line adds none.
    known_markers: BTreeSet<JitdumpMarker>,
    /// For each child process, its parent and the time of the fork.
    forks: BTreeMap<Pid, (Pid, Nanos)>,
    /// For each process, the times at which it called exec.
    execs: BTreeMap<Pid, Vec<Nanos>>,
}

/// A mapping of a file with the name of a jitdump. Runtimes map their jitdump to tell perf where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JitdumpMarker {
    /// The process that mapped the file.
    pub pid: Pid,
    /// The thread that mapped the file.
    pub tid: Tid,
    /// Path of the file, as printed.
    pub path: Vec<u8>,
    /// When the file was mapped.
    pub time: Nanos,
    /// The first address of the mapping.
    pub addr: Addr,
}

/// The mappings of a process. Where two of them overlap, the newer one is found. Copying them for a forked child is
/// cheap.
#[derive(Debug, Clone, Default)]
struct Mappings {
    /// Mappings by their address in the process.
    in_memory: SharedRanges<Mapping>,
    /// Mappings by their range in the file. The keys are those of [`file_key`].
    in_files: SharedRanges<Mapping>,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    /// The first address of the mapping.
    start: u64,
    /// Where the mapping starts in the file, in bytes.
    pgoff: u64,
    /// The file's number in [`Facts::paths`].
    path: u32,
}

/// Combines a file's number and an offset in the file into one key, so that one map can hold the ranges of all files.
/// `None` if the offset is larger than any file.
fn file_key(path: u32, offset: u64) -> Option<u64> {
    if offset >= BEYOND_ANY_FILE {
        return None;
    }
    BEYOND_ANY_FILE.checked_mul(path.into())?.checked_add(offset)
}

impl RecordLineFacts {
    /// The process of a thread; `None` if no record line shows it.
    pub fn process_of(&self, tid: Tid) -> Option<Pid> {
        self.facts.threads.get(&tid).copied()
    }

    /// True if no record line so far showed the process of a thread or a mapping.
    pub fn is_empty(&self) -> bool {
        self.facts.threads.is_empty()
    }

    /// How many mappings of jitdumps are known for a process so far.
    pub fn marker_count(&self, pid: Pid) -> usize {
        self.markers(pid).len()
    }

    /// The parent of a process and the time of the fork. `None` if no record line shows the fork.
    pub fn forked(&self, pid: Pid) -> Option<(Pid, Nanos)> {
        self.facts.forks.get(&pid).copied()
    }

    /// The times at which a process called exec.
    pub fn execs(&self, pid: Pid) -> &[Nanos] {
        self.facts.execs.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// The jitdumps that a process has mapped so far.
    pub fn markers(&self, pid: Pid) -> &[JitdumpMarker] {
        self.facts.markers.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Converts a number that perf printed for code in the file `dso` to an address in the process. Newer versions of
    /// perf print such addresses, older ones print offsets in the file. `None` if the mappings don't show which of the
    /// two it is.
    pub fn to_process_address(&self, pid: Option<Pid>, dso: &[u8], addr: u64) -> Option<u64> {
        let MappingMatches { by_address, by_offset } = self.find_mappings(pid, dso, addr);
        match (by_address, by_offset) {
            // The number fits a mapping only as an address, or (next line) only as an offset. If it fits as either or
            // as neither, it stays ambiguous (`_`).
            (Some(_), None) => Some(addr),
            (None, Some(map)) => map.start.checked_add(addr - map.pgoff),
            // The number is too large for an offset in a file, so it is an address.
            (None, None) if addr >= BEYOND_ANY_FILE => Some(addr),
            _ => None,
        }
    }

    /// Converts a number that perf printed for code in the file `dso` to an offset in that file. `printed` says whether
    /// this text has offsets or addresses in the process; if it is `None`, the mappings decide. An offset is returned
    /// as it is, even if no mapping is known. Otherwise, the result is `None` if no mapping contains the number, or if
    /// it could be either.
    pub fn to_file_offset(
        &self,
        pid: Option<Pid>,
        dso: &[u8],
        addr: u64,
        printed: Option<FileAddresses>,
    ) -> Option<u64> {
        let MappingMatches { by_address, by_offset } = self.find_mappings(pid, dso, addr);
        let mapping = match (printed, by_address, by_offset) {
            (Some(FileAddresses::Relative), ..) => return Some(addr),
            (Some(FileAddresses::Absolute), mapping, _) => mapping?,
            // The number fits a mapping as an offset, but none as an address.
            (None, None, Some(_)) => return Some(addr),
            // The number fits a mapping as an address, but none as an offset.
            (None, Some(mapping), None) => mapping,
            // The number fits a mapping both as an offset and as an address, or doesn't fit any.
            (None, ..) => return None,
        };
        mapping.pgoff.checked_add(addr - mapping.start)
    }

    /// Finds the mappings of the file `dso` that contain a number which perf printed for code in that file: one if it
    /// is an address, one if it is an offset.
    fn find_mappings(&self, pid: Option<Pid>, dso: &[u8], addr: u64) -> MappingMatches {
        let maps = pid.and_then(|pid| self.facts.maps.get(&pid));
        let (Some(maps), Some(&path)) = (maps, self.facts.paths.get(dso)) else { return MappingMatches::default() };
        let by_address = maps.in_memory.get(addr).map(|entry| entry.value);
        let by_offset = file_key(path, addr).and_then(|key| maps.in_files.get(key)).map(|entry| entry.value);
        // The mapping at the address may be of another file; then the number isn't an address.
        MappingMatches { by_address: by_address.filter(|map| map.path == path), by_offset }
    }

    /// Adds the facts of all record lines of a text. `indent` is the indentation of all lines.
    pub fn apply_all(&mut self, text: &[u8], indent: &[u8]) {
        // The end of the last line that was looked at.
        let mut line_end = 0;
        while let Some(hit) = memchr::memmem::find(&text[line_end..], RECORD).map(|hit| line_end + hit) {
            let line_start = memchr::memrchr(b'\n', &text[..hit]).map_or(0, |line_feed| line_feed + 1);
            line_end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |len| hit + len);
            let line = &text[line_start..line_end];
            let line = line.strip_prefix(indent).unwrap_or(line);
            if is_record_line(line) {
                self.apply(line);
            }
        }
    }

    /// Adds the facts of a record line. Other lines change nothing.
    pub fn apply(&mut self, line: &[u8]) {
        let Some(start) = memchr::memmem::find(line, RECORD) else { return };
        let (head, record) = (&line[..start], &line[start + RECORD.len()..]);
        // In a text without times, everything happens at time 0.
        let time = Header::parse(head).and_then(|header| header.time).unwrap_or_default();
        if let Some(rest) = record.strip_prefix(b"MMAP2 ").or_else(|| record.strip_prefix(b"MMAP ")) {
            self.apply_map(rest, time);
        } else if let Some(rest) = record.strip_prefix(b"COMM") {
            self.apply_comm(rest, time);
        } else if let Some(rest) = record.strip_prefix(b"FORK") {
            self.apply_fork(rest, time);
        }
    }

    /// Adds what an MMAP record says: the process of the thread, the mapping and, if a jitdump was mapped, its marker.
    /// `text` is the line after the record's name (`PERF_RECORD_MMAP` or `PERF_RECORD_MMAP2`).
    fn apply_map(&mut self, text: &[u8], time: Nanos) {
        let Some(MmapLine { pid, tid, start, len, pgoff, path }) = MmapLine::parse(text) else { return };
        let facts = Arc::make_mut(&mut self.facts);
        facts.threads.insert(tid, pid);
        let file_name = base_name(path);
        if file_name.starts_with(b"jit-") && file_name.ends_with(b".dump") {
            let marked = JitdumpMarker { pid, tid, path: path.to_vec(), time, addr: Addr(start) };
            if facts.known_markers.insert(marked.clone()) {
                facts.markers.entry(marked.pid).or_default().push(marked);
            }
        }
        let new_number = facts.paths.len() as u32;
        let map = Mapping { start, pgoff, path: *facts.paths.entry(path.to_vec()).or_insert(new_number) };
        let maps = facts.maps.entry(pid).or_default();
        // Each mapping is stored twice: by its addresses in memory and by its offsets in the file, which `file_key`
        // combines with the number of the file. (`ranks` keeps the trees of these maps balanced.)
        maps.in_memory.insert(start..start.saturating_add(len), map, &mut facts.ranks);
        // An offset beyond any file is damage, or the mapping isn't of a file. Then it can only be found by its
        // address.
        if let Some(first) = file_key(map.path, pgoff)
            && let Some(end) = pgoff.checked_add(len).and_then(|end| file_key(map.path, end))
        {
            maps.in_files.insert(first..end, map, &mut facts.ranks);
        }
    }

    /// Adds what a COMM record says: the process of the thread and, if the process has executed a program, that its
    /// mappings are gone. `text` is what follows `PERF_RECORD_COMM`: `: java:18314/18315` or ` exec: java:18314/18315`.
    /// Names may contain colons and slashes.
    fn apply_comm(&mut self, text: &[u8], time: Nanos) {
        let ids = text.trim_ascii_end().rsplit(|&byte| byte == b':').next();
        let Some((pid, tid)) = ids.and_then(|ids| parse_ids(ids, b'/')) else { return };
        let facts = Arc::make_mut(&mut self.facts);
        facts.threads.insert(tid, pid);
        // An exec replaces the memory of the process, so its mappings are gone.
        if text.starts_with(b" exec") {
            facts.maps.remove(&pid);
            facts.execs.entry(pid).or_default().push(time);
        }
    }

    /// Adds what a FORK record says: the process of the new thread and, if the process is new, its parent. A new
    /// process starts with its parent's mappings. `text` is what follows `PERF_RECORD_FORK`, child before parent:
    /// `(18314:18315):(18314:18314)`.
    fn apply_fork(&mut self, text: &[u8], time: Nanos) {
        let parts = text.split(|&byte| byte == b'(' || byte == b')');
        let mut ids = parts.filter_map(|part| parse_ids(part, b':'));
        let (Some((pid, tid)), Some((parent, _))) = (ids.next(), ids.next()) else { return };
        let facts = Arc::make_mut(&mut self.facts);
        facts.threads.insert(tid, pid);
        if pid == parent {
            return; // a new thread of the same process
        }
        facts.forks.insert(pid, (parent, time));
        if let Some(maps) = facts.maps.get(&parent).cloned() {
            facts.maps.insert(pid, maps);
        }
    }
}

/// The mappings that may be meant by a number that is printed for a file. The number may be an address in the process
/// or an offset in the file, so there is one candidate for each.
#[derive(Default)]
struct MappingMatches {
    /// The mapping that contains the number if it is an address.
    by_address: Option<Mapping>,
    /// The mapping that contains the number if it is an offset.
    by_offset: Option<Mapping>,
}

/// A `PERF_RECORD_MMAP2` or `PERF_RECORD_MMAP` line.
struct MmapLine<'a> {
    pid: Pid,
    tid: Tid,
    /// The first address of the mapping.
    start: u64,
    len: u64,
    /// Where the mapping starts in the file, in bytes.
    pgoff: u64,
    path: &'a [u8],
}

impl<'a> MmapLine<'a> {
    /// Parses what follows the name of the record:
    /// `18314/18314: [0x5602cc667000(0x1000) @ 0x1000 fe:00 314800 0]: r-xp /usr/bin/java`.
    fn parse(text: &'a [u8]) -> Option<Self> {
        let colon = memchr::memchr(b':', text)?;
        let (pid, tid) = parse_ids(&text[..colon], b'/')?;
        let rest = text[colon + 1..].strip_prefix(b" [0x")?;
        let (start, rest) = parse_address(rest)?;
        let (len, rest) = parse_address(rest.strip_prefix(b"(0x")?)?;
        let rest = rest.strip_prefix(b") @ ")?;
        let (pgoff, rest) = parse_address(rest.strip_prefix(b"0x").unwrap_or(rest))?;
        let rest = &rest[memchr::memmem::find(rest, b"]: ")? + b"]: ".len()..];
        let path = rest[memchr::memchr(b' ', rest)? + 1..].trim_ascii_end();
        Some(Self { pid, tid, start, len, pgoff, path })
    }
}

/// No file is this large (ext4's limit is 2^44), so a larger number is an address in memory.
pub(super) const BEYOND_ANY_FILE: u64 = 1 << 44;

/// Parses a process ID and a thread ID with a separator between them.
fn parse_ids(text: &[u8], separator: u8) -> Option<(Pid, Tid)> {
    let pid_len = memchr::memchr(separator, text)?;
    let pid = parse_id(&text[..pid_len])?;
    let tid = parse_id(&text[pid_len + 1..])?;
    Some((Pid(pid), Tid(tid)))
}

fn parse_id(text: &[u8]) -> Option<i32> {
    i32::try_from(decimal(text.trim_ascii())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(lines: &[&str]) -> RecordLineFacts {
        let mut known = RecordLineFacts::default();
        for line in lines {
            known.apply(line.as_bytes());
        }
        known
    }

    #[test]
    fn threads_and_markers() {
        let known = known(&[
            "java 9 551.191241: PERF_RECORD_FORK(18314:18315):(18314:18314)",
            "a:b 18316 551.191299: PERF_RECORD_COMM exec: a:b/c:18316/18316",
            "n 5 1.000002: PERF_RECORD_MMAP2 5/6: [0x7f0000(0x1000) @ 0 fe:00 31 0]: r-xp /tmp/a b/jit-5.dump",
        ]);
        assert_eq!(known.process_of(Tid(18315)), Some(Pid(18314)));
        assert_eq!(known.process_of(Tid(18316)), Some(Pid(18316)));
        assert_eq!(known.process_of(Tid(6)), Some(Pid(5)));
        assert_eq!((known.forked(Pid(18314)), known.execs(Pid(18316))), (None, &[Nanos(551_191_299_000)][..]));
        let marker = &known.markers(Pid(5))[0];
        assert_eq!((marker.path.as_slice(), marker.time), (&b"/tmp/a b/jit-5.dump"[..], Nanos(1_000_002_000)));
    }

    #[test]
    fn relative_addresses_need_a_base() {
        let text =
            "n 5 1.000002: PERF_RECORD_MMAP2 5/5: [0x7f0000(0x1000) @ 0x2000 fe:00 31 0]: r-xp /memfd:x (deleted)";
        let forked = "n 5 1.000002: PERF_RECORD_FORK(7:7):(5:5)";
        let known = known(&[text, forked]);
        let dso = b"/memfd:x (deleted)";
        assert_eq!(known.to_process_address(Some(Pid(5)), dso, 0x2010), Some(0x7f0010));
        assert_eq!(known.to_process_address(Some(Pid(7)), dso, 0x7f0010), Some(0x7f0010));
        assert_eq!(known.to_process_address(Some(Pid(5)), dso, 0x10), None);
        assert_eq!(known.to_process_address(Some(Pid(6)), dso, 0x2010), None);
        assert_eq!(known.to_process_address(None, dso, 0x7f12_3456_7890), Some(0x7f12_3456_7890));
    }

    #[test]
    fn broken_record_lines_change_nothing() {
        for line in [
            "PERF_RECORD_MMAP2 5/5: [0x",
            "PERF_RECORD_MMAP2 x",
            "PERF_RECORD_FORK(1:2)",
            "PERF_RECORD_COMM: a",
            "PERF_RECORD_",
        ] {
            let known = known(&[line]);
            assert!(known.facts.threads.is_empty() && known.facts.maps.is_empty(), "{line}");
        }
    }
}
