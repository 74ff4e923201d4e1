//! .NET ReadyToRun images: PE files with methods that were compiled ahead of time. The runtime maps them like other
//! libraries. Perf maps list only methods that were compiled at run time, so without this module the others would have
//! no names.
//!
//! | part | contents |
//! |---|---|
//! | PE sections | which bytes of the file are loaded where |
//! | runtime functions | start and end of every piece of code, sorted: methods, the exception handlers that follow them, cold parts |
//! | method entry points | a method's number in the metadata → its first piece of code |
//! | instance entry points | a generic method and its type arguments → its first piece of code |
//! | metadata (ECMA-335) | names and signatures |
//!
//! Methods are spelled as in .NET's perf map, with `[PreJIT]` as the tier, so that a method keeps its name when it is
//! recompiled at run time. For instances of generic methods, the type arguments of the class are shown, but not those
//! of the method. An instance of a method that is defined in another file has no name. Composite images, in which one
//! file holds the code of several, are not supported.
//!
//! Whether a file is the build that ran can't be checked, because perf records no build ID for PE files.
//!
//! Spec: `docs/design/coreclr/botr/readytorun-format.md` in dotnet/runtime; ECMA-335, part II.

mod entry_points;
#[cfg(test)]
mod image_tests;
mod instances;
mod names;
mod native;
mod pe;
mod schema;
mod signature;
mod tables;

use entry_points::{EntryPoint, EntryPoints, MAX_NAME_RATIO};
use native::Native;
use object::elf;
use pe::Pe;
use std::sync::Arc;
use tables::Metadata;

#[derive(Debug)]
pub struct ReadyToRun {
    /// The processor, as an ELF machine number (`e_machine`).
    pub machine: u16,
    /// The sections of the file: which bytes are loaded at which addresses.
    pub sections: Vec<pe::Section>,
    /// The methods and parts of methods, sorted by address.
    pub methods: Vec<Method>,
}

/// A piece of code: a whole method or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The first address of the code, relative to the start of the image.
    pub start: u64,
    /// One past the last address of the code.
    pub end: u64,
    /// The method's name, as perf maps spell it. All parts of a method share it.
    pub name: Arc<[u8]>,
}

/// The number with which a ReadyToRun header starts ("RTR").
const SIGNATURE: u32 = 0x0052_5452;

/// The numbers of the sections that are read, as in the ReadyToRun header.
const RUNTIME_FUNCTIONS: u32 = 102;
const METHOD_ENTRY_POINTS: u32 = 103;
const INSTANCE_ENTRY_POINTS: u32 = 109;
const HOT_COLD_MAP: u32 = 120;

impl ReadyToRun {
    /// Parses an image. `None` if it isn't a ReadyToRun image or is damaged.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let pe = Pe::read(bytes)?;
        let header = ImageHeader::read(&pe)?;
        let machine = elf_machine(pe.machine)?;
        let functions = read_functions(&pe, header.section(RUNTIME_FUNCTIONS)?, machine);
        let metadata = Metadata::read(&pe)?;
        let native = Native(bytes);
        let mut entry_points = EntryPoints { all: Vec::new(), bytes_left: bytes.len().saturating_mul(MAX_NAME_RATIO) };
        // `methods` tells where the code of ordinary methods starts. It has an element for each row of the metadata's
        // method table. Its indices count from 0, the table's rows from 1.
        let section = header.section(METHOD_ENTRY_POINTS).and_then(|(rva, _)| pe.offset(rva));
        let methods = section.and_then(|offset| native::Array::new(native, offset));
        if let Some(methods) = methods {
            for (index, offset) in methods.iter(metadata.methods()) {
                if let Some(function) = native.runtime_function(offset) {
                    entry_points.push(function, || names::method_name(&metadata, index + 1));
                }
            }
        }
        // The section that tells where the code of instances of generic methods starts.
        let section = header.section(INSTANCE_ENTRY_POINTS).and_then(|(rva, _)| pe.offset(rva));
        // True unless the entry point of some instance couldn't be read.
        let all_known = match section {
            Some(offset) => instances::read(native, offset, &metadata, &mut entry_points),
            // An image without this section has no instances of generic methods.
            None => true,
        };
        let mut entry_points = entry_points.all;
        entry_points.sort_by_key(|entry| entry.function);
        let cold = match header.section(HOT_COLD_MAP) {
            Some((rva, size)) => read_cold_parts(&pe, rva, size),
            None => Vec::new(),
        };
        let methods = name_functions(&functions, &entry_points, &cold, all_known);
        Some(Self { machine, sections: pe.sections, methods })
    }
}

/// The header of the code that was compiled ahead of time.
struct ImageHeader {
    /// The number, address and size of each section. Addresses are relative to the start of the image.
    sections: Vec<(u32, u32, u32)>,
}

impl ImageHeader {
    /// Reads the header: the signature, two words that aren't needed, the number of sections, and three words per
    /// section. If the list of sections is cut off, keeps those before. `None` if there is no header.
    fn read(pe: &Pe<'_>) -> Option<Self> {
        let header = pe.offset(pe.native_header?)?;
        let word = |index: usize| pe::u32_at(pe.bytes, header.checked_add(4 * index)?);
        if word(0)? != SIGNATURE {
            return None;
        }
        let count = word(3)? as usize;
        let mut sections = Vec::new();
        for section in 0..count {
            let first = 4 + 3 * section;
            let (Some(number), Some(rva), Some(size)) = (word(first), word(first + 1), word(first + 2)) else { break };
            sections.push((number, rva, size));
        }
        Some(Self { sections })
    }

    /// The address and size of the section with number `kind`; `None` if there is none.
    fn section(&self, kind: u32) -> Option<(u32, u32)> {
        let &(_, rva, size) = self.sections.iter().find(|(number, ..)| *number == kind)?;
        Some((rva, size))
    }
}

/// Translates the machine number of a PE file to an ELF machine number; `None` if it is unknown. In images for a single
/// operating system, the PE number is XORed with a number that stands for that system.
fn elf_machine(pe_machine: u16) -> Option<u16> {
    // 0 for an image of any system or of Windows, then Linux, macOS, FreeBSD, NetBSD and Solaris.
    const SYSTEMS: [u16; 6] = [0, 0x7b79, 0x4644, 0xadc4, 0x1993, 0x1992];
    SYSTEMS.iter().find_map(|system| match pe_machine ^ system {
        0x8664 => Some(elf::EM_X86_64.0),
        0xaa64 => Some(elf::EM_AARCH64.0),
        0x014c => Some(elf::EM_386.0),
        0x01c4 => Some(elf::EM_ARM.0),
        _ => None,
    })
}

/// Reads the table of runtime functions, given its address and size: the start and end address of each piece of code.
/// Only x86-64 images state the end. On other machines, a piece ends where the next one starts.
fn read_functions(pe: &Pe<'_>, (rva, size): (u32, u32), machine: u16) -> Vec<(u32, u32)> {
    let bytes = pe.slice(rva, size).unwrap_or_default();
    let states_end = machine == elf::EM_X86_64.0;
    let entry_size = if states_end { 12 } else { 8 };
    let mut functions: Vec<(u32, u32)> = Vec::new();
    for entry in bytes.chunks_exact(entry_size) {
        let Some(start) = pe::u32_at(entry, 0) else { continue };
        // The last entry of the table only marks its end.
        if start == u32::MAX {
            break;
        }
        if states_end {
            functions.push((start, pe::u32_at(entry, 4).unwrap_or(start)));
            continue;
        }
        // The lowest bit isn't part of the address. On Arm, it marks Thumb code.
        let start = start & !1;
        if let Some((_, previous_end)) = functions.last_mut() {
            *previous_end = start;
        }
        // Until another piece follows, a piece of code extends to the end of its section.
        functions.push((start, pe.section_end(start).unwrap_or(start)));
    }
    functions
}

/// A part of a method's code that rarely runs, and is stored apart from the rest (the hot part). Both fields are
/// indices in the table of runtime functions, whose entries are pieces of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ColdPart {
    /// The index of the piece of code with which the cold part starts.
    function: u32,
    /// The index of the piece of code with which the method's hot part starts.
    hot: u32,
}

/// Reads the list of cold parts, which is at address `rva` and has `size` bytes. Returns it sorted by the pieces of
/// code with which the cold parts start. Empty if the file doesn't have all bytes of the list.
fn read_cold_parts(pe: &Pe<'_>, rva: u32, size: u32) -> Vec<ColdPart> {
    let mut parts = Vec::new();
    for pair in pe.slice(rva, size).unwrap_or_default().chunks_exact(8) {
        if let (Some(function), Some(hot)) = (pe::u32_at(pair, 0), pe::u32_at(pair, 4)) {
            parts.push(ColdPart { function, hot });
        }
    }
    parts.sort_unstable();
    parts
}

/// Names pieces of code. A piece at which no method starts belongs to the method that started last before it, because
/// the exception handlers of a method follow its code. If some entry points are unknown (`all_known` is false), such a
/// piece may belong to an unknown method, and gets no name. `entry_points` and `cold` must be sorted.
fn name_functions(
    functions: &[(u32, u32)],
    entry_points: &[EntryPoint],
    cold: &[ColdPart],
    all_known: bool,
) -> Vec<Method> {
    // Finds the method to which a piece of hot code belongs. `function` is the index of the piece. `None` if the method
    // is unknown.
    let find_entry_point = |function: u32| {
        let after = entry_points.partition_point(|entry| entry.function <= function);
        let entry = entry_points[..after].last()?;
        (all_known || entry.function == function).then_some(entry)
    };
    let mut methods = Vec::new();
    for (function, &(start, end)) in (0u32..).zip(functions) {
        // All cold parts come after all hot ones. A piece of a cold part, or an exception handler that follows it,
        // belongs to the method of the hot part.
        let after = cold.partition_point(|part| part.function <= function);
        let hot = cold[..after].last().map_or(function, |part| part.hot);
        if start < end
            && let Some(entry) = find_entry_point(hot)
            && let Some(name) = &entry.name
        {
            methods.push(Method { start: start.into(), end: end.into(), name: Arc::clone(name) });
        }
    }
    methods.sort_by_key(|method| method.start);
    methods
}
