//! Finds the build IDs of files. They come from the user, from the recording, or from the files themselves.
//!
//! A file at the recorded path may not be the recorded one, but from another machine or another build. Its build ID is
//! used only in one of these cases: the user named the root directory above it (`--symfs`); it has the recorded inode;
//! or the recording may be from this host.

use crate::analysis::quantity::counted;
use crate::commands::inject::options::{InjectContext, KnownBuildIds};
use crate::commands::inject::survey::SurveyedRecording;
use crate::error::{Result, Warning, Warnings};
use crate::formats::perf_data::Mmap;
use crate::io;
use crate::jit::{file_id, is_this_machine};
use crate::model::mapping_kind;
use crate::model::printable::readable;
use crate::model::process::{BuildId, CpuMode, FileId, Processes};
use crate::pipeline::recording::replaced::is_another;
use crate::pipeline::recording::survey::{host, is_recorded_kernel, kernel_runs_here};
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::dso::{Dso, DsoKind};
use crate::symbolize::kernel;
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::image::Image;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

/// A file in a list of build IDs: its path, and whether it belongs to the kernel or to user space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ListedFile {
    pub(super) path: Vec<u8>,
    pub(super) cpumode: CpuMode,
}

impl ListedFile {
    /// The file that a mapping record names.
    pub(super) fn from_mapping(mmap: &Mmap<'_>) -> Self {
        Self { path: listed_path(mmap.path, mmap.cpumode).to_vec(), cpumode: mmap.cpumode }
    }

    /// The file of a code object. `None` for mappings that can't have a build ID, such as anonymous memory.
    pub(super) fn from_dso(dso: &Dso) -> Option<Self> {
        let cpumode = match dso.kind {
            DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => CpuMode::User,
            DsoKind::Kernel | DsoKind::Module => CpuMode::Kernel,
            _ => return None,
        };
        Some(Self { path: listed_path(&dso.path, cpumode).to_vec(), cpumode })
    }
}

/// The path as it appears in lists of build IDs. For the kernel, this drops the reference symbol at the end
/// (`[kernel.kallsyms]_text`).
pub(super) fn listed_path(path: &[u8], cpumode: CpuMode) -> &[u8] {
    if cpumode == CpuMode::Kernel { mapping_kind::split_reference_symbol(path).0 } else { path }
}

/// Finds the build IDs of files, and remembers them by path.
#[derive(Debug)]
pub(super) struct BuildIdFinder {
    /// Build IDs from the user, by path. They take precedence over all others. `None` if the user gave none.
    known: Option<FxHashMap<Vec<u8>, BuildId>>,
    /// Build IDs that the recording states or that have been looked up, by path. `None` for a file that has no build ID
    /// or isn't on this machine.
    found: FxHashMap<Vec<u8>, Option<BuildId>>,
    /// True if the recording may be from this machine.
    is_here: bool,
    /// True if the recorded kernel may be the one that is running on this machine.
    kernel_runs: bool,
    /// The kind of vdso that the recorded programs use. `None` if they use several kinds or none.
    vdso: Option<DsoKind>,
    /// The inodes that were mapped under each path, as far as the recording states them.
    mapped: FxHashMap<Vec<u8>, BTreeSet<FileId>>,
    search: SearchOptions,
    /// Files of which the recorded version isn't on this machine.
    pub(super) missing: BTreeSet<ListedFile>,
    /// Reasons why existing files were not used.
    pub(super) warnings: Warnings,
}

impl BuildIdFinder {
    /// Prepares the search. Fails if the user's list can't be read.
    pub(super) fn new(
        survey: &SurveyedRecording<'_>,
        known: Option<&KnownBuildIds>,
        context: &InjectContext<'_>,
    ) -> Result<Self> {
        let mut search = context.search(&survey.first_pass.processes);
        search.kernel_runs_here = is_recorded_kernel(&survey.input.recording, &survey.first_pass.processes);
        let mut warnings = Warnings::new();
        let known = known.map(|known| read_known(known, &mut warnings)).transpose()?;
        let is_here = is_this_machine(host(&survey.input.recording));
        // `kernel_runs` is for recordings without the kernel's build ID. It is true if the running kernel's build ID
        // may be used instead, because neither host name nor release says that another kernel was recorded.
        // `search.kernel_runs_here` (above) is stricter: it compares build IDs, too.
        let kernel_runs = kernel_runs_here(&survey.input.recording, &survey.first_pass.processes);
        let (found, mapped, missing) =
            (recorded_build_ids(&survey.spaces), files_by_path(&survey.first_pass.processes), BTreeSet::new());
        let mut vdsos = survey.spaces.dsos().iter().map(|(_, dso)| dso).filter(|dso| dso.is_vdso()).map(|dso| dso.kind);
        // The kind of vdso, if all recorded programs use the same one.
        let first_vdso = vdsos.next();
        let vdso = first_vdso.filter(|first| vdsos.all(|kind| kind == *first));
        Ok(Self { known, found, is_here, kernel_runs, vdso, mapped, search, missing, warnings })
    }

    /// The build ID of a file. `None` if the file has no build ID or isn't on this machine. An ID from the user's list
    /// comes first, then one that the recording states or that was found before, then that of the file.
    pub(super) fn find(&mut self, file: &ListedFile) -> Option<BuildId> {
        let ListedFile { path, cpumode } = file;
        if let Some(known) = &self.known
            && let Some(id) = known.get(path)
        {
            return Some(*id);
        }
        if let Some(found) = self.found.get(path) {
            return *found;
        }
        // Kernel modules are files like others. Only the kernel itself has a name in brackets, such as
        // `[kernel.kallsyms]`.
        let is_kernel = *cpumode == CpuMode::Kernel && path.starts_with(b"[");
        // `None`: no file was found. `Some(None)`: the file has no build ID, which is no reason for a warning.
        let found =
            if is_kernel { self.find_kernel(path) } else { self.open_image(path).map(|image| image.build_id()) };
        if found.is_none() {
            self.missing.insert(file.clone());
        }
        self.found.insert(path.clone(), found.flatten());
        found.flatten()
    }

    /// The build ID of the recorded kernel. The outer `None` means that this kernel isn't on this machine, the inner
    /// one that it has no build ID.
    fn find_kernel(&mut self, path: &[u8]) -> Option<Option<BuildId>> {
        let kernel = Dso { path: path.to_vec(), build_id: None, file: None, kind: DsoKind::Kernel };
        let image_id = self.search.find_running(&kernel, &mut self.warnings).map(|image| image.build_id());
        image_id.or_else(|| self.kernel_runs.then(kernel::running_build_id))
    }

    /// Opens the file that was mapped under this path, if it is on this machine.
    fn open_image(&mut self, path: &[u8]) -> Option<Image> {
        let mut dso = Dso::from_path(path.to_vec(), None);
        if dso.is_vdso() {
            // A recording lists one build ID per path, and all kinds of vdso have the same path. So the vdso is listed
            // only if all recorded programs use the same kind.
            dso.kind = self.vdso?;
            return self.search.find_running(&dso, &mut self.warnings);
        }
        self.search.find_running(&dso, &mut self.warnings).filter(|image| self.is_recorded_file(path, image))
    }

    /// True if `image`, which was found by its path, is probably the file that was mapped when recording. It counts as
    /// that file if the user named the root directory above it (`--symfs`), if it has a recorded inode, or if the
    /// recording may be from this host and no recorded inode contradicts.
    fn is_recorded_file(&self, path: &[u8], image: &Image) -> bool {
        let is_below_root = !self.search.symfs.is_empty();
        if is_below_root {
            return true;
        }
        match (image.metadata().map(file_id), self.mapped.get(path)) {
            // `is_another` returns true if the recorded inodes contradict. It returns false if they are of other
            // devices: then they can't be compared, and the host decides.
            (Some(found), Some(recorded)) => recorded.contains(&found) || self.is_here && !is_another(found, recorded),
            _ => self.is_here,
        }
    }

    /// Warns about files that aren't on this machine and says how many sampled frames are in each.
    pub(super) fn warn_about_missing(&mut self, frames: &FxHashMap<ListedFile, u64>) {
        if self.missing.is_empty() {
            return;
        }
        let mut listed = Vec::new();
        for file in &self.missing {
            listed.push((&file.path[..], frames.get(file).copied().unwrap_or_default()));
        }
        let message = format!(
            "no build ID for {}: the files that ran are missing. Run this on the recorded machine, or pass its root \
             with --symfs DIR or the IDs with --known-build-ids",
            counted_files(listed, "frame")
        );
        self.warnings.push(Warning::new(message));
    }
}

/// Lists files by falling count, for messages: `2 files (/usr/bin/node: 31 frames, /lib/libc.so.6: 2 frames)`.
pub(in crate::commands::inject) fn counted_files(mut files: Vec<(&[u8], u64)>, what: &str) -> String {
    files.sort_by_key(|(path, count)| (Reverse(*count), *path));
    let mut texts = Vec::with_capacity(files.len());
    for (path, count) in &files {
        texts.push(match count {
            0 => readable(path).into_owned(),
            _ => format!("{}: {}", readable(path), counted(*count, what)),
        });
    }
    format!("{} ({})", counted(files.len() as u64, "file"), texts.join(", "))
}

/// For each path, the files that processes mapped under it. There are several if the file at that path was replaced.
fn files_by_path(processes: &Processes) -> FxHashMap<Vec<u8>, BTreeSet<FileId>> {
    let mut mapped = FxHashMap::<Vec<u8>, BTreeSet<FileId>>::default();
    for mapping in processes.by_pid.values().flat_map(|process| &process.mappings) {
        if let Some(file) = mapping.file {
            mapped.entry(mapping.path.clone()).or_default().insert(file);
        }
    }
    mapped
}

/// The build IDs that the recording states, by path. They are more reliable than those of the files on disk, which may
/// have changed since.
fn recorded_build_ids(spaces: &AddressSpaces) -> FxHashMap<Vec<u8>, Option<BuildId>> {
    let mut recorded = FxHashMap::default();
    for (_, dso) in spaces.dsos().iter() {
        if dso.build_id.is_some() {
            let cpumode = if dso.kind == DsoKind::Kernel { CpuMode::Kernel } else { CpuMode::User };
            recorded.insert(listed_path(&dso.path, cpumode).to_vec(), dso.build_id);
        }
    }
    recorded
}

/// Reads the user's list. Each entry is a build ID in hexadecimal, a space, and a path. A bad entry gives a warning.
fn read_known(known: &KnownBuildIds, warnings: &mut Warnings) -> Result<FxHashMap<Vec<u8>, BuildId>> {
    let (text, separator, shown) = match known {
        KnownBuildIds::List(text) => (text.clone().into_bytes(), b',', Path::new("--known-build-ids")),
        KnownBuildIds::File(path) => (io::map_file(path)?.to_vec(), b'\n', path.as_path()),
    };
    let mut known = FxHashMap::default();
    for (number, entry) in text.split(|&byte| byte == separator).enumerate().filter(|(_, entry)| !entry.is_empty()) {
        match parse_known_entry(entry) {
            Some((id, file)) => drop(known.insert(file.to_vec(), id)),
            None => {
                let message = format!("entry {} does not have the form BUILD-ID PATH", number + 1);
                warnings.push(Warning::new(message).in_file(shown, None));
            }
        }
    }
    Ok(known)
}

/// Parses an entry of the user's list: a build ID in hexadecimal, a space, and a path. `None` if it is malformed.
fn parse_known_entry(line: &[u8]) -> Option<(BuildId, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (pairs, odd) = line[..space].as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(pairs.len());
    for [high, low] in pairs {
        let high = char::from(*high).to_digit(16)?;
        let low = char::from(*low).to_digit(16)?;
        bytes.push((high << 4 | low) as u8);
    }
    let path = line[space + 1..].trim_ascii();
    Some((BuildId::new(&bytes)?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_known_build_ids() {
        let (id, path) = parse_known_entry(b"0aff /bin/a b").unwrap();
        assert_eq!((id.as_bytes(), path), (&[0x0a, 0xff][..], &b"/bin/a b"[..]));
        for bad in [&b"0af /bin/a"[..], b"xx /bin/a", b"0aff", b"00 /bin/a"] {
            assert_eq!(parse_known_entry(bad), None);
        }
    }
}
