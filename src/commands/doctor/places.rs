//! What each place of a recording is for the rules.

use super::causes::{Cause, Examiner, Status};
use crate::model::chains::PlaceId;
use crate::model::code::OriginId;
use crate::model::process::CpuMode;
use crate::model::runtimes::{RUNTIMES, RuntimeSet, tier};
use crate::model::stacks::FrameKind;
use crate::model::tier::Tier;
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::FrameLocation;
use crate::resolve::Location;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::symbols::files::SearchOptions;

/// What a place is.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceFacts {
    pub(super) status: Status,
    pub(super) owner: Owner,
    /// Whether it is that of a caller.
    pub(super) is_return: bool,
    /// Whether its function is one that threads begin in.
    pub(super) begins_thread: bool,
    /// What its function does for the program.
    pub(super) runs: Runs,
}

/// What a function does for the program that a runtime runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// It interprets functions of the program.
    Interpreter,
    /// It is one of the program, compiled, or interpreted with a frame of its own.
    Function,
    /// Neither.
    Other,
}

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    /// JIT code that this source tells of.
    Code(OriginId),
    /// Memory that no file backs.
    Memory,
    /// A file's.
    File(DsoId),
    Kernel,
    /// Nothing was mapped there.
    Nowhere,
}

/// Functions that threads begin in, or that begin right behind: libc's, and those of languages that have their own.
pub(crate) const BEGINNINGS: &[&[u8]] = &[
    b"main",
    b"_start",
    b"__libc_start_main",
    b"__libc_start_main_impl",
    b"__libc_start_call_main",
    b"__libc_start_main@@GLIBC_2.34",
    b"start_thread",
    b"clone",
    b"clone3",
    b"__clone",
    b"__clone3",
    b"__clone_internal",
    b"_dl_start",
    b"_dl_start_user",
    b"runtime.goexit",
    b"runtime.goexit.abi0",
    b"runtime.mstart",
    b"runtime.mstart.abi0",
    b"runtime.rt0_go.abi0",
    b"runtime.mcall",
    b"runtime.systemstack",
    b"execute_native_thread_routine", // libstdc++
    // Erlang's processes have stacks of their own, which end so.
    b"erts_beamasm:normal_exit/0",
    b"$erts_beamasm:normal_exit/0",
];

/// The facts of every place, by number.
pub(super) fn facts(examined: &Examined<'_>, search: &SearchOptions) -> Vec<PlaceFacts> {
    let mut examiner = Examiner::new(examined, search);
    let places = (0..).map(PlaceId).zip(examined.samples.chains.places());
    places.map(|(id, place)| of(id, place, examined, examiner.status(id, place))).collect()
}

fn of(id: PlaceId, place: &FrameLocation, examined: &Examined<'_>, status: Status) -> PlaceFacts {
    let (mut begins_thread, mut runs) = (false, Runs::Other);
    examined.named.each(id, |frame| {
        let Some(name) = frame.name else { return };
        begins_thread |= BEGINNINGS.contains(&name);
        if RUNTIMES.iter().any(|runtime| runtime.interprets_in(name)) {
            runs = Runs::Interpreter;
        } else if frame.kind == FrameKind::Jit && is_function(name, frame.runtimes) {
            runs = Runs::Function;
        }
    });
    PlaceFacts { status, owner: owner(place, status, examined), is_return: place.is_return, begins_thread, runs }
}

/// Whether JIT code is a function of the program, and not one that helps to run it.
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
            DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol => Owner::Kernel,
            _ => Owner::File(dso),
        },
        Location::Nothing(_) => Owner::Nowhere,
    }
}

const KERNEL: Status = Status::Unnamed(Cause::Kernel);
