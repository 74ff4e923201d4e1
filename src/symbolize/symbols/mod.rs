//! Finds functions, inlined calls and source lines in native code. Uses the ELF symbols and DWARF of the files that
//! ran, and the list of methods in .NET's ReadyToRun images.
//!
//! Addresses are resolved in batches, each distinct one once. They are split by file, and then into shards of
//! neighboring addresses. A shard only parses the DWARF units that its addresses need.

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
use super::frames::{AddressFrame, Frames, TextId};
use crate::error::{Warning, Warnings};
use crate::model::code::MOST_INLINED;
use crate::parallel::{Pool, join};
use addr2line::FrameIter;
use data::{Variables, is_any_in_data};
use demangle::demangle;
use files::SearchOptions;
use gopclntab::{GoCall, GoTable};
use image::Image;
use images::Images;
use inlines::{DebugFiles, DebugSections, Inlines, LineTables};
use near::Reader;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use table::SymbolTable;

/// Which details of functions to find, and where to look for files.
#[derive(Debug, Clone)]
pub struct SymbolOptions {
    /// Where to look for files that were mapped, and for their debug information.
    pub search: SearchOptions,
    /// Whether to show inlined calls (false with `--no-inline`).
    pub inlines: bool,
    /// Whether to find source files and line numbers.
    pub lines: bool,
    /// Whether to demangle names (false with `--no-demangle`).
    pub demangle: bool,
}

impl SymbolOptions {
    /// The name to show: the demangled name, or `name` itself if demangling is turned off or fails.
    pub fn display_name<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let readable = if self.demangle { demangle(name) } else { None };
        readable.map_or(Cow::Borrowed(name), |readable| Cow::Owned(readable.into_bytes()))
    }
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self { search: SearchOptions::default(), inlines: true, lines: false, demangle: true }
    }
}

/// The minimum number of addresses in a shard. Each shard parses the DWARF units that it needs. Smaller shards would
/// cost more than they gain by running in parallel. Measured on a Rust program with 24 MB of DWARF and 5,000 distinct
/// addresses.
const MIN_SHARD: usize = 1024;

/// Like [`MIN_SHARD`], for files without DWARF, where demangling takes most of the time.
const MIN_SHARD_WITHOUT_DWARF: usize = 256;

/// The addresses to resolve in one mapped file.
#[derive(Debug)]
pub struct Request {
    /// The file that was mapped.
    pub dso: DsoId,
    /// The addresses to resolve, distinct and ascending, relative to [`Self::base`].
    pub offsets: Vec<u64>,
    /// What `offsets` are relative to.
    pub base: Base,
}

/// What the offsets of a [`Request`] are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Offsets count from the start of the file.
    File,
    /// Offsets are kernel addresses in the recording. Adding this number (wrapping) gives the link-time address.
    Linked(u64),
}

impl Base {
    /// The link-time address of an offset in the file `running`. `None` if no segment of the file contains the offset.
    pub fn vaddr(self, running: &Image, offset: u64) -> Option<u64> {
        match self {
            Self::File => running.vaddr_in_memory(offset),
            Self::Linked(shift) => Some(offset.wrapping_add(shift)),
        }
    }
}

impl Request {
    /// The link-time address of an offset of this request in the file `running`. `None` if no segment of the file
    /// contains the offset.
    pub fn vaddr(&self, running: &Image, offset: u64) -> Option<u64> {
        self.base.vaddr(running, offset)
    }
}

/// A file that ran, and other files with its symbols and debug information.
struct OpenedObject<'a> {
    running: &'a Image,
    /// The separate file with debug information or symbols, if it is needed and found.
    debugging: Option<Image>,
    /// The file in `.gnu_debugdata`, which is only read if nothing else has a full symbol table.
    mini: Option<Image>,
    /// Further files with debug information: split units, dwz. `None` if neither inlined calls nor lines are requested,
    /// or if there is no DWARF.
    files: Option<DebugFiles>,
}

/// The symbols and debug information of one file, ready for lookups.
struct LoadedSymbols<'a> {
    table: SymbolTable<'a>,
    /// The DWARF; `None` if it is missing, damaged or not needed.
    sections: Option<DebugSections<'a>>,
    /// Go's own table of functions; only read if there is no DWARF.
    go: Option<GoTable<'a>>,
    /// The file's variables; only read if any of the addresses is in data.
    variables: Option<Variables>,
}

/// Resolves all requests. Returns the results in the order of the requests. A request is divided into shards, each with
/// some successive offsets. Each shard gives one [`Frames`]; together, these have the results for the offsets of the
/// request, in order.
pub fn resolve(
    requests: &[Request],
    images: &Images,
    options: &SymbolOptions,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Frames> {
    // Files are handled in parallel, and so are the shards of each file, so that no thread waits for another file.
    let files = pool.map(requests.iter().collect(), |request| {
        let mut warnings = Warnings::new();
        let file = open(request, images, options, &mut warnings);
        (resolve_file(request, file.as_ref(), options, pool, &mut warnings), warnings)
    });
    let mut parts = Vec::new();
    for (shards, file_warnings) in files {
        warnings.append(file_warnings);
        parts.extend(shards);
    }
    parts
}

/// Resolves the addresses of one file, in shards that run in parallel. Without the file, its addresses have no frames.
fn resolve_file(
    request: &Request,
    file: Option<&OpenedObject<'_>>,
    options: &SymbolOptions,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Frames> {
    let Some(file) = file else {
        return vec![Frames::with_addresses(request.offsets.len())];
    };
    let loaded = load(request, file, options, pool);
    // With DWARF, each shard parses the units that it needs, so small shards don't pay.
    let min_size = if loaded.sections.is_some() { MIN_SHARD } else { MIN_SHARD_WITHOUT_DWARF };
    let size = request.offsets.len().div_ceil(pool.threads()).max(min_size);
    let frames = pool.map(request.offsets.chunks(size).collect(), |offsets| {
        let mut shard = Shard { frames: Frames::default(), names: FxHashMap::default(), options };
        shard.resolve(request, offsets, file, &loaded);
        shard.frames
    });
    let left_out = loaded.sections.as_ref().map_or(0, DebugSections::left_out);
    if left_out > 0 {
        warnings.push(too_deep(left_out).in_file(file.running.path(), None));
    }
    frames
}

/// A warning that this many inlined calls are left out because they are nested too deep.
pub fn too_deep(calls: u64) -> Warning {
    Warning::new(format!(
        "inlined calls nested more than {MOST_INLINED} deep are not shown (number of such calls: {calls}); their \
         samples count for the caller"
    ))
}

/// Opens the file that ran and, as needed, other files with its symbols and debug information. `None` if the file that
/// ran isn't found.
fn open<'a>(
    request: &Request,
    images: &'a Images,
    options: &SymbolOptions,
    warnings: &mut Warnings,
) -> Option<OpenedObject<'a>> {
    let running = images.get(request.dso)?;
    let wants_dwarf = options.inlines || options.lines;
    // If the file that ran has everything that is needed, no separate debug file is looked for.
    let is_complete = running.has_symtab() && (!wants_dwarf || running.has_dwarf());
    let debugging = if is_complete { None } else { options.search.find_debugging(running, warnings) };
    // The mini debug information (`.gnu_debugdata`) is unpacked only if the file that ran has no full symbol table and
    // no debug file was found.
    let has_no_symbols = !running.has_symtab() && debugging.is_none();
    let mini = if has_no_symbols { mini::image(running) } else { None };
    // The file with the DWARF: the debug file, or else the file that ran.
    let main = debugging.as_ref().filter(|image| image.has_dwarf()).unwrap_or(running);
    let mut files = None;
    if wants_dwarf && main.has_dwarf() {
        let addresses: Vec<u64> = request.offsets.iter().filter_map(|&offset| request.vaddr(running, offset)).collect();
        files = Some(DebugFiles::open(main, running, &options.search, &addresses, warnings));
    }
    Some(OpenedObject { running, debugging, mini, files })
}

/// Reads the symbols and the debug information that the request's addresses need, both at the same time if the pool has
/// several threads.
fn load<'a>(request: &Request, file: &'a OpenedObject<'a>, options: &SymbolOptions, pool: &Pool) -> LoadedSymbols<'a> {
    let wanted = wanted_addresses(request, file.running);
    // `main` is the file with the DWARF. If no file has DWARF, `file.files` is `None`, and no sections are loaded.
    let main = file.debugging.as_ref().filter(|image| image.has_dwarf()).unwrap_or(file.running);
    let lines = if options.lines { LineTables::Needed } else { LineTables::NotNeeded };
    let load_sections = || DebugSections::load(main, file.files.as_ref()?, &wanted, lines);
    let (sections, mut table) = pool.install(|| join(load_sections, || load_table(file, &wanted)));
    // Go's own table is used if there is no DWARF, or none is wanted. It also names functions of stripped programs.
    let go = if sections.is_none() { GoTable::read(file.running) } else { None };
    if let Some(go) = &go {
        table.add_go_functions(go, &wanted);
    }
    LoadedSymbols { table, sections, go, variables: load_variables(file, &wanted) }
}

/// The variables of the file; `None` if none of the addresses in `wanted`, which must be ascending, is in data.
fn load_variables(file: &OpenedObject<'_>, wanted: &[u64]) -> Option<Variables> {
    if !is_any_in_data(&file.running.object().ok()?, wanted) {
        return None;
    }
    let images: Vec<&Image> = std::iter::once(file.running).chain(&file.debugging).chain(&file.mini).collect();
    Some(Variables::new(&images))
}

/// The functions of a file by address. A ReadyToRun image of .NET has a list of methods. In other files, functions come
/// from the symbol tables of the debug file, of the mini debug information and of the file itself; PLT stubs, which
/// have no symbols, are found by their code. Only the addresses in `wanted` can be looked up.
fn load_table<'a>(file: &'a OpenedObject<'a>, wanted: &[u64]) -> SymbolTable<'a> {
    let methods = file.running.methods();
    if !methods.is_empty() {
        return SymbolTable::from_methods(methods);
    }
    // Full symbol tables come before that of the file itself, which may have been stripped; see `SymbolTable::new`.
    let mut objects = Vec::new();
    for image in [&file.debugging, &file.mini].into_iter().flatten() {
        objects.extend(image.object());
    }
    let mut stubs = Vec::new();
    if let Ok(running) = file.running.object() {
        if plt::covers(&running, wanted) {
            stubs = plt::stubs(&running);
        }
        objects.push(running);
    }
    SymbolTable::new(&objects.iter().collect::<Vec<_>>(), stubs, wanted)
}

/// The link-time addresses of the request's offsets in the file `running`, distinct and ascending.
fn wanted_addresses(request: &Request, running: &Image) -> Vec<u64> {
    let mut wanted: Vec<u64> = request.offsets.iter().filter_map(|&offset| request.vaddr(running, offset)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// The frames found so far for one shard of addresses.
struct Shard<'a> {
    frames: Frames,
    /// The names added so far: for each raw name (as the linker or compiler writes it), the ID of the name to show.
    names: FxHashMap<&'a [u8], TextId>,
    options: &'a SymbolOptions,
}

impl<'a> Shard<'a> {
    /// Adds the frames at each of these offsets of the request. Each offset gets an entry, even without frames.
    fn resolve(&mut self, request: &Request, offsets: &[u64], file: &OpenedObject<'_>, loaded: &'a LoadedSymbols<'a>) {
        let inlines = loaded.sections.as_ref().and_then(Inlines::new);
        for &offset in offsets {
            if let Some(addr) = request.vaddr(file.running, offset) {
                self.add_frames(addr, loaded, inlines.as_ref());
            }
            self.frames.end();
        }
    }

    /// Adds the frames at a link-time address: inlined calls from DWARF or Go's table, then the function from the
    /// symbol table, or the variable if the address is in data. Adds nothing if none has a name or a line for the
    /// address.
    fn add_frames(&mut self, addr: u64, loaded: &'a LoadedSymbols<'a>, inlines: Option<&Inlines<'a>>) {
        let symbol = loaded.table.find(addr);
        let mut function = AddressFrame {
            name: symbol.map(|symbol| self.intern_name(&symbol.name)),
            offset: symbol.map(|symbol| addr.saturating_sub(symbol.start)),
            file: None,
            line: 0,
            inlined: false,
        };
        if let Some(frames) = inlines.and_then(|inlines| inlines.find(addr)) {
            self.add_dwarf_calls(frames, &mut function);
        } else if let Some(go) = &loaded.go
            && (self.options.inlines || self.options.lines)
        {
            self.add_go_calls(go, addr, &mut function);
        }
        if function.name.is_none()
            && let Some(variables) = &loaded.variables
            && let Some(variable) = variables.find(addr).filter(|variable| variable.has_size)
        {
            function.name = Some(self.frames.intern(&self.options.display_name(&variable.name)));
            function.offset = Some(variable.offset);
        }
        if function.name.is_some() || function.line != 0 {
            self.frames.push(function);
        }
    }

    /// Adds the inlined calls that DWARF has for an address, and sets the source position of the compiled function
    /// (`function`). If the symbol table has a name for that function, the name stays, because it also tells apart the
    /// parts that the compiler split off (`.cold`, `.constprop.0`). `frames` has the innermost call first and the
    /// compiled function last.
    fn add_dwarf_calls(&mut self, mut frames: FrameIter<'_, Reader<'a>>, function: &mut AddressFrame) {
        let mut is_innermost = true;
        let mut next = frames.next().ok().flatten();
        while let Some(frame) = next {
            next = frames.next().ok().flatten();
            let is_compiled_function = next.is_none();
            // `function` temporarily holds the position of the frame in this round, which is copied to inlined frames.
            // If inlined calls aren't shown, it keeps the position of the innermost frame.
            if is_innermost || self.options.inlines {
                let location = frame.location.as_ref().filter(|_| self.options.lines);
                let file = location.and_then(|location| location.file);
                function.file = file.map(|file| self.frames.intern(file.as_bytes()));
                function.line = location.and_then(|location| location.line).unwrap_or(0);
            }
            is_innermost = false;
            if is_compiled_function {
                if function.name.is_none() {
                    function.name = frame.function.as_ref().map(|function| self.intern_name(function.name.slice()));
                }
            } else if self.options.inlines {
                let name = frame.function.as_ref().map(|function| self.intern_name(function.name.slice()));
                self.frames.push(AddressFrame { name, offset: None, inlined: true, ..*function });
            }
        }
    }

    /// Adds the inlined calls that Go's table has for an address, and sets the source position of the compiled
    /// function.
    fn add_go_calls(&mut self, go: &GoTable<'a>, addr: u64, function: &mut AddressFrame) {
        let calls = go.calls(addr);
        let Some((compiled_function, inlined)) = calls.split_last() else { return };
        if !self.options.inlines {
            // If inlined calls aren't shown, the compiled function gets the position of the innermost call.
            (function.file, function.line) = self.go_position(&calls[0]);
            return;
        }
        for call in inlined {
            let (file, line) = self.go_position(call);
            let name = Some(self.intern_name(call.name));
            self.frames.push(AddressFrame { name, offset: None, file, line, inlined: true });
        }
        (function.file, function.line) = self.go_position(compiled_function);
    }

    /// The file and line of a call, or `None` and 0 if they are unknown or not requested.
    fn go_position(&mut self, call: &GoCall<'a>) -> (Option<TextId>, u32) {
        if !self.options.lines || call.file.is_empty() {
            return (None, 0);
        }
        (Some(self.frames.intern(call.file)), call.line)
    }

    /// The ID of the name to show for a raw name, which is demangled only once.
    fn intern_name(&mut self, raw: &'a [u8]) -> TextId {
        if let Some(&id) = self.names.get(raw) {
            return id;
        }
        let id = self.frames.intern(&self.options.display_name(raw));
        self.names.insert(raw, id);
        id
    }
}
