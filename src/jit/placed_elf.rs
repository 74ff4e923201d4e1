//! Reads an ELF object that was loaded at run time, as runtimes do for GDB's JIT interface: its functions become code
//! without times.

use crate::error::{Error, Result};
use crate::model::Addr;
use crate::model::code::{Code, Lines, OriginId};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::cmp::Reverse;

/// Lists the functions of an ELF object that was loaded at `addr`, sorted by address. `addr` is the address of the
/// object's first byte or, for relocatable objects, of `.text`.
pub(super) fn codes<'data>(bytes: &'data [u8], addr: Addr, origin: OriginId) -> Result<Vec<Code<'data>>> {
    let file = object::File::parse(bytes).map_err(|error| Error::new("is not an ELF object").because(error))?;
    let mut codes = Vec::new();
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions =
        symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0 && symbol.is_definition());
    let base = file.relative_address_base();
    for symbol in functions {
        let Ok(name) = symbol.name_bytes() else { continue };
        // In ELF files, `base` is 0. A symbol's address counts from the first byte of a position-independent object,
        // and from the start of its section in a relocatable one.
        let start = addr.0.wrapping_add(symbol.address().wrapping_sub(base));
        // At this address, the function would extend beyond the address space.
        if start.checked_add(symbol.size()).is_none() {
            continue;
        }
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let code = section.and_then(|section| section.data_range(symbol.address(), symbol.size()).ok().flatten());
        let (addr, size) = (Addr(start), symbol.size());
        codes.push(Code { name, addr, size, bytes: code, lines: Lines::default(), unwind: None, origin });
    }
    make_disjoint(&mut codes);
    if codes.is_empty() {
        return Err(Error::new("has no functions in its symbol tables"));
    }
    Ok(codes)
}

/// Keeps only the longest function at each address, and cuts functions where the next one starts.
fn make_disjoint(codes: &mut Vec<Code<'_>>) {
    codes.sort_by_key(|code| (code.addr, Reverse(code.size)));
    codes.dedup_by_key(|code| code.addr);
    let starts: Vec<Addr> = codes.iter().skip(1).map(|code| code.addr).collect();
    for (code, next) in codes.iter_mut().zip(starts) {
        code.size = code.size.min(next.0 - code.addr.0);
        let len = usize::try_from(code.size).unwrap_or(usize::MAX);
        code.bytes = code.bytes.map(|bytes| bytes.get(..len).unwrap_or(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_has_functions_where_it_is_placed() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let codes = codes(&own, Addr(0x10_0000_0000), OriginId(0)).unwrap();
        assert!(codes.iter().any(|code| code.name == b"main" && code.addr.0 > 0x10_0000_0000 && code.bytes.is_some()));
        let disjoint = |pair: &[Code<'_>]| pair[0].addr.0 + pair[0].size <= pair[1].addr.0;
        assert!(codes.windows(2).all(disjoint));
        assert!(codes.iter().all(|code| code.bytes.is_none_or(|bytes| bytes.len() as u64 == code.size)));
        assert!(super::codes(b"\x7fELF", Addr(0), OriginId(0)).is_err());
    }
}
