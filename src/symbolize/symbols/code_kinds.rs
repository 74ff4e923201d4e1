//! Splits a file's code into Arm instructions, Thumb instructions and data. Assemblers mark the start of each with a
//! symbol (`$a`, `$t`, `$x`, `$d`). Stripped files lack these symbols; there, a function is Thumb code if the lowest
//! bit of its symbol's address is set.
//!
//! Spec: aaelf32, "Mapping symbols" and "Symbol Values"; aaelf64, "Mapping symbols".

use super::image::Image;
use object::{Object, ObjectSymbol, SymbolKind};
use std::ops::Range;

/// What a range of addresses in a code section contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeKind {
    /// Instructions other than Thumb. On 32-bit Arm, each has 4 bytes.
    Code,
    /// Thumb instructions.
    Thumb,
    /// Data, such as constants between functions.
    Data,
}

/// Splits a range of link-time addresses into parts of one kind each. The parts are in order and leave no gaps.
pub(crate) fn code_kinds(image: &Image, range: Range<u64>) -> Vec<(Range<u64>, CodeKind)> {
    let Ok(object) = image.object() else { return vec![(range, CodeKind::Code)] };
    let mut marks: Vec<Mark> = object.symbols().filter_map(|symbol| Mark::from_symbol(&symbol)).collect();
    marks.sort_by_key(|mark| mark.addr);
    let (before, after) = marks.split_at(marks.partition_point(|mark| mark.addr <= range.start));
    let mut kind = match before.last() {
        Some(mark) => mark.kind,
        // Stripped files have no mapping symbols, but the symbols of functions may say that these are Thumb code.
        None if is_thumb(&object, range.start) => CodeKind::Thumb,
        None => CodeKind::Code,
    };
    let mut start = range.start;
    let mut parts = Vec::new();
    for mark in after {
        if mark.addr >= range.end {
            break;
        }
        if mark.kind != kind {
            parts.push((start..mark.addr, kind));
            start = mark.addr;
            kind = mark.kind;
        }
    }
    parts.push((start..range.end, kind));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// A mapping symbol. It says that code of this kind begins at this address.
struct Mark {
    addr: u64,
    kind: CodeKind,
}

impl Mark {
    /// Reads a mapping symbol: `$a` (32-bit Arm code), `$x` (AArch64 code), `$t` (Thumb code) or `$d` (data), possibly
    /// with a dot and more text behind it. `None` if the symbol isn't one.
    fn from_symbol(symbol: &object::Symbol<'_, '_>) -> Option<Self> {
        let letter = match symbol.name_bytes().ok()? {
            [b'$', letter] | [b'$', letter, b'.', ..] => letter,
            _ => return None,
        };
        let kind = match letter {
            b'a' | b'x' => CodeKind::Code,
            b't' => CodeKind::Thumb,
            b'd' => CodeKind::Data,
            _ => return None,
        };
        // A mapping symbol that isn't in any section doesn't describe code.
        symbol.section_index()?;
        Some(Self { addr: symbol.address(), kind })
    }
}

fn is_thumb(object: &object::File<'_>, addr: u64) -> bool {
    let thumb = addr | 1;
    let mut symbols = object.symbols().chain(object.dynamic_symbols());
    object.architecture() == object::Architecture::Arm
        && symbols.any(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() == thumb)
}
