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
    /// The address is in executable memory of this process that no file backs, and no dump or map names code there.
    Memory(Pid),
    /// Nothing was mapped at the address in this process.
    Nowhere(Pid),
    /// The file is not on this machine.
    Missing(DsoId),
    /// This machine has a file at that path, but not the version that ran.
    OtherVersion(DsoId),
    /// The file that ran is on this machine, but it is of a format without symbols that we can read.
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

/// Whether a location has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The frame has a name. `jit` tells whether it is JIT code.
    Named { jit: bool },
    /// The frame has no name, for this reason.
    Unnamed(Cause),
    /// The location is not a frame but a marker: the copy of the stack ended here, although the stack went on.
    Truncated,
}

/// Finds out why locations have no name, and remembers the answer for each file.
#[derive(Debug)]
pub(super) struct Examiner<'a> {
    examined: &'a Examined<'a>,
    search: &'a SearchOptions,
    files: FxHashMap<DsoId, Cause>,
}

impl<'a> Examiner<'a> {
    pub(super) fn new(examined: &'a Examined<'a>, search: &'a SearchOptions) -> Self {
        Self { examined, search, files: FxHashMap::default() }
    }

    /// Determines whether a location has a name, and if not, why.
    pub(super) fn status(&mut self, id: PlaceId, spot: &FrameLocation) -> Status {
        if spot.is_mark() {
            return Status::Truncated;
        }
        if let Some(jit) = is_named_jit(self.examined.named, id) {
            return Status::Named { jit };
        }
        Status::Unnamed(match spot.location {
            Location::Nothing(_) if spot.mode == CpuMode::Kernel => Cause::Kernel,
            // Processes may share the location, so this process ID is preliminary; `Cause::with_process` replaces it
            // for each sample.
            Location::Code(..) | Location::Nothing(_) => Cause::Nowhere(spot.pid),
            Location::File(dso, _) => match self.examined.resolution.spaces.dsos().get(dso).kind {
                DsoKind::Anonymous => Cause::Memory(spot.pid),
                DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => Cause::Kernel,
                DsoKind::Guest => Cause::Guest,
                DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => {
                    if let Some(&known) = self.files.get(&dso) {
                        return Status::Unnamed(known);
                    }
                    let cause = self.find_file_cause(dso);
                    self.files.insert(dso, cause);
                    cause
                }
            },
        })
    }

    /// Why a file's code has no name.
    fn find_file_cause(&self, id: DsoId) -> Cause {
        if let Some(image) = self.examined.resolution.images.get(id) {
            let has_symbols = image.has_symtab() || self.search.find_debugging(image, &mut Warnings::new()).is_some();
            return if has_symbols { Cause::Gap(id) } else { Cause::Stripped(id) };
        }
        let dso = self.examined.resolution.spaces.dsos().get(id);
        let Some(path) = self.search.recorded_paths(&dso.path).into_iter().find(|path| self.search.is_there(path))
        else {
            return Cause::Missing(id);
        };
        match self.search.no_elf(&path) {
            Some(what) => Cause::NotElf(id, what),
            None => Cause::OtherVersion(id),
        }
    }
}

/// True if the name at a location is that of JIT code. `None` if the location has no name.
fn is_named_jit(names: &Named, place: PlaceId) -> Option<bool> {
    let mut found = None;
    names.each(place, |frame| {
        if frame.name.is_some() && found.is_none() {
            found = Some(frame.kind == FrameKind::Jit);
        }
    });
    found
}

impl Cause {
    /// Adapts the cause to the process of a sample. Only `Nowhere` changes, because processes share the locations where
    /// nothing is mapped.
    pub(super) fn with_process(self, pid: Pid) -> Self {
        match self {
            Self::Nowhere(_) => Self::Nowhere(pid),
            other => other,
        }
    }
}
