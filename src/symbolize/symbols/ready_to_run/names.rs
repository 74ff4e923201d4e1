//! Names methods as .NET's perf maps do.

use super::schema::{
    ASSEMBLY, MEMBER_REF, MEMBER_REF_PARENT, METHOD_DEF, RESOLUTION_SCOPE, TYPE_DEF, TYPE_REF, TYPE_SPEC,
};
use super::signature::{self, DEPTH, Spelling, scope_name, type_name};
use super::tables::{Metadata, Token};

/// The tier that perf maps append to the name of a method from a ReadyToRun image.
const TIER: &[u8] = b"[PreJIT]";

/// The full name of the method in a row of the method table, with class and signature. `None` if it can't be read.
pub(super) fn method_name(metadata: &Metadata<'_>, row: u32) -> Option<Vec<u8>> {
    let owner = type_name(metadata, type_of(metadata, row)?, Spelling::Owner)?;
    method_of(metadata, Token { table: METHOD_DEF, row }, &owner)
}

/// The full name of a method. `owner` is the name of its class. `None` if it can't be read.
pub(super) fn method_of(metadata: &Metadata<'_>, method: Token, owner: &[u8]) -> Option<Vec<u8>> {
    // Numbers are columns of the tables (ECMA-335, II.22.25 and II.22.26).
    let (assembly, name, signature) = match method.table {
        MEMBER_REF => {
            let parent = metadata.coded(method, 0, MEMBER_REF_PARENT)?;
            (assembly_of(metadata, parent, 0)?, metadata.text(method, 1)?, metadata.blob(method, 2)?)
        }
        _ => (own_assembly(metadata)?, metadata.text(method, 3)?, metadata.blob(method, 4)?),
    };
    let middle = [b"[", assembly, b"] ", owner, b"::", name].concat();
    let mut whole = signature::method(metadata, signature, &middle)?;
    whole.extend_from_slice(TIER);
    Some(whole)
}

/// The name of the class that contains a method. For a method that is defined in another file, it is the class in the
/// reference to the method. `None` if it can't be read.
pub(super) fn owner(metadata: &Metadata<'_>, method: Token) -> Option<Vec<u8>> {
    let owner = match method.table {
        METHOD_DEF => type_of(metadata, method.row)?,
        _ => metadata.coded(method, 0, MEMBER_REF_PARENT)?,
    };
    type_name(metadata, owner, Spelling::Owner)
}

/// The class that contains the method in this row of the method table. The type table has the first method of each
/// class, in ascending order. `None` if there is none.
fn type_of(metadata: &Metadata<'_>, method: u32) -> Option<Token> {
    /// The column of the type table with the row of the type's first method.
    const METHOD_LIST: usize = 5;
    // A binary search for the last type whose first method isn't after the wanted one. Rows are counted from 1.
    let mut last = 0;
    let mut end = metadata.len(TYPE_DEF);
    while last < end {
        let row = last + (end - last) / 2 + 1;
        let first_method = metadata.number(Token { table: TYPE_DEF, row }, METHOD_LIST).unwrap_or(u32::MAX);
        if first_method <= method { last = row } else { end = row - 1 }
    }
    if last == 0 { None } else { Some(Token { table: TYPE_DEF, row: last }) }
}

/// The name of the assembly that defines the type in this row; `None` if this file doesn't tell it.
fn assembly_of<'a>(metadata: &Metadata<'a>, token: Token, depth: usize) -> Option<&'a [u8]> {
    match token.table {
        _ if depth > DEPTH => None,
        TYPE_REF => assembly_of(metadata, metadata.coded(token, 0, RESOLUTION_SCOPE)?, depth + 1),
        TYPE_SPEC => assembly_of(metadata, signature::generic(metadata.blob(token, 0)?)?, depth + 1),
        _ => scope_name(metadata, token).or_else(|| own_assembly(metadata)),
    }
}

fn own_assembly<'a>(metadata: &Metadata<'a>) -> Option<&'a [u8]> {
    metadata.text(Token { table: ASSEMBLY, row: 1 }, 7)
}
