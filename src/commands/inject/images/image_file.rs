//! Names and writes image files.
//!
//! An image is called `jitted-PID.so`. If a different file has that name already, the new one is called
//! `jitted-PID.2.so` and so on, because an older output may still refer to the first. A new image is an unnamed file
//! until just before the output that refers to it is put in place, so a run that is killed earlier leaves nothing
//! behind.

use crate::error::{Error, Result};
use crate::formats::elf_image::{AuxMapping, Image};
use crate::io::door::Named;
use crate::io::{self, NewFile, OutDirectory, Run};
use crate::model::code_file::image_name;
use crate::model::process::BuildId;
use crate::model::{Addr, Pid};
use crate::parallel;
use crate::symbolize::symbols::files::ELF;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where images are written, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageDirectory<'a> {
    pub(super) place: &'a Arc<OutDirectory>,
    /// The root directory of the recorded machine's files, if perf will be called with `--symfs`. `None` means `/`.
    pub(super) root: Option<&'a Path>,
    /// The current run, which knows all outputs. Images must not overwrite them.
    pub(super) run: &'a Run,
    /// File permissions, before the umask. Anybody who can't read the sources of the code must not be able to read the
    /// image.
    pub(super) mode: u32,
    /// The number of images that have no name yet.
    pub(super) waiting: &'a AtomicUsize,
}

/// Maximum number of images that wait for their names, since each of them is an open file. Further images get their
/// names at once.
const MOST_WAITING: usize = 100;

/// An image file with JIT code of one process.
#[derive(Debug)]
pub(in crate::commands::inject) struct ImageFile {
    /// The file's absolute path.
    pub(in crate::commands::inject) path: PathBuf,
    /// The image's path in mapping records. It is relative to perf's `--symfs` root if there is one.
    pub(in crate::commands::inject) recorded: PathBuf,
    /// The build ID, a hash of the image's content.
    pub(in crate::commands::inject) build_id: BuildId,
    /// The parts that must be mapped in addition to the code.
    pub(in crate::commands::inject) aux_mappings: Vec<AuxMapping>,
    /// The file offset of the end of the code.
    pub(in crate::commands::inject) code_end: u64,
    /// The address where the whole image is mapped if its code was moved (`--relocate`), else `None`.
    pub(in crate::commands::inject) base: Option<Addr>,
    directory: Arc<OutDirectory>,
    state: Mutex<ImageState>,
}

#[derive(Debug)]
enum ImageState {
    /// Written, but without a name yet.
    Waiting(NewFile),
    /// This run created the file.
    Made,
    /// An identical file was already there.
    WasThere,
}

impl ImageFile {
    /// Writes an image under the first name that is free or that belongs to an identical file. `before` are the earlier
    /// images of the same process, which may have no name yet.
    pub(super) fn write(
        image: &Image<'_, '_>,
        aux_mappings: &[AuxMapping],
        pid: Pid,
        directory: ImageDirectory<'_>,
        before: &[Self],
    ) -> Result<Self> {
        let place = directory.place;
        let in_directory = |error: Error| error.in_file(place.path());
        let new = place.create(directory.mode).map_err(|error| in_directory(error.into()))?;
        let unwritten =
            |error| Error::new("cannot be written").because(error).in_file(&place.path().join(image_name(pid, 1)));
        let build_id = write_to(&new, image).map_err(unwritten)?;
        for number in 1.. {
            let path = place.path().join(image_name(pid, number));
            directory.run.leave_outputs(&path)?;
            if before.iter().any(|other| other.path == path) {
                continue;
            }
            let is_there = place.has(image_name(pid, number).as_ref());
            if is_there && !is_same(new.file(), &path) {
                continue;
            }
            let state = if is_there { ImageState::WasThere } else { ImageState::Waiting(new) };
            let recorded = match directory.root.and_then(|root| path.strip_prefix(root).ok()) {
                Some(below_root) => Path::new("/").join(below_root),
                None => path.clone(),
            };
            let written = Self {
                path,
                recorded,
                build_id,
                aux_mappings: aux_mappings.to_vec(),
                code_end: image.code_end(),
                base: None,
                directory: place.clone(),
                state: Mutex::new(state),
            };
            if directory.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
                written.put_in_place()?;
            }
            return Ok(written);
        }
        Err(in_directory(Error::new(format!("all file names for the image of process {pid} are taken"))))
    }

    /// Gives the image its name if it has none yet. Fails if another program has created a different file of that name
    /// meanwhile.
    pub(super) fn put_in_place(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, ImageState::Waiting(_)) {
            return Ok(());
        }
        // From here on, a file of this name counts as existing, unless the next step makes it.
        let ImageState::Waiting(new) = std::mem::replace(&mut *state, ImageState::WasThere) else { return Ok(()) };
        let persisted = new.persist_noclobber(self.path.file_name().unwrap_or_default());
        match persisted.map_err(|error| Error::new("cannot move it into place").because(error).in_file(&self.path))? {
            None => *state = ImageState::Made,
            // Somebody else has created an identical file meanwhile.
            Some(unplaced) if is_same(unplaced.file(), &self.path) => {}
            Some(_) => {
                let error = Error::new("was created by another program in the meantime; run this again");
                return Err(error.in_file(&self.path));
            }
        }
        Ok(())
    }

    /// Deletes the image if this run created it. Called if the output that refers to the image couldn't be written.
    pub(super) fn take_away(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, ImageState::Made) {
            // Ignore errors: the run has already failed for a more important reason.
            let _ = self.directory.remove(self.path.file_name().unwrap_or_default());
        }
    }
}

/// Writes the image and computes its build ID in parallel, as both take about the same time.
fn write_to(new: &NewFile, image: &Image<'_, '_>) -> Result<BuildId> {
    let out = &mut BufWriter::with_capacity(1 << 18, new.writer());
    let content = || {
        image.write_code(out)?;
        image.write_end(out)
    };
    let (rest, build_id) = parallel::join(content, || image.build_id());
    image.finish(&rest?, build_id, out)?;
    Ok(build_id)
}

/// True if the existing file has the same content and no other user can change it.
fn is_same(new: &File, path: &Path) -> bool {
    let old = Named::Recording.door(false).open(path, ELF);
    matches!((io::map_own(new), old), (Ok(new), Some(Ok(old))) if new[..] == old.bytes[..])
}
