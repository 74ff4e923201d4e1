//! Facts about the recorded kernel that samples of tracepoints refer to.

use crate::bytes::cursor::Endian;
use rustc_hash::FxHashMap;

/// The facts about the recorded kernel that are needed to format samples.
#[derive(Debug, Default)]
pub(super) struct RecordedKernel {
    /// Strings of the kernel by address. A sample may contain such an address instead of the string.
    pub(super) printk: FxHashMap<u64, Vec<u8>>,
    /// Names of kernel functions by address, each with the offset of the address in the function.
    pub(super) functions: FxHashMap<u64, (Vec<u8>, u64)>,
    /// Size of a `long` in bytes.
    pub(super) long_size: u64,
    pub(super) endian: Endian,
}
