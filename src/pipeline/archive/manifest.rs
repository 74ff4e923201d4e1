//! The manifest of an archive: a JSON file that describes the other files.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Component, Path};

/// The name of an archive's first file, by which archives are recognized.
pub(super) const MARK: &str = "jitgraft-pack";

/// The name of an archive's second file: the manifest.
pub(super) const MANIFEST: &str = "manifest.json";

/// The version of the manifest's format. Archives of another version are rejected.
const VERSION: u32 = 1;

/// The maximum number of files, which is more than any recording needs.
pub(super) const MOST_FILES: usize = 100_000;

/// The manifest: what an archive contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    /// A description of the recorded machine, for people to read.
    pub(crate) machine: Option<String>,
    /// The recorded machine's host name.
    pub(crate) host: Option<String>,
    /// The files, in the order of the archive.
    pub(crate) files: Vec<PackedFile>,
}

/// A file in an archive, as the manifest describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedFile {
    /// The file's path in the archive.
    pub(crate) path: String,
    pub(crate) role: Role,
    /// The process that the file belongs to, by its recorded ID; `None` if it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<i32>,
    /// For ELF files: the build ID in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) build_id: Option<String>,
    /// The modification time of the original file: seconds since 1970, and nanoseconds.
    pub(crate) modified: (i64, i64),
    /// The size in bytes.
    pub(crate) size: u64,
    /// SHA-256 of the contents in hexadecimal digits.
    pub(crate) sha256: String,
}

/// What a file in an archive is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The recording. If that is a directory (`perf record --threads`), its main file (`data`).
    Recording,
    /// A further file of a recording that is a directory: the records that one of perf's threads wrote.
    Stream,
    Jitdump,
    PerfMap,
    /// A runtime's log or a core dump.
    Log,
    /// An executable or library that the recorded processes had mapped.
    Program,
    /// Debugging information.
    Debug,
    /// The kernel's symbols.
    Kallsyms,
    /// A script or its source map.
    Script,
    /// Source text of a script.
    Source,
}

impl Manifest {
    /// Creates a manifest that lists these files.
    pub(crate) fn new(machine: Option<String>, host: Option<String>, files: Vec<PackedFile>) -> Self {
        Self { version: VERSION, machine, host, files }
    }

    /// Parses a manifest. Fails if it is of another version, or if it lists files that must not be unpacked.
    pub(super) fn parse(text: &[u8]) -> Result<Self> {
        /// The part of a manifest that all versions have. It is parsed first, so that other versions get a clear error.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged = |error| Error::new(format!("{MANIFEST} is damaged")).because(error);
        let Versioned { version } = serde_json::from_slice(text).map_err(damaged)?;
        if version != VERSION {
            let message = format!(
                "has archive format {version}, but this version of jitgraft reads only format {VERSION}; pack the \
                 recording again with this version"
            );
            return Err(Error::new(message));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(damaged)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Fails if the files would be too many or too large, or if one has a forbidden path or is listed twice.
    fn check(&self) -> Result<()> {
        /// The maximum total size of all files, unpacked.
        const MOST_BYTES: u64 = 64 << 30;
        let total = self.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
        if self.files.len() > MOST_FILES || total > MOST_BYTES {
            let (files, gib) = (self.files.len(), total.div_ceil(1 << 30));
            let most = MOST_BYTES >> 30;
            let message = format!(
                "unpacks to {files} files with {gib} GiB in total; the limits are {MOST_FILES} files and {most} GiB"
            );
            return Err(Error::new(message));
        }
        // A file that is listed thousands of times would be read as often, although the archive contains it only once.
        // So a small archive could keep its reader busy.
        let mut paths = HashSet::new();
        for file in &self.files {
            check_path(&file.path)?;
            if !paths.insert(&file.path) {
                return Err(Error::new(format!("lists {:?} twice", file.path)));
            }
        }
        Ok(())
    }
}

/// Fails if a path would lead out of the archive.
fn check_path(path: &str) -> Result<()> {
    let is_plain = |part| matches!(part, Component::Normal(_));
    let mut components = Path::new(path).components();
    // Splitting at `/` also finds `.` and empty parts, which `components` skips. They would allow several spellings of
    // one path.
    let mut parts = path.split('/');
    let has_odd_part = parts.any(|part| ["", ".", ".."].contains(&part));
    if path.contains('\0') || has_odd_part || !components.all(is_plain) {
        return Err(Error::new(format!("contains a file named {path:?}, which is outside the archive")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> PackedFile {
        let (sha256, path) = (String::new(), path.to_owned());
        PackedFile { path, role: Role::Log, pid: None, build_id: None, modified: (0, 0), size, sha256 }
    }

    fn listing(files: &[PackedFile]) -> Vec<u8> {
        serde_json::to_vec(&Manifest::new(None, None, files.to_vec())).unwrap()
    }

    fn with(path: &str, size: u64) -> Vec<u8> {
        listing(&[file(path, size), file("other", size)])
    }

    #[test]
    fn paths_that_lead_elsewhere_and_sizes_beyond_measure_are_refused() {
        assert_eq!(Manifest::parse(&with("root/usr/bin/node", 1 << 30)).unwrap().files.len(), 2);
        for path in ["/etc/passwd", "../x", "root/../../x", "root//x", "./x", "root/", "", "a\0b"] {
            let said = Manifest::parse(&with(path, 1)).unwrap_err().to_string();
            assert!(said.contains("which is outside the archive"), "{path:?}: {said}");
        }
        let said = Manifest::parse(&with("x", 33 << 30)).unwrap_err().to_string();
        assert!(said.contains("unpacks to 2 files with 66 GiB in total"), "{said}");
        assert!(Manifest::parse(&with("x", u64::MAX)).is_err());
    }

    #[test]
    fn a_file_that_is_listed_twice_is_refused() {
        let said =
            Manifest::parse(&listing(&[file("data", 1), file("x", 1), file("data", 1)])).unwrap_err().to_string();
        assert!(said.contains("lists \"data\" twice"), "{said}");
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        let said = Manifest::parse(b"{\"version\": 7, \"more\": []}").unwrap_err().to_string();
        assert!(said.contains("has archive format 7"), "{said}");
        assert!(Manifest::parse(b"{}").unwrap_err().to_string().contains("manifest.json is damaged"));
    }
}
