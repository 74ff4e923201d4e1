//! The columns of the ECMA-335 metadata tables (part II, section 22). Not all of these tables are used. The others are
//! here because they come before tables that are used, and the size of their rows must be known to skip them.

/// What a column of a metadata table contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// A number that takes this many bytes.
    Fixed(u8),
    /// An offset in the string heap.
    Text,
    /// An index in the GUID heap.
    Guid,
    /// An offset in the blob heap.
    Blob,
    /// The index of a row (from 1) in the table with this number.
    Row(u8),
    /// The index of a row in one of several tables. The low bits of the value tell in which one.
    Coded(Coded),
}

/// The tables to which a coded index may refer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coded {
    /// The number of low bits that select the table.
    pub(super) bits: u32,
    /// The tables, by the value of the low bits.
    pub(super) tables: &'static [u8],
}

/// The numbers of the metadata tables that are used.
pub(super) const MODULE: u8 = 0x00;
pub(super) const TYPE_REF: u8 = 0x01;
pub(super) const TYPE_DEF: u8 = 0x02;
pub(super) const METHOD_DEF: u8 = 0x06;
pub(super) const MEMBER_REF: u8 = 0x0a;
pub(super) const MODULE_REF: u8 = 0x1a;
pub(super) const TYPE_SPEC: u8 = 0x1b;
pub(super) const ASSEMBLY: u8 = 0x20;
pub(super) const ASSEMBLY_REF: u8 = 0x23;
pub(super) const NESTED_CLASS: u8 = 0x29;

/// In [`Coded::tables`]: stands for a value of the low bits that selects no table.
const NONE: u8 = 0xff;

pub(super) const TYPE_DEF_OR_REF: Coded = Coded { bits: 2, tables: &[TYPE_DEF, TYPE_REF, TYPE_SPEC] };
pub(super) const RESOLUTION_SCOPE: Coded = Coded { bits: 2, tables: &[MODULE, MODULE_REF, ASSEMBLY_REF, TYPE_REF] };
pub(super) const MEMBER_REF_PARENT: Coded =
    Coded { bits: 3, tables: &[TYPE_DEF, TYPE_REF, MODULE_REF, METHOD_DEF, TYPE_SPEC] };
const HAS_CONSTANT: Coded = Coded { bits: 2, tables: &[0x04, 0x08, 0x17] };
const HAS_CUSTOM_ATTRIBUTE: Coded = Coded {
    bits: 5,
    tables: &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27,
        0x28, 0x2a, 0x2c, 0x2b,
    ],
};
const CUSTOM_ATTRIBUTE_TYPE: Coded = Coded { bits: 3, tables: &[NONE, NONE, METHOD_DEF, MEMBER_REF] };
const HAS_FIELD_MARSHAL: Coded = Coded { bits: 1, tables: &[0x04, 0x08] };
const HAS_DECL_SECURITY: Coded = Coded { bits: 2, tables: &[TYPE_DEF, METHOD_DEF, ASSEMBLY] };
const HAS_SEMANTICS: Coded = Coded { bits: 1, tables: &[0x14, 0x17] };
const METHOD_DEF_OR_REF: Coded = Coded { bits: 1, tables: &[METHOD_DEF, MEMBER_REF] };
const MEMBER_FORWARDED: Coded = Coded { bits: 1, tables: &[0x04, METHOD_DEF] };
const IMPLEMENTATION: Coded = Coded { bits: 2, tables: &[0x26, ASSEMBLY_REF, 0x27] };

use Column::{Blob, Coded as C, Fixed, Guid, Row, Text};

/// The columns of each table, by table number. Later tables aren't needed.
pub(super) const TABLES: [&[Column]; 0x2a] = [
    &[Fixed(2), Text, Guid, Guid, Guid],
    &[C(RESOLUTION_SCOPE), Text, Text],
    &[Fixed(4), Text, Text, C(TYPE_DEF_OR_REF), Row(0x04), Row(METHOD_DEF)],
    &[Row(0x04)],
    &[Fixed(2), Text, Blob],
    &[Row(METHOD_DEF)],
    &[Fixed(4), Fixed(2), Fixed(2), Text, Blob, Row(0x08)],
    &[Row(0x08)],
    &[Fixed(2), Fixed(2), Text],
    &[Row(TYPE_DEF), C(TYPE_DEF_OR_REF)],
    &[C(MEMBER_REF_PARENT), Text, Blob],
    &[Fixed(2), C(HAS_CONSTANT), Blob],
    &[C(HAS_CUSTOM_ATTRIBUTE), C(CUSTOM_ATTRIBUTE_TYPE), Blob],
    &[C(HAS_FIELD_MARSHAL), Blob],
    &[Fixed(2), C(HAS_DECL_SECURITY), Blob],
    &[Fixed(2), Fixed(4), Row(TYPE_DEF)],
    &[Fixed(4), Row(0x04)],
    &[Blob],
    &[Row(TYPE_DEF), Row(0x14)],
    &[Row(0x14)],
    &[Fixed(2), Text, C(TYPE_DEF_OR_REF)],
    &[Row(TYPE_DEF), Row(0x17)],
    &[Row(0x17)],
    &[Fixed(2), Text, Blob],
    &[Fixed(2), Row(METHOD_DEF), C(HAS_SEMANTICS)],
    &[Row(TYPE_DEF), C(METHOD_DEF_OR_REF), C(METHOD_DEF_OR_REF)],
    &[Text],
    &[Blob],
    &[Fixed(2), C(MEMBER_FORWARDED), Text, Row(MODULE_REF)],
    &[Fixed(4), Row(0x04)],
    &[Fixed(4), Fixed(4)],
    &[Fixed(4)],
    &[Fixed(4), Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blob, Text, Text],
    &[Fixed(4)],
    &[Fixed(4), Fixed(4), Fixed(4)],
    &[Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blob, Text, Text, Blob],
    &[Fixed(4), Row(ASSEMBLY_REF)],
    &[Fixed(4), Fixed(4), Fixed(4), Row(ASSEMBLY_REF)],
    &[Fixed(4), Text, Blob],
    &[Fixed(4), Fixed(4), Text, Text, C(IMPLEMENTATION)],
    &[Fixed(4), Fixed(4), Text, C(IMPLEMENTATION)],
    &[Row(TYPE_DEF), Row(TYPE_DEF)],
];
