//! Opens paths that the user typed, and system files, like any other program does. All other paths are opened through
//! the door ([`super::door`]).
#![expect(clippy::disallowed_methods, reason = "any user who may run this may read their own input")]

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The metadata of the file at a path that the user typed; `None` if absent.
pub fn typed_metadata(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok()
}

/// True if everybody may search all directories on the way to the file, whose path the user typed.
pub(super) fn is_reachable(path: &Path) -> bool {
    const SEARCHABLE_BY_ALL: u32 = 0o001;
    let Ok(real) = path.canonicalize() else { return false };
    let mut directories = real.ancestors().skip(1);
    directories.all(|directory| fs::metadata(directory).is_ok_and(|about| about.mode() & SEARCHABLE_BY_ALL != 0))
}

/// True if a path that the user typed exists.
pub fn is_there(path: &Path) -> bool {
    path.exists()
}

/// True if a path that the user typed is a regular file.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// True if a path that the user typed is a directory.
pub fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// The names of all entries in a directory that the user typed, or the error if it can't be listed.
pub fn typed_names(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// The contents of a file below /proc or /sys, which no other user can replace.
pub fn read_system_file(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// The text of a file below /proc or /sys.
pub fn read_system_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Opens a file below /proc or /sys, or any file whose path the user typed, for reading at offsets.
pub fn open_system_file(path: &Path) -> io::Result<File> {
    File::open(path)
}
