//! Source lines beside instructions: from the dump's own entries for JIT code, from DWARF for native code, from BTF for
//! BPF programs; their text where the file is here, or BTF has it.

use super::annotated::{Code, Line, Listing, SourceFile, SourceLine, SourceText};
use super::functions::{CodePlace, Function};
use crate::analysis::quantity::grouped;
use crate::error::{Error, Warning, Warnings};
use crate::io::door::{Holes, Kind, Named};
use crate::model::bpf::BpfFunctionId;
use crate::pipeline::Job;
use crate::pipeline::recording::Resolution;
use crate::resolve::code_map::CodeId;
use crate::resolve::dso::DsoId;
use crate::resolve::frames::Frames;
use crate::resolve::symbols::files::SearchOptions;
use crate::resolve::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

/// Finds source lines, and reads each file once.
pub(super) struct Sources<'a> {
    resolution: &'a Resolution<'a>,
    /// The positions in the native code of all listings, in one order for each file: opening a file with its DWARF
    /// takes long.
    native: FxHashMap<DsoId, Vec<CodeOrigin>>,
    texts: Texts,
}

/// The origin of an instruction: how far it is from the start of its function, or of native code its address, and the
/// name of the source file.
struct CodeOrigin {
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
        Self { resolution, native, texts: Texts::new(&symbols.search) }
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
                let text = match self.resolution.sources.maps.source_text(&position.file) {
                    // A map may name any file: its own text is shown, or none.
                    Some(authored) => self.texts.authored(&position.file, authored),
                    None => self.texts.of(&position.file),
                };
                files.push(SourceFile::new(&position.file, text));
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

    /// Why texts are not shown that are there.
    pub(super) fn into_warnings(self) -> Warnings {
        self.texts.into_warnings()
    }

    fn of_jit(&self, code: CodeId) -> Vec<CodeOrigin> {
        let entries = self.resolution.sources.map.code(code).lines.entries();
        let position = |line: &crate::model::code::Line<'_>| CodeOrigin {
            at: line.offset,
            file: line.file.to_vec(),
            line: line.line,
        };
        entries.iter().map(position).collect()
    }
}

/// The innermost function at each address: the instruction is one of its lines.
fn positions(
    request: &Request,
    resolution: &Resolution<'_>,
    options: &SymbolOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Vec<CodeOrigin> {
    let parts = symbols::resolve(std::slice::from_ref(request), &resolution.images, options, &job.pool, warnings);
    let frames = parts.iter().flat_map(|part| (0..part.len()).map(move |at| (part, at)));
    let position = |((part, at), addr): ((&Frames, usize), &u64)| {
        let innermost = part.of(at).next();
        let file = innermost.and_then(|frame| frame.file).map(|file| part.text(file).to_vec());
        let line = innermost.map_or(0, |frame| frame.line);
        CodeOrigin { at: *addr, line: if file.is_some() { line } else { 0 }, file: file.unwrap_or_default() }
    };
    frames.zip(&request.offsets).map(position).collect()
}

/// The texts of source files, each read once.
#[derive(Debug)]
pub(super) struct Texts {
    read: FxHashMap<Vec<u8>, Option<Arc<[String]>>>,
    search: SearchOptions,
    /// Why some are not shown that are there.
    warnings: Warnings,
    /// The texts that are not shown unless the user wants it, by the reason: the first, and how many.
    hidden: BTreeMap<&'static str, (PathBuf, u64)>,
}

/// Why a text is not shown.
enum Unshown {
    /// The user may want it all the same.
    Hidden(PathBuf, &'static str),
    Unreadable(Error),
}

impl Texts {
    pub(super) fn new(search: &SearchOptions) -> Self {
        let (read, warnings, hidden) = (FxHashMap::default(), Warnings::new(), BTreeMap::new());
        Self { read, search: search.clone(), warnings, hidden }
    }

    /// The lines of a file, if they may be shown.
    pub(super) fn of(&mut self, name: &[u8]) -> Option<Arc<[String]>> {
        if let Some(known) = self.read.get(name) {
            return known.clone();
        }
        let text = match read(name, &self.search) {
            None => None,
            Some(Ok(text)) => Some(text),
            Some(Err(Unshown::Hidden(path, why))) => {
                self.hidden.entry(why).or_insert((path, 0)).1 += 1;
                None
            }
            Some(Err(Unshown::Unreadable(error))) => {
                self.warnings.push(error.into_warning());
                None
            }
        };
        self.read.entry(name.to_vec()).or_insert(text).clone()
    }

    /// The lines of a file that a source map names, from the map itself.
    fn authored(&mut self, name: &[u8], text: Option<&str>) -> Option<Arc<[String]>> {
        let lines = || text.map(|text| text.lines().map(str::to_owned).collect());
        self.read.entry(name.to_vec()).or_insert_with(lines).clone()
    }

    pub(super) fn into_warnings(mut self) -> Warnings {
        for (why, (path, count)) in self.hidden {
            let more = if count > 1 { format!(", and neither are {} more", grouped(count - 1)) } else { String::new() };
            let message = format!("is not shown{more}: {why} (--trust-sources shows it)");
            self.warnings.push(Warning::new(message).in_file(&path, None));
        }
        self.warnings
    }
}

/// The lines of a file that a stranger names: nothing but a plain file of some length is opened; and where root does it,
/// who may read any, only what everybody may read and reach. An archive is of another machine: files of this one are not
/// those that it names.
fn read(name: &[u8], search: &SearchOptions) -> Option<Result<Arc<[String]>, Unshown>> {
    let name = name.strip_prefix(b"file://").unwrap_or(name);
    let here = Path::new(OsStr::from_bytes(name)).to_owned();
    let recorded = search.recorded_paths(name);
    let is_of_here = |path: &Path| search.is_packed && recorded.iter().all(|recorded| recorded != path);
    let here_only = absolute(&here).ok().filter(|here| is_of_here(here));
    let mut paths = recorded.iter().chain([&here]).filter_map(|path| absolute(path).ok());
    let door = Named::Recording.door(search.force);
    let is_text = |path: &PathBuf| door.look(path).is_some_and(|about| about.is_file() && about.len() <= LONGEST);
    let path = paths.find(is_text)?;
    if !search.trust_sources && here_only.as_ref() == Some(&path) {
        return Some(Err(Unshown::Hidden(path, "it is of this machine, and the recording was packed on another")));
    }
    let opened = match door.open(&path, TEXT)? {
        Ok(opened) => opened,
        Err(error) => return Some(Err(Unshown::Unreadable(error))),
    };
    if !search.trust_sources && rustix::process::geteuid().is_root() && !opened.is_everybodys {
        return Some(Err(Unshown::Hidden(path, "not everybody may read it, and this is run by root")));
    }
    let lines = opened.bytes.split(|&byte| byte == b'\n');
    Some(Ok(lines.map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect()))
}

/// A source file.
const TEXT: Kind = Kind { holes: |head| (!head.contains(&0)).then_some(Holes::Small), otherwise: "is not a text" };

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
        assert!(texts.of(name).is_none() && texts.of(name).is_none());
        let said: Vec<String> = texts.into_warnings().iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains("(--trust-sources shows it)"), "{said:?}");
        assert_eq!(Texts::new(&search(true, true)).of(name).unwrap()[0], "private");
        // What is in the archive is the archive's, even by the same path.
        let own = packed.join(here.strip_prefix("/").unwrap());
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, "packed\n").unwrap();
        assert_eq!(Texts::new(&search(true, true)).of(name).unwrap()[0], "packed");
    }
}
