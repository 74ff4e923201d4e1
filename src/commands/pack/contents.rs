//! Collects the files of an archive.

use super::optional_parts::RequestedFile;
use super::options::{OptionalPart, PackOptions};
use super::privacy::Privacy;
use super::programs::Program;
use super::symbols_only::pieces;
use crate::analysis::quantity::{counted, grouped};
use crate::error::{Result, Warning, Warnings};
use crate::io;
use crate::io::door::Named;
use crate::jit::{Found, FoundFile, Kind};
use crate::model::Pid;
use crate::model::printable::readable;
use crate::model::process::BuildId;
use crate::parallel::Pool;
use crate::pipeline::archive::{PackedFile, Piece, ROOT, Role};
use crate::pipeline::open::Input;
use crate::symbolize::symbols::files::hex;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::fs::Metadata;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The files of an archive. Each path occurs once.
#[derive(Debug, Default)]
pub(super) struct Contents<'a> {
    list: Vec<Content<'a>>,
    /// The index of each path in the list.
    by_path: FxHashMap<String, usize>,
}

/// A file in the archive, and the file that it was copied from. The fields without a comment become those of a
/// [`PackedFile`].
#[derive(Debug)]
struct Content<'a> {
    path: String,
    role: Role,
    pid: Option<Pid>,
    build_id: Option<String>,
    modified: (i64, i64),
    /// The file that was copied, for the list of contents.
    from: PathBuf,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Content<'a> {
    fn new(path: String, role: Role, from: &Path, bytes: &'a [u8], about: Option<&Metadata>) -> Self {
        let modified = about.map_or((0, 0), |about| (about.mtime(), about.mtime_nsec()));
        let (from, pieces) = (from.to_owned(), vec![Piece::Bytes(bytes.into())]);
        Self { path, role, pid: None, build_id: None, modified, from, pieces }
    }

    fn len(&self) -> u64 {
        self.pieces.iter().map(Piece::len).sum()
    }
}

impl<'a> Contents<'a> {
    /// Adds the recording uncompressed, with the file names that perf record uses in a directory (`data`, `data.0`, …).
    pub(super) fn add_recording(&mut self, input: &'a Input, path: &Path) {
        // The packed files get the modification time of the input or, if that is a directory, of the main file in it,
        // `data`. The owner of that file doesn't matter: it belongs to the input, which was read already.
        let main = Named::Part.door(true).look(&path.join("data"));
        let about = main.or_else(|| io::typed_metadata(path));
        let recording = |name: String, role, bytes| Content::new(name, role, path, bytes, about.as_ref());
        self.add(recording("data".to_owned(), Role::Recording, &input.bytes));
        for (number, stream) in input.streams.iter().flatten().enumerate() {
            self.add(recording(format!("data.{number}"), Role::Stream, &stream.bytes));
        }
    }

    /// Adds jitdumps, perf maps and logs. Core dumps are only added if the user asked for them, because they contain a
    /// process's whole memory.
    pub(super) fn add_sources(&mut self, found: &'a Found, options: &PackOptions, warnings: &mut Warnings) {
        for FoundFile { path, name, bytes, about, source, .. } in found.each_file() {
            let Some((kind, pid)) = source else { continue };
            let role = match kind {
                Kind::JitDump => Role::Jitdump,
                Kind::PerfMap => Role::PerfMap,
                // Core dumps are the only logs whose content says which process they are of (`find_process`).
                Kind::Log(id)
                    if id.log().find_process.is_some() && !options.requested.contains(&OptionalPart::Cores) =>
                {
                    let message = "not packed: it is a core dump, which contains all memory of its process (pack it with --with \
                         cores)";
                    warnings.push(Warning::new(message).in_file(path, None));
                    continue;
                }
                Kind::Log(_) => Role::Log,
                // The address of a placed object (`--elf`) is only on the command line, so a copy of the object would
                // be of no use.
                Kind::PlacedElf => continue,
            };
            let Some(name) = name.to_str() else {
                warnings.push(path_warning(path.as_os_str().as_bytes()));
                continue;
            };
            // A process of another container may have left a file of the same name. The ID of this file's process keeps
            // the two names apart.
            let name = if self.by_path.contains_key(name) { format!("{pid}.{name}") } else { name.to_owned() };
            self.add(Content { pid: Some(pid), ..Content::new(name, role, path, bytes, about) });
        }
    }

    /// Adds the sampled ELF files and their debug files. Each is stored by its path or, if another file has that path,
    /// by its build ID.
    pub(super) fn add_programs(&mut self, programs: &'a [Program<'a>], symbols_only: bool) {
        for Program { role, name, path, image, .. } in programs {
            let free_path = path.as_deref().and_then(path_in_archive).filter(|path| !self.by_path.contains_key(path));
            let Some(packed_path) = free_path.or_else(|| path_by_id(image.build_id()?, name)) else { continue };
            let content = Content::new(packed_path, *role, image.path(), image.bytes(), image.metadata());
            let pieces = if symbols_only { pieces(image.bytes()) } else { content.pieces };
            self.add(Content { build_id: image.build_id().map(hex), pieces, ..content });
        }
    }

    /// Adds the files that are packed only on request.
    pub(super) fn add_others(&mut self, others: &'a [RequestedFile], warnings: &mut Warnings) {
        for RequestedFile { role, path, from, bytes } in others {
            match role {
                // In a recording that is a directory, perf has the kernel's symbols at this path.
                Role::Kallsyms => self.add(Content::new("kcore_dir/kallsyms".to_owned(), *role, from, bytes, None)),
                _ => match path_in_archive(path) {
                    Some(packed_path) => self.add(Content::new(packed_path, *role, from, bytes, None)),
                    None => warnings.push(path_warning(path)),
                },
            }
        }
    }

    /// Adds a file, unless there is one with the same path already.
    fn add(&mut self, content: Content<'a>) {
        if !self.by_path.contains_key(&content.path) {
            self.by_path.insert(content.path.clone(), self.list.len());
            self.list.push(content);
        }
    }

    /// The archive's manifest entries, including hashes.
    pub(super) fn files(&self, pool: &Pool) -> Vec<PackedFile> {
        pool.map(self.list.iter().collect(), |content: &Content<'_>| PackedFile {
            path: content.path.clone(),
            role: content.role,
            pid: content.pid.map(|pid| pid.0),
            build_id: content.build_id.clone(),
            modified: content.modified,
            size: content.len(),
            sha256: hash(&content.pieces),
        })
    }

    /// The contents of the files, in the order of [`Self::files`].
    pub(super) fn pieces(&self) -> Vec<&[Piece<'a>]> {
        self.list.iter().map(|content| &content.pieces[..]).collect()
    }

    /// Prints one line per file: its size, its path in the archive, and the file that it was copied from. The files
    /// that were left out come last.
    pub(super) fn list(&self, privacy: &Privacy<'_>, out: &mut dyn Write) -> Result<()> {
        for content in &self.list {
            let from = readable(content.from.as_os_str().as_bytes());
            writeln!(out, "{:>15}  {}  ({from})", grouped(content.len()), readable(content.path.as_bytes()))?;
        }
        for (path, why) in privacy.left_out() {
            writeln!(out, "{:>15}  {}  ({why})", "left out", readable(path.as_os_str().as_bytes()))?;
        }
        let whole = self.list.iter().map(Content::len).sum();
        Ok(writeln!(out, "{:>15}  in {}", grouped(whole), counted(self.list.len() as u64, "file"))?)
    }
}

/// The SHA-256 of a file's content, in hexadecimal.
fn hash(pieces: &[Piece<'_>]) -> String {
    let mut hash = Sha256::new();
    pieces.iter().for_each(|piece| piece.each(|bytes| hash.update(bytes)));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path under which the archive stores a recorded path. `None` if the path is not UTF-8 or not normalized.
fn path_in_archive(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok()?;
    let relative = path.strip_prefix('/').unwrap_or(path);
    let is_plain = Path::new(relative).components().all(|part| matches!(part, Component::Normal(_)));
    // `Path` ignores `.` and empty parts, which readers of archives reject.
    let has_odd_part = relative.split('/').any(|part| ["", ".", ".."].contains(&part));
    (is_plain && !has_odd_part && !path.contains('\0')).then(|| format!("{ROOT}/{relative}"))
}

/// The path under which the archive stores a file by its build ID. `name` is the file name that perf's build ID cache
/// uses for this kind of file.
fn path_by_id(id: BuildId, name: &str) -> Option<String> {
    let id = hex(id);
    let (first, rest) = id.split_at_checked(2)?;
    Some(format!(".build-id/{first}/{rest}/{name}"))
}

fn path_warning(path: &[u8]) -> Warning {
    Warning::new(format!("{}: not packed, because its path is not UTF-8 or has an empty, . or .. part", readable(path)))
}
