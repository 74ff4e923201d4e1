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
    pub(super) directory: &'a Arc<OutDirectory>,
    /// The root directory of the recorded machine's files, if the user will call perf with `--symfs`. `None` means `/`.
    pub(super) root: Option<&'a Path>,
    /// The current run, which knows all outputs. Images must not overwrite them.
    pub(super) run: &'a Run,
    /// File permissions, before the umask. They allow no more than those of the files that the code was read from.
    pub(super) mode: u32,
    /// The number of images written so far. Once it has reached [`MOST_WAITING`], further images get their names at
    /// once.
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
    /// The image's path as mapping records state it. If perf will be called with `--symfs ROOT`, that is the path below
    /// ROOT, starting with `/`.
    pub(in crate::commands::inject) recorded: PathBuf,
    /// The build ID, a hash of the image's content.
    pub(in crate::commands::inject) build_id: BuildId,
    /// The parts that must be mapped in addition to the code.
    pub(in crate::commands::inject) aux_mappings: Vec<AuxMapping>,
    /// The file offset at which the code ends.
    pub(in crate::commands::inject) code_end: u64,
    /// The address where the whole image is mapped if its code was moved (`--relocate`), else `None`.
    pub(in crate::commands::inject) base: Option<Addr>,
    directory: Arc<OutDirectory>,
    state: Mutex<ImageState>,
}

#[derive(Debug)]
enum ImageState {
    /// The image file is written, but has no name yet.
    Waiting(NewFile),
    /// The image file was created by this run.
    Created,
    /// A file with the same name and content already existed.
    Existed,
}

impl ImageFile {
    /// Writes an image under the first name that is free or that belongs to an identical file. `earlier` are the images
    /// of the same process that were written before. Their names count as taken, even if the files don't have them yet.
    pub(super) fn write(
        image: &Image<'_, '_>,
        aux_mappings: &[AuxMapping],
        pid: Pid,
        options: ImageDirectory<'_>,
        earlier: &[Self],
    ) -> Result<Self> {
        let directory = options.directory;
        let in_directory = |error: Error| error.in_file(directory.path());
        let new = directory.create(options.mode).map_err(|error| in_directory(error.into()))?;
        let unwritten =
            |error| Error::new("cannot be written").because(error).in_file(&directory.path().join(image_name(pid, 1)));
        let build_id = write_to(&new, image).map_err(unwritten)?;
        for number in 1.. {
            let path = directory.path().join(image_name(pid, number));
            // Fail if the output itself would go to this path.
            options.run.leave_outputs(&path)?;
            if earlier.iter().any(|other| other.path == path) {
                continue;
            }
            let exists = directory.has(image_name(pid, number).as_ref());
            if exists && !is_same(new.file(), &path) {
                continue;
            }
            // If an identical file has the name, it is used, and the new file is dropped.
            let state = if exists { ImageState::Existed } else { ImageState::Waiting(new) };
            // With `--image-root`, the recording refers to the image by its path below that root.
            let recorded = match options.root.and_then(|root| path.strip_prefix(root).ok()) {
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
                directory: directory.clone(),
                state: Mutex::new(state),
            };
            // An image that waits for its name keeps its file open. When too many wait, the next ones get their names
            // at once.
            if options.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
                written.put_in_place()?;
            }
            return Ok(written);
        }
        Err(in_directory(Error::new(format!(
            "all file names for the ELF image of process {pid} are taken (jitted-{pid}.so, jitted-{pid}.2.so, …); \
             choose another --image-dir"
        ))))
    }

    /// Gives the image its name if it has none yet. Fails if another program has created a different file of that name
    /// meanwhile.
    pub(super) fn put_in_place(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, ImageState::Waiting(_)) {
            return Ok(());
        }
        // Until the file has its name, the state is `Existed`. If an error occurs, or if another program has created
        // the file, the state stays so, and the other program's file isn't deleted later.
        let ImageState::Waiting(new) = std::mem::replace(&mut *state, ImageState::Existed) else { return Ok(()) };
        let persisted = new.persist_noclobber(self.path.file_name().unwrap_or_default());
        let persisted = persisted.map_err(|error| {
            Error::new("the finished temporary file cannot be renamed to this name").because(error).in_file(&self.path)
        })?;
        // `None`: the file got its name. `Some`: the name is taken, and the file is returned without one.
        match persisted {
            None => *state = ImageState::Created,
            // Another program has created an identical file meanwhile, so that one is used.
            Some(unnamed) if is_same(unnamed.file(), &self.path) => {}
            Some(_) => {
                let error = Error::new("was created by another program in the meantime; run jitgraft inject again");
                return Err(error.in_file(&self.path));
            }
        }
        Ok(())
    }

    /// Deletes the image if this run created it. Called if the output that refers to the image couldn't be written.
    pub(super) fn delete_if_created(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, ImageState::Created) {
            // Ignore errors: the run has already failed for a more important reason.
            let _ = self.directory.remove(self.path.file_name().unwrap_or_default());
        }
    }
}

/// Writes the image and computes its build ID in parallel, as both take about the same time. The start of the file
/// contains the build ID, so `finish` writes the start last.
fn write_to(new: &NewFile, image: &Image<'_, '_>) -> Result<BuildId> {
    let out = &mut BufWriter::with_capacity(1 << 18, new.writer());
    let content = || {
        image.write_code(out)?;
        image.write_end(out)
    };
    let (written, build_id) = parallel::join(content, || image.build_id());
    image.finish(&written?, build_id, out)?;
    Ok(build_id)
}

/// True if the existing file has the same content and no other user can change it.
fn is_same(new: &File, path: &Path) -> bool {
    let old = Named::Recording.door(false).open(path, ELF);
    matches!((io::map_own(new), old), (Ok(new), Some(Ok(old))) if new[..] == old.bytes[..])
}
