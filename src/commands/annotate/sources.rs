//! Source lines beside instructions: from the dump's own entries for JIT code, from DWARF for native code, from BTF for
//! BPF programs; their text where the file is here, or BTF has it.

use super::annotation::{Code, Line, Listing, SourceFile, SourceLine, SourceText};
use super::functions::{CodePlace, Function};
use crate::error::Warnings;
use crate::io;
use crate::model::bpf::BpfFunctionId;
use crate::pipeline::Job;
use crate::pipeline::recording::Resolution;
use crate::resolve::code_map::CodeId;
use crate::resolve::dso::DsoId;
use crate::resolve::frames::Frames;
use crate::resolve::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Finds source lines, and reads each file once.
pub(super) struct Sources<'a> {
    resolution: &'a Resolution<'a>,
    /// Of the native code of all listings, in one order for each file: opening a file with its DWARF takes long.
    native: FxHashMap<DsoId, Vec<Position>>,
    texts: FxHashMap<Vec<u8>, Option<Arc<[String]>>>,
}

/// Where an instruction comes from: how far it is from the start of its function, or of native code its address, and
/// the name of the source file.
struct Position {
    at: u64,
    file: Vec<u8>,
    line: u32,
}

/// A source file is not longer than that.
const LONGEST: u64 = 64 << 20;

impl<'a> Sources<'a> {
    /// Looks up the native code of these functions' listings.
    pub(super) fn new(
        resolution: &'a Resolution<'a>,
        symbols: &SymbolOptions,
        listed: &[(&Function, &mut Listing)],
        job: &Job,
        warnings: &mut Warnings,
    ) -> Self {
        let mut addresses: BTreeMap<DsoId, Vec<u64>> = BTreeMap::new();
        for (function, listing) in listed {
            if let (CodePlace::File(dso, _), Code::Listed { addr, lines, .. }) = (&function.place, &listing.code) {
                addresses.entry(*dso).or_default().extend(lines.iter().map(|line| addr + line.offset));
            }
        }
        let options = SymbolOptions { lines: true, inlines: true, ..symbols.clone() };
        let positions = |(dso, mut offsets): (DsoId, Vec<u64>)| {
            offsets.sort_unstable();
            offsets.dedup();
            let request = Request { dso, offsets, base: Base::Linked(0) };
            (dso, positions(&request, resolution, &options, job, warnings))
        };
        let native = addresses.into_iter().map(positions).collect();
        Self { resolution, native, texts: FxHashMap::default() }
    }

    /// Gives each instruction of a listing its source line.
    pub(super) fn add_to(&mut self, function: &Function, listing: &mut Listing) {
        let Code::Listed { addr, lines, files, .. } = &mut listing.code else { return };
        let of_jit;
        let (positions, start) = match function.place {
            CodePlace::Jit(code) => {
                of_jit = self.of_jit(code);
                (&of_jit, 0)
            }
            CodePlace::File(dso, _) => match self.native.get(&dso) {
                Some(positions) => (positions, *addr),
                None => return,
            },
            CodePlace::Bpf(id) => return self.of_bpf(id, lines, files),
            CodePlace::Unknown(_) => return,
        };
        let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
        for line in lines {
            let at = positions.partition_point(|position| position.at <= start + line.offset);
            let Some(position) = at.checked_sub(1).map(|at| &positions[at]).filter(|position| position.line > 0) else {
                continue;
            };
            let number = *numbers.entry(&position.file).or_insert(files.len());
            if number == files.len() {
                files.push(SourceFile::new(&position.file, text(&mut self.texts, &position.file)));
            }
            line.source = Some(SourceLine { file: number, line: position.line });
        }
    }

    /// The recording has the text of the lines: the file may be another one by now.
    fn of_bpf(&self, id: BpfFunctionId, lines: &mut [Line], files: &mut Vec<SourceFile>) {
        let Some(function) = self.resolution.survey.processes.bpf_functions.get(id.0 as usize) else { return };
        let mut numbers: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut texts: Vec<BTreeMap<u32, String>> = Vec::new();
        for line in lines {
            let Some(known) = function.line_at(line.offset).filter(|known| known.line > 0) else { continue };
            let file = function.text(known.file);
            let number = *numbers.entry(file).or_insert_with(|| {
                texts.push(BTreeMap::new());
                files.push(SourceFile::new(file, None));
                texts.len() - 1
            });
            let text = || String::from_utf8_lossy(function.text(known.text)).trim_end().to_owned();
            texts[number].entry(known.line).or_insert_with(text);
            line.source = Some(SourceLine { file: number, line: known.line });
        }
        for (file, mut text) in files.iter_mut().zip(texts) {
            text.retain(|_, text| !text.is_empty());
            file.text = (!text.is_empty()).then_some(SourceText::Recorded(text));
        }
    }

    fn of_jit(&self, code: CodeId) -> Vec<Position> {
        let entries = self.resolution.sources.map.code(code).lines.entries();
        let position = |line: &crate::model::code::Line<'_>| Position {
            at: line.offset,
            file: line.file.to_vec(),
            line: line.line,
        };
        entries.iter().map(position).collect()
    }
}

/// Of the innermost function at each address: that is whose line the instruction is.
fn positions(
    request: &Request,
    resolution: &Resolution<'_>,
    options: &SymbolOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Vec<Position> {
    let parts = symbols::resolve(std::slice::from_ref(request), &resolution.images, options, &job.pool, warnings);
    let frames = parts.iter().flat_map(|part| (0..part.len()).map(move |at| (part, at)));
    let position = |((part, at), addr): ((&Frames, usize), &u64)| {
        let innermost = part.of(at).first();
        let file = innermost.and_then(|frame| frame.file).map(|file| part.text(file).to_vec());
        let line = innermost.map_or(0, |frame| frame.line);
        Position { at: *addr, line: if file.is_some() { line } else { 0 }, file: file.unwrap_or_default() }
    };
    frames.zip(&request.offsets).map(position).collect()
}

/// The lines of a file, which is read once.
fn text(texts: &mut FxHashMap<Vec<u8>, Option<Arc<[String]>>>, name: &[u8]) -> Option<Arc<[String]>> {
    texts.entry(name.to_vec()).or_insert_with(|| read(name)).clone()
}

/// The lines of a file that a stranger names: nothing but a plain file of some length is opened; and where root does it,
/// who may read any, only what everybody may read.
pub(super) fn read(name: &[u8]) -> Option<Arc<[String]>> {
    let name = name.strip_prefix(b"file://").unwrap_or(name);
    let path = PathBuf::from(OsStr::from_bytes(name));
    let file = io::open_regular_file(&path, true).ok()?;
    let about = file.metadata().ok().filter(|about| about.len() <= LONGEST && is_everybodys(about))?;
    let mut bytes = Vec::new();
    // What says that it is empty may never end.
    file.take(about.len()).read_to_end(&mut bytes).ok()?;
    let lines = bytes.split(|&byte| byte == b'\n').map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
    Some(lines.collect())
}

fn is_everybodys(about: &Metadata) -> bool {
    const READABLE_BY_ALL: u32 = 0o004;
    !rustix::process::geteuid().is_root() || about.mode() & READABLE_BY_ALL != 0
}
