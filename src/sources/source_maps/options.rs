//! The user's options about source maps, and the places where they are searched.

use std::path::{Path, PathBuf};

/// The maps that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMapOptions {
    /// True if they are used at all, if the user said so.
    pub asked: Option<bool>,
    /// True if they are used where the user didn't state.
    pub usual: bool,
    /// True if texts of authored files are shown, where maps contain them: not in what people pass on unasked.
    pub text: bool,
    /// Maps and directories of maps that the user named.
    pub given: Vec<GivenMap>,
}

/// `FILE`, `DIR` or `FILE=SCRIPT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenMap {
    /// A map or a directory of maps.
    pub path: PathBuf,
    /// The script that the map belongs to: its path, or the end of it.
    pub script: Option<String>,
}

impl SourceMapOptions {
    /// True if maps are used.
    pub fn is_on(&self) -> bool {
        self.asked.unwrap_or(self.usual)
    }
}

/// The places where scripts and their maps are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapSearch<'a> {
    /// The user's options.
    pub(crate) options: &'a SourceMapOptions,
    /// Below which directory recorded files are.
    pub(crate) symfs: &'a [PathBuf],
    /// Where else modules with debugging information may be.
    pub(crate) debug_dirs: &'a [PathBuf],
    /// The directory of the input.
    pub(crate) beside: Option<&'a Path>,
    /// True if files of other users are believed.
    pub(crate) force: bool,
}
