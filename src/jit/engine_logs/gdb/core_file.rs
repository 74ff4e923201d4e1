//! Reads an ELF core dump: memory, process and mapped files.

use super::list::Memory;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result};
use crate::jit::engine_logs::code_log::MappedFile;
use object::elf;
use std::ops::Range;

/// If `e_phnum` has this value, the number of program headers is in `sh_info` of the first section header instead.
const TOO_MANY_TO_COUNT: u64 = 0xffff;

const PROGRAM_HEADER: usize = 56;

/// If a core dump doesn't list which memory is mapped from files, this many bytes of its writable memory are searched
/// for descriptors of GDB's JIT interface.
const UNLISTED: u64 = 256 << 20;

/// A core dump of a 64-bit process.
#[derive(Debug)]
pub(super) struct Core<'data> {
    bytes: &'data [u8],
    endian: Endian,
    /// The machine of the process (ELF's `e_machine`).
    pub(super) machine: u16,
    /// The memory in the core, sorted by address.
    segments: Vec<CoreSegment>,
    /// The process ID in the process's own PID namespace; `None` if the core dump has no such note.
    pub(super) pid: Option<i32>,
    /// The mapped files, by ascending address.
    pub(super) files: Vec<MappedFile>,
    /// True if the file ends before some of the memory that it should contain.
    pub(super) is_cut: bool,
}

/// A range of memory that the file contains.
#[derive(Debug, Clone)]
struct CoreSegment {
    addr: Range<u64>,
    offset: usize,
    is_writable: bool,
}

/// True if a file that starts with `head` is a core dump.
pub(super) fn is_core(head: &[u8]) -> bool {
    let is_little_endian = head.get(5) == Some(&elf::ELFDATA2LSB.0);
    let et_core = if is_little_endian { [4, 0] } else { [0, 4] };
    head.starts_with(&elf::ELFMAG) && head.get(16..18) == Some(&et_core)
}

impl<'data> Core<'data> {
    /// Reads headers and notes of a core dump.
    pub(super) fn parse(bytes: &'data [u8]) -> Result<Self> {
        if !is_core(bytes) {
            return Err(Error::new("is not a core dump"));
        }
        if bytes.get(4) != Some(&elf::ELFCLASS64.0) {
            return Err(Error::new("is a core dump of a 32-bit process, which jitgraft does not read"));
        }
        let endian = if bytes[5] == elf::ELFDATA2LSB.0 { Endian::Little } else { Endian::Big };
        // The header is read from `e_machine` on: `e_ident` has 16 bytes, and `e_type` has 2. `bytes` skips fields that
        // aren't needed.
        let mut header = Cursor::new(&bytes[18..], 18, endian);
        let machine = header.u16("e_machine")?;
        header.bytes(12, "e_version and e_entry")?;
        let (headers, sections) = (header.u64("e_phoff")?, header.u64("e_shoff")?);
        header.bytes(8, "e_flags, e_ehsize and e_phentsize")?;
        let mut count = u64::from(header.u16("e_phnum")?);
        // If there are more program headers than the field can count, the first section header tells how many.
        if count == TOO_MANY_TO_COUNT {
            count = header_count_of_section(bytes, sections, endian).unwrap_or(count);
        }
        let (segments, pid, files) = (Vec::new(), None, Vec::new());
        let mut core = Self { bytes, endian, machine, segments, pid, files, is_cut: false };
        core.read_program_headers(headers, count)?;
        // From here on, segments and mapped files are searched by address.
        core.segments.sort_by_key(|segment| segment.addr.start);
        core.files.sort_by_key(|file| file.start);
        Ok(core)
    }

    /// Reads the program headers, as far as the file contains them.
    fn read_program_headers(&mut self, offset: u64, count: u64) -> Result<()> {
        let Some(bytes) = usize::try_from(offset).ok().and_then(|start| self.bytes.get(start..)) else {
            return Err(Error::new("the program headers are beyond the end of the file").at_offset(32));
        };
        let mut headers = Cursor::new(bytes, offset, self.endian);
        let available = (headers.left() / PROGRAM_HEADER) as u64;
        self.is_cut |= count > available;
        for _ in 0..count.min(available) {
            self.read_program_header(&mut headers)?;
        }
        Ok(())
    }

    /// Reads one program header: a segment of memory, or notes.
    fn read_program_header(&mut self, cursor: &mut Cursor<'data>) -> Result<()> {
        let (kind, flags) = (cursor.u32("p_type")?, cursor.u32("p_flags")?);
        let (offset, addr) = (cursor.u64("p_offset")?, cursor.u64("p_vaddr")?);
        cursor.bytes(8, "p_paddr")?;
        let size = cursor.u64("p_filesz")?;
        cursor.bytes(16, "p_memsz and p_align")?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let available = size.min((self.bytes.len() - start) as u64);
        self.is_cut |= available < size;
        match elf::ProgramType(kind) {
            elf::PT_LOAD if available > 0 => {
                // A segment that would extend beyond the address space is damaged, and left out.
                let Some(end) = addr.checked_add(available) else { return Ok(()) };
                let is_writable = flags & elf::PF_W.0 != 0;
                self.segments.push(CoreSegment { addr: addr..end, offset: start, is_writable });
            }
            elf::PT_NOTE => {
                let notes = &self.bytes[start..start + available as usize];
                // If notes are damaged, those before the damage are used.
                let _ = self.read_notes(Cursor::new(notes, offset, self.endian));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads notes: the process ID, and the mapped files.
    fn read_notes(&mut self, mut notes: Cursor<'data>) -> Result<()> {
        while !notes.is_empty() {
            let (name_len, len, kind) = (notes.u32("n_namesz")?, notes.u32("n_descsz")?, notes.u32("n_type")?);
            notes.bytes(u64::from(name_len).next_multiple_of(4), "n_name")?;
            let mut description = notes.part(u64::from(len), "n_desc")?;
            // The last note need not be padded.
            notes.bytes(u64::from(len.next_multiple_of(4) - len).min(notes.left() as u64), "padding")?;
            match elf::NoteType(kind) {
                elf::NT_PRPSINFO => self.pid = parse_pid(description),
                elf::NT_FILE => self.read_mapped_files(&mut description)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses an NT_FILE note: the number of mapped files and the page size; then, for each file, start and end of the
    /// mapping and the offset in the file (in pages); then all names.
    fn read_mapped_files(&mut self, note: &mut Cursor<'data>) -> Result<()> {
        let (count, page) = (note.u64("count")?, note.u64("page_size")?);
        let mut ranges = note.part(count.saturating_mul(24), "mapped files")?;
        while !ranges.is_empty() {
            let (start, end) = (ranges.u64("start")?, ranges.u64("end")?);
            let offset = ranges.u64("file_ofs")?.saturating_mul(page);
            let path = note.cstr("name of a mapped file")?.to_vec();
            self.files.push(MappedFile { start, end, offset, path });
        }
        Ok(())
    }

    /// The address ranges to search for the descriptors of GDB's JIT interface (`__jit_debug_descriptor`). A descriptor
    /// is initialized data of a program or library, so it is in writable memory that is mapped from a file. If the core
    /// dump doesn't list which memory is mapped from files, returns the first [`UNLISTED`] bytes of writable memory of
    /// any kind.
    pub(super) fn ranges_to_search(&self) -> Vec<Range<u64>> {
        let writable = self.segments.iter().filter(|segment| segment.is_writable);
        let mut ranges = Vec::new();
        if !self.files.is_empty() {
            for segment in writable {
                if MappedFile::find(&self.files, segment.addr.start).is_some() {
                    ranges.push(segment.addr.clone());
                }
            }
            return ranges;
        }
        let mut bytes_left = UNLISTED;
        for segment in writable {
            let len = bytes_left.min(segment.addr.end - segment.addr.start);
            bytes_left -= len;
            if len > 0 {
                ranges.push(segment.addr.start..segment.addr.start + len);
            }
        }
        ranges
    }

    /// The range of the core dump with the `size` bytes of memory from `addr` on. `None` if the core dump doesn't
    /// contain all of them, or doesn't contain them in one piece.
    pub(super) fn range(&self, addr: u64, size: u64) -> Option<Range<usize>> {
        let end = addr.checked_add(size)?;
        let next_index = self.segments.partition_point(|segment| segment.addr.start <= addr);
        let first = &self.segments[next_index.checked_sub(1)?];
        let start = first.offset.checked_add(usize::try_from(addr - first.addr.start).ok()?)?;
        // Memory with different access rights is a segment of its own. So the bytes may go on in the following
        // segments, if these are adjacent both in memory and in the file.
        let mut segment_end = first.addr.end;
        let mut file_end = first.file_end()?;
        for segment in &self.segments[next_index..] {
            if segment_end >= end || segment.addr.start != segment_end || segment.offset != file_end {
                break;
            }
            segment_end = segment.addr.end;
            file_end = segment.file_end()?;
        }
        // `first` begins before `addr`, but may also end before it: then `addr` is in a gap between two segments.
        let has_all = addr < segment_end && end <= segment_end;
        if has_all { Some(start..start + size as usize) } else { None }
    }
}

impl CoreSegment {
    /// File offset of the segment's end.
    fn file_end(&self) -> Option<usize> {
        self.offset.checked_add(usize::try_from(self.addr.end - self.addr.start).ok()?)
    }
}

impl Memory for Core<'_> {
    fn endian(&self) -> Endian {
        self.endian
    }

    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        let bytes = self.range(addr, into.len() as u64).and_then(|range| self.bytes.get(range));
        let Some(bytes) = bytes else { return false };
        into.copy_from_slice(bytes);
        true
    }
}

/// The number of program headers according to the first section header, which is at file offset `sections`.
fn header_count_of_section(bytes: &[u8], sections: u64, endian: Endian) -> Option<u64> {
    let first = bytes.get(usize::try_from(sections).ok()?..)?;
    let mut header = Cursor::new(first, sections, endian);
    header.bytes(44, "sh_name to sh_link").ok()?;
    header.u32("sh_info").ok().map(u64::from)
}

/// Parses the process ID in a note with a `struct elf_prpsinfo`: `pr_pid`, which follows state, flags, user and group.
fn parse_pid(mut note: Cursor<'_>) -> Option<i32> {
    note.bytes(24, "pr_state to pr_gid").ok()?;
    note.u32("pr_pid").ok().map(|pid| pid as i32).filter(|pid| *pid > 0)
}
