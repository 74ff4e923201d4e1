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

/// Splits a range of link-time addresses into parts that each have only one kind of content: code, Thumb code or data.
/// The mapping symbols of the file tell where a kind begins. The parts are in order and leave no gaps.
pub(crate) fn code_kinds(image: &Image, range: Range<u64>) -> Vec<(Range<u64>, CodeKind)> {
    let Ok(object) = image.object() else { return vec![(range, CodeKind::Code)] };
    let mut mapping_symbols: Vec<MappingSymbol> =
        object.symbols().filter_map(|symbol| MappingSymbol::from_symbol(&symbol)).collect();
    mapping_symbols.sort_by_key(|symbol| symbol.addr);
    let count_before = mapping_symbols.partition_point(|symbol| symbol.addr <= range.start);
    let (before, after) = mapping_symbols.split_at(count_before);
    let mut kind = match before.last() {
        Some(symbol) => symbol.kind,
        // Stripped files have no mapping symbols, but the range may start at a function whose symbol says that it is
        // Thumb code.
        None if is_thumb(&object, range.start) => CodeKind::Thumb,
        None => CodeKind::Code,
    };
    let mut start = range.start;
    let mut parts = Vec::new();
    for symbol in after {
        if symbol.addr >= range.end {
            break;
        }
        if symbol.kind != kind {
            parts.push((start..symbol.addr, kind));
            start = symbol.addr;
            kind = symbol.kind;
        }
    }
    parts.push((start..range.end, kind));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// A mapping symbol. It says that everything from this address to the next mapping symbol is of this kind.
struct MappingSymbol {
    addr: u64,
    kind: CodeKind,
}

impl MappingSymbol {
    /// Reads a mapping symbol: `$a` (32-bit Arm code), `$x` (AArch64 code), `$t` (Thumb code) or `$d` (data), possibly
    /// with a dot and more text after it. `None` if the symbol isn't one.
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

/// True if a 32-bit Arm file has the symbol of a Thumb function that starts at `addr`.
fn is_thumb(object: &object::File<'_>, addr: u64) -> bool {
    let thumb = addr | 1;
    let mut symbols = object.symbols().chain(object.dynamic_symbols());
    object.architecture() == object::Architecture::Arm
        && symbols.any(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() == thumb)
}
