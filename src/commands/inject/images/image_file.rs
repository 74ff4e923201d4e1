//! Image files: how they are called and written.
//!
//! An image has the name `jitted-PID.so`. If a file of that name is there already and is another one, the new one is
//! called `jitted-PID.2.so`, and so on: an older output may still refer to the first. A new image gets its name just
//! before the output does that refers to it: a run that is killed meanwhile leaves nothing.

use crate::error::{Error, Result};
use crate::io::door::Named;
use crate::io::{self, NewFile, OutDirectory, Run};
use crate::model::process::BuildId;
use crate::model::{Addr, Pid};
use crate::parallel;
use crate::records::elf_image::{AuxMapping, Image};
use crate::resolve::symbols::files::ELF;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The directory for images.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageDirectory<'a> {
    pub(super) place: &'a Arc<OutDirectory>,
    /// The root of the recorded machine, if perf will be given one.
    pub(super) root: Option<&'a Path>,
    /// Has the outputs, whose names no image may get.
    pub(super) run: &'a Run,
    /// The permissions (less the umask): nobody who may not read the source of the code.
    pub(super) mode: u32,
    /// The number of those that wait for their names.
    pub(super) waiting: &'a AtomicUsize,
}

/// The largest number of images that wait for their names, each an open file; further ones get theirs at once.
const MOST_WAITING: usize = 100;

/// An image of JIT code of one process.
#[derive(Debug)]
pub(in crate::commands::inject) struct ImageFile {
    /// Absolute path.
    pub(in crate::commands::inject) path: PathBuf,
    /// The path that perf will open, below its `--symfs` if it has one.
    pub(in crate::commands::inject) recorded: PathBuf,
    /// Made from its content.
    pub(in crate::commands::inject) build_id: BuildId,
    /// Its parts that must be mapped beside the code.
    pub(in crate::commands::inject) aux_mappings: Vec<AuxMapping>,
    /// The end of its code in the file.
    pub(in crate::commands::inject) code_end: u64,
    /// The address where all of it is mapped, if its code got addresses of its own.
    pub(in crate::commands::inject) base: Option<Addr>,
    directory: Arc<OutDirectory>,
    state: Mutex<ImageState>,
}

#[derive(Debug)]
enum ImageState {
    /// It has no name yet.
    Waiting(NewFile),
    /// This run made the file.
    Made,
    /// The very same was there.
    WasThere,
}

impl ImageFile {
    /// Writes an image for the first name that is free, or taken by the very same image; `before` are those of the same
    /// process, which have none yet, either.
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
            |error| Error::new("cannot be written").because(error).in_file(&place.path().join(name(pid, 1)));
        let build_id = write_to(&new, image).map_err(unwritten)?;
        for number in 1.. {
            let path = place.path().join(name(pid, number));
            directory.run.leave_outputs(&path)?;
            if before.iter().any(|other| other.path == path) {
                continue;
            }
            let is_there = place.has(name(pid, number).as_ref());
            if is_there && !is_same(new.file(), &path) {
                continue;
            }
            let state = if is_there { ImageState::WasThere } else { ImageState::Waiting(new) };
            let (aux_mappings, code_end) = (aux_mappings.to_vec(), image.code_end());
            let (base, directory_of, state) = (None, place.clone(), Mutex::new(state));
            let below_root = directory.root.and_then(|root| path.strip_prefix(root).ok());
            let recorded = below_root.map_or_else(|| path.clone(), |below| Path::new("/").join(below));
            let written =
                Self { path, recorded, build_id, aux_mappings, code_end, base, directory: directory_of, state };
            if directory.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
                written.put_in_place()?;
            }
            return Ok(written);
        }
        Err(in_directory(Error::new(format!("all names for the image of process {pid} are taken"))))
    }

    /// Gives it its name, if it has none yet.
    pub(super) fn put_in_place(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let new = match std::mem::replace(&mut *state, ImageState::WasThere) {
            ImageState::Waiting(new) => new,
            settled => {
                *state = settled;
                return Ok(());
            }
        };
        let placed = new.persist_noclobber(self.path.file_name().unwrap_or_default());
        let unplaced = |error: Error| error.in_file(&self.path);
        match placed.map_err(|error| unplaced(Error::new("cannot be put into its place").because(error)))? {
            None => *state = ImageState::Made,
            Some(back) if is_same(back.file(), &self.path) => {}
            Some(_) => return Err(unplaced(Error::new("was made by somebody else meanwhile: run this again"))),
        }
        Ok(())
    }

    /// Takes the file away again, if this run made it: no output came about that refers to it.
    pub(super) fn take_away(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, ImageState::Made) {
            // The run has failed already, for a better reason than this one could be.
            let _ = self.directory.remove(self.path.file_name().unwrap_or_default());
        }
    }
}

fn name(pid: Pid, number: u32) -> String {
    if number == 1 { format!("jitted-{pid}.so") } else { format!("jitted-{pid}.{number}.so") }
}

/// Writes an image; its build ID, which takes about as long, is made beside that.
fn write_to(new: &NewFile, image: &Image<'_, '_>) -> Result<BuildId> {
    let out = &mut BufWriter::with_capacity(1 << 18, new.writer());
    let content = || {
        image.write_code(out)?;
        image.write_rest(out)
    };
    let (rest, build_id) = parallel::join(content, || image.build_id());
    image.finish(&rest?, build_id, out)?;
    Ok(build_id)
}

/// True if a file is the very same, and nobody else may make another of it.
fn is_same(new: &File, path: &Path) -> bool {
    let old = Named::Recording.door(false).open(path, ELF);
    matches!((io::map_own(new), old), (Ok(new), Some(Ok(old))) if new[..] == old.bytes[..])
}
