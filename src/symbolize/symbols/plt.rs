//! Names the stubs of the procedure linkage table (PLT). Calls to other files go through such stubs, which have no
//! symbols. A stub jumps through a slot of the global offset table (GOT). It gets the name of the function whose
//! address the dynamic linker stores in that slot.
//!
//! The slot is read from the stub's instructions, so the same code handles all layouts: `.plt`, `.plt.got` and
//! `.plt.sec`, with and without branch tracking, from every linker. Spec: x86-64 and i386 psABI, "Procedure Linkage
//! Table"; AArch64 ELF, "PLT"; RISC-V psABI, "Program Linkage Table"; for Arm and s390x, the source code of linkers.

use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, elf,
};
use rustc_hash::FxHashMap;

/// One PLT stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    /// The first link-time address.
    pub start: u64,
    /// One past the last link-time address.
    pub end: u64,
    /// The function to which it jumps.
    pub target: StubTarget,
}

/// The function to which a PLT stub jumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StubTarget {
    /// A function with this name.
    Named(Vec<u8>),
    /// The function that the function at this address chooses when the program starts, such as the `strchr` for the
    /// processor (GNU_IFUNC). Both have the same name.
    ChosenBy(u64),
}

/// True if the PLT contains one of the addresses, which must be ascending.
pub fn covers(object: &object::File<'_>, addresses: &[u64]) -> bool {
    sections(object)
        .any(|section| is_hit(addresses, section.address(), section.address().saturating_add(section.size())))
}

/// True if one of the addresses, which must be ascending, lies between `start` and `end` (exclusive).
pub(super) fn is_hit(addresses: &[u64], start: u64, end: u64) -> bool {
    addresses.get(addresses.partition_point(|&addr| addr < start)).is_some_and(|&addr| addr < end)
}

/// Finds all stubs of a file that jump to a function with a name. A stub jumps to the address in a slot of the GOT. The
/// function's name is in the relocation of this slot.
pub(crate) fn stubs(object: &object::File<'_>) -> Vec<Stub> {
    let find_stubs: fn(&PltSection<'_>) -> Vec<FoundStub> = match object.architecture() {
        Architecture::X86_64 | Architecture::X86_64_X32 => |section| find_equal_stubs(section, x86_64_slot),
        Architecture::I386 => |section| find_equal_stubs(section, |code, _| i386_slot(code, section.got)),
        Architecture::Aarch64 => |section| find_stubs_anywhere(section, aarch64_stub),
        Architecture::Arm => |section| find_stubs_anywhere(section, arm_stub),
        Architecture::Riscv64 => |section| find_stubs_anywhere(section, riscv64_stub),
        Architecture::S390x => |section| find_stubs_anywhere(section, s390x_stub),
        _ => return Vec::new(),
    };
    let targets = stub_targets(object);
    // The address from which 32-bit x86 code counts the positions of slots.
    let got = [".got.plt", ".got"].iter().find_map(|name| object.section_by_name(name));
    let got = got.map_or(0, |section| section.address());
    let mut stubs = Vec::new();
    for section in sections(object) {
        let Ok(code) = section.data() else { continue };
        let is_got = section.name() == Ok(".plt.got");
        for FoundStub { start, end, slot } in find_stubs(&PltSection { code, addr: section.address(), is_got, got }) {
            if let Some(target) = targets.get(&slot) {
                stubs.push(Stub { start, end, target: target.clone() });
            }
        }
    }
    stubs
}

/// A section that contains PLT stubs.
struct PltSection<'data> {
    code: &'data [u8],
    addr: u64,
    /// True if the section is `.plt.got`, whose stubs are shorter on x86.
    is_got: bool,
    /// The address of the GOT, from which 32-bit x86 code counts the positions of slots.
    got: u64,
}

/// A stub, and the address of the GOT slot through which it jumps.
struct FoundStub {
    start: u64,
    end: u64,
    slot: u64,
}

/// Finds the stubs in a section of x86 code, where all have the same size. `slot_of` decodes the stub at the start of a
/// piece of code, whose address is its second argument, and returns the address of the stub's GOT slot.
fn find_equal_stubs(section: &PltSection<'_>, slot_of: impl Fn(&[u8], u64) -> Option<u64>) -> Vec<FoundStub> {
    const STUB: usize = 16;
    const SHORT_STUB: usize = 8;
    // In code for Intel's control-flow protection, each stub starts with `endbr`.
    let has_endbr = section.code.starts_with(&ENDBR64) || section.code.starts_with(&ENDBR32);
    // Stubs in `.plt.got` are shorter, because they lack the code for lazy binding. With an `endbr` at their start,
    // they have the full size.
    let size = if section.is_got && !has_endbr { SHORT_STUB } else { STUB };
    let mut stubs = Vec::new();
    for (index, code) in section.code.chunks(size).enumerate() {
        let start = section.addr.wrapping_add((index * size) as u64);
        if let Some(slot) = slot_of(code, start) {
            stubs.push(FoundStub { start, end: start.wrapping_add(size as u64), slot });
        }
    }
    stubs
}

/// A function that decodes the stub at the start of a piece of code. The second argument is the address of the code. It
/// returns the length of the stub and the address of its GOT slot; `None` if there is no stub.
type DecodeStub = fn(&[u8], u64) -> Option<(usize, u64)>;

/// Finds the stubs on machines other than x86, where stubs have no fixed size: each position is tried. `decode_stub`
/// returns the stub's length and the address of its GOT slot.
fn find_stubs_anywhere(section: &PltSection<'_>, decode_stub: DecodeStub) -> Vec<FoundStub> {
    let (mut offset, mut found) = (0, Vec::new());
    while let Some(code) = section.code.get(offset..).filter(|code| !code.is_empty()) {
        let start = section.addr.wrapping_add(offset as u64);
        match decode_stub(code, start) {
            Some((len, slot)) if len > 0 => {
                found.push(FoundStub { start, end: start.wrapping_add(len as u64), slot });
                offset += len;
            }
            // No stub starts here. On these machines, stubs start at multiples of 4 bytes from the start of the
            // section.
            _ => offset += 4,
        }
    }
    found
}

/// The sections that contain PLT stubs.
fn sections<'data, 'file>(object: &'file object::File<'data>) -> impl Iterator<Item = object::Section<'data, 'file>> {
    const NAMES: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];
    object.sections().filter(|section| section.name().is_ok_and(|name| NAMES.contains(&name)))
}

/// For the address of each GOT slot that holds the address of a function: that function. The dynamic linker writes the
/// address to the slot, so the slot has a relocation, which names the function. A function that is chosen when the
/// program starts has no name there if it isn't visible in other files.
fn stub_targets(object: &object::File<'_>) -> FxHashMap<u64, StubTarget> {
    let mut targets = FxHashMap::default();
    let Some(relocations) = object.dynamic_relocations() else { return targets };
    let symbols = object.dynamic_symbol_table();
    // The relocation for a slot whose function is chosen when the program starts. The addend is the address of the
    // function that chooses it.
    let chosen = match object.architecture() {
        Architecture::X86_64 => Some(elf::R_X86_64_IRELATIVE),
        Architecture::Aarch64 => Some(elf::R_AARCH64_IRELATIVE),
        Architecture::Riscv64 => Some(elf::R_RISCV_IRELATIVE),
        Architecture::S390x => Some(elf::R_390_IRELATIVE),
        _ => None,
    };
    for (slot, relocation) in relocations {
        match (relocation.target(), relocation.flags()) {
            (RelocationTarget::Symbol(index), _) => {
                let symbol = symbols.as_ref().and_then(|symbols| symbols.symbol_by_index(index).ok());
                if let Some(Ok(name)) = symbol.map(|symbol| symbol.name_bytes())
                    && !name.is_empty()
                {
                    targets.insert(slot, StubTarget::Named(name.to_vec()));
                }
            }
            (_, RelocationFlags::Elf { r_type }) if chosen == Some(r_type) => {
                targets.insert(slot, StubTarget::ChosenBy(relocation.addend().cast_unsigned()));
            }
            _ => {}
        }
    }
    targets
}

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const ENDBR32: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfb];

/// The GOT slot through which `[endbr64] [bnd] jmp *disp32(%rip)` jumps. `None` if the code is something else.
fn x86_64_slot(code: &[u8], addr: u64) -> Option<u64> {
    let mut jump = 0;
    if code.starts_with(&ENDBR64) {
        jump += ENDBR64.len();
    }
    let has_bnd = code.get(jump) == Some(&0xf2);
    if has_bnd {
        jump += 1;
    }
    let [0xff, 0x25, disp @ ..] = code.get(jump..)? else { return None };
    let disp = i32::from_le_bytes(*disp.first_chunk()?);
    // `disp` counts from the end of the jump, which has 6 bytes.
    Some(addr.wrapping_add(jump as u64 + 6).wrapping_add_signed(disp.into()))
}

/// The GOT slot through which `[endbr32] jmp *slot` or `jmp *offset(%ebx)` jumps, where `ebx` holds the address `got`.
/// `None` if the code is something else.
fn i386_slot(code: &[u8], got: u64) -> Option<u64> {
    let code = code.strip_prefix(&ENDBR32).unwrap_or(code);
    let number = || Some(u64::from(u32::from_le_bytes(*code.get(2..)?.first_chunk()?)));
    match code {
        [0xff, 0x25, ..] => number(),
        [0xff, 0xa3, ..] => Some(got.wrapping_add(number()?) & 0xffff_ffff),
        _ => None,
    }
}

fn words(code: &[u8]) -> impl Iterator<Item = u32> {
    code.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

/// Decodes a stub `[bti c]; adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; [autia1716]; br x17;
/// [nop]`. Returns the stub's length and the address of its GOT slot; `None` if the code is something else.
fn aarch64_stub(code: &[u8], addr: u64) -> Option<(usize, u64)> {
    const BTI_C: u32 = 0xd503_245f;
    const NOP: u32 = 0xd503_201f;
    const BR_X17: u32 = 0xd61f_0220;
    /// The maximum number of instructions after `adrp`: `ldr`, `add`, `autia1716`, `br`.
    const LONGEST: usize = 4;
    // `adrp_addr` is the address of `adrp`, and `len` the length of the stub up to and including it.
    let (mut words, mut adrp_addr, mut len) = (words(code), addr, 4);
    let mut adrp = words.next()?;
    if adrp == BTI_C {
        adrp = words.next()?;
        adrp_addr = adrp_addr.wrapping_add(4);
        len += 4;
    }
    let mut rest = words.peekable();
    let ldr = *rest.peek()?;
    let is_adrp_x16 = adrp & 0x9f00_001f == 0x9000_0010;
    let is_ldr_x17_from_x16 = ldr & 0xffc0_03ff == 0xf940_0211;
    if !is_adrp_x16 || !is_ldr_x17_from_x16 {
        return None;
    }
    let jump = rest.by_ref().take(LONGEST).position(|word| word == BR_X17)?;
    let padding = rest.take_while(|word| *word == NOP).take(2).count();
    // `adrp` has the distance in pages of 4 KiB: a signed number of 21 bits in two fields, whose sign the shifts by 43
    // extend. `ldr` has the offset in the page.
    let pages = (i64::from(adrp >> 5 & 0x7_ffff) << 2 | i64::from(adrp >> 29 & 3)) << 43 >> 43;
    let offset = u64::from(ldr >> 10 & 0xfff) * 8;
    let slot = (adrp_addr & !0xfff).wrapping_add_signed(pages << 12).wrapping_add(offset);
    Some((len + 4 * (jump + 1 + padding), slot))
}

/// Decodes a stub `[bx pc; nop]; add ip, pc, #n; add ip, ip, #n; [add ip, ip, #n]; ldr pc, [ip, #n]!`. The first two
/// instructions are for callers in Thumb code. Returns the stub's length and the address of its GOT slot; `None` if the
/// code is something else.
fn arm_stub(code: &[u8], addr: u64) -> Option<(usize, u64)> {
    const FROM_THUMB: [u8; 4] = [0x78, 0x47, 0xc0, 0x46];
    let (code, prefix_len) = match code.strip_prefix(&FROM_THUMB) {
        Some(code) => (code, FROM_THUMB.len()),
        None => (code, 0),
    };
    // The immediate of `add` has 8 bits, rotated right by twice the value of a 4-bit field.
    let number = |word: u32| (word & 0xff).rotate_right((word >> 8 & 15) * 2);
    let mut slot = 0_u32;
    for (index, word) in words(code).take(4).enumerate() {
        match word >> 12 {
            // `add ip, pc, #n` starts the address of the slot. `pc` reads as 8 bytes after the start of the
            // instruction.
            0xe_28fc if index == 0 => {
                slot = (addr as u32).wrapping_add(prefix_len as u32 + 8).wrapping_add(number(word));
            }
            // `add ip, ip, #n` adds a part of the distance to the slot.
            0xe_28cc if index > 0 => slot = slot.wrapping_add(number(word)),
            // `ldr pc, [ip, #n]!` adds the last part of the distance and jumps.
            0xe_5bcf if index > 0 => {
                return Some((prefix_len + 4 * (index + 1), u64::from(slot.wrapping_add(word & 0xfff))));
            }
            _ => return None,
        }
    }
    None
}

/// Decodes a stub `auipc t3, n; ld t3, n(t3); jalr t1, t3; nop`. Returns the stub's length and the address of its GOT
/// slot; `None` if the code is something else.
fn riscv64_stub(code: &[u8], addr: u64) -> Option<(usize, u64)> {
    /// The length of a stub, which has four instructions.
    const STUB: usize = 16;
    let mut words = words(code);
    let (auipc, load, jump) = (words.next()?, words.next()?, words.next()?);
    if auipc & 0xfff != 0xe17 || load & 0xf_ffff != 0xe_3e03 || jump != 0x000e_0367 {
        return None;
    }
    // `auipc` has the upper 20 bits of the distance to the slot, `ld` the lower 12.
    let (high, low) = ((auipc & 0xffff_f000).cast_signed(), load.cast_signed() >> 20);
    Some((STUB, addr.wrapping_add_signed(high.into()).wrapping_add_signed(low.into())))
}

/// Decodes a stub `larl %r1, slot; lg %r1, 0(%r1); br %r1; …`, in which the dynamic linker uses the instructions after
/// `br` on the first call. Returns the stub's length and the address of its GOT slot; `None` if the code is something
/// else.
fn s390x_stub(code: &[u8], addr: u64) -> Option<(usize, u64)> {
    const STUB: usize = 32;
    let [0xc0, 0x10, a, b, c, d, 0xe3, 0x10, 0x10, 0, 0, 4, 0x07, 0xf1, ..] = *code.get(..STUB)? else { return None };
    Some((STUB, addr.wrapping_add_signed(i64::from(i32::from_be_bytes([a, b, c, d])) * 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_stub_shows_its_slot() {
        let plain = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        assert_eq!(x86_64_slot(&plain, 0x1030), Some(0x4018));
        let tracked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(x86_64_slot(&tracked, 0x1050), Some(0x1050 + 11 + 0x2f75));
        assert_eq!(x86_64_slot(&[0xff, 0x35, 0, 0, 0, 0], 0x1000), None);
        let found = [0xff, 0xa3, 0x0c, 0, 0, 0];
        assert_eq!((i386_slot(&found, 0x3ff4), i386_slot(&found[1..], 0)), (Some(0x4000), None));
    }

    fn le(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn stubs_of_aarch64_have_16_or_24_bytes() {
        // The stub: adrp x16, 0x11000 at 0x6b0; ldr x17, [x16, #0xf90]; add x16, x16, #0xf90; br x17
        let plain = le(&[0x9000_0090, 0xf947_ca11, 0x913e_4210, 0xd61f_0220]);
        assert_eq!(aarch64_stub(&plain, 0x6b0), Some((16, 0x10f90)));
        assert_eq!(aarch64_stub(&plain[..15], 0x6b0), None);
        // With `bti c` before and `nop` after; with `autia1716` inside; with both.
        let tracked = [&le(&[0xd503_245f]), &plain[..], &le(&[0xd503_201f])].concat();
        assert_eq!(aarch64_stub(&tracked, 0x6ac), Some((24, 0x10f90)));
        let signed = [&plain[..12], &le(&[0xd503_219f]), &plain[12..], &le(&[0xd503_201f])].concat();
        assert_eq!(aarch64_stub(&signed, 0x6b0), Some((24, 0x10f90)));
        let section =
            PltSection { code: &[&signed[..], &tracked, &plain].concat(), addr: 0x6b0, is_got: false, got: 0 };
        let found: Vec<_> =
            find_stubs_anywhere(&section, aarch64_stub).iter().map(|stub| (stub.start, stub.end)).collect();
        assert_eq!(found, [(0x6b0, 0x6c8), (0x6c8, 0x6e0), (0x6e0, 0x6f0)]);
    }

    #[test]
    fn stubs_of_arm_riscv64_and_s390x() {
        // The stub: add ip, pc, #0, 12; add ip, ip, #16, 20; ldr pc, [ip, #2796]!
        let arm = le(&[0xe28f_c600, 0xe28c_ca10, 0xe5bc_faec]);
        assert_eq!(arm_stub(&arm, 0x104fc), Some((12, 0x104fc + 8 + 0x10000 + 0xaec)));
        let from_thumb = [&[0x78, 0x47, 0xc0, 0x46], &arm[..]].concat();
        assert_eq!(arm_stub(&from_thumb, 0x104f8), Some((16, 0x104fc + 8 + 0x10000 + 0xaec)));
        assert_eq!(arm_stub(&arm[..8], 0x104fc), None);
        // The stub: auipc t3, 0x2; ld t3, -1520(t3); jalr t1, t3; nop
        let riscv = le(&[0x0000_2e17, 0xa10e_3e03, 0x000e_0367, 0x13]);
        assert_eq!(riscv64_stub(&riscv, 0x620), Some((16, 0x620 + 0x2000 - 1520)));
        let mut s390x = vec![0xc0, 0x10, 0, 0, 0x10, 0x08, 0xe3, 0x10, 0x10, 0, 0, 4, 0x07, 0xf1];
        assert_eq!(s390x_stub(&s390x, 0x600), None);
        s390x.resize(32, 0);
        assert_eq!(s390x_stub(&s390x, 0x600), Some((32, 0x600 + 0x2010)));
    }
}
