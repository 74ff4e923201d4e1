//! Detects files that were replaced since the recording, such as a program that was rebuilt or a library that was
//! upgraded. Normally, the build ID shows that. If the recording has no build IDs (`perf record -B`, or the recorder
//! was killed), the inode does.

use crate::error::{Warning, Warnings};
use crate::jit::file_id;
use crate::model::process::{FileId, Processes};
use crate::symbolize::dso::{Dso, DsoKind};
use crate::symbolize::symbols::image::Image;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

/// Warns about files that were opened for symbols but aren't the files that ran, judging by their inodes.
pub(super) fn warn_about_replaced<'a>(
    opened: impl Iterator<Item = (&'a Dso, &'a Image)>,
    processes: &Processes,
    warnings: &mut Warnings,
) {
    let mut by_path: BTreeMap<&[u8], (&Dso, &Image)> = BTreeMap::new();
    for (dso, image) in opened {
        // If the paths differ, the user chose this file in place of the recorded one (`--symfs`), and no warning is
        // needed.
        let is_at_recorded_path = image.path().as_os_str().as_bytes() == &dso.path[..];
        if dso.kind == DsoKind::File && is_at_recorded_path {
            by_path.insert(&dso.path, (dso, image));
        }
    }
    if by_path.is_empty() {
        return;
    }
    let recorded = recorded_files(&by_path, processes);
    for (path, (dso, image)) in by_path {
        let Some(opened_file) = image.metadata().map(file_id) else { continue };
        let Some(recorded_files) = recorded.get(path) else { continue };
        if is_another(opened_file, recorded_files) {
            let message = match dso.build_id {
                None => {
                    "may not be the file that ran: its inode differs, and the recording has no build ID to compare. \
                     Names may be wrong"
                }
                Some(_) => {
                    "is not the file that ran (its inode differs), but it has the recorded build ID; names are right \
                     if it is the same build"
                }
            };
            warnings.push(Warning::new(message).in_file(image.path(), None));
        }
    }
}

/// For each of these paths, the files (device and inode) that processes mapped from there, according to the recording.
/// There may be several, if the file was replaced in between or is another one in each container.
fn recorded_files<'p>(
    paths: &BTreeMap<&'p [u8], (&Dso, &Image)>,
    processes: &Processes,
) -> BTreeMap<&'p [u8], BTreeSet<FileId>> {
    let mut files = BTreeMap::<&[u8], BTreeSet<FileId>>::new();
    for mapping in processes.by_pid.values().flat_map(|process| &process.mappings) {
        if let (Some(file), Some((path, _))) = (mapping.file, paths.get_key_value(&mapping.path[..])) {
            files.entry(path).or_default().insert(file);
        }
    }
    files
}

/// True if a file on this machine is none of the recorded ones. On some file systems, the kernel records another device
/// than `stat` returns. Then nothing can be said, and the result is false.
pub(crate) fn is_another(file: FileId, recorded: &BTreeSet<FileId>) -> bool {
    let is_on_same_device = |other: &FileId| (other.major, other.minor) == (file.major, file.minor);
    !recorded.contains(&file) && recorded.iter().any(is_on_same_device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_inode_of_the_same_device_is_another_file() {
        let file = |minor, inode| FileId { major: 8, minor, inode };
        let recorded: BTreeSet<FileId> = [file(1, 7), file(1, 8)].into();
        assert!(!is_another(file(1, 7), &recorded));
        assert!(is_another(file(1, 9), &recorded));
        assert!(!is_another(file(2, 9), &recorded), "of another device nothing is known");
        assert!(!is_another(file(1, 9), &BTreeSet::new()));
    }
}
