//! Detects files that were replaced since the recording, such as a rebuilt program or an upgraded library. Normally the
//! build ID distinguishes them. If the recording has none (`perf record -B`, or the recorder was killed), the inode
//! does.

use crate::error::{Warning, Warnings};
use crate::model::process::{FileId, Processes};
use crate::resolve::dso::{Dso, DsoKind};
use crate::resolve::symbols::image::Image;
use crate::sources::file_id;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

/// Warns about opened files that aren't the files that ran.
pub(super) fn say_which_are_replaced<'a>(
    opened: impl Iterator<Item = (&'a Dso, &'a Image)>,
    processes: &Processes,
    warnings: &mut Warnings,
) {
    // A copy that stands for the recorded file (`--symfs`) has another path and is intended.
    let is_at_its_path = |dso: &Dso, image: &Image| image.path().as_os_str().as_bytes() == &dso.path[..];
    let unsure = opened.filter(|(dso, image)| dso.kind == DsoKind::File && is_at_its_path(dso, image));
    let unsure: BTreeMap<&[u8], (&Dso, &Image)> = unsure.map(|(dso, image)| (&dso.path[..], (dso, image))).collect();
    if unsure.is_empty() {
        return;
    }
    let recorded = recorded_files(&unsure, processes);
    for (path, (dso, image)) in unsure {
        let files = recorded.get(path);
        if image.about().map(file_id).zip(files).is_some_and(|(here, files)| is_another(here, files)) {
            let said = match dso.build_id {
                None => {
                    "may not be the file that ran: its inode differs, and the recording has no build ID to compare. \
                     Names may be wrong"
                }
                Some(_) => {
                    "is not the file that ran (its inode differs), but it has the recorded build ID; names are right \
                     if it is the same build"
                }
            };
            warnings.push(Warning::new(said).in_file(image.path(), None));
        }
    }
}

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

/// True if a file is none of the recorded ones. On some file systems the kernel records another device than `stat`
/// returns; then the result is false.
pub(crate) fn is_another(here: FileId, recorded: &BTreeSet<FileId>) -> bool {
    let same_device = |file: &FileId| (file.major, file.minor) == (here.major, here.minor);
    !recorded.contains(&here) && recorded.iter().any(same_device)
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
