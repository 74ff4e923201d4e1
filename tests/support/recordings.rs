//! Parts of recordings that only tests of the program write: other machines, cgroups, kernels.

use super::bytes::Out;
use super::perf_data::{KERNEL, PerfData, Stamp};

/// `PERF_SAMPLE_BRANCH_CALL_STACK`, a bit of `branch_sample_type`.
pub(crate) const BRANCH_CALL_STACK: u64 = 1 << 11;

/// `PERF_FORMAT_ID | PERF_FORMAT_GROUP`
pub(crate) const READ_GROUP: u64 = 4 | 8;

impl PerfData {
    /// Sets the feature with build IDs (BUILD_ID), with the kernel's only.
    pub(crate) fn kernel_build_id(&mut self, id: &[u8; 20]) {
        let mut body = Out::new(self.order);
        body.u32(u32::MAX).raw(id).raw(&[20, 0, 0, 0]).padded_text(b"[kernel.kallsyms]");
        let mut entry = Out::new(self.order);
        // The size is there: PERF_RECORD_MISC_BUILD_ID_SIZE.
        entry.u32(67).u16(KERNEL | 1 << 15).u16((8 + body.bytes.len()) as u16).raw(&body.bytes);
        self.feature(2, entry.bytes);
    }

    /// `PERF_RECORD_CGROUP`
    pub(crate) fn cgroup(&mut self, stamp: Stamp, id: u64, path: &str) {
        let mut body = Out::new(self.order);
        body.u64(id).padded_text(path.as_bytes());
        self.stamped(19, 0, body, stamp);
    }

    /// Sets the machine of the recording, as `uname -m` prints it.
    pub(crate) fn machine(&mut self, name: &str) {
        self.string_feature(6, name);
    }

    /// Makes the recording one of this machine.
    pub(crate) fn recorded_here(&mut self) {
        const HOSTNAME: u8 = 3;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        self.string_feature(HOSTNAME, host.trim());
    }

    /// Sets a feature that is a string: 3 HOSTNAME, 4 OSRELEASE, 6 ARCH.
    pub(crate) fn string_feature(&mut self, bit: u8, text: &str) {
        let text = self.string(text);
        self.feature(bit, text);
    }

    /// The recording with its events and features, but without records.
    pub(crate) fn without_records(mut self) -> Self {
        self.records = Out::new(self.order);
        self
    }
}
