//! Files that others may not read, and that only the recording names: they go into no archive unless the user wants it. A
//! recording of a stranger may name any file, and an archive is made to be passed on.

use super::options::{AskedFor, PackOptions};
use crate::analysis::quantity::grouped;
use crate::error::{Warning, Warnings};
use crate::io;
use rustc_hash::FxHashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the user permits, and what was left out.
#[derive(Debug)]
pub(super) struct Privacy<'a> {
    pub(super) asked_for: &'a [AskedFor],
    include: &'a [PathBuf],
    /// Files that were left out for their privacy, each once.
    private: Vec<PathBuf>,
    known: FxHashSet<PathBuf>,
    /// Programs that are not packed for other reasons.
    pub(super) missing: Vec<PathBuf>,
}

/// Why a file is left out.
const WHY: &str = "others may not read it, and only the recording names it";

impl<'a> Privacy<'a> {
    pub(super) fn new(options: &'a PackOptions) -> Self {
        Self {
            asked_for: &options.asked_for,
            include: &options.include,
            private: Vec::new(),
            known: FxHashSet::default(),
            missing: Vec::new(),
        }
    }

    /// True if a file may be packed.
    pub(super) fn permits(&mut self, here: &Path, is_everybodys: bool) -> bool {
        let is_permitted = is_everybodys
            || self.asked_for.contains(&AskedFor::Private)
            || self.include.iter().any(|named| is_same(named, here));
        if !is_permitted && self.known.insert(here.to_owned()) {
            self.private.push(here.to_owned());
        }
        is_permitted
    }

    /// What is not packed, and why.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        let missing = self.missing.iter().map(|path| (path.as_path(), "it is not here as it ran, or is no program"));
        self.private.iter().map(|path| (path.as_path(), WHY)).chain(missing)
    }

    /// One warning for all that was left out.
    pub(super) fn report(&self, warnings: &mut Warnings) {
        if let Some(first) = self.private.first() {
            let others = self.private.len() as u64 - 1;
            let more = if others > 0 { format!(", and neither are {} more", grouped(others)) } else { String::new() };
            let message = format!("is not packed{more}: {WHY} (--include FILE packs it, --with private all of them)");
            warnings.push(Warning::new(message).in_file(first, None));
        }
    }
}

/// True if both paths lead to one file.
fn is_same(named: &Path, here: &Path) -> bool {
    let place = |path| io::about(path).map(|about| (about.dev(), about.ino()));
    named == here || place(named).is_some_and(|file| place(here) == Some(file))
}
