//! Source lines beside instructions: from the dump's own entries for JIT code, from DWARF for native code; their text
//! where the file is here.

use super::annotation::{Code, Listing, SourceFile, SourceLine};
use super::functions::{CodePlace, Function};
use crate::error::Warnings;
use crate::pipeline::Job;
use crate::pipeline::recording::Resolution;
use crate::resolve::code_map::CodeId;
use crate::resolve::dso::DsoId;
use crate::resolve::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Finds source lines, and reads each file once.
pub(super) struct Sources<'a> {
    resolution: &'a Resolution<'a>,
    symbols: &'a SymbolOptions,
    texts: FxHashMap<Vec<u8>, Option<Arc<[String]>>>,
}

/// A position by bytes from the start of a function, and the name of its file.
struct Position {
    offset: u64,
    file: Vec<u8>,
    line: u32,
}

/// A source file is not longer than that.
const LONGEST: u64 = 64 << 20;

impl<'a> Sources<'a> {
    pub(super) fn new(resolution: &'a Resolution<'a>, symbols: &'a SymbolOptions) -> Self {
        Self { resolution, symbols, texts: FxHashMap::default() }
    }

    /// Gives each instruction of a listing its source line.
    pub(super) fn add_to(&mut self, listing: &mut Listing, function: &Function, job: &Job, warnings: &mut Warnings) {
        let Code::Listed { addr, lines, files, .. } = &mut listing.code else { return };
        let positions = match function.place {
            CodePlace::Jit(code) => self.of_jit(code),
            CodePlace::File(dso, _) => {
                let addresses = lines.iter().map(|line| *addr + line.offset).collect();
                self.of_file(dso, addresses, *addr, job, warnings)
            }
            CodePlace::Unknown(_) => return,
        };
        let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
        for line in lines {
            let at = positions.partition_point(|position| position.offset <= line.offset);
            let Some(position) = at.checked_sub(1).map(|at| &positions[at]).filter(|position| position.line > 0) else {
                continue;
            };
            let number = *numbers.entry(&position.file).or_insert(files.len());
            if number == files.len() {
                files.push(SourceFile { name: position.file.clone(), lines: self.text(&position.file) });
            }
            line.source = Some(SourceLine { file: number, line: position.line });
        }
    }

    fn of_jit(&self, code: CodeId) -> Vec<Position> {
        let entries = self.resolution.sources.map.code(code).lines.entries();
        let position = |line: &crate::model::code::Line<'_>| Position {
            offset: line.offset,
            file: line.file.to_vec(),
            line: line.line,
        };
        entries.iter().map(position).collect()
    }

    /// Of the innermost function at each address: that is whose line the instruction is.
    fn of_file(
        &self,
        dso: DsoId,
        addresses: Vec<u64>,
        start: u64,
        job: &Job,
        warnings: &mut Warnings,
    ) -> Vec<Position> {
        let request = [Request { dso, offsets: addresses, base: Base::Linked(0) }];
        let options = SymbolOptions { lines: true, inlines: true, ..self.symbols.clone() };
        let parts = symbols::resolve(&request, &self.resolution.images, &options, &job.pool, warnings);
        let frames = parts.iter().flat_map(|part| (0..part.len()).map(move |at| (part, at)));
        let position = |((part, at), addr): ((&crate::resolve::frames::Frames, usize), &u64)| {
            let innermost = part.of(at).first();
            let file = innermost.and_then(|frame| frame.file).map(|file| part.text(file).to_vec());
            let line = innermost.map_or(0, |frame| frame.line);
            Position {
                offset: addr - start,
                line: if file.is_some() { line } else { 0 },
                file: file.unwrap_or_default(),
            }
        };
        frames.zip(&request[0].offsets).map(position).collect()
    }

    fn text(&mut self, name: &[u8]) -> Option<Arc<[String]>> {
        self.texts.entry(name.to_vec()).or_insert_with(|| read(name)).clone()
    }
}

/// The lines of a file that a stranger names: nothing but a plain file of some length is opened.
fn read(name: &[u8]) -> Option<Arc<[String]>> {
    let name = name.strip_prefix(b"file://").unwrap_or(name);
    let path = PathBuf::from(OsStr::from_bytes(name));
    let about = std::fs::metadata(&path).ok().filter(|about| about.is_file() && about.len() <= LONGEST)?;
    let bytes = if about.len() == 0 { Vec::new() } else { std::fs::read(&path).ok()? };
    let lines = bytes.split(|&byte| byte == b'\n').map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
    Some(lines.collect())
}
