//! Splits a file's code into Arm instructions, Thumb instructions and data. Assemblers mark with symbols where each
//! begins (`$a`, `$t`, `$x`, `$d`). A stripped file has no such symbols; there, the lowest bit of a function's symbol
//! is set for Thumb code.
//!
//! Spec: aaelf32, "Mapping symbols" and "Symbol Values"; aaelf64, "Mapping symbols".

use super::image::Image;
use object::{Object, ObjectSymbol, SymbolKind};
use std::ops::Range;

/// What a range of a code section contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    /// Instructions; on 32-bit Arm, 4-byte ones.
    Code,
    /// Thumb instructions.
    Thumb,
    /// Data, such as constants between functions.
    Data,
}

/// Splits a range of link-time addresses by kind. The parts are in order and without gaps.
pub(crate) fn code_kinds(image: &Image, range: Range<u64>) -> Vec<(Range<u64>, CodeKind)> {
    let Ok(object) = image.object() else { return vec![(range, CodeKind::Code)] };
    let mut marks: Vec<(u64, CodeKind)> = object.symbols().filter_map(|symbol| mark(&symbol)).collect();
    marks.sort_by_key(|&(addr, _)| addr);
    let from = marks.partition_point(|&(addr, _)| addr <= range.start);
    let first = match from.checked_sub(1) {
        Some(before) => marks[before].1,
        None => {
            if is_thumb(&object, range.start) {
                CodeKind::Thumb
            } else {
                CodeKind::Code
            }
        }
    };
    let (mut stretches, mut start, mut kind) = (Vec::new(), range.start, first);
    for &(addr, next) in marks[from..].iter().take_while(|&&(addr, _)| addr < range.end) {
        if next != kind {
            stretches.push((start..addr, kind));
            (start, kind) = (addr, next);
        }
    }
    stretches.push((start..range.end, kind));
    stretches.retain(|(stretch, _)| !stretch.is_empty());
    stretches
}

fn mark(symbol: &object::Symbol<'_, '_>) -> Option<(u64, CodeKind)> {
    let kind = match symbol.name_bytes().ok()? {
        [b'$', letter] | [b'$', letter, b'.', ..] => letter,
        _ => return None,
    };
    let kind = match kind {
        b'a' | b'x' => CodeKind::Code,
        b't' => CodeKind::Thumb,
        b'd' => CodeKind::Data,
        _ => return None,
    };
    // A mapping symbol that belongs to no section doesn't describe code.
    symbol.section_index().map(|_| (symbol.address(), kind))
}

fn is_thumb(object: &object::File<'_>, addr: u64) -> bool {
    let thumb = addr | 1;
    let mut symbols = object.symbols().chain(object.dynamic_symbols());
    object.architecture() == object::Architecture::Arm
        && symbols.any(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() == thumb)
}
