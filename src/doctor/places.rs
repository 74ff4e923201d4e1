//! Collects facts about each code location of a recording: whether it has a name, what it belongs to, and what role its
//! function plays. The tally counts samples by these facts.

use super::causes::{Cause, Examiner, Status};
use crate::model::chains::PlaceId;
use crate::model::code::OriginId;
use crate::model::process::CpuMode;
use crate::model::stacks::FrameKind;
use crate::model::tier::Tier;
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::FrameLocation;
use crate::runtimes::{RUNTIMES, RuntimeSet, tier};
use crate::symbolize::Location;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::symbols::files::SearchOptions;

/// What the rules need to know about the code at a location.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceFacts {
    pub(super) status: Status,
    pub(super) owner: Owner,
    /// True if the address is a return address, at which the frame's function had called another one. False if a sample
    /// was taken at the address itself.
    pub(super) is_return: bool,
    /// True if the function at the location is one that threads begin in, such as `_start`.
    pub(super) begins_thread: bool,
    /// The role that the function at the location has for the profiled program.
    pub(super) role: FunctionRole,
    /// The runtime to which the native function at the location belongs, judged by the function's name, as an index in
    /// [`RUNTIMES`]. `None` if the name isn't that of a known runtime's function.
    pub(super) runtime_by_name: Option<usize>,
}

/// The role of a function for the program that a runtime runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionRole {
    /// The function interprets functions of the program. The number is the index in [`RUNTIMES`] of the runtime that it
    /// belongs to.
    Interpreter(usize),
    /// The function is one of the program's own. It was compiled, or the interpreter gave it a frame of its own.
    Function,
    /// The function is neither an interpreter nor part of the program.
    Other,
}

/// What the code at a location belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    /// JIT code that a source names.
    Code(OriginId),
    /// Executable memory that no file backs, at an address where no source has code.
    Memory,
    /// A mapped file.
    File(DsoId),
    Kernel,
    /// Nothing was mapped at the address.
    Nowhere,
}

/// Collects the facts about every location. The result is indexed by [`PlaceId`].
pub(super) fn collect_facts(examined: &Examined<'_>, search: &SearchOptions) -> Vec<PlaceFacts> {
    let mut examiner = Examiner::new(examined, search);
    let mut facts = Vec::new();
    for (id, place) in (0..).map(PlaceId).zip(examined.samples.chains.places()) {
        facts.push(place_facts(id, place, examined, examiner.status(id, place)));
    }
    facts
}

/// Collects what `doctor` needs to know about one location: what the code belongs to, and what the names of its
/// functions reveal. If functions were inlined there, the names of all of them are looked at.
fn place_facts(id: PlaceId, place: &FrameLocation, examined: &Examined<'_>, status: Status) -> PlaceFacts {
    let mut role = FunctionRole::Other;
    let mut runtime_by_name = None;
    for frame in examined.named.frames(id) {
        let Some(name) = frame.name else { continue };
        if let Some(interpreter) = RUNTIMES.iter().position(|runtime| runtime.is_interpreter(name)) {
            role = FunctionRole::Interpreter(interpreter);
        } else if frame.kind == FrameKind::Jit && is_function(name, frame.runtimes) {
            role = FunctionRole::Function;
        }
        // Names of JIT code come from the program that the runtime runs, so only names of native code reveal the
        // runtime.
        if frame.kind != FrameKind::Jit {
            runtime_by_name = runtime_by_name.or_else(|| RUNTIMES.iter().position(|runtime| runtime.is_function(name)));
        }
    }
    PlaceFacts {
        status,
        owner: owner(place, status, examined),
        is_return: place.is_return,
        begins_thread: examined.named.starts_thread(id),
        role,
        runtime_by_name,
    }
}

/// True if JIT code with this name is a function of the profiled program. False if it is a helper of the runtime, such
/// as a stub or a bytecode handler.
fn is_function(name: &[u8], runtimes: RuntimeSet) -> bool {
    let is_helper = matches!(tier(name, runtimes), Some(Tier::Builtin | Tier::Stub | Tier::RegExp));
    !is_helper && !name.starts_with(b"BytecodeHandler:")
}

/// Finds out what the code at a location belongs to: the kernel, a source of JIT code (named), memory without a file
/// (unnamed JIT code), a file, or nothing.
fn owner(place: &FrameLocation, status: Status, examined: &Examined<'_>) -> Owner {
    if matches!(place.mode, CpuMode::Kernel | CpuMode::Hypervisor | CpuMode::GuestKernel) || status == KERNEL {
        return Owner::Kernel;
    }
    match place.location {
        Location::Code(code, _) => Owner::Code(examined.resolution.sources.map.code(code).origin),
        Location::File(dso, _) => match examined.resolution.spaces.dsos().get(dso).kind {
            DsoKind::Anonymous => Owner::Memory,
            // The address is in memory that isn't executable, so there is no code at it.
            DsoKind::Data => Owner::Nowhere,
            DsoKind::Kernel | DsoKind::Module | DsoKind::KernelSymbol(_) => Owner::Kernel,
            _ => Owner::File(dso),
        },
        Location::Nothing(_) => Owner::Nowhere,
    }
}

const KERNEL: Status = Status::Unnamed(Cause::Kernel);
