//! Parses the feature BPF_BTF: u32 number of objects, then per object u32 ID, u32 size and the object.
//!
//! An object (`struct btf_header`): u16 magic, u8 version, u8 flags, u32 header length, then u32 offset and u32 length
//! of the types and of the strings, both relative to the end of the header. A type: u32 name (an offset in the
//! strings), u32 info (kind in bits 24–28, number of members in the lowest 16), u32 size or type, then data depending
//! on the kind.

use crate::bytes::cursor::Cursor;
use crate::error::{Result, Skipped};
use crate::model::bpf::{BpfStrings, BpfText};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const MAGIC: u16 = 0xeb9f;
/// The kind of the types that describe functions (`BTF_KIND_FUNC`).
const FUNC: u32 = 12;

/// A BTF object, of which only the strings and the names of functions are kept.
#[derive(Debug)]
pub(super) struct Btf {
    pub(super) strings: Arc<BpfStrings>,
    /// For each function type, its name as an offset in the strings; 0 for other types. Type ID 1 is at index 0.
    functions: Vec<u32>,
}

/// Reads all BTF objects of the section and returns them by ID. What can't be read is counted in `skipped`.
pub(super) fn read(mut section: Cursor<'_>, skipped: &mut Skipped) -> FxHashMap<u32, Btf> {
    let mut objects = FxHashMap::default();
    let count = match section.u32("number of BTF objects") {
        Ok(count) => count,
        Err(error) => {
            skipped.add(error);
            return objects;
        }
    };
    for _ in 0..count {
        if let Err(error) = read_next(&mut section, &mut objects, skipped) {
            skipped.add(error);
            break;
        }
    }
    objects
}

/// Reads the next BTF object of the section and adds it to `objects`. A damaged object is skipped.
fn read_next(section: &mut Cursor<'_>, objects: &mut FxHashMap<u32, Btf>, skipped: &mut Skipped) -> Result<()> {
    let (id, size) = (section.u32("id of a BTF object")?, section.u32("size of a BTF object")?);
    let object = section.part(size.into(), "BTF object")?;
    match Btf::read(object, skipped) {
        Ok(btf) => drop(objects.insert(id, btf)),
        Err(error) => skipped.add(error),
    }
    Ok(())
}

impl Btf {
    /// The name of a function, found by its type ID. `None` if the type isn't a function or has no name.
    pub(super) fn function(&self, type_id: u32) -> Option<BpfText> {
        let name = *self.functions.get(type_id.checked_sub(1)? as usize)?;
        (name > 0).then_some(BpfText(name))
    }

    /// Reads a BTF object: its strings, and the names of functions.
    fn read(mut object: Cursor<'_>, skipped: &mut Skipped) -> Result<Self> {
        let start = object;
        let magic = object.u16("magic of a BTF object")?;
        if magic != MAGIC {
            return Err(start.error(format!("the magic of a BTF object is {magic:#x}, not {MAGIC:#x}")));
        }
        object.u16("version and flags of a BTF object")?;
        let header_len = object.u32("length of a BTF header")?;
        let (type_offset, type_len) = (object.u32("offset of BTF types")?, object.u32("length of BTF types")?);
        let (string_offset, string_len) = (object.u32("offset of BTF strings")?, object.u32("length of BTF strings")?);
        // The offsets of types and strings count from the end of the header, so both cursors start there.
        let mut after_header = start;
        after_header.bytes(header_len.into(), "BTF header")?;
        let (mut types, mut strings) = (after_header, after_header);
        strings.bytes(string_offset.into(), "BTF data before the strings")?;
        let strings = strings.bytes(string_len.into(), "BTF strings")?;
        types.bytes(type_offset.into(), "BTF data before the types")?;
        // Even if the types can't be read, the strings are kept: source lines need them.
        let mut functions = Vec::new();
        let types = types.part(type_len.into(), "BTF types");
        if let Err(error) = types.and_then(|types| read_function_names(types, &mut functions)) {
            skipped.add(error);
        }
        Ok(Self { strings: Arc::new(BpfStrings { bytes: strings.to_vec() }), functions })
    }
}

/// Reads all types and appends one entry per type to `functions`: for a function its name, as an offset in the strings;
/// 0 for other types. If a type can't be read, the entries of the types before it are still appended.
fn read_function_names(mut types: Cursor<'_>, functions: &mut Vec<u32>) -> Result<()> {
    while !types.is_empty() {
        let start = types;
        let (name, info) = (types.u32("name of a BTF type")?, types.u32("info of a BTF type")?);
        types.u32("size or type of a BTF type")?;
        // To get to the next type, skip the data of this one, whose length depends on the kind.
        let (kind, members) = (info >> 24 & 0x1f, u64::from(info & 0xffff));
        let data_len = match kind {
            // INT, VAR and DECL_TAG: one u32
            1 | 14 | 17 => 4,
            // ARRAY: three u32
            3 => 12,
            // STRUCT, UNION, DATASEC and ENUM64: three u32 per member
            4 | 5 | 15 | 19 => members * 12,
            // ENUM and FUNC_PROTO: two u32 per member
            6 | 13 => members * 8,
            // No data: PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG
            2 | 7..=12 | 16 | 18 => 0,
            _ => return Err(start.error(format!("BTF types of kind {kind} are unknown to jitgraft"))),
        };
        types.bytes(data_len, "members of a BTF type")?;
        functions.push(if kind == FUNC { name } else { 0 });
    }
    Ok(())
}
