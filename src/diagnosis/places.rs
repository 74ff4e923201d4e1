//! The facts about each place of a recording for the rules.

use super::causes::{Cause, Examiner, Status};
use crate::model::chains::PlaceId;
use crate::model::code::OriginId;
use crate::model::process::CpuMode;
use crate::model::stacks::FrameKind;
use crate::model::tier::Tier;
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::FrameLocation;
use crate::resolve::Location;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::symbols::files::SearchOptions;
use crate::runtimes::{RUNTIMES, RuntimeSet, tier};

/// The facts about a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceFacts {
    pub(super) status: Status,
    pub(super) owner: Owner,
    /// True if it is that of a caller.
    pub(super) is_return: bool,
    /// True if its function is one that threads begin in.
    pub(super) begins_thread: bool,
    /// The role of its function in the program.
    pub(super) runs: Runs,
    /// The runtime that its function shows, whatever the program is called: its number in the table.
    pub(super) shows: Option<usize>,
}

/// The role of a function in the program that a runtime runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// It interprets functions of the program, for the runtime of this number in the table.
    Interpreter(usize),
    /// It is one of the program, compiled, or interpreted with a frame of its own.
    Function,
    /// Neither.
    Other,
}

/// The owner of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    /// JIT code that this source reports.
    Code(OriginId),
    /// Memory that no file backs.
    Memory,
    /// A file's.
    File(DsoId),
    Kernel,
    /// Nothing was mapped there.
    Nowhere,
}

/// The facts of every place, by number.
pub(super) fn facts(examined: &Examined<'_>, search: &SearchOptions) -> Vec<PlaceFacts> {
    let mut examiner = Examiner::new(examined, search);
    let places = (0..).map(PlaceId).zip(examined.samples.chains.places());
    places.map(|(id, place)| of(id, place, examined, examiner.status(id, place))).collect()
}

fn of(id: PlaceId, place: &FrameLocation, examined: &Examined<'_>, status: Status) -> PlaceFacts {
    let (mut runs, mut shows) = (Runs::Other, None);
    examined.named.each(id, |frame| {
        let Some(name) = frame.name else { return };
        if let Some(interpreter) = RUNTIMES.iter().position(|runtime| runtime.interprets_in(name)) {
            runs = Runs::Interpreter(interpreter);
        } else if frame.kind == FrameKind::Jit && is_function(name, frame.runtimes) {
            runs = Runs::Function;
        }
        if frame.kind != FrameKind::Jit {
            shows = shows.or_else(|| RUNTIMES.iter().position(|runtime| runtime.is_function(name)));
        }
    });
    let (owner, begins_thread) = (owner(place, status, examined), examined.named.starts_thread(id));
    PlaceFacts { status, owner, is_return: place.is_return, begins_thread, runs, shows }
}

/// True if JIT code is a function of the program, and not one that helps to run it.
fn is_function(name: &[u8], runtimes: RuntimeSet) -> bool {
    let helps = matches!(tier(name, runtimes), Some(Tier::Builtin | Tier::Stub | Tier::RegExp));
    !helps && !name.starts_with(b"BytecodeHandler:")
}

fn owner(place: &FrameLocation, status: Status, examined: &Examined<'_>) -> Owner {
    if matches!(place.mode, CpuMode::Kernel | CpuMode::Hypervisor | CpuMode::GuestKernel) || status == KERNEL {
        return Owner::Kernel;
    }
    match place.location {
        Location::Code(code, _) => Owner::Code(examined.resolution.sources.map.code(code).origin),
        Location::File(dso, _) => match examined.resolution.spaces.dsos().get(dso).kind {
            DsoKind::Anonymous => Owner::Memory,
            DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => Owner::Kernel,
            _ => Owner::File(dso),
        },
        Location::Nothing(_) => Owner::Nowhere,
    }
}

const KERNEL: Status = Status::Unnamed(Cause::Kernel);
