//! What inject is asked for.

use crate::io::{InPath, OutPath};
use crate::sources::SourceOptions;
use std::path::PathBuf;

/// What to inject, and where to.
#[derive(Debug)]
pub struct InjectOptions {
    /// The recording.
    pub input: InPath,
    /// The recording that is written: in file form to a file, in pipe form to standard output.
    pub output: OutPath,
    /// Where the images go; beside the output (for standard output: into the current directory) if not said.
    pub image_dir: Option<PathBuf>,
    /// Whether the images have all functions, or those that samples touch.
    pub all_functions: bool,
    /// Whether the images also go to the build-ID cache.
    pub cache: bool,
    /// Whether JIT code is injected.
    pub jit: bool,
    /// Which build IDs of other files are added.
    pub build_ids: BuildIdMode,
    /// Build IDs by path, in place of looking into the files.
    pub known_build_ids: Option<KnownBuildIds>,
    /// Whether copies of user stacks become plain call chains. Then all functions go into the images: which of
    /// them the chains touch is known too late.
    pub convert_callchain: bool,
    /// Whether JIT code gets addresses of its own, for readers that take an image for a library that is loaded once.
    /// Copies of user stacks, which have the old ones, then become plain call chains.
    pub relocate: bool,
    /// Where names come from.
    pub sources: SourceOptions,
}

/// Which files get a build ID, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildIdMode {
    /// None but the images of JIT code.
    #[default]
    None,
    /// `-b`: files with samples, by a record of its own before the first of them.
    Hit,
    /// `--buildid-all`: every mapped file, by a record of its own before its first mapping.
    All,
    /// `-B`: files with samples, in their mapping records.
    HitMappings,
    /// `--mmap2-buildid-all`: every mapped file, in its mapping records.
    AllMappings,
}

/// `--known-build-ids`: what is known of files that are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownBuildIds {
    /// `ID PATH`, separated by commas.
    List(String),
    /// A file with one of them on each line, as `perf buildid-list` prints them.
    File(PathBuf),
}

impl From<&str> for KnownBuildIds {
    /// As perf inject takes it; what has no space can be no list, and is a file without the `file://`, too.
    fn from(text: &str) -> Self {
        match text.strip_prefix("file://") {
            None if text.contains(' ') => Self::List(text.to_owned()),
            path => Self::File(path.unwrap_or(text).into()),
        }
    }
}
