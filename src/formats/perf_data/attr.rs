//! `struct perf_event_attr`: what an event counts and which fields its samples have.
//!
//! All versions of the struct are accepted, from the first (64 bytes) on. Fields that an older recorder didn't write
//! are 0.

use super::header::ATTR_SIZE_MIN;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result};
use linux_perf_event_reader::constants as abi;

/// The fields of an attr that decide how records are laid out, timed and named. [`Event::attr_bytes`] has the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventAttr {
    /// `type`: `PERF_TYPE_*`, or the number of a PMU.
    pub kind: u32,
    /// `config`: which counter of that type.
    pub config: u64,
    /// `sample_period`, or `sample_freq` if [`Self::is_frequency`] is true.
    pub period_or_frequency: u64,
    /// `sample_type`: `PERF_SAMPLE_*` bits.
    pub sample_type: u64,
    /// `read_format`: `PERF_FORMAT_*` bits.
    pub read_format: u64,
    /// The flags of the attr, a C bit-field, as one word. The first flag (`disabled`) is the lowest bit, whatever the
    /// byte order of the recording.
    pub flags: u64,
    /// `branch_sample_type`: `PERF_SAMPLE_BRANCH_*` bits.
    pub branch_sample_type: u64,
    /// `sample_regs_user`: mask of the user registers in a sample.
    pub sample_regs_user: u64,
    /// `sample_stack_user`: limit in bytes of the copy of the user stack in a sample.
    pub sample_stack_user: u32,
    /// `clockid`. Call [`Self::clock`] instead, which also checks whether the recorder chose a clock at all.
    pub clockid: i32,
    /// `sample_regs_intr`: mask of the registers that each sample contains as they were at the interrupt.
    pub sample_regs_intr: u64,
    /// `sample_max_stack`: limit of the frames in a call chain. 0 means the machine's own limit
    /// (`kernel.perf_event_max_stack`).
    pub sample_max_stack: u16,
}

impl EventAttr {
    /// Parses an attr. Uses only as many bytes as the attr's `size` field states. `base` is the file offset of `bytes`,
    /// for error messages.
    pub(super) fn parse(bytes: &[u8], base: u64, endian: Endian) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, base, endian);
        let kind = cursor.u32("attr type")?;
        let size = u64::from(cursor.u32("attr size")?);
        if size != 0 && size < ATTR_SIZE_MIN {
            return Err(
                Error::new(format!("perf_event_attr.size is {size}, less than {ATTR_SIZE_MIN}")).at_offset(base + 4)
            );
        }
        // The first versions of perf wrote a size of 0, which means the size of the first version. If the stated size
        // is beyond the end of `bytes`, only the bytes that are there are used, as in perf.
        let used = if size == 0 { ATTR_SIZE_MIN } else { size.min(bytes.len() as u64) };
        let mut cursor = Cursor::new(&bytes[..used as usize], base, endian);
        cursor.bytes(8, "attr type and size")?;
        let mut attr = Self {
            kind,
            config: cursor.u64("attr config")?,
            period_or_frequency: cursor.u64("attr sample_period")?,
            sample_type: cursor.u64("attr sample_type")?,
            read_format: cursor.u64("attr read_format")?,
            flags: bit_field(cursor.u64("attr flags")?, endian),
            ..Self::default()
        };
        cursor.bytes(16, "attr wakeup, bp_type, config1")?;
        attr.parse_later_versions(cursor)?;
        Ok(attr)
    }

    /// Parses the fields that newer versions of perf added. Each version added a few of them, so an attr ends after the
    /// fields of some version. Fields that it lacks stay 0.
    fn parse_later_versions(&mut self, mut cursor: Cursor<'_>) -> Result<()> {
        if cursor.left() < 8 + 8 {
            return Ok(());
        }
        cursor.bytes(8, "attr config2")?;
        self.branch_sample_type = cursor.u64("attr branch_sample_type")?;
        if cursor.left() < 8 + 4 + 4 {
            return Ok(());
        }
        self.sample_regs_user = cursor.u64("attr sample_regs_user")?;
        self.sample_stack_user = cursor.u32("attr sample_stack_user")?;
        self.clockid = cursor.u32("attr clockid")?.cast_signed();
        if cursor.left() >= 8 {
            self.sample_regs_intr = cursor.u64("attr sample_regs_intr")?;
        }
        if cursor.left() >= 4 + 4 {
            cursor.bytes(4, "attr aux_watermark")?;
            self.sample_max_stack = cursor.u16("attr sample_max_stack")?;
        }
        Ok(())
    }

    /// True if the event's samples contain the field that this `PERF_SAMPLE_*` bit stands for. With several bits, one
    /// of their fields is enough.
    pub fn has_field(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// True if records other than samples end with a [`super::SampleId`] (`sample_id_all`).
    pub fn sample_id_all(&self) -> bool {
        self.flags & abi::ATTR_FLAG_BIT_SAMPLE_ID_ALL != 0
    }

    /// True for tracepoints. `config` is then the tracepoint's ID.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == abi::PERF_TYPE_TRACEPOINT
    }

    /// True if the samples carry data that a BPF program outputs (`PERF_COUNT_SW_BPF_OUTPUT`).
    pub fn is_bpf_output(&self) -> bool {
        const BPF_OUTPUT: u64 = 10; // PERF_COUNT_SW_BPF_OUTPUT
        self.kind == abi::PERF_TYPE_SOFTWARE && self.config == BPF_OUTPUT
    }

    /// True for a hardware event that was requested by its raw number (`PERF_TYPE_RAW`).
    pub fn is_raw_event(&self) -> bool {
        self.kind == abi::PERF_TYPE_RAW
    }

    /// True if the event counts page faults. The data address of its samples is then the address that faulted.
    pub fn is_page_fault(&self) -> bool {
        // The `config` values of the three events that count page faults: all (PERF_COUNT_SW_PAGE_FAULTS), minor, and
        // major ones.
        const PAGE_FAULTS: [u64; 3] = [2, 5, 6];
        self.kind == abi::PERF_TYPE_SOFTWARE && PAGE_FAULTS.contains(&self.config)
    }

    /// The requested samples per second; `None` if a fixed period was requested.
    pub fn requested_frequency(&self) -> Option<u64> {
        self.is_frequency().then_some(self.period_or_frequency)
    }

    /// True if a sampling frequency was requested, not a fixed period (`freq`).
    pub fn is_frequency(&self) -> bool {
        self.flags & abi::ATTR_FLAG_BIT_FREQ != 0
    }

    /// `precise_ip`, from 0 to 3: how close the recorded address is to the instruction that caused the event. At 0 it
    /// may be any distance behind that instruction; from 2 on it should be exact.
    pub fn precise_ip(&self) -> u8 {
        /// `precise_ip` is a number of two bits in `flags`. This is the position of the lower one.
        const PRECISE_IP: u32 = 15;
        (self.flags >> PRECISE_IP & 3) as u8
    }

    /// True if child threads are counted as well (`inherit`). Their samples have the event IDs of the parent's samples.
    pub fn is_inherited(&self) -> bool {
        self.flags & abi::ATTR_FLAG_BIT_INHERIT != 0
    }

    /// The clock (`clockid_t`) that `perf record -k` chose for times; `None` for perf's own clock.
    pub fn clock(&self) -> Option<i32> {
        (self.flags & abi::ATTR_FLAG_BIT_USE_CLOCKID != 0).then_some(self.clockid)
    }

    /// The name that perf would give the event, for recordings that don't contain a name.
    fn default_name(&self) -> String {
        let known = match self.kind {
            // Only the lowest byte is the event. On machines with several kinds of cores, the upper bits choose a PMU.
            abi::PERF_TYPE_HARDWARE => HARDWARE.get(usize::try_from(self.config & 0xff).unwrap_or(usize::MAX)),
            abi::PERF_TYPE_SOFTWARE => SOFTWARE.get(usize::try_from(self.config).unwrap_or(usize::MAX)),
            _ => None,
        };
        known.map_or_else(|| format!("type {} config {:#x}", self.kind, self.config), |&name| name.to_owned())
    }
}

/// Names of the hardware events, in the order of `enum perf_hw_id`.
const HARDWARE: &[&str] = &[
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// Names of the software events, in the order of `enum perf_sw_ids`.
const SOFTWARE: &[&str] = &[
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// Converts a word that holds a C bit-field so that the field's first bit is the lowest bit of the word. C compilers
/// fill bit-fields from the highest bit on big-endian machines.
fn bit_field(word: u64, endian: Endian) -> u64 {
    match endian {
        Endian::Little => word,
        Endian::Big => word.reverse_bits(),
    }
}

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The parsed `perf_event_attr`.
    pub attr: EventAttr,
    /// The bytes of the `perf_event_attr` as recorded.
    pub attr_bytes: Vec<u8>,
    /// The event's IDs, one per CPU or thread. Each sample of the event contains one of these IDs.
    pub ids: Vec<u64>,
    /// Name in perf's spelling: `cpu-clock`, `cycles:u`, …
    pub name: String,
}

impl Event {
    pub(super) fn new(attr_bytes: &[u8], ids: Vec<u64>, base: u64, endian: Endian) -> Result<Self> {
        let attr = EventAttr::parse(attr_bytes, base, endian)?;
        let name = attr.default_name();
        Ok(Self { attr, attr_bytes: attr_bytes.to_vec(), ids, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(words: &[u64], size: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn every_version_has_the_fields_of_its_length() {
        let words = [0, 999, 0x107, 4, 1 << 18 | 1 << 10 | 1 << 25, 0, 0, 0, 0xb, 0xff, 1 << 32 | 8192, 0x3];
        for (size, branch, regs, clock, intr) in
            [(64, 0, 0, 0, 0), (72, 0, 0, 0, 0), (80, 0xb, 0, 0, 0), (96, 0xb, 0xff, 1, 0), (104, 0xb, 0xff, 1, 3)]
        {
            let bytes = attr(&words[..(size as usize - 8) / 8], size);
            let attr = EventAttr::parse(&bytes, 0, Endian::Little).unwrap();
            assert_eq!((attr.sample_type, attr.is_frequency(), attr.sample_id_all()), (0x107, true, true));
            assert_eq!(attr.branch_sample_type, branch, "{size}");
            assert_eq!((attr.sample_regs_user, attr.clock()), (regs, Some(clock)), "{size}");
            assert_eq!(attr.sample_regs_intr, intr, "{size}");
            assert_eq!(attr.default_name(), "cpu-clock");
        }
        let error = EventAttr::parse(&attr(&[0; 7], 40), 0x100, Endian::Little).unwrap_err().to_string();
        assert_eq!(error, "at byte 0x104: perf_event_attr.size is 40, less than 64");
    }

    #[test]
    fn the_bit_field_of_a_big_endian_machine_is_mirrored() {
        assert_eq!(bit_field(1 << 63 | 1 << (63 - 18), Endian::Big), 1 | 1 << 18);
    }
}
