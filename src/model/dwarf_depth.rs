//! Removes too deeply nested inlined calls from DWARF before anything else reads it.
//!
//! `addr2line` reads nested inlined calls recursively, so that a file of a few kilobytes can overflow the stack.
//! Moreover, each address in the innermost of thousands of calls would have thousands of frames. Compilers nest a few
//! dozen.
//!
//! ```text
//! DW_TAG_subprogram
//!   DW_TAG_inlined_subroutine         1
//!     …
//!       DW_TAG_inlined_subroutine     `most`
//!         DW_TAG_lexical_block        a block of bytes that replaces the deeper calls
//! ```
//!
//! Each inlined call that is too deep is overwritten, together with its children, by an entry of the same length. Its
//! code then counts as code of the enclosing call, as if the call weren't known. The unit gets an abbreviation table of
//! its own, appended to `.debug_abbrev`: a copy of the original one, with abbreviations for the new entries.

use gimli::constants as dw;
use gimli::{AbbreviationsCacheStrategy, Dwarf, EndianSlice, Reader as _, RunTimeEndian, Section, UnitHeader};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

type Reader<'d> = EndianSlice<'d, RunTimeEndian>;

/// Copies of `.debug_info` and `.debug_abbrev` without the calls that are too deep.
#[derive(Debug)]
pub(crate) struct ShallowDwarf {
    /// The contents of `.debug_info`.
    pub(crate) info: Vec<u8>,
    /// The contents of `.debug_abbrev`.
    pub(crate) abbreviations: Vec<u8>,
    /// The number of inlined calls removed.
    pub(crate) left_out: u64,
    /// The total length in bytes of the abbreviation tables that were copied so far.
    copied_len: usize,
}

/// A unit of `.debug_info` with inlined calls that are nested too deeply.
struct DeepUnit {
    /// The range of the unit's `debug_abbrev_offset` field in `.debug_info`.
    table_field: Range<usize>,
    /// Offset of the unit's abbreviation table in `.debug_abbrev`.
    table: usize,
    /// The ranges of `.debug_info` to overwrite: each has the entry of a call that is too deep, and all entries below
    /// it.
    entries: Vec<Range<usize>>,
    /// How many inlined calls these ranges contain.
    calls: u64,
}

/// Copies the debugging information without inlined calls that are nested in more than `most` others, for units that
/// `is_wanted` accepts. `None` if no call is nested that deeply.
pub(crate) fn without_deep_calls(
    dwarf: &Dwarf<Reader<'_>>,
    most: usize,
    is_wanted: impl Fn(&UnitHeader<Reader<'_>>) -> bool,
) -> Option<ShallowDwarf> {
    let (info, endian) = (dwarf.debug_info.reader(), dwarf.debug_info.reader().endian());
    let abbreviations = dwarf.debug_abbrev.reader().slice();
    let mut shallow: Option<ShallowDwarf> = None;
    let mut tables = FxHashMap::default();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if !is_wanted(&header) {
            continue;
        }
        let Some(unit) = find_deep(dwarf, &header, most) else { continue };
        // The sections are only copied if a unit has such calls.
        let shallow = shallow.get_or_insert_with(|| ShallowDwarf {
            info: info.slice().to_vec(),
            abbreviations: abbreviations.to_vec(),
            left_out: 0,
            copied_len: 0,
        });
        shallow.left_out += unit.calls;
        shallow.replace(&unit, endian, &mut tables);
    }
    shallow
}

/// Counts the inlined calls that are nested in more than `most` others, for split DWARF: such calls are only counted
/// there, not removed.
pub(crate) fn count_deep_calls(dwarf: &Dwarf<Reader<'_>>, most: usize) -> u64 {
    let (mut units, mut calls) = (dwarf.units(), 0);
    while let Ok(Some(header)) = units.next() {
        calls += find_deep(dwarf, &header, most).map_or(0, |unit| unit.calls);
    }
    calls
}

/// A function or inlined call whose children are being read.
struct OpenEntry {
    /// The depth of a DWARF entry in the tree of all entries.
    tree_depth: isize,
    /// How many inlined calls contain the children of this entry. The entry itself counts if it is one.
    call_depth: usize,
}

/// An inlined call that is nested too deep, whose children are being read.
struct OpenCut {
    /// The offset of the call's entry in the unit.
    offset: usize,
    /// The depth of the call's entry in the tree of all entries.
    tree_depth: isize,
}

/// Finds the inlined calls of a unit that must be replaced: those that are nested in `most` others and have children.
/// Returns the range of each call's entry, which includes all entries below it, and how many calls there are in these
/// ranges. `None` if there are none, or if the unit's abbreviations can't be read.
fn find_deep(dwarf: &Dwarf<Reader<'_>>, header: &UnitHeader<Reader<'_>>, most: usize) -> Option<DeepUnit> {
    let start = header.debug_info_offset()?.0;
    let table = dwarf.abbreviations(header).ok()?;
    let mut entries = header.entries_raw(&table, None).ok()?;
    let (mut cut_ranges, mut cut_calls) = (Vec::new(), 0);
    // The functions and inlined calls around the current entry.
    let mut open: Vec<OpenEntry> = Vec::new();
    // The call to be replaced that contains the current entry; `None` if the entry isn't inside of one.
    let mut cut: Option<OpenCut> = None;
    while !entries.is_empty() {
        let (offset, tree_depth) = (entries.next_offset().0, entries.next_depth());
        // If an entry is damaged, nothing after it needs to be checked, because readers of the unit stop there, too.
        let Ok(entry) = entries.read_abbreviation() else { break };
        let Some(entry) = entry else {
            // An empty entry ends a list of children. If these are the children of the call to be replaced, that call
            // ends here.
            if let Some(ended) = cut.take_if(|cut| entries.next_depth() <= cut.tree_depth) {
                cut_ranges.push(start + ended.offset..start + entries.next_offset().0);
            }
            continue;
        };
        if entries.skip_attributes(entry.attributes()).is_err() {
            break;
        }
        let is_call = entry.tag() == dw::DW_TAG_inlined_subroutine;
        if cut.is_some() {
            cut_calls += u64::from(is_call);
            continue;
        }
        // Only functions and inlined calls with children can contain other calls. A call without children is never
        // replaced, even if it is too deep: it only adds one level.
        if !entry.has_children() || !is_call && entry.tag() != dw::DW_TAG_subprogram {
            continue;
        }
        // Leave the functions and calls that don't contain this entry.
        while open.last().is_some_and(|last| last.tree_depth >= tree_depth) {
            open.pop();
        }
        let outer_calls = open.last().map_or(0, |last| last.call_depth);
        if !is_call {
            // The count of calls restarts in a nested function, because addr2line reads such a function on its own.
            open.push(OpenEntry { tree_depth, call_depth: 0 });
        } else if outer_calls < most {
            open.push(OpenEntry { tree_depth, call_depth: outer_calls + 1 });
        } else {
            cut = Some(OpenCut { offset, tree_depth });
            cut_calls += 1;
        }
    }
    // A call to be replaced is still open: the unit is damaged. Replace everything from the call to the end of the
    // unit.
    if let Some(cut) = cut {
        cut_ranges.push(start + cut.offset..start + header.length_including_self());
    }
    if cut_ranges.is_empty() {
        return None;
    }
    let field = start + abbreviation_field(header);
    let width = usize::from(header.encoding().format.word_size());
    let table = header.debug_abbrev_offset().0;
    Some(DeepUnit { table_field: field..field + width, table, entries: cut_ranges, calls: cut_calls })
}

/// The offset of the field `debug_abbrev_offset` from the start of a unit's header.
fn abbreviation_field(header: &UnitHeader<Reader<'_>>) -> usize {
    let length = usize::from(header.encoding().format.initial_length_size());
    // The field follows the version; since DWARF 5 also the unit type and the address size.
    length + if header.version() >= 5 { 4 } else { 2 }
}

/// A copy of an abbreviation table, with abbreviations for blocks of bytes.
struct TableWithBlocks {
    /// The offset of this copied table in `.debug_abbrev`.
    offset: usize,
    blocks: Blocks,
}

impl ShallowDwarf {
    /// Replaces a unit's calls that are too deep by blocks of bytes. `tables` has the copies of abbreviation tables
    /// that were made for earlier units, by the offset of the original table; `None` stands for a table that can't be
    /// copied. If the calls can't be replaced, the unit is changed so that readers skip it as a whole.
    fn replace(
        &mut self,
        unit: &DeepUnit,
        endian: RunTimeEndian,
        tables: &mut FxHashMap<usize, Option<TableWithBlocks>>,
    ) {
        let table = tables.entry(unit.table).or_insert_with(|| self.add_table(unit.table, endian));
        let mut replaced_with = None;
        if let Some(table) = table
            && table.blocks.replace(&unit.entries, &mut self.info).is_some()
        {
            replaced_with = Some(table.offset);
        }
        let table_offset = replaced_with.unwrap_or_else(|| {
            // Append an empty table: readers skip a unit whose entries have no abbreviations.
            self.abbreviations.push(0);
            self.abbreviations.len() - 1
        });
        // The unit's header has to refer to that table.
        let Some(field) = self.info.get_mut(unit.table_field.clone()) else { return };
        match (endian, field.len()) {
            (RunTimeEndian::Little, 8) => field.copy_from_slice(&(table_offset as u64).to_le_bytes()),
            (RunTimeEndian::Big, 8) => field.copy_from_slice(&(table_offset as u64).to_be_bytes()),
            (RunTimeEndian::Little, _) => field.copy_from_slice(&(table_offset as u32).to_le_bytes()),
            (RunTimeEndian::Big, _) => field.copy_from_slice(&(table_offset as u32).to_be_bytes()),
        }
    }

    /// Appends a copy of the abbreviation table at offset `table`, with two more abbreviations. Entries of calls will
    /// be overwritten by blocks of bytes, which readers skip. One new abbreviation is for blocks with a short length
    /// field, the other for blocks with a long one. `None` if the table is damaged, or if all tables copied before are
    /// longer together than `.debug_info`, which is possible if tables overlap.
    fn add_table(&mut self, table: usize, endian: RunTimeEndian) -> Option<TableWithBlocks> {
        let (end, free_code) = end_and_free_code(self.abbreviations.get(table..)?)?;
        let offset = self.abbreviations.len();
        if self.copied_len > self.info.len() {
            return None;
        }
        // `end` excludes the terminator: the copy continues with the new abbreviations.
        self.copied_len += end;
        // Codes above `free_code` are free, too.
        let blocks = Blocks { short: uleb(free_code), long: uleb(free_code + 1), endian };
        self.abbreviations.extend_from_within(table..table + end);
        self.abbreviations.extend(blocks.abbreviations());
        Some(TableWithBlocks { offset, blocks })
    }
}

/// The abbreviation codes of entries that consist of a block of bytes.
struct Blocks {
    /// The abbreviation code, as a ULEB128 number, for blocks whose length field has one byte.
    short: Vec<u8>,
    /// The abbreviation code, as a ULEB128 number, for blocks whose length field has four bytes.
    long: Vec<u8>,
    endian: RunTimeEndian,
}

impl Blocks {
    /// Overwrites each of these ranges with an entry that consists of a block of bytes. `None` if a range is too short
    /// for one.
    fn replace(&self, entries: &[Range<usize>], info: &mut [u8]) -> Option<()> {
        for entry in entries {
            let bytes = info.get_mut(entry.clone())?;
            let head = self.head(bytes.len())?;
            bytes.get_mut(..head.len())?.copy_from_slice(&head);
        }
        Some(())
    }

    /// The first bytes of a DWARF entry that consists of a block of bytes, and is `len` bytes long in total. They are
    /// the entry's abbreviation code and the length of the block. `None` if `len` is too small for them.
    fn head(&self, len: usize) -> Option<Vec<u8>> {
        if let Ok(block_len) = u8::try_from(len.checked_sub(self.short.len() + 1)?) {
            return Some([&self.short[..], &[block_len]].concat());
        }
        let block_len = u32::try_from(len.checked_sub(self.long.len() + 4)?).ok()?;
        let is_big_endian = self.endian == RunTimeEndian::Big;
        let length_field = if is_big_endian { block_len.to_be_bytes() } else { block_len.to_le_bytes() };
        Some([&self.long[..], &length_field].concat())
    }

    /// Encodes what is appended to the copy of a table: the two abbreviations for blocks, and a new terminator.
    fn abbreviations(&self) -> Vec<u8> {
        const HAS_NO_CHILDREN: u8 = 0;
        let attribute = dw::DW_AT_description.0 as u8;
        let mut bytes = Vec::new();
        for (code, form) in [(&self.short, dw::DW_FORM_block1), (&self.long, dw::DW_FORM_block4)] {
            bytes.extend_from_slice(code);
            // The two zeros end the list of attributes.
            bytes.extend([dw::DW_TAG_lexical_block.0 as u8, HAS_NO_CHILDREN, attribute, form.0 as u8, 0, 0]);
        }
        bytes.push(0);
        bytes
    }
}

/// The offset of an abbreviation table's terminator, and the lowest abbreviation code above all that the table uses.
/// `None` if the table is damaged.
fn end_and_free_code(table: &[u8]) -> Option<(usize, u64)> {
    let (mut position, mut highest) = (0, 0);
    loop {
        let start = position;
        let code = read_uleb(table, &mut position)?;
        if code == 0 {
            return Some((start, u64::checked_add(highest, 1)?));
        }
        highest = highest.max(code);
        // Skip the tag, and the byte that says whether entries have children (DW_CHILDREN).
        read_uleb(table, &mut position)?;
        position += 1;
        loop {
            let (name, form) = (read_uleb(table, &mut position)?, read_uleb(table, &mut position)?);
            // An attribute with the form DW_FORM_implicit_const has its value in the abbreviation itself, after the
            // form.
            if form == u64::from(dw::DW_FORM_implicit_const.0) {
                read_uleb(table, &mut position)?;
            }
            // Two zeros end the list of attributes.
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
}

/// Reads the ULEB128 number at `position`, and moves `position` to the byte after it. Bits above the 64th are dropped.
/// `None` if the bytes end within the number.
pub(crate) fn read_uleb(bytes: &[u8], position: &mut usize) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(*position)?;
        *position += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        // The highest bit says that more bytes follow.
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

/// Encodes a number as ULEB128.
fn uleb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Removes inlined calls that are nested in more than `most` others from all units. Returns how many were removed.
pub(crate) fn limit_sections(
    sections: &mut gimli::DwarfSections<Cow<'_, [u8]>>,
    endian: RunTimeEndian,
    most: usize,
) -> u64 {
    let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, endian));
    // Units that share an abbreviation table then parse it only once.
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    let shallow = without_deep_calls(&dwarf, most, |_| true);
    let Some(shallow) = shallow else { return 0 };
    sections.debug_info = Cow::<[u8]>::Owned(shallow.info).into();
    sections.debug_abbrev = Cow::<[u8]>::Owned(shallow.abbreviations).into();
    shallow.left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use addr2line::Context;

    /// A unit with one function of 64 bytes at 0x1000 and `calls` nested inlined calls, all at the same addresses.
    /// Without `closed`, the entries that end lists of children are missing.
    fn nested(calls: usize, closed: bool) -> gimli::DwarfSections<Cow<'static, [u8]>> {
        const HAS_CHILDREN: u8 = 1;
        let placed = |code: u8, tag: gimli::DwTag| {
            let [low, high] = [dw::DW_AT_low_pc.0 as u8, dw::DW_AT_high_pc.0 as u8];
            let name = [dw::DW_AT_name.0 as u8, dw::DW_FORM_string.0 as u8];
            let forms = [low, dw::DW_FORM_addr.0 as u8, high, dw::DW_FORM_data1.0 as u8];
            [&[code, tag.0 as u8, HAS_CHILDREN], &name[..], &forms, &[0, 0]].concat()
        };
        let tags = [dw::DW_TAG_compile_unit, dw::DW_TAG_subprogram, dw::DW_TAG_inlined_subroutine];
        let mut abbreviations: Vec<u8> = (1..).zip(tags).flat_map(|(code, tag)| placed(code, tag)).collect();
        abbreviations.push(0);
        let entry = |code: u8, name: &str| [&[code], name.as_bytes(), &[0], &0x1000_u64.to_le_bytes(), &[64]].concat();
        let mut entries = [entry(1, "unit"), entry(2, "function")].concat();
        for call in 1..=calls {
            entries.extend(entry(3, &format!("call{call}")));
        }
        if closed {
            entries.extend(std::iter::repeat_n(0, calls + 2));
        }
        // DWARF 4, abbreviations at offset 0, addresses of 8 bytes.
        let unit = [&[4, 0, 0, 0, 0, 0, 8][..], &entries].concat();
        let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
        let section = |id| match id {
            gimli::SectionId::DebugInfo => Cow::Owned(info.clone()),
            gimli::SectionId::DebugAbbrev => Cow::Owned(abbreviations.clone()),
            _ => Cow::default(),
        };
        gimli::DwarfSections::load(|id| Ok::<_, gimli::Error>(section(id))).unwrap()
    }

    /// The functions at an address, innermost first.
    fn names(sections: &gimli::DwarfSections<Cow<'_, [u8]>>) -> Vec<String> {
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, RunTimeEndian::Little));
        let mut names = Vec::new();
        let Ok(context) = Context::from_dwarf(dwarf) else { return names };
        let Ok(mut frames) = context.find_frames(0x1010).skip_all_loads() else { return names };
        while let Ok(Some(frame)) = frames.next() {
            names.extend(frame.function.map(|function| String::from_utf8_lossy(function.name.slice()).into_owned()));
        }
        names
    }

    #[test]
    fn calls_that_are_nested_too_deep_count_for_the_call_around_them() {
        const MOST: usize = 200;
        for (calls, closed) in [(MOST, true), (MOST + 1, true), (5000, true), (100_000, true), (100_000, false)] {
            let mut sections = nested(calls, closed);
            let left_out = limit_sections(&mut sections, RunTimeEndian::Little, MOST);
            assert_eq!(left_out, (calls - MOST) as u64);
            // addr2line doesn't read a truncated unit.
            if closed {
                let shown = names(&sections);
                assert_eq!((shown.len(), &shown[0][..], &shown[MOST][..]), (MOST + 1, "call200", "function"));
            }
            assert_eq!(limit_sections(&mut sections, RunTimeEndian::Little, MOST), 0);
        }
    }

    #[test]
    fn every_flipped_byte_is_survived() {
        let whole = nested(40, true);
        let info = whole.borrow(|bytes| EndianSlice::new(bytes, RunTimeEndian::Little)).debug_info.reader().to_vec();
        for at in 0..info.len() {
            let mut sections = nested(40, true);
            let mut bent = info.clone();
            bent[at] ^= 1 << (at % 8);
            sections.debug_info = Cow::<[u8]>::Owned(bent).into();
            limit_sections(&mut sections, RunTimeEndian::Little, 8);
            assert!(limit_sections(&mut sections, RunTimeEndian::Little, 8) <= 40);
            assert!(names(&sections).len() <= 42);
        }
    }
}
