//! Reads the entry points of instantiated generic methods: the method, its type arguments, and where its code starts.

use super::entry_points::EntryPoints;
use super::names;
use super::native::{HashTable, Native, read_hash_table};
use super::schema::{MEMBER_REF, METHOD_DEF};
use super::signature::{OTHER_MODULE, argument};
use super::tables::{Blob, Metadata, Token};

/// Flags at the start of an entry. They tell which parts the entry has.
const METHOD_INSTANTIATION: u32 = 0x04;
const SLOT_INSTEAD_OF_TOKEN: u32 = 0x08;
const MEMBER_REF_TOKEN: u32 = 0x10;
const CONSTRAINED: u32 = 0x20;
const OWNER_TYPE: u32 = 0x40;
const OTHER_CONTEXT: u32 = 0x80;

/// The maximum number of type parameters. No real method has more.
const MAX_PARAMETERS: u32 = 64;

/// Reads the hash table of entry points at `offset` and adds them to `out`. Returns true if all entries could be read,
/// even if some of the names couldn't.
pub(super) fn read(native: Native<'_>, offset: usize, metadata: &Metadata<'_>, out: &mut EntryPoints) -> bool {
    let Some(HashTable { entries, is_complete }) = read_hash_table(native, offset) else { return false };
    let mut all_read = is_complete;
    for entry in entries {
        all_read &= read_entry(native, entry, metadata, out).is_some();
    }
    all_read
}

/// Reads the entry at `offset` and adds it to `out`: where the code starts, and the name of the method. The parts of an
/// entry are: flags, file, class, method, type arguments, constraint, entry point. Flags tell which of them are there.
/// `None` if the entry is damaged or of an unknown kind.
fn read_entry(native: Native<'_>, offset: usize, metadata: &Metadata<'_>, out: &mut EntryPoints) -> Option<()> {
    let mut blob = Blob::new(native.0, offset);
    let flags = blob.number()?;
    // A number that isn't 0 refers to another file, whose metadata isn't known here. The method then has no name.
    let mut is_of_other_file = flags & OTHER_CONTEXT != 0 && blob.number()? != 0;
    let mut owner = None;
    if flags & OWNER_TYPE != 0 {
        // The class may start with a prefix that says that it is defined in another file. `ahead`, a copy of `blob`,
        // reads the prefix and the number of the file after it, without moving `blob` on.
        let mut ahead = blob;
        if ahead.peek()? == OTHER_MODULE {
            ahead.number()?;
            // The number of this file is 0.
            is_of_other_file |= ahead.number()? != 0;
        }
        owner = Some(argument(metadata, &mut blob)?);
    }
    // An entry of this kind names the method by a slot of its class, which isn't supported.
    if flags & SLOT_INSTEAD_OF_TOKEN != 0 {
        return None;
    }
    let table = if flags & MEMBER_REF_TOKEN != 0 { MEMBER_REF } else { METHOD_DEF };
    let method = Token { table, row: blob.number()? };
    // A method's type arguments aren't shown in its name, so they are only skipped.
    if flags & METHOD_INSTANTIATION != 0 {
        for _ in 0..blob.number().filter(|&count| count <= MAX_PARAMETERS)? {
            argument(metadata, &mut blob)?;
        }
    }
    if flags & CONSTRAINED != 0 {
        argument(metadata, &mut blob)?;
    }
    let function = native.runtime_function(blob.offset())?;
    // An entry point without a name is added, too. Otherwise, this method's code would seem to belong to the method
    // before it.
    out.push(function, || {
        if is_of_other_file {
            return None;
        }
        let owner = match owner {
            Some(owner) => owner,
            None => names::owner_name(metadata, method)?,
        };
        names::spell_method(metadata, method, &owner)
    });
    Some(())
}
