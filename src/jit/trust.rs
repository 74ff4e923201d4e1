//! Rules for opening files that name code: jitdumps, perf maps, logs and core dumps. They are in directories that
//! everybody may write to, such as `/tmp`, so [`crate::io::door`] decides which files may be opened.

use crate::io::door::{self, Holes, Kind};
use crate::jit::engine_logs::LogId;
use crate::jit::jitdump;
use crate::model::Pid;
pub(crate) use crate::symbolize::symbols::files::file_id;

/// Who named the path of a file, which decides how the file may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The user named the file. Symbolic links are followed.
    User,
    /// The user named the directory that the file is in.
    Directory,
    /// A recorded process mapped the file, a jitdump, so that the recording mentions it.
    Marker,
    /// A convention or the recording says where the file is. A symbolic link at the end of the path isn't followed,
    /// since it could lead anywhere.
    Convention,
    /// Like `Convention`, but within the root directory of this running process.
    Inside(Pid),
}

impl Named {
    /// The corresponding value for [`crate::io::door`].
    pub(super) fn to_door(self) -> door::Named {
        match self {
            Self::User => door::Named::User,
            Self::Directory => door::Named::Recording,
            Self::Marker => door::Named::Marker,
            Self::Convention | Self::Inside(_) => door::Named::Convention,
        }
    }
}

/// The kinds of files that are accepted as sources.
pub(crate) const SOURCE: Kind = Kind { holes, otherwise: "is not a jitdump, core dump or text file" };

/// Accepts text (no NUL bytes), jitdumps and core dumps, and returns which holes such a file may have. `None` for other
/// files, which must not be read: they may be anything.
fn holes(head: &[u8]) -> Option<Holes> {
    if LogId::detect(head).is_some_and(|id| id.log().find_process.is_some()) {
        return Some(Holes::Any);
    }
    (!head.contains(&0) || jitdump::sniff(head)).then_some(Holes::Small)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::io::Bytes;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    fn open(path: &Path, named: Named, force: bool) -> Option<Result<Bytes>> {
        named.to_door().door(force).open(path, SOURCE).map(|opened| opened.map(|opened| opened.bytes))
    }

    #[test]
    fn only_regular_files_and_links_only_from_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("perf-1.map"), dir.path().join("perf-2.map"));
        std::fs::write(&file, b"1 1 f\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(&open(&file, Named::Convention, false).unwrap().unwrap()[..], b"1 1 f\n");
        assert_eq!(&open(&link, Named::User, false).unwrap().unwrap()[..], b"1 1 f\n");
        assert!(open(&link, Named::Convention, true).unwrap().unwrap_err().to_string().contains("symbolic link"));
        assert!(open(dir.path(), Named::User, true).unwrap().unwrap_err().to_string().contains("regular"));
        assert!(open(Path::new("/dev/null"), Named::User, true).unwrap().is_err());
        assert!(open(&dir.path().join("none"), Named::Convention, false).is_none());
    }

    /// A file that belongs to another user; `None` if we aren't allowed to give files away.
    fn of_nobody(bytes: &[u8]) -> Option<tempfile::NamedTempFile> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        std::os::unix::fs::chown(file.path(), Some(65534), None).is_ok().then_some(file)
    }

    #[test]
    fn a_core_of_somebody_elses_is_read_with_its_holes_if_it_is_believed() {
        let packed = include_bytes!("../../fixtures/recording-gdb-jit/core.24209.zst");
        let core = zstd::decode_all(&packed[..]).unwrap();
        let Some(file) = of_nobody(&core) else { return };
        let hole = 1 << 30;
        let at_end = std::fs::File::options().write(true).open(file.path()).unwrap();
        at_end.write_all_at(b"end", core.len() as u64 + hole).unwrap();
        let refused = open(file.path(), Named::Convention, false).unwrap().unwrap_err().to_string();
        assert!(refused.contains("belongs to user 65534"), "{refused}");
        let believed = open(file.path(), Named::Convention, true).unwrap().unwrap();
        assert!(believed.starts_with(&core) && believed.ends_with(b"end"));
        let Some(other) = of_nobody(b"\x7fELF\x02\0 no core") else { return };
        let refused = open(other.path(), Named::Convention, true).unwrap().unwrap_err().to_string();
        assert!(refused.contains("is not a jitdump, core dump or text file"), "{refused}");
    }
}
