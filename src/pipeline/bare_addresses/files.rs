//! Finds the files that a profile's addresses are in, if they are on this machine.

use crate::analysis::quantity::counted;
use crate::contract::unsymbolized::{CodeFile, FileBase};
use crate::error::{Warning, Warnings};
use crate::model::Addr;
use crate::symbolize::Location;
use crate::symbolize::dso::{Dso, DsoId, DsoKind};
use crate::symbolize::symbols::files::hex;
use crate::symbolize::symbols::image::Image;
use crate::symbolize::symbols::images::Images;

/// The file in the form in which the symbolizer looks for files that processes had mapped.
pub(super) fn dso(file: &CodeFile) -> Dso {
    Dso { path: file.path.clone(), build_id: file.build_id, file: None, kind: DsoKind::File }
}

/// The files that a profile's addresses are in, each with the same file on this machine if it was found.
#[derive(Debug)]
pub(super) struct Files<'a> {
    files: &'a [CodeFile],
    /// For each file of the profile, the file on this machine; `None` if it is missing or is another version.
    found: Vec<Option<(DsoId, &'a Image)>>,
}

/// Opens a file. `None` if it is missing or is another version. A file with another build ID counts as missing, without
/// a warning of its own. Warns about a file with another hash (htlhash).
fn find_image<'a>(file: &CodeFile, images: &'a Images<'_>, warnings: &mut Warnings) -> Option<(DsoId, &'a Image)> {
    let id = images.id_of(&dso(file))?;
    let image = images.get(id)?;
    // `images` only has a file whose build ID is the recorded one. Without a recorded build ID, the hash is compared.
    if file.build_id.is_none() && file.htl_hash != Some(image.htl_hash()) {
        let message = "not used: its hash (htlhash) is not the one in the profile, so it is not the version that ran";
        warnings.push(Warning::new(message).in_file(image.path(), None));
        return None;
    }
    Some((id, image))
}

impl<'a> Files<'a> {
    /// Opens the files. A file of another version (by build ID or htlhash) is not used.
    pub(super) fn new(files: &'a [CodeFile], images: &'a Images<'_>, warnings: &mut Warnings) -> Self {
        let found = files.iter().map(|file| find_image(file, images, warnings)).collect();
        Self { files, found }
    }

    /// The warning about missing files. `addresses` is the number of addresses in them. `None` if no file is missing,
    /// or if no address is in one.
    pub(super) fn missing(&self, addresses: u64) -> Option<Warning> {
        if addresses == 0 {
            return None;
        }
        let mut missing = self.files.iter().zip(&self.found).filter(|(_, found)| found.is_none());
        let count = missing.clone().count();
        let (first, _) = missing.next()?;
        let name = String::from_utf8_lossy(&first.path);
        let fetch_hint = first.build_id.map(|id| format!(" (fetch it with debuginfod-find executable {})", hex(id)));
        Some(Warning::new(format!(
            "addresses that stay unnamed, because their files are missing: {addresses} in {}, such as {name}{}. Pass \
             the recorded machine's root with --symfs DIR, or a directory of files by build ID with --debug-dir DIR",
            counted(count as u64, "file"),
            fetch_hint.unwrap_or_default()
        )))
    }

    /// The location of an address in one of the profile's files, of which `file` is the index. `None` if the file is
    /// missing, or if it has nothing at this address.
    pub(super) fn location(&self, file: u32, addr: Addr) -> Option<Location> {
        let index = usize::try_from(file).ok()?;
        let (id, image) = self.found.get(index).copied().flatten()?;
        let offset = match self.files.get(index)?.base {
            FileBase::Start => addr.0,
            FileBase::Linked => image.offset(addr.0)?,
        };
        Some(Location::File(id, offset))
    }
}
