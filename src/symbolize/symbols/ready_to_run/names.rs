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
    let owner_name = type_name(metadata, find_class(metadata, row)?, Spelling::Owner)?;
    spell_method(metadata, Token { table: METHOD_DEF, row }, &owner_name)
}

/// The full name of a method, with class, signature and tier. `owner_name` is the name of its class. `None` if it can't
/// be read.
pub(super) fn spell_method(metadata: &Metadata<'_>, method: Token, owner_name: &[u8]) -> Option<Vec<u8>> {
    // The numbers are columns of the method table and of the table of references (ECMA-335, II.22.25 and II.22.26).
    let (assembly, name, signature) = match method.table {
        MEMBER_REF => {
            let parent = metadata.coded(method, 0, MEMBER_REF_PARENT)?;
            (assembly_of(metadata, parent, 0)?, metadata.text(method, 1)?, metadata.blob(method, 2)?)
        }
        _ => (own_assembly(metadata)?, metadata.text(method, 3)?, metadata.blob(method, 4)?),
    };
    // In the text of a signature, the method's name is in the middle, after the result type.
    let qualified_name = [b"[", assembly, b"] ", owner_name, b"::", name].concat();
    let mut spelling = signature::method(metadata, signature, &qualified_name)?;
    spelling.extend_from_slice(TIER);
    Some(spelling)
}

/// The name of the class that contains a method. For a reference to a method in another file, the reference states the
/// class. `None` if it can't be read.
pub(super) fn owner_name(metadata: &Metadata<'_>, method: Token) -> Option<Vec<u8>> {
    let owner = match method.table {
        METHOD_DEF => find_class(metadata, method.row)?,
        _ => metadata.coded(method, 0, MEMBER_REF_PARENT)?,
    };
    type_name(metadata, owner, Spelling::Owner)
}

/// The class that contains the method in this row of the method table. The type table states the first method of each
/// class, in ascending order. `None` if there is none.
fn find_class(metadata: &Metadata<'_>, method: u32) -> Option<Token> {
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

/// The name of the assembly that defines the type in this row; `None` if this file doesn't tell it. `depth` is the
/// number of references that have been followed.
fn assembly_of<'a>(metadata: &Metadata<'a>, token: Token, depth: usize) -> Option<&'a [u8]> {
    match token.table {
        _ if depth > DEPTH => None,
        TYPE_REF => assembly_of(metadata, metadata.coded(token, 0, RESOLUTION_SCOPE)?, depth + 1),
        TYPE_SPEC => assembly_of(metadata, signature::generic(metadata.blob(token, 0)?)?, depth + 1),
        _ => scope_name(metadata, token).or_else(|| own_assembly(metadata)),
    }
}

/// The name of this file's own assembly; `None` if the file doesn't tell it.
fn own_assembly<'a>(metadata: &Metadata<'a>) -> Option<&'a [u8]> {
    metadata.text(Token { table: ASSEMBLY, row: 1 }, 7)
}
