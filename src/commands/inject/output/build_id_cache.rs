//! perf's build-ID cache (`$HOME/.debug`, or what `buildid.dir` of perfconfig says is not asked): copies of files under
//! their build ID, from where perf report reads and perf archive packs them.
//!
//! ```text
//! ~/.debug/.build-id/12/3456… → ../../PATH/123456…
//! ~/.debug/PATH/123456…/elf
//! ```

use crate::commands::inject::images::ImageFile;
use crate::error::{Error, Result, Warning, Warnings};
use crate::io::{self, InPath, NewFile};
use crate::resolve::symbols::files::hex;
use std::fs;
use std::path::{Path, PathBuf};

/// Puts an image there, and says whether it is there; a failure is told and nothing else.
pub(super) fn add(image: &ImageFile, warnings: &mut Warnings) -> bool {
    let Some(home) = std::env::var_os("HOME") else {
        warnings.push(Warning::new("HOME is not set, so there is no build-ID cache"));
        return false;
    };
    let copied = copy(image, &PathBuf::from(home).join(".debug"));
    copied.map_err(|error| warnings.push(error.in_file(&image.path).into_warning())).is_ok()
}

fn copy(image: &ImageFile, cache: &Path) -> Result<()> {
    let id = hex(image.build_id);
    let relative = image.path.strip_prefix("/").unwrap_or(&image.path);
    let directory = cache.join(relative).join(&id);
    let fail = |what: &str, error| Error::new(format!("cannot {what} the build-ID cache")).because(error);
    fs::create_dir_all(&directory).map_err(|error| fail("make a directory in", error))?;
    // What has this path there is the same image: its build ID is made from all of it.
    let mut from = io::open_typed(&image.path)?;
    let mode = io::mode_of(&InPath::Path(image.path.clone()));
    let mut new = NewFile::create_in(&directory, mode).map_err(|error| fail("copy into", error))?;
    let copied = std::io::copy(&mut from, new.file_mut());
    copied.and_then(|_| new.persist_noclobber("elf".as_ref())).map_err(|error| fail("copy into", error))?;
    let (first, rest) = id.split_at(2);
    let links = cache.join(".build-id").join(first);
    fs::create_dir_all(&links).map_err(|error| fail("make a directory in", error))?;
    let link = links.join(rest);
    let target = Path::new("../..").join(relative).join(&id);
    match std::os::unix::fs::symlink(target, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(fail("link in", error)),
        _ => Ok(()),
    }
}
