//! Finds the sampled ELF files in the version that was recorded, and the debug files that belong to them.

use super::privacy::Privacy;
use crate::analysis::quantity::counted;
use crate::error::{Warning, Warnings};
use crate::jit::open_inside;
use crate::model::printable::readable;
use crate::pipeline::archive::Role;
use crate::pipeline::recording::Examined;
use crate::symbolize::Location;
use crate::symbolize::dso::{Dso, DsoId, DsoKind};
use crate::symbolize::symbols::files::{ELF, SearchOptions};
use crate::symbolize::symbols::image::Image;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An ELF file to pack.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) role: Role,
    /// The file name that perf's build ID cache uses for this kind of file: `elf`, `vdso` or `debug`.
    pub(super) name: &'static str,
    /// The path where readers of the archive look for the file. `None` if they find it only by its build ID.
    pub(super) path: Option<Vec<u8>>,
    pub(super) image: Opened<'a>,
}

/// An opened ELF file, shared with the symbolizer or opened only for packing.
#[derive(Debug)]
pub(super) enum Opened<'a> {
    /// The symbolizer has the file open.
    Shared(&'a Image),
    /// The file was only opened for packing.
    Own(Box<Image>),
}

impl Opened<'_> {
    fn own(image: Image) -> Self {
        Self::Own(Box::new(image))
    }
}

impl std::ops::Deref for Opened<'_> {
    type Target = Image;

    fn deref(&self) -> &Image {
        match self {
            Self::Shared(image) => image,
            Self::Own(image) => image,
        }
    }
}

/// Finds the files that contain frames of sampled stacks. Warns about files that are not on this machine, with the
/// number of frames in each.
pub(super) fn find<'a>(
    examined: &Examined<'a>,
    symbols_only: bool,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) -> Vec<Program<'a>> {
    let (dsos, search) = (examined.resolution.spaces.dsos(), examined.resolution.search());
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    let mut packed = BTreeSet::new();
    for (id, frames) in count_frames(examined) {
        let dso = dsos.get(id);
        // Skip a build that was packed already. The same path and build ID can occur with several inodes, because
        // containers may have copies of one file.
        if !packed.insert((&dso.path, dso.build_id)) {
            continue;
        }
        match dso.kind {
            // Only code of these kinds is in a file that can be packed. Kernel code is packed as a list of symbols, on
            // request.
            DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => {}
            DsoKind::Anonymous
            | DsoKind::Data
            | DsoKind::Kernel
            | DsoKind::Module
            | DsoKind::KernelSymbol(_)
            | DsoKind::Guest => {
                continue;
            }
        }
        // Prefer the file in the container: at the same path on this machine, there may be another one.
        let container_image = open_in_container(dso, examined, warnings).map(Opened::own);
        let found = container_image.or_else(|| examined.resolution.images.get(id).map(Opened::Shared));
        let Some(image) = found else {
            missing.push((&dso.path[..], frames));
            privacy.missing.push(PathBuf::from(OsStr::from_bytes(&dso.path)));
            continue;
        };
        if !privacy.permits(image.path(), image.is_everybodys()) {
            continue;
        }
        add_debugging(dso, &image, search, symbols_only, &mut programs, warnings);
        let name = if dso.is_vdso() { "vdso" } else { "elf" };
        programs.push(Program { role: Role::Program, name, path: Some(dso.path.clone()), image });
    }
    warn_about_missing(missing, warnings);
    // The program was checked above, but its debug files are files of their own, and may be private.
    programs.retain(|program| privacy.permits(program.image.path(), program.image.is_everybodys()));
    programs
}

/// The files that contain frames, with the number of frames in each, most frames first.
fn count_frames(examined: &Examined<'_>) -> Vec<(DsoId, u64)> {
    let (chains, mut frames) = (&examined.samples.chains, BTreeMap::<DsoId, u64>::new());
    for row in &examined.samples.rows {
        for place in chains.places_up(row.chain) {
            // Only count frames in files: JIT code and unknown memory have no file to pack.
            if let Location::File(dso, _) = chains.places()[place.0 as usize].location {
                *frames.entry(dso).or_default() += row.count;
            }
        }
    }
    let mut frames: Vec<_> = frames.into_iter().collect();
    frames.sort_by_key(|(dso, count)| (Reverse(*count), *dso));
    frames
}

/// Opens the file inside the container of a process that has mapped it, if the process is still running. `None` if
/// there is no such process, or if the file there has another build ID or can't be opened (with a warning).
fn open_in_container(dso: &Dso, examined: &Examined<'_>, warnings: &mut Warnings) -> Option<Image> {
    if dso.kind != DsoKind::File {
        return None;
    }
    let survey = examined.resolution.survey;
    let force = examined.resolution.search().force;
    let path = Path::new(OsStr::from_bytes(&dso.path));
    let collect_sampled = || survey.collect_sampled();
    let site = survey.site(None, &collect_sampled);
    for (pid, process) in &survey.processes.by_pid {
        if !process.mappings.iter().any(|map| map.path == dso.path) {
            continue;
        }
        match open_inside(*pid, path, ELF, &survey.processes, &site, force) {
            Some(Ok(opened)) => {
                if let Ok(image) = Image::from_opened(path, opened)
                    && image.has_build_id(dso.build_id)
                {
                    return Some(image);
                }
            }
            Some(Err(error)) => warnings.push(error.into_warning()),
            None => {}
        }
    }
    None
}

/// Adds the files with debug information that belong to a program or library: its separate debug file if it lacks
/// symbols or DWARF, its `.dwp` file, and the file that it shares with others (`dwz`). With `symbols_only`, only the
/// separate debug file is needed, and only if symbols are missing.
fn add_debugging<'a>(
    dso: &Dso,
    image: &Image,
    search: &SearchOptions,
    symbols_only: bool,
    found: &mut Vec<Program<'a>>,
    warnings: &mut Warnings,
) {
    let is_complete = image.has_symtab() && (symbols_only || image.has_dwarf());
    let debugging = if is_complete { None } else { search.find_debugging(image, warnings) };
    // The file with the DWARF. It is the one that refers to the `.dwp` and `dwz` files.
    let main = debugging.as_ref().unwrap_or(image);
    if !symbols_only {
        let shared = search.find_shared(main, warnings);
        if let Some(package) = search.find_package(&[image, main], warnings) {
            found.push(debug_program(package, Some([&dso.path[..], b".dwp"].concat())));
        }
        if let Some(shared) = shared {
            found.push(debug_program(shared, None));
        }
    }
    if let Some(debugging) = debugging {
        let path = linked_path(dso, &debugging);
        found.push(debug_program(debugging, path));
    }
}

/// A debug file to pack. `path` is the path where readers of the archive look for it; `None` if they find it by its
/// build ID.
fn debug_program<'a>(image: Image, path: Option<Vec<u8>>) -> Program<'a> {
    Program { role: Role::Debug, name: "debug", path, image: Opened::own(image) }
}

/// The path where debuggers look for a debug file that has no build ID: the directory `.debug` next to the program.
/// `None` if the debug file has a build ID.
fn linked_path(dso: &Dso, debugging: &Image) -> Option<Vec<u8>> {
    if debugging.build_id().is_some() {
        return None;
    }
    let name = debugging.path().file_name()?;
    Some([parent(&dso.path), b"/.debug/", name.as_bytes()].concat())
}

/// The directory of a path, without a slash at the end; empty if the path has no directory.
fn parent(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(&b""[..], |slash| &path[..slash])
}

/// Warns about programs that are not on this machine, each with the number of frames in it.
fn warn_about_missing(missing: Vec<(&[u8], u64)>, warnings: &mut Warnings) {
    for (path, frames) in missing {
        let message = format!(
            "{}: not packed, because the version that ran is missing (affects {})",
            readable(path),
            counted(frames, "frame")
        );
        warnings.push(Warning::new(message));
    }
}
