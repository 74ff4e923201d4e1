//! Where machine code is read from: JIT code from its sources, native code from files, BPF programs from the recording.

use super::functions::{Function, FunctionCode};
use crate::jit::Loaded;
use crate::model::Nanos;
use crate::model::bpf::{BpfFunction, BpfFunctionId};
use crate::model::process::Processes;
use crate::symbolize::code_map::CodeId;
use crate::symbolize::dso::Dsos;
use crate::symbolize::symbols::SymbolOptions;
use crate::symbolize::symbols::image::Image;
use crate::symbolize::symbols::images::Images;
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The files with the code and the source lines of functions.
pub(super) struct CodeFiles<'a> {
    /// JIT code, and the source maps of its scripts.
    pub(super) sources: &'a Loaded<'a>,
    pub(super) images: &'a Images<'a>,
    pub(super) dsos: &'a Dsos,
    pub(super) processes: &'a Processes,
    /// The machine code of JIT functions that a runtime wrote to separate files, next to its perf map.
    pub(super) raw: &'a FxHashMap<CodeId, &'a [u8]>,
    /// The machine (`e_machine`) of JIT code if its source states none.
    pub(super) machine: u16,
    /// When each code range was first loaded, on the clock of the samples. Code ranges without a time are left out.
    pub(super) load_times: &'a FxHashMap<CodeId, Nanos>,
    /// The source files that [`InputFacts::lines`](super::functions::InputFacts::lines) refer to. Empty for samples.
    pub(super) source_names: &'a [Vec<u8>],
    pub(super) symbols: &'a SymbolOptions,
}

/// The machine code of a function.
pub(super) struct MachineCode<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) addr: u64,
    pub(super) decoder: Decoder<'a>,
}

/// What decides how machine code is decoded: a machine type (`e_machine`), or the ELF file that contains the code and
/// has further information about it.
pub(super) enum Decoder<'a> {
    Machine(u16),
    File(&'a Image),
}

impl<'a> CodeFiles<'a> {
    /// The machine code of a JIT function; `None` if unknown.
    pub(super) fn jit_bytes(&self, id: CodeId) -> Option<&'a [u8]> {
        self.sources.map.code(id).bytes.or_else(|| self.raw.get(&id).copied())
    }

    pub(super) fn bpf_function(&self, id: BpfFunctionId) -> Option<&'a BpfFunction> {
        self.processes.bpf_functions.get(id.0 as usize)
    }

    /// The machine type of JIT code, as its source states it; it may differ from that of the recorded machine. If the
    /// source states none, the type of the recorded machine.
    fn jit_machine(&self, id: CodeId) -> u16 {
        let origin = self.sources.map.code(id).origin;
        self.sources.machines.get(origin.0 as usize).copied().flatten().unwrap_or(self.machine)
    }

    /// Finds the machine code of a function (at least one byte), or else says why there is none. Code in a file gets
    /// its address as linked. Other code may have moved, so it gets the address that it had at the function's last
    /// sample.
    pub(super) fn machine_code(&self, function: &Function) -> Result<MachineCode<'a>, &'static str> {
        const NO_BYTES: &str = "the function has no bytes";
        let base = function.last.base;
        let code = match &function.code {
            FunctionCode::Jit(id) => {
                let bytes = self.jit_bytes(*id).filter(|bytes| !bytes.is_empty());
                let bytes = bytes.ok_or("the log that names this function has no code; record with a jitdump")?;
                MachineCode { bytes, addr: base, decoder: Decoder::Machine(self.jit_machine(*id)) }
            }
            FunctionCode::File(dso, extent) => {
                let image = self.images.get(*dso).ok_or(NO_BYTES)?;
                let bytes = linked_bytes(image, extent.clone()).ok_or(NO_BYTES)?;
                MachineCode { bytes, addr: extent.start, decoder: Decoder::File(image) }
            }
            FunctionCode::Bpf(id) => {
                let function = self.bpf_function(*id).ok_or(NO_BYTES)?;
                MachineCode { bytes: &function.bytes, addr: base, decoder: Decoder::Machine(self.machine) }
            }
            FunctionCode::Unknown(why) => return Err(why),
        };
        if code.bytes.is_empty() { Err(NO_BYTES) } else { Ok(code) }
    }
}

/// The machine code at an address range as linked. Looks in the segments of the file, then in its sections, because the
/// objects that `jitgraft callgrind` writes have no segments. `None` if the file doesn't contain the whole range.
pub(super) fn linked_bytes(image: &Image, extent: Range<u64>) -> Option<&[u8]> {
    if let Some(bytes) = image.loaded(extent.clone()) {
        return Some(bytes);
    }
    let len = extent.end.checked_sub(extent.start)?;
    let object = image.object().ok()?;
    // Sections that aren't loaded into memory have address 0.
    for section in object.sections().filter(|section| section.address() > 0) {
        if let Ok(Some(bytes)) = section.data_range(extent.start, len) {
            return Some(bytes);
        }
    }
    None
}

impl Decoder<'_> {
    pub(super) fn machine(&self) -> u16 {
        match self {
            Self::Machine(machine) => *machine,
            Self::File(image) => image.machine(),
        }
    }
}
