//! What samples refer to in the recorded kernel.

use crate::bytes::cursor::Endian;
use rustc_hash::FxHashMap;

/// The recorded kernel, as far as samples of tracepoints need it.
#[derive(Debug, Default)]
pub(super) struct RecordedKernel {
    /// Texts that the kernel's code prints by their addresses.
    pub(super) printk: FxHashMap<u64, Vec<u8>>,
    /// The functions at the addresses that samples name, and how far into them these are.
    pub(super) functions: FxHashMap<u64, (Vec<u8>, u64)>,
    /// Bytes of a `long`.
    pub(super) long_size: u64,
    pub(super) endian: Endian,
}
