//! What samples of tracepoints refer to in the recorded kernel.

use crate::bytes::cursor::Endian;
use rustc_hash::FxHashMap;

/// The facts about the recorded kernel that are needed to format samples.
#[derive(Debug, Default)]
pub(super) struct RecordedKernel {
    /// Texts that the kernel refers to by address.
    pub(super) printk: FxHashMap<u64, Vec<u8>>,
    /// Functions by address, each with the offset of the address in it.
    pub(super) functions: FxHashMap<u64, (Vec<u8>, u64)>,
    /// Size of a `long` in bytes.
    pub(super) long_size: u64,
    pub(super) endian: Endian,
}
