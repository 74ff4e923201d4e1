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

pub(super) fn dso(file: &CodeFile) -> Dso {
    Dso { path: file.path.clone(), build_id: file.build_id, file: None, kind: DsoKind::File }
}

/// The files of a profile of which the same version is on this machine.
#[derive(Debug)]
pub(super) struct Files<'a> {
    files: &'a [CodeFile],
    /// Indexed by file number.
    found: Vec<Option<(DsoId, &'a Image)>>,
}

fn find_image<'a>(file: &CodeFile, images: &'a Images<'_>, warnings: &mut Warnings) -> Option<(DsoId, &'a Image)> {
    let id = images.id_of(&dso(file))?;
    let image = images.get(id)?;
    if file.build_id.is_none() && file.htl_hash != Some(image.htl_hash()) {
        let message = "not used: it is a different version than the profile's (by htlhash)";
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

    /// Warns about missing files. `addresses` is the number of addresses in them. `None` if no file is missing.
    pub(super) fn missing(&self, addresses: u64) -> Option<Warning> {
        let mut missing = self.files.iter().zip(&self.found).filter(|(_, found)| found.is_none());
        let count = missing.clone().count();
        let (first, _) = missing.next().filter(|_| addresses > 0)?;
        let name = String::from_utf8_lossy(&first.path);
        let fetched = first.build_id.map(|id| format!(" (fetch it with debuginfod-find executable {})", hex(id)));
        Some(Warning::new(format!(
            "addresses that stay unnamed, because their files are missing: {addresses} in {}, such as {name}{}. Pass \
             the files' root with --symfs DIR, or with --debug-dir DIR if they are stored by build ID",
            counted(count as u64, "file"),
            fetched.unwrap_or_default()
        )))
    }

    /// The location of an address in a file. `None` if the file is missing.
    pub(super) fn location(&self, file: u32, addr: Addr) -> Option<Location> {
        let at = usize::try_from(file).ok()?;
        let (id, image) = self.found.get(at).copied().flatten()?;
        let offset = match self.files.get(at)?.base {
            FileBase::Start => addr.0,
            FileBase::Linked => image.offset(addr.0)?,
        };
        Some(Location::File(id, offset))
    }
}
