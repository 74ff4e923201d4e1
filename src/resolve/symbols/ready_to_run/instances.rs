//! Reads the entry points of instantiated generic methods: the method, its type arguments, and where its code starts.

use super::entry_points::EntryPoints;
use super::names;
use super::native::{Native, hash_table};
use super::schema::{MEMBER_REF, METHOD_DEF};
use super::signature::{OTHER_MODULE, argument};
use super::tables::{Blob, Metadata, Token};

/// Flags that tell what an entry contains.
const METHOD_INSTANTIATION: u32 = 0x04;
const SLOT_INSTEAD_OF_TOKEN: u32 = 0x08;
const MEMBER_REF_TOKEN: u32 = 0x10;
const CONSTRAINED: u32 = 0x20;
const OWNER_TYPE: u32 = 0x40;
const OTHER_CONTEXT: u32 = 0x80;

/// No real method has more type parameters than this.
const MOST_PARAMETERS: u32 = 64;

/// Reads the hash table at `at`. Returns true if the entry point of every method could be read.
pub(super) fn read(native: Native<'_>, at: usize, metadata: &Metadata<'_>, out: &mut EntryPoints) -> bool {
    let Some((entries, mut all_read)) = hash_table(native, at) else { return false };
    for entry in entries {
        all_read &= one(native, entry, metadata, out).is_some();
    }
    all_read
}

fn one(native: Native<'_>, at: usize, metadata: &Metadata<'_>, out: &mut EntryPoints) -> Option<()> {
    let mut blob = Blob::new(native.0, at);
    let flags = blob.number()?;
    let mut of_other_file = flags & OTHER_CONTEXT != 0 && blob.number()? != 0;
    let owner = if flags & OWNER_TYPE != 0 {
        let mut look = blob;
        of_other_file |= look.peek()? == OTHER_MODULE && look.number().and_then(|_| look.number())? != 0;
        Some(argument(metadata, &mut blob)?)
    } else {
        None
    };
    if flags & SLOT_INSTEAD_OF_TOKEN != 0 {
        return None;
    }
    let table = if flags & MEMBER_REF_TOKEN != 0 { MEMBER_REF } else { METHOD_DEF };
    let method = Token { table, row: blob.number()? };
    if flags & METHOD_INSTANTIATION != 0 {
        for _ in 0..blob.number().filter(|&count| count <= MOST_PARAMETERS)? {
            argument(metadata, &mut blob)?;
        }
    }
    if flags & CONSTRAINED != 0 {
        argument(metadata, &mut blob)?;
    }
    let function = native.runtime_function(blob.at())?;
    let name = || names::method_of(metadata, method, &owner.or_else(|| names::owner(metadata, method))?);
    out.push(function, || if of_other_file { None } else { name() });
    Some(())
}
