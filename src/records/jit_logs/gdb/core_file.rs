//! Reads an ELF core dump: memory, process and mapped files.

use super::list::Memory;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result};
use crate::records::jit_logs::code_log::MappedFile;
use object::elf;
use std::ops::Range;

/// With this `e_phnum`, the number of program headers is in `sh_info` of the first section header instead.
const MANY: u64 = 0xffff;

const PROGRAM_HEADER: usize = 56;

/// In a core without a list of mapped files, this many bytes of writable memory are searched.
const UNLISTED: u64 = 256 << 20;

/// A core dump of a 64-bit process.
#[derive(Debug)]
pub(super) struct Core<'data> {
    bytes: &'data [u8],
    endian: Endian,
    /// `e_machine`.
    pub(super) machine: u16,
    /// The memory in the core, sorted by address.
    segments: Vec<CoreSegment>,
    /// The process ID in its own namespace.
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
    let kind = head.get(16..18);
    let is_little = head.get(5) == Some(&elf::ELFDATA2LSB.0);
    head.starts_with(&elf::ELFMAG) && (kind == Some(&if is_little { [4, 0] } else { [0, 4] }))
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
        let mut header = Cursor::new(&bytes[18..], 18, endian);
        let machine = header.u16("e_machine")?;
        header.bytes(12, "e_version and e_entry")?;
        let (headers, sections) = (header.u64("e_phoff")?, header.u64("e_shoff")?);
        header.bytes(8, "e_flags, e_ehsize and e_phentsize")?;
        let count = u64::from(header.u16("e_phnum")?);
        let count = if count == MANY { many(bytes, sections, endian).unwrap_or(count) } else { count };
        let (segments, pid, files) = (Vec::new(), None, Vec::new());
        let mut core = Self { bytes, endian, machine, segments, pid, files, is_cut: false };
        core.headers(headers, count)?;
        core.segments.sort_by_key(|segment| segment.addr.start);
        core.files.sort_by_key(|file| file.start);
        Ok(core)
    }

    fn headers(&mut self, offset: u64, count: u64) -> Result<()> {
        let at = usize::try_from(offset).ok().filter(|at| *at <= self.bytes.len());
        let at = at.ok_or_else(|| Error::new("its program headers are beyond its end").at(32))?;
        let mut headers = Cursor::new(&self.bytes[at..], offset, self.endian);
        self.is_cut |= count > (headers.left() / PROGRAM_HEADER) as u64;
        for _ in 0..count.min((headers.left() / PROGRAM_HEADER) as u64) {
            self.program_header(&mut headers)?;
        }
        Ok(())
    }

    fn program_header(&mut self, cursor: &mut Cursor<'data>) -> Result<()> {
        let (kind, flags) = (cursor.u32("p_type")?, cursor.u32("p_flags")?);
        let (offset, addr) = (cursor.u64("p_offset")?, cursor.u64("p_vaddr")?);
        cursor.bytes(8, "p_paddr")?;
        let size = cursor.u64("p_filesz")?;
        cursor.bytes(16, "p_memsz and p_align")?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let there = size.min((self.bytes.len() - start) as u64);
        self.is_cut |= there < size;
        match kind {
            kind if kind == elf::PT_LOAD.0 && there > 0 => {
                let Some(end) = addr.checked_add(there) else { return Ok(()) };
                let is_writable = flags & elf::PF_W.0 != 0;
                self.segments.push(CoreSegment { addr: addr..end, offset: start, is_writable });
            }
            kind if kind == elf::PT_NOTE.0 => {
                let notes = &self.bytes[start..start + there as usize];
                // If notes are damaged, those before the damage are used.
                let _ = self.notes(Cursor::new(notes, offset, self.endian));
            }
            _ => {}
        }
        Ok(())
    }

    fn notes(&mut self, mut notes: Cursor<'data>) -> Result<()> {
        while !notes.is_empty() {
            let (name, size, kind) = (notes.u32("n_namesz")?, notes.u32("n_descsz")?, notes.u32("n_type")?);
            notes.bytes(u64::from(name).next_multiple_of(4), "n_name")?;
            let mut description = notes.part(u64::from(size), "n_desc")?;
            notes.bytes(u64::from(size.next_multiple_of(4) - size).min(notes.left() as u64), "padding")?;
            match elf::NoteType(kind) {
                elf::NT_PRPSINFO => self.pid = pid(description),
                elf::NT_FILE => self.mapped_files(&mut description)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses NT_FILE: number of files, page size, then start, end and offset (in pages) of each, then their names.
    fn mapped_files(&mut self, note: &mut Cursor<'data>) -> Result<()> {
        let (count, page) = (note.u64("count")?, note.u64("page_size")?);
        let mut places = note.part(count.saturating_mul(24), "mapped files")?;
        while !places.is_empty() {
            let (start, end) = (places.u64("start")?, places.u64("end")?);
            let offset = places.u64("file_ofs")?.saturating_mul(page);
            let path = note.cstr("name of a mapped file")?.to_vec();
            self.files.push(MappedFile { start, end, offset, path });
        }
        Ok(())
    }

    /// The writable memory of files, which is where a descriptor is: it is initialized data. Without a list of mapped
    /// files, the first writable memory of any kind, up to [`UNLISTED`] bytes.
    pub(super) fn data_of_files(&self) -> Vec<Range<u64>> {
        let writable = self.segments.iter().filter(|segment| segment.is_writable);
        let is_file = |segment: &&CoreSegment| MappedFile::at(&self.files, segment.addr.start).is_some();
        if !self.files.is_empty() {
            return writable.filter(is_file).map(|segment| segment.addr.clone()).collect();
        }
        let mut left = UNLISTED;
        let first = |segment: &CoreSegment| {
            let len = left.min(segment.addr.end - segment.addr.start);
            left -= len;
            segment.addr.start..segment.addr.start + len
        };
        writable.map(first).filter(|range| !range.is_empty()).collect()
    }

    /// The range of the file that holds this memory, if all of it is in the file and contiguous.
    pub(super) fn range(&self, addr: u64, size: u64) -> Option<Range<usize>> {
        let end = addr.checked_add(size)?;
        let after = self.segments.partition_point(|segment| segment.addr.start <= addr);
        let first = after.checked_sub(1)?;
        let start =
            self.segments[first].offset.checked_add(usize::try_from(addr - self.segments[first].addr.start).ok()?)?;
        // Memory with different access rights is a segment of its own, which usually follows directly.
        let mut reach = self.segments[first].addr.end;
        let mut behind = self.segments[first].behind()?;
        for segment in &self.segments[after..] {
            if reach >= end || segment.addr.start != reach || segment.offset != behind {
                break;
            }
            (reach, behind) = (segment.addr.end, segment.behind()?);
        }
        (addr < reach && end <= reach).then(|| start..start + size as usize)
    }
}

impl CoreSegment {
    /// The end of the segment in the file.
    fn behind(&self) -> Option<usize> {
        self.offset.checked_add(usize::try_from(self.addr.end - self.addr.start).ok()?)
    }
}

impl Memory for Core<'_> {
    fn endian(&self) -> Endian {
        self.endian
    }

    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        let bytes = self.range(addr, into.len() as u64).and_then(|range| self.bytes.get(range));
        bytes.is_some_and(|bytes| {
            into.copy_from_slice(bytes);
            true
        })
    }
}

fn many(bytes: &[u8], sections: u64, endian: Endian) -> Option<u64> {
    let first = bytes.get(usize::try_from(sections).ok()?..)?;
    let mut header = Cursor::new(first, sections, endian);
    header.bytes(44, "sh_name to sh_link").ok()?;
    header.u32("sh_info").ok().map(u64::from)
}

/// `pr_pid` of `struct elf_prpsinfo`, which follows state, flags, user and group.
fn pid(mut note: Cursor<'_>) -> Option<i32> {
    note.bytes(24, "pr_state to pr_gid").ok()?;
    note.u32("pr_pid").ok().map(|pid| pid as i32).filter(|pid| *pid > 0)
}
