//! The kinds of stretches of a file's code: instructions of Arm or of Thumb, or numbers among them. The assembler marks
//! where each begins (`$a`, `$t`, `$x`, `$d`); what no mark gives in a stripped file is recognized by the lowest bit of
//! its function's symbol.
//!
//! Spec: aaelf32, "Mapping symbols" and "Symbol Values"; aaelf64, "Mapping symbols".

use super::image::Image;
use object::{Object, ObjectSymbol, SymbolKind};
use std::ops::Range;

/// The kind of a stretch of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    /// Instructions: on 32-bit Arm, those of 4 bytes.
    Code,
    /// Instructions of Thumb.
    Thumb,
    /// Numbers.
    Data,
}

/// The stretches of these link-time addresses, in order and without a gap.
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
    // Those of other sections report data that is not code.
    symbol.section_index().map(|_| (symbol.address(), kind))
}

fn is_thumb(object: &object::File<'_>, addr: u64) -> bool {
    let thumb = addr | 1;
    let mut symbols = object.symbols().chain(object.dynamic_symbols());
    object.architecture() == object::Architecture::Arm
        && symbols.any(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() == thumb)
}
