//! Names the functions at locations. It combines JIT code, symbol tables, debug information, kernel symbols, and
//! symbols stored in the recording itself.

use super::Location;
use super::calls::CallFinder;
use super::code_map::CodeId;
use super::dso::{Dso, DsoId, DsoKind};
use super::frames::{AddressFrame, Frames, TextId};
use super::kernel::{KernelOptions, KernelSymbols, link_shift};
use super::symbolizer::Symbolizer;
use super::symbols::image::Image;
use super::symbols::images::Images;
use super::symbols::{self, Base, Request, SymbolOptions};
use crate::error::{Warning, Warnings};
use crate::model::bpf::BpfFunction;
use crate::model::code::{Code, MOST_INLINED, SourceMap};
use crate::model::recorded_symbols::{RecordedSymbol, RecordedSymbols};
use crate::parallel::{Pool, join};
use crate::runtimes::java_calls::{JoinedCalls, split_joined};
use rustc_hash::FxHashMap;

/// Names the functions at locations. It combines JIT code, symbol tables, debug information, kernel symbols, and
/// symbols stored in the recording itself.
#[derive(Debug)]
pub struct Resolver<'a> {
    /// Has the mapped files and the JIT code that the locations refer to.
    pub symbolizer: Symbolizer<'a>,
    /// The BPF programs that the recording describes.
    pub bpf: &'a [BpfFunction],
    /// The symbols that the recording itself contains, as simpleperf's recordings do.
    pub recorded: &'a RecordedSymbols,
    /// The mapped files, which unwinders may use as well. Each is opened when it is first needed.
    pub images: &'a Images<'a>,
    /// Whether to find source lines and inlined calls, and whether to demangle names.
    pub options: &'a SymbolOptions,
    /// Where to look for kernel symbols.
    pub kernel: &'a KernelOptions,
}

/// A location in a file or other mapping; for the offset, see
/// [`MappedPlace::offset`](super::address_space::MappedPlace::offset).
/// `index` is its index in the list that is being resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FileLocation {
    dso: DsoId,
    offset: u64,
    index: usize,
}

/// A location in JIT code, `offset` bytes after the start of the code. `index` is its index in the list that is being
/// resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CodeLocation {
    code: CodeId,
    offset: u64,
    index: usize,
}

/// A file in which return addresses are examined.
struct OpenedCode<'a> {
    image: &'a Image,
    base: Base,
    calls: CallFinder<'a>,
}

/// The locations to resolve, grouped by what can name them.
#[derive(Debug, Default)]
struct SortedLocations {
    code: Vec<CodeLocation>,
    /// Locations that are named by a file's symbols and debug information, including those of a kernel image.
    files: Vec<FileLocation>,
    /// Locations in the kernel and its modules that are named by the kernel's symbol list, or that have a name of their
    /// own (BPF programs).
    kernel: Vec<FileLocation>,
    /// Locations for which the recording itself has a symbol. They may be in `files` as well.
    recorded: Vec<FileLocation>,
}

impl Resolver<'_> {
    /// Finds the frames at each location. The result has an entry for each of `locations`, in their order; they must be
    /// distinct. Files are read in batches, on all threads of the pool. Problems with files are added to `warnings`, in
    /// an order that doesn't depend on the threads.
    pub fn frames(&self, locations: &[Location], pool: &Pool, warnings: &mut Warnings) -> Frames {
        let mut frames = Frames::with_addresses(locations.len());
        let mut sorted = self.sort_locations(locations);
        sorted.files.sort_unstable();
        let requests = self.requests(&sorted.files);
        let resolve_files = || {
            let mut warnings = Warnings::new();
            (symbols::resolve(&requests, self.images, self.options, pool, &mut warnings), warnings)
        };
        let load_kernel_symbols = || {
            let mut warnings = Warnings::new();
            (self.load_kernel_symbols(&sorted.kernel, &mut warnings), warnings)
        };
        let ((parts, file_warnings), (kernel_symbols, kernel_warnings)) =
            pool.install(|| join(resolve_files, load_kernel_symbols));
        warnings.append(file_warnings);
        warnings.append(kernel_warnings);
        // Each request gives one or more parts. Put together in order, the parts have an entry for each location in
        // `sorted.files`.
        let mut indices = sorted.files.iter().map(|location| location.index);
        for part in parts {
            frames.absorb(&part, indices.by_ref().take(part.len()));
        }
        self.resolve_kernel(&sorted.kernel, &kernel_symbols, &mut frames);
        self.resolve_code(sorted.code, &mut frames, warnings);
        // Use the recording's own symbols last, because a file that is the recorded build gives better frames.
        self.resolve_recorded(&sorted.recorded, &mut frames);
        frames
    }

    /// Groups the locations by what can name them. Leaves out locations that nothing can name. A location for which the
    /// recording has a symbol can be in two groups; all others are in one.
    fn sort_locations(&self, locations: &[Location]) -> SortedLocations {
        let mut sorted = SortedLocations::default();
        for (index, &location) in locations.iter().enumerate() {
            let (dso, offset) = match location {
                Location::Code(code, offset) => {
                    sorted.code.push(CodeLocation { code, offset, index });
                    continue;
                }
                Location::File(dso, offset) => (dso, offset),
                Location::Nothing(_) => continue,
            };
            let location = FileLocation { dso, offset, index };
            if self.recorded_symbol(dso, offset).is_some() {
                sorted.recorded.push(location);
                // A symbol in the recording has no lines or inlined calls. The file does, but only counts if it is the
                // build that ran.
                if self.is_recorded_build(dso) {
                    sorted.files.push(location);
                }
                continue;
            }
            match self.symbolizer.spaces.dsos().get(dso).kind {
                DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => sorted.files.push(location),
                // If there is an image of the kernel, it is used instead of a symbol list: it has lines and inlined
                // calls, too.
                DsoKind::Kernel if self.images.get(dso).is_some() => sorted.files.push(location),
                DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => sorted.kernel.push(location),
                // JIT code in such memory is a `Location::Code`, so it was handled above. Nothing can name the other
                // addresses in this memory, or addresses in a guest.
                DsoKind::Anonymous | DsoKind::Data | DsoKind::Guest => {}
            }
        }
        sorted
    }

    /// Names locations by the symbols in the recording itself. Skips locations that already have frames from a file.
    fn resolve_recorded(&self, locations: &[FileLocation], frames: &mut Frames) {
        for &FileLocation { dso, offset, index } in locations {
            if frames.is_unknown(index)
                && let Some((symbol, offset)) = self.recorded_symbol(dso, offset)
            {
                let name = Some(frames.intern(&self.options.display_name(&symbol.name)));
                frames.set(index, &[AddressFrame { name, offset: Some(offset), file: None, line: 0, inlined: false }]);
            }
        }
    }

    /// The recording's own symbol at this address in a DSO, and the offset from that symbol's start. `None` if there is
    /// none.
    fn recorded_symbol(&self, dso: DsoId, offset: u64) -> Option<(&RecordedSymbol, u64)> {
        if self.recorded.is_empty() {
            return None;
        }
        self.recorded.find(self.symbolizer.spaces.dsos().get(dso).label(), offset)
    }

    /// True if the very build of the file that ran is on this machine. Only a recorded build ID can prove that: images
    /// of another build aren't opened.
    fn is_recorded_build(&self, dso: DsoId) -> bool {
        let Dso { kind, build_id, .. } = self.symbolizer.spaces.dsos().get(dso);
        *kind == DsoKind::File && build_id.is_some() && self.images.get(dso).is_some()
    }

    /// Makes one request per file. `locations` must be sorted. For the kernel's image, a request has the recorded
    /// addresses and the distance from these to the addresses of the image's symbols. For all other files, it has file
    /// offsets.
    fn requests(&self, locations: &[FileLocation]) -> Vec<Request> {
        let mut requests = Vec::new();
        for in_file in locations.chunk_by(|a, b| a.dso == b.dso) {
            let dso = in_file[0].dso;
            let offsets = in_file.iter().map(|location| location.offset).collect();
            requests.push(Request { dso, offsets, base: self.base(dso) });
        }
        requests
    }

    /// What offsets of locations in this file are relative to.
    fn base(&self, dso: DsoId) -> Base {
        match self.symbolizer.spaces.dsos().get(dso).kind {
            DsoKind::Kernel => Base::Linked(link_shift(self.symbolizer.spaces.kernel_reference(), self.images, dso)),
            _ => Base::File,
        }
    }

    /// Finds addresses that are in chains as return addresses, but can't be return addresses, because no call
    /// instruction ends there (see [`super::calls`]). Such addresses must be looked up as they are. `before` has, for
    /// each address, the location of the byte before it. The result has an entry for each address: the location of the
    /// address itself, or `None` if it may be a return address. Only code in files is examined.
    pub fn find_uncalled(&self, before: &[Location], pool: &Pool) -> Vec<Option<Location>> {
        let mut dsos = Vec::new();
        for location in before {
            if let Location::File(dso, offset) = *location
                && (self.recorded_symbol(dso, offset).is_none() || self.is_recorded_build(dso))
            {
                dsos.push(dso);
            }
        }
        dsos.sort_unstable();
        dsos.dedup();
        // All files are opened here, in parallel, because opening a large one takes time.
        let open = |dso: DsoId| {
            let image = self.images.get(dso)?;
            Some((dso, OpenedCode { image, base: self.base(dso), calls: CallFinder::new(image)? }))
        };
        let opened: FxHashMap<DsoId, OpenedCode<'_>> = pool.map(dsos, open).into_iter().flatten().collect();
        let find = |location: &Location| {
            let Location::File(dso, offset) = *location else { return None };
            let code = opened.get(&dso)?;
            // The address itself is one byte after the location that was passed.
            let offset = offset.checked_add(1)?;
            let addr = code.base.vaddr(code.image, offset)?;
            if code.calls.may_return_to(addr) { None } else { Some(Location::File(dso, offset)) }
        };
        before.iter().map(find).collect()
    }

    /// True if the DSO is itself a kernel function, such as a BPF program. The recording contains its name.
    fn is_kernel_symbol(&self, dso: DsoId) -> bool {
        matches!(self.symbolizer.spaces.dsos().get(dso).kind, DsoKind::KernelSymbol(_))
    }

    /// Loads the kernel's symbol list (kallsyms), if it is needed for any of these locations.
    fn load_kernel_symbols(&self, locations: &[FileLocation], warnings: &mut Warnings) -> KernelSymbols {
        // BPF programs and trampolines have names of their own.
        let unnamed = locations.iter().filter(|location| !self.is_kernel_symbol(location.dso));
        // For code of the kernel, a location's offset is its recorded address.
        let wanted: Vec<u64> = unnamed.map(|location| location.offset).collect();
        if wanted.is_empty() {
            return KernelSymbols::default();
        }
        let reference = self.symbolizer.spaces.kernel_reference();
        KernelSymbols::find(
            &wanted,
            self.symbolizer.spaces.dsos(),
            reference,
            self.kernel,
            &self.options.search,
            warnings,
        )
    }

    /// Names locations in the kernel by its symbol list. BPF programs and trampolines have names of their own.
    fn resolve_kernel(&self, locations: &[FileLocation], symbols: &KernelSymbols, frames: &mut Frames) {
        for &FileLocation { dso, offset, index } in locations {
            // A BPF program or trampoline is a DSO of its own. Its path is its name, and offsets count from its start.
            let (name, offset_in_function) = if self.is_kernel_symbol(dso) {
                (&self.symbolizer.spaces.dsos().get(dso).path[..], offset)
            } else if let Some(symbol) = symbols.lookup(offset) {
                (symbol.name, symbol.offset)
            } else {
                continue;
            };
            let name = Some(frames.intern(name));
            let (file, line) = match self.bpf_line(dso, offset) {
                Some((file, line)) => (Some(frames.intern(file)), line),
                None => (None, 0),
            };
            frames.set(index, &[AddressFrame { name, offset: Some(offset_in_function), file, line, inlined: false }]);
        }
    }

    /// The source file and line at an offset in a BPF program. `None` if unknown, or if lines aren't requested. BPF
    /// line information also covers inlined calls, but doesn't name the inlined functions.
    fn bpf_line(&self, dso: DsoId, offset: u64) -> Option<(&[u8], u32)> {
        if !self.options.lines {
            return None;
        }
        let DsoKind::KernelSymbol(Some(function)) = self.symbolizer.spaces.dsos().get(dso).kind else { return None };
        let function = self.bpf.get(function.0 as usize)?;
        let line = function.line_at(offset).filter(|line| line.line > 0)?;
        let file = function.text(line.file);
        if file.is_empty() { None } else { Some((file, line.line)) }
    }

    /// Names locations in JIT code. Sorts them by code first, so that the source lines of each piece of code are
    /// decoded only once.
    fn resolve_code(&self, mut locations: Vec<CodeLocation>, frames: &mut Frames, warnings: &mut Warnings) {
        locations.sort_unstable();
        let mut too_deep = 0;
        for in_code in locations.chunk_by(|a, b| a.code == b.code) {
            let code = self.symbolizer.codes.code(in_code[0].code);
            // Even if lines aren't requested, they are needed to find the inlined calls around an address.
            // `positions` decodes the lines of formats that may also have inlined calls.
            let needs_lines = self.options.lines || (self.options.inlines && code.lines.positions.is_some());
            let source = if needs_lines { code.lines.source_map() } else { SourceMap::default() };
            // Java agents may report a function and the calls that were inlined into it under one joined name.
            let mut joined_calls = split_joined(code.name);
            if let Some(calls) = &mut joined_calls
                && calls.expanded.len() > MOST_INLINED
            {
                // The list begins with the outermost call, so the deepest calls are dropped.
                calls.expanded.truncate(MOST_INLINED);
                too_deep += 1;
            }
            for &CodeLocation { offset, index, .. } in in_code {
                let functions = self.code_frames(&code, offset, &source, joined_calls.as_ref(), frames);
                frames.set(index, &functions);
            }
            too_deep += source.too_deep;
        }
        if too_deep > 0 && self.options.inlines {
            warnings.push(Warning::new(format!(
                "JIT code has inlined calls that are nested more than {MOST_INLINED} deep ({too_deep} times); the deepest \
                 calls are not shown, and their samples count for the caller"
            )));
        }
    }

    /// The frames at an offset in a piece of JIT code: first the inlined calls, innermost first, then the compiled
    /// function. Inlined calls come from `source` or, if the code's name lists several functions, from that name
    /// (`joined_calls`), which gives no positions for the calls.
    fn code_frames(
        &self,
        code: &Code<'_>,
        offset: u64,
        source: &SourceMap<'_>,
        joined_calls: Option<&JoinedCalls<'_>>,
        frames: &mut Frames,
    ) -> Vec<AddressFrame> {
        let mut functions = Vec::new();
        let line = source.line_at(offset);
        // The file and line at which the function of the next frame was executing. In the innermost frame, that is the
        // line of the address; in each other frame, it is the line of the inlined call inside it.
        let mut position = line.map(|line| (line.file, line.line));
        if let Some(line) = line
            && self.options.inlines
        {
            for call in source.calls_around(line) {
                let name = frames.intern(&self.options.display_name(&call.function));
                functions.push(self.inlined_frame(name, position, frames));
                position = Some((call.file, call.line));
            }
        }
        if let Some(calls) = joined_calls
            && self.options.inlines
        {
            for call in calls.expanded.iter().rev() {
                let name = frames.intern(call);
                functions.push(self.inlined_frame(name, position, frames));
                position = None;
            }
        }
        let name = joined_calls.map_or(code.name, |calls| calls.root);
        let name = frames.intern(&self.options.display_name(name));
        // The frame of the compiled function differs from that of an inlined call only in these two fields.
        let compiled = self.inlined_frame(name, position, frames);
        functions.push(AddressFrame { offset: Some(offset), inlined: false, ..compiled });
        functions
    }

    /// The frame of an inlined call. `position` is the file and line that it is executing; `None` if unknown. The frame
    /// has a position only if lines are requested.
    fn inlined_frame(&self, name: TextId, position: Option<(&[u8], u32)>, frames: &mut Frames) -> AddressFrame {
        let (file, line) = match position {
            Some((file, line)) if self.options.lines => (Some(frames.intern(file)), line),
            _ => (None, 0),
        };
        AddressFrame { name: Some(name), offset: None, file, line, inlined: true }
    }
}
