//! Options for source maps, and where to look for them.

use std::path::{Path, PathBuf};

/// Which source maps to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMapOptions {
    /// The user's choice whether to use source maps; `None` if the user didn't say.
    pub asked: Option<bool>,
    /// Whether to use source maps if the user didn't say. This depends on the command.
    pub usual: bool,
    /// True if the output may contain the text of authored files. False for outputs that users share without thinking
    /// of sources.
    pub text: bool,
    /// Source maps, WebAssembly modules and directories from the user.
    pub given: Vec<GivenMap>,
}

/// An argument of `--source-maps`: `FILE`, `DIR` or `FILE=SCRIPT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenMap {
    /// A source map or a directory of them.
    pub path: PathBuf,
    /// The script that the source map belongs to: its path or the end of its path. `None` if the user didn't say.
    pub script: Option<String>,
}

impl SourceMapOptions {
    /// True if source maps should be used.
    pub fn is_on(&self) -> bool {
        self.asked.unwrap_or(self.usual)
    }
}

/// Where to look for scripts and their source maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapSearch<'a> {
    pub(crate) options: &'a SourceMapOptions,
    /// Root directories in which to look for recorded paths (`--symfs`).
    pub(crate) symfs: &'a [PathBuf],
    /// Directories with debugging information (`--debug-dir`), in which WebAssembly modules may be.
    pub(crate) debug_dirs: &'a [PathBuf],
    /// The input's directory, in which copies of scripts, source maps and modules may be. `None` if the input isn't a
    /// file.
    pub(crate) input_dir: Option<&'a Path>,
    /// True if files of other users are trusted (`-f`).
    pub(crate) force: bool,
}
