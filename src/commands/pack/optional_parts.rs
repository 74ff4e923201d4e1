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

/// A file that the user asked to pack.
#[derive(Debug)]
pub(super) struct RequestedFile {
    pub(super) role: Role,
    /// The recorded path of the file. Readers of the archive will look for it under this path.
    pub(super) path: Vec<u8>,
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
    for asked in privacy.requested {
        match asked {
            OptionalPart::Kallsyms => found.extend(kallsyms(examined, warnings)),
            OptionalPart::Scripts => scripts(examined, &mut found, privacy, warnings),
            OptionalPart::Sources => sources(examined, &mut found, privacy, warnings),
            // These requests only affect which jitdumps, logs, programs and text files may be packed.
            OptionalPart::Cores | OptionalPart::Private => {}
        }
    }
    found
}

/// The kernel's symbols, if they are known.
fn kallsyms(examined: &Examined<'_>, warnings: &mut Warnings) -> Option<RequestedFile> {
    let bytes = examined.resolution.kernel_list(warnings)?;
    let from = PathBuf::from("the kernel's symbols");
    Some(RequestedFile { role: Role::Kallsyms, path: Vec::new(), from, bytes })
}

/// Finds the scripts that have source maps, and the source maps.
fn scripts(
    examined: &Examined<'_>,
    found: &mut Vec<RequestedFile>,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) {
    let files = examined.resolution.sources.source_maps.accounts.iter().flat_map(|account| &account.files);
    for (recorded, here) in files {
        found.extend(text(Role::Script, recorded.as_os_str().as_bytes(), here, examined, privacy, warnings));
    }
}

/// Finds the source files of all sampled lines. Each is looked for below the roots that the user named, then at its own
/// path.
fn sources(
    examined: &Examined<'_>,
    found: &mut Vec<RequestedFile>,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) {
    let mut names = BTreeSet::new();
    for at in 0..examined.samples.chains.places().len() {
        examined.named.each(PlaceId(at as u32), |frame| names.extend(frame.file.map(<[u8]>::to_vec)));
    }
    let names = names.iter().map(|name| name.strip_prefix(b"file://").unwrap_or(name));
    for name in names.filter(|name| name.starts_with(b"/")) {
        let own = PathBuf::from(OsStr::from_bytes(name));
        let below_roots = examined.resolution.search().recorded_paths(name).into_iter();
        for here in below_roots.chain([own]) {
            if let Some(source) = text(Role::Source, name, &here, examined, privacy, warnings) {
                found.push(source);
                break;
            }
        }
    }
}

/// Opens a text file to pack it. `None` if the file is missing, isn't text, or is private.
fn text(
    role: Role,
    path: &[u8],
    here: &Path,
    examined: &Examined<'_>,
    privacy: &mut Privacy<'_>,
    warnings: &mut Warnings,
) -> Option<RequestedFile> {
    match Named::Recording.door(examined.resolution.search().force).open(here, TEXT)? {
        Ok(opened) if !privacy.permits(here, opened.is_everybodys) => None,
        Ok(opened) => Some(RequestedFile { role, path: path.to_vec(), from: here.to_owned(), bytes: opened.bytes }),
        Err(error) => {
            warnings.push(error.into_warning());
            None
        }
    }
}

const TEXT: Kind = Kind { holes: |head| (!head.contains(&0)).then_some(Holes::Small), otherwise: "is not a text" };
