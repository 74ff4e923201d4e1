//! Fuzz targets for inputs that name, list or leave code: files of code with symbols, DWARF and unwinding information;
//! the kernel's list.

use super::scratch::Scratch;
use crate::error::Warnings;
use crate::model::Addr;
use crate::model::process::BuildId;
use crate::parallel::Pool;
use crate::symbolize::address_space::KernelReference;
use crate::symbolize::disasm::{Disassembler, Syntax};
use crate::symbolize::dso::{Dso, DsoKind, Dsos};
use crate::symbolize::kernel::{KernelOptions, KernelSymbols};
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::images::Images;
use crate::symbolize::symbols::ready_to_run::ReadyToRun;
use crate::symbolize::symbols::{self, Base, Request, SymbolOptions, functions};
use crate::symbolize::unwind::cfi::{FrameTable, Scratch as CfiScratch};
use crate::symbolize::unwind::registers::{Machine, Registers};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;

/// Neither `~/.debug` nor anything else of this machine but what a file names.
fn alone() -> SearchOptions {
    SearchOptions { cache: None, debuginfod: None, ..SearchOptions::default() }
}

/// A file of code: its functions, calls expanded into them and lines, what its frames are left by.
pub(super) fn elf(bytes: &[u8]) {
    let scratch = Scratch::new();
    let path = scratch.put("code", bytes);
    let mut dsos = Dsos::default();
    let dso = Dso { path: path.as_os_str().as_bytes().to_vec(), build_id: None, file: None, kind: DsoKind::File };
    let dso = dsos.intern(dso);
    let pool = Pool::new(NonZeroUsize::new(1)).unwrap();
    let options = SymbolOptions { search: alone(), inlines: true, lines: true, demangle: true };
    let (images, warnings) = (Images::new(dsos.iter(), alone()), &mut Warnings::new());
    let named = functions::named_ranges(dso, &images, &options, warnings);
    let Some(image) = images.get(dso) else { return };
    let mut offsets: Vec<u64> = named.iter().take(64).flat_map(|range| [range.start, range.end / 2]).collect();
    offsets.extend([0, bytes.len() as u64 / 2, u64::MAX]);
    offsets.sort_unstable();
    offsets.dedup();
    for base in [Base::File, Base::Linked(0)] {
        let request = Request { dso, offsets: offsets.clone(), base };
        let extents = functions::extents(&request, &images, &options, &pool, warnings);
        assert_eq!(extents.len(), offsets.len());
        let frames = symbols::resolve(&[request], &images, &options, &pool, warnings);
        assert!(!frames.is_empty());
    }
    leave(FrameTable::from_image(image), &offsets, bytes);
}

/// Leaves frames by the rules of these addresses; `memory` is the stack.
fn leave(table: Option<FrameTable<'_>>, addresses: &[u64], memory: &[u8]) {
    let Some(table) = table else { return };
    let mut scratch = CfiScratch::new();
    let mut registers = Registers::new(table.machine());
    (0..33).for_each(|register| registers.set(register, 8 * u64::from(register)));
    let read = |addr: u64| {
        let word = memory.get(usize::try_from(addr).ok()?..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    };
    for &addr in addresses {
        let Some(row) = table.row(addr, &mut scratch) else { continue };
        let _ = row.caller(&registers, &read);
    }
}

/// The `.eh_frame` of a piece of JIT code, of several machines: the first byte shows which.
pub(super) fn unwind(bytes: &[u8]) {
    const START: u64 = 0x1000;
    let Some((first, eh_frame)) = bytes.split_first() else { return };
    let machines = [Machine::X86_64, Machine::Aarch64, Machine::Arm, Machine::S390x];
    let machine = machines[usize::from(first & 3)];
    let size = 8 * u64::from(*first);
    let addresses: Vec<u64> = (START..START + size + 8).step_by(4).collect();
    leave(FrameTable::from_code(machine, eh_frame, START, size), &addresses, bytes);
}

/// Images of .NET with code that was compiled ahead of time: methods have begun before they end, and the names of all
/// do not grow beyond what the file can give.
pub(super) fn ready_to_run(bytes: &[u8]) {
    let Some(image) = ReadyToRun::read(bytes) else { return };
    assert!(image.methods.len() <= bytes.len());
    assert!(image.methods.iter().all(|method| method.start < method.end && !method.name.is_empty()));
}

/// A list of the kernel's functions, with addresses all over it.
pub(super) fn kallsyms(bytes: &[u8]) {
    let scratch = Scratch::new();
    let list = scratch.put("kallsyms", bytes);
    let mut dsos = Dsos::default();
    // The kernel of nobody: the list of the one that runs here is not looked at.
    let build_id = BuildId::new(&[0xee; 20]);
    dsos.intern(Dso { path: b"[kernel.kallsyms]_text".to_vec(), build_id, file: None, kind: DsoKind::Kernel });
    let reference =
        KernelReference { symbol: b"_text".to_vec(), addr: Addr(0xffff_ffff_8100_0000), end: None, beyond_end: 0..0 };
    let options = KernelOptions { kallsyms: Some(list), ..KernelOptions::default() };
    let edges = [0, 1, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_0010, 0xffff_ffff_c000_0000, u64::MAX];
    let found =
        |wanted: &[u64]| KernelSymbols::find(wanted, &dsos, Some(&reference), &options, &alone(), &mut Warnings::new());
    let symbols = found(&edges);
    for addr in edges {
        let symbol = symbols.lookup(addr);
        assert!(symbol.map_or(0, |symbol| symbol.name.len()) <= bytes.len());
        assert_eq!(symbol, found(&[addr]).lookup(addr));
    }
}

/// Machine code of any machine: the instructions together are all of its bytes.
pub(super) fn disasm(bytes: &[u8]) {
    let Some((first, code)) = bytes.split_first() else { return };
    let machine = [62, 3, 183, 40][usize::from(first & 3)];
    let syntax = if first & 4 == 0 { Syntax::Att } else { Syntax::Intel };
    let addr = if first & 8 == 0 { 0x1000 } else { u64::MAX - 16 };
    let decoded = Disassembler::new(machine, syntax).decode(code, addr);
    assert!(decoded.len() <= code.len());
}

/// Names as compilers spell them.
pub(super) fn demangle(bytes: &[u8]) {
    let _ = symbols::demangle::demangle(bytes);
}
