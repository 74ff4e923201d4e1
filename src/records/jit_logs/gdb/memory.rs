//! The memory of a process, wherever it is read from.

use crate::bytes::cursor::Endian;

/// The memory of a process.
pub trait Memory {
    /// The order of bytes in its words.
    fn endian(&self) -> Endian;

    /// Fills a buffer with what stands from an address on. `false` if not all of it can be read.
    fn read(&self, addr: u64, into: &mut [u8]) -> bool;
}

/// Words of 64 bits, one behind the other.
pub(super) fn words<const N: usize>(memory: &impl Memory, addr: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (at, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        let addr = addr.checked_add(at as u64 * 8)?;
        memory.read(addr, &mut bytes).then_some(())?;
        *word = memory.endian().u64(bytes);
    }
    Some(words)
}
