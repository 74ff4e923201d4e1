//! The frames that follow a frame without a name.

use crate::error::Warnings;
use crate::model::Pid;
use crate::model::chains::PlaceId;
use crate::model::process::CpuMode;
use crate::model::stacks::FrameKind;
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::{FrameLocation, Named};
use crate::resolve::Location;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::symbols::files::SearchOptions;
use crate::resolve::symbols::no_elf::NoElf;
use rustc_hash::FxHashMap;

/// Why a frame has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cause {
    /// It is in executable memory of this process that no file backs, and no dump or map covers it.
    Memory(Pid),
    /// Nothing was mapped there in this process.
    Nowhere(Pid),
    /// The file is not on this machine.
    Missing(DsoId),
    /// A file of that path is here, but not the one that ran.
    OtherVersion(DsoId),
    /// The file that ran is here, and is of a format without symbols that could be read.
    NotElf(DsoId, NoElf),
    /// The file has no symbol table but that for linking.
    Stripped(DsoId),
    /// The file has symbols, but none there.
    Gap(DsoId),
    /// The kernel's symbols are not known.
    Kernel,
    /// It ran in a virtual machine's guest.
    Guest,
}

/// The status of a place for the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It has a name.
    Named { jit: bool },
    /// It has none.
    Unnamed(Cause),
    /// It is not a frame: the stack goes on, but the copy does not.
    Truncated,
}

/// Reports why places of a recording have no name.
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

    /// The status of a place.
    pub(super) fn status(&mut self, id: PlaceId, spot: &FrameLocation) -> Status {
        if spot.is_mark() {
            return Status::Truncated;
        }
        if let Some(jit) = named(self.examined.named, id) {
            return Status::Named { jit };
        }
        Status::Unnamed(match spot.location {
            Location::Nothing(_) if spot.mode == CpuMode::Kernel => Cause::Kernel,
            // The sample shows the process.
            Location::Code(..) | Location::Nothing(_) => Cause::Nowhere(spot.pid),
            Location::File(dso, _) => match self.examined.resolution.spaces.dsos().get(dso).kind {
                DsoKind::Anonymous => Cause::Memory(spot.pid),
                DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => Cause::Kernel,
                DsoKind::Guest => Cause::Guest,
                DsoKind::File | DsoKind::Vdso | DsoKind::Vdso32 => self.file(dso),
            },
        })
    }

    fn file(&mut self, id: DsoId) -> Cause {
        if let Some(&known) = self.files.get(&id) {
            return known;
        }
        let dso = self.examined.resolution.spaces.dsos().get(id);
        let cause = match self.examined.resolution.images.get(id) {
            None => match self.search.recorded_paths(&dso.path).iter().find(|path| self.search.is_there(path)) {
                Some(path) => self.search.no_elf(path).map_or(Cause::OtherVersion(id), |what| Cause::NotElf(id, what)),
                None => Cause::Missing(id),
            },
            Some(image) if image.has_symtab() => Cause::Gap(id),
            Some(image) => match self.search.debugging(image, &mut Warnings::new()) {
                Some(_) => Cause::Gap(id),
                None => Cause::Stripped(id),
            },
        };
        self.files.insert(id, cause);
        cause
    }
}

/// True if a place has a name, and if so, whether it is JIT code.
fn named(names: &Named, place: PlaceId) -> Option<bool> {
    let mut found = None;
    names.each(place, |frame| {
        if frame.name.is_some() && found.is_none() {
            found = Some(frame.kind == FrameKind::Jit);
        }
    });
    found
}

impl Cause {
    /// The same in a sample of this process: an address that is nowhere is nowhere in all processes.
    pub(super) fn of(self, pid: Pid) -> Self {
        match self {
            Self::Nowhere(_) => Self::Nowhere(pid),
            other => other,
        }
    }
}
