//! Names for locations. Each distinct location is looked up once.

use super::locator::{FrameLocation, Locator};
use crate::analysis::start_functions::starts_threads;
use crate::error::Warnings;
use crate::model::backing::{Backing, simpleperf_jit_cache};
use crate::model::chains::{Chains, PlaceId};
use crate::model::process::{BuildId, CpuMode};
use crate::model::stacks::{FrameKind, TRUNCATED};
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::frames::{Frames, FramesAt};
use crate::resolve::{Location, Resolver};
use crate::runtimes::{ProcessRuntimes, RuntimeSet};
use rustc_hash::{FxHashMap, FxHashSet};

/// A frame in the form that writers need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameView<'a> {
    /// The function's name; `None` if unknown.
    pub(crate) name: Option<&'a [u8]>,
    /// The offset from the function's start.
    pub(crate) offset: u64,
    /// The file, or the name of what was mapped instead of a file.
    pub(crate) module: Option<&'a [u8]>,
    /// The file's build ID in hexadecimal digits, if addresses are kept.
    pub(crate) build: Option<&'a [u8]>,
    /// The source file; `None` if unknown.
    pub(crate) file: Option<&'a [u8]>,
    /// The source line; 0 if unknown.
    pub(crate) line: u32,
    /// True if it is inlined into the next outer frame.
    pub(crate) inlined: bool,
    /// The offset in the module, or the address in the process if there is none; only if addresses are kept.
    pub(crate) addr: Option<u64>,
    /// The address in the process if addresses are kept, otherwise 0.
    pub(crate) ip: u64,
    /// 1 if this is a return address, for which the function was looked up at the address before; otherwise 0.
    pub(crate) back: u64,
    /// The kind of code.
    pub(crate) kind: FrameKind,
    /// The runtimes of the process, if this is JIT code; otherwise empty.
    pub(crate) runtimes: RuntimeSet,
    /// True if this isn't a real frame but a marker that the outermost frames are missing.
    pub(crate) truncated: bool,
}

/// The named frames of all locations.
#[derive(Debug)]
pub(crate) struct Named {
    frames: Frames,
    /// The functions that start exactly at a return address, if there is no known function before that address. Signal
    /// handlers return to such addresses (`__restore_rt`).
    entered: Frames,
    /// By location in the chains.
    locations: Vec<NamedLocation>,
    modules: Vec<FileBuild>,
}

/// A location of the chains.
#[derive(Debug, Clone, Copy)]
struct NamedLocation {
    /// The index of its functions in [`Named::frames`].
    number: u32,
    info: LocationInfo,
}

/// Facts about a location other than its functions.
#[derive(Debug, Clone, Copy)]
struct LocationInfo {
    module: Option<u32>,
    /// The recording's name for memory that no file backs.
    memory: Option<u32>,
    addr: Option<u64>,
    ip: u64,
    back: u64,
    kind: FrameKind,
    runtimes: RuntimeSet,
    truncated: bool,
    /// True if the location is in memory for JIT code: in known JIT code, or in memory that no file backs.
    jit_memory: bool,
    /// True if code is known at the location's address, but only for other times.
    other_time: bool,
    /// The index of its functions in [`Named::entered`], if they are listed there.
    entered: Option<u32>,
}

/// The state while locations are being named.
struct FrameNaming<'a> {
    spots: &'a Locator<'a>,
    origins: &'a [Origin],
    runtimes: ProcessRuntimes<'a>,
    /// Processes that are known to have a JIT compiler, because there is a jitdump, perf map or other source of their
    /// code.
    announced: FxHashSet<Pid>,
    modules: Vec<FileBuild>,
    module_ids: FxHashMap<FileBuild, u32>,
    dso_modules: FxHashMap<DsoId, FrameModule>,
}

/// A source of JIT code, and the file to which the output attributes its code.
#[derive(Debug)]
pub(super) struct Origin {
    /// The path of that file, which need not exist.
    pub(super) file: Vec<u8>,
    /// The process of the code; `None` for ELF objects that the user assigned to addresses.
    pub(super) pid: Option<Pid>,
    /// True if it is certain that this process produced the source.
    pub(super) is_sure: bool,
}

/// A file's name and its build ID in hexadecimal digits, if known.
type FileBuild = (Vec<u8>, Option<Vec<u8>>);

/// The module that is shown for a frame.
#[derive(Debug, Clone, Copy)]
struct FrameModule {
    name: u32,
    /// For JIT code, the runtimes of the process; `None` for other code.
    jit: Option<RuntimeSet>,
}

impl Named {
    /// Names all locations in these chains. `origins` are the sources of JIT code, indexed as in the code map.
    pub(super) fn new<'a>(
        chains: &Chains<FrameLocation>,
        spots: &'a Locator<'a>,
        origins: &'a [Origin],
        runtimes: ProcessRuntimes<'a>,
        resolver: &Resolver<'_>,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Self {
        let mut distinct: Vec<Location> = Vec::new();
        let mut numbers: FxHashMap<Location, u32> = FxHashMap::default();
        let mut naming = FrameNaming {
            spots,
            origins,
            runtimes,
            announced: origins.iter().filter(|origin| origin.is_sure).filter_map(|origin| origin.pid).collect(),
            modules: Vec::new(),
            module_ids: FxHashMap::default(),
            dso_modules: FxHashMap::default(),
        };
        let mut locations = Vec::with_capacity(chains.places().len());
        for spot in chains.places() {
            let next = distinct.len() as u32;
            let number = *numbers.entry(spot.location).or_insert(next);
            if number == next {
                distinct.push(spot.location);
            }
            locations.push(NamedLocation { number, info: naming.describe(spot) });
        }
        let modules = naming.modules;
        let frames = resolver.resolve(&distinct, pool, warnings);
        let entered = find_entered(chains.places(), &frames, &mut locations);
        let entered = resolver.resolve(&entered, pool, warnings);
        Self { frames, entered, locations, modules }
    }

    fn info(&self, place: PlaceId) -> &LocationInfo {
        &self.locations[place.0 as usize].info
    }

    /// True if the location is in JIT memory: in known JIT code, or in memory that no file backs.
    pub(crate) fn is_in_jit_memory(&self, place: PlaceId) -> bool {
        self.info(place).jit_memory
    }

    /// The recording's name for the memory at a location, if no file backs it: `[heap]`, `//anon`.
    pub(crate) fn memory_name(&self, place: PlaceId) -> Option<&[u8]> {
        let memory = self.info(place).memory?;
        Some(&*self.modules[memory as usize].0)
    }

    /// True if no code is known at the location for its time, but for other times.
    pub(crate) fn has_code_at_other_times(&self, place: PlaceId) -> bool {
        self.info(place).other_time
    }

    /// True if threads start in one of the location's functions.
    pub(crate) fn starts_thread(&self, place: PlaceId) -> bool {
        let mut starts = false;
        self.each(place, |frame| starts |= frame.name.is_some_and(starts_threads));
        starts
    }

    /// Calls `each` with the frames of a location, innermost first; at least one.
    pub(crate) fn each<'s>(&'s self, place: PlaceId, mut each: impl FnMut(&FrameView<'s>)) {
        let NamedLocation { number, info } = self.locations[place.0 as usize];
        let LocationInfo { addr, ip, back, kind, runtimes, truncated, .. } = info;
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
        let mut frames = texts.get(number as usize);
        let is_entered = info.entered.is_some();
        if let Some(entered) = info.entered {
            texts = &self.entered;
            frames = texts.get(entered as usize);
            if frames.outermost().is_none_or(|frame| frame.offset != Some(0)) {
                frames = FramesAt::default();
            }
        }
        let is_unknown = frames.clone().next().is_none();
        for frame in frames {
            each(&FrameView {
                name: frame.name.map(|name| texts.text(name)),
                offset: frame.offset.map_or(0, |offset| if is_entered { offset } else { offset + back }),
                kind: if frame.name.is_some() { kind.named() } else { kind.unnamed() },
                file: frame.file.map(|file| texts.text(file)),
                line: frame.line,
                inlined: frame.inlined,
                back: if is_entered { 0 } else { back },
                ..unknown
            });
        }
        if truncated {
            each(&FrameView { name: Some(TRUNCATED), kind, ..unknown });
        } else if is_unknown {
            each(&unknown);
        }
    }
}

/// Finds return addresses without a known function before them. Returns their locations, and stores each location's
/// index in [`LocationInfo::entered`].
fn find_entered(spots: &[FrameLocation], frames: &Frames, locations: &mut [NamedLocation]) -> Vec<Location> {
    let mut entered: Vec<Location> = Vec::new();
    let mut numbers: FxHashMap<Location, u32> = FxHashMap::default();
    for (spot, named) in spots.iter().zip(locations) {
        let Location::File(dso, offset) = spot.location else { continue };
        if !spot.is_return || !frames.is_unknown(named.number as usize) {
            continue;
        }
        let location = Location::File(dso, offset.wrapping_add(1));
        let next = entered.len() as u32;
        let number = *numbers.entry(location).or_insert(next);
        if number == next {
            entered.push(location);
        }
        named.info.entered = Some(number);
    }
    entered
}

impl FrameNaming<'_> {
    fn describe(&mut self, spot: &FrameLocation) -> LocationInfo {
        let back = u64::from(spot.is_return);
        let mut kind = match spot.mode {
            CpuMode::Kernel | CpuMode::GuestKernel | CpuMode::Hypervisor => FrameKind::Kernel,
            CpuMode::User | CpuMode::GuestUser | CpuMode::Unknown => FrameKind::User,
        };
        let mut runtimes = RuntimeSet::default();
        let mut jit_memory = false;
        let mut other_time = false;
        let mut memory = None;
        let (module, addr) = match spot.location {
            Location::Code(id, offset) => {
                kind = FrameKind::Jit;
                jit_memory = true;
                let code = self.spots.codes.code(id);
                let origin = self.origins.get(code.origin.0 as usize);
                runtimes = self.runtimes_of(origin.and_then(|origin| origin.pid));
                (origin.map(|origin| self.module(&origin.file, None)), code.addr.0.wrapping_add(offset))
            }
            Location::File(dso, offset) => {
                let module = self.dso_module(dso, spot);
                if let Some(jit_runtimes) = module.jit {
                    kind = FrameKind::Jit;
                    runtimes = jit_runtimes;
                }
                match self.spots.spaces.dsos().get(dso).kind {
                    DsoKind::Anonymous => {
                        jit_memory = true;
                        let path = &self.spots.spaces.dsos().get(dso).path;
                        memory = (!path.is_empty()).then(|| self.module(path, None));
                        // In memory that no file backs, the offset is the address.
                        other_time = self.spots.codes.has_code_at_other_times(spot.pid, Addr(offset));
                        // Either the process mapped files of a runtime, or there is or was a jitdump, perf map or log
                        // of this process.
                        let has_jit =
                            self.announced.contains(&spot.pid) || self.runtimes.find(spot.pid) != RuntimeSet::default();
                        kind = if has_jit { FrameKind::JitUnnamed } else { FrameKind::Anonymous };
                    }
                    // The CPU mode of a branch's ends isn't recorded, so the file tells whether it is kernel code.
                    DsoKind::Kernel | DsoKind::Module => kind = FrameKind::Kernel,
                    DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 | DsoKind::KernelSymbol(_) | DsoKind::Guest => {
                        jit_memory = module.jit.is_some();
                    }
                }
                (Some(module.name), offset)
            }
            Location::Nothing(addr) => {
                if kind == FrameKind::User && !spot.is_mark() {
                    kind = FrameKind::Unknown;
                }
                (None, addr.0)
            }
        };
        let truncated = spot.is_mark();
        LocationInfo {
            module,
            memory,
            addr: (self.spots.keep_addr && !truncated).then(|| addr.wrapping_add(back)),
            ip: spot.addr.0,
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
        let build = build.filter(|_| self.spots.keep_addr).map(|build| build.to_string().into_bytes());
        let module = (name.to_vec(), build);
        let next = self.modules.len() as u32;
        let id = *self.module_ids.entry(module.clone()).or_insert(next);
        if id == next {
            self.modules.push(module);
        }
        id
    }

    /// The module to show for a mapped file, and whether it is an image of JIT code (`perf inject --jit`).
    fn dso_module(&mut self, id: DsoId, spot: &FrameLocation) -> FrameModule {
        let dso = self.spots.spaces.dsos().get(id);
        if dso.kind == DsoKind::Anonymous && !Backing::of(&dso.path).has_own_name() {
            // For such memory, perf shows the name of the perf map that would name the code.
            return FrameModule {
                name: self.module(format!("/tmp/perf-{}.map", spot.pid).as_bytes(), None),
                jit: None,
            };
        }
        if let Some(&known) = self.dso_modules.get(&id) {
            return known;
        }
        let android = simpleperf_jit_cache(&dso.path);
        let label = match dso.kind {
            DsoKind::KernelSymbol(_) => b"[bpf]",
            _ => android.unwrap_or_else(|| dso.label()),
        };
        let jit = match android {
            Some(_) => Some(RuntimeSet::default()),
            None => image_of_jit_code(label).map(|pid| self.runtimes_of(pid)),
        };
        let module = FrameModule { name: self.module(label, dso.build_id), jit };
        self.dso_modules.insert(id, module);
        module
    }
}

/// The process of an image of JIT code (`jitted-PID.so`, `jitted-PID-INDEX.so`). The outer `None` means that the file
/// isn't one, the inner that its name contains no process ID.
fn image_of_jit_code(path: &[u8]) -> Option<Option<Pid>> {
    let name = path.strip_suffix(b".so")?;
    let name = &name[memchr::memmem::find(name, b"/jitted-")? + b"/jitted-".len()..];
    let digits = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    Some(std::str::from_utf8(&name[..digits]).ok().and_then(|digits| digits.parse().ok()).map(Pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backing::{Backing, tests::those};

    #[test]
    fn some_memory_has_a_name_of_its_own() {
        assert_eq!(
            those(|path| Backing::of(path).has_own_name()),
            [
                "/memfd:doublemapper (deleted)",
                "anon_inode:[perf_event]",
                "/dev/shm/code (deleted)",
                "/dev/ashmem/dalvik-jit-code-cache (deleted)",
                "/tmp/#77 (deleted)",
            ]
        );
    }
    #[test]
    fn images_of_jit_code_show_their_process() {
        assert_eq!(image_of_jit_code(b"/x/jitted-77.so"), Some(Some(Pid(77))));
        assert_eq!(image_of_jit_code(b"/x/jitted-77.2.so"), Some(Some(Pid(77))));
        assert_eq!(image_of_jit_code(b"/x/jitted-77-3.so"), Some(Some(Pid(77))));
        assert_eq!(image_of_jit_code(b"/x/jitted-x.so"), Some(None));
        assert_eq!(image_of_jit_code(b"/x/libjitted-77.so"), None);
    }
}
