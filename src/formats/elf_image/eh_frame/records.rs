//! Parses the CIEs and FDEs of a code range, and encodes them for the image (LSB Core 5.0, 10.6.1, and DWARF 5, 6.4.1).

use crate::bytes::byte_writer::ByteWriter;
use crate::formats::elf_image::target::Target;
use crate::model::code::Code;
use gimli::leb128::write::Leb128;
use gimli::{EndianSlice, Reader, RunTimeEndian, constants as dw};

/// A common information entry: what several FDEs share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cie<'data> {
    /// The instructions state advances of the location in units of this many bytes.
    code_align: u64,
    /// The instructions state most offsets in units of this many bytes.
    data_align: i64,
    /// The number of the register, real or not, that holds the return address.
    return_register: u64,
    /// True for the frame of a signal handler: its caller's address isn't a return address.
    signal_frame: bool,
    /// On aarch64: return addresses are signed with key B.
    key_b: bool,
    /// How FDEs with this CIE encode addresses (`DW_EH_PE_*`).
    encoding: dw::DwEhPe,
    /// True if FDEs contain augmentation data preceded by its length.
    has_sized_augmentation: bool,
    /// The call frame instructions.
    instructions: &'data [u8],
}

/// A frame description entry: how to unwind from a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fde<'data> {
    pub(super) cie: Cie<'data>,
    /// Start of the described range, as an offset in the code.
    pub(super) start: u64,
    /// Length of the described range in bytes.
    len: u64,
    /// The call frame instructions that follow those of the CIE.
    instructions: &'data [u8],
}

type RecordReader<'data> = EndianSlice<'data, RunTimeEndian>;

/// Reads a pointer in the given format. `None` if the format isn't supported or the data ends.
fn read_pointer(reader: &mut RecordReader, format: dw::DwEhPe, address_size: u8) -> Option<u64> {
    let number = match format {
        dw::DW_EH_PE_absptr if address_size == 4 => reader.read_u32().map(u64::from),
        dw::DW_EH_PE_absptr | dw::DW_EH_PE_udata8 | dw::DW_EH_PE_sdata8 => reader.read_u64(),
        dw::DW_EH_PE_uleb128 => reader.read_uleb128(),
        dw::DW_EH_PE_udata2 => reader.read_u16().map(u64::from),
        dw::DW_EH_PE_udata4 => reader.read_u32().map(u64::from),
        dw::DW_EH_PE_sleb128 => reader.read_sleb128().map(|number| number as u64),
        dw::DW_EH_PE_sdata2 => reader.read_i16().map(|number| number as u64),
        dw::DW_EH_PE_sdata4 => reader.read_i32().map(|number| number as u64),
        _ => return None,
    };
    number.ok()
}

/// Parses all FDEs of the section `eh_frame`. Its pc-relative pointers assume that the section follows `code` in
/// memory, at the next multiple of 8. `None` if the section is malformed or describes addresses outside of `code`.
pub(super) fn parse<'data>(
    eh_frame: &'data [u8],
    code: &Code<'data>,
    endian: RunTimeEndian,
    address_size: u8,
) -> Option<Vec<Fde<'data>>> {
    let section = EndianSlice::new(eh_frame, endian);
    let mut reader = section;
    // The CIEs so far, each with its offset in the section. The offsets increase.
    let mut cies: Vec<(usize, Cie)> = Vec::new();
    let mut fdes = Vec::new();
    while !reader.is_empty() {
        let start = reader.offset_from(section);
        let len = reader.read_u32().ok()?;
        // The end mark of the section.
        if len == 0 {
            break;
        }
        let mut body = reader.split(len as usize).ok()?;
        let id_offset = body.offset_from(section);
        match body.read_u32().ok()? {
            // A CIE has the ID 0.
            0 => cies.push((start, Cie::parse(body, address_size)?)),
            // An FDE refers to its CIE by the distance from this field back to the CIE.
            distance => {
                let cie_offset = id_offset.checked_sub(distance as usize)?;
                let index = cies.binary_search_by_key(&cie_offset, |(offset, _)| *offset).ok()?;
                let (_, cie) = &cies[index];
                let cie = cie.clone();
                fdes.push(Fde::parse(body, body.offset_from(section), cie, code, address_size)?);
            }
        }
    }
    Some(fdes)
}

impl<'data> Cie<'data> {
    /// Parses the body of a CIE, which follows the CIE's ID. `None` if the body is malformed, or has a version or an
    /// augmentation that we don't know.
    fn parse(mut body: RecordReader<'data>, address_size: u8) -> Option<Self> {
        let version = body.read_u8().ok()?;
        let augmentation = body.read_null_terminated_slice().ok()?.slice();
        let mut cie = Self {
            code_align: body.read_uleb128().ok()?,
            data_align: body.read_sleb128().ok()?,
            return_register: match version {
                1 => u64::from(body.read_u8().ok()?),
                3 => body.read_uleb128().ok()?,
                _ => return None,
            },
            signal_frame: false,
            key_b: false,
            encoding: dw::DW_EH_PE_absptr,
            has_sized_augmentation: false,
            instructions: &[],
        };
        // `z`: there is augmentation data, preceded by its length.
        if let Some(letters) = augmentation.strip_prefix(b"z") {
            cie.has_sized_augmentation = true;
            cie.read_augmentation(letters, read_sized(&mut body)?, address_size)?;
        } else if !augmentation.is_empty() {
            return None;
        }
        cie.instructions = body.slice();
        check_instructions(body, address_size)?;
        Some(cie)
    }

    /// Reads the augmentation data of a CIE, which has one item for each of the augmentation string's `letters`. `None`
    /// if a letter is unknown, or the data is too short.
    fn read_augmentation(&mut self, letters: &[u8], mut data: RecordReader, address_size: u8) -> Option<()> {
        for letter in letters {
            match letter {
                // The format of addresses in FDEs.
                b'R' => self.encoding = dw::DwEhPe(data.read_u8().ok()?),
                // `L` states the format of pointers to language-specific data, and `P` a pointer to a personality
                // routine. The image has neither.
                b'L' => data.skip(1).ok()?,
                b'P' => {
                    let encoding = dw::DwEhPe(data.read_u8().ok()?);
                    read_pointer(&mut data, encoding.format(), address_size)?;
                }
                b'S' => self.signal_frame = true,
                b'B' => self.key_b = true,
                _ => return None,
            }
        }
        Some(())
    }

    /// Encodes the CIE for the image. The encoded CIE says that each address in an FDE is relative to the position of
    /// that address. The version is 1 unless the return register's number is too large for version 1.
    pub(super) fn encode(&self, target: Target) -> Vec<u8> {
        let wide_register = self.return_register > 0xff;
        let mut body = vec![0; 4]; // the ID of a CIE
        body.push(if wide_register { 3 } else { 1 });
        body.extend_from_slice(b"zR");
        body.extend(self.signal_frame.then_some(b'S'));
        body.extend(self.key_b.then_some(b'B'));
        body.push(0);
        body.extend_from_slice(Leb128::unsigned(self.code_align).bytes());
        body.extend_from_slice(Leb128::signed(self.data_align).bytes());
        if wide_register {
            body.extend_from_slice(Leb128::unsigned(self.return_register).bytes());
        } else {
            body.push(self.return_register as u8);
        }
        // The augmentation data: its length, and the format of addresses.
        body.extend_from_slice(&[1, dw::DW_EH_PE_pcrel.0 | dw::DW_EH_PE_sdata4.0]);
        body.extend_from_slice(self.instructions);
        let mut out = Vec::with_capacity(body.len() + 12);
        push_record(&mut out, &body, target);
        out
    }
}

impl<'data> Fde<'data> {
    /// Parses the body of an FDE. `offset` is where the body is in the section: the first field is the start of the
    /// described range, which may be relative to the field's own position. `None` if the body is malformed or describes
    /// addresses outside of `code`.
    fn parse(
        mut body: RecordReader<'data>,
        offset: usize,
        cie: Cie<'data>,
        code: &Code,
        address_size: u8,
    ) -> Option<Self> {
        // The position of the field, as an offset from the start of the code. perf and V8 put the section at the next
        // multiple of 8 after the code.
        let position = code.size.checked_next_multiple_of(8)?.checked_add(offset as u64)?;
        let begin = read_pointer(&mut body, cie.encoding.format(), address_size)?;
        let start = match cie.encoding.application() {
            dw::DW_EH_PE_pcrel => position.wrapping_add(begin),
            dw::DW_EH_PE_absptr => begin.wrapping_sub(code.addr.0),
            _ => return None,
        };
        // Addresses of 32-bit programs wrap around.
        let start = if address_size == 4 { start & u64::from(u32::MAX) } else { start };
        // The length has the same format, but is always unsigned: `& 7` clears the bit for signed numbers.
        let len = read_pointer(&mut body, dw::DwEhPe(cie.encoding.format().0 & 7), address_size)?;
        if start.checked_add(len)? > code.size {
            return None;
        }
        if cie.has_sized_augmentation {
            read_sized(&mut body)?;
        }
        check_instructions(body, address_size)?;
        Some(Self { cie, start, len, instructions: body.slice() })
    }

    /// Appends the FDE of code at address `pc`. `addr` will be the FDE's own address, `cie_addr` is the address of its
    /// CIE.
    pub(super) fn encode(&self, target: Target, addr: u64, cie_addr: u64, pc: u64, out: &mut Vec<u8>) {
        let mut body = ByteWriter::append_to(Vec::with_capacity(self.instructions.len() + 16), target.endian);
        // The distances to the CIE and to the code are relative to their own fields, which follow the length of the
        // record (4 bytes).
        for value in [(addr + 4).wrapping_sub(cie_addr), pc.wrapping_sub(addr + 8), self.len] {
            body.u32(value as u32);
        }
        body.bytes(&[0]); // no augmentation data
        body.bytes(self.instructions);
        push_record(out, &body.finish(), target);
    }
}

/// Appends a record to `out`: its length, then its body, padded with DW_CFA_nop so that the next record is aligned.
fn push_record(out: &mut Vec<u8>, body: &[u8], target: Target) {
    // The length counts body and padding, but not its own four bytes.
    let len = (4 + body.len()).next_multiple_of(usize::from(target.address_size())) - 4;
    let mut bytes = [0; 4];
    target.endian.put(len as u64, &mut bytes);
    out.extend_from_slice(&bytes);
    out.extend_from_slice(body);
    out.resize(out.len() + len - body.len(), dw::DW_CFA_nop.0);
}

/// Reads a length, and splits off that many bytes.
fn read_sized<'data>(reader: &mut RecordReader<'data>) -> Option<RecordReader<'data>> {
    let len = reader.read_uleb128().ok()?;
    reader.split(usize::try_from(len).ok()?).ok()
}

/// Checks that call frame instructions are known and complete; `None` if they aren't. They are copied, so none of them
/// may contain an address (DW_CFA_set_loc), which would be wrong in the image.
fn check_instructions(mut reader: RecordReader, address_size: u8) -> Option<()> {
    while !reader.is_empty() {
        let byte = reader.read_u8().ok()?;
        // If the upper two bits aren't 0, they are the instruction, and the other bits an operand.
        let operands = match dw::DwCfa(byte & 0xc0) {
            dw::DW_CFA_advance_loc | dw::DW_CFA_restore => Operands::NONE,
            dw::DW_CFA_offset => Operands::numbers(1),
            _ => Operands::find(dw::DwCfa(byte), address_size)?,
        };
        reader.skip(operands.bytes).ok()?;
        for _ in 0..operands.numbers {
            reader.skip_leb128().ok()?;
        }
        if operands.has_block {
            read_sized(&mut reader)?;
        }
    }
    Some(())
}

/// The operands of a call frame instruction, in the order in which they are stored.
#[derive(Clone, Copy)]
struct Operands {
    /// The length in bytes of the operands of fixed size, which come first.
    bytes: usize,
    /// How many LEB128 numbers follow.
    numbers: usize,
    /// True if a block of bytes follows, which begins with its length.
    has_block: bool,
}

impl Operands {
    const NONE: Self = Self { bytes: 0, numbers: 0, has_block: false };

    const fn bytes(bytes: usize) -> Self {
        Self { bytes, ..Self::NONE }
    }

    const fn numbers(numbers: usize) -> Self {
        Self { numbers, ..Self::NONE }
    }

    /// A block after this many LEB128 numbers.
    const fn block_after(numbers: usize) -> Self {
        Self { numbers, has_block: true, ..Self::NONE }
    }

    /// The operands of an instruction, whose code takes up its whole first byte. `None` if the instruction is unknown
    /// or contains an address.
    fn find(instruction: dw::DwCfa, address_size: u8) -> Option<Self> {
        Some(match instruction {
            dw::DW_CFA_nop | dw::DW_CFA_remember_state | dw::DW_CFA_restore_state | dw::DW_CFA_GNU_window_save => {
                Self::NONE
            }
            dw::DW_CFA_advance_loc1 => Self::bytes(1),
            dw::DW_CFA_advance_loc2 => Self::bytes(2),
            dw::DW_CFA_advance_loc4 => Self::bytes(4),
            dw::DW_CFA_MIPS_advance_loc8 if address_size == 8 => Self::bytes(8),
            dw::DW_CFA_restore_extended | dw::DW_CFA_undefined | dw::DW_CFA_same_value => Self::numbers(1),
            dw::DW_CFA_def_cfa_register | dw::DW_CFA_def_cfa_offset | dw::DW_CFA_def_cfa_offset_sf => Self::numbers(1),
            dw::DW_CFA_GNU_args_size => Self::numbers(1),
            dw::DW_CFA_offset_extended | dw::DW_CFA_offset_extended_sf | dw::DW_CFA_GNU_negative_offset_extended => {
                Self::numbers(2)
            }
            dw::DW_CFA_register | dw::DW_CFA_def_cfa | dw::DW_CFA_def_cfa_sf => Self::numbers(2),
            dw::DW_CFA_val_offset | dw::DW_CFA_val_offset_sf => Self::numbers(2),
            dw::DW_CFA_def_cfa_expression => Self::block_after(0),
            dw::DW_CFA_expression | dw::DW_CFA_val_expression => Self::block_after(1),
            _ => return None,
        })
    }
}
