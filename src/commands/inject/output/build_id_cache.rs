//! Copies images into perf's build ID cache. perf report reads files from there, and perf archive packs them. The cache
//! is always `$HOME/.debug`; the setting `buildid.dir` of perfconfig is ignored.
//!
//! ```text
//! ~/.debug/.build-id/12/3456… → ../../PATH/123456…
//! ~/.debug/PATH/123456…/elf
//! ```

use crate::commands::inject::images::ImageFile;
use crate::error::{Error, Result, Warning, Warnings};
use crate::io::door::Named;
use crate::io::{self, OutDirectory};
use crate::symbolize::symbols::files::{ELF, hex};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Copies an image into the cache. Returns whether the image is in the cache now; a failure only gives a warning.
pub(super) fn add(image: &ImageFile, warnings: &mut Warnings) -> bool {
    let Some(home) = std::env::var_os("HOME") else {
        warnings.push(Warning::new("HOME is not set, so there is no build-ID cache"));
        return false;
    };
    let copied = copy(image, &PathBuf::from(home).join(".debug"));
    copied.map_err(|error| warnings.push(error.in_file(&image.path).into_warning())).is_ok()
}

/// Copies the image to its place in the cache, and links to it by its build ID.
fn copy(image: &ImageFile, cache: &Path) -> Result<()> {
    let id = hex(image.build_id);
    let relative = image.recorded.strip_prefix("/").unwrap_or(&image.recorded);
    let fail = |what: &str, error| Error::new(format!("cannot {what} the build-ID cache")).because(error);
    let make_directory = |path: PathBuf| OutDirectory::make(&path).map_err(|error| fail("make a directory in", error));
    let directory = make_directory(cache.join(relative).join(&id))?;
    let gone = || Error::new("no longer exists").in_file(&image.path);
    // `false`: the image must belong to this user or root, as it does if this run wrote it. `open` returns `None` if
    // the file is gone, and an error if it must not be used.
    let from = Named::Recording.door(false).open(&image.path, ELF).ok_or_else(gone)??;
    let new = directory.create(io::common_mode([from.mode]));
    let mut new = new.map_err(|error| fail("copy into", error.into()))?;
    // `persist_noclobber` keeps a file that is already there. It is the same image: the path contains the build ID,
    // which is a hash of the image's whole content.
    let copied = new.file_mut().write_all(&from.bytes).and_then(|()| new.persist_noclobber("elf".as_ref()));
    copied.map_err(|error| fail("copy into", error.into()))?;
    // The link is called `.build-id/12/3456…`.
    let (first_digits, last_digits) = id.split_at(2);
    let target = Path::new("../..").join(relative).join(&id);
    let linked = make_directory(cache.join(".build-id").join(first_digits))?.link(&target, last_digits.as_ref());
    linked.map_err(|error| fail("link in", error.into()))
}
