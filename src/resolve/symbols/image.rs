//! One file of code, mapped: its build ID, where its bytes go in memory, its sections. An ELF file, or a ReadyToRun
//! image of .NET, which brings its methods instead of sections and symbols.
//!
//! perf speaks of addresses as offsets in the file (address − start of the mapping + page offset); symbols, DWARF
//! and unwinding information speak of the addresses the file was linked for. The loadable segments connect the two.

use super::ready_to_run::{Method, ReadyToRun};
use crate::error::{Error, Result};
use crate::io::Bytes;
use crate::model::process::BuildId;
use flate2::{Decompress, FlushDecompress};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{CompressionFormat, Endianness, Object, ObjectSection, elf};
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An opened file.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    bytes: Bytes,
    segments: Vec<LoadSegment>,
    build_id: Option<BuildId>,
    machine: u16,
    methods: Vec<Method>,
}

/// A loadable segment that has bytes in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoadSegment {
    offset: u64,
    vaddr: u64,
    size: u64,
}

impl LoadSegment {
    /// With itself, how far into it a place is, if it is in it; `first` is where it begins.
    fn holds(&self, place: u64, first: u64) -> Option<(&Self, u64)> {
        let into = place.checked_sub(first).filter(|&into| into < self.size)?;
        Some((self, into))
    }
}

impl Image {
    /// Takes the bytes of a file that may be one. Errors name what is damaged.
    pub fn new(path: &Path, bytes: Bytes) -> Result<Self> {
        if bytes.starts_with(b"MZ") {
            return Self::of_dot_net(path, bytes);
        }
        let parsed = parse(&bytes).map_err(|error| error.in_file(path))?;
        let build_id = parsed.build_id().ok().flatten().and_then(BuildId::new);
        let (machine, segments) = match &parsed {
            object::File::Elf32(file) => headers(file.elf_header(), file.endian(), &bytes),
            object::File::Elf64(file) => headers(file.elf_header(), file.endian(), &bytes),
            _ => return Err(Error::new("not an ELF file").in_file(path)),
        };
        Ok(Self { path: path.to_owned(), bytes, segments, build_id, machine, methods: Vec::new() })
    }

    /// Takes a PE file.
    fn of_dot_net(path: &Path, bytes: Bytes) -> Result<Self> {
        let Some(image) = ReadyToRun::read(&bytes) else {
            return Err(Error::new("not a ReadyToRun image of .NET").in_file(path));
        };
        let segments = image.sections.iter().map(|section| LoadSegment {
            offset: section.offset.into(),
            vaddr: section.rva.into(),
            size: section.size.into(),
        });
        let (segments, machine, methods) = (segments.collect(), image.machine, image.methods);
        Ok(Self { path: path.to_owned(), bytes, segments, build_id: None, machine, methods })
    }

    /// What it says of functions where it has no symbols.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Its path here.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which version of the file it is.
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// Its `e_machine`.
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// The link-time address of the byte at `offset` in the file. `None` if no segment loads it.
    pub fn vaddr(&self, offset: u64) -> Option<u64> {
        let (segment, into) = self.segments.iter().find_map(|segment| segment.holds(offset, segment.offset))?;
        Some(segment.vaddr.wrapping_add(into))
    }

    /// The bytes that are loaded to these link-time addresses, as far as the file has them.
    pub fn loaded(&self, addresses: Range<u64>) -> Option<&[u8]> {
        let Range { start, end } = addresses;
        let (segment, from) = self.segments.iter().find_map(|segment| segment.holds(start, segment.vaddr))?;
        let len = end.checked_sub(start)?.min(segment.size - from);
        let at = usize::try_from(segment.offset.checked_add(from)?).ok()?;
        self.bytes.get(at..at.checked_add(usize::try_from(len).ok()?)?)
    }

    /// The sections and symbols. Cheap: only headers are looked at.
    pub fn object(&self) -> Result<object::File<'_>> {
        parse(&self.bytes).map_err(|error| error.in_file(&self.path))
    }

    /// The bytes of a section, decompressed; empty if it is missing or damaged.
    pub fn section<'a>(&'a self, object: &object::File<'a>, name: &str) -> Cow<'a, [u8]> {
        self.section_up_to(object, name, |_| usize::MAX)
    }

    /// The same, but at least as far as `end` says, which is given what is there so far.
    pub fn section_up_to<'a>(
        &'a self,
        object: &object::File<'a>,
        name: &str,
        end: impl Fn(&[u8]) -> usize,
    ) -> Cow<'a, [u8]> {
        let bytes = object.section_by_name(name).and_then(|section| {
            let packed = section.compressed_data().ok()?;
            let most = (packed.data.len() as u64).saturating_mul(LARGEST_RATIO).min(LARGEST_SECTION);
            match packed.format {
                CompressionFormat::None => Some(Cow::Borrowed(packed.data)),
                _ if packed.uncompressed_size > most => None,
                CompressionFormat::Zlib => {
                    inflate(packed.data, usize::try_from(packed.uncompressed_size).ok()?, end).map(Cow::Owned)
                }
                _ => packed.decompress().ok(),
            }
        });
        bytes.unwrap_or_default()
    }

    /// Whether it holds debugging information (itself, not by a link to another file).
    pub fn has_dwarf(&self) -> bool {
        self.object().is_ok_and(|object| object.section_by_name(".debug_info").is_some())
    }

    /// Whether it holds a full symbol table.
    pub fn has_symtab(&self) -> bool {
        !self.methods.is_empty() || self.object().is_ok_and(|object| object.section_by_name(".symtab").is_some())
    }

    /// Whether it is the file that the recording means. A recording pads short IDs with zeros.
    pub fn is(&self, wanted: Option<BuildId>) -> bool {
        let (Some(wanted), Some(own)) = (wanted, self.build_id) else { return true };
        let (wanted, own) = (wanted.as_bytes(), own.as_bytes());
        let common = wanted.len().min(own.len());
        let zeros = |rest: &[u8]| rest.iter().all(|&byte| byte == 0);
        wanted[..common] == own[..common] && zeros(&wanted[common..]) && zeros(&own[common..])
    }
}

/// Unpacks `size` bytes, or at least as many as `end` asks for. `None` if they are damaged.
fn inflate(packed: &[u8], size: usize, end: impl Fn(&[u8]) -> usize) -> Option<Vec<u8>> {
    let (mut bytes, mut inflate) = (Vec::new(), Decompress::new(true));
    loop {
        let end = end(&bytes).min(size);
        let missing = end.saturating_sub(bytes.len());
        if missing == 0 {
            return Some(bytes);
        }
        bytes.try_reserve_exact(missing).ok()?;
        let (before, taken) = (bytes.len(), usize::try_from(inflate.total_in()).ok()?);
        let flush = if end == size { FlushDecompress::Finish } else { FlushDecompress::None };
        inflate.decompress_vec(packed.get(taken..)?, &mut bytes, flush).ok()?;
        if bytes.len() == before {
            return None;
        }
    }
}

/// Debugging information is packed to a third or a tenth; what says that it unpacks to more is made to fill memory.
const LARGEST_RATIO: u64 = 200;
const LARGEST_SECTION: u64 = 4 << 30;

fn parse(bytes: &[u8]) -> Result<object::File<'_>> {
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(Error::new("not an ELF file").at(0));
    }
    object::File::parse(bytes).map_err(|error| Error::new("damaged ELF file").because(error))
}

fn headers<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf,
    endian: Endianness,
    bytes: &[u8],
) -> (u16, Vec<LoadSegment>) {
    let all = header.program_headers(endian, bytes).unwrap_or_default();
    let loaded = all.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let segments = loaded.map(|segment| LoadSegment {
        offset: segment.p_offset(endian).into(),
        vaddr: segment.p_vaddr(endian).into(),
        size: segment.p_filesz(endian).into(),
    });
    (header.e_machine(endian).0, segments.collect())
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
        assert!(image.is(None));
    }

    #[test]
    fn what_is_before_a_segment_is_not_in_it_however_large_it_says_it_is() {
        let segment = LoadSegment { offset: 0x1000, vaddr: 0x40_1000, size: u64::MAX };
        assert!(segment.holds(0xfff, segment.offset).is_none());
        assert_eq!(segment.holds(0x1010, segment.offset).map(|(_, into)| into), Some(0x10));
    }

    #[test]
    fn no_elf_and_damaged_ones_are_errors() {
        let image = |bytes: &[u8]| Image::new(Path::new("x"), Bytes::Owned(bytes.to_vec()));
        assert_eq!(image(b"#!/bin/sh").unwrap_err().to_string(), "x: at byte 0x0: not an ELF file");
        assert!(image(b"\x7fELF\x02\x01\x01").is_err());
    }
}
