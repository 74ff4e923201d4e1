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
use crate::resolve::code_map::CodeId;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The files of a directory, opened.
#[derive(Debug)]
pub(crate) struct RawCode {
    directory: PathBuf,
    files: Vec<(FileLabel, Opened)>,
}

/// What a file's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileLabel {
    /// A sequence number.
    Number(u64),
    /// The address of the code.
    Addr(u64),
}

impl RawCode {
    /// Opens all files with a suitable name in a directory that the user named.
    pub(crate) fn typed(directory: &Path, force: bool) -> Result<Self> {
        if !io::is_directory(directory) {
            return Err(Error::new("is not a directory").in_file(directory));
        }
        let door = Door { named: Named::Recording, start: Start::Typed(directory), force };
        let raw = Self::open(door, directory)?;
        let nothing = || Error::new("has no file named NAME-NUMBER.bin or like a hexadecimal address");
        raw.ok_or_else(|| nothing().in_file(directory))
    }

    /// Opens the files where MoarVM puts them: next to the profile, or in `/tmp`. `None` if there are none.
    pub(crate) fn usual(profile: Option<&Path>, pid: Pid, force: bool, warnings: &mut Warnings) -> Option<Self> {
        let name = format!("moar-jit.{pid}");
        let beside = profile.and_then(Path::parent).unwrap_or(Path::new(""));
        let tmp = Door { named: Named::Habit, start: Start::Here, force };
        let doors = [(Door { start: Start::Typed(beside), ..tmp }, beside), (tmp, Path::new("/tmp"))];
        doors.into_iter().find_map(|(door, parent)| match Self::open(door, &parent.join(&name)) {
            Ok(raw) => raw,
            Err(error) => {
                warnings.push(error.into_warning());
                None
            }
        })
    }

    /// `None` if the directory contains no suitable file.
    fn open(door: Door<'_>, directory: &Path) -> Result<Option<Self>> {
        let mut files = Vec::new();
        for (name, _) in door.entries(directory, |name| label(name).is_some()) {
            let opened = door.open(&directory.join(&name), ANYTHING).transpose()?;
            files.extend(label(&name).zip(opened));
        }
        files.sort_by_key(|(label, _)| *label);
        Ok((!files.is_empty()).then(|| Self { directory: directory.to_owned(), files }))
    }

    /// The bytes for the code of the first perf map.
    pub(crate) fn of_maps(&self, loaded: &Loaded<'_>, warnings: &mut Warnings) -> FxHashMap<CodeId, &[u8]> {
        let map = loaded.accounts.iter().position(|account| account.kind == Kind::PerfMap);
        let ids = (0..loaded.map.code_count()).map(|at| CodeId(at as u32));
        let all = ids.map(|id| (id, loaded.map.code(id)));
        let is_listed = |code: &Code<'_>| map.is_some_and(|at| code.origin == OriginId(at as u32));
        let (ids, lines): (Vec<CodeId>, Vec<Code<'_>>) = all.filter(|(_, code)| is_listed(code)).unzip();
        if lines.is_empty() {
            return FxHashMap::default();
        }
        self.of(&lines, warnings).into_iter().map(|(line, bytes)| (ids[line], bytes)).collect()
    }

    /// The bytes for each line of a perf map, by index in `lines`. Files whose size differs from the line's are
    /// ignored.
    pub(crate) fn of<'a>(&'a self, lines: &[Code<'_>], warnings: &mut Warnings) -> FxHashMap<usize, &'a [u8]> {
        let by_addr: FxHashMap<u64, usize> = lines.iter().enumerate().map(|(at, code)| (code.addr.0, at)).collect();
        let mut found = FxHashMap::default();
        let mut unfit = 0u64;
        // Files are sorted: those with sequence numbers come first.
        for (place, (label, Opened { bytes, .. })) in self.files.iter().enumerate() {
            let at = match label {
                FileLabel::Number(_) => Some(place),
                FileLabel::Addr(addr) => by_addr.get(addr).copied(),
            };
            match at.and_then(|at| Some((at, lines.get(at)?))) {
                Some((at, code)) if code.size == bytes.len() as u64 => _ = found.insert(at, &bytes[..]),
                _ => unfit += 1,
            }
        }
        if unfit > 0 {
            let message = format!(
                "{unfit} of {} files match no line of the perf map, or have a different size",
                self.files.len()
            );
            warnings.push(Warning::new(message).in_file(&self.directory, None));
        }
        found
    }
}

/// Machine code has no signature.
const ANYTHING: door::Kind = door::Kind { holes: |_| Some(Holes::Small), otherwise: "" };

fn label(name: &OsStr) -> Option<FileLabel> {
    let stem = name.to_str()?.split('.').next()?;
    if let Some((_, number)) = stem.rsplit_once('-') {
        return number.parse().ok().map(FileLabel::Number);
    }
    let digits = stem.strip_prefix("0x").unwrap_or(stem);
    u64::from_str_radix(digits, 16).ok().map(FileLabel::Addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_decide_the_format() {
        assert_eq!(label(OsStr::new("moar-jit-0012.bin")), Some(FileLabel::Number(12)));
        assert_eq!(label(OsStr::new("0x7f00.bin")), Some(FileLabel::Addr(0x7f00)));
        assert_eq!(label(OsStr::new("7F00")), Some(FileLabel::Addr(0x7f00)));
        assert_eq!(label(OsStr::new("README.md")), None);
    }
}
