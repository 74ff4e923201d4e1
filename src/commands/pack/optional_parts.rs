//! Finds the parts of an archive that are packed only on request, because they reveal more than names.

use super::options::{OptionalPart, PackOptions};
use super::privacy::Privacy;
use crate::error::Warnings;
use crate::io::Bytes;
use crate::io::door::{Holes, Kind, Named};
use crate::model::chains::PlaceId;
use crate::pipeline::archive::Role;
use crate::pipeline::recording::{Examined, RecordingOptions};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file that is packed only because the user asked for its kind.
#[derive(Debug)]
pub(super) struct RequestedFile {
    pub(super) role: Role,
    /// The recorded path of the file. Readers of the archive will look for it under this path. Empty for the kernel's
    /// symbols.
    pub(super) path: Vec<u8>,
    /// The path of the file on this machine, for the list of packed files. For the kernel's symbols, a description.
    pub(super) from: PathBuf,
    pub(super) bytes: Bytes,
}

/// The options for reading the recording. If the user requested scripts or sources, the reader also finds out which
/// files these are.
pub(super) fn options(options: &PackOptions) -> RecordingOptions {
    let mut recording = options.recording.clone();
    recording.symbols.lines = options.requested.contains(&OptionalPart::Sources);
    recording.sources.source_maps.asked = Some(options.requested.contains(&OptionalPart::Scripts));
    recording
}

/// Finds all files that the user requested.
pub(super) fn find(examined: &Examined<'_>, privacy: &mut Privacy<'_>, warnings: &mut Warnings) -> Vec<RequestedFile> {
    let mut found = Vec::new();
    for part in privacy.requested {
        match part {
            OptionalPart::Kallsyms => found.extend(find_kallsyms(examined, warnings)),
            OptionalPart::Scripts => add_scripts(examined, &mut found, privacy, warnings),
            OptionalPart::Sources => add_sources(examined, &mut found, privacy, warnings),
            // Core dumps are packed with the other sources that name code (`Contents::add_sources`). `Private` only
            // permits to pack files that other users can't read.
            OptionalPart::Cores | OptionalPart::Private => {}
        }
    }
    found
}

/// The kernel's symbols, if they are known.
fn find_kallsyms(examined: &Examined<'_>, warnings: &mut Warnings) -> Option<RequestedFile> {
    let bytes = examined.resolution.kernel_list(warnings)?;
    let from = PathBuf::from("the kernel's symbols");
    Some(RequestedFile { role: Role::Kallsyms, path: Vec::new(), from, bytes })
}

/// Finds the scripts that have source maps, and the source maps.
fn add_scripts(
    examined: &Examined<'_>,
    found: &mut Vec<RequestedFile>,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) {
    let files = examined.resolution.sources.source_maps.accounts.iter().flat_map(|account| &account.files);
    // Where each script was when it was recorded, and where it is on this machine.
    for (recorded, local) in files {
        found.extend(open_text(Role::Script, recorded.as_os_str().as_bytes(), local, examined, privacy, warnings));
    }
}

/// Finds the source files of all sampled lines. Each is looked for below the roots that the user named, then at its own
/// path.
fn add_sources(
    examined: &Examined<'_>,
    found: &mut Vec<RequestedFile>,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) {
    let mut names = BTreeSet::new();
    for place in 0..examined.samples.chains.places().len() as u32 {
        names.extend(examined.named.frames(PlaceId(place)).filter_map(|frame| frame.file.map(<[u8]>::to_vec)));
    }
    let names = names.iter().map(|name| name.strip_prefix(b"file://").unwrap_or(name));
    // A relative path doesn't say where the file is.
    for name in names.filter(|name| name.starts_with(b"/")) {
        let own_path = PathBuf::from(OsStr::from_bytes(name));
        let paths_below_roots = examined.resolution.search().recorded_paths(name).into_iter();
        for local in paths_below_roots.chain([own_path]) {
            if let Some(source) = open_text(Role::Source, name, &local, examined, privacy, warnings) {
                found.push(source);
                break;
            }
        }
    }
}

/// Opens a text file to pack it. `path` is its recorded path, and `local` its path on this machine. `None` if the file
/// is missing, if it can't be opened (with a warning), or if it is private, so that [`Privacy`] doesn't permit to pack
/// it.
fn open_text(
    role: Role,
    path: &[u8],
    local: &Path,
    examined: &Examined<'_>,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) -> Option<RequestedFile> {
    // `open` returns `None` if the file is missing. It fails if the file can't be read, or if it belongs to another
    // user. With `-f`, another user's file is accepted if it is text.
    match Named::Recording.door(examined.resolution.search().force).open(local, TEXT)? {
        Ok(opened) if !privacy.permits(local, opened.is_everybodys) => None,
        Ok(opened) => Some(RequestedFile { role, path: path.to_vec(), from: local.to_owned(), bytes: opened.bytes }),
        Err(error) => {
            warnings.push(error.into_warning());
            None
        }
    }
}

/// Text: its beginning contains no NUL.
const TEXT: Kind = Kind { holes: |head| (!head.contains(&0)).then_some(Holes::Small), otherwise: "is not a text file" };
