//! Finds the address ranges of the functions in a file.

use super::gopclntab::GoTable;
use super::images::Images;
use super::{Base, Request, SymbolOptions, load, open};
use crate::error::Warnings;
use crate::parallel::Pool;
use crate::symbolize::dso::DsoId;
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::ops::Range;

/// For each offset of the request, in the same order: the link-time address range of the function that contains it.
/// `None` where no symbol covers the offset, and everywhere if the file isn't found.
pub fn extents(
    request: &Request,
    images: &Images<'_>,
    options: &SymbolOptions,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Option<Range<u64>>> {
    // Only symbols are needed, so files with DWARF aren't even looked for.
    let options = SymbolOptions { inlines: false, lines: false, ..options.clone() };
    let Some(file) = open(request, images, &options, warnings) else {
        return vec![None; request.offsets.len()];
    };
    let loaded = load(request, &file, &options, pool);
    let extent = |offset: u64| {
        let symbol = loaded.table.find(request.vaddr(file.running, offset)?)?;
        Some(symbol.start..symbol.end)
    };
    request.offsets.iter().map(|&offset| extent(offset)).collect()
}

/// All link-time address ranges of a file in which code has a name, sorted. Ranges that overlap or touch are merged.
/// Empty if the file isn't found.
pub fn named_ranges(
    dso: DsoId,
    images: &Images<'_>,
    options: &SymbolOptions,
    warnings: &mut Warnings,
) -> Vec<Range<u64>> {
    // Only symbols are needed, so files with DWARF aren't even looked for.
    let options = SymbolOptions { inlines: false, lines: false, ..options.clone() };
    // The request is empty because no addresses are looked up here.
    let request = Request { dso, offsets: Vec::new(), base: Base::File };
    let Some(file) = open(&request, images, &options, warnings) else { return Vec::new() };
    // Code gets names from the symbols of the debug file, of the mini debug information (`.gnu_debugdata`) and of the
    // file itself, from Go's own table, and from the list of methods of a ReadyToRun image.
    let images = [file.debugging.as_ref(), file.mini.as_ref(), Some(file.running)];
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for image in images.into_iter().flatten() {
        if let Ok(object) = image.object() {
            ranges.extend(code_ranges(&object));
        }
    }
    ranges.extend(GoTable::read(file.running).map(|go| go.extent()));
    ranges.extend(file.running.methods().iter().map(|method| method.start..method.end));
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The link-time address ranges of functions and code labels in a file. A symbol without a size extends to the next
/// symbol, at most to the end of its section.
fn code_ranges(object: &object::File<'_>) -> Vec<Range<u64>> {
    // On Arm, the lowest bit of a function's address is set for Thumb code.
    let thumb_bit = u64::from(object.architecture() == Architecture::Arm);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    // The ranges of symbols without a size. In this list, each extends to the end of its section. The loop below ends
    // it at the next symbol.
    let mut unsized_ranges: Vec<Range<u64>> = Vec::new();
    for symbol in object.symbols().chain(object.dynamic_symbols()) {
        let section = symbol.section_index().and_then(|index| object.section_by_index(index).ok());
        let is_code = match symbol.kind() {
            SymbolKind::Text => symbol.is_definition(),
            SymbolKind::Unknown | SymbolKind::Label => {
                section.as_ref().is_some_and(|section| section.kind() == SectionKind::Text)
            }
            _ => false,
        };
        if !is_code {
            continue;
        }
        let start = symbol.address() & !thumb_bit;
        if symbol.size() > 0 {
            ranges.push(start..start.saturating_add(symbol.size()));
        } else if let Some(section) = section {
            unsized_ranges.push(start..section.address().saturating_add(section.size()));
        }
    }
    let mut starts: Vec<u64> = ranges.iter().chain(&unsized_ranges).map(|range| range.start).collect();
    starts.sort_unstable();
    for Range { start, end } in unsized_ranges {
        let next = starts.get(starts.partition_point(|&other| other <= start)).copied().unwrap_or(end);
        // A label covers at least one byte, even at the end of its section.
        ranges.push(start..end.min(next).max(start.saturating_add(1)));
    }
    ranges
}
