//! The procedure linkage table: stubs through which calls to other files go. They have no symbols; each is named
//! after the function whose address the dynamic linker puts into the slot of the global offset table that it jumps
//! through.
//!
//! The code of a stub tells its slot, so all layouts are read alike: `.plt`, `.plt.got`, `.plt.sec`, with and
//! without branch tracking, of every linker. Spec: x86-64 psABI, "Procedure Linkage Table"; AArch64 ELF, "PLT".

use object::{Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use rustc_hash::FxHashMap;

/// One stub.
#[derive(Debug, PartialEq, Eq)]
pub struct Stub {
    /// Its first address, as linked.
    pub start: u64,
    /// One past its last address.
    pub end: u64,
    /// `name@plt`.
    pub name: Vec<u8>,
}

/// Bytes of one stub, except in an x86 `.plt.got` without branch tracking.
const STUB: usize = 16;
const SHORT_STUB: usize = 8;

/// Whether one of these ascending addresses lies in a procedure linkage table.
pub fn covers(object: &object::File<'_>, addresses: &[u64]) -> bool {
    sections(object)
        .any(|section| is_hit(addresses, section.address(), section.address().saturating_add(section.size())))
}

/// Whether one of these ascending addresses lies in a range.
pub(super) fn is_hit(addresses: &[u64], start: u64, end: u64) -> bool {
    addresses.get(addresses.partition_point(|&addr| addr < start)).is_some_and(|&addr| addr < end)
}

/// All stubs whose slot is known.
pub fn stubs(object: &object::File<'_>) -> Vec<Stub> {
    let slots = slots(object);
    let slot_of: fn(&[u8], u64) -> Option<u64> = match object.architecture() {
        Architecture::X86_64 | Architecture::X86_64_X32 => x86_64_slot,
        Architecture::Aarch64 => aarch64_slot,
        _ => return Vec::new(),
    };
    let mut stubs = Vec::new();
    for section in sections(object) {
        let Ok(code) = section.data() else { continue };
        let short = section.name() == Ok(".plt.got") && !code.starts_with(&ENDBR64);
        let size = if short { SHORT_STUB } else { STUB };
        for (index, code) in code.chunks(size).enumerate() {
            let start = section.address().wrapping_add((index * size) as u64);
            let named = slot_of(code, start).and_then(|slot| slots.get(&slot));
            stubs.extend(named.map(|name| Stub { start, end: start.wrapping_add(size as u64), name: name.clone() }));
        }
    }
    stubs
}

fn sections<'data, 'file>(object: &'file object::File<'data>) -> impl Iterator<Item = object::Section<'data, 'file>> {
    const NAMES: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];
    object.sections().filter(|section| section.name().is_ok_and(|name| NAMES.contains(&name)))
}

/// Slot of the global offset table → `name@plt`.
fn slots(object: &object::File<'_>) -> FxHashMap<u64, Vec<u8>> {
    let mut slots = FxHashMap::default();
    let (Some(relocations), Some(symbols)) = (object.dynamic_relocations(), object.dynamic_symbol_table()) else {
        return slots;
    };
    for (slot, relocation) in relocations {
        let RelocationTarget::Symbol(index) = relocation.target() else { continue };
        let Ok(name) = symbols.symbol_by_index(index).and_then(|symbol| symbol.name_bytes()) else { continue };
        if !name.is_empty() {
            slots.insert(slot, [name, b"@plt"].concat());
        }
    }
    slots
}

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// `[endbr64] [bnd] jmp *disp32(%rip)`
fn x86_64_slot(code: &[u8], addr: u64) -> Option<u64> {
    let mut at = 0;
    if code.starts_with(&ENDBR64) {
        at += ENDBR64.len();
    }
    if code.get(at) == Some(&0xf2) {
        at += 1;
    }
    let [0xff, 0x25, disp @ ..] = code.get(at..)? else { return None };
    let disp = i32::from_le_bytes(*disp.first_chunk()?);
    Some(addr.wrapping_add(at as u64 + 6).wrapping_add_signed(disp.into()))
}

/// `[bti c] adrp x16, page; ldr x17, [x16, #offset]`
fn aarch64_slot(code: &[u8], addr: u64) -> Option<u64> {
    const BTI_C: u32 = 0xd503_245f;
    let mut words = code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let mut at = addr;
    let mut adrp = words.next()?;
    if adrp == BTI_C {
        adrp = words.next()?;
        at = at.wrapping_add(4);
    }
    let ldr = words.next()?;
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (i64::from(adrp >> 5 & 0x7_ffff) << 2 | i64::from(adrp >> 29 & 3)) << 43 >> 43;
    let offset = u64::from(ldr >> 10 & 0xfff) * 8;
    Some((at & !0xfff).wrapping_add_signed(pages << 12).wrapping_add(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_stub_tells_its_slot() {
        let plain = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
        assert_eq!(x86_64_slot(&plain, 0x1030), Some(0x4018));
        let tracked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(x86_64_slot(&tracked, 0x1050), Some(0x1050 + 11 + 0x2f75));
        assert_eq!(x86_64_slot(&[0xff, 0x35, 0, 0, 0, 0], 0x1000), None);
        // adrp x16, 0x11000 at 0x6b0; ldr x17, [x16, #0xf90]
        let arm: Vec<u8> = [0x9000_0090_u32, 0xf947_ca11].into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(aarch64_slot(&arm, 0x6b0), Some(0x10f90));
        assert_eq!(aarch64_slot(&arm[..7], 0x6b0), None);
    }
}
