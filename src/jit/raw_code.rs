//! Machine code that a runtime dumped into a directory, one file per function. Provides the bytes for perf map entries,
//! which only have names.
//!
//! MoarVM (`MVM_JIT_DUMP_BYTECODE=1`) numbers its files, with gaps: the i-th existing file belongs to the i-th line of
//! the perf map. Other directories are supported if files are named after the address of their code.

use super::{Kind, Loaded};
use crate::error::{Error, Result, Warning, Warnings};
use crate::io;
use crate::io::door::{self, Door, Holes, Named, Opened, Start};
use crate::model::Pid;
use crate::model::code::{Code, OriginId};
use crate::symbolize::code_map::CodeId;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The opened files of a directory with dumped machine code.
#[derive(Debug)]
pub(crate) struct RawCode {
    directory: PathBuf,
    /// Sorted by label: files with numbers come before files with addresses.
    files: Vec<(FileLabel, Opened)>,
}

/// Which code a file contains, according to the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileLabel {
    /// The number in a name like `NAME-NUMBER.bin`. Because the numbers have gaps, only their order counts.
    Number(u64),
    /// The address of the code: hexadecimal digits, with or without `0x`.
    Addr(u64),
}

impl RawCode {
    /// Opens all files whose names have a number or address, in a directory that the user named. Fails if there are
    /// none.
    pub(crate) fn open_directory(directory: &Path, force: bool) -> Result<Self> {
        if !io::is_directory(directory) {
            return Err(Error::new("is not a directory").in_file(directory));
        }
        let door = Door { named: Named::Recording, start: Start::Typed(directory), force };
        match Self::open(door, directory)? {
            Some(raw) => Ok(raw),
            None => {
                let why = "has no file whose name is NAME-NUMBER.bin or a hexadecimal address";
                Err(Error::new(why).in_file(directory))
            }
        }
    }

    /// Opens the files in the directory `moar-jit.PID`, next to the profile or in `/tmp`, where MoarVM puts them.
    /// `None` if there are none.
    pub(crate) fn find_usual(profile: Option<&Path>, pid: Pid, force: bool, warnings: &mut Warnings) -> Option<Self> {
        let name = format!("moar-jit.{pid}");
        // An empty path is the current directory.
        let input_dir = profile.and_then(Path::parent).unwrap_or(Path::new(""));
        let tmp_door = Door { named: Named::Convention, start: Start::Here, force };
        let input_door = Door { start: Start::Typed(input_dir), ..tmp_door };
        for (door, parent) in [(input_door, input_dir), (tmp_door, Path::new("/tmp"))] {
            match Self::open(door, &parent.join(&name)) {
                Ok(Some(raw)) => return Some(raw),
                Ok(None) => {}
                Err(error) => warnings.push(error.into_warning()),
            }
        }
        None
    }

    /// Opens all files in a directory whose names have a number or address. `None` if there are none.
    fn open(door: Door<'_>, directory: &Path) -> Result<Option<Self>> {
        let mut files = Vec::new();
        for (name, _) in door.entries(directory, |name| FileLabel::parse(name).is_some()) {
            // `None` if the file is gone since the directory was listed.
            let opened = door.open(&directory.join(&name), ANYTHING).transpose()?;
            files.extend(FileLabel::parse(&name).zip(opened));
        }
        if files.is_empty() {
            return Ok(None);
        }
        files.sort_by_key(|(label, _)| *label);
        Ok(Some(Self { directory: directory.to_owned(), files }))
    }

    /// Finds the machine code of the functions in the first perf map that was loaded. Empty if there is none.
    pub(crate) fn match_first_map(&self, loaded: &Loaded<'_>, warnings: &mut Warnings) -> FxHashMap<CodeId, &[u8]> {
        let mut by_code = FxHashMap::default();
        // The files don't say to which process they belong, so they are taken to belong to the first perf map. A
        // profile of one process has only one. The index of an account is the ID of the source's origin, by which the
        // perf map's code is found below.
        let Some(map_index) = loaded.accounts.iter().position(|account| account.kind == Kind::PerfMap) else {
            return by_code;
        };
        let (mut ids, mut lines) = (Vec::new(), Vec::new());
        for id in (0..loaded.map.code_count()).map(|index| CodeId(index as u32)) {
            let code = loaded.map.code(id);
            if code.origin == OriginId(map_index as u32) {
                ids.push(id);
                lines.push(code);
            }
        }
        if !lines.is_empty() {
            for (line, bytes) in self.match_lines(&lines, warnings) {
                by_code.insert(ids[line], bytes);
            }
        }
        by_code
    }

    /// Finds out which of the directory's files has the machine code for which line of a perf map. Returns the files'
    /// contents; the key is the index in `lines`. A file with an address in its name belongs to the line with this
    /// address. Files with numbers in their names belong to the lines in order: the first file to the first line, and
    /// so on. Files that match no line, or whose size isn't the one that the line states, are ignored with a warning.
    pub(crate) fn match_lines<'a>(&'a self, lines: &[Code<'_>], warnings: &mut Warnings) -> FxHashMap<usize, &'a [u8]> {
        let by_addr: FxHashMap<u64, usize> =
            lines.iter().enumerate().map(|(index, code)| (code.addr.0, index)).collect();
        let mut bytes_by_line = FxHashMap::default();
        let mut unmatched = 0u64;
        // Files with numbers come first and are sorted, so that each has the same index as its line.
        for (file_index, (label, Opened { bytes, .. })) in self.files.iter().enumerate() {
            let line = match label {
                FileLabel::Number(_) => Some(file_index),
                FileLabel::Addr(addr) => by_addr.get(addr).copied(),
            };
            if let Some(line) = line
                && let Some(code) = lines.get(line)
                && code.size == bytes.len() as u64
            {
                bytes_by_line.insert(line, &bytes[..]);
            } else {
                unmatched += 1;
            }
        }
        if unmatched > 0 {
            let message = format!(
                "{unmatched} of {} files with dumped machine code match no line of the perf map, or don't have the \
                 size that the line states",
                self.files.len()
            );
            warnings.push(Warning::new(message).in_file(&self.directory, None));
        }
        bytes_by_line
    }
}

/// Accepts any file, because machine code has no signature.
const ANYTHING: door::Kind = door::Kind { holes: |_| Some(Holes::Small), otherwise: "" };

impl FileLabel {
    fn parse(name: &OsStr) -> Option<Self> {
        let stem = name.to_str()?.split('.').next()?;
        if let Some((_, number)) = stem.rsplit_once('-') {
            return number.parse().ok().map(Self::Number);
        }
        let digits = stem.strip_prefix("0x").unwrap_or(stem);
        u64::from_str_radix(digits, 16).ok().map(Self::Addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_decide_the_format() {
        assert_eq!(FileLabel::parse(OsStr::new("moar-jit-0012.bin")), Some(FileLabel::Number(12)));
        assert_eq!(FileLabel::parse(OsStr::new("0x7f00.bin")), Some(FileLabel::Addr(0x7f00)));
        assert_eq!(FileLabel::parse(OsStr::new("7F00")), Some(FileLabel::Addr(0x7f00)));
        assert_eq!(FileLabel::parse(OsStr::new("README.md")), None);
    }
}
