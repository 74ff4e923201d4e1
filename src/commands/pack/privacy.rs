//! Decides whether a private file may be packed. A recording from somebody else can name any file, and archives are
//! made to be shared. So a file that other users can't read, and that only the recording names, is left out unless the
//! user permits it.

use super::options::{OptionalPart, PackOptions};
use crate::analysis::quantity::counted;
use crate::error::{Warning, Warnings};
use crate::io;
use rustc_hash::FxHashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the user permits, and what was left out.
#[derive(Debug)]
pub(super) struct Privacy<'a> {
    pub(super) requested: &'a [OptionalPart],
    include: &'a [PathBuf],
    /// Files that were left out because they are private. Each file is listed once.
    private: Vec<PathBuf>,
    /// The same files as in `private`, to find out quickly whether a file is already listed.
    known: FxHashSet<PathBuf>,
    /// Programs that were left out because they are not on this machine.
    pub(super) missing: Vec<PathBuf>,
}

/// The reason that is shown for a private file that is left out.
const WHY: &str = "it may be private, because other users cannot read it";

impl<'a> Privacy<'a> {
    /// Creates the record of what the user permits. Nothing was left out yet.
    pub(super) fn new(options: &'a PackOptions) -> Self {
        Self {
            requested: &options.requested,
            include: &options.include,
            private: Vec::new(),
            known: FxHashSet::default(),
            missing: Vec::new(),
        }
    }

    /// Returns true if a file of this machine may be packed: all users can read it (`is_everybodys`), or the user
    /// permits to pack it. Otherwise remembers that it was left out.
    pub(super) fn permits(&mut self, file: &Path, is_everybodys: bool) -> bool {
        let is_permitted = is_everybodys
            || self.requested.contains(&OptionalPart::Private)
            || self.include.iter().any(|included| is_same(included, file));
        if !is_permitted && self.known.insert(file.to_owned()) {
            self.private.push(file.to_owned());
        }
        is_permitted
    }

    /// The files that are not packed, each with the reason.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        let missing =
            self.missing.iter().map(|path| (path.as_path(), "the version that ran is missing, or it is not a program"));
        self.private.iter().map(|path| (path.as_path(), WHY)).chain(missing)
    }

    /// Adds one warning about all private files that were left out.
    pub(super) fn report(&self, warnings: &mut Warnings) {
        if let Some(first) = self.private.first() {
            let others = self.private.len() as u64 - 1;
            let more = if others > 0 { format!(", like {}", counted(others, "other file")) } else { String::new() };
            let message = format!("not packed{more}: {WHY} (pack it with --include FILE, or all with --with private)");
            warnings.push(Warning::new(message).in_file(first, None));
        }
    }
}

/// True if both paths lead to the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    match (io::typed_metadata(one), io::typed_metadata(other)) {
        (Some(one), Some(other)) => one.dev() == other.dev() && one.ino() == other.ino(),
        _ => false,
    }
}
