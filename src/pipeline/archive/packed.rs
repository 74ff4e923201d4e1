//! An archive that is open, as the recording in it is read.

use super::manifest::{Manifest, PackedFile, Role};
use crate::error::{Error, Result};
use crate::io::{Archive, Bytes};
use crate::model::Pid;
use crate::resolve::symbols::files::SearchOptions;
use crate::sources::{GivenFile, SourceOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of files by their recorded paths.
pub(crate) const ROOT: &str = "root";

/// An archive that is open.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    archive: Arc<Archive>,
    manifest: Manifest,
}

impl Packed {
    /// The unpacked files, and the list of them.
    pub(super) fn new(archive: Arc<Archive>, manifest: Manifest) -> Self {
        Self { archive, manifest }
    }

    /// The main file of the recording.
    pub(crate) fn recording(&self) -> Result<Bytes> {
        self.bytes(Role::Recording).next().ok_or_else(|| Error::new("has no recording in it"))
    }

    /// Its further streams of records, in their order.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (PathBuf, Bytes)> {
        let paths = self.of_role(Role::Stream).map(|file| self.archive.path().join(&file.path));
        paths.zip(self.bytes(Role::Stream))
    }

    /// Lets its files be looked for first, behind those that the user named.
    pub(crate) fn add_to_search(&self, search: &mut SearchOptions) {
        search.symfs.push(self.archive.path().join(ROOT));
        search.debug_dirs.push(self.archive.path().to_owned());
    }

    /// Names its dumps, maps and logs, each for its process.
    pub(crate) fn add_to_sources(&self, sources: &mut SourceOptions) {
        self.add_to_search(&mut sources.search);
        let SourceOptions { jitdump, perf_map, jit_log, .. } = sources;
        for (role, list) in [(Role::Jitdump, jitdump), (Role::PerfMap, perf_map), (Role::Log, jit_log)] {
            list.extend(
                self.of_role(role)
                    .map(|file| GivenFile { path: self.archive.path().join(&file.path), pid: file.pid.map(Pid) }),
            );
        }
    }

    fn of_role(&self, role: Role) -> impl Iterator<Item = &PackedFile> {
        self.manifest.files.iter().filter(move |file| file.role == role)
    }

    fn bytes(&self, role: Role) -> impl Iterator<Item = Bytes> {
        self.of_role(role).filter_map(|file| self.archive.bytes(Path::new(&file.path)))
    }
}
