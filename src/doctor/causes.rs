//! Finds out why frames have no name.

use crate::error::Warnings;
use crate::model::Pid;
use crate::model::chains::PlaceId;
use crate::model::process::CpuMode;
use crate::model::stacks::FrameKind;
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::{FrameLocation, Named};
use crate::symbolize::Location;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::no_elf::NoElf;
use rustc_hash::FxHashMap;

/// Why a frame has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cause {
    /// The address is in executable memory of this process that no file backs, and no dump or map names code at it.
    Memory(Pid),
    /// Nothing executable was mapped at the address in this process.
    Nowhere(Pid),
    /// The file is not on this machine.
    Missing(DsoId),
    /// This machine has a file at the recorded path, but not the version that ran.
    OtherVersion(DsoId),
    /// The file that ran is on this machine, but jitgraft can't read symbols from its format, such as .NET's PE.
    NotElf(DsoId, NoElf),
    /// The file has no symbol table except the one for dynamic linking.
    Stripped(DsoId),
    /// The file has symbols, but none of them covers this address.
    Gap(DsoId),
    /// The address is in the kernel, and the kernel's symbols are not known.
    Kernel,
    /// The code ran in the guest of a virtual machine.
    Guest,
}

/// Whether the code at a location has a name, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The frame has a name. `jit` tells whether it is JIT code.
    Named { jit: bool },
    /// The frame has no name, for this reason.
    Unnamed(Cause),
    /// There is no frame. The entry of the call chain only marks that the copy of the stack ended here, although the
    /// stack went on.
    Truncated,
}

/// Finds out for each sampled location whether its code has a name, and if not, why. For code in a file, the cause
/// depends only on the file, so it is determined once per file.
#[derive(Debug)]
pub(super) struct Examiner<'a> {
    examined: &'a Examined<'a>,
    search: &'a SearchOptions,
    cause_by_file: FxHashMap<DsoId, Cause>,
}

impl<'a> Examiner<'a> {
    pub(super) fn new(examined: &'a Examined<'a>, search: &'a SearchOptions) -> Self {
        Self { examined, search, cause_by_file: FxHashMap::default() }
    }

    /// Determines whether the code at `place` has a name, and if not, why. `id` is the number of `place`, by which its
    /// names are looked up.
    pub(super) fn status(&mut self, id: PlaceId, place: &FrameLocation) -> Status {
        // The mark at the end of a truncated stack isn't a frame.
        if place.is_mark() {
            return Status::Truncated;
        }
        if let Some(jit) = is_named_jit(self.examined.named, id) {
            return Status::Named { jit };
        }
        Status::Unnamed(match place.location {
            Location::Nothing(_) if place.mode == CpuMode::Kernel => Cause::Kernel,
            // A location where nothing is mapped may be shared by several processes. So this process ID is preliminary:
            // when samples are counted, `Cause::with_process` replaces it by that of the sample. `Code` always has a
            // name, so it doesn't occur here.
            Location::Code(..) | Location::Nothing(_) => Cause::Nowhere(place.pid),
            Location::File(dso, _) => match self.examined.resolution.spaces.dsos().get(dso).kind {
                DsoKind::Anonymous => Cause::Memory(place.pid),
                // The address is in memory that isn't executable, so there is no code at it.
                DsoKind::Data => Cause::Nowhere(place.pid),
                DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => Cause::Kernel,
                DsoKind::Guest => Cause::Guest,
                DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => self.file_cause(dso),
            },
        })
    }

    /// Why the unnamed code in a file has no name. The cause is cached by file.
    fn file_cause(&mut self, dso: DsoId) -> Cause {
        if let Some(&known) = self.cause_by_file.get(&dso) {
            return known;
        }
        let cause = self.find_file_cause(dso);
        self.cause_by_file.insert(dso, cause);
        cause
    }

    /// Finds out why unnamed code in a file has no name, without the cache.
    fn find_file_cause(&self, id: DsoId) -> Cause {
        // The file that ran was found. Separate debugging information counts as symbols, too.
        if let Some(image) = self.examined.resolution.images.get(id) {
            let has_symbols = image.has_symtab() || self.search.find_debugging(image, &mut Warnings::new()).is_some();
            return if has_symbols { Cause::Gap(id) } else { Cause::Stripped(id) };
        }
        let dso = self.examined.resolution.spaces.dsos().get(id);
        // The file that ran was not found. See what, if anything, is at its path.
        let Some(path) = self.search.recorded_paths(&dso.path).into_iter().find(|path| self.search.is_there(path))
        else {
            return Cause::Missing(id);
        };
        // `no_elf` recognizes formats other than ELF.
        match self.search.no_elf(&path) {
            Some(what) => Cause::NotElf(id, what),
            None => Cause::OtherVersion(id),
        }
    }
}

/// Whether the named code at a location is JIT code. `None` if the code has no name.
fn is_named_jit(names: &Named, place: PlaceId) -> Option<bool> {
    names.frames(place).find(|frame| frame.name.is_some()).map(|frame| frame.kind == FrameKind::Jit)
}

impl Cause {
    /// Replaces the process by `pid`, the process of the sample that is counted. Only `Nowhere` needs it: a location
    /// where nothing is mapped may be shared by several processes.
    pub(super) fn with_process(self, pid: Pid) -> Self {
        match self {
            Self::Nowhere(_) => Self::Nowhere(pid),
            other => other,
        }
    }
}
