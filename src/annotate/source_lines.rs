//! Adds source lines to instructions. If the input states source lines (callgrind), those are used. Otherwise, they
//! come from jitdumps for JIT code, from DWARF for native code, and from BTF for BPF programs. The text of a line is
//! read from the source file if it is on this machine; for BPF programs, BTF has it.

use super::functions::{Function, FunctionCode};
use super::listing::{Code, Listing, Row, SourceFile, SourceLine, SourceText};
use super::machine_code::CodeFiles;
use crate::analysis::quantity::grouped;
use crate::error::{Error, Warning, Warnings};
use crate::io::door::{Holes, Kind, Named};
use crate::model::bpf::BpfFunctionId;
use crate::pipeline::Job;
use crate::symbolize::code_map::CodeId;
use crate::symbolize::dso::DsoId;
use crate::symbolize::frames::AddressFrame;
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::images::Images;
use crate::symbolize::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

/// Finds source lines and their text. Reads each file only once.
pub(super) struct SourceLines<'a> {
    code: &'a CodeFiles<'a>,
    /// The source lines of the native code of all listings, sorted by address for each file. They are looked up
    /// together, because opening a file with its DWARF is slow.
    native: FxHashMap<DsoId, Vec<CodeOrigin>>,
    texts: Texts,
}

/// The source line of the code from `begin` up to the next origin. `begin` is an offset in a JIT function; for native
/// code, it is an address as linked. Line 0 is unknown.
struct CodeOrigin {
    begin: u64,
    file: Vec<u8>,
    line: u32,
}

/// callgrind's placeholder for an unknown file, and for memory that no file backs.
pub(super) const UNKNOWN_FILE: &[u8] = b"???";

/// Maximum size of a source file in bytes. Larger ones are not read.
const LONGEST: u64 = 64 << 20;

impl<'a> SourceLines<'a> {
    /// Looks up the source lines of all native code in the listings, except where the input states them: callgrind
    /// files do, recordings don't.
    pub(super) fn new(
        code: &'a CodeFiles<'a>,
        listed: &[&Function],
        listings: &[Listing],
        job: &Job,
        warnings: &mut Warnings,
    ) -> Self {
        let mut addresses: BTreeMap<DsoId, Vec<u64>> = BTreeMap::new();
        for (function, listing) in listed.iter().zip(listings) {
            // Exact costs come from callgrind files, which also state the source lines.
            let states_lines = function.facts.is_exact;
            if let (FunctionCode::File(dso, _), Code::Instructions { addr, .. }) = (&function.code, &listing.code)
                && !states_lines
            {
                let offsets = listing.rows.iter().filter_map(|row| Some(row.instruction.as_ref()?.offset));
                addresses.entry(*dso).or_default().extend(offsets.map(|offset| addr + offset));
            }
        }
        let options = SymbolOptions { lines: true, inlines: true, ..code.symbols.clone() };
        let mut native = FxHashMap::default();
        for (dso, mut offsets) in addresses {
            offsets.sort_unstable();
            offsets.dedup();
            // `Linked(0)`: the addresses are as linked already.
            let request = Request { dso, offsets, base: Base::Linked(0) };
            native.insert(dso, find_lines(&request, code.images, &options, job, warnings));
        }
        Self { code, native, texts: Texts::new(&code.symbols.search) }
    }

    /// Adds source lines to the instructions of a listing.
    pub(super) fn add_to(&mut self, function: &Function, listing: &mut Listing) {
        let Code::Instructions { addr, .. } = listing.code else { return };
        let jit_origins;
        // `origins` has the source lines of the code. `start` is where the function starts in their terms: 0 for JIT
        // code, whose origins count from the function's start; the address as linked for native code.
        let (origins, start): (&[CodeOrigin], u64) = match function.code {
            FunctionCode::Jit(code) => {
                jit_origins = self.jit_origins(code);
                (&jit_origins, 0)
            }
            FunctionCode::File(dso, _) => (self.native.get(&dso).map_or(&[], Vec::as_slice), addr),
            FunctionCode::Bpf(id) => return self.add_bpf_lines(id, &mut listing.rows, &mut listing.files),
            FunctionCode::Unknown(_) => return,
        };
        let mut file_numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
        for row in &mut listing.rows {
            let Some(instruction) = &row.instruction else { continue };
            // A line that the input states (callgrind) is preferred to the line in `origins`.
            let line_in_input = function.facts.lines.get(&instruction.offset);
            let (name, line): (&[u8], u32) = match line_in_input.and_then(|line| self.stated_line(*line)) {
                Some(stated) => stated,
                None => {
                    // The last origin at or before the instruction.
                    let count = origins.partition_point(|origin| origin.begin <= start + instruction.offset);
                    let Some(origin) = origins[..count].last() else { continue };
                    (&origin.file, origin.line)
                }
            };
            // Skip instructions with line 0, which means that the line is unknown.
            if line == 0 {
                continue;
            }
            let number = *file_numbers.entry(name).or_insert(listing.files.len());
            if number == listing.files.len() {
                let text = match self.code.sources.source_maps.source_text(name) {
                    // A source map names this file, so the only text to show is the source map's, if it has one. The
                    // file isn't read from disk, because a source map can name any file.
                    Some(authored) => self.texts.add_authored(name, authored),
                    None => self.texts.read(name),
                };
                listing.files.push(SourceFile::new(name, text));
            }
            row.source = Some(SourceLine { file: number, line });
        }
    }

    /// The file and number of a source line that the input states; `None` if its file is unknown.
    fn stated_line(&self, source: SourceLine) -> Option<(&'a [u8], u32)> {
        let name = self.code.source_names.get(source.file)?;
        (name != UNKNOWN_FILE).then_some((name, source.line))
    }

    /// Takes lines and their texts from the recording's BTF. They aren't read from the source file, which may have
    /// changed. `files` must be empty.
    fn add_bpf_lines(&self, id: BpfFunctionId, rows: &mut [Row], files: &mut Vec<SourceFile>) {
        let Some(function) = self.code.bpf_function(id) else { return };
        let mut file_numbers: BTreeMap<&[u8], usize> = BTreeMap::new();
        // For each file in `files`, the texts of its lines, by line number.
        let mut texts: Vec<BTreeMap<u32, String>> = Vec::new();
        for row in rows {
            let Some(instruction) = &row.instruction else { continue };
            let Some(line) = function.line_at(instruction.offset).filter(|line| line.line > 0) else { continue };
            let file = function.text(line.file);
            let number = *file_numbers.entry(file).or_insert(texts.len());
            if number == texts.len() {
                texts.push(BTreeMap::new());
                files.push(SourceFile::new(file, None));
            }
            texts[number]
                .entry(line.line)
                .or_insert_with(|| String::from_utf8_lossy(function.text(line.text)).trim_end().to_owned());
            row.source = Some(SourceLine { file: number, line: line.line });
        }
        for (file, mut text) in files.iter_mut().zip(texts) {
            text.retain(|_, text| !text.is_empty());
            file.text = if text.is_empty() { None } else { Some(SourceText::Recorded(text)) };
        }
    }

    /// Warnings that say why existing source files were not shown.
    pub(super) fn into_warnings(self) -> Warnings {
        self.texts.into_warnings()
    }

    fn jit_origins(&self, code: CodeId) -> Vec<CodeOrigin> {
        let mut origins = Vec::new();
        for line in self.code.sources.map.code(code).lines.entries() {
            origins.push(CodeOrigin { begin: line.offset, file: line.file.to_vec(), line: line.line });
        }
        origins
    }
}

/// Finds the source line at each address of the request, in the same order. Where calls are inlined, it is the line in
/// the innermost inlined function.
fn find_lines(
    request: &Request,
    images: &Images<'_>,
    options: &SymbolOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Vec<CodeOrigin> {
    let parts = symbols::resolve(std::slice::from_ref(request), images, options, &job.pool, warnings);
    // `parts` are consecutive pieces of one list, which has the frames of each requested address. `zip` must be called
    // on the range of a part's indices (`0..part.len()`), not on the addresses: when the range ends, `zip` then stops
    // without taking another address, which would belong to the next part.
    let mut addresses = request.offsets.iter();
    let mut origins = Vec::with_capacity(request.offsets.len());
    for part in &parts {
        for (index, &begin) in (0..part.len()).zip(&mut addresses) {
            // The first frame is the innermost one.
            origins.push(match part.get(index).next() {
                Some(AddressFrame { file: Some(file), line, .. }) => {
                    CodeOrigin { begin, file: part.text(file).to_vec(), line }
                }
                _ => CodeOrigin { begin, file: Vec::new(), line: 0 },
            });
        }
    }
    origins
}

/// The texts of source files. Each file is read once.
#[derive(Debug)]
struct Texts {
    known: FxHashMap<Vec<u8>, Option<Arc<[String]>>>,
    search: SearchOptions,
    /// Warnings about source files that exist but couldn't be read.
    warnings: Warnings,
    /// Source files that need the user's permission, by reason: the path of the first one, and their number.
    hidden: BTreeMap<&'static str, (PathBuf, u64)>,
}

/// Why the text of a source file is not shown.
enum Unshown {
    /// The file is only shown if the user permits it (`--trust-sources`). The values are its path and the reason.
    Hidden(PathBuf, &'static str),
    Unreadable(Error),
}

impl Texts {
    fn new(search: &SearchOptions) -> Self {
        Self { known: FxHashMap::default(), search: search.clone(), warnings: Warnings::new(), hidden: BTreeMap::new() }
    }

    /// The lines of a source file; `None` if it doesn't exist or may not be shown.
    fn read(&mut self, name: &[u8]) -> Option<Arc<[String]>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let text = match read_lines(name, &self.search) {
            None => None,
            Some(Ok(text)) => Some(text),
            // One warning covers all files that are hidden for the same reason. It names the first file and says how
            // many more there are.
            Some(Err(Unshown::Hidden(path, why))) => {
                let (_, count) = self.hidden.entry(why).or_insert((path, 0));
                *count += 1;
                None
            }
            Some(Err(Unshown::Unreadable(error))) => {
                self.warnings.push(error.into_warning());
                None
            }
        };
        self.known.entry(name.to_vec()).or_insert(text).clone()
    }

    /// The lines of a file that a source map names. `text` is the file's text, if the source map contains it; if not,
    /// the result is `None`. When the same file is asked for again, the lines of the first call are returned.
    fn add_authored(&mut self, name: &[u8], text: Option<&str>) -> Option<Arc<[String]>> {
        let known = self.known.entry(name.to_vec());
        known.or_insert_with(|| text.map(|text| text.lines().map(str::to_owned).collect())).clone()
    }

    fn into_warnings(mut self) -> Warnings {
        for (why, (path, count)) in self.hidden {
            let more = if count > 1 { format!(" (same for {} more)", grouped(count - 1)) } else { String::new() };
            let message = format!("source not shown{more}: {why} (show it with --trust-sources)");
            self.warnings.push(Warning::new(message).in_file(&path, None));
        }
        self.warnings
    }
}

/// Reads a source file; `None` if it doesn't exist. The name comes from the recording, which can't be trusted, so only
/// regular files of limited size are opened. Unless the user trusts sources, two kinds of files aren't shown:
///
/// * files that aren't world-readable, if jitgraft runs as root (who can read everything),
/// * files of this machine, if the recording was packed on another machine and so means the files of that machine.
fn read_lines(name: &[u8], search: &SearchOptions) -> Option<Result<Arc<[String]>, Unshown>> {
    let name = name.strip_prefix(b"file://").unwrap_or(name);
    let local_path = Path::new(OsStr::from_bytes(name)).to_owned();
    // Where the recorded machine's file may be on this machine.
    let recorded = search.recorded_paths(name);
    let mut paths = recorded.iter().chain([&local_path]).filter_map(|path| absolute(path).ok());
    // `door` applies the rules for opening files that a recording names. With `--force`, it also opens other users'
    // files. `look` returns a file's metadata.
    let door = Named::Recording.door(search.force);
    let path = paths.find(|path| door.look(path).is_some_and(|about| about.is_file() && about.len() <= LONGEST))?;
    // True if the file wasn't found below a directory that the user gave for the recorded machine's files.
    let is_local = absolute(&local_path).is_ok_and(|local| local == path) && !recorded.contains(&path);
    if !search.trust_sources && search.is_packed && is_local {
        return Some(Err(Unshown::Hidden(
            path,
            "the file is from this machine, but the recording was packed on another",
        )));
    }
    // `TEXT`: a file of another user must be text.
    let opened = match door.open(&path, TEXT)? {
        Ok(opened) => opened,
        Err(error) => return Some(Err(Unshown::Unreadable(error))),
    };
    let is_world_readable = opened.is_everybodys;
    if !search.trust_sources && rustix::process::geteuid().is_root() && !is_world_readable {
        let why = "the file is not world-readable, and jitgraft, which runs as root, would reveal it";
        return Some(Err(Unshown::Hidden(path, why)));
    }
    let lines = opened.bytes.split(|&byte| byte == b'\n');
    Some(Ok(lines.map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect()))
}

/// The kind of file that another user's file must be: text, which has no zero byte near its start.
const TEXT: Kind = Kind { holes: |head| (!head.contains(&0)).then_some(Holes::Small), otherwise: "is not a text file" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_text_of_this_machine_is_not_shown_for_an_archive_unless_it_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let (here, packed) = (dir.path().join("id_rsa"), dir.path().join("root"));
        std::fs::create_dir(&packed).unwrap();
        std::fs::write(&here, "private\n").unwrap();
        let name = here.as_os_str().as_bytes();
        let search = |is_packed, trust_sources| SearchOptions {
            symfs: vec![packed.clone()],
            is_packed,
            trust_sources,
            ..SearchOptions::default()
        };
        let mut texts = Texts::new(&search(true, false));
        assert!(texts.read(name).is_none() && texts.read(name).is_none());
        let said: Vec<String> = texts.into_warnings().iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains("(show it with --trust-sources)"), "{said:?}");
        assert_eq!(Texts::new(&search(true, true)).read(name).unwrap()[0], "private");
        // The archive's copy of a file is shown even if its path is the same as that of a file here.
        let own = packed.join(here.strip_prefix("/").unwrap());
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, "packed\n").unwrap();
        assert_eq!(Texts::new(&search(true, true)).read(name).unwrap()[0], "packed");
    }
}
