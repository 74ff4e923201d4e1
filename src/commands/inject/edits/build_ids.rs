//! Build IDs of files that are no JIT code, as `perf inject -b` and its kin add them: so that another machine finds
//! the right files.

use crate::commands::inject::options::{BuildIdMode, InjectOptions, KnownBuildIds};
use crate::commands::inject::survey::input::Input;
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{Edit, Feature, Mmap, RawRecord, Record, Recording, Records, kind, record};
use crate::model::backing;
use crate::model::process::{BuildId, CpuMode};
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::dso::{Dso, DsoKind};
use crate::resolve::kernel;
use crate::resolve::symbols::files;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is changed for the build IDs.
#[derive(Debug, Default)]
pub(in crate::commands) struct Changes {
    pub(in crate::commands) edits: Vec<Edit>,
    /// Entries for the BUILD_ID feature of a file.
    pub(in crate::commands) entries: Vec<u8>,
}

/// Finds the build IDs that were asked for.
pub(in crate::commands) fn edits(
    input: &Input,
    options: &InjectOptions,
    spaces: &AddressSpaces,
    warnings: &mut Warnings,
) -> Result<Changes> {
    let mode = options.build_ids;
    if mode == BuildIdMode::None {
        return Ok(Changes::default());
    }
    let known = options.known_build_ids.as_ref().map(|known| read_known(known, warnings)).transpose()?;
    let mut finder = Finder { known, found: recorded(spaces), kernel_runs: kernel_runs(&input.recording) };
    let endian = input.recording.header.endian;
    let hit = match mode {
        BuildIdMode::Hit | BuildIdMode::HitMappings => hits(input, spaces),
        _ => FxHashMap::default(),
    };
    let mut changes = Changes::default();
    let mut told: FxHashSet<Vec<u8>> = FxHashSet::default();
    if mode == BuildIdMode::Hit {
        let mut list: Vec<(&(Vec<u8>, CpuMode), &u64)> = hit.iter().collect();
        list.sort_by_key(|(file, at)| (**at, *file));
        for ((path, cpumode), &at) in list {
            if let Some(id) = finder.find(path, *cpumode) {
                let insert = build_id_record(&id, path, *cpumode, endian);
                changes.entries.extend(&insert);
                changes.edits.push(Edit { at, remove: 0, insert });
            }
        }
        return Ok(changes);
    }
    for raw in Records::new(input.records(), input.base(), endian) {
        let Some(mmap) = mapping(&raw) else { continue };
        let path = listed(mmap.path, mmap.cpumode);
        let file = (path.to_vec(), mmap.cpumode);
        if mode == BuildIdMode::HitMappings && !hit.contains_key(&file) {
            continue;
        }
        let Some(id) = finder.find(path, mmap.cpumode) else { continue };
        if mode == BuildIdMode::All {
            if told.insert(file.0) {
                let insert = build_id_record(&id, path, mmap.cpumode, endian);
                changes.entries.extend(&insert);
                changes.edits.push(Edit { at: raw.offset, remove: 0, insert });
            }
        } else if mmap.build_id.is_none() {
            changes.edits.extend(with_build_id(input, &raw, mmap, id));
        }
    }
    Ok(changes)
}

/// A mapping of something that may have a build ID.
fn mapping<'data>(raw: &RawRecord<'data>) -> Option<Mmap<'data>> {
    if !matches!(raw.kind, kind::MMAP | kind::MMAP2) {
        return None;
    }
    let Ok(Record::Mmap(mmap)) = Record::parse(raw) else { return None };
    let kernel = matches!(mmap.cpumode, CpuMode::Kernel);
    let file =
        mmap.cpumode == CpuMode::User && matches!(Dso::kind_of_user_path(mmap.path), DsoKind::File | DsoKind::Vdso);
    (kernel || file).then_some(mmap)
}

/// The same record as MMAP2 with a build ID.
fn with_build_id(input: &Input, raw: &RawRecord<'_>, mmap: Mmap<'_>, id: BuildId) -> Option<Edit> {
    const PROT_READ_EXEC: u32 = 1 | 4;
    const MAP_PRIVATE: u32 = 2;
    let (prot, flags) = (mmap.prot.unwrap_or(PROT_READ_EXEC), mmap.flags.unwrap_or(MAP_PRIVATE));
    let mmap = Mmap { build_id: Some(id), prot: Some(prot), flags: Some(flags), ..mmap };
    let trailer = input.recording.sample_id(raw);
    let sample_type = input.recording.events.get(input.recording.event_of(raw)?)?.attr.sample_type;
    let insert = mmap.to_mmap2(trailer.as_ref().map(|id| (id, sample_type)), raw.endian)?;
    Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
}

/// The files that samples and their call chains are in, and the first sample of each.
fn hits(input: &Input, spaces: &AddressSpaces) -> FxHashMap<(Vec<u8>, CpuMode), u64> {
    let mut first: FxHashMap<(Vec<u8>, CpuMode), u64> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    for raw in Records::new(input.records(), input.base(), input.recording.header.endian) {
        if raw.kind != kind::SAMPLE {
            continue;
        }
        let Ok(sample) = input.recording.sample(&raw) else { continue };
        let (pid, _) = sample.pid_tid.unwrap_or_default();
        for (mode, frame) in sample.frames() {
            let Some(id) = dso_of(spaces, pid, frame.for_lookup(), sample.time, mode) else { continue };
            if seen.insert(id) {
                let dso = spaces.dsos().get(id);
                let cpumode = match dso.kind {
                    DsoKind::File | DsoKind::Vdso => CpuMode::User,
                    DsoKind::Kernel | DsoKind::Module => CpuMode::Kernel,
                    _ => continue,
                };
                first.entry((listed(&dso.path, cpumode).to_vec(), cpumode)).or_insert(raw.offset);
            }
        }
    }
    first
}

fn dso_of(
    spaces: &AddressSpaces,
    pid: Pid,
    addr: Addr,
    time: Option<Nanos>,
    mode: CpuMode,
) -> Option<crate::resolve::dso::DsoId> {
    spaces.lookup(pid, addr, time.unwrap_or(Nanos(u64::MAX)), mode).map(|place| place.dso)
}

/// How a file is called in lists of build IDs: the kernel without the symbol behind its name.
fn listed(path: &[u8], cpumode: CpuMode) -> &[u8] {
    if cpumode == CpuMode::Kernel { backing::split_reference_symbol(path).0 } else { path }
}

/// The build IDs that the recording itself has: files may have changed since.
fn recorded(spaces: &AddressSpaces) -> FxHashMap<Vec<u8>, Option<BuildId>> {
    let with_id = spaces.dsos().iter().filter(|(_, dso)| dso.build_id.is_some());
    let cpumode = |dso: &Dso| if dso.kind == DsoKind::Kernel { CpuMode::Kernel } else { CpuMode::User };
    with_id.map(|(_, dso)| (listed(&dso.path, cpumode(dso)).to_vec(), dso.build_id)).collect()
}

/// Whether the recorded kernel can be the one that runs here: then its build ID and its vdso's can be asked for.
fn kernel_runs(recording: &Recording) -> bool {
    let recorded = recording.features.get(&Feature::OSRELEASE);
    let recorded = recorded.and_then(|feature| feature.string(recording.header.endian).ok());
    let running = std::fs::read("/proc/sys/kernel/osrelease").unwrap_or_default();
    recorded.is_none_or(|release| release == running.trim_ascii())
}

/// Finds build IDs, each once.
struct Finder {
    /// Asked before all else, if the user gave a list.
    known: Option<FxHashMap<Vec<u8>, BuildId>>,
    found: FxHashMap<Vec<u8>, Option<BuildId>>,
    kernel_runs: bool,
}

impl Finder {
    fn find(&mut self, path: &[u8], cpumode: CpuMode) -> Option<BuildId> {
        if let Some(known) = &self.known
            && let Some(id) = known.get(path)
        {
            return Some(*id);
        }
        let look = || match cpumode {
            CpuMode::Kernel if path.starts_with(b"[") => kernel::running_build_id().filter(|_| self.kernel_runs),
            _ if path == b"[vdso]" => files::running_vdso().filter(|_| self.kernel_runs)?.build_id(),
            _ => files::open(Path::new(OsStr::from_bytes(path)))?.build_id(),
        };
        *self.found.entry(path.to_vec()).or_insert_with(look)
    }
}

/// Reads the list: a build ID in hexadecimal digits, a space, a path.
fn read_known(known: &KnownBuildIds, warnings: &mut Warnings) -> Result<FxHashMap<Vec<u8>, BuildId>> {
    let read =
        |path: &PathBuf| std::fs::read(path).map_err(|error| Error::new("cannot open").because(error).in_file(path));
    let (text, separator, shown) = match known {
        KnownBuildIds::List(text) => (text.clone().into_bytes(), b',', Path::new("--known-build-ids")),
        KnownBuildIds::File(path) => (read(path)?, b'\n', path.as_path()),
    };
    let mut known = FxHashMap::default();
    for (number, entry) in text.split(|&byte| byte == separator).enumerate().filter(|(_, entry)| !entry.is_empty()) {
        match known_entry(entry) {
            Some((id, file)) => drop(known.insert(file.to_vec(), id)),
            None => {
                let message = format!("entry {} is not a build ID and a path", number + 1);
                warnings.push(Warning::new(message).in_file(shown, None));
            }
        }
    }
    Ok(known)
}

fn known_entry(line: &[u8]) -> Option<(BuildId, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, odd) = line[..space].as_chunks::<2>();
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    let path = line[space + 1..].trim_ascii();
    BuildId::new(&bytes?).filter(|_| odd.is_empty()).map(|id| (id, path))
}

/// A HEADER_BUILD_ID record (`struct perf_record_header_build_id`), which is also an entry of the BUILD_ID feature.
pub(in crate::commands) fn build_id_record(id: &BuildId, path: &[u8], cpumode: CpuMode, endian: Endian) -> Vec<u8> {
    const BUILD_ID_SIZE: u16 = 1 << 15;
    const HOST: i32 = -1;
    let misc = if cpumode == CpuMode::Kernel { 1 } else { 2 };
    let mut body = match endian {
        Endian::Little => HOST.to_le_bytes().to_vec(),
        Endian::Big => HOST.to_be_bytes().to_vec(),
    };
    let bytes = id.as_bytes();
    body.extend(bytes);
    body.resize(4 + 20, 0);
    body.extend([bytes.len() as u8, 0, 0, 0]);
    body.extend(path);
    // A NUL at least, and a record whose length is a multiple of 8: the header has 8 bytes, pid and ID 28.
    body.resize((body.len() + 1).next_multiple_of(8), 0);
    record(kind::HEADER_BUILD_ID, misc | BUILD_ID_SIZE, &body, endian).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_known_build_ids() {
        let (id, path) = known_entry(b"0aff /bin/a b").unwrap();
        assert_eq!((id.as_bytes(), path), (&[0x0a, 0xff][..], &b"/bin/a b"[..]));
        for bad in [&b"0af /bin/a"[..], b"xx /bin/a", b"0aff", b"00 /bin/a"] {
            assert_eq!(known_entry(bad), None);
        }
    }

    #[test]
    fn a_build_id_record_is_read_back() {
        let id = BuildId::new(&[7; 20]).unwrap();
        let bytes = build_id_record(&id, b"/bin/x", CpuMode::User, Endian::Big);
        assert_eq!(bytes.len() % 8, 0);
        let raw = Records::new(&bytes, 0, Endian::Big).next().unwrap();
        let Ok(Record::BuildId(read)) = Record::parse(&raw) else { panic!("not read back") };
        assert_eq!((read.build_id, read.path, read.cpumode), (Some(id), &b"/bin/x"[..], CpuMode::User));
    }
}
