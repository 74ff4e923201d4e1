//! Finds the build IDs of files: told by the user, by the recording, or by the files themselves.

use super::listed_file::{ListedFile, listed};
use crate::commands::inject::options::KnownBuildIds;
use crate::commands::inject::survey::SurveyedRecording;
use crate::error::{Result, Warning, Warnings};
use crate::io;
use crate::model::process::{BuildId, CpuMode};
use crate::records::perf_data::{Feature, Recording};
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::dso::{Dso, DsoKind};
use crate::resolve::kernel;
use crate::resolve::symbols::files::{self, ELF, SearchOptions};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Finds build IDs, each once.
#[derive(Debug)]
pub(super) struct BuildIdFinder {
    /// Asked before all else, if the user gave a list.
    known: Option<FxHashMap<Vec<u8>, BuildId>>,
    found: FxHashMap<Vec<u8>, Option<BuildId>>,
    /// Whether the recorded kernel can be the one that runs here.
    kernel_runs: bool,
    search: SearchOptions,
    /// Why files are not looked at that are there.
    pub(super) warnings: Warnings,
}

impl BuildIdFinder {
    /// Knows what the user and the recording tell.
    pub(super) fn new(
        survey: &SurveyedRecording<'_>,
        known: Option<&KnownBuildIds>,
        search: &SearchOptions,
    ) -> Result<Self> {
        let (search, mut warnings) = (search.clone(), Warnings::new());
        let known = known.map(|known| read_known(known, &mut warnings)).transpose()?;
        let kernel_runs = kernel_runs(&survey.input.recording);
        Ok(Self { known, found: recorded(&survey.spaces), kernel_runs, search, warnings })
    }

    /// The build ID of a file, if it has one.
    pub(super) fn find(&mut self, file: &ListedFile) -> Option<BuildId> {
        let ListedFile { path, cpumode } = file;
        if let Some(known) = &self.known
            && let Some(id) = known.get(path)
        {
            return Some(*id);
        }
        let look = || match cpumode {
            CpuMode::Kernel if path.starts_with(b"[") => kernel::running_build_id().filter(|_| self.kernel_runs),
            _ if path == b"[vdso]" => files::running_vdso().filter(|_| self.kernel_runs)?.build_id(),
            _ => self.search.open(Path::new(OsStr::from_bytes(path)), ELF, &mut self.warnings)?.build_id(),
        };
        *self.found.entry(path.clone()).or_insert_with(look)
    }
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
    let running = io::of_system(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    recorded.is_none_or(|release| release == running.trim_ascii())
}

/// Reads the list: a build ID in hexadecimal digits, a space, a path.
fn read_known(known: &KnownBuildIds, warnings: &mut Warnings) -> Result<FxHashMap<Vec<u8>, BuildId>> {
    let (text, separator, shown) = match known {
        KnownBuildIds::List(text) => (text.clone().into_bytes(), b',', Path::new("--known-build-ids")),
        KnownBuildIds::File(path) => (io::map_file(path)?.to_vec(), b'\n', path.as_path()),
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
}
