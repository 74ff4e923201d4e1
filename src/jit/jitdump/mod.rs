//! Reads jitdump, a runtime's log of the code that it generated: times, machine code, lines and unwinding information.
//!
//! ```text
//! header (40 bytes, or as long as it says), then records:
//! id u32 · total_size u32 (these 16 bytes included) · timestamp u64 · payload
//! ```
//!
//! The specification leaves the following open, and producers differ:
//! * All fields are in the producer's byte order, which the magic number reveals.
//! * Good records may follow damage, so a nonsensical length doesn't end the walk if later records can be found.
//! * A record of exactly 16 bytes is legal. CLOSE is only a marker: records may follow.
//! * `code_index` repeats, so a load is identified by its position in the file.
//! * The code is the last `code_size` bytes of a LOAD.
//! * If a runtime that buffers its output (V8) is killed, its dump ends in a LOAD with an intact name and incomplete
//!   code.
//! * In UNWINDING_INFO `.eh_frame` comes first and `.eh_frame_hdr` last, as V8 and perf write it.
//!
//! See `tools/perf/Documentation/jitdump-specification.txt` and `tools/perf/util/jitdump.h` of Linux.

mod lines;
mod pieces;

pub use lines::decode as decode_lines;
pub use pieces::Piece;

use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, RefusalReason, Result};
use crate::model::code::Unwind;

/// The message for an empty file, which doesn't even have a header.
const EMPTY: &str = "the file is empty: the process was killed or called _exit before it flushed its buffer, or could \
                     not map the file (noexec mount)";

/// Length in bytes of the shortest header.
const HEADER: usize = 40;

/// Length in bytes of a record without its payload.
const PREFIX: u64 = 16;

/// `JITDUMP_FLAGS_ARCH_TIMESTAMP`: times are values of the CPU's time-stamp counter.
const ARCH_TIMESTAMP: u64 = 1;

/// The file's header (`struct jitheader`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The producer's byte order.
    pub endian: Endian,
    /// `version`: 1 in all known producers; 2 in a draft that differs in nothing else.
    pub version: u32,
    /// `elf_mach`: the code's ELF `e_machine`. CPython writes 0.
    pub machine: u16,
    /// `pid`, as seen in the process's own PID namespace.
    pub pid: i32,
    /// `timestamp`: when the file was created. Only some producers use the clock of the records here.
    pub timestamp: u64,
    /// `flags`: if bit 0 is set, times are values of the CPU's time-stamp counter.
    pub flags: u64,
}

impl Header {
    /// True if times are values of the CPU's time-stamp counter instead of nanoseconds.
    pub fn has_arch_timestamps(&self) -> bool {
        self.flags & ARCH_TIMESTAMP != 0
    }

    /// The flags that the specification doesn't define.
    pub fn unknown_flags(&self) -> u64 {
        self.flags & !ARCH_TIMESTAMP
    }
}

/// A jitdump that is completely in memory.
#[derive(Debug, Clone, Copy)]
pub struct JitDump<'data> {
    pub header: Header,
    records: Cursor<'data>,
}

/// True if a file that starts with `head` is a jitdump, in either byte order.
pub fn sniff(head: &[u8]) -> bool {
    matches!(head, [b'D', b'T', b'i', b'J', ..] | [b'J', b'i', b'T', b'D', ..])
}

impl<'data> JitDump<'data> {
    /// Reads the header. Records are only read when they are asked for. Fails if the file is empty or not a jitdump, or
    /// if its header is incomplete or damaged.
    pub fn parse(bytes: &'data [u8]) -> Result<Self> {
        let endian = match bytes.first_chunk() {
            Some(b"DTiJ") => Endian::Little,
            Some(b"JiTD") => Endian::Big,
            // The message doesn't quote the file's first bytes: they may be confidential.
            Some(_) => {
                return Err(Error::new("the file is not a jitdump: it does not start with \"DTiJ\"").at_offset(0));
            }
            None if bytes.is_empty() => return Err(Error::new(EMPTY).with_refusal(RefusalReason::Empty).at_offset(0)),
            None => {
                return Err(Error::new(format!(
                    "the file is not a jitdump: it has {} bytes, and the header alone has 40",
                    bytes.len()
                ))
                .at_offset(0));
            }
        };
        let mut cursor = Cursor::new(bytes, 0, endian);
        cursor.bytes(4, "magic")?;
        let version = cursor.u32("version")?;
        let total_size = cursor.u32("header total_size")?;
        // `elf_mach` has 32 bits, but values of ELF's `e_machine` have 16.
        let machine = cursor.u32("elf_mach")? as u16;
        cursor.u32("pad1")?;
        let pid = cursor.u32("pid")? as i32;
        let timestamp = cursor.u64("timestamp")?;
        let flags = cursor.u64("flags")?;
        if (total_size as usize) < HEADER {
            return Err(Error::new(format!("header total_size is {total_size}, less than {HEADER}")).at_offset(8));
        }
        cursor.bytes(u64::from(total_size) - HEADER as u64, "header (total_size)")?;
        Ok(Self { header: Header { endian, version, machine, pid, timestamp, flags }, records: cursor })
    }

    /// The records in file order. After a record with a nonsensical length, the walk continues at the next position
    /// where two plausible records follow each other. If there is no such position, it ends.
    pub fn records(&self) -> Records<'data> {
        Records { cursor: self.records, last_time: 0, is_cut: false }
    }
}

/// A record and its position in the file.
#[derive(Debug, Clone, Copy)]
pub struct Record<'data> {
    /// Offset in the file.
    pub offset: u64,
    /// When the record was logged: nanoseconds, or ticks if [`Header::has_arch_timestamps`].
    pub timestamp: u64,
    /// The parsed payload.
    pub body: Body<'data>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy)]
pub enum Body<'data> {
    /// A JIT_CODE_LOAD record: code was created.
    Load(Load<'data>),
    /// A JIT_CODE_MOVE record: code moved to another address.
    Move(Move),
    /// A JIT_CODE_DEBUG_INFO record: source lines of code that is loaded next.
    DebugInfo(DebugInfo<'data>),
    /// A JIT_CODE_UNWINDING_INFO record: unwinding information of the code that is loaded next. `None` if its
    /// `.eh_frame` is empty.
    Unwinding(Option<Unwind<'data>>),
    /// A JIT_CODE_CLOSE record, which marks the end of the dump but need not be its last record.
    Close,
    /// An unknown record type, such as the proposed inlining information (5).
    Other(u32),
}

/// The payload of a JIT_CODE_LOAD record (`struct jr_code_load`).
#[derive(Debug, Clone, Copy)]
pub struct Load<'data> {
    /// `pid`, as seen in the process's own PID namespace.
    pub pid: i32,
    /// `tid`. Some producers write half of a pthread handle.
    pub tid: i32,
    /// `code_addr`: where the code was when it was logged.
    pub addr: u64,
    /// `code_index`, to which MOVE records refer. Several loads may have the same number.
    pub index: u64,
    pub name: &'data [u8],
    /// `code_size`: length of the code in bytes.
    pub size: u64,
    /// The code, `size` bytes; `None` if the dump ends before the end of the code.
    pub code: Option<&'data [u8]>,
}

/// The payload of a JIT_CODE_MOVE record (`struct jr_code_move`).
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// `pid`, as seen in the process's own PID namespace.
    pub pid: i32,
    /// `tid`, the thread that moved the code.
    pub tid: i32,
    /// `old_code_addr`: the address of the code before the move.
    pub from: u64,
    /// `new_code_addr`: the address of the code after the move.
    pub to: u64,
    /// `code_index` of the load whose code moved: the latest load with this number.
    pub index: u64,
}

/// The payload of a JIT_CODE_DEBUG_INFO record (`struct jr_code_debug_info`). Its entries aren't decoded yet; see
/// [`decode_lines`].
#[derive(Debug, Clone, Copy)]
pub struct DebugInfo<'data> {
    /// `code_addr`: the address of the code that the entries describe.
    pub addr: u64,
    /// `nr_entry`: the number of entries that the record claims to have.
    pub count: u64,
    /// Address of the first entry; `None` if there are no entries.
    pub first_addr: Option<u64>,
    /// The bytes of the entries, not yet decoded.
    pub entries: &'data [u8],
}

/// Iterator over the records of a dump.
#[derive(Debug, Clone)]
pub struct Records<'data> {
    cursor: Cursor<'data>,
    /// Timestamp of the last good record; 0 before the first one.
    last_time: u64,
    /// True if a record couldn't be read and no readable one was found after it. The walk then ends.
    is_cut: bool,
}

impl<'data> Iterator for Records<'data> {
    type Item = Result<Record<'data>>;

    /// The next record, or an error for a damaged one, after which the walk continues at the next readable record.
    /// `None` at the end of the dump, and after a damaged record that no readable one follows. A load that is cut off
    /// at the end of the dump is returned without its code.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_cut || self.cursor.is_empty() {
            return None;
        }
        let start = self.cursor;
        let offset = start.offset();
        let Prefix { id, timestamp, mut payload } = match self.read_prefix() {
            Ok(prefix) => prefix,
            Err(torn) => {
                self.is_cut = !self.skip_damage(start);
                if self.is_cut
                    && let Some(load) = read_cut_load(start)
                {
                    return Some(Ok(load));
                }
                return Some(Err(torn.into_error(start, self.is_cut)));
            }
        };
        match read_body(id, &mut payload) {
            Ok(body) => {
                self.last_time = timestamp;
                Some(Ok(Record { offset, timestamp, body }))
            }
            // Only the payload is damaged. Where the record ends is known, so the walk continues there.
            Err(error) => Some(Err(error.at_offset(offset))),
        }
    }
}

impl<'data> Records<'data> {
    /// True if the walk ended before the end of the file, at an unreadable record.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Searches for the next good record after the unreadable one at `damaged`: the next position where two plausible
    /// records follow each other, or one and then the end. Moves there. Returns false if there is no such position.
    fn skip_damage(&mut self, damaged: Cursor<'data>) -> bool {
        let mut next = damaged;
        while next.bytes(1, "").is_ok() {
            skip_zeros(&mut next);
            if let Some(after) = self.skip_plausible(next)
                && (after.is_empty() || self.skip_plausible(after).is_some())
            {
                self.cursor = next;
                return true;
            }
        }
        false
    }

    /// Returns the position after the record at `position`, or `None` if the bytes there don't look like a record. A
    /// plausible record has a known type, and a length that suits the type and the file. Its time is not before that of
    /// the last good record, and less than three days after it.
    fn skip_plausible(&self, position: Cursor<'data>) -> Option<Cursor<'data>> {
        /// In nanoseconds. Time-stamp counters run at about one tick per nanosecond, so this suits ticks, too.
        const THREE_DAYS: u64 = 3 * 86_400_000_000_000;
        let mut cursor = position;
        let id = cursor.u32("id").ok()?;
        let total_size = u64::from(cursor.u32("total_size").ok()?);
        let elapsed = cursor.u64("timestamp").ok()?.checked_sub(self.last_time)?;
        // Each type of record has a minimum or an exact size: load, move, debug info, close, unwinding info.
        let has_fitting_size = match id {
            0 => total_size > 56,
            1 => total_size == 64,
            2 => total_size >= 32,
            3 => total_size == PREFIX,
            4 => total_size >= 40,
            _ => false,
        };
        // Before the first good record, `last_time` is 0, and there is no time to compare with.
        if !has_fitting_size || (self.last_time != 0 && elapsed >= THREE_DAYS) {
            return None;
        }
        let payload = total_size.checked_sub(PREFIX)?;
        // `bytes` would check this, too, but would build an error, which takes time. A search calls this function at
        // every byte, and nobody would read these errors.
        if payload > cursor.left() as u64 {
            return None;
        }
        cursor.bytes(payload, "record").ok()?;
        Some(cursor)
    }

    /// Reads the start of a record (type, size and timestamp), and moves to the end of the record.
    fn read_prefix(&mut self) -> Result<Prefix<'data>, Torn> {
        let id = self.cursor.u32("record id").map_err(|_| Torn::Prefix)?;
        let total_size = u64::from(self.cursor.u32("record total_size").map_err(|_| Torn::Prefix)?);
        let timestamp = self.cursor.u64("record timestamp").map_err(|_| Torn::Prefix)?;
        let Some(payload) = total_size.checked_sub(PREFIX) else { return Err(Torn::Short { id, total_size }) };
        let payload = self.cursor.part(payload, "record").map_err(|_| Torn::Long { id, total_size })?;
        Ok(Prefix { id, timestamp, payload })
    }
}

/// The start of a record, which all kinds have in common.
struct Prefix<'data> {
    id: u32,
    timestamp: u64,
    payload: Cursor<'data>,
}

/// Skips zeros, such as a hole in the file, if there are at least eight. If other bytes follow, the last seven zeros
/// stay: a record may begin in them, because a big-endian record of type 0 (JIT_CODE_LOAD) begins with four zeros for
/// its type and up to three for its size.
fn skip_zeros(cursor: &mut Cursor<'_>) {
    /// Number of bytes compared at once.
    const STEP: usize = 256;
    let bytes = cursor.rest();
    if !bytes.starts_with(&[0; 8]) {
        return;
    }
    let in_whole_chunks = bytes.chunks_exact(STEP).take_while(|chunk| **chunk == [0; STEP]).count() * STEP;
    let zeros = in_whole_chunks + bytes[in_whole_chunks..].iter().take_while(|byte| **byte == 0).count();
    let skipped = if zeros == bytes.len() { zeros } else { zeros - 7 };
    let _ = cursor.bytes(skipped as u64, "");
}

/// Why a record cannot be read.
enum Torn {
    /// The file ends inside the record's prefix.
    Prefix,
    /// The record claims to be shorter than its prefix.
    Short { id: u32, total_size: u64 },
    /// The record claims to extend beyond the end of the file.
    Long { id: u32, total_size: u64 },
}

impl Torn {
    /// Describes the problem. `at_end` is true if no later record was found, so that the dump ends with this record.
    fn into_error(self, start: Cursor<'_>, at_end: bool) -> Error {
        match self {
            Self::Prefix => {
                let left = start.left();
                start.error(format!(
                    "only {left} bytes of a record's {PREFIX}-byte prefix are left: the dump is truncated here"
                ))
            }
            Self::Short { id, total_size } => start.error(format!(
                "{} total_size is {total_size}, less than its {PREFIX}-byte prefix: the record is damaged",
                record_name(id)
            )),
            Self::Long { id, total_size } => {
                let left = start.left();
                let what = if at_end { "the dump is truncated here" } else { "the record is damaged" };
                start.error(format!(
                    "{} total_size is {total_size}, but only {left} bytes are left: {what}",
                    record_name(id)
                ))
            }
        }
    }
}

fn record_name(id: u32) -> String {
    let names = ["JIT_CODE_LOAD", "JIT_CODE_MOVE", "JIT_CODE_DEBUG_INFO", "JIT_CODE_CLOSE", "JIT_CODE_UNWINDING_INFO"];
    names.get(id as usize).map_or_else(|| format!("record of type {id}"), |name| (*name).to_owned())
}

/// Reads the part of a record that depends on its type.
fn read_body<'data>(id: u32, payload: &mut Cursor<'data>) -> Result<Body<'data>> {
    Ok(match id {
        0 => Body::Load(read_load(payload)?),
        1 => Body::Move(read_move(payload)?),
        2 => Body::DebugInfo(read_debug_info(payload)?),
        3 => Body::Close,
        4 => Body::Unwinding(read_unwinding(payload)?),
        id => Body::Other(id),
    })
}

/// Reads the last record of a dump, at `start`, if it is a LOAD whose code is cut off by the end of the file. The
/// result has no code. `None` if it is another record, or if not even its name is complete.
fn read_cut_load(start: Cursor<'_>) -> Option<Record<'_>> {
    let mut cursor = start;
    let id = cursor.u32("record id").ok()?;
    let total_size = u64::from(cursor.u32("record total_size").ok()?);
    let timestamp = cursor.u64("record timestamp").ok()?;
    // Only a JIT_CODE_LOAD record (type 0) ends with code, so only such a record is of use without its end.
    if id != 0 {
        return None;
    }
    let load = read_load_header(&mut cursor).ok()?;
    // Header, name and code must fit into the length that the record claims; otherwise the record is damaged.
    let len_before_code = cursor.offset() - start.offset();
    if len_before_code.checked_add(load.size)? > total_size {
        return None;
    }
    Some(Record { offset: start.offset(), timestamp, body: Body::Load(load) })
}

/// Reads a JIT_CODE_LOAD record up to the name, after which the code follows. The result has no code yet.
fn read_load_header<'data>(payload: &mut Cursor<'data>) -> Result<Load<'data>> {
    let pid = payload.u32("pid")? as i32;
    let tid = payload.u32("tid")? as i32;
    payload.u64("vma")?;
    let addr = payload.u64("code_addr")?;
    let size = payload.u64("code_size")?;
    let index = payload.u64("code_index")?;
    let name = payload.cstr("function name")?;
    if addr.checked_add(size).is_none() {
        return Err(payload.error(format!(
            "JIT_CODE_LOAD code_addr {addr:#x} and code_size {size:#x} extend beyond the address space"
        )));
    }
    Ok(Load { pid, tid, addr, index, name, size, code: None })
}

/// Reads a JIT_CODE_LOAD record with its code. Fails if the record is too short for the code.
fn read_load<'data>(payload: &mut Cursor<'data>) -> Result<Load<'data>> {
    let load = read_load_header(payload)?;
    let size = load.size;
    // The record ends with the code. There may be padding between the name and the code.
    let padding = (payload.left() as u64).checked_sub(size).ok_or_else(|| {
        payload.error(format!("JIT_CODE_LOAD code_size is {size}, but {} bytes follow the name", payload.left()))
    })?;
    payload.bytes(padding, "padding")?;
    let code = payload.bytes(size, "code")?;
    Ok(Load { code: Some(code), ..load })
}

/// Reads a JIT_CODE_MOVE record. The size isn't kept, because it is that of the load that `index` refers to.
fn read_move(payload: &mut Cursor<'_>) -> Result<Move> {
    let pid = payload.u32("pid")? as i32;
    let tid = payload.u32("tid")? as i32;
    payload.u64("vma")?;
    let from = payload.u64("old_code_addr")?;
    let to = payload.u64("new_code_addr")?;
    payload.u64("code_size")?;
    let index = payload.u64("code_index")?;
    Ok(Move { pid, tid, from, to, index })
}

fn read_debug_info<'data>(payload: &mut Cursor<'data>) -> Result<DebugInfo<'data>> {
    let addr = payload.u64("code_addr")?;
    let count = payload.u64("nr_entry")?;
    let entries = payload.rest();
    let first_addr = if count == 0 { None } else { Some(payload.u64("entry addr")?) };
    Ok(DebugInfo { addr, count, first_addr, entries })
}

/// Reads a JIT_CODE_UNWINDING_INFO record. `None` if its `.eh_frame` is empty.
fn read_unwinding<'data>(payload: &mut Cursor<'data>) -> Result<Option<Unwind<'data>>> {
    let size = payload.u64("unwinding_size")?;
    let header_size = payload.u64("eh_frame_hdr_size")?;
    let mapped_size = payload.u64("mapped_size")?;
    let mut data = payload.part(size, "unwinding data (unwinding_size)")?;
    // `.eh_frame` comes first, and `.eh_frame_hdr` after it.
    let Some(eh_frame_size) = size.checked_sub(header_size) else {
        return Err(data.error(format!("eh_frame_hdr_size is {header_size}, more than unwinding_size, {size}")));
    };
    let eh_frame = data.bytes(eh_frame_size, ".eh_frame")?;
    let eh_frame_hdr = data.rest();
    Ok((!eh_frame.is_empty()).then_some(Unwind { eh_frame, eh_frame_hdr, mapped_size }))
}

#[cfg(test)]
mod tests;
