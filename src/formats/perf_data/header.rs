//! The header of perf.data: `struct perf_file_header`, or in a pipe the shorter `struct perf_pipe_file_header`
//! (tools/perf/util/header.h).

use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result};

/// A range of the file: `struct perf_file_section`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSection {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
}

impl FileSection {
    /// The offset after the last byte of the section; `u64::MAX` if it is larger than that.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    pub(super) fn parse(cursor: &mut Cursor<'_>, field: &str) -> Result<Self> {
        Ok(Self { offset: cursor.u64(field)?, size: cursor.u64(field)? })
    }
}

/// How a recording is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// File form: sections at offsets that the header gives.
    File,
    /// Pipe form: a header of 16 bytes, then records up to the end.
    Pipe,
}

/// The header of a file or pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Byte order of the machine that recorded.
    pub endian: Endian,
    /// Whether this is a file or a pipe.
    pub form: Form,
    /// Length of the header: 104 bytes or more in a file, 16 in a pipe.
    pub size: u64,
    /// Length of an entry in the attrs section: an attr and the [`FileSection`] of its IDs.
    pub attr_entry_size: u64,
    /// The attrs section: one entry per event.
    pub attrs: FileSection,
    /// The data section, which holds the records. Its `size` is 0 if the recorder was killed before it could write the
    /// size.
    pub data: FileSection,
    /// The features that the file has. Bit N of the first number stands for feature N (perf's own), bit N of the second
    /// for feature 128 + N (simpleperf's).
    pub features: [u128; 2],
    /// True if the feature bits are stored in 64-bit words, false for 32-bit words. This makes a difference only for
    /// recordings of big-endian machines.
    pub wide_feature_words: bool,
}

/// Length of the header in file form.
pub(super) const FILE_HEADER: u64 = 104;
pub(super) const PIPE_HEADER: u64 = 16;
/// Length of the first version of `struct perf_event_attr`.
pub(super) const ATTR_SIZE_MIN: u64 = linux_perf_event_reader::constants::PERF_ATTR_SIZE_VER0 as u64;
/// Length of a [`FileSection`] in the file.
const SECTION: u64 = 16;
/// The number of possible features (`HEADER_FEAT_BITS`).
pub(super) const FEATURES: u32 = 256;
/// Number of the HOSTNAME feature. Like perf, we look at its bit to find out whether the bitmap of a foreign machine
/// has 32-bit or 64-bit words.
const HOSTNAME: u32 = 3;

/// True if a file that starts with `head` is a perf.data.
pub fn sniff(head: &[u8]) -> bool {
    head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP")
}

impl Header {
    /// Parses a header. Pass the first 104 bytes of the file, or all if there are fewer.
    pub fn parse(head: &[u8]) -> Result<Self> {
        let endian = match head.first_chunk::<8>() {
            Some(b"PERFILE2") => Endian::Little,
            Some(b"2ELIFREP") => Endian::Big,
            Some(b"PERFFILE") => {
                return Err(Error::new("jitgraft does not read perf.data version 1 (Linux 2.6)").at_offset(0));
            }
            _ if head.is_empty() => return Err(Error::new("the file is empty: nothing was recorded")),
            _ => {
                let why = "the file is not a perf.data file: it does not start with PERFILE2";
                return Err(Error::new(why).at_offset(0));
            }
        };
        let mut cursor = Cursor::new(head, 0, endian);
        cursor.bytes(8, "magic")?;
        let size = cursor.u64("header size")?;
        if size == PIPE_HEADER {
            return Ok(Self::pipe(endian));
        }
        if size < FILE_HEADER {
            return Err(Error::new(format!("the header size is {size}, neither 16 (pipe) nor at least 104 (file)"))
                .at_offset(8));
        }
        if (head.len() as u64) < FILE_HEADER {
            let why = format!(
                "the file is truncated: it has {} bytes, and the header alone has {FILE_HEADER}; record again",
                head.len()
            );
            return Err(Error::new(why).at_offset(head.len() as u64));
        }
        let attr_entry_size = cursor.u64("attr size")?;
        let attrs = FileSection::parse(&mut cursor, "attrs section")?;
        let data = FileSection::parse(&mut cursor, "data section")?;
        // Skipped: perf no longer writes event types.
        FileSection::parse(&mut cursor, "event types section")?;
        // The bitmap has 32 bytes. Its first half has the bit of HOSTNAME, by which `feature_bits` finds out the width
        // of the bitmap's words.
        let (first, second) = (cursor.bytes(16, "feature bits")?, cursor.bytes(16, "feature bits")?);
        let (first_bits, wide_feature_words) = feature_bits(first, endian);
        let features = [first_bits, bits_in_words(second, endian, wide_feature_words)];
        let header =
            Self { endian, form: Form::File, size, attr_entry_size, attrs, data, features, wide_feature_words };
        header.check()?;
        Ok(header)
    }

    /// Makes the header of a recording in pipe form. Such a header only states the byte order, so the fields that
    /// belong to file form are empty. If the recording is converted to file form, its feature bits are written in words
    /// of 64 bits (`wide_feature_words`).
    pub fn pipe(endian: Endian) -> Self {
        let none = FileSection::default();
        let data = FileSection { offset: PIPE_HEADER, size: 0 };
        Self {
            endian,
            form: Form::Pipe,
            size: PIPE_HEADER,
            attr_entry_size: 0,
            attrs: none,
            data,
            features: [0; 2],
            wide_feature_words: true,
        }
    }

    /// Fails if sizes in the header contradict each other.
    fn check(&self) -> Result<()> {
        let entry = self.attr_entry_size;
        if entry < ATTR_SIZE_MIN + SECTION {
            let least = ATTR_SIZE_MIN + SECTION;
            return Err(
                Error::new(format!("the attr size is {entry} bytes, but must be at least {least}")).at_offset(16)
            );
        }
        if self.attrs.size == 0 || !self.attrs.size.is_multiple_of(entry) {
            let size = self.attrs.size;
            return Err(Error::new(format!(
                "the attrs section has {size} bytes, not a multiple of the attr size {entry}"
            ))
            .at_offset(32));
        }
        if self.data.offset.checked_add(self.data.size).is_none() {
            let FileSection { offset, size } = self.data;
            return Err(Error::new(format!("the data section at {offset:#x} of {size:#x} bytes ends beyond 2^64"))
                .at_offset(40));
        }
        Ok(())
    }

    /// Numbers of the feature sections that the file has, ascending. The feature table after the data has the same
    /// order.
    pub fn feature_numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let bits = self.features;
        (0..FEATURES).filter(move |bit| bits[*bit as usize / 128] & 1 << (bit % 128) != 0)
    }
}

/// Decodes 16 bytes of the feature bitmap, and returns whether its words have 64 bits. The bitmap is an array of C
/// longs, whose width decides where a bit is on a big-endian machine. They are taken to have 32 bits
/// only if the bitmap then contains HOSTNAME, which perf always writes, but doesn't contain it with 64-bit words.
fn feature_bits(bitmap: &[u8], endian: Endian) -> (u128, bool) {
    let (wide, narrow) = (bits_in_words(bitmap, endian, true), bits_in_words(bitmap, endian, false));
    let is_narrow = wide & 1 << HOSTNAME == 0 && narrow & 1 << HOSTNAME != 0;
    if is_narrow { (narrow, false) } else { (wide, true) }
}

/// Decodes 16 bytes of the feature bitmap as words of 64 bits (if `wide`) or 32 bits.
fn bits_in_words(bitmap: &[u8], endian: Endian, wide: bool) -> u128 {
    let word_len = match endian {
        // In little-endian order, bit N is in byte N / 8 whatever the width of the words, so read single bytes.
        Endian::Little => 1,
        Endian::Big if wide => 8,
        Endian::Big => 4,
    };
    let mut bits = 0;
    for (index, word) in bitmap.chunks(word_len).enumerate() {
        let value = word.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        bits |= value << (index * word_len * 8);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_bits_of_each_kind_of_machine() {
        let mut little = [0; 16];
        little[0] = 0b1100;
        assert_eq!(feature_bits(&little, Endian::Little), (0b1100, true));
        let mut wide = [0; 16];
        wide[7] = 0b1100;
        wide[15] = 1;
        assert_eq!(feature_bits(&wide, Endian::Big), (1 << 64 | 0b1100, true));
        let mut narrow = [0; 16];
        narrow[3] = 0b1000;
        narrow[7] = 1;
        assert_eq!(feature_bits(&narrow, Endian::Big), (1 << 32 | 0b1000, false));
    }

    #[test]
    fn a_false_header_is_named() {
        let error = |head: &[u8]| Header::parse(head).unwrap_err().to_string();
        assert!(
            error(b"ELF").starts_with("at byte 0x0: the file is not a perf.data file: it does not start with PERFILE2")
        );
        assert_eq!(error(b""), "the file is empty: nothing was recorded");
        let mut head = b"PERFILE2".to_vec();
        head.extend(40u64.to_le_bytes());
        assert_eq!(error(&head), "at byte 0x8: the header size is 40, neither 16 (pipe) nor at least 104 (file)");
        head[8] = 104;
        assert_eq!(
            error(&head),
            "at byte 0x10: the file is truncated: it has 16 bytes, and the header alone has 104; record again"
        );
        head[8] = 16;
        assert_eq!(Header::parse(&head).unwrap().form, Form::Pipe);
    }
}
