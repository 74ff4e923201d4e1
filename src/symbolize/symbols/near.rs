//! Selects the DWARF units that are needed to resolve certain addresses.
//!
//! An `addr2line` context reads the head of every unit, for which it needs the unit's abbreviations. In a file with
//! 2,000 units, of which ten are hit, that is nearly all of its work. Where `.debug_aranges` tells which addresses a
//! unit covers, units that aren't needed are presented without abbreviations, and the context skips them. Units that
//! are missing from `.debug_aranges` are kept. Its ranges may be incomplete: for an address that is listed nowhere, the
//! ranges in the units themselves are searched. If all addresses are listed, `.debug_info` isn't even decompressed
//! beyond the last needed unit. If a needed unit refers to one that was left out, a context with all units is used
//! instead.
//!
//! Reading lines costs as much as reading functions. If lines aren't requested, units are therefore presented without
//! their line tables.

use super::image::Image;
use super::plt;
use crate::model::dwarf_depth::read_uleb;
use gimli::{EndianSlice, RunTimeEndian, constants};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The reader that gimli uses for DWARF sections.
pub(super) type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// What `.debug_aranges` says about which units contain the requested addresses.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// For each unit in `.debug_aranges`, by offset in `.debug_info`: true if it contains one of the addresses.
    contains_any: FxHashMap<usize, bool>,
    /// The requested addresses that no listed unit contains. If such an address directly follows one that a listed unit
    /// contains, it is left out: it is only looked up if nothing is found at the address before it.
    unlisted: Vec<u64>,
}

impl Listed {
    /// Looks up the addresses, which must be ascending. `None` if `.debug_aranges` is damaged.
    pub(super) fn new(aranges: &gimli::DebugAranges<Reader<'_>>, addresses: &[u64]) -> Option<Self> {
        let mut contains_any: FxHashMap<usize, bool> = FxHashMap::default();
        // For each address: true if a unit in the section contains it.
        let mut is_listed = vec![false; addresses.len()];
        let mut lists = aranges.headers();
        while let Some(list) = lists.next().ok()? {
            let mut ranges = list.entries();
            while let Some(range) = ranges.next().ok()? {
                if range.length() > 0 {
                    let end = range.address().saturating_add(range.length());
                    let count_below = |limit: u64| addresses.partition_point(|&addr| addr < limit);
                    let inside = count_below(range.address())..count_below(end);
                    *contains_any.entry(list.debug_info_offset().0).or_default() |= !inside.is_empty();
                    is_listed[inside].fill(true);
                }
            }
        }
        let mut unlisted = Vec::new();
        for (index, &addr) in addresses.iter().enumerate() {
            // Of two successive addresses, the second is only looked up if nothing is found at the first. So if the
            // first is in a listed unit, no unit is needed for the second.
            let follows_listed = index > 0 && is_listed[index - 1] && addresses[index - 1] == addr.wrapping_sub(1);
            if !is_listed[index] && !follows_listed {
                unlisted.push(addr);
            }
        }
        Some(Self { contains_any, unlisted })
    }

    /// Loads `.debug_info` up to the end of the last unit that is needed, or as a whole if it isn't known which units
    /// are needed. The second value is true if the end was left out. A section that isn't compressed is never cut,
    /// because loading it costs nothing.
    pub(super) fn info<'a>(
        &self,
        image: &'a Image,
        object: &object::File<'a>,
        endian: RunTimeEndian,
    ) -> (Cow<'a, [u8]>, bool) {
        const NAME: &str = ".debug_info";
        // Which units are needed is unknown if no units are listed, or if an address is in none of the listed units.
        if self.contains_any.is_empty() || !self.unlisted.is_empty() {
            return (image.section(object, NAME), false);
        }
        let mut last_needed = None;
        for (&offset, &is_needed) in &self.contains_any {
            if is_needed {
                last_needed = last_needed.max(Some(offset));
            }
        }
        // How many bytes of `.debug_info` to decompress, given `head`, the bytes decompressed so far. If `head` doesn't
        // contain the length of the last needed unit yet, this is enough bytes to contain that length. Otherwise, it is
        // the bytes up to the end of the unit. 0 if no unit is needed.
        let find_end = |head: &[u8]| match last_needed {
            Some(offset) => unit_end(head, offset, endian),
            None => 0,
        };
        // `section_up_to` calls `find_end` again and again, until it has as many bytes as that returns.
        match image.section_up_to(object, NAME, find_end) {
            // The section isn't compressed, so all of it is there.
            Cow::Borrowed(bytes) => (Cow::Borrowed(bytes), false),
            Cow::Owned(mut bytes) => {
                // More bytes than needed may have been decompressed. Cut them off at the end of the last needed unit.
                bytes.truncate(find_end(&bytes));
                (Cow::Owned(bytes), true)
            }
        }
    }
}

/// Returns where a unit ends, as an offset in `.debug_info`. `unit` is the offset of the unit's start, `head` the start
/// of `.debug_info`. If `head` is too short to tell, returns how many bytes of `.debug_info` are needed to tell.
fn unit_end(head: &[u8], unit: usize, endian: RunTimeEndian) -> usize {
    /// A unit starts with its length, which takes at most this many bytes.
    const HEAD: usize = 12;
    let mut reader = EndianSlice::new(head.get(unit..).unwrap_or_default(), endian);
    let end = gimli::Reader::read_initial_length(&mut reader)
        .ok()
        .and_then(|(len, format)| unit.checked_add(usize::from(format.initial_length_size()))?.checked_add(len));
    end.unwrap_or_else(|| unit.saturating_add(HEAD))
}

/// The abbreviation tables of all units, each by its offset in `.debug_abbrev`.
#[derive(Debug)]
pub(super) struct Tables {
    /// Tables of units that may contain a requested address.
    near: FxHashSet<usize>,
    /// Tables used only by units that contain no requested address.
    far: FxHashSet<usize>,
}

impl Tables {
    /// Collects the abbreviation tables of all units. Tables of units that may contain a requested address are `near`.
    /// Tables that only other units use are `far`: without them, these units can be skipped. `None` if a unit is
    /// damaged.
    pub(super) fn new(dwarf: &gimli::Dwarf<Reader<'_>>, listed: &Listed) -> Option<Self> {
        let mut near = FxHashSet::default();
        let mut far = FxHashSet::default();
        let mut units = dwarf.units();
        while let Some(unit) = units.next().ok()? {
            let table = unit.debug_abbrev_offset().0;
            // True if the unit contains a requested address, according to `.debug_aranges`; `None` if the unit isn't
            // listed there.
            let is_hit = unit.debug_info_offset().and_then(|offset| listed.contains_any.get(&offset.0));
            // A unit is far if `.debug_aranges` lists it without a requested address, and its own ranges contain none
            // of the addresses that no listed unit contains.
            if is_hit == Some(&false) && !covers(dwarf, unit, &listed.unlisted) {
                far.insert(table);
            } else {
                near.insert(table);
            }
        }
        // Units may share a table. It is only far if all units that use it are.
        far.retain(|table| !near.contains(table));
        Some(Self { near, far })
    }

    /// Empties the `far` abbreviation tables, so that the units that use them are skipped. Returns true if there are
    /// any. `abbreviations` is the contents of `.debug_abbrev`.
    pub(super) fn leave_out_far(&self, abbreviations: &mut Cow<'_, [u8]>) -> bool {
        if self.far.is_empty() {
            return false;
        }
        let abbreviations = abbreviations.to_mut();
        for &table_offset in &self.far {
            // A table starts with the number (code) of its first entry. If that is 0, the table is empty.
            if let Some(code) = abbreviations.get_mut(table_offset) {
                *code = 0;
            }
        }
        true
    }

    /// Makes the units that are needed appear as if they had no line tables, and returns true. If some unit doesn't
    /// state its address range, its line table is needed to find the range; then changes nothing and returns false. It
    /// does the same if an abbreviation table is damaged or has an attribute that can't be replaced. `abbreviations` is
    /// the contents of `.debug_abbrev`.
    pub(super) fn leave_out_lines(&self, abbreviations: &mut Cow<'_, [u8]>) -> bool {
        // The offsets in `.debug_abbrev` of all attributes that point to the line table of a unit.
        let mut attribute_offsets = Vec::new();
        // `near` has the abbreviation tables of the units that are needed, by their offsets in `.debug_abbrev`.
        for &table_offset in &self.near {
            // `line_tables` finds the table's attributes of this kind; `None` if they must stay.
            let Some(in_table) = line_tables(abbreviations, table_offset) else { return false };
            attribute_offsets.extend(in_table);
        }
        if !attribute_offsets.is_empty() {
            let abbreviations = abbreviations.to_mut();
            for offset in attribute_offsets {
                // The attribute is replaced by `DW_AT_producer`, which plays no role in finding functions.
                abbreviations[offset] = constants::DW_AT_producer.0 as u8;
            }
        }
        true
    }
}

/// Finds the attributes `DW_AT_stmt_list`, which point to the line table of a unit, in the abbreviation table at offset
/// `table`. Returns their offsets in `.debug_abbrev`. `None` if the table is damaged, if such an attribute can't be
/// replaced, or if the line table may be the only place that tells the address range of a unit. That is assumed if the
/// table describes functions with addresses, but no unit with a range. If one unit states its range, all units with
/// this table do, because the same compiler made them.
fn line_tables(abbreviations: &[u8], table: usize) -> Option<Vec<usize>> {
    use constants::{
        DW_AT_high_pc, DW_AT_low_pc, DW_AT_ranges, DW_AT_stmt_list, DW_FORM_implicit_const, DW_TAG_subprogram,
    };
    let mut attributes = Vec::new();
    let (mut has_unit_range, mut has_functions) = (false, false);
    let mut offset = table;
    while read_uleb(abbreviations, &mut offset)? != 0 {
        let tag = read_uleb(abbreviations, &mut offset)?;
        // Skip the flag that says whether the entry has children.
        offset += 1;
        let (mut line_table, mut has_low, mut has_ranges) = (None, false, false);
        loop {
            let name_offset = offset;
            let (name, form) = (read_uleb(abbreviations, &mut offset)?, read_uleb(abbreviations, &mut offset)?);
            // An attribute of this form has its value here in the table. Values of other forms are in `.debug_info`.
            if form == u64::from(DW_FORM_implicit_const.0) {
                read_uleb(abbreviations, &mut offset)?;
            }
            // Two zeros end the list of attributes.
            if (name, form) == (0, 0) {
                break;
            }
            let is = |attribute: constants::DwAt| name == u64::from(attribute.0);
            if is(DW_AT_stmt_list) {
                // The attribute can only be replaced in place if its name takes one byte, as it usually does.
                if offset != name_offset + 2 {
                    return None;
                }
                line_table = Some(name_offset);
            }
            has_low |= is(DW_AT_low_pc);
            has_ranges |= is(DW_AT_ranges) || is(DW_AT_high_pc);
        }
        // Only entries for units have a line table, so this is the entry for a unit.
        has_unit_range |= line_table.is_some() && has_ranges;
        has_functions |= tag == u64::from(DW_TAG_subprogram.0) && (has_low || has_ranges);
        attributes.extend(line_table);
    }
    if has_unit_range || !has_functions { Some(attributes) } else { None }
}

impl Listed {
    /// True if the unit may contain one of the addresses, which must be ascending. A unit that doesn't state its ranges
    /// may contain any address.
    pub(super) fn may_cover(
        &self,
        dwarf: &gimli::Dwarf<Reader<'_>>,
        unit: gimli::UnitHeader<Reader<'_>>,
        addresses: &[u64],
    ) -> bool {
        let is_hit = unit.debug_info_offset().and_then(|offset| self.contains_any.get(&offset.0));
        if is_hit == Some(&true) || covers(dwarf, unit, addresses) {
            return true;
        }
        // None of the unit's ranges contains an address. This means something only if the unit states any ranges; if
        // they can't be read, it counts as stating none.
        let has_ranges = || {
            let unit = dwarf.unit(unit)?;
            let mut ranges = dwarf.unit_ranges(&unit)?;
            Ok::<bool, gimli::Error>(ranges.next()?.is_some())
        };
        let states_ranges = has_ranges().unwrap_or(false);
        !states_ranges
    }
}

/// True if the unit's own ranges contain one of the addresses, which must be ascending, or if the ranges can't be read.
/// False without any addresses.
fn covers(dwarf: &gimli::Dwarf<Reader<'_>>, unit: gimli::UnitHeader<Reader<'_>>, addresses: &[u64]) -> bool {
    !addresses.is_empty() && contains_any(dwarf, unit, addresses).unwrap_or(true)
}

/// True if the unit's own ranges contain one of the addresses, which must be ascending. Fails if the ranges are
/// damaged.
fn contains_any(
    dwarf: &gimli::Dwarf<Reader<'_>>,
    unit: gimli::UnitHeader<Reader<'_>>,
    addresses: &[u64],
) -> gimli::Result<bool> {
    let unit = dwarf.unit(unit)?;
    let mut ranges = dwarf.unit_ranges(&unit)?;
    while let Some(range) = ranges.next()? {
        if plt::is_hit(addresses, range.begin, range.end) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use constants::{DW_AT_high_pc, DW_AT_low_pc, DW_AT_producer, DW_AT_stmt_list};
    use gimli::{DwAt, DwTag};

    /// An abbreviation table with these entries. The name and the form of each attribute take one byte.
    fn table(entries: &[(DwTag, &[DwAt])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for ((tag, attributes), code) in entries.iter().zip(1..) {
            bytes.extend([code, tag.0 as u8, 0]);
            let forms = attributes.iter().flat_map(|name| [name.0 as u8, constants::DW_FORM_sec_offset.0 as u8]);
            bytes.extend(forms.chain([0, 0]));
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn line_tables_are_left_out_where_units_state_where_they_are() {
        use constants::{DW_TAG_compile_unit as UNIT, DW_TAG_subprogram as FUNCTION};
        let lines: &[DwAt] = &[DW_AT_stmt_list];
        let placed: &[DwAt] = &[DW_AT_low_pc, DW_AT_stmt_list, DW_AT_high_pc];
        let function: (DwTag, &[DwAt]) = (FUNCTION, &[DW_AT_low_pc, DW_AT_high_pc]);
        assert_eq!(line_tables(&table(&[(UNIT, placed), function]), 0), Some(vec![5]));
        assert_eq!(line_tables(&table(&[(UNIT, lines)]), 0), Some(vec![3]));
        assert_eq!(line_tables(&table(&[(UNIT, lines), (UNIT, placed), function]), 0), Some(vec![3, 12]));
        assert_eq!(line_tables(&table(&[(UNIT, lines), function]), 0), None);
        let cut = table(&[(UNIT, placed)]);
        assert_eq!(line_tables(&cut[..cut.len() - 1], 0), None);

        let tables = Tables { near: [0].into_iter().collect(), far: FxHashSet::default() };
        let mut bytes = Cow::Owned(table(&[(UNIT, placed), function]));
        assert!(tables.leave_out_lines(&mut bytes));
        assert_eq!(bytes, table(&[(UNIT, &[DW_AT_low_pc, DW_AT_producer, DW_AT_high_pc]), function]));
    }

    #[test]
    fn a_unit_ends_where_its_length_states() {
        let little = RunTimeEndian::Little;
        let bytes = [&[0xee; 5][..], &100_u32.to_le_bytes(), &[5, 0, 1, 8, 0, 0, 0, 0]].concat();
        assert_eq!(unit_end(&bytes, 5, little), 5 + 4 + 100);
        assert_eq!(unit_end(&bytes[..7], 5, little), 5 + 12);
        assert_eq!(unit_end(&bytes, 500, little), 500 + 12);
        let long = [&[0xff; 4][..], &100_u64.to_be_bytes()].concat();
        assert_eq!(unit_end(&long, 0, RunTimeEndian::Big), 12 + 100);
        assert_eq!(unit_end(&[&[0xff; 4][..], &u64::MAX.to_le_bytes()].concat(), 0, little), 12);
    }
}
