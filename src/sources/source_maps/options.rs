//! What the user says of source maps, and where they are looked for.

use std::path::{Path, PathBuf};

/// Which maps are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMapOptions {
    /// Whether they are used at all, if the user said so.
    pub asked: Option<bool>,
    /// Whether they are used where the user didn't say.
    pub usual: bool,
    /// Whether texts of authored files are shown, where maps contain them: not in what people pass on unasked.
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
    /// Whether maps are used.
    pub fn is_on(&self) -> bool {
        self.asked.unwrap_or(self.usual)
    }
}

/// Where scripts and their maps are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapSearch<'a> {
    /// What the user said.
    pub(crate) options: &'a SourceMapOptions,
    /// Below which directory recorded files are.
    pub(crate) symfs: &'a [PathBuf],
    /// The directory of the input.
    pub(crate) beside: Option<&'a Path>,
    /// Whether files of other users are believed.
    pub(crate) force: bool,
}
