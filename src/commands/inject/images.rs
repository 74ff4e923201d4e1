//! The ELF images that perf reads in place of the JIT code: one for each process.
//!
//! An image has the name `jitted-PID.so`. If a file of that name is there already and is another one, the new one is
//! called `jitted-PID.2.so`, and so on: an older output may still refer to the first. Images that this run made are
//! taken away again if the output does not come about.

use crate::error::{Error, Result};
use crate::formats::elf_image::{Addressing, Image, ImageBuilder, Place, SlotId, Target};
use crate::io;
use crate::model::process::BuildId;
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::resolve::code_map::{CodeId, CodeMap, SegmentId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The image of one process's code.
#[derive(Debug)]
pub(super) struct Written {
    /// Absolute path.
    pub(super) path: PathBuf,
    /// Made from its content.
    pub(super) build_id: BuildId,
    /// Whether this run made the file.
    made: bool,
}

/// All images of a run, and where in them each segment is.
#[derive(Debug, Default)]
pub(super) struct Images {
    by_pid: BTreeMap<Pid, Written>,
    places: FxHashMap<SegmentId, u64>,
    /// How many pieces of code are in them.
    pub(super) codes: usize,
    kept: bool,
}

impl Images {
    /// Writes the images for the segments into a directory, which is made if it is not there.
    pub(super) fn write(
        codes: &CodeMap<'_>,
        segments: &BTreeSet<SegmentId>,
        target: Target,
        directory: &Path,
        pool: &Pool,
    ) -> Result<Self> {
        let mut images = Self::default();
        if segments.is_empty() {
            return Ok(images);
        }
        fs::create_dir_all(directory).map_err(|error| Error::from(error).in_file(directory))?;
        let directory = directory.canonicalize().map_err(|error| Error::from(error).in_file(directory))?;
        let mut by_pid: BTreeMap<Pid, Vec<SegmentId>> = BTreeMap::new();
        for &segment in segments {
            by_pid.entry(codes.segment(segment).pid).or_default().push(segment);
        }
        let made = pool.map(by_pid.into_iter().collect(), |(pid, list): (Pid, Vec<SegmentId>)| {
            (pid, one(codes, list, target, pid, &directory))
        });
        let mut failed = None;
        for (pid, result) in made {
            match result {
                Ok((written, places, count)) => {
                    images.by_pid.insert(pid, written);
                    images.places.extend(places);
                    images.codes += count;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(images), Err)
    }

    /// Where a segment's first byte is: the image, and the offset in it. `None` if it could not get a place.
    pub(super) fn place(&self, codes: &CodeMap<'_>, segment: SegmentId) -> Option<(&Written, u64)> {
        let image = self.by_pid.get(&codes.segment(segment).pid)?;
        self.places.get(&segment).map(|&offset| (image, offset))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Written> {
        self.by_pid.values()
    }

    /// The output that refers to them is there: they stay.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for image in self.by_pid.values().filter(|image| image.made && !self.kept) {
            // The run has failed already, for a better reason than this one could be.
            let _ = fs::remove_file(&image.path);
        }
    }
}

type Made = (Written, Vec<(SegmentId, u64)>, usize);

fn one(codes: &CodeMap<'_>, mut segments: Vec<SegmentId>, target: Target, pid: Pid, directory: &Path) -> Result<Made> {
    // In the order of time, as the builder wants it.
    segments.sort_by_key(|&id| (codes.segment(id).from, id));
    let mut builder = ImageBuilder::new(target, Addressing::FileOffset);
    let mut slots: FxHashMap<(CodeId, Addr), SlotId> = FxHashMap::default();
    let slot_of: Vec<(SegmentId, SlotId)> = segments
        .iter()
        .map(|&id| {
            let segment = codes.segment(id);
            let base = Addr(segment.start.0.wrapping_sub(segment.offset));
            let slot = slots.entry((segment.code, base));
            (id, *slot.or_insert_with(|| builder.add(codes.code(segment.code), base)))
        })
        .collect();
    let image = builder.build();
    let place = |(id, slot): (SegmentId, SlotId)| {
        let Place { offset, .. } = image.place(slot)?;
        Some((id, offset + codes.segment(id).offset))
    };
    let places = slot_of.into_iter().filter_map(place).collect();
    let (path, made) = write(&image, pid, directory)?;
    Ok((Written { path, build_id: image.build_id(), made }, places, image.len()))
}

/// Writes an image under the first name that is free, or taken by the very same image; whether it is new.
fn write(image: &Image<'_, '_>, pid: Pid, directory: &Path) -> Result<(PathBuf, bool)> {
    let in_directory = |error: Error| error.in_file(directory);
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let mut builder = tempfile::Builder::new();
    let temporary = builder.prefix(".jitgraft-").permissions(permissions).tempfile_in(directory);
    let mut temporary = temporary.map_err(|error| in_directory(error.into()))?;
    let mut out = BufWriter::with_capacity(1 << 18, temporary.as_file_mut());
    image.write(&mut out).map_err(in_directory)?;
    out.flush().map_err(|error| in_directory(error.into()))?;
    drop(out);
    let mut temporary: NamedTempFile = temporary;
    for number in 1.. {
        let name = if number == 1 { format!("jitted-{pid}.so") } else { format!("jitted-{pid}.{number}.so") };
        let path = directory.join(name);
        match temporary.persist_noclobber(&path) {
            Ok(_) => return Ok((path, true)),
            Err(refused) if refused.error.kind() == std::io::ErrorKind::AlreadyExists => temporary = refused.file,
            Err(refused) => return Err(Error::new("cannot rename into place").because(refused.error).in_file(&path)),
        }
        if same_content(temporary.path(), &path) {
            return Ok((path, false));
        }
    }
    Err(in_directory(Error::new(format!("all names for the image of process {pid} are taken"))))
}

fn same_content(a: &Path, b: &Path) -> bool {
    let len = |path: &Path| fs::metadata(path).map(|metadata| metadata.len()).ok();
    if len(a) != len(b) {
        return false;
    }
    matches!((io::map_file(a), io::map_file(b)), (Ok(a), Ok(b)) if a[..] == b[..])
}
