//! Distributes code over several images, so that user stacks can be unwound through them.
//!
//! perf unwinds a copy of the user stack by the images' `.eh_frame`, using one of two libraries. Both take an image for
//! an ordinary shared library that is loaded once, as a whole:
//!
//! * libdw reports a module that extends from the image's first PT_LOAD to its last, at `map.start - map.pgoff`. A
//!   module that overlaps another ends all unwinding of the process ("address range overlaps an existing module"). Thus
//!   an image must not be longer than the range of code that it represents, and no other file may be mapped between its
//!   code.
//! * libunwind takes the *lowest* map of the image for its start, and reads the search table through the process's
//!   maps. Thus all code of an image needs the same base, and the image's header and `.eh_frame` must be mapped as well
//!   ([`AuxMapping`](super::super::AuxMapping)), at addresses where nothing else ever ran.
//!
//! Therefore each range of addresses that contains code, but no other file, gets an image, plus one for each time that
//! its addresses were reused. `.eh_frame` goes before or after the code, wherever addresses are free. All images of a
//! range have the same base and length. So the second image of a range doesn't end the unwinding as an overlapping
//! module would: libdw takes it for the module that it already has, and goes on with the first image. On recordings of
//! Node.js, CPython and Erlang, both libraries unwind at least as far as through perf's own images, of which there is
//! one per function.

use super::mirror::{Item, MAX_LAYERS, MIRROR_LIMIT, REGION_GAP, sorted_items};
use crate::formats::elf_image::slot::Slot;
use std::ops::Range;

/// The maximum number of groups of code that get an image of their own. If there are more groups, those with the fewest
/// slots are put together in one additional image.
const MAX_IMAGES: usize = 64;

/// Code that goes into one image.
#[derive(Debug)]
pub(in super::super) struct Group {
    /// Indices of the group's slots, in the order in which they were added.
    pub(in super::super) slots: Vec<u32>,
    /// The range of addresses from the first to the last code. If addresses were reused, there is a group for each use
    /// (layer), and all of these have the same range. `None` if the code is too scattered for a common base.
    pub(in super::super) span: Option<Range<u64>>,
    /// True if another file is mapped in this range. The image then replaces that file (such as Node.js, for its
    /// builtins).
    pub(in super::super) in_file: bool,
}

/// Address ranges, sorted and merged.
#[derive(Debug)]
pub(in super::super) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Sorts the ranges, and joins those that overlap or touch each other.
    pub(in super::super) fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_unstable_by_key(|range| (range.start, range.end));
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in sorted {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// True if one of the ranges overlaps `range`.
    pub(in super::super) fn overlap(&self, range: &Range<u64>) -> bool {
        let next = self.0.partition_point(|known| known.end <= range.start);
        !range.is_empty() && self.0.get(next).is_some_and(|known| known.start < range.end)
    }

    /// Returns those of the ranges that contain none of the given addresses, which must be sorted.
    fn containing_none_of(&self, addresses: impl Iterator<Item = u64>) -> Self {
        let mut addresses = addresses.peekable();
        let mut kept = Vec::new();
        for range in &self.0 {
            // Ranges are sorted, too, so addresses before this one can't be in a later one.
            while addresses.next_if(|&addr| addr < range.start).is_some() {}
            if addresses.peek().is_none_or(|&addr| addr >= range.end) {
                kept.push(range.clone());
            }
        }
        Self(kept)
    }
}

/// Divides the slots (code, with the addresses at which it ran) into groups, one per image. Two code ranges go into the
/// same group if there is no large gap and no other file between them (`foreign` are the addresses of other files). If
/// addresses were reused, each use is a group of its own: layer 0 is the first use, layer 1 the second. Code beyond the
/// limits for layers and groups forms one last group.
pub(in super::super) fn group_slots(slots: &[Slot], foreign: &Ranges) -> Vec<Group> {
    let items = sorted_items(slots);
    // If code lies inside another file's mapping (as Node.js's builtins do), that mapping doesn't separate it from
    // other code.
    let separators = foreign.containing_none_of(items.iter().map(|item| item.addr));
    let (fitting, too_many): (Vec<&Item>, Vec<&Item>) = items.iter().partition(|item| item.layer < MAX_LAYERS);
    let mut groups: Vec<Group> = Vec::new();
    let mut remaining = &fitting[..];
    while let Some(first) = remaining.first() {
        // Extend the span from the first item up to the last one before a gap or another file. The span always contains
        // the first item, so the loop makes progress.
        let mut span = first.addr..first.addr + first.len;
        // `extend_span` returns false for an item behind a gap or another file, or one that makes the span too long.
        let end = remaining.iter().position(|item| !extend_span(&mut span, item, &separators));
        let (in_span, after) = remaining.split_at(end.unwrap_or(remaining.len()));
        // A mapping that contains code is no separator, so the span may lie inside such a mapping.
        let in_file = foreign.overlap(&span);
        for layer in 0..MAX_LAYERS {
            let slots: Vec<u32> = in_span.iter().filter(|item| item.layer == layer).map(|item| item.slot).collect();
            if !slots.is_empty() {
                groups.push(Group { slots, span: Some(span.clone()), in_file });
            }
        }
        remaining = after;
    }
    // One more image gets all code that is left: code at addresses that were reused too often, and the code of groups
    // beyond the limit for images.
    let mut rest: Vec<u32> = too_many.iter().map(|item| item.slot).collect();
    keep_largest(&mut groups, &mut rest);
    if !rest.is_empty() {
        groups.push(Group { slots: rest, span: None, in_file: false });
    }
    for group in &mut groups {
        group.slots.sort_unstable();
    }
    groups
}

/// Extends a range to the end of the next code. Returns false, and leaves the range as it is, if the code is too far
/// away, the range would become too long, or another file lies in between.
fn extend_span(span: &mut Range<u64>, next: &Item, separators: &Ranges) -> bool {
    let end = next.addr + next.len;
    let is_near = next.addr.saturating_sub(span.end) < REGION_GAP && end - span.start < MIRROR_LIMIT;
    if !is_near || separators.overlap(&(span.end..next.addr)) {
        return false;
    }
    span.end = span.end.max(end);
    true
}

/// Keeps only the groups with most slots, at most [`MAX_IMAGES`] of them. Moves the slots of the others to `rest`.
fn keep_largest(groups: &mut Vec<Group>, rest: &mut Vec<u32>) {
    if groups.len() <= MAX_IMAGES {
        return;
    }
    let mut sizes: Vec<usize> = groups.iter().map(|group| group.slots.len()).collect();
    sizes.sort_unstable();
    let smallest_kept = sizes[sizes.len() - MAX_IMAGES];
    // Several groups may have this size, so the number of kept groups is limited, too.
    let mut kept = 0;
    groups.retain(|group| {
        let keep = group.slots.len() >= smallest_kept && kept < MAX_IMAGES;
        kept += usize::from(keep);
        if !keep {
            rest.extend_from_slice(&group.slots);
        }
        keep
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::{named, slots};
    use super::*;

    fn spans(groups: &[Group]) -> Vec<(usize, Option<Range<u64>>)> {
        groups.iter().map(|group| (group.slots.len(), group.span.clone())).collect()
    }

    #[test]
    fn an_image_ends_where_another_file_is_mapped_or_addresses_are_used_again() {
        let codes = [named(0x100); 5];
        let slots = slots(&codes, &[0x1000, 0x1100, 0x3000, 0x3080, 0x9000_0000]);
        let foreign = Ranges::new([0x2000..0x2001, 0x9000_0080..0x9000_0081]);
        let again = Some(0x3000..0x3180);
        let expected = [(2, Some(0x1000..0x1200)), (1, again.clone()), (1, again), (1, Some(0x9000_0000..0x9000_0100))];
        assert_eq!(spans(&group_slots(&slots, &foreign)), expected);
    }

    #[test]
    fn code_within_a_mapped_file_stays_together() {
        let codes = [named(0x100); 2];
        let slots = slots(&codes, &[0x1000, 0x3000]);
        assert_eq!(spans(&group_slots(&slots, &Ranges::new(Some(0x800..0x4000)))), [(2, Some(0x1000..0x3100))]);
    }

    #[test]
    fn code_too_scattered_or_used_again_too_often_shares_the_last_image() {
        let codes = vec![named(0x100); 90];
        let addresses: Vec<u64> = (0..90).map(|n| if n < 80 { (n + 1) << 32 } else { 0x1000 }).collect();
        let groups = group_slots(&slots(&codes, &addresses), &Ranges::new([]));
        assert_eq!(groups.len(), MAX_IMAGES + 1);
        assert_eq!(groups.iter().map(|group| group.slots.len()).sum::<usize>(), 90);
        assert_eq!(groups[MAX_IMAGES].span, None);
    }

    #[test]
    fn ranges_are_merged() {
        let ranges = Ranges::new([5..7, 1..3, 2..4, 9..9]);
        assert_eq!(ranges.0, [1..4, 5..7]);
        assert!(
            ranges.overlap(&(0..2)) && ranges.overlap(&(6..9)) && !ranges.overlap(&(4..5)) && !ranges.overlap(&(6..6))
        );
    }
}
