//! Names code locations. Each distinct location is looked up once.

use super::frame_location::FrameLocation;
use crate::analysis::start_functions::starts_threads;
use crate::error::Warnings;
use crate::model::chains::{Chains, PlaceId};
use crate::model::code_file::{image_process, perf_map};
use crate::model::interner::Interner;
use crate::model::mapping_kind::{MappingKind, simpleperf_jit_cache};
use crate::model::process::{BuildId, CpuMode};
use crate::model::stacks::{FrameKind, TRUNCATED};
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::runtimes::{ProcessRuntimes, RuntimeSet};
use crate::symbolize::Location;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::frames::{Frames, FramesAt};
use crate::symbolize::resolver::Resolver;
use crate::symbolize::symbolizer::Symbolizer;
use rustc_hash::{FxHashMap, FxHashSet};

/// A frame with everything that writers need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameView<'a> {
    /// The function's name; `None` if unknown.
    pub(crate) name: Option<&'a [u8]>,
    /// The offset of the address from the function's start, in bytes.
    pub(crate) offset: u64,
    /// The name of the file, or of what was mapped instead of a file; `None` if unknown.
    pub(crate) module: Option<&'a [u8]>,
    /// The build ID of the file in hexadecimal digits; `None` if unknown or if addresses aren't kept.
    pub(crate) build: Option<&'a [u8]>,
    /// The source file; `None` if unknown.
    pub(crate) file: Option<&'a [u8]>,
    /// The source line; 0 if unknown.
    pub(crate) line: u32,
    /// True if the function is inlined into that of the next outer frame.
    pub(crate) inlined: bool,
    /// The offset in the module or, without a module, the address in the process. `None` if addresses aren't kept.
    pub(crate) addr: Option<u64>,
    /// The address in the process; 0 if addresses aren't kept.
    pub(crate) ip: u64,
    /// 1 for a return address: its function was looked up at the address before, in the call. Otherwise 0.
    pub(crate) back: u64,
    /// The kind of code.
    pub(crate) kind: FrameKind,
    /// The runtimes in the process, if this is JIT code. Otherwise empty.
    pub(crate) runtimes: RuntimeSet,
    /// True if this isn't a real frame but marks that the outermost frames are missing.
    pub(crate) truncated: bool,
}

/// The names of all code locations: one or more frames for each.
#[derive(Debug)]
pub(crate) struct Named {
    frames: Frames,
    /// The functions at return addresses before which no function is known, so that the function must start exactly
    /// there. Signal handlers return to such a function (`__restore_rt`), which nobody calls. Where the machine code is
    /// known, [`correct_return_addresses`] has found them already.
    entered: Frames,
    /// Where to find the frames of each location, by [`PlaceId`].
    locations: Vec<LocationInfo>,
    /// The modules of all locations, and the names of memory that no file backs.
    modules: Vec<FileBuild>,
}

/// What is known about a code location, and where to find its functions.
#[derive(Debug, Clone, Copy)]
struct LocationInfo {
    /// The index of the location's functions in [`Named::frames`].
    frames_index: u32,
    /// The index of the module in [`Named::modules`].
    module: Option<u32>,
    /// The recording's name for the memory at this location, if no file backs it, as an index into the modules.
    memory: Option<u32>,
    // The next six fields are copied to the location's frames. [`FrameView`] describes them.
    addr: Option<u64>,
    ip: u64,
    back: u64,
    kind: FrameKind,
    runtimes: RuntimeSet,
    truncated: bool,
    /// True if there is known JIT code at the location, or if the location is in memory that no file backs.
    jit_memory: bool,
    /// True if JIT code is known at the address, but only for other times.
    other_time: bool,
    /// The index of the location's functions in [`Named::entered`]; `None` if they aren't there.
    entered: Option<u32>,
}

/// What is needed to describe code locations while they are being named.
struct FrameNaming<'a> {
    symbolizer: Symbolizer<'a>,
    /// True if frames keep their addresses.
    keep_addr: bool,
    /// The sources of JIT code, by their index in the code map.
    origins: &'a [Origin],
    runtimes: ProcessRuntimes<'a>,
    /// Processes that certainly have a JIT compiler, because there is a jitdump, perf map or other source of their
    /// code.
    announced: FxHashSet<Pid>,
    /// The modules that have been needed so far, and the names of memory that no file backs.
    modules: Interner<FileBuild, u32>,
    /// The modules of mapped files that have been needed so far. For memory that no file backs, the module depends on
    /// the process, so it isn't kept here.
    dso_modules: FxHashMap<DsoId, FrameModule>,
}

/// A source of JIT code, with the file to which the output attributes the code.
#[derive(Debug)]
pub(super) struct Origin {
    /// The path of the file to which the output attributes the code. The file need not exist.
    pub(super) file: Vec<u8>,
    /// The process whose code it is; `None` for ELF objects for which the user gave an address.
    pub(super) pid: Option<Pid>,
    /// True if it is certain that this process wrote the source.
    pub(super) is_sure: bool,
}

/// The name of a file, and its build ID in hexadecimal digits if known.
type FileBuild = (Vec<u8>, Option<Vec<u8>>);

/// The module that the output shows for a frame.
#[derive(Debug, Clone, Copy)]
struct FrameModule {
    /// The index of the name in [`FrameNaming::modules`].
    name: u32,
    /// For a module with JIT code, the runtimes of its process; `None` for other modules.
    jit: Option<RuntimeSet>,
}

impl Named {
    /// Names all code locations in `chains`. `origins` are the sources of JIT code, by the same index as in the code
    /// map.
    pub(super) fn new<'a>(
        chains: &Chains<FrameLocation>,
        keep_addr: bool,
        origins: &'a [Origin],
        runtimes: ProcessRuntimes<'a>,
        resolver: &Resolver<'a>,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Self {
        let mut distinct: Interner<Location, u32> = Interner::default();
        let mut naming = FrameNaming {
            symbolizer: resolver.symbolizer,
            keep_addr,
            origins,
            runtimes,
            announced: origins.iter().filter(|origin| origin.is_sure).filter_map(|origin| origin.pid).collect(),
            modules: Interner::default(),
            dso_modules: FxHashMap::default(),
        };
        let places = correct_return_addresses(chains.places(), resolver, pool);
        let mut locations = Vec::with_capacity(places.len());
        for place in &places {
            // Places that differ only in process, mode or address have the same functions, which are looked up once.
            let frames_index = distinct.intern(place.location);
            locations.push(naming.describe(place, frames_index));
        }
        let modules = naming.modules.into_items();
        let frames = resolver.frames(distinct.items(), pool, warnings);
        // Some return addresses have no function at the byte before, where they were looked up. Look for a function
        // that starts at the return address itself.
        let entered_locations = find_entered(&places, &frames, &mut locations);
        let entered = resolver.frames(&entered_locations, pool, warnings);
        Self { frames, entered, locations, modules }
    }

    fn info(&self, place: PlaceId) -> &LocationInfo {
        &self.locations[place.0 as usize]
    }

    /// True if there is known JIT code at the location, or if the location is in memory that no file backs.
    pub(crate) fn is_in_jit_memory(&self, place: PlaceId) -> bool {
        self.info(place).jit_memory
    }

    /// The recording's name for the memory at a location (`[heap]`, `//anon`). `None` if a file backs the memory.
    pub(crate) fn memory_name(&self, place: PlaceId) -> Option<&[u8]> {
        let memory = self.info(place).memory?;
        Some(&*self.modules[memory as usize].0)
    }

    /// True if no JIT code is known at the location for the time of its samples, although there is some for other
    /// times.
    pub(crate) fn has_code_at_other_times(&self, place: PlaceId) -> bool {
        self.info(place).other_time
    }

    /// True if one of the functions at the location is one in which threads start.
    pub(crate) fn starts_thread(&self, place: PlaceId) -> bool {
        self.frames(place).any(|frame| frame.name.is_some_and(starts_threads))
    }

    /// The frames at a location, innermost first. There is at least one: an unnamed frame if no
    /// function is known there, and a frame named [`TRUNCATED`] for a mark that frames are missing.
    pub(crate) fn frames(&self, place: PlaceId) -> impl Iterator<Item = FrameView<'_>> {
        let info = self.info(place);
        let LocationInfo { frames_index, addr, ip, back, kind, runtimes, truncated, .. } = *info;
        let module = info.module.map(|module| &self.modules[module as usize]);
        let unknown = FrameView {
            name: None,
            offset: 0,
            module: module.map(|(name, _)| &**name),
            build: module.and_then(|(_, build)| build.as_deref()),
            file: None,
            line: 0,
            inlined: false,
            addr,
            ip,
            back,
            kind: kind.unnamed(),
            runtimes,
            truncated,
        };
        let mut texts = &self.frames;
        let mut frames = texts.get(frames_index as usize);
        // Set if no function was found at the byte before this return address. The return address itself was then
        // looked up, and `entered` has what was found there.
        let is_entered = info.entered.is_some();
        if let Some(entered) = info.entered {
            texts = &self.entered;
            frames = texts.get(entered as usize);
            // What was found counts only if it is a function that starts exactly at the return address. Anything else
            // (a source line without a function, or a function whose start is unknown or earlier) is dropped, and the
            // frame stays unnamed.
            if frames.outermost().is_none_or(|frame| frame.offset != Some(0)) {
                frames = FramesAt::default();
            }
        }
        let is_unknown = frames.clone().next().is_none();
        let known = frames.map(move |frame| FrameView {
            name: frame.name.map(|name| texts.text(name)),
            // `frame.offset` is that of the byte that was looked up. For a return address that is the byte before it,
            // except in `entered`, and at the start of a kernel function: no call instruction is a single byte, so
            // `KernelSymbols::lookup` has then found the function at the return address itself.
            offset: match frame.offset {
                Some(0) if kind == FrameKind::Kernel => 0,
                Some(offset) if !is_entered => offset + back,
                other => other.unwrap_or(0),
            },
            kind: if frame.name.is_some() { kind.named() } else { kind.unnamed() },
            file: frame.file.map(|file| texts.text(file)),
            line: frame.line,
            inlined: frame.inlined,
            back: if is_entered { 0 } else { back },
            ..unknown
        });
        let without_function = if truncated {
            Some(FrameView { name: Some(TRUNCATED), kind, ..unknown })
        } else if is_unknown {
            Some(unknown)
        } else {
            None
        };
        known.chain(without_function)
    }
}

/// Corrects the locations of the places. The location of a return address is that of the byte before it. But if no call
/// instruction ends at the address, it isn't a return address, and the location of the address itself is used.
fn correct_return_addresses(places: &[FrameLocation], resolver: &Resolver<'_>, pool: &Pool) -> Vec<FrameLocation> {
    let mut corrected = places.to_vec();
    let mut returns: Vec<&mut FrameLocation> = corrected.iter_mut().filter(|place| place.is_return).collect();
    let locations: Vec<Location> = returns.iter().map(|place| place.location).collect();
    for (place, exact) in returns.iter_mut().zip(resolver.find_uncalled(&locations, pool)) {
        // `Some`: no call instruction ends at the address. `exact` is the location of the address itself.
        if let Some(exact) = exact {
            place.location = exact;
            place.is_return = false;
        }
    }
    corrected
}

/// Finds return addresses for which no function is known at the byte before, such as that of the function to which
/// signal handlers return: nobody called it, so no call precedes it. Returns the locations of these return
/// addresses, so that functions which start exactly there can be looked up. The index of each in the returned list is
/// stored in [`LocationInfo::entered`].
fn find_entered(places: &[FrameLocation], frames: &Frames, locations: &mut [LocationInfo]) -> Vec<Location> {
    let mut entered: Interner<Location, u32> = Interner::default();
    for (place, info) in places.iter().zip(locations) {
        let Location::File(dso, offset) = place.location else { continue };
        if !place.is_return || !frames.is_unknown(info.frames_index as usize) {
            continue;
        }
        // `offset` is that of the byte before the return address.
        let location = Location::File(dso, offset.wrapping_add(1));
        info.entered = Some(entered.intern(location));
    }
    entered.into_items()
}

impl FrameNaming<'_> {
    /// Determines what is known about a code location apart from names: the module, the address in it, the kind of code
    /// and the runtime.
    fn describe(&mut self, place: &FrameLocation, frames_index: u32) -> LocationInfo {
        // The location of a return address is that of the byte before it, inside the call. Adding `back` gives the
        // recorded address again.
        let back = u64::from(place.is_return);
        let mut kind = match place.mode {
            CpuMode::Kernel | CpuMode::GuestKernel | CpuMode::Hypervisor => FrameKind::Kernel,
            CpuMode::User | CpuMode::GuestUser | CpuMode::Unknown => FrameKind::User,
        };
        let mut runtimes = RuntimeSet::default();
        let mut jit_memory = false;
        let mut other_time = false;
        let mut memory = None;
        let (module, addr) = match place.location {
            Location::Code(id, offset) => {
                kind = FrameKind::Jit;
                jit_memory = true;
                let code = self.symbolizer.codes.code(id);
                let origin = self.origins.get(code.origin.0 as usize);
                runtimes = self.runtimes_of(origin.and_then(|origin| origin.pid));
                (origin.map(|origin| self.module(&origin.file, None)), code.addr.0.wrapping_add(offset))
            }
            Location::File(dso, offset) => {
                let module = self.dso_module(dso, place);
                if let Some(jit_runtimes) = module.jit {
                    kind = FrameKind::Jit;
                    runtimes = jit_runtimes;
                }
                match self.symbolizer.spaces.dsos().get(dso).kind {
                    DsoKind::Anonymous => {
                        jit_memory = true;
                        let path = &self.symbolizer.spaces.dsos().get(dso).path;
                        memory = (!path.is_empty()).then(|| self.module(path, None));
                        // In memory that no file backs, `offset` is the address.
                        other_time = self.symbolizer.codes.has_code_at_other_times(place.pid, Addr(offset));
                        // The process has a JIT compiler if it mapped files of a runtime, or if there is or was a
                        // jitdump, perf map or log of the process.
                        let has_jit = self.announced.contains(&place.pid)
                            || self.runtimes.find(place.pid) != RuntimeSet::default();
                        kind = if has_jit { FrameKind::JitUnnamed } else { FrameKind::Anonymous };
                    }
                    // The mapping isn't executable, so the frame isn't code. Show it as if nothing was mapped there.
                    DsoKind::Data => kind = FrameKind::Unknown,
                    // Recorded branches state no CPU mode, so only the kind of file tells that this is kernel code.
                    DsoKind::Kernel | DsoKind::Module => kind = FrameKind::Kernel,
                    DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::KernelSymbol(_) | DsoKind::Guest => {
                        jit_memory = module.jit.is_some();
                    }
                }
                (Some(module.name), offset)
            }
            Location::Nothing(addr) => {
                // No file or code is known at the address, so it need not be code of the program.
                if kind == FrameKind::User && !place.is_mark() {
                    kind = FrameKind::Unknown;
                }
                (None, addr.0)
            }
        };
        let truncated = place.is_mark();
        LocationInfo {
            frames_index,
            module,
            memory,
            addr: (self.keep_addr && !truncated).then(|| addr.wrapping_add(back)),
            ip: place.addr.0,
            back,
            kind,
            runtimes,
            truncated,
            jit_memory,
            other_time,
            entered: None,
        }
    }

    fn runtimes_of(&mut self, pid: Option<Pid>) -> RuntimeSet {
        pid.map(|pid| self.runtimes.find(pid)).unwrap_or_default()
    }

    fn module(&mut self, name: &[u8], build: Option<BuildId>) -> u32 {
        let build = build.filter(|_| self.keep_addr).map(|build| build.to_string().into_bytes());
        self.modules.intern((name.to_vec(), build))
    }

    /// The module to show for a mapped file or for memory that no file backs. Its `jit` is set if the file has JIT
    /// code: an image of `perf inject --jit`, or a file that simpleperf names as a JIT cache.
    fn dso_module(&mut self, id: DsoId, place: &FrameLocation) -> FrameModule {
        let dso = self.symbolizer.spaces.dsos().get(id);
        // Memory without a file, unless the mapping has a name of its own. Its module isn't kept in `dso_modules`,
        // because the module's name depends on the process.
        if dso.kind == DsoKind::Anonymous && !MappingKind::from_path(&dso.path).has_own_name() {
            // Like perf, show memory without a file under the name of the perf map that would name its code
            // (`/tmp/perf-PID.map`).
            return FrameModule { name: self.module(&perf_map(place.pid), None), jit: None };
        }
        if let Some(&known) = self.dso_modules.get(&id) {
            return known;
        }
        let android_cache = simpleperf_jit_cache(&dso.path);
        let label = match dso.kind {
            DsoKind::KernelSymbol(_) => b"[bpf]",
            _ => android_cache.unwrap_or_else(|| dso.label()),
        };
        let jit = match android_cache {
            // The file has JIT code, but its name doesn't tell the process, and so no runtimes.
            Some(_) => Some(RuntimeSet::default()),
            None => image_process(label).map(|pid| self.runtimes_of(pid)),
        };
        let module = FrameModule { name: self.module(label, dso.build_id), jit };
        self.dso_modules.insert(id, module);
        module
    }
}

#[cfg(test)]
mod tests {
    use crate::model::mapping_kind::{MappingKind, tests::paths_where};

    #[test]
    fn some_memory_has_a_name_of_its_own() {
        assert_eq!(
            paths_where(|path| MappingKind::from_path(path).has_own_name()),
            [
                "/memfd:doublemapper (deleted)",
                "anon_inode:[perf_event]",
                "/dev/shm/code (deleted)",
                "/dev/ashmem/dalvik-jit-code-cache (deleted)",
                "/tmp/#77 (deleted)",
            ]
        );
    }
}
