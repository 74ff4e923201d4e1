//! What an address in a process belongs to.

use super::code_map::CodeId;
use super::dso::DsoId;
use crate::model::Addr;

/// What is at an address. If the address is a return address, it has been adjusted: offsets point one byte before it,
/// into the call instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// JIT code, and the offset from its start in bytes.
    Code(CodeId, u64),
    /// A file or other mapping, and the address relative to the file (see
    /// [`Place::offset`](super::address_space::Place::offset)).
    File(DsoId, u64),
    /// No mapping and no JIT code is known at this address.
    Nothing(Addr),
}
