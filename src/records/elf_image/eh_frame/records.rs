//! CIEs and FDEs of one code range: taken apart, and put together for the image. LSB Core 5.0, 10.6.1, and DWARF 5,
//! 6.4.1.

use crate::model::code::Code;
use crate::records::elf_image::target::Target;
use gimli::constants as dw;
use gimli::{Endianity, RunTimeEndian};

/// The common part of FDEs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cie<'data> {
    code_align: u64,
    data_align: i64,
    return_register: u64,
    signal_frame: bool,
    /// aarch64: return addresses are signed with key B.
    key_b: bool,
    /// The encoding of addresses in FDEs.
    encoding: dw::DwEhPe,
    /// True if FDEs have an augmentation of given length.
    sized: bool,
    instructions: &'data [u8],
}

/// How to unwind from a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fde<'data> {
    pub(super) cie: Cie<'data>,
    /// From the start of the code.
    pub(super) start: u64,
    len: u64,
    instructions: &'data [u8],
}

/// A position in a section: reading past its end gives `None`.
#[derive(Clone, Copy)]
struct RecordReader<'data> {
    bytes: &'data [u8],
    at: usize,
    endian: RunTimeEndian,
}

impl<'data> RecordReader<'data> {
    fn take(&mut self, len: usize) -> Option<&'data [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| self.endian.read_u32(bytes))
    }

    fn leb(&mut self) -> Option<(u64, u32, bool)> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some((value, shift, byte & 0x40 != 0));
            }
        }
    }

    fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, ..)| value)
    }

    fn sleb(&mut self) -> Option<i64> {
        let (value, bits, negative) = self.leb()?;
        let sign = if negative && bits < 64 { u64::MAX << bits } else { 0 };
        Some((value | sign) as i64)
    }

    /// A number in one of the formats of a pointer.
    fn formatted(&mut self, format: dw::DwEhPe, address_size: u8) -> Option<u64> {
        let endian = self.endian;
        Some(match format {
            dw::DW_EH_PE_absptr if address_size == 4 => u64::from(self.u32()?),
            dw::DW_EH_PE_absptr | dw::DW_EH_PE_udata8 | dw::DW_EH_PE_sdata8 => endian.read_u64(self.take(8)?),
            dw::DW_EH_PE_uleb128 => self.uleb()?,
            dw::DW_EH_PE_udata2 => u64::from(endian.read_u16(self.take(2)?)),
            dw::DW_EH_PE_udata4 => u64::from(self.u32()?),
            dw::DW_EH_PE_sleb128 => self.sleb()? as u64,
            dw::DW_EH_PE_sdata2 => i64::from(endian.read_u16(self.take(2)?) as i16) as u64,
            dw::DW_EH_PE_sdata4 => i64::from(self.u32()? as i32) as u64,
            _ => return None,
        })
    }
}

/// All FDEs of an `.eh_frame` that belongs directly behind `code`; `None` if it is malformed or describes other code.
pub(super) fn parse<'data>(
    eh_frame: &'data [u8],
    code: &Code<'data>,
    endian: RunTimeEndian,
    address_size: u8,
) -> Option<Vec<Fde<'data>>> {
    let mut reader = RecordReader { bytes: eh_frame, at: 0, endian };
    let mut cies: Vec<(usize, Cie)> = Vec::new();
    let mut fdes = Vec::new();
    while reader.at < eh_frame.len() {
        let start = reader.at;
        let len = reader.u32()?;
        if len == 0 {
            break;
        }
        let body = reader.take(usize::try_from(len).ok()?)?;
        let mut body = RecordReader { bytes: &eh_frame[..reader.at], at: reader.at - body.len(), endian };
        let id_at = body.at;
        match body.u32()? {
            0 => cies.push((start, Cie::parse(body, address_size)?)),
            back => {
                let cie_at = id_at.checked_sub(usize::try_from(back).ok()?)?;
                let cie = cies.iter().find(|(at, _)| *at == cie_at).map(|(_, cie)| cie.clone())?;
                fdes.push(Fde::parse(body, cie, code, address_size)?);
            }
        }
    }
    Some(fdes)
}

impl<'data> Cie<'data> {
    fn parse(mut body: RecordReader<'data>, address_size: u8) -> Option<Self> {
        let version = body.u8()?;
        let augmentation = &body.bytes[body.at..];
        let augmentation = &augmentation[..memchr::memchr(0, augmentation)?];
        body.take(augmentation.len() + 1)?;
        let mut cie = Self {
            code_align: body.uleb()?,
            data_align: body.sleb()?,
            return_register: match version {
                1 => u64::from(body.u8()?),
                3 => body.uleb()?,
                _ => return None,
            },
            signal_frame: false,
            key_b: false,
            encoding: dw::DW_EH_PE_absptr,
            sized: false,
            instructions: &[],
        };
        if let Some(letters) = augmentation.strip_prefix(b"z") {
            cie.sized = true;
            let data = body.uleb()?;
            let data = body.take(usize::try_from(data).ok()?)?;
            cie.augment(letters, RecordReader { bytes: data, at: 0, endian: body.endian }, address_size)?;
        } else if !augmentation.is_empty() {
            return None;
        }
        cie.instructions = &body.bytes[body.at..];
        check_instructions(cie.instructions, address_size, body.endian)?;
        Some(cie)
    }

    fn augment(&mut self, letters: &[u8], mut data: RecordReader, address_size: u8) -> Option<()> {
        for letter in letters {
            match letter {
                b'R' => self.encoding = dw::DwEhPe(data.u8()?),
                b'L' => _ = data.u8()?,
                b'P' => {
                    let encoding = dw::DwEhPe(data.u8()?);
                    data.formatted(encoding.format(), address_size)?;
                }
                b'S' => self.signal_frame = true,
                b'B' => self.key_b = true,
                _ => return None,
            }
        }
        Some(())
    }

    /// The CIE for the image: version 1 where the register's number allows it, FDE addresses relative to their place.
    pub(super) fn encode(&self, target: Target) -> Vec<u8> {
        let wide_register = self.return_register > 0xff;
        let mut body = vec![0; 4];
        body.push(if wide_register { 3 } else { 1 });
        body.extend_from_slice(b"zR");
        body.extend(self.signal_frame.then_some(b'S'));
        body.extend(self.key_b.then_some(b'B'));
        body.push(0);
        push_uleb(&mut body, self.code_align);
        push_sleb(&mut body, self.data_align);
        if wide_register {
            push_uleb(&mut body, self.return_register);
        } else {
            body.push(self.return_register as u8);
        }
        body.extend_from_slice(&[1, dw::DW_EH_PE_pcrel.0 | dw::DW_EH_PE_sdata4.0]);
        body.extend_from_slice(self.instructions);
        let mut out = Vec::with_capacity(body.len() + 12);
        push_record(&mut out, &body, target);
        out
    }
}

impl<'data> Fde<'data> {
    fn parse(mut body: RecordReader<'data>, cie: Cie<'data>, code: &Code, address_size: u8) -> Option<Self> {
        // perf and V8 put the section at the next multiple of 8 behind the code.
        let place = code.size.checked_next_multiple_of(8)?.checked_add(body.at as u64)?;
        let begin = body.formatted(cie.encoding.format(), address_size)?;
        let start = match cie.encoding.application() {
            dw::DW_EH_PE_pcrel => place.wrapping_add(begin),
            dw::DW_EH_PE_absptr => begin.wrapping_sub(code.addr.0),
            _ => return None,
        };
        let start = if address_size == 4 { start & u64::from(u32::MAX) } else { start };
        // The length has the same format, without its bit for a sign.
        let len = body.formatted(dw::DwEhPe(cie.encoding.format().0 & 7), address_size)?;
        if start.checked_add(len)? > code.size {
            return None;
        }
        if cie.sized {
            let skip = body.uleb()?;
            body.take(usize::try_from(skip).ok()?)?;
        }
        let instructions = &body.bytes[body.at..];
        check_instructions(instructions, address_size, body.endian)?;
        Some(Self { cie, start, len, instructions })
    }

    /// Appends the FDE, which will be at address `at`, for code at `pc`, with the CIE at `cie`.
    pub(super) fn encode(&self, target: Target, at: u64, cie: u64, pc: u64, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(self.instructions.len() + 16);
        // Both are relative to the field's own place: behind the length, and behind the CIE's distance.
        for value in [(at + 4).wrapping_sub(cie), pc.wrapping_sub(at + 8), self.len] {
            push_u32(&mut body, value as u32, target);
        }
        body.push(0); // no augmentation data
        body.extend_from_slice(self.instructions);
        push_record(out, &body, target);
    }
}

fn push_u32(out: &mut Vec<u8>, value: u32, target: Target) {
    let mut bytes = [0; 4];
    target.gimli_endian().write_u32(&mut bytes, value);
    out.extend_from_slice(&bytes);
}

/// Length and body, filled with DW_CFA_nop so that the next record is aligned.
fn push_record(out: &mut Vec<u8>, body: &[u8], target: Target) {
    let len = (4 + body.len()).next_multiple_of(usize::from(target.address_size())) - 4;
    push_u32(out, len as u32, target);
    out.extend_from_slice(body);
    out.resize(out.len() + len - body.len(), dw::DW_CFA_nop.0);
}

fn push_uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn push_sleb(out: &mut Vec<u8>, mut value: i64) {
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

/// True if the instructions are whole and none is tied to an address (DW_CFA_set_loc): they are copied unread.
fn check_instructions(bytes: &[u8], address_size: u8, endian: RunTimeEndian) -> Option<()> {
    let mut reader = RecordReader { bytes, at: 0, endian };
    while reader.at < bytes.len() {
        let byte = reader.u8()?;
        match dw::DwCfa(byte & 0xc0) {
            dw::DW_CFA_advance_loc | dw::DW_CFA_restore => continue,
            dw::DW_CFA_offset => _ = reader.uleb()?,
            _ => operands(&mut reader, dw::DwCfa(byte), address_size)?,
        }
    }
    Some(())
}

fn operands(reader: &mut RecordReader, instruction: dw::DwCfa, address_size: u8) -> Option<()> {
    match instruction {
        dw::DW_CFA_nop | dw::DW_CFA_remember_state | dw::DW_CFA_restore_state | dw::DW_CFA_GNU_window_save => {}
        dw::DW_CFA_advance_loc1 => _ = reader.take(1)?,
        dw::DW_CFA_advance_loc2 => _ = reader.take(2)?,
        dw::DW_CFA_advance_loc4 => _ = reader.take(4)?,
        dw::DW_CFA_MIPS_advance_loc8 if address_size == 8 => _ = reader.take(8)?,
        dw::DW_CFA_restore_extended | dw::DW_CFA_undefined | dw::DW_CFA_same_value => _ = reader.uleb()?,
        dw::DW_CFA_def_cfa_register | dw::DW_CFA_def_cfa_offset | dw::DW_CFA_def_cfa_offset_sf => _ = reader.uleb()?,
        dw::DW_CFA_GNU_args_size => _ = reader.uleb()?,
        dw::DW_CFA_offset_extended | dw::DW_CFA_offset_extended_sf | dw::DW_CFA_GNU_negative_offset_extended => {
            two(reader)?
        }
        dw::DW_CFA_register | dw::DW_CFA_def_cfa | dw::DW_CFA_def_cfa_sf => two(reader)?,
        dw::DW_CFA_val_offset | dw::DW_CFA_val_offset_sf => two(reader)?,
        dw::DW_CFA_def_cfa_expression => block(reader)?,
        dw::DW_CFA_expression | dw::DW_CFA_val_expression => {
            reader.uleb()?;
            block(reader)?;
        }
        _ => return None,
    }
    Some(())
}

fn two(reader: &mut RecordReader) -> Option<()> {
    reader.uleb()?;
    reader.uleb().map(drop)
}

fn block(reader: &mut RecordReader) -> Option<()> {
    let len = reader.uleb()?;
    reader.take(usize::try_from(len).ok()?).map(drop)
}
