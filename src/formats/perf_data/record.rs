//! Parses the records other than samples: mappings, thread names, forks and exits, namespaces, kernel symbols.
//!
//! Layouts: include/uapi/linux/perf_event.h for the kernel's records, tools/lib/perf/include/perf/event.h for perf's
//! own (types 64 and up).

use super::{RawRecord, SampleId, kind};
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::Result;
use crate::model::abi::PROT_EXEC;
use crate::model::process::{BuildId, CpuMode, FileId, TscConversion};
use crate::model::{Addr, Nanos, Pid, Tid};
use linux_perf_event_reader::constants as abi;

/// Bit of `misc` in a LOST_SAMPLES record: the samples were dropped by the user's BPF filter
/// (`PERF_RECORD_MISC_LOST_SAMPLES_BPF`, tools/lib/perf/include/perf/event.h).
const MISC_LOST_SAMPLES_BPF: u16 = 1 << 15;

/// A record that is not a sample, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'data> {
    /// An MMAP or MMAP2 record: memory was mapped.
    Mmap(Mmap<'data>),
    /// A thread got a new name.
    Comm(Comm<'data>),
    /// A process or thread started.
    Fork(Task),
    /// A process or thread ended.
    Exit(Task),
    /// The namespaces that a thread is in.
    Namespaces(Namespaces<'data>),
    /// Code was added to the kernel or removed from it.
    Ksymbol(Ksymbol<'data>),
    /// A BPF program was loaded or unloaded.
    BpfEvent(BpfEvent),
    /// The ID and path of a control group.
    Cgroup(Cgroup<'data>),
    /// How to convert the CPU's time-stamp counter to nanoseconds.
    TimeConv(TscConversion),
    /// The build ID of a file.
    BuildId(BuildIdRecord<'data>),
    /// The kernel's buffer was full. Holds the number of records that were lost.
    Lost(u64),
    /// Samples were lost. Holds their number. They may also be counted in LOST records, so the two numbers must not be
    /// added up.
    LostSamples(u64),
    /// Any other record type.
    Other,
}

/// An MMAP or MMAP2 record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mmap<'data> {
    /// The process; -1 for the kernel and its modules.
    pub pid: Pid,
    /// The thread that mapped the memory.
    pub tid: Tid,
    /// First address of the mapping.
    pub addr: Addr,
    /// Length of the mapping in bytes.
    pub len: u64,
    /// Where the mapping starts in the file, in bytes.
    pub pgoff: u64,
    /// The path, or a pseudo path such as `[vdso]` or `//anon`.
    pub path: &'data [u8],
    /// The file's build ID. `None` unless MMAP2 holds one instead of device and inode.
    pub build_id: Option<BuildId>,
    /// Device and inode of the file; `None` if the record holds a build ID instead, is an MMAP record, or the inode is
    /// 0.
    pub file: Option<FileId>,
    /// `PROT_*` bits; `None` in MMAP.
    pub prot: Option<u32>,
    /// `MAP_*` bits; `None` in MMAP.
    pub flags: Option<u32>,
    /// Whether the mapping belongs to the kernel, a user process or a guest.
    pub cpumode: CpuMode,
    /// True if the recorder marked the mapping as data (`PERF_RECORD_MISC_MMAP_DATA`).
    pub data: bool,
}

impl Mmap<'_> {
    /// True if code can run in the mapping: it is not marked as data and has PROT_EXEC, or its protection is unknown.
    pub fn executable(&self) -> bool {
        !self.data && self.prot.is_none_or(|prot| prot & PROT_EXEC != 0)
    }

    /// Encodes an MMAP2 record with the build ID; device and inode (`file`) are left out. `trailer` is the sample ID to
    /// append, if any, and the event's `sample_type`. Returns `None` if the path is too long for a record.
    pub fn to_mmap2(&self, trailer: Option<(&SampleId, u64)>, endian: Endian) -> Option<Vec<u8>> {
        // Reserves room for the fixed fields and the longest trailer, because up to a hundred thousand such records are
        // written.
        let mut body = ByteWriter::append_to(Vec::with_capacity(128 + self.path.len()), endian);
        body.u32(self.pid.0.cast_unsigned()).u32(self.tid.0.cast_unsigned());
        body.u64(self.addr.0).u64(self.len).u64(self.pgoff);
        // The build ID takes the place of device, inode and generation: u8 length, three reserved bytes, 20 bytes. All
        // are 0 if it is unknown.
        let build_id = self.build_id.as_ref().map_or(&[][..], BuildId::as_bytes);
        let padding = &[0; 20][build_id.len()..];
        body.bytes(&[build_id.len() as u8, 0, 0, 0]).bytes(build_id).bytes(padding);
        body.u32(self.prot.unwrap_or_default()).u32(self.flags.unwrap_or_default());
        body.bytes(self.path).bytes(&[0]).pad(8);
        if let Some((sample_id, sample_type)) = trailer {
            sample_id.write(sample_type, &mut body);
        }
        let build_id_bit = if build_id.is_empty() { 0 } else { abi::PERF_RECORD_MISC_MMAP_BUILD_ID };
        let data_bit = if self.data { abi::PERF_RECORD_MISC_MMAP_DATA } else { 0 };
        let misc = misc_bits(self.cpumode) | build_id_bit | data_bit;
        super::walk::record(kind::MMAP2, misc, &body.finish(), endian)
    }
}

/// A COMM record: a thread's new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comm<'data> {
    /// Process ID.
    pub pid: Pid,
    /// ID of the renamed thread.
    pub tid: Tid,
    /// The new name.
    pub name: &'data [u8],
    /// True if an exec set the name. The exec also replaced the process's memory.
    pub exec: bool,
}

/// A FORK or EXIT record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The process that started or ended.
    pub pid: Pid,
    /// The process that started `pid`.
    pub parent: Pid,
    /// The thread that started or ended.
    pub tid: Tid,
    /// The thread that started `tid`.
    pub parent_tid: Tid,
    /// When the process or thread started or ended.
    pub time: Nanos,
}

/// A NAMESPACES record: device and inode of each namespace that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces<'data> {
    /// Process ID.
    pub pid: Pid,
    /// Thread ID.
    pub tid: Tid,
    /// 16 bytes per namespace: u64 device, u64 inode. The order is net, uts, ipc, pid, user, mnt, cgroup.
    pub entries: &'data [u8],
}

/// A KSYMBOL record: a symbol was added to the kernel or removed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ksymbol<'data> {
    /// First address of the symbol.
    pub addr: Addr,
    /// Length of the symbol in bytes.
    pub len: u32,
    /// `PERF_RECORD_KSYMBOL_TYPE_*`: 1 BPF program, 2 out-of-line code.
    pub kind: u16,
    /// True if the symbol was removed.
    pub unregister: bool,
    /// Name of the symbol.
    pub name: &'data [u8],
}

/// A BPF_EVENT record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfEvent {
    /// `PERF_BPF_EVENT_*`: 1 loaded, 2 unloaded.
    pub kind: u16,
    /// ID of the program.
    pub id: u32,
    /// Hash of the program's instructions.
    pub tag: [u8; 8],
}

/// A CGROUP record: the ID of a control group and its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cgroup<'data> {
    /// The ID by which samples refer to the control group.
    pub id: u64,
    /// Path below the root of the control group's hierarchy.
    pub path: &'data [u8],
}

/// A HEADER_BUILD_ID record, or an entry of the BUILD_ID feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildIdRecord<'data> {
    /// -1 for the host, otherwise the process ID of a guest.
    pub pid: Pid,
    /// The build ID of the file; `None` if the record holds an empty one.
    pub build_id: Option<BuildId>,
    /// Path of the file that has this build ID.
    pub path: &'data [u8],
    /// Whether the file belongs to the kernel, to user space or to a guest.
    pub cpumode: CpuMode,
}

/// The CPU modes in the order of the `PERF_RECORD_MISC_CPUMODE_MASK` values.
const MODES: [CpuMode; 6] =
    [CpuMode::Unknown, CpuMode::Kernel, CpuMode::User, CpuMode::Hypervisor, CpuMode::GuestKernel, CpuMode::GuestUser];

/// Encodes a CPU mode as bits of a record's `misc` field.
fn misc_bits(mode: CpuMode) -> u16 {
    MODES.iter().position(|known| *known == mode).unwrap_or_default() as u16
}

/// Decodes the CPU mode in a record's `misc` field.
pub(super) fn cpumode(misc: u16) -> CpuMode {
    MODES.get(usize::from(misc & abi::PERF_RECORD_MISC_CPUMODE_MASK)).copied().unwrap_or_default()
}

impl<'data> Record<'data> {
    /// Parses a record that isn't a SAMPLE ([`Record::Other`] for kinds that we don't use). The error names the field
    /// for which the record is too short.
    pub fn parse(raw: &RawRecord<'data>) -> Result<Self> {
        let mut body = raw.body();
        let body = &mut body;
        Ok(match raw.kind {
            kind::MMAP | kind::MMAP2 => Self::Mmap(mmap(raw, body)?),
            kind::COMM => Self::Comm(comm(raw, body)?),
            kind::FORK => Self::Fork(task(body)?),
            kind::EXIT => Self::Exit(task(body)?),
            kind::NAMESPACES => Self::Namespaces(namespaces(body)?),
            kind::KSYMBOL => Self::Ksymbol(ksymbol(body)?),
            kind::BPF_EVENT => Self::BpfEvent(bpf_event(body)?),
            kind::LOST => {
                body.u64("lost id")?;
                Self::Lost(body.u64("lost records")?)
            }
            // Samples that the user's own filter dropped are not lost; such a record becomes `Other`.
            kind::LOST_SAMPLES if raw.misc & MISC_LOST_SAMPLES_BPF == 0 => Self::LostSamples(body.u64("lost samples")?),
            kind::CGROUP => Self::Cgroup(Cgroup { id: body.u64("cgroup id")?, path: text(body) }),
            kind::TIME_CONV => Self::TimeConv(time_conv(body)?),
            kind::HEADER_BUILD_ID => Self::BuildId(build_id(raw, body)?),
            _ => Self::Other,
        })
    }
}

fn pid(body: &mut Cursor<'_>) -> Result<Pid> {
    Ok(Pid(body.u32("pid")?.cast_signed()))
}

fn tid(body: &mut Cursor<'_>) -> Result<Tid> {
    Ok(Tid(body.u32("tid")?.cast_signed()))
}

/// Text up to the first NUL, or to the record's end if a recorder cut the text off.
fn text<'data>(body: &Cursor<'data>) -> &'data [u8] {
    let rest = body.rest();
    memchr::memchr(0, rest).map_or(rest, |end| &rest[..end])
}

/// The highest minor number of a device in Linux.
const MAX_MINOR: u32 = (1 << 20) - 1;

/// The build ID in these 24 bytes of an MMAP2 record. `None` if they hold something else: device, inode and generation.
/// The bit that tells them apart can't be relied on. If several recordings run at once, and one has build IDs in its
/// MMAP2 records (perf's default since 6.16), Linux also sets the bit in records of the others, which have none.
fn stated_build_id(identity: &[u8]) -> Option<&[u8]> {
    // u8 size, three reserved bytes, the build ID, zeros up to 20 bytes.
    let (header, rest) = identity.split_at(4);
    let (id, padding) = rest.split_at_checked(usize::from(header[0]))?;
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if is_zero(&header[1..]) && is_zero(padding) { Some(id) } else { None }
}

/// Reads an MMAP or MMAP2 record. Only MMAP2 states protection, flags, and the file's identity or build ID.
fn mmap<'data>(raw: &RawRecord<'data>, body: &mut Cursor<'data>) -> Result<Mmap<'data>> {
    let (pid, tid) = (pid(body)?, tid(body)?);
    let addr = Addr(body.u64("address")?);
    let (len, pgoff) = (body.u64("length")?, body.u64("page offset")?);
    let (mut build_id, mut file, mut prot, mut flags) = (None, None, None, None);
    if raw.kind == kind::MMAP2 {
        // A second cursor over the same 24 bytes, which hold either device and inode or the build ID.
        let mut device = *body;
        let identity = body.bytes(24, "device, inode and generation")?;
        let (major, minor) = (device.u32("major")?, device.u32("minor")?);
        let says_build_id = raw.misc & abi::PERF_RECORD_MISC_MMAP_BUILD_ID != 0;
        // `stated_build_id` returns `None` if the bytes don't have the form of a build ID.
        match stated_build_id(identity).filter(|_| says_build_id) {
            // Linux may set the bit by mistake (see `stated_build_id`), so a short build ID could also be a device
            // number: its length would be the major number, its first bytes the minor one. Only believe it if these
            // bytes are too large for a minor number.
            Some(id) if id.len() >= 16 || minor > MAX_MINOR => build_id = BuildId::new(id),
            // The build ID is empty, and nothing else identifies the file.
            Some([]) => {}
            _ => file = Some(FileId { major, minor, inode: device.u64("inode")? }).filter(|file| file.inode != 0),
        }
        prot = Some(body.u32("protection")?);
        flags = Some(body.u32("flags")?);
    }
    Ok(Mmap {
        pid,
        tid,
        addr,
        len,
        pgoff,
        path: text(body),
        build_id,
        file,
        prot,
        flags,
        cpumode: cpumode(raw.misc),
        data: raw.misc & abi::PERF_RECORD_MISC_MMAP_DATA != 0,
    })
}

fn comm<'data>(raw: &RawRecord<'data>, body: &mut Cursor<'data>) -> Result<Comm<'data>> {
    let (pid, tid) = (pid(body)?, tid(body)?);
    Ok(Comm { pid, tid, name: text(body), exec: raw.misc & abi::PERF_RECORD_MISC_COMM_EXEC != 0 })
}

fn task(body: &mut Cursor<'_>) -> Result<Task> {
    let (pid, parent) = (pid(body)?, Pid(body.u32("parent pid")?.cast_signed()));
    let (tid, parent_tid) = (tid(body)?, Tid(body.u32("parent tid")?.cast_signed()));
    Ok(Task { pid, parent, tid, parent_tid, time: Nanos(body.u64("time")?) })
}

fn namespaces<'data>(body: &mut Cursor<'data>) -> Result<Namespaces<'data>> {
    let (pid, tid) = (pid(body)?, tid(body)?);
    let count = body.u64("number of namespaces")?;
    Ok(Namespaces { pid, tid, entries: body.bytes(count.saturating_mul(16), "namespaces")? })
}

fn ksymbol<'data>(body: &mut Cursor<'data>) -> Result<Ksymbol<'data>> {
    let addr = Addr(body.u64("address")?);
    let len = body.u32("length")?;
    let kind = body.u16("kind")?;
    let flags = body.u16("flags")?;
    Ok(Ksymbol { addr, len, kind, unregister: flags & 1 != 0, name: text(body) })
}

fn bpf_event(body: &mut Cursor<'_>) -> Result<BpfEvent> {
    let kind = body.u16("type")?;
    body.u16("flags")?;
    let id = body.u32("id")?;
    let mut tag = [0; 8];
    tag.copy_from_slice(body.bytes(8, "tag")?);
    Ok(BpfEvent { kind, id, tag })
}

/// Reads a TIME_CONV record. Older recorders wrote a short form, which ends after `time_zero`. It lacks the flags that
/// say whether the conversion is valid, and is taken for valid (`cap_zero`). The long form has 18 more bytes.
fn time_conv(body: &mut Cursor<'_>) -> Result<TscConversion> {
    let (shift, mult, zero) = (body.u64("time_shift")?, body.u64("time_mult")?, body.u64("time_zero")?);
    if body.left() < 18 {
        return Ok(TscConversion { shift, mult, zero, cycles: 0, mask: 0, cap_zero: true, cap_short: false });
    }
    let (cycles, mask) = (body.u64("time_cycles")?, body.u64("time_mask")?);
    let (cap_zero, cap_short) = (body.u8("cap_user_time_zero")? != 0, body.u8("cap_user_time_short")? != 0);
    Ok(TscConversion { shift, mult, zero, cycles, mask, cap_zero, cap_short })
}

fn build_id<'data>(raw: &RawRecord<'data>, body: &mut Cursor<'data>) -> Result<BuildIdRecord<'data>> {
    let pid = pid(body)?;
    let bytes = body.bytes(24, "build ID")?;
    // The build ID has 20 bytes of room. If this bit is set, the next byte is the build ID's size. Older recorders
    // don't set the bit; all their build IDs have 20 bytes.
    let states_size = raw.misc & abi::PERF_RECORD_MISC_BUILD_ID_SIZE != 0;
    let size = if states_size { usize::from(bytes[20]).min(20) } else { 20 };
    Ok(BuildIdRecord { pid, build_id: BuildId::new(&bytes[..size]), path: text(body), cpumode: cpumode(raw.misc) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::perf_data::Records;

    fn parse(kind: u32, misc: u16, words: &[u32], tail: &[u8]) -> Result<String> {
        let mut bytes = kind.to_be_bytes().to_vec();
        bytes.extend(misc.to_be_bytes());
        bytes.extend((8 + words.len() as u16 * 4 + tail.len() as u16).to_be_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend(tail);
        let raw = Records::new(&bytes, 0, Endian::Big).next().unwrap();
        Record::parse(&raw).map(|record| format!("{record:?}"))
    }

    #[test]
    fn mappings_with_and_without_a_build_id() {
        let words = [7, 8, 0, 0x1000, 0, 0x2000, 0, 0x3000];
        let plain = parse(kind::MMAP, 2, &words, b"/bin/a\0\0").unwrap();
        assert!(plain.contains("addr: Addr(4096), len: 8192, pgoff: 12288, path: [47, 98"), "{plain}");
        let mut words = words.to_vec();
        words.extend([0x0300_0000, 0xaabb_cc00, 0, 0, 0, 0, 5, 2]);
        let mmap2 = parse(kind::MMAP2, 2 | 1 << 14, &words, b"/bin/a\0\0").unwrap();
        assert!(mmap2.contains("len: 3") && mmap2.contains("bytes: [170, 187, 204, 0"), "{mmap2}");
        assert!(mmap2.contains("prot: Some(5), flags: Some(2), cpumode: User"), "{mmap2}");
        let short = parse(kind::MMAP2, 2, &words[..9], b"").unwrap_err().to_string();
        assert_eq!(short, "at byte 0x28: device, inode and generation needs 24 bytes, but only 4 are left");
    }

    /// Linux sets the bit for a build ID also in records that have none.
    #[test]
    fn device_and_inode_are_not_taken_for_a_build_id() {
        // The fields are in the byte order of the machine, and the size of a build ID is their first byte.
        fn parsed(endian: Endian, identity: &[u8]) -> (Option<BuildId>, Option<FileId>) {
            let mut body = ByteWriter::append_to(Vec::new(), endian);
            body.u32(7).u32(7).u64(0x1000).u64(0x2000).u64(0).bytes(identity).u32(5).u32(2).bytes(b"/bin/a\0\0");
            let misc = 2 | abi::PERF_RECORD_MISC_MMAP_BUILD_ID;
            let bytes = super::super::walk::record(kind::MMAP2, misc, &body.finish(), endian).unwrap();
            let raw = Records::new(&bytes, 0, endian).next().unwrap();
            let Record::Mmap(mmap) = Record::parse(&raw).unwrap() else { panic!("no mapping") };
            (mmap.build_id, mmap.file)
        }
        for endian in [Endian::Little, Endian::Big] {
            for (major, minor, inode, generation) in [
                (254, 0, 73_486, 0),
                (254, 1, 73_486, 0x1234_5678),
                (259, 3, 1 << 33, 9),
                (8, 1, 262_145, 0xabcd_ef01),
                (8, 0x000f_ffff, 262_145, 0),
                (8, 17, 1 << 40, 0),
                (7, 3, 12, 0),
                (0, 31, 260, 1),
                (20, 0, 5, 0),
            ] {
                let mut identity = ByteWriter::append_to(Vec::new(), endian);
                identity.u32(major).u32(minor).u64(inode).u64(generation);
                let identity = identity.finish();
                // A size is only where a little-endian machine has the low byte of the major number.
                if major == 20 && endian == Endian::Little {
                    // No disk has this number, so this would be a build ID.
                    assert!(parsed(endian, &identity).0.is_some());
                    continue;
                }
                assert_eq!(parsed(endian, &identity), (None, Some(FileId { major, minor, inode })), "{endian:?}");
            }
            // Build IDs of all lengths that linkers make, and a file without one.
            for id in [&b"0123456789abcdefghij"[..], b"0123456789abcdef", b"01234567", &[0xaa, 0xbb, 0xcc, 0xdd], &[]] {
                let mut identity = vec![id.len() as u8, 0, 0, 0];
                identity.extend(id);
                identity.resize(24, 0);
                assert_eq!(parsed(endian, &identity), (BuildId::new(id), None), "{endian:?}");
            }
        }
    }

    #[test]
    fn tasks_names_and_clocks() {
        let fork = parse(kind::FORK, 0, &[2, 1, 2, 1, 0, 99], b"").unwrap();
        assert!(fork.contains("pid: Pid(2), parent: Pid(1)") && fork.contains("time: Nanos(99)"), "{fork}");
        let exec = parse(kind::COMM, 1 << 13, &[2, 2], b"node\0\0\0\0").unwrap();
        assert!(exec.contains("exec: true"), "{exec}");
        let conv = parse(kind::TIME_CONV, 0, &[0, 10, 0, 11, 0, 12], b"").unwrap();
        assert!(conv.contains("shift: 10, mult: 11, zero: 12, cycles: 0, mask: 0, cap_zero: true"), "{conv}");
        assert!(parse(kind::NAMESPACES, 0, &[1, 1, u32::MAX, 7], b"").is_err());
    }
}
