//! One file with code that was mapped: its build ID, segments and sections. It is an ELF file or a .NET ReadyToRun
//! image. The latter has a list of methods instead of sections and symbols.
//!
//! perf gives addresses as offsets within a file (address − start of the mapping + page offset). Symbols, DWARF and
//! unwind information use the addresses that the file was linked for. The loadable segments translate between the two.

use super::ready_to_run::{Method, ReadyToRun};
use crate::error::{Error, Result};
use crate::io::Bytes;
use crate::io::door::Opened;
use crate::model::process::BuildId;
use crate::model::ranges::{OrderedRanges, Span};
use flate2::{Decompress, FlushDecompress};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{CompressionFormat, Endianness, Object, ObjectSection, SectionKind, elf};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::Metadata;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file that contains code, or debug information about code.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    bytes: Bytes,
    /// The loadable segments in the order of their headers, for lookups by link-time address.
    segments: OrderedRanges<LoadSegment>,
    /// The loadable segments, for lookups by offset in the file.
    segments_by_offset: OrderedRanges<ByOffset>,
    /// The parts of segments without contents in the file (`.bss`), by the offsets that they would have after the
    /// segment's contents.
    zeroed_by_offset: OrderedRanges<ByOffset>,
    build_id: Option<BuildId>,
    machine: u16,
    /// The methods of a ReadyToRun image; empty for ELF files.
    methods: Vec<Method>,
    /// Ranges of link-time addresses in executable sections whose bytes the file lacks. Debug files, and files packed
    /// without code, have such sections.
    blank: OrderedRanges<Range<u64>>,
    /// The file's metadata when it was opened; `None` if it didn't come from a file.
    metadata: Option<Metadata>,
    /// True if every user may read the file and reach its directory. Otherwise `pack` leaves the file out, unless the
    /// user asks for private files.
    is_everybodys: bool,
}

/// A loadable segment of an ELF file, or a section of a PE image, as far as its bytes are in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoadSegment {
    /// The offset in the file at which the segment's bytes start.
    offset: u64,
    /// The link-time address of the segment's first byte.
    vaddr: u64,
    /// How many bytes of the segment are in the file.
    size: u64,
}

impl Span for LoadSegment {
    fn range(&self) -> Range<u64> {
        self.vaddr..self.vaddr.saturating_add(self.size)
    }
}

/// A segment, to be looked up by its range in the file instead of its addresses.
#[derive(Debug, Clone, Copy)]
struct ByOffset(LoadSegment);

impl Span for ByOffset {
    fn range(&self) -> Range<u64> {
        self.0.offset..self.0.offset.saturating_add(self.0.size)
    }
}

/// True for a core dump: an ELF file with the memory that a process had.
pub fn is_core_dump(bytes: &[u8]) -> bool {
    let Some([0x7f, b'E', b'L', b'F', _, order, .., low, high]) = bytes.first_chunk::<18>() else { return false };
    let kind = if *order == elf::ELFDATA2MSB.0 { [*high, *low] } else { [*low, *high] };
    u16::from_le_bytes(kind) == elf::ET_CORE.0
}

impl Image {
    /// Parses a file that has been opened, and keeps its metadata.
    pub fn from_opened(path: &Path, opened: Opened) -> Result<Self> {
        let is_everybodys = opened.is_everybodys;
        Ok(Self { metadata: Some(opened.about), is_everybodys, ..Self::new(path, opened.bytes)? })
    }

    /// Parses the bytes of an ELF file or ReadyToRun image, which were read from `path`. Fails if they are damaged or
    /// neither of the two.
    pub fn new(path: &Path, bytes: Bytes) -> Result<Self> {
        if bytes.starts_with(b"MZ") {
            return Self::from_pe(path, bytes);
        }
        let parsed = parse(&bytes).map_err(|error| error.in_file(path))?;
        let Headers { machine, segments, zeroed, build_id, blank } = match &parsed {
            object::File::Elf32(file) => read_headers(file.elf_header(), file.endian(), &bytes),
            object::File::Elf64(file) => read_headers(file.elf_header(), file.endian(), &bytes),
            _ => return Err(Error::new("not an ELF file").in_file(path)),
        };
        Ok(Self {
            path: path.to_owned(),
            bytes,
            segments_by_offset: index_by_offset(&segments),
            zeroed_by_offset: index_by_offset(&zeroed),
            segments: OrderedRanges::for_addresses(segments),
            build_id,
            machine,
            methods: Vec::new(),
            blank: OrderedRanges::for_addresses(blank),
            // `from_opened` replaces these two values if the bytes come from an opened file.
            metadata: None,
            is_everybodys: true,
        })
    }

    /// Parses a PE file. Fails if it isn't a ReadyToRun image.
    fn from_pe(path: &Path, bytes: Bytes) -> Result<Self> {
        let Some(image) = ReadyToRun::read(&bytes) else {
            return Err(Error::new("not a ReadyToRun image of .NET").in_file(path));
        };
        let segments = image.sections.iter().map(|section| LoadSegment {
            offset: section.offset.into(),
            vaddr: section.rva.into(),
            size: section.size.into(),
        });
        let segments: Vec<LoadSegment> = segments.collect();
        Ok(Self {
            path: path.to_owned(),
            bytes,
            segments_by_offset: index_by_offset(&segments),
            zeroed_by_offset: OrderedRanges::default(),
            segments: OrderedRanges::for_addresses(segments),
            build_id: None,
            machine: image.machine,
            methods: image.methods,
            blank: OrderedRanges::default(),
            // `from_opened` replaces these two values if the bytes come from an opened file.
            metadata: None,
            is_everybodys: true,
        })
    }

    /// The methods of a ReadyToRun image; empty for ELF files.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file's metadata when it was opened; `None` if it didn't come from a file.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// True if every user may read the file and reach its directory.
    pub fn is_everybodys(&self) -> bool {
        self.is_everybodys
    }

    /// The path at which the file was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build ID; `None` if the file has none.
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// The ELF machine number, `e_machine`.
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// The link-time address of the byte at this file offset. `None` if no segment contains the byte.
    pub fn vaddr(&self, offset: u64) -> Option<u64> {
        let index = self.segments_by_offset.first_at(offset, 0)?;
        let ByOffset(segment) = self.segments_by_offset.as_slice()[index];
        Some(segment.vaddr.wrapping_add(offset - segment.offset))
    }

    /// The link-time address of what was mapped at a file offset. Unlike [`Self::vaddr`], also finds variables without
    /// contents in the file (`.bss`), if they share a page with the end of a segment's contents. That page is mapped
    /// from the file, so such a variable has an offset after the contents, but within the segment's size in memory.
    /// `None` if no segment contains the offset.
    pub fn vaddr_in_memory(&self, offset: u64) -> Option<u64> {
        if let Some(vaddr) = self.vaddr(offset) {
            return Some(vaddr);
        }
        // The offset may be in several segments, because a linker may pad an earlier one to a whole page. The last one
        // counts. So search the zero-filled ends of the segments backward; `usize::MAX` means from the last one on.
        let index = self.zeroed_by_offset.last_at(offset, usize::MAX)?;
        let ByOffset(zeroed) = self.zeroed_by_offset.as_slice()[index];
        zeroed.vaddr.checked_add(offset - zeroed.offset)
    }

    /// The file offset of the byte at this link-time address. `None` if the file has no such byte.
    pub fn offset(&self, vaddr: u64) -> Option<u64> {
        let (segment, distance) = self.find_segment(vaddr)?;
        segment.offset.checked_add(distance)
    }

    /// The segment that contains a link-time address, and the distance of the address from the segment's start.
    fn find_segment(&self, vaddr: u64) -> Option<(&LoadSegment, u64)> {
        let segment = &self.segments.as_slice()[self.segments.first_at(vaddr, 0)?];
        Some((segment, vaddr - segment.vaddr))
    }

    /// OpenTelemetry's build ID for files of any kind, `process.executable.build_id.htlhash`. It is the first half of
    /// the SHA-256 of: the first 4096 bytes, the last 4096 bytes, the length (64 bits, big-endian). See
    /// <https://opentelemetry.io/docs/specs/semconv/resource/process/>.
    pub fn htl_hash(&self) -> [u8; 16] {
        const END: usize = 4096;
        let len = self.bytes.len();
        let mut hash = Sha256::new();
        hash.update(&self.bytes[..len.min(END)]);
        hash.update(&self.bytes[len - len.min(END)..]);
        hash.update((len as u64).to_be_bytes());
        let hash = hash.finalize();
        std::array::from_fn(|index| hash[index])
    }

    /// The file's bytes for these link-time addresses, up to the end of the segment in which the first one lies. `None`
    /// if the file lacks the first one: no segment contains it, or its section has no contents (NOBITS).
    pub fn loaded(&self, addresses: Range<u64>) -> Option<&[u8]> {
        let Range { start, end } = addresses;
        // `blank` has code sections whose headers a debug file keeps, but not their bytes. A segment may seem to
        // contain such bytes. (`first_at` searches from this position on; 0 is the first section.)
        let is_blank = self.blank.first_at(start, 0).is_some();
        if is_blank {
            return None;
        }
        let (segment, distance) = self.find_segment(start)?;
        let len = end.checked_sub(start)?.min(segment.size - distance);
        let offset = usize::try_from(segment.offset.checked_add(distance)?).ok()?;
        self.bytes.get(offset..offset.checked_add(usize::try_from(len).ok()?)?)
    }

    /// Parses the ELF file's sections and symbols. This is cheap, because only headers are read.
    pub fn object(&self) -> Result<object::File<'_>> {
        parse(&self.bytes).map_err(|error| error.in_file(&self.path))
    }

    /// The contents of the section with this name, decompressed. Empty if the section is missing or damaged.
    pub fn section<'a>(&'a self, object: &object::File<'a>, name: &str) -> Cow<'a, [u8]> {
        self.section_up_to(object, name, |_| usize::MAX)
    }

    /// The contents of a section, decompressed. Empty if the file has no such section, or if it can't be decompressed.
    /// Of a section compressed with zlib, only as many bytes are decompressed as are needed: `needed_len` gets the
    /// bytes so far and returns how many are needed, and is called again until there are as many. Any other section is
    /// returned as a whole.
    pub fn section_up_to<'a>(
        &'a self,
        object: &object::File<'a>,
        name: &str,
        needed_len: impl Fn(&[u8]) -> usize,
    ) -> Cow<'a, [u8]> {
        let Some(section) = object.section_by_name(name) else { return Cow::default() };
        let Ok(packed) = section.compressed_data() else { return Cow::default() };
        let max_size = (packed.data.len() as u64).saturating_mul(LARGEST_RATIO).min(LARGEST_SECTION);
        let unpacked = match packed.format {
            CompressionFormat::None => Some(Cow::Borrowed(packed.data)),
            // No section is compressed that well, so the stated size is wrong.
            _ if packed.uncompressed_size > max_size => None,
            CompressionFormat::Zlib => match usize::try_from(packed.uncompressed_size) {
                Ok(size) => inflate(packed.data, size, needed_len).map(Cow::Owned),
                Err(_) => None,
            },
            _ => packed.decompress().ok(),
        };
        unpacked.unwrap_or_default()
    }

    /// True if a link-time address lies in a code section.
    pub fn is_text(&self, vaddr: u64) -> bool {
        // In a ReadyToRun image, only addresses of methods are looked up, and all of them are code.
        if !self.methods.is_empty() {
            return true;
        }
        let Ok(object) = self.object() else { return false };
        object.sections().any(|section| {
            let distance = vaddr.checked_sub(section.address());
            section.kind() == SectionKind::Text && distance.is_some_and(|distance| distance < section.size())
        })
    }

    /// True if Go's linker made the file.
    pub fn is_go(&self) -> bool {
        const MARKS: [&str; 3] = [".go.buildinfo", ".note.go.buildid", ".gopclntab"];
        self.object().is_ok_and(|object| MARKS.iter().any(|mark| object.section_by_name(mark).is_some()))
    }

    /// True if Go's linker made the file and it contains no C code: with C code, it would have unwind tables.
    pub fn is_go_alone(&self) -> bool {
        self.is_go() && self.object().is_ok_and(|object| object.section_by_name(".eh_frame").is_none())
    }

    /// True if the file itself contains DWARF, not just a link to a file with it.
    pub fn has_dwarf(&self) -> bool {
        self.object().is_ok_and(|object| object.section_by_name(".debug_info").is_some())
    }

    /// True if the file has a full symbol table (`.symtab`).
    pub fn has_symtab(&self) -> bool {
        !self.methods.is_empty() || self.object().is_ok_and(|object| object.section_by_name(".symtab").is_some())
    }

    /// True if this file may be the debug information of the file `running`, judging by section headers: strip and
    /// objcopy keep the address and size of code sections whose bytes they remove.
    pub fn may_be_debugging(&self, running: &Self) -> bool {
        self.machine == running.machine && self.text_section() == running.text_section()
    }

    /// The address and size of the section `.text`; `None` if there is none.
    fn text_section(&self) -> Option<(u64, u64)> {
        let object = self.object().ok()?;
        let section = object.section_by_name(".text")?;
        Some((section.address(), section.size()))
    }

    /// The checksum of the file as in `.gnu_debuglink`: zlib's CRC-32 of all bytes. While computing it, lets the kernel
    /// drop the pages that have been read, so that a large file doesn't fill the memory.
    pub fn crc32(&self) -> u32 {
        const CHUNK: usize = 16 << 20;
        let mut crc = flate2::Crc::new();
        let release = self.bytes.releaser();
        for (index, chunk) in self.bytes.chunks(CHUNK).enumerate() {
            crc.update(chunk);
            release(index * CHUNK..index * CHUNK + chunk.len());
        }
        crc.sum()
    }

    /// True unless the file has a build ID that differs from `wanted`. If the file has none, or if `wanted` is `None`,
    /// nothing differs. Zeros at the end of IDs are ignored, because recordings pad short IDs with them.
    pub fn has_build_id(&self, wanted: Option<BuildId>) -> bool {
        let (Some(wanted), Some(found)) = (wanted, self.build_id) else { return true };
        let (wanted, found) = (wanted.as_bytes(), found.as_bytes());
        let common = wanted.len().min(found.len());
        let is_zero = |rest: &[u8]| rest.iter().all(|&byte| byte == 0);
        wanted[..common] == found[..common] && is_zero(&wanted[common..]) && is_zero(&found[common..])
    }
}

/// Decompresses zlib data to `size` bytes, or only as many as `needed_len` asks for; see [`Image::section_up_to`].
/// `None` if the data is damaged.
fn inflate(packed: &[u8], size: usize, needed_len: impl Fn(&[u8]) -> usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut inflate = Decompress::new(true);
    // Each round decompresses as much as `needed_len` asks for. With these bytes, it may ask for more.
    loop {
        let end = needed_len(&bytes).min(size);
        let missing = end.saturating_sub(bytes.len());
        if missing == 0 {
            return Some(bytes);
        }
        bytes.try_reserve_exact(missing).ok()?;
        let len_before = bytes.len();
        let consumed = usize::try_from(inflate.total_in()).ok()?;
        let flush = if end == size { FlushDecompress::Finish } else { FlushDecompress::None };
        inflate.decompress_vec(packed.get(consumed..)?, &mut bytes, flush).ok()?;
        // The data ends too early.
        if bytes.len() == len_before {
            return None;
        }
    }
}

/// A section may not claim to be larger than this many times its compressed size. Debug information compresses to
/// between a third and a tenth of its size. A section above this limit was made to exhaust memory.
const LARGEST_RATIO: u64 = 200;
/// The maximum size of a section after decompression, in bytes.
const LARGEST_SECTION: u64 = 4 << 30;

fn parse(bytes: &[u8]) -> Result<object::File<'_>> {
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(Error::new("not an ELF file").at_offset(0));
    }
    object::File::parse(bytes).map_err(|error| Error::new("damaged ELF file").because(error))
}

/// Prepares segments for lookups by offset in the file. A file may state tens of thousands of them.
fn index_by_offset(segments: &[LoadSegment]) -> OrderedRanges<ByOffset> {
    OrderedRanges::for_addresses(segments.iter().copied().map(ByOffset).collect())
}

/// What is needed from the headers of an ELF file.
struct Headers {
    machine: u16,
    segments: Vec<LoadSegment>,
    /// The parts of these segments for which the file has no contents.
    zeroed: Vec<LoadSegment>,
    build_id: Option<BuildId>,
    blank: Vec<Range<u64>>,
}

/// Reads the loadable segments, the build ID, and the code sections whose bytes the file lacks.
fn read_headers<Elf: FileHeader<Endian = Endianness>>(header: &Elf, endian: Endianness, bytes: &[u8]) -> Headers {
    let mut segments = Vec::new();
    let mut zeroed = Vec::new();
    for segment in header.program_headers(endian, bytes).unwrap_or_default() {
        if segment.p_type(endian) == elf::PT_LOAD {
            let offset: u64 = segment.p_offset(endian).into();
            let vaddr: u64 = segment.p_vaddr(endian).into();
            let size: u64 = segment.p_filesz(endian).into();
            segments.push(LoadSegment { offset, vaddr, size });
            let size_in_memory: u64 = segment.p_memsz(endian).into();
            // The rest of the segment's memory isn't in the file, and is filled with zeros (`.bss`).
            if size_in_memory > size {
                zeroed.push(LoadSegment {
                    offset: offset.saturating_add(size),
                    vaddr: vaddr.saturating_add(size),
                    size: size_in_memory - size,
                });
            }
        }
    }
    // `blank` has the code sections without bytes, which debug files contain.
    let mut blank = Vec::new();
    if let Ok(sections) = header.sections(endian, bytes) {
        for section in sections.iter() {
            let is_code = section.sh_flags(endian).0 & elf::SHF_EXECINSTR.0 != 0;
            if is_code && section.sh_type(endian) == elf::SHT_NOBITS {
                let start: u64 = section.sh_addr(endian).into();
                blank.push(start..start.saturating_add(section.sh_size(endian).into()));
            }
        }
    }
    let build_id = read_build_id(header, endian, bytes);
    Headers { machine: header.e_machine(endian).0, segments, zeroed, build_id, blank }
}

/// The maximum number of bytes of notes to read, per section and per file. A build ID is in a note of at most 36 bytes
/// at the start of its section. Only a kernel has other notes before it, a few hundred bytes.
const LARGEST_NOTES: usize = 64 << 10;
const LARGEST_NOTES_OF_ALL_SECTIONS: usize = 16 << 20;

/// Finds the build ID in the note sections, or in the note segments if the file has no sections. `None` if there is
/// none.
fn read_build_id<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf,
    endian: Endianness,
    bytes: &[u8],
) -> Option<BuildId> {
    let sections = header.sections(endian, bytes).ok()?;
    // A hostile file can have any number of note sections, so there is a limit for all of them together.
    let mut bytes_left = LARGEST_NOTES_OF_ALL_SECTIONS;
    for section in sections.iter() {
        if section.sh_type(endian) == elf::SHT_NOTE
            && let Ok(notes) = section.data(endian, bytes)
            && let Some(id) = find_build_id::<Elf>(notes, section.sh_addralign(endian), endian, &mut bytes_left)
        {
            return Some(id);
        }
    }
    // A file with sections has its build ID in one of them, so its segments needn't be searched.
    if !sections.is_empty() {
        return None;
    }
    for segment in header.program_headers(endian, bytes).ok()? {
        if segment.p_type(endian) == elf::PT_NOTE
            && let Ok(notes) = segment.data(endian, bytes)
            && let Some(id) = find_build_id::<Elf>(notes, segment.p_align(endian), endian, &mut bytes_left)
        {
            return Some(id);
        }
    }
    None
}

/// Finds a build ID in a sequence of notes. Reads at most [`LARGEST_NOTES`] and at most `bytes_left` bytes, and lowers
/// `bytes_left` by the number of bytes read. `None` if there is no build ID in them.
fn find_build_id<Elf: FileHeader<Endian = Endianness>>(
    notes: &[u8],
    align: Elf::Word,
    endian: Endianness,
    bytes_left: &mut usize,
) -> Option<BuildId> {
    let notes = &notes[..notes.len().min(LARGEST_NOTES).min(*bytes_left)];
    *bytes_left -= notes.len();
    for note in NoteIterator::<Elf>::new(endian, align, notes).ok()?.flatten() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_as_much_is_unpacked_as_is_needed() {
        use std::io::Write;
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(|number| number.wrapping_mul(number).to_le_bytes()).collect();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&bytes).unwrap();
        let packed = encoder.finish().unwrap();
        let all = inflate(&packed, bytes.len(), |_| usize::MAX).unwrap();
        assert!(all == bytes);
        let end = |head: &[u8]| if head.len() < 50_000 { 50_000 } else { 70_001 };
        let some = inflate(&packed, bytes.len(), end).unwrap();
        assert!((70_001..100_000).contains(&some.len()) && bytes.starts_with(&some));
        assert!(inflate(&packed, bytes.len(), |_| 0).unwrap().is_empty());
        assert!(inflate(&packed, bytes.len() + 1, |_| usize::MAX).is_none());
        assert!(inflate(&packed[..packed.len() / 2], bytes.len(), |_| usize::MAX).is_none());
    }

    /// An ELF file with one section of notes: `count` empty ones, then a build ID.
    fn with_notes_before_the_build_id(count: usize) -> Vec<u8> {
        let mut notes = [0; 12].repeat(count);
        notes.extend(*b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\0buildid!");
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        bytes.extend([0; 16]);
        bytes.extend(64_u64.to_le_bytes());
        bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
        bytes.extend([0; 64]);
        let of_notes = [7_u64 << 32, 0, 0, 256, notes.len() as u64, 0, 4, 0];
        // The section with the names of the sections, which are all empty.
        let of_names = [3_u64 << 32, 0, 0, 15, 1, 0, 1, 0];
        bytes.extend([of_notes, of_names].as_flattened().iter().flat_map(|field| field.to_le_bytes()));
        bytes.extend(notes);
        bytes
    }

    #[test]
    fn notes_are_looked_through_for_a_build_id_but_not_for_megabytes() {
        let build_id = |count| {
            let bytes = with_notes_before_the_build_id(count);
            Image::new(Path::new("x"), Bytes::Owned(bytes)).unwrap().build_id()
        };
        let expected = BuildId::new(b"buildid!");
        assert!(expected.is_some());
        assert_eq!(build_id(0), expected);
        assert_eq!(build_id(5_000), expected);
        assert_eq!(build_id(200_000), None);
    }

    /// An ELF file with these loadable segments, given as offset, address and size, and no sections.
    fn with_segments(segments: &[[u64; 3]]) -> Image {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        bytes.extend([0, 64, 0].map(u64::to_le_bytes).as_flattened());
        let count = (segments.len() as u16).to_le_bytes();
        bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, count[0], count[1], 64, 0, 0, 0, 0, 0]);
        for &[offset, vaddr, size] in segments {
            bytes.extend([5 << 32 | 1, offset, vaddr, 0, size, size, 0].map(u64::to_le_bytes).as_flattened());
        }
        bytes.resize(bytes.len() + 0x2000, 7);
        Image::new(Path::new("x"), Bytes::Owned(bytes)).unwrap()
    }

    #[test]
    fn of_segments_that_overlap_the_first_one_counts() {
        let image = with_segments(&[[0x100, 0x5000, 0x10], [0x108, 0x5008, 0x20], [0x100, 0x7000, 0x40]]);
        let offsets = [0xff, 0x100, 0x10f, 0x110, 0x127, 0x128, 0x140].map(|offset| image.vaddr(offset));
        assert_eq!(
            offsets,
            [None, Some(0x5000), Some(0x500f), Some(0x5010), Some(0x5027), Some(0x7028), None],
            "{offsets:#x?}"
        );
        let addresses = [0x4fff, 0x5000, 0x5010, 0x5028, 0x703f, 0x7040].map(|addr| image.offset(addr));
        assert_eq!(addresses, [None, Some(0x100), Some(0x110), None, Some(0x13f), None], "{addresses:#x?}");
        assert_eq!(image.loaded(0x5008..0x6000).map(<[u8]>::len), Some(8));
        // The last address can't be in a segment that ends before it.
        let at_the_end = with_segments(&[[0, u64::MAX - 0x10, 0x100]]);
        assert_eq!(at_the_end.offset(u64::MAX - 1), Some(0xf));
        assert!(at_the_end.loaded(u64::MAX - 1..u64::MAX).is_some());
    }

    #[test]
    fn many_segments_are_found_each() {
        let count = 60_000;
        let segments: Vec<[u64; 3]> = (0..count).map(|n| [16 * n, 0x10_0000 + 32 * n, 16]).collect();
        let image = with_segments(&segments);
        for n in 0..count {
            assert_eq!(image.vaddr(16 * n + 3), Some(0x10_0000 + 32 * n + 3));
            assert_eq!(image.offset(0x10_0000 + 32 * n + 17), None);
        }
    }

    #[test]
    fn the_test_binary_itself() {
        let path = std::env::current_exe().unwrap();
        let image = Image::new(&path, crate::io::map_file(&path).unwrap()).unwrap();
        assert!(image.has_symtab() && image.has_dwarf());
        let object = image.object().unwrap();
        let text = object.section_by_name(".text").unwrap();
        let (offset, _) = text.file_range().unwrap();
        assert_eq!(image.vaddr(offset + 5), Some(text.address() + 5));
        assert_eq!(image.vaddr(u64::MAX), None);
        let start = text.address();
        assert_eq!(image.loaded(start..start + 9), text.data().unwrap().get(..9));
        assert_eq!(image.loaded(start..start), Some(&b""[..]));
        assert_eq!(image.loaded(u64::MAX - 1..u64::MAX), None);
        assert!(image.has_build_id(None));
        let mut crc = flate2::Crc::new();
        crc.update(&std::fs::read(&path).unwrap());
        assert_eq!(image.crc32(), crc.sum());
        assert!(image.may_be_debugging(&image));
        let other = Path::new("/bin/sh");
        let other = Image::new(other, crate::io::map_file(other).unwrap()).unwrap();
        assert!(!other.may_be_debugging(&image));
    }

    #[test]
    fn an_address_before_a_segment_is_not_in_it_with_any_size() {
        let image = with_segments(&[[0x1000, 0x40_1000, u64::MAX]]);
        assert_eq!(image.vaddr(0xfff), None);
        assert_eq!(image.vaddr(0x1010), Some(0x40_1010));
        assert_eq!(image.offset(0x40_0fff), None);
    }

    #[test]
    fn no_elf_and_damaged_ones_are_errors() {
        let image = |bytes: &[u8]| Image::new(Path::new("x"), Bytes::Owned(bytes.to_vec()));
        assert_eq!(image(b"#!/bin/sh").unwrap_err().to_string(), "x: at byte 0x0: not an ELF file");
        assert!(image(b"\x7fELF\x02\x01\x01").is_err());
    }
}
