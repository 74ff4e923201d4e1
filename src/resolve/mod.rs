//! Turns addresses into frames: which file or JIT code was at an address, and which functions and source lines that is.

pub mod address_space;
pub mod authored;
pub mod code_map;
#[cfg(feature = "cli")]
pub mod disasm;
pub mod dso;
pub mod frames;
pub mod kernel;
pub mod precedence;
pub mod symbols;
pub mod unwind;

use crate::error::{Warning, Warnings};
use crate::model::Addr;
use crate::model::bpf::BpfFunction;
use crate::model::code::{Code, MOST_INLINED, SourceMap};
use crate::model::recorded_symbols::{RecordedSymbol, RecordedSymbols};
use crate::parallel::{Pool, join};
use crate::runtimes::java_calls::{JoinedCalls, split_joined};
use address_space::AddressSpaces;
use code_map::{CodeId, CodeMap};
use dso::{Dso, DsoId, DsoKind};
use frames::{Frame, Frames};
use kernel::{KernelOptions, KernelSymbols, link_shift};
use symbols::images::Images;
use symbols::{Base, Request, SymbolOptions};

/// What was found at an address. If the address is a return address, offsets are already adjusted to point one byte
/// back, into the call instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// The address is in JIT code, this many bytes after the start of the code.
    Code(CodeId, u64),
    /// The address is in a file or other mapping, at this address relative to the file (see
    /// [`address_space::Place::offset`]).
    File(DsoId, u64),
    /// No mapping and no JIT code is known at this address.
    Nothing(Addr),
}

/// Turns locations into named frames. It combines JIT code, symbol tables, debug information, kernel symbols and
/// symbols stored in the recording itself.
#[derive(Debug)]
pub struct Resolver<'a> {
    /// The mappings of every process.
    pub spaces: &'a AddressSpaces,
    /// The JIT code that was found.
    pub codes: &'a CodeMap<'a>,
    /// The BPF programs described in the recording.
    pub bpf: &'a [BpfFunction],
    /// Symbols stored in the recording itself, as simpleperf does.
    pub recorded: &'a RecordedSymbols,
    /// The mapped files, opened when first needed. An unwinder may share them.
    pub images: &'a Images<'a>,
    /// Which details to resolve: lines, inlined calls, demangled names.
    pub options: &'a SymbolOptions,
    /// Where to look for kernel symbols.
    pub kernel: &'a KernelOptions,
}

impl Resolver<'_> {
    /// Finds the functions at each location; results are in the order of `locations`. Pass each location only once.
    /// Files are read in batches, on all threads of the pool.
    pub fn resolve(&self, locations: &[Location], pool: &Pool, warnings: &mut Warnings) -> Frames {
        let mut frames = Frames::with_addresses(locations.len());
        let (mut in_code, mut in_kernel, mut in_files) = (Vec::new(), Vec::new(), Vec::new());
        let mut recorded = Vec::new();
        for (place, &location) in locations.iter().enumerate() {
            match location {
                Location::Code(code, offset) => in_code.push((code, offset, place)),
                Location::File(dso, offset) if self.recorded_symbol(dso, offset).is_some() => {
                    recorded.push((dso, offset, place));
                    // The symbol in the recording has no lines or inlined calls. The file has them, provided that it is
                    // the build that ran.
                    if self.is_here_for_sure(dso) {
                        in_files.push((dso, offset, place));
                    }
                }
                Location::File(dso, offset) => match self.spaces.dsos().get(dso).kind {
                    DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => in_files.push((dso, offset, place)),
                    DsoKind::Kernel if self.images.get(dso).is_some() => in_files.push((dso, offset, place)),
                    DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => {
                        in_kernel.push((dso, offset, place))
                    }
                    DsoKind::Anonymous | DsoKind::Guest => {}
                },
                Location::Nothing(_) => {}
            }
        }
        in_files.sort_unstable();
        let requests = self.requests(&in_files);
        let of_files = || {
            let mut warnings = Warnings::new();
            (symbols::resolve(&requests, self.images, self.options, pool, &mut warnings), warnings)
        };
        let of_kernel = || {
            let mut warnings = Warnings::new();
            (self.kernel_symbols(&in_kernel, &mut warnings), warnings)
        };
        let ((parts, of_files), (symbols, of_kernel)) = pool.install(|| join(of_files, of_kernel));
        warnings.append(of_files);
        warnings.append(of_kernel);
        let mut places = in_files.iter().map(|&(.., place)| place);
        for part in parts {
            frames.absorb(&part, places.by_ref().take(part.len()));
        }
        self.in_kernel(&in_kernel, &symbols, &mut frames);
        self.in_code(in_code, &mut frames, warnings);
        for (dso, offset, place) in recorded {
            let Some((symbol, into)) = self.recorded_symbol(dso, offset) else { continue };
            if frames.is_unknown(place) {
                let name = Some(frames.intern(&self.options.shown(&symbol.name)));
                frames.set(place, &[Frame { name, offset: Some(into), file: None, line: 0, inlined: false }]);
            }
        }
        frames
    }

    /// The symbol that the recording itself contains for this address, and the offset into that symbol.
    fn recorded_symbol(&self, dso: DsoId, offset: u64) -> Option<(&RecordedSymbol, u64)> {
        if self.recorded.is_empty() {
            return None;
        }
        self.recorded.find(self.spaces.dsos().get(dso).label(), offset)
    }

    /// True if the file is available and its build ID matches the recording.
    fn is_here_for_sure(&self, dso: DsoId) -> bool {
        let Dso { kind, build_id, .. } = self.spaces.dsos().get(dso);
        *kind == DsoKind::File && build_id.is_some() && self.images.get(dso).is_some()
    }

    /// Groups the sorted `wanted` addresses into one request per file. The third field of each tuple is the location's
    /// index.
    fn requests(&self, wanted: &[(DsoId, u64, usize)]) -> Vec<Request> {
        let files = wanted.chunk_by(|a, b| a.0 == b.0);
        let request = |file: &[(DsoId, u64, usize)]| {
            let offsets = file.iter().map(|&(_, offset, _)| offset).collect();
            let &(dso, ..) = file.first()?;
            let in_kernel = self.spaces.dsos().get(dso).kind == DsoKind::Kernel;
            let base = if in_kernel {
                Base::Linked(link_shift(self.spaces.kernel_reference(), self.images, dso))
            } else {
                Base::File
            };
            Some(Request { dso, offsets, base })
        };
        files.filter_map(request).collect()
    }

    fn is_named(&self, dso: DsoId) -> bool {
        matches!(self.spaces.dsos().get(dso).kind, DsoKind::KernelSymbol(_))
    }

    /// Loads the kernel's symbol list (kallsyms) if any wanted address needs it.
    fn kernel_symbols(&self, wanted: &[(DsoId, u64, usize)], warnings: &mut Warnings) -> KernelSymbols {
        let unnamed = wanted.iter().filter(|&&(dso, ..)| !self.is_named(dso));
        let wanted: Vec<u64> = unnamed.map(|&(_, at, _)| at).collect();
        if wanted.is_empty() {
            return KernelSymbols::default();
        }
        let reference = self.spaces.kernel_reference();
        KernelSymbols::find(&wanted, self.spaces.dsos(), reference, self.kernel, &self.options.search, warnings)
    }

    fn in_kernel(&self, wanted: &[(DsoId, u64, usize)], symbols: &KernelSymbols, frames: &mut Frames) {
        for &(dso, at, place) in wanted {
            let found = if self.is_named(dso) {
                Some((&self.spaces.dsos().get(dso).path[..], at))
            } else {
                symbols.lookup(at).map(|symbol| (symbol.name, symbol.offset))
            };
            if let Some((name, offset)) = found {
                let name = Some(frames.intern(name));
                let (file, line) =
                    self.bpf_line(dso, at).map_or((None, 0), |(file, line)| (Some(frames.intern(file)), line));
                frames.set(place, &[Frame { name, offset: Some(offset), file, line, inlined: false }]);
            }
        }
    }

    /// Source file and line in a BPF program, if lines are requested. BPF line information also covers inlined calls,
    /// but doesn't name the inlined functions.
    fn bpf_line(&self, dso: DsoId, at: u64) -> Option<(&[u8], u32)> {
        let DsoKind::KernelSymbol(Some(function)) = self.spaces.dsos().get(dso).kind else { return None };
        let function = self.bpf.get(function.0 as usize).filter(|_| self.options.lines)?;
        let line = function.line_at(at).filter(|line| line.line > 0)?;
        Some((function.text(line.file), line.line)).filter(|(file, _)| !file.is_empty())
    }

    fn in_code(&self, mut wanted: Vec<(CodeId, u64, usize)>, frames: &mut Frames, warnings: &mut Warnings) {
        wanted.sort_unstable();
        let mut too_deep = 0;
        for code in wanted.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(id, ..)) = code.first() else { continue };
            let piece = self.codes.code(id);
            let asked = self.options.lines || self.options.inlines && piece.lines.positions.is_some();
            let source = if asked { piece.lines.source_map() } else { SourceMap::default() };
            let mut by_name = split_joined(piece.name);
            if let Some(calls) = by_name.as_mut().filter(|calls| calls.expanded.len() > MOST_INLINED) {
                calls.expanded.truncate(MOST_INLINED);
                too_deep += 1;
            }
            for &(_, offset, place) in code {
                let functions = self.functions(&piece, offset, (&source, by_name.as_ref()), frames);
                frames.set(place, &functions);
            }
            too_deep += source.too_deep;
        }
        if too_deep > 0 && self.options.inlines {
            warnings.push(Warning::new(format!(
                "{too_deep} locations in JIT code are inside more than {MOST_INLINED} nested inlined calls; the \
                 deepest are not shown and count for their caller"
            )));
        }
    }

    /// The frames at an offset of a piece of JIT code: inlined calls first (innermost first), then the compiled
    /// function itself. Inlined calls come from the source map, or from the code's name if that lists several
    /// functions.
    fn functions(
        &self,
        code: &Code<'_>,
        offset: u64,
        (source, by_name): (&SourceMap<'_>, Option<&JoinedCalls<'_>>),
        frames: &mut Frames,
    ) -> Vec<Frame> {
        let mut functions = Vec::new();
        let position = source.line_at(offset);
        let (mut file, mut line) = position.map_or((None, 0), |line| (Some(line.file), line.line));
        let told = |(file, line): (Option<&[u8]>, u32), frames: &mut Frames| match file {
            Some(file) if self.options.lines => (Some(frames.intern(file)), line),
            _ => (None, 0),
        };
        let expanded = position.filter(|_| self.options.inlines).into_iter().flat_map(|line| source.calls_around(line));
        for call in expanded {
            let name = Some(frames.intern(&self.options.shown(&call.function)));
            let (place, line_in_it) = told((file, line), frames);
            functions.push(Frame { name, offset: None, file: place, line: line_in_it, inlined: true });
            (file, line) = (Some(call.file), call.line);
        }
        let expanded = by_name.iter().filter(|_| self.options.inlines).flat_map(|calls| calls.expanded.iter().rev());
        for call in expanded {
            let (place, line_in_it) = told((file, line), frames);
            let name = Some(frames.intern(call));
            functions.push(Frame { name, offset: None, file: place, line: line_in_it, inlined: true });
            (file, line) = (None, 0);
        }
        let name = by_name.map_or(code.name, |calls| calls.root);
        let name = Some(frames.intern(&self.options.shown(name)));
        let (file, line) = told((file, line), frames);
        functions.push(Frame { name, offset: Some(offset), file, line, inlined: false });
        functions
    }
}
