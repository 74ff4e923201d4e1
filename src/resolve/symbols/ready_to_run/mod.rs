//! ReadyToRun images of .NET: methods that were compiled ahead of time into PE files, which are mapped as other
//! libraries are. A perf map reports methods that were compiled at run time only, so these would have no names.
//!
//! | part | states |
//! |---|---|
//! | PE sections | where bytes of the file go in memory |
//! | runtime functions | start and end of every code range, in order: methods, handlers of their exceptions behind
//! them, parts that hardly run |
//! | entry points of methods | number of a method in the metadata → its first piece |
//! | entry points of instances | a generic method, with what it was made for → its first piece |
//! | metadata (ECMA-335) | names and signatures |
//!
//! Methods are spelled as the perf map of .NET spells those of the JIT compiler, with `[PreJIT]` for the tier, so that
//! one that is compiled again later is known by its name. Of instances it spells the arguments of types, not those of
//! methods. An instance of another file's method has no name here. Composite images, which hold several files' code
//! in one of their own, are not read.
//!
//! Nothing shows which build of a file ran: perf records no ID of PE files.
//!
//! Source: `docs/design/coreclr/botr/readytorun-format.md` of dotnet/runtime; ECMA-335, part II.

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

use entry_points::{EntryPoint, EntryPoints, ROOM};
use native::Native;
use object::elf;
use pe::Pe;
use std::sync::Arc;
use tables::Metadata;

/// Such an image, read.
#[derive(Debug)]
pub struct ReadyToRun {
    /// `e_machine` of ELF files for the same processor.
    pub machine: u16,
    /// The places of the file's parts.
    pub sections: Vec<pe::Section>,
    /// The methods, by first address.
    pub methods: Vec<Method>,
}

/// The code of a method, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its first address, relative to the image.
    pub start: u64,
    /// One past its last address.
    pub end: u64,
    /// Its name, as perf maps spell it. Its parts share it.
    pub name: Arc<[u8]>,
}

/// The signature of this sort of image.
const SIGNATURE: u32 = 0x0052_5452;

/// Sections of the image's own header.
const RUNTIME_FUNCTIONS: u32 = 102;
const METHOD_ENTRY_POINTS: u32 = 103;
const INSTANCE_ENTRY_POINTS: u32 = 109;
const HOT_COLD_MAP: u32 = 120;

impl ReadyToRun {
    /// Reads an image. `None` if it has no code of this sort, or is damaged.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let pe = Pe::read(bytes)?;
        let header = ImageHeader::read(&pe)?;
        let machine = machine(pe.machine)?;
        let functions = functions(&pe, header.section(RUNTIME_FUNCTIONS)?, machine);
        let metadata = Metadata::read(&pe)?;
        let native = Native(bytes);
        let mut entry_points = EntryPoints { all: Vec::new(), room: bytes.len().saturating_mul(ROOM) };
        let section = header.section(METHOD_ENTRY_POINTS).and_then(|(rva, _)| pe.offset(rva));
        let methods = section.and_then(|at| native::Array::new(native, at));
        for (index, at) in methods.iter().flat_map(|methods| methods.iter(metadata.methods())) {
            if let Some(function) = native.runtime_function(at) {
                entry_points.push(function, || names::method_name(&metadata, index + 1));
            }
        }
        let section = header.section(INSTANCE_ENTRY_POINTS).and_then(|(rva, _)| pe.offset(rva));
        let all_known = section.is_none_or(|at| instances::read(native, at, &metadata, &mut entry_points));
        let mut entry_points = entry_points.all;
        entry_points.sort_by_key(|entry| entry.function);
        let cold = header.section(HOT_COLD_MAP).map(|(rva, size)| cold_parts(&pe, rva, size)).unwrap_or_default();
        let methods = name(&functions, &entry_points, &cold, all_known);
        Some(Self { machine, sections: pe.sections, methods })
    }
}

/// The image's own header.
struct ImageHeader {
    sections: Vec<(u32, u32, u32)>,
}

impl ImageHeader {
    fn read(pe: &Pe<'_>) -> Option<Self> {
        let at = pe.offset(pe.native_header?)?;
        let number = |index: usize| pe::u32_at(pe.bytes, at.checked_add(4 * index)?);
        if number(0)? != SIGNATURE {
            return None;
        }
        let count = number(3)? as usize;
        let all = (0..count).map_while(|section| {
            let first = 4 + 3 * section;
            Some((number(first)?, number(first + 1)?, number(first + 2)?))
        });
        Some(Self { sections: all.collect() })
    }

    /// Address and size of a section.
    fn section(&self, kind: u32) -> Option<(u32, u32)> {
        self.sections.iter().find(|section| section.0 == kind).map(|section| (section.1, section.2))
    }
}

/// The processor, as ELF files number it. Images for one system alone have the number mixed with the system's.
fn machine(of_pe: u16) -> Option<u16> {
    const SYSTEMS: [u16; 6] = [0, 0x7b79, 0x4644, 0xadc4, 0x1993, 0x1992];
    SYSTEMS.iter().find_map(|system| match of_pe ^ system {
        0x8664 => Some(elf::EM_X86_64.0),
        0xaa64 => Some(elf::EM_AARCH64.0),
        0x014c => Some(elf::EM_386.0),
        0x01c4 => Some(elf::EM_ARM.0),
        _ => None,
    })
}

/// The start and end of each code range. Only x86-64 gives the end; elsewhere the next piece's begin is it.
fn functions(pe: &Pe<'_>, (rva, size): (u32, u32), machine: u16) -> Vec<(u32, u32)> {
    let bytes = pe.slice(rva, size).unwrap_or_default();
    let tells_end = machine == elf::EM_X86_64.0;
    let entries = bytes.chunks_exact(if tells_end { 12 } else { 8 });
    // The low bit of code for ARM is a mark.
    let begins = entries.clone().filter_map(|entry| Some(pe::u32_at(entry, 0)? & !u32::from(!tells_end)));
    let mut functions: Vec<(u32, u32)> = if tells_end {
        begins.zip(entries.filter_map(|entry| pe::u32_at(entry, 4))).collect()
    } else {
        let begins: Vec<u32> = begins.collect();
        let ends = begins.iter().skip(1).copied().chain(begins.last().map(|last| last.saturating_add(1)));
        begins.iter().copied().zip(ends).collect()
    };
    // The table ends with an entry that stands for none.
    functions.iter_mut().filter(|function| function.0 == u32::MAX).for_each(|function| *function = (0, 0));
    functions
}

/// Pairs of pieces that hardly run, and the first ones of their methods.
fn cold_parts(pe: &Pe<'_>, rva: u32, size: u32) -> Vec<(u32, u32)> {
    let pairs = pe.slice(rva, size).unwrap_or_default().chunks_exact(8);
    let mut cold: Vec<(u32, u32)> =
        pairs.filter_map(|pair| Some((pe::u32_at(pair, 0)?, pe::u32_at(pair, 4)?))).collect();
    cold.sort_unstable();
    cold
}

/// Gives each piece the name of the method that begins there or before it: behind a method's code is that of its
/// handlers of exceptions. That holds only where all entry points are known.
fn name(functions: &[(u32, u32)], entry_points: &[EntryPoint], cold: &[(u32, u32)], all_known: bool) -> Vec<Method> {
    let owner = |function: u32| {
        let after = entry_points.partition_point(|entry| entry.function <= function);
        let entry = entry_points.get(after.checked_sub(1)?)?;
        (all_known || entry.function == function).then_some(entry)
    };
    let mut methods = Vec::new();
    for (function, &(start, end)) in (0u32..).zip(functions) {
        let after = cold.partition_point(|pair| pair.0 <= function);
        let hot = after.checked_sub(1).and_then(|at| cold.get(at)).map_or(function, |pair| pair.1);
        let name = owner(hot).and_then(|entry| entry.name.as_ref());
        if let Some(name) = name.filter(|_| start < end) {
            methods.push(Method { start: start.into(), end: end.into(), name: Arc::clone(name) });
        }
    }
    methods.sort_by_key(|method| method.start);
    methods
}
