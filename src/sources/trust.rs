//! The files that are looked for where code may be named: jitdumps, perf maps, logs and core dumps. They lie in
//! directories that all may write to; the door ([`crate::io::door`]) shows which of them are opened.

use crate::io::door::{self, Holes, Kind};
use crate::model::Pid;
use crate::records::jit_logs::LogId;
use crate::records::jitdump;
pub(crate) use crate::resolve::symbols::files::file_id;

/// The person or file that named the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The user: symbolic links are meant.
    User,
    /// The user named the directory that it is in.
    Directory,
    /// A process that mapped it while it was recorded.
    Marker,
    /// The recording, or habit: a link could lead anywhere.
    Habit,
    /// As `Habit`, but below the root of this process, which runs.
    Inside(Pid),
}

impl Named {
    /// The way the door calls it.
    pub(super) fn at_door(self) -> door::Named {
        match self {
            Self::User => door::Named::User,
            Self::Directory => door::Named::Recording,
            Self::Marker => door::Named::Marker,
            Self::Habit | Self::Inside(_) => door::Named::Habit,
        }
    }
}

/// Sources of code.
pub(crate) const SOURCE: Kind = Kind { holes, otherwise: "is neither a jitdump nor a core dump nor a text" };

/// A text has no zeros, and a dump or core shows what it is: what a file holds instead is nobody's business.
fn holes(head: &[u8]) -> Option<Holes> {
    if LogId::detect(head).is_some_and(|id| id.log().process.is_some()) {
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
        named.at_door().door(force).open(path, SOURCE).map(|opened| opened.map(|opened| opened.bytes))
    }

    #[test]
    fn only_regular_files_and_links_only_from_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("perf-1.map"), dir.path().join("perf-2.map"));
        std::fs::write(&file, b"1 1 f\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(&open(&file, Named::Habit, false).unwrap().unwrap()[..], b"1 1 f\n");
        assert_eq!(&open(&link, Named::User, false).unwrap().unwrap()[..], b"1 1 f\n");
        assert!(open(&link, Named::Habit, true).unwrap().unwrap_err().to_string().contains("symbolic link"));
        assert!(open(dir.path(), Named::User, true).unwrap().unwrap_err().to_string().contains("regular"));
        assert!(open(Path::new("/dev/null"), Named::User, true).unwrap().is_err());
        assert!(open(&dir.path().join("none"), Named::Habit, false).is_none());
    }

    /// A file of somebody else's, or nothing where nobody may give files away.
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
        let refused = open(file.path(), Named::Habit, false).unwrap().unwrap_err().to_string();
        assert!(refused.contains("belongs to user 65534"), "{refused}");
        let believed = open(file.path(), Named::Habit, true).unwrap().unwrap();
        assert!(believed.starts_with(&core) && believed.ends_with(b"end"));
        let Some(other) = of_nobody(b"\x7fELF\x02\0 no core") else { return };
        let refused = open(other.path(), Named::Habit, true).unwrap().unwrap_err().to_string();
        assert!(refused.contains("is neither a jitdump nor a core dump nor a text"), "{refused}");
    }
}
