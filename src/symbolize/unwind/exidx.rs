//! The exception index of 32-bit Arm (`.ARM.exidx`, `.ARM.extab`). It tells how to unwind each function of a file.
//! Often it is all there is, because distributions ship files without call frame information.
//!
//! Index entries are valid only where a function calls another. The running function may still be in its prologue, so
//! its entry is only partly reliable (see [`ExidxRow::returns_by_link`]).
//!
//! Spec: ehabi32, "Exception Handling ABI for the Arm Architecture", sections 6, 7 and 10.3.

use super::cfi::Lost;
use super::registers::{Machine, Registers, arm};
use crate::symbolize::symbols::image::Image;
use object::{Object, ObjectSection};
use std::borrow::Cow;

/// The exception index of a file for 32-bit Arm.
#[derive(Debug)]
pub struct ExidxTable<'a> {
    index: Cow<'a, [u8]>,
    /// The link-time address of the section with the index.
    addr: u64,
    image: &'a Image,
}

/// How to unwind one function: its entry in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExidxRow {
    /// The function's first link-time address.
    pub start: u64,
    /// The operations that undo the function's prologue, in the spec's encoding. `None` if the function is marked as
    /// having no caller.
    operations: Option<Box<[u8]>>,
}

/// The size of an index entry in bytes.
const ENTRY_SIZE: usize = 8;
/// The value in the index for a function that must not be unwound.
const EXIDX_CANTUNWIND: u32 = 1;
/// The maximum number of words with operations in an entry. Their number is stored in a byte.
const MAX_WORDS: usize = 255;

fn read_word(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Decodes a `prel31`: a signed 31-bit distance from `word_addr`, the address of the word itself. Returns the address
/// it leads to.
fn decode_prel31(word: u32, word_addr: u64) -> u64 {
    word_addr.wrapping_add_signed(i64::from((word << 1).cast_signed() >> 1)) & 0xffff_ffff
}

impl<'a> ExidxTable<'a> {
    /// Reads the index of a file. `None` if the file is not for little-endian 32-bit Arm or has no index.
    pub fn from_image(image: &'a Image) -> Option<Self> {
        let object = image.object().ok()?;
        let machine = Machine::from_elf(image.machine(), object.is_64());
        if machine != Some(Machine::Arm) || !object.is_little_endian() {
            return None;
        }
        let addr = object.section_by_name(".ARM.exidx")?.address();
        let index = image.section(&object, ".ARM.exidx");
        (index.len() >= ENTRY_SIZE).then_some(Self { index, addr, image })
    }

    /// How to unwind the function at a link-time address. `None` if the address is before all functions in the index,
    /// or if the entry is damaged. Entries don't state where functions end, so the last one has no end.
    pub fn row(&self, addr: u64) -> Option<ExidxRow> {
        // A binary search in the entries, which are sorted by address. It gives the number of functions that start at
        // `addr` or before it.
        let (mut low, mut high) = (0, self.index.len() / ENTRY_SIZE);
        while low < high {
            let middle = low.midpoint(high);
            if self.function_start(middle)? <= addr { low = middle + 1 } else { high = middle }
        }
        let entry = low.checked_sub(1)?;
        let start = self.function_start(entry)?;
        let value_offset = entry * ENTRY_SIZE + 4;
        let value = read_word(&self.index, value_offset)?;
        let operations = match value {
            EXIDX_CANTUNWIND => None,
            // If the highest bit is set, the entry has the operations itself, all in this word (`&[]`: none follow).
            // Otherwise, it has a pointer to them.
            _ if value >> 31 == 1 => Some(read_compact(value, &[])?),
            _ => Some(self.read_extab(decode_prel31(value, self.addr + value_offset as u64))?),
        };
        Some(ExidxRow { start, operations })
    }

    /// The first link-time address of the function described by the index entry with number `entry`.
    fn function_start(&self, entry: usize) -> Option<u64> {
        let offset = entry * ENTRY_SIZE;
        Some(decode_prel31(read_word(&self.index, offset)?, self.addr.wrapping_add(offset as u64)))
    }

    /// Reads the operations of the entry at this link-time address in `.ARM.extab`.
    fn read_extab(&self, addr: u64) -> Option<Box<[u8]>> {
        // The entry's length isn't known yet, so this takes as many bytes as the longest entry has, or as many as there
        // are.
        let bytes = self.image.loaded(addr..addr.checked_add(4 * (MAX_WORDS as u64 + 2))?)?;
        let first = read_word(bytes, 0)?;
        // If the highest bit is set, the entry has one of the standard formats (the compact model).
        if first >> 31 == 1 {
            return read_compact(first, &bytes[4..]);
        }
        // The highest bit isn't set, so the first word is a pointer to a personality routine that isn't one of the
        // standard ones, and the routine defines what follows. For GCC's routines, it is like the second format of the
        // compact model, without the byte for the format: the highest byte is the number of further words.
        let second = read_word(bytes, 4)?;
        read_operations(&second.to_be_bytes()[1..], (second >> 24) as usize, &bytes[8..])
    }
}

/// Reads operations in the compact model's three formats. `first` is the entry's first word, `following` the bytes
/// after it. `None` for other formats, or if there are too few bytes.
fn read_compact(first: u32, following: &[u8]) -> Option<Box<[u8]>> {
    let bytes = first.to_be_bytes();
    match first >> 24 & 15 {
        0 => read_operations(&bytes[1..], 0, following),
        1 | 2 => read_operations(&bytes[2..], bytes[1].into(), following),
        _ => None,
    }
}

/// Reads operations: first those in the bytes `first`, then those in the first `words` words of `following`. The first
/// operation in a word is in its highest byte. `None` if `following` is too short.
fn read_operations(first: &[u8], words: usize, following: &[u8]) -> Option<Box<[u8]>> {
    let mut operations = first.to_vec();
    for index in 0..words {
        operations.extend(read_word(following, 4 * index)?.to_be_bytes());
    }
    Some(operations.into())
}

impl ExidxRow {
    /// True if it is certain that at this link-time address the return address is in the link register: the address is
    /// the function's first instruction, or the function never saves the register.
    pub fn returns_by_link(&self, addr: u64) -> bool {
        addr == self.start || self.operations.as_deref().is_some_and(keeps_link)
    }

    /// Computes the caller's registers, assuming that the function is at a call. `read` reads a word of the stack.
    /// `None` if there is no caller (the entry says that the function can't be unwound). [`Lost`] if a value that is
    /// needed isn't known.
    pub fn caller(&self, callee: &Registers, read: &impl Fn(u64) -> Option<u64>) -> Result<Option<Registers>, Lost> {
        let Some(operations) = &self.operations else { return Ok(None) };
        let mut frame = ExidxFrame { registers: *callee, sp: callee.sp().ok_or(Lost)?, has_pc: false, read };
        frame.run(operations).ok_or(Lost)?;
        let ExidxFrame { mut registers, sp, has_pc, .. } = frame;
        // Popping a value to the program counter returns to it. If nothing was popped there, the return address is in
        // the link register.
        let return_addr = registers.get(if has_pc { arm::PC } else { arm::LR }).ok_or(Lost)?;
        registers.set(arm::SP, sp);
        registers.set(arm::PC, Machine::Arm.code_address(return_addr));
        registers.forget(arm::LR);
        Ok(Some(registers))
    }
}

/// True if the operations don't restore the link register and don't take the return address from elsewhere. To find
/// out, executes them with 1 in each register and only zeros on the stack: the 1 in the link register must be left.
fn keeps_link(operations: &[u8]) -> bool {
    let mut registers = Registers::new(Machine::Arm);
    (0..=arm::PC).for_each(|register| registers.set(register, 1));
    let mut frame = ExidxFrame { registers, sp: 1, has_pc: false, read: &|_| Some(0) };
    frame.run(operations).is_some() && !frame.has_pc && frame.registers.get(arm::LR) == Some(1)
}

/// The state of a frame while the operations of its function are executed.
struct ExidxFrame<'r, R> {
    registers: Registers,
    /// The virtual stack pointer (`vsp` in the spec).
    sp: u64,
    /// True if the program counter was popped: it then holds the return address.
    has_pc: bool,
    /// Reads the word at an address of the stack; `None` if that word isn't known.
    read: &'r R,
}

impl<R: Fn(u64) -> Option<u64>> ExidxFrame<'_, R> {
    /// Executes operations, which pop registers and move the virtual stack pointer (ehabi32, table 4). `None` if an
    /// operation fails or isn't supported.
    fn run(&mut self, operations: &[u8]) -> Option<()> {
        let mut bytes = operations.iter().copied();
        while let Some(byte) = bytes.next() {
            // The operation as a wider number. Its lowest bits often state how many words to skip, minus 1.
            let bits = u64::from(byte);
            match byte {
                // Raise or lower the stack pointer by 4 to 256 bytes. To lower it, a negative number is added.
                0x00..=0x3f => self.raise((bits << 2) + 4),
                0x40..=0x7f => self.raise(((bits & 0x3f) << 2).wrapping_add(4).wrapping_neg()),
                // Pop registers from r4 to r15, as a mask says.
                0x80..=0x8f => {
                    let mask = u16::from(byte & 15) << 8 | u16::from(bytes.next()?);
                    // An empty mask (0x8000) means that the function can't be unwound.
                    if mask == 0 {
                        return None;
                    }
                    self.pop(mask << 4)?;
                }
                // Take the stack pointer from a register. r13 and r15 are reserved.
                0x9d | 0x9f => return None,
                0x90..=0x9f => self.sp = self.registers.get(u16::from(byte & 15))?,
                // Pop r4 and up to seven registers after it, and perhaps the link register.
                0xa0..=0xaf => {
                    let link = if byte & 8 == 0 { 0 } else { 1 << arm::LR };
                    // A mask with a bit for each of the registers from r4 on. The lowest three bits of the operation
                    // say how many there are after r4.
                    let from_r4 = ((2_u16 << (byte & 7)) - 1) << 4;
                    self.pop(from_r4 | link)?;
                }
                // The list of operations ends here.
                0xb0 => return Some(()),
                // Pop registers from r0 to r3, as a mask says. A mask of 0 or above 15 is reserved.
                0xb1 => self.pop(bytes.next().filter(|mask| (1..16).contains(mask))?.into())?,
                // Raise the stack pointer by 0x204 bytes and a LEB128 number of words.
                0xb2 => {
                    let mut number = 0_u64;
                    // Each byte has 7 bits of the number. More than 5 bytes aren't read.
                    for shift in (0..).step_by(7).take(5) {
                        let byte = bytes.next()?;
                        number |= u64::from(byte & 0x7f) << shift;
                        if byte & 0x80 == 0 {
                            break;
                        }
                    }
                    self.raise(0x204 + (number << 2));
                }
                // The four cases below skip saved vector registers of 8 bytes each. No return address depends on these.
                // In the first two cases, the instruction that saved them (`fstmx`) has used 4 more bytes.
                0xb3 => self.raise((u64::from(bytes.next()? & 15) + 1) * 8 + 4),
                0xb8..=0xbf => self.raise(((bits & 7) + 1) * 8 + 4),
                0xc8 | 0xc9 => self.raise((u64::from(bytes.next()? & 15) + 1) * 8),
                0xd0..=0xd7 => self.raise(((bits & 7) + 1) * 8),
                // The operation is for other vector registers, or isn't defined. Without it, the stack pointer would be
                // wrong.
                _ => return None,
            }
        }
        Some(())
    }

    /// Adds a number of bytes to the virtual stack pointer (`vsp` in the Arm EHABI), which wraps around at 32 bits.
    fn raise(&mut self, bytes: u64) {
        self.sp = self.sp.wrapping_add(bytes) & 0xffff_ffff;
    }

    /// Pops the registers in `mask` from the stack, the one with the lowest number first. `None` if the stack can't be
    /// read.
    fn pop(&mut self, mask: u16) -> Option<()> {
        let mut sp = self.sp;
        for register in (0..16).filter(|register| mask >> register & 1 == 1) {
            self.registers.set(register, (self.read)(sp)?);
            sp = sp.wrapping_add(4) & 0xffff_ffff;
        }
        self.has_pc |= mask >> arm::PC & 1 == 1;
        // If the stack pointer itself was popped, its value replaces the computed one.
        self.sp = if mask >> arm::SP & 1 == 1 { self.registers.get(arm::SP)? } else { sp };
        Some(())
    }
}

/// True if `code` ends with a call instruction of Arm or Thumb. The code before a return address always does.
pub(crate) fn ends_in_call(code: &[u8]) -> bool {
    let Some(second) = code.last_chunk().map(|bytes| u16::from_le_bytes(*bytes)) else { return false };
    let is_thumb_blx_register = second & 0xff87 == 0x4780;
    let Some(word) = code.last_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return is_thumb_blx_register };
    let first = word as u16;
    // `bl` or `blx` with an address, which consists of two halfwords.
    let is_thumb_bl = first & 0xf800 == 0xf000 && second & 0xc000 == 0xc000;
    // In Arm code, `bl` has 1011 in bits 24 to 27, after any condition. The second pattern is `blx` with an address.
    let is_bl = word >> 24 & 15 == 0b1011 || word >> 25 == 0b111_1101;
    let is_blx_register = word & 0x0fff_fff0 == 0x012f_ff30;
    is_thumb_blx_register || is_thumb_bl || is_bl || is_blx_register
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(sp: u64, fp: u64, link: u64) -> Registers {
        let mut registers = Registers::new(Machine::Arm);
        for (register, value) in [(arm::SP, sp), (7, fp), (arm::LR, link), (arm::PC, 0x1_0000)] {
            registers.set(register, value);
        }
        registers
    }

    fn row(operations: &[u8]) -> ExidxRow {
        ExidxRow { start: 0x8000, operations: Some(operations.into()) }
    }

    #[test]
    fn operations_of_compilers() {
        let read = |addr: u64| (addr < 0x9000).then_some(addr + 1);
        let caller = |operations: &[u8]| {
            let caller = row(operations).caller(&registers(0x1000, 0x2000, 0x111), &read).ok().flatten()?;
            Some((caller.pc()?, caller.sp()?, caller.get(4)))
        };
        // The operations, one line each: nothing saved; vsp += 8, pop {r4, lr}; vsp = r7, pop {r4-r7, lr}; pop {r4,
        // pc}; pop {d8}, vsp += 0x204 * 2
        assert_eq!(caller(&[0xb0, 0xb0, 0xb0]), Some((0x110, 0x1000, None)));
        assert_eq!(caller(&[0x01, 0xa8, 0xb0]), Some((0x100c, 0x1010, Some(0x1009))));
        assert_eq!(caller(&[0x97, 0xab, 0xb0]), Some((0x2010, 0x2014, Some(0x2001))));
        assert_eq!(caller(&[0x88, 0x01, 0xb0]), Some((0x1004, 0x1008, Some(0x1001))));
        assert_eq!(caller(&[0xd0, 0xb2, 0x81, 0x01, 0xb0]), Some((0x110, 0x1000 + 8 + 0x204 + 0x204, None)));
        // Operations that must not be unwound, are truncated, are reserved, or read beyond the copy of the stack.
        for operations in [&[0x80, 0][..], &[0x80], &[0x9d], &[0xb1, 0], &[0xff], &[0x7f, 0xb2, 0x80], &[0x9f]] {
            assert_eq!(caller(operations), None, "{operations:x?}");
        }
        assert_eq!(row(&[0xa8]).caller(&registers(0x9000, 0, 0), &read), Err(Lost));
        let last = ExidxRow { start: 0, operations: None };
        assert_eq!(last.caller(&registers(0, 0, 0), &read), Ok(None));
    }

    #[test]
    fn the_instruction_before_a_return_address() {
        // The calls: bl; blx r3; blx to Thumb code; Thumb bl; Thumb blx r3
        for call in
            [&[0x10, 0, 0, 0xeb][..], &[0x33, 0xff, 0x2f, 0xe1], &[0, 0, 0, 0xfb], &[0, 0xf0, 0, 0xf8], &[0x98, 0x47]]
        {
            assert!(ends_in_call(call), "{call:x?}");
        }
        // No calls: mov r0, r0; Arm bx lr; Thumb bx lr; too short; empty
        for other in [&[0, 0, 0xa0, 0xe1][..], &[0x1e, 0xff, 0x2f, 0xe1], &[0x70, 0x47], &[1], &[]] {
            assert!(!ends_in_call(other), "{other:x?}");
        }
    }

    #[test]
    fn words_of_the_compact_model() {
        assert_eq!(read_compact(0x80a8_b0b0, &[]).as_deref(), Some(&[0xa8, 0xb0, 0xb0][..]));
        assert_eq!(read_compact(0x8101_a8b0, &[4, 3, 2, 1]).as_deref(), Some(&[0xa8, 0xb0, 1, 2, 3, 4][..]));
        assert_eq!((read_compact(0x8101_a8b0, &[]), read_compact(0x8300_0000, &[])), (None, None));
        assert_eq!((decode_prel31(0x7fff_fff0, 0x1000), decode_prel31(0x10, 0x1000)), (0xff0, 0x1010));
    }
}
