//! Adds source lines to instructions. They come from jitdumps for JIT code, from DWARF for native code, and from BTF
//! for BPF programs. Their text is read from the source file if it is on this machine; for BPF programs, BTF has it.

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
use crate::resolve::frames::Frame;
use crate::resolve::symbols::files::SearchOptions;
use crate::resolve::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

/// Finds source lines and their text. Reads each file only once.
pub(super) struct Sources<'a> {
    resolution: &'a Resolution<'a>,
    /// The source lines of the native code of all listings, sorted by address for each file. They are looked up
    /// together, because opening a file with its DWARF is slow.
    native: FxHashMap<DsoId, Vec<CodeOrigin>>,
    texts: Texts,
}

/// The source line of the code that starts at `at`: an offset in a JIT function, or an address as linked for native
/// code. Line 0 is unknown.
struct CodeOrigin {
    at: u64,
    file: Vec<u8>,
    line: u32,
}

/// Maximum size of a source file in bytes. Larger ones are not read.
const LONGEST: u64 = 64 << 20;

impl<'a> Sources<'a> {
    /// Looks up the source lines of all native code in the listings.
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
        let mut native = FxHashMap::default();
        for (dso, mut offsets) in addresses {
            offsets.sort_unstable();
            offsets.dedup();
            let request = Request { dso, offsets, base: Base::Linked(0) };
            native.insert(dso, find_lines(&request, resolution, &options, job, warnings));
        }
        Self { resolution, native, texts: Texts::new(&symbols.search) }
    }

    /// Adds source lines to the instructions of a listing.
    pub(super) fn add_to(&mut self, function: &Function, listing: &mut Listing) {
        let Code::Listed { addr, lines, files, .. } = &mut listing.code else { return };
        let jit_origins;
        let (origins, start) = match function.place {
            CodePlace::Jit(code) => {
                jit_origins = self.jit_origins(code);
                (&jit_origins, 0)
            }
            CodePlace::File(dso, _) => match self.native.get(&dso) {
                Some(origins) => (origins, *addr),
                None => return,
            },
            CodePlace::Bpf(id) => return self.add_bpf_lines(id, lines, files),
            CodePlace::Unknown(_) => return,
        };
        let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
        for line in lines {
            let after = origins.partition_point(|origin| origin.at <= start + line.offset);
            let Some(origin) = origins[..after].last() else { continue };
            if origin.line == 0 {
                continue;
            }
            let number = *numbers.entry(&origin.file).or_insert(files.len());
            if number == files.len() {
                let text = match self.resolution.sources.maps.source_text(&origin.file) {
                    // A source map has this file's text. If it hasn't, the file isn't read from disk either, because a
                    // source map can name any file.
                    Some(authored) => self.texts.add_authored(&origin.file, authored),
                    None => self.texts.read(&origin.file),
                };
                files.push(SourceFile::new(&origin.file, text));
            }
            line.source = Some(SourceLine { file: number, line: origin.line });
        }
    }

    /// Takes lines and their texts from the recording's BTF, because the source file may have changed.
    fn add_bpf_lines(&self, id: BpfFunctionId, lines: &mut [Line], files: &mut Vec<SourceFile>) {
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
            texts[number]
                .entry(known.line)
                .or_insert_with(|| String::from_utf8_lossy(function.text(known.text)).trim_end().to_owned());
            line.source = Some(SourceLine { file: number, line: known.line });
        }
        for (file, mut text) in files.iter_mut().zip(texts) {
            text.retain(|_, text| !text.is_empty());
            file.text = (!text.is_empty()).then_some(SourceText::Recorded(text));
        }
    }

    /// Warnings that say why existing source files were not shown.
    pub(super) fn into_warnings(self) -> Warnings {
        self.texts.into_warnings()
    }

    fn jit_origins(&self, code: CodeId) -> Vec<CodeOrigin> {
        let mut origins = Vec::new();
        for line in self.resolution.sources.map.code(code).lines.entries() {
            origins.push(CodeOrigin { at: line.offset, file: line.file.to_vec(), line: line.line });
        }
        origins
    }
}

/// Finds the source line at each address. If calls are inlined there, it is that of the innermost one.
fn find_lines(
    request: &Request,
    resolution: &Resolution<'_>,
    options: &SymbolOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Vec<CodeOrigin> {
    let parts = symbols::resolve(std::slice::from_ref(request), &resolution.images, options, &job.pool, warnings);
    let answers = parts.iter().flat_map(|part| (0..part.len()).map(move |index| (part, index)));
    let mut origins = Vec::with_capacity(request.offsets.len());
    for ((part, index), &addr) in answers.zip(&request.offsets) {
        origins.push(match part.get(index).next() {
            Some(Frame { file: Some(file), line, .. }) => CodeOrigin { at: addr, file: part.text(file).to_vec(), line },
            _ => CodeOrigin { at: addr, file: Vec::new(), line: 0 },
        });
    }
    origins
}

/// The texts of source files. Each file is read once.
#[derive(Debug)]
pub(super) struct Texts {
    known: FxHashMap<Vec<u8>, Option<Arc<[String]>>>,
    search: SearchOptions,
    /// Warnings about source files that exist but couldn't be read.
    warnings: Warnings,
    /// Source files that need the user's permission, by reason: the path of the first one, and their number.
    hidden: BTreeMap<&'static str, (PathBuf, u64)>,
}

/// Why the text of a source file is not shown.
enum Unshown {
    /// The user has to permit it (`--trust-sources`). With the file's path and the reason.
    Hidden(PathBuf, &'static str),
    Unreadable(Error),
}

impl Texts {
    pub(super) fn new(search: &SearchOptions) -> Self {
        Self { known: FxHashMap::default(), search: search.clone(), warnings: Warnings::new(), hidden: BTreeMap::new() }
    }

    /// The lines of a source file; `None` if it doesn't exist or may not be shown.
    pub(super) fn read(&mut self, name: &[u8]) -> Option<Arc<[String]>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let text = match read_lines(name, &self.search) {
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
        self.known.entry(name.to_vec()).or_insert(text).clone()
    }

    /// The lines of a file that a source map names, as the source map contains them; `None` if it doesn't.
    fn add_authored(&mut self, name: &[u8], text: Option<&str>) -> Option<Arc<[String]>> {
        let known = self.known.entry(name.to_vec());
        known.or_insert_with(|| text.map(|text| text.lines().map(str::to_owned).collect())).clone()
    }

    pub(super) fn into_warnings(mut self) -> Warnings {
        for (why, (path, count)) in self.hidden {
            let more = if count > 1 { format!(" (nor for {} more files)", grouped(count - 1)) } else { String::new() };
            let message = format!("source not shown{more}: {why} (show it with --trust-sources)");
            self.warnings.push(Warning::new(message).in_file(&path, None));
        }
        self.warnings
    }
}

/// Reads a source file; `None` if it doesn't exist. The name comes from the recording, which can't be trusted.
/// Therefore, only regular files of limited size are opened. Root could read everything, so root only gets files that
/// everybody can read. If the recording is in an archive, it is from another machine, and this machine's files aren't
/// the ones that it names.
fn read_lines(name: &[u8], search: &SearchOptions) -> Option<Result<Arc<[String]>, Unshown>> {
    let name = name.strip_prefix(b"file://").unwrap_or(name);
    let path_here = Path::new(OsStr::from_bytes(name)).to_owned();
    let recorded = search.recorded_paths(name);
    let mut paths = recorded.iter().chain([&path_here]).filter_map(|path| absolute(path).ok());
    let door = Named::Recording.door(search.force);
    let path = paths.find(|path| door.look(path).is_some_and(|about| about.is_file() && about.len() <= LONGEST))?;
    let is_only_here = absolute(&path_here).is_ok_and(|here| here == path) && !recorded.contains(&path);
    if !search.trust_sources && search.is_packed && is_only_here {
        return Some(Err(Unshown::Hidden(
            path,
            "the file is from this machine, but the recording was packed on another",
        )));
    }
    let opened = match door.open(&path, TEXT)? {
        Ok(opened) => opened,
        Err(error) => return Some(Err(Unshown::Unreadable(error))),
    };
    if !search.trust_sources && rustix::process::geteuid().is_root() && !opened.is_everybodys {
        return Some(Err(Unshown::Hidden(path, "jitgraft runs as root and the file is not world-readable")));
    }
    let lines = opened.bytes.split(|&byte| byte == b'\n');
    Some(Ok(lines.map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect()))
}

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
