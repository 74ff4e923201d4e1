//! Image files: how they are called and written.
//!
//! An image has the name `jitted-PID.so`. If a file of that name is there already and is another one, the new one is
//! called `jitted-PID.2.so`, and so on: an older output may still refer to the first.

use crate::error::{Error, Result};
use crate::formats::elf_image::{AuxMapping, Image};
use crate::io::{self, NewFile, Run};
use crate::model::process::BuildId;
use crate::model::{Addr, Pid};
use crate::parallel;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where images go.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageDirectory<'a> {
    /// Absolute.
    pub(super) path: &'a Path,
    /// Knows the outputs, whose names no image may get.
    pub(super) run: &'a Run,
    /// Who may read them (less the umask): nobody who may not read what their code comes from.
    pub(super) mode: u32,
}

/// An image of JIT code of one process.
#[derive(Debug)]
pub(in crate::commands::inject) struct ImageFile {
    /// Absolute path.
    pub(in crate::commands::inject) path: PathBuf,
    /// Made from its content.
    pub(in crate::commands::inject) build_id: BuildId,
    /// What of it must be mapped beside the code.
    pub(in crate::commands::inject) aux_mappings: Vec<AuxMapping>,
    /// Where its code ends in the file.
    pub(in crate::commands::inject) code_end: u64,
    /// Where all of it is mapped, if its code got addresses of its own.
    pub(in crate::commands::inject) base: Option<Addr>,
    /// Whether this run made the file; else the very same was there.
    made: bool,
}

impl ImageFile {
    /// Writes an image under the first name that is free, or taken by the very same image.
    pub(super) fn write(
        image: &Image<'_, '_>,
        aux_mappings: &[AuxMapping],
        pid: Pid,
        directory: ImageDirectory<'_>,
    ) -> Result<Self> {
        let ImageDirectory { path: directory, run, mode } = directory;
        let in_directory = |error: Error| error.in_file(directory);
        let mut new = NewFile::create_in(directory, mode).map_err(|error| in_directory(error.into()))?;
        let build_id = write_to(&new, image).map_err(in_directory)?;
        let (aux_mappings, code_end) = (aux_mappings.to_vec(), image.code_end());
        let written = |path, made| Self { path, build_id, aux_mappings, code_end, base: None, made };
        for number in 1.. {
            let path = directory.join(name(pid, number));
            run.leave_outputs(&path)?;
            let placed = new.persist_noclobber(&path);
            match placed.map_err(|error| Error::new("cannot be put into its place").because(error).in_file(&path))? {
                None => return Ok(written(path, true)),
                Some(back) => new = back,
            }
            if same_content(new.file(), &path) {
                return Ok(written(path, false));
            }
        }
        Err(in_directory(Error::new(format!("all names for the image of process {pid} are taken"))))
    }

    /// Takes the file away again, if this run made it: no output came about that refers to it.
    pub(super) fn take_away(&self) {
        if self.made {
            // The run has failed already, for a better reason than this one could be.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn name(pid: Pid, number: u32) -> String {
    if number == 1 { format!("jitted-{pid}.so") } else { format!("jitted-{pid}.{number}.so") }
}

/// Writes an image; half of the work is done beside the other.
fn write_to(new: &NewFile, image: &Image<'_, '_>) -> Result<BuildId> {
    let writer = || BufWriter::with_capacity(1 << 18, new.writer());
    let code = || {
        let mut out = writer();
        image.write_code(&mut out)?;
        Ok(out.flush()?)
    };
    let rest = || {
        let mut out = writer();
        let (build_id, rest) = (image.build_id(), image.write_rest(&mut out)?);
        image.finish(&rest, build_id, &mut out)?;
        Ok(build_id)
    };
    let (code, rest): (Result<()>, Result<BuildId>) = parallel::join(code, rest);
    code.and(rest)
}

fn same_content(new: &File, path: &Path) -> bool {
    let len = |metadata: std::io::Result<fs::Metadata>| metadata.map(|metadata| metadata.len()).ok();
    if len(new.metadata()) != len(fs::metadata(path)) {
        return false;
    }
    matches!((io::map_spool(new), io::map_file(path)), (Ok(a), Ok(b)) if a[..] == b[..])
}
