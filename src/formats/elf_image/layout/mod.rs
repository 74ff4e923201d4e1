//! Decides where each code range goes in an image, and which of them share a section.

pub(super) mod apart;
mod mirror;

use super::slot::{Slot, SlotPiece, SlotPlace};
use super::target::{SEGMENTS, Target};
use std::collections::BTreeMap;
use std::ops::Range;

/// A run: neighboring pieces that form one code section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LayoutRun {
    /// Indices of the pieces in [`Layout::pieces`].
    pub(super) pieces: Range<usize>,
    /// Virtual address of the section in the image.
    pub(super) addr: u64,
    /// File offset of the section.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// True if the section contains code bytes. False if only the names of its code are known.
    pub(super) has_bytes: bool,
}

/// The layout of an image.
#[derive(Debug)]
pub(super) struct Layout {
    /// Where each code range is, indexed by slot; `None` for code that isn't in the image.
    pub(super) places: Vec<Option<SlotPlace>>,
    /// All pieces, sorted by address.
    pub(super) pieces: Vec<SlotPiece>,
    /// All code sections, sorted by address. In the file, they have the same order.
    pub(super) runs: Vec<LayoutRun>,
    /// File range of the code.
    pub(super) code: Range<u64>,
    /// Number of program headers for which the file has room.
    pub(super) segments: usize,
    /// Where `.eh_frame` and `.eh_frame_hdr` go.
    pub(super) frames: FramesAt,
    /// Address at which the [`SENTINELS`] sentinel functions start, which follow the code because hotspot 1.6 ignores
    /// the last functions of a file; see [`Layout::for_viewers`]. `None` if there are none.
    pub(super) sentinels: Option<u64>,
}

/// Number of sentinel functions at the end of an image for viewers; each is [`SENTINEL_LEN`] bytes long.
pub(super) const SENTINELS: u64 = 2;
pub(super) const SENTINEL_LEN: u64 = 16;

/// Where `.eh_frame` and `.eh_frame_hdr` of an image go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FramesAt {
    /// `.eh_frame` and `.eh_frame_hdr` follow the code. If there is no unwinding information, they are left out.
    AfterCode,
    /// Like [`Self::AfterCode`], but they aren't left out even if there is no unwinding information. The table is then
    /// empty, but libunwind only falls back to frame pointers if there is one.
    AfterCodeAlways,
    /// `.eh_frame` and `.eh_frame_hdr` are between the file's header and the code. Holds their size in bytes.
    BeforeCode(u64),
}

/// Pieces with a smaller gap between them share a section. This saves a page of padding between sections, and viewers
/// that disassemble a range of addresses (KCachegrind) want it in one section.
const JOIN_GAP: u64 = 4096;

/// If there are more runs than this, pieces are joined over larger gaps. Each run is a section, and the numbers of
/// sections must stay below SHN_LORESERVE (0xff00).
const MAX_RUNS: usize = 0x4000;

/// Groups pieces, sorted by address, into runs: neighboring pieces that form one section. If there are more than
/// [`MAX_RUNS`], groups the pieces again over larger gaps. The file offset of each run is set to its address; a layout
/// in which they differ must change it.
fn find_runs(pieces: &[SlotPiece], slots: &[Slot]) -> Vec<LayoutRun> {
    let mut gap = JOIN_GAP;
    loop {
        let runs = join_runs(gap, pieces, slots);
        if runs.len() <= MAX_RUNS {
            return runs;
        }
        // If even a gap of 2^62 bytes isn't enough, code alternates with ranges of which only names are known. Then
        // both kinds are joined, and the ranges without code get zeros.
        gap = if gap >= 1 << 62 { u64::MAX } else { gap * 4 };
    }
}

/// Groups pieces, sorted by address, into runs. Pieces with less than `gap` bytes between them get into the same run.
/// But a run has either code or ranges of which only names are known, unless `gap` is `u64::MAX`.
fn join_runs(gap: u64, pieces: &[SlotPiece], slots: &[Slot]) -> Vec<LayoutRun> {
    let mut runs: Vec<LayoutRun> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let has_bytes = slots[piece.slot as usize].code.bytes.is_some();
        if let Some(run) = runs.last_mut()
            && (run.has_bytes == has_bytes || gap == u64::MAX)
            // Code of size 0 may lie inside other code, hence the saturating subtraction.
            && piece.addr.saturating_sub(run.addr + run.size) < gap
        {
            run.pieces.end = index + 1;
            run.size = run.size.max(piece.end() - run.addr);
            run.has_bytes |= has_bytes;
            continue;
        }
        runs.push(LayoutRun {
            pieces: index..index + 1,
            addr: piece.addr,
            offset: piece.addr,
            size: piece.len,
            has_bytes,
        });
    }
    runs
}

impl Layout {
    /// The layout for perf: every address equals its file offset.
    pub(super) fn mirror(slots: &[Slot], target: Target) -> Self {
        let header = target.header_size(SEGMENTS);
        let (places, pieces) = mirror::place_slots(slots, header);
        Self::new(slots, (places, pieces), header, FramesAt::AfterCode)
    }

    /// A layout for perf in which the file offset of all code is its address minus `base`. The part of the file for
    /// code ([`Self::code`]) represents all of `span`, even if the code of this image doesn't reach its ends.
    pub(super) fn one_region(slots: &[Slot], target: Target, base: u64, span: &Range<u64>, frames: FramesAt) -> Self {
        let placed = mirror::place_one_region(slots, base);
        let code = span.start.wrapping_sub(base)..span.end.wrapping_sub(base);
        Self { code, ..Self::new(slots, placed, target.header_size(SEGMENTS), frames) }
    }

    /// A layout in which addresses equal file offsets. `placed` has the place of each slot, and the pieces into which
    /// the code of all slots is divided, sorted by address. `header` is the first file offset at which code can start
    /// ([`Target::header_size`]).
    fn new(slots: &[Slot], placed: (Vec<Option<SlotPlace>>, Vec<SlotPiece>), header: u64, frames: FramesAt) -> Self {
        let (places, pieces) = placed;
        let runs = find_runs(&pieces, slots);
        let code = match (runs.first(), runs.last()) {
            (Some(first), Some(last)) => first.addr..last.addr + last.size,
            // There is no code, so the range is empty.
            _ => header..header,
        };
        Self { places, pieces, runs, code, segments: SEGMENTS, frames, sentinels: None }
    }

    /// Adapts the layout to viewers other than perf. samply looks for functions only in code sections with bytes in the
    /// file, so code of which only names are known becomes a hole in such a section. hotspot 1.6 loses the last two
    /// functions of a file, so two sentinels are added after the code. There is a gap before them: if code ends with a
    /// call, the return address is the byte after the call, and mustn't be in a sentinel.
    pub(super) fn for_viewers(&mut self) {
        for run in &mut self.runs {
            run.has_bytes = true;
        }
        if let Some(last) = self.runs.last_mut() {
            let sentinels = (last.addr + last.size).next_multiple_of(SENTINEL_LEN) + SENTINEL_LEN;
            self.code.end = sentinels + SENTINELS * SENTINEL_LEN;
            last.size = self.code.end - last.addr;
            self.sentinels = Some(sentinels);
        }
    }

    /// The layout for callgrind's viewers: all code at its run-time address, in sections of neighboring pieces (runs)
    /// that follow each other in the file.
    pub(super) fn run_time(slots: &[Slot], target: Target) -> Self {
        let limit = if target.is_64 { u64::MAX } else { u64::from(u32::MAX) };
        let pieces = cut_into_pieces(slots, limit);
        let mut runs = find_runs(&pieces, slots);
        // There is at least one program header, if need be an unused one (PT_NULL), because a program without any looks
        // damaged.
        let segments = runs.iter().filter(|run| run.has_bytes).count().max(1);
        let header = target.header_size(segments);
        let mut end = header;
        for run in &mut runs {
            run.offset = end.next_multiple_of(16);
            // A run of names without code takes no room in the file.
            end = run.offset + if run.has_bytes { run.size } else { 0 };
        }
        let mut places = vec![None; slots.len()];
        for run in &runs {
            // A slot's place is that of the piece with the start of its code (`skip` is 0).
            for piece in pieces[run.pieces.clone()].iter().filter(|piece| piece.skip == 0) {
                let offset = run.offset + if run.has_bytes { piece.addr - run.addr } else { 0 };
                places[piece.slot as usize] = Some(SlotPlace { offset, addr: piece.addr });
            }
        }
        Self { places, pieces, runs, code: header..end, segments, frames: FramesAt::AfterCode, sentinels: None }
    }
}

/// Cuts code that shared addresses into disjoint pieces at run-time addresses, sorted by address. The last code at an
/// address wins. Code beyond `limit` has no piece.
fn cut_into_pieces(slots: &[Slot], limit: u64) -> Vec<SlotPiece> {
    // The last code range goes first, and takes all its addresses. Each range before it takes what the later ones have
    // left of its addresses. `taken` maps the start of each range of taken addresses to its end.
    let mut taken = BTreeMap::<u64, u64>::new();
    let mut pieces = Vec::with_capacity(slots.len());
    for (index, slot) in slots.iter().enumerate().rev() {
        let start = slot.addr.0;
        let Some(end) = start.checked_add(slot.code.size).filter(|&end| end <= limit) else { continue };
        take_free(&mut taken, start, end, |free_start, free_end| {
            let (skip, len) = (free_start - start, free_end - free_start);
            pieces.push(SlotPiece { addr: free_start, skip, len, slot: index as u32 });
        });
    }
    pieces.sort_unstable_by_key(|piece| (piece.addr, piece.len, piece.slot));
    pieces
}

/// Calls `free` for each part of `start..end` that is not taken yet, then takes the whole range. `taken` maps the start
/// of each taken range to its end. Ranges that touch are merged.
fn take_free(taken: &mut BTreeMap<u64, u64>, start: u64, end: u64, mut free: impl FnMut(u64, u64)) {
    // The taken range that contains `start` or ends there.
    let before = taken.range(..=start).next_back().map(|(&from, &to)| (from, to)).filter(|&(_, to)| to >= start);
    // Code of size 0 takes nothing, but has a piece unless it lies inside other code.
    if start == end && before.is_none_or(|(_, to)| to == start) {
        free(start, end);
    }
    // `merged_from..merged_to` is the union of `start..end`, as far as it was looked at, and the taken ranges that it
    // touches. `position` is the first address that wasn't looked at yet. The range `before` is taken already, so
    // looking starts at its end.
    let (merged_from, mut position) = before.unwrap_or((start, start));
    let mut merged_to = position;
    while position < end {
        // The addresses are free up to the next taken range, which becomes a part of the merged one.
        let next = taken.range(position..).next().map(|(&from, &to)| (from, to)).filter(|&(from, _)| from < end);
        let (free_to, resume) = next.unwrap_or((end, end));
        if free_to > position {
            free(position, free_to);
        }
        if let Some((from, _)) = next {
            taken.remove(&from);
        }
        position = resume;
        merged_to = merged_to.max(resume);
    }
    if merged_to.max(end) > merged_from {
        taken.insert(merged_from, merged_to.max(end));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bytes::cursor::Endian;
    use crate::model::Addr;
    use crate::model::code::{Code, Lines, OriginId};

    const X86_64: Target = Target { machine: 62, is_64: true, endian: Endian::Little };

    /// Makes code of this size without bytes, for tests in which nothing else matters.
    pub(in super::super) fn named(size: u64) -> Code<'static> {
        Code {
            name: b"f",
            addr: Addr(0),
            size,
            bytes: None,
            lines: Lines::default(),
            unwind: None,
            origin: OriginId(0),
        }
    }

    pub(super) fn slots<'a>(codes: &'a [Code<'static>], addresses: &[u64]) -> Vec<Slot<'a, 'static>> {
        codes.iter().zip(addresses).map(|(code, &addr)| Slot { code, addr: Addr(addr) }).collect()
    }

    #[test]
    fn runs_join_small_gaps_of_one_kind() {
        let codes = [named(16), named(16), Code { bytes: Some(&[0x90; 16]), ..named(16) }, named(16)];
        let layout = Layout::run_time(&slots(&codes, &[0x1000, 0x1100, 0x1200, 0x9000]), X86_64);
        let runs: Vec<_> = layout.runs.iter().map(|run| (run.addr, run.size, run.has_bytes)).collect();
        assert_eq!(runs, [(0x1000, 0x110, false), (0x1200, 16, true), (0x9000, 16, false)]);
    }

    #[test]
    fn sections_never_outnumber_what_elf_can_count() {
        let bytes: &[u8] = &[0x90; 16];
        let codes: Vec<_> = (0..70_000).map(|n| Code { bytes: (n % 2 == 0).then_some(bytes), ..named(16) }).collect();
        let addresses: Vec<u64> = (0..70_000).map(|n| n * 0x10_0000).collect();
        let layout = Layout::run_time(&slots(&codes, &addresses), X86_64);
        assert!(layout.runs.len() <= MAX_RUNS);
        assert_eq!(layout.pieces.len(), 70_000);
    }

    #[test]
    fn code_of_no_size_may_stand_inside_of_other_code() {
        let codes = [named(0x100), named(0)];
        let layout = Layout::run_time(&slots(&codes, &[0x1000, 0x1080]), X86_64);
        let runs: Vec<_> = layout.runs.iter().map(|run| (run.addr, run.size, run.pieces.len())).collect();
        assert_eq!(runs, [(0x1000, 0x100, 2)]);
    }

    #[test]
    fn at_run_time_the_latest_code_wins() {
        let codes = [named(0x100), named(0x40), named(0x100), named(8)];
        let layout = Layout::run_time(&slots(&codes, &[0x1000, 0x1040, 0x10c0, u64::MAX - 4]), X86_64);
        let pieces: Vec<_> =
            layout.pieces.iter().map(|piece| (piece.slot, piece.addr, piece.skip, piece.len)).collect();
        let first = [(0, 0x1000, 0, 0x40), (1, 0x1040, 0, 0x40), (0, 0x1080, 0x80, 0x40), (2, 0x10c0, 0, 0x100)];
        assert_eq!(pieces, first);
        assert_eq!(layout.places[3], None, "beyond the address space");
        let narrow = Target { is_64: false, ..X86_64 };
        assert_eq!(Layout::run_time(&slots(&codes, &[1 << 32]), narrow).places, [None]);
    }
}
