//! Reads the DWARF of a WebAssembly module: the names of functions, and where each was declared.
//!
//! Addresses are relative to the start of the code section's contents
//! (<https://yurydelendik.github.io/webassembly-dwarf/>).

use crate::model::wasm_module::WasmModule;
use addr2line::Context;
use gimli::{
    AttributeValue, DW_AT_abstract_origin, DW_AT_decl_column, DW_AT_decl_file, DW_AT_decl_line, DW_AT_low_pc,
    DW_AT_specification, DW_TAG_subprogram, DebuggingInformationEntry, DwAt, Dwarf, EndianSlice, LittleEndian,
    SectionId, UnitRef,
};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// How many references from one DWARF entry to another are followed for an attribute. A definition refers to its
/// declaration, an inlined function to its original.
const MAX_REFERENCES: usize = 4;

/// The position where a function was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeclaredPlace {
    pub(super) file: String,
    pub(super) line: u32,
    /// The column; 0 if unknown.
    pub(super) column: u32,
}

/// The DWARF of one module, read when it is needed.
pub(super) struct ModulePlaces<'a> {
    module: &'a WasmModule,
    context: Context<Reader<'a>>,
    /// Where functions were declared, by unit and then by address. A unit is given by its offset in `.debug_info`, and
    /// added when first needed.
    units: RefCell<FxHashMap<usize, Rc<FxHashMap<u64, DeclaredPlace>>>>,
}

impl<'a> ModulePlaces<'a> {
    /// Prepares the module's DWARF. `None` if it has none, or none that is readable.
    pub(super) fn new(module: &'a WasmModule) -> Option<Self> {
        let section = |id: SectionId| Ok::<_, gimli::Error>(EndianSlice::new(module.section(id.name()), LittleEndian));
        if module.section(SectionId::DebugInfo.name()).is_empty() {
            return None;
        }
        let context = Context::from_dwarf(Dwarf::load(section).ok()?).ok()?;
        Some(Self { module, context, units: RefCell::default() })
    }

    /// The name, still mangled, of the function with this number; `None` if DWARF doesn't tell it.
    pub(super) fn name(&self, function: u32) -> Option<String> {
        // `skip_all_loads`: debug information in other files (split units) isn't loaded.
        let mut frames = self.context.find_frames(self.address(function)?).skip_all_loads().ok()?;
        // DWARF gives the inlined calls first. The last frame is the function itself.
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            outermost = Some(frame);
        }
        Some(outermost?.function?.raw_name().ok()?.into_owned())
    }

    /// The position where the function with this number was declared; `None` if DWARF doesn't tell it.
    pub(super) fn declared(&self, function: u32) -> Option<DeclaredPlace> {
        let address = self.address(function)?;
        // `skip_all_loads`: debug information in other files (split units) isn't loaded.
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let unit_offset = unit.header.offset().to_debug_info_offset(&unit.header)?.0;
        let mut units = self.units.borrow_mut();
        let functions = units.entry(unit_offset).or_insert_with(|| Rc::new(read_declarations(unit)));
        functions.get(&address).cloned()
    }

    /// The address at which DWARF describes the function with this number: the offset of its body from the start of the
    /// code section's contents.
    fn address(&self, function: u32) -> Option<u64> {
        Some((self.module.body(function)?.start - self.module.code.start) as u64)
    }
}

/// The positions where the functions of a DWARF unit were declared, by the address of their code. Functions without
/// an address (only declared, or inlined everywhere) are left out. Stops at damage, and keeps what was read before it.
fn read_declarations(unit: UnitRef<'_, Reader<'_>>) -> FxHashMap<u64, DeclaredPlace> {
    let mut functions = FxHashMap::default();
    let mut entries = unit.entries();
    while let Ok(Some(entry)) = entries.next_dfs() {
        if entry.tag() != DW_TAG_subprogram {
            continue;
        }
        let address = entry.attr_value(DW_AT_low_pc).and_then(|value| unit.attr_address(value).ok().flatten());
        if let Some(address) = address
            && let Some(place) = declared_place(unit, entry)
        {
            functions.insert(address, place);
        }
    }
    functions
}

/// The position where a function was declared. `None` if its DWARF entry names no file or line; column 0 if it names no
/// column.
fn declared_place<'a>(
    unit: UnitRef<'_, Reader<'a>>,
    entry: &DebuggingInformationEntry<Reader<'a>>,
) -> Option<DeclaredPlace> {
    let file = file_path(unit, find_number(unit, entry, DW_AT_decl_file)?)?;
    let line = u32::try_from(find_number(unit, entry, DW_AT_decl_line)?).ok()?;
    let column = find_number(unit, entry, DW_AT_decl_column);
    let column = column.and_then(|column| u32::try_from(column).ok()).unwrap_or_default();
    Some(DeclaredPlace { file, line, column })
}

/// The value of an attribute that is a number or the index of a file, from this entry or those it refers to; see
/// [`find_attribute`].
fn find_number<'a>(
    unit: UnitRef<'_, Reader<'a>>,
    entry: &DebuggingInformationEntry<Reader<'a>>,
    name: DwAt,
) -> Option<u64> {
    match find_attribute(unit, entry, name, MAX_REFERENCES)? {
        AttributeValue::FileIndex(number) => Some(number),
        value => value.udata_value(),
    }
}

/// The value of an attribute of a DWARF entry. If the entry doesn't have the attribute, follows up to `max_references`
/// references to other entries. `None` if none of them has it.
fn find_attribute<'a>(
    unit: UnitRef<'_, Reader<'a>>,
    entry: &DebuggingInformationEntry<Reader<'a>>,
    name: DwAt,
    max_references: usize,
) -> Option<AttributeValue<Reader<'a>>> {
    if let Some(value) = entry.attr_value(name) {
        return Some(value);
    }
    for reference in [DW_AT_specification, DW_AT_abstract_origin] {
        if let Some(AttributeValue::UnitRef(offset)) = entry.attr_value(reference)
            && let Ok(referenced) = unit.entry(offset)
        {
            return find_attribute(unit, &referenced, name, max_references.checked_sub(1)?);
        }
    }
    None
}

/// The path of the file with this number in the unit's line table; `None` if there is no such file. The path consists
/// of the directory in which the compiler ran, the file's directory and the file's name. If a part is absolute, the
/// parts before it are dropped.
fn file_path(unit: UnitRef<'_, Reader<'_>>, number: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(number)?;
    let text = |value| unit.attr_string(value).ok().map(|text| text.to_string_lossy().into_owned());
    let mut path =
        PathBuf::from(unit.comp_dir.map(|directory| directory.to_string_lossy().into_owned()).unwrap_or_default());
    path.extend(file.directory(header).and_then(text));
    path.push(text(file.path_name())?);
    Some(path.to_string_lossy().into_owned())
}
