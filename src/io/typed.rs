//! Paths that the user typed, and files of the system: they mean what they mean to any program. All others go through
//! the door ([`super::door`]).
#![expect(clippy::disallowed_methods, reason = "whoever may run this may read what he types")]

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

/// What the user typed leads to, if it leads to anything.
pub fn about(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok()
}

/// Whether what the user typed is there.
pub fn is_there(path: &Path) -> bool {
    path.exists()
}

/// Whether what the user typed is a regular file.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Whether what the user typed is a directory.
pub fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// The names in a directory that the user typed.
pub fn typed_names(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// What the kernel tells in a file of its own, below /proc or /sys.
pub fn of_system(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// The same as text.
pub fn text_of_system(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Opens such a file, to be read here and there; or what the user typed, whatever it is.
pub fn open_of_system(path: &Path) -> io::Result<File> {
    File::open(path)
}
