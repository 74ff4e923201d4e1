//! Where functions of a file begin and end, and their machine code.

use super::images::Images;
use super::{Request, SymbolOptions, load, open};
use crate::error::Warnings;
use crate::parallel::Pool;
use std::ops::Range;

/// For each offset of a request, the function that it belongs to: its first address and the one behind its last, as
/// linked. `None` where no symbol tells.
pub fn extents(
    request: &Request,
    images: &Images<'_>,
    options: &SymbolOptions,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Option<Range<u64>>> {
    // Symbols only: no DWARF is opened.
    let options = SymbolOptions { inlines: false, lines: false, ..options.clone() };
    let Some(file) = open(request, images, &options, warnings) else {
        return vec![None; request.offsets.len()];
    };
    let loaded = load(request, &file, pool);
    let extent = |&offset: &u64| {
        let symbol = loaded.table.find(request.vaddr(file.running, offset)?)?;
        Some(symbol.start..symbol.end)
    };
    request.offsets.iter().map(extent).collect()
}
