//! Opens files that somebody else may have put there: dumps and maps lie in directories that all may write to.

use crate::error::{Error, Result};
use crate::formats::jit_logs::LogId;
use crate::formats::jitdump;
use crate::io::{self, Bytes};
use crate::model::Pid;
use crate::model::process::FileId;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// By so many bytes a file of somebody else's is known.
const HEAD: usize = 1 << 12;

/// No program leaves such holes in a log, which it writes from front to back; they are made to fill memory and disks.
const LARGEST_HOLE: u64 = 16 << 20;

/// Who named the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The user: symbolic links are meant.
    User,
    /// A process that mapped it while it was recorded. Whose it is does not matter, as perf inject sees it, too: a
    /// server that root records runs as a user of its own. But a link could lead anywhere.
    Marker,
    /// The recording, or habit: a link could lead anywhere.
    Habit,
    /// As `Habit`, but below the root of this process, which runs.
    Inside(Pid),
}

/// Maps a file if it is a regular one and belongs to root or to us (`force`, or named by its marker: to anybody).
/// `None` if there is none.
///
/// perf asks the same of perf maps (`dso__load_perf_map`), and nothing of dumps that were mapped. Nothing that is
/// opened can block or be a device; what belongs to somebody else is read from a copy.
pub(super) fn open(path: &Path, named: Named, force: bool) -> Option<Result<Bytes>> {
    let follow = if named == Named::User { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | follow;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return None,
        Err(rustix::io::Errno::LOOP) => {
            return Some(Err(
                Error::new("is a symbolic link; name its target with --jitdump or --perf-map").in_file(path)
            ));
        }
        Err(error) => return Some(Err(Error::new("cannot open").because(std::io::Error::from(error)).in_file(path))),
    };
    let checked = check(&file, force || named == Named::Marker).and_then(|whose| match whose {
        Whose::Ours => io::map_data(File::from(file)),
        Whose::Others => copy(File::from(file)),
    });
    Some(checked.map_err(|error| error.in_file(path)))
}

/// The same for a path below a directory that is the root of a process of `uid`, which may own the file, too. No link
/// leads out of it, and none is followed at the end. It is read from a copy: whoever is root there may shorten it.
pub(super) fn open_below(root: &OwnedFd, path: &Path, uid: u32, force: bool) -> Option<Result<Bytes>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return None,
        Err(rustix::io::Errno::LOOP) => return Some(Err(Error::new("is a symbolic link"))),
        Err(error) => return Some(Err(Error::new("cannot open").because(std::io::Error::from(error)))),
    };
    let owner = rustix::fs::fstat(&file).map(|stat| stat.st_uid);
    let checked = check(&file, force || owner == Ok(uid));
    Some(checked.and_then(|_| copy(File::from(file))))
}

/// Copies somebody else's file, who may shorten it at any time, which a map would not survive. Nothing of it is copied
/// before it is seen to be what is looked for; what it holds instead is nobody's business.
fn copy(file: File) -> Result<Bytes> {
    let mut head = [0; HEAD];
    let len = file.read_at(&mut head, 0)?;
    let head = &head[..len];
    if !head.contains(&0) || jitdump::sniff(head) {
        return io::copy_open_file(file, LARGEST_HOLE);
    }
    // The kernel leaves out of a core what was never touched.
    if LogId::detect(head).is_some_and(|id| id.log().process.is_some()) {
        return io::copy_open_file(file, u64::MAX);
    }
    Err(Error::new("is neither a jitdump nor a core dump nor a text"))
}

/// Device and inode of a file.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    rustix::fs::stat(path).ok().map(identity)
}

/// Those of what goes by that name itself: of a link, not of its target.
pub(super) fn link_id(path: &Path) -> Option<FileId> {
    rustix::fs::lstat(path).ok().map(identity)
}

fn identity(stat: rustix::fs::Stat) -> FileId {
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    FileId { major, minor, inode: stat.st_ino }
}

/// Who may change a file.
enum Whose {
    /// Root, or we.
    Ours,
    Others,
}

fn check(file: &impl std::os::fd::AsFd, force: bool) -> Result<Whose> {
    let stat = rustix::fs::fstat(file).map_err(std::io::Error::from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Error::new("is not a regular file"));
    }
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid == 0 || stat.st_uid == us {
        return Ok(Whose::Ours);
    }
    if force {
        return Ok(Whose::Others);
    }
    Err(Error::new(format!("belongs to user {}, not to root or to us ({us}); use -f to believe it", stat.st_uid)))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn files_of_others_need_force() {
        if !rustix::process::geteuid().is_root() {
            // Only root can give a file away; then a file of root's is what must be believed.
            assert!(open(Path::new("/etc/passwd"), Named::Habit, false).unwrap().is_ok());
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"x").unwrap();
        std::os::unix::fs::chown(file.path(), Some(65534), None).unwrap();
        let refused = open(file.path(), Named::Habit, false).unwrap().unwrap_err().to_string();
        assert!(refused.contains("belongs to user 65534"), "{refused}");
        assert!(open(file.path(), Named::Habit, true).unwrap().is_ok());
        let believed = open(file.path(), Named::Marker, false).unwrap().unwrap();
        std::fs::write(file.path(), b"").unwrap();
        assert_eq!(&believed[..], b"x", "a copy, whatever its owner does to it");
    }
}
