//! Functions, inlined calls and lines of native code: ELF symbols and DWARF of the files that were running, methods of
//! .NET's images.
//!
//! Addresses are resolved in batches, each unique one once: by file, then in shards of neighboring addresses, so that a
//! shard parses only the DWARF units that its addresses lie in.

pub mod code_kinds;
pub mod data;
#[cfg(test)]
mod debug_file_tests;
pub mod demangle;
pub mod files;
pub mod functions;
pub mod gopclntab;
pub mod image;
pub mod images;
pub mod inlines;
pub mod mini;
mod near;
pub mod no_elf;
pub mod plt;
pub mod ready_to_run;
pub mod table;

use super::dso::DsoId;
use super::frames::{Frame, Frames, TextId};
use crate::error::{Warning, Warnings};
use crate::model::code::MOST_INLINED;
use crate::parallel::{Pool, join};
use addr2line::FrameIter;
use demangle::demangle;
use files::SearchOptions;
use gopclntab::{GoCall, GoTable};
use image::Image;
use images::Images;
use inlines::{DebugFiles, DebugSections, Inlines};
use near::Reader;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use table::SymbolTable;

/// The parts to find out about an address.
#[derive(Debug, Clone)]
pub struct SymbolOptions {
    /// The places where files are looked for.
    pub search: SearchOptions,
    /// True to expand inlined calls (`--no-inline`).
    pub inlines: bool,
    /// True to find source files and lines.
    pub lines: bool,
    /// True to make names readable (`--no-demangle`).
    pub demangle: bool,
}

impl SymbolOptions {
    /// A name as it is shown: readable, unless that is not wanted.
    pub fn shown<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let readable = if self.demangle { demangle(name) } else { None };
        readable.map_or(Cow::Borrowed(name), |readable| Cow::Owned(readable.into_bytes()))
    }
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self { search: SearchOptions::default(), inlines: true, lines: false, demangle: true }
    }
}

/// Addresses of one shard: each shard parses the units it touches for itself, so that too small ones cost more than
/// they spread. Measured on a Rust program of 24 MB of DWARF with 5,000 unique addresses.
const SHARD: usize = 1024;

/// The same where no DWARF is parsed: then most of the time goes into making names readable.
const BARE_SHARD: usize = 256;

/// Addresses of one file, relative to it, in ascending order.
#[derive(Debug)]
pub struct Request {
    /// The file.
    pub dso: DsoId,
    /// Unique, ascending.
    pub offsets: Vec<u64>,
    /// The base of `offsets`.
    pub base: Base,
}

/// The base of the addresses of a [`Request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The start of the file.
    File,
    /// So much before the place that it was linked for.
    Linked(u64),
}

impl Request {
    /// The link-time address of one of the offsets.
    pub fn vaddr(&self, running: &Image, offset: u64) -> Option<u64> {
        match self.base {
            Base::File => running.vaddr(offset),
            Base::Linked(shift) => Some(offset.wrapping_add(shift)),
        }
    }
}

/// All that is open of one file.
struct OpenedObject<'a> {
    running: &'a Image,
    debugging: Option<Image>,
    mini: Option<Image>,
    /// The debugging files, if inlined calls or lines are wanted and known.
    files: Option<DebugFiles>,
}

/// The symbols that answer for the addresses of one file.
struct LoadedSymbols<'a> {
    table: SymbolTable<'a>,
    sections: Option<DebugSections<'a>>,
    /// Go's own table, where there is no DWARF.
    go: Option<GoTable<'a>>,
}

/// Resolves requests; the answers come in their order, one [`Frames`] for each shard, the shards of a request
/// behind each other.
pub fn resolve(
    requests: &[Request],
    images: &Images,
    options: &SymbolOptions,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Frames> {
    // A file's shards wait for nothing but that file.
    let files = pool.map(requests.iter().collect(), |request| {
        let mut warnings = Warnings::new();
        let file = open(request, images, options, &mut warnings);
        (resolve_file(request, file.as_ref(), options, pool, &mut warnings), warnings)
    });
    let mut parts = Vec::new();
    for (shards, own) in files {
        warnings.append(own);
        parts.extend(shards);
    }
    parts
}

fn resolve_file(
    request: &Request,
    file: Option<&OpenedObject<'_>>,
    options: &SymbolOptions,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Frames> {
    let Some(file) = file else {
        let mut unknown = Frames::default();
        request.offsets.iter().for_each(|_| unknown.end());
        return vec![unknown];
    };
    let loaded = load(request, file, options, pool);
    let least = if loaded.sections.is_some() { SHARD } else { BARE_SHARD };
    let size = request.offsets.len().div_ceil(pool.threads()).max(least);
    let frames = pool.map(request.offsets.chunks(size).collect(), |offsets| {
        let mut shard = Shard { frames: Frames::default(), names: FxHashMap::default(), options };
        shard.fill(request, offsets, file, &loaded);
        shard.frames
    });
    if let Some(left_out) = loaded.sections.as_ref().map(DebugSections::left_out).filter(|calls| *calls > 0) {
        warnings.push(too_deep(left_out).in_file(file.running.path(), None));
    }
    frames
}

/// The warning about inlined calls that are not shown.
pub fn too_deep(calls: u64) -> Warning {
    Warning::new(format!(
        "inlined calls ({calls}) nested more than {MOST_INLINED} deep: not shown, and counted for the call around them"
    ))
}

fn open<'a>(
    request: &Request,
    images: &'a Images,
    options: &SymbolOptions,
    warnings: &mut Warnings,
) -> Option<OpenedObject<'a>> {
    let running = images.get(request.dso)?;
    let dwarf = options.inlines || options.lines;
    let complete = running.has_symtab() && (!dwarf || running.has_dwarf());
    let debugging = if complete { None } else { options.search.debugging(running, warnings) };
    let bare = !running.has_symtab() && debugging.is_none();
    let mini = if bare { mini::image(running) } else { None };
    let main = debugging.as_ref().filter(|image| image.has_dwarf()).unwrap_or(running);
    let files = (dwarf && main.has_dwarf()).then(|| {
        let addresses: Vec<u64> = request.offsets.iter().filter_map(|&offset| request.vaddr(running, offset)).collect();
        DebugFiles::open(main, running, &options.search, &addresses, warnings)
    });
    Some(OpenedObject { running, debugging, mini, files })
}

fn load<'a>(request: &Request, file: &'a OpenedObject<'a>, options: &SymbolOptions, pool: &Pool) -> LoadedSymbols<'a> {
    let wanted = wanted(request, file.running);
    let main = file.debugging.as_ref().filter(|image| image.has_dwarf()).unwrap_or(file.running);
    let sections = || file.files.as_ref().and_then(|files| DebugSections::load(main, files, &wanted, options.lines));
    let table = || {
        if !file.running.methods().is_empty() {
            return SymbolTable::of_methods(file.running.methods());
        }
        let images = [file.debugging.as_ref(), file.mini.as_ref(), Some(file.running)];
        let objects: Vec<_> = images.into_iter().flatten().filter_map(|image| image.object().ok()).collect();
        let running = objects.last().filter(|running| plt::covers(running, &wanted));
        let stubs = running.map(plt::stubs).unwrap_or_default();
        SymbolTable::new(&objects.iter().collect::<Vec<_>>(), stubs, &wanted)
    };
    let (sections, mut table) = pool.install(|| join(sections, table));
    let go = if sections.is_none() { GoTable::read(file.running) } else { None };
    if let Some(go) = &go {
        table.add_go_functions(go, &wanted);
    }
    LoadedSymbols { table, sections, go }
}

/// The link-time addresses that may be looked up, ascending.
fn wanted(request: &Request, running: &Image) -> Vec<u64> {
    let mut wanted: Vec<u64> = request.offsets.iter().filter_map(|&offset| request.vaddr(running, offset)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Writes the answers of one shard.
struct Shard<'a> {
    frames: Frames,
    /// Names as the linker or compiler spells them → as they are shown.
    names: FxHashMap<&'a [u8], TextId>,
    options: &'a SymbolOptions,
}

impl<'a> Shard<'a> {
    fn fill(&mut self, request: &Request, offsets: &[u64], file: &OpenedObject<'_>, loaded: &'a LoadedSymbols<'a>) {
        let inlines = loaded.sections.as_ref().and_then(Inlines::new);
        for &offset in offsets {
            if let Some(addr) = request.vaddr(file.running, offset) {
                self.address(addr, loaded, inlines.as_ref());
            }
            self.frames.end();
        }
    }

    fn address(&mut self, addr: u64, loaded: &'a LoadedSymbols<'a>, inlines: Option<&Inlines<'a>>) {
        let symbol = loaded.table.find(addr);
        let mut function = Frame {
            name: symbol.map(|symbol| self.name(&symbol.name)),
            offset: symbol.map(|symbol| addr.saturating_sub(symbol.start)),
            file: None,
            line: 0,
            inlined: false,
        };
        if let Some(frames) = inlines.and_then(|inlines| inlines.find(addr)) {
            self.dwarf(frames, &mut function);
        } else if let Some(go) = &loaded.go
            && (self.options.inlines || self.options.lines)
        {
            self.go(go, addr, &mut function);
        }
        if function.name.is_some() || function.line != 0 {
            self.frames.push(function);
        }
    }

    /// Writes the inlined calls, and DWARF's facts about the function around them. The symbol table has the last word
    /// on that one's name: parts that the compiler split off (`.cold`, `.constprop.0`) have their own there.
    fn dwarf(&mut self, mut frames: FrameIter<'_, Reader<'a>>, function: &mut Frame) {
        let mut innermost = true;
        let mut next = frames.next().ok().flatten();
        while let Some(frame) = next {
            next = frames.next().ok().flatten();
            let last = next.is_none();
            if innermost || self.options.inlines {
                let location = frame.location.as_ref().filter(|_| self.options.lines);
                let file = location.and_then(|location| location.file);
                function.file = file.map(|file| self.frames.intern(file.as_bytes()));
                function.line = location.and_then(|location| location.line).unwrap_or(0);
            }
            innermost = false;
            if last && function.name.is_some() || !last && !self.options.inlines {
                continue;
            }
            let name = frame.function.as_ref().map(|function| self.name(function.name.slice()));
            if last {
                function.name = name;
            } else {
                self.frames.push(Frame { name, offset: None, inlined: true, ..*function });
            }
        }
    }

    /// Writes the inlined calls that Go's table has, and its position in the function around them.
    fn go(&mut self, go: &GoTable<'a>, addr: u64, function: &mut Frame) {
        let calls = go.calls(addr);
        let Some((last, inlined)) = calls.split_last() else { return };
        let innermost = calls.first().filter(|_| !self.options.inlines);
        for call in inlined.iter().filter(|_| self.options.inlines) {
            let (file, line) = self.go_position(call);
            let name = Some(self.name(call.name));
            self.frames.push(Frame { name, offset: None, file, line, inlined: true });
        }
        (function.file, function.line) = self.go_position(innermost.unwrap_or(last));
    }

    fn go_position(&mut self, call: &GoCall<'a>) -> (Option<TextId>, u32) {
        if !self.options.lines || call.file.is_empty() {
            return (None, 0);
        }
        (Some(self.frames.intern(call.file)), call.line)
    }

    fn name(&mut self, raw: &'a [u8]) -> TextId {
        if let Some(&id) = self.names.get(raw) {
            return id;
        }
        let id = self.frames.intern(&self.options.shown(raw));
        self.names.insert(raw, id);
        id
    }
}
