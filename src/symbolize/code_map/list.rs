//! Stores JIT code and what happened to it (loads, moves, unloads) in about 80 bytes per load. A jitdump may report
//! millions of loads, of which the samples hit only a few.

use crate::model::code::{AuthoredLines, Code, Lines, OriginId, Unwind};
use crate::model::{Addr, Nanos, Pid};
use std::ops::Range;

/// The number of one piece of code in a code map, in the order of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// The code events that one source reports, in the order in which it reports them. Input of
/// [`CodeMap::build`](super::CodeMap::build).
#[derive(Debug, Default)]
pub struct CodeList<'data> {
    pub(super) codes: Codes<'data>,
    pub(super) changes: Vec<Change>,
}

/// One code event. For a load or a move: from `time` on, `code` is in memory from `start` to `end` (exclusive). For
/// what the fields mean in other events, see [`ChangeKind`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) time: Nanos,
    pub(super) start: Addr,
    pub(super) end: Addr,
    pub(super) code: CodeId,
    pub(super) pid: Pid,
    /// The position of this change among all changes that are replayed together. It is set just before the replay,
    /// which sorts changes by address and needs it to restore their order.
    pub(super) order: u32,
    pub(super) kind: ChangeKind,
    /// True if this change counts only where no other source has code; see [`CodeList::fill_in`].
    pub(super) fills_in: bool,
}

/// A load or move of code, as returned by [`CodeList::iter`].
#[derive(Debug, Clone, Copy)]
pub struct ListedCode<'data> {
    /// When the load or move happened, on the recording's clock; `None` if unknown.
    pub time: Option<Nanos>,
    /// The process in whose memory the code is.
    pub pid: Pid,
    /// The code with the address at which it was loaded, even if this event is a move.
    pub code: Code<'data>,
    /// True if the event is a move, false if it is a load.
    pub is_move: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChangeKind {
    /// `code` is no longer at this address from `time` on, because it was unloaded or moved away.
    Gone,
    Load,
    Move,
    /// A load or move at an unknown time. If two overlap, the one later in the list wins.
    Untimed,
    /// Cancels earlier untimed entries from `start` to `end`, because the process has mapped a file there whose symbols
    /// are better names. Has no code of its own; `time` and `code` are unused.
    Hidden,
    /// The event has no effect, for example because it moves code that was never loaded. It stays in the list because
    /// other events refer to events by position.
    Nothing,
}

impl<'data> CodeList<'data> {
    /// An empty list with room for `count` loads.
    pub fn with_capacity(count: usize) -> Self {
        let mut list = Self::default();
        list.codes.packed.reserve(count);
        list.changes.reserve(count);
        list
    }

    /// Appends a load: `code` was written to the memory of process `pid` at its address. Returns the load's position in
    /// the list, by which moves and unloads refer to it. `pid` is the process ID as recorded, which is the one outside
    /// of PID namespaces. `time` is on the recording's clock; `None` if the source has no times, so that the code
    /// counts during the whole run of the process.
    pub fn load(&mut self, pid: Pid, time: Option<Nanos>, code: &Code<'data>) -> usize {
        let kind = if time.is_some() { ChangeKind::Load } else { ChangeKind::Untimed };
        let id = self.codes.push(code);
        self.push(pid, time, code.addr, kind, Some(id));
        self.changes.len() - 1
    }

    /// Appends a move: the code of the load at position `load` moved to `to`. Name, bytes, lines and unwinding
    /// information stay the same.
    pub fn move_to(&mut self, pid: Pid, time: Option<Nanos>, load: usize, to: Addr) {
        let kind = if time.is_some() { ChangeKind::Move } else { ChangeKind::Untimed };
        let code = match self.changes.get(load) {
            Some(load) if !matches!(load.kind, ChangeKind::Nothing | ChangeKind::Gone) => Some(load.code),
            _ => None,
        };
        self.push(pid, time, to, kind, code);
    }

    /// Appends an unload: the code of the load at position `load` was discarded. `start` is where the code was then,
    /// which differs from the load's address if the code was moved. Has no effect without a time.
    pub fn unload(&mut self, pid: Pid, time: Option<Nanos>, load: usize, start: Addr) {
        // Without a time, it isn't known which samples came before the unload. The code therefore stays to the end.
        let code = match self.changes.get(load) {
            Some(load) if load.kind == ChangeKind::Load && time.is_some() => Some(load.code),
            _ => None,
        };
        self.push(pid, time, start, ChangeKind::Gone, code);
    }

    /// Appends a change of `kind` for `code` at `start`. If `code` is `None`, because nothing is known about the code
    /// or its time, appends a change without effect instead, so that the positions of later changes stay right.
    fn push(&mut self, pid: Pid, time: Option<Nanos>, start: Addr, kind: ChangeKind, code: Option<CodeId>) {
        let (code, kind, size) = match code {
            Some(code) => (code, kind, self.codes.size(code)),
            None => (CodeId(0), ChangeKind::Nothing, 0),
        };
        let end = Addr(start.0.saturating_add(size));
        let time = time.unwrap_or_default();
        self.changes.push(Change { time, start, end, code, pid, order: 0, kind, fills_in: false });
    }

    /// All loads and moves, in the order of the source. Those without a time (untimed entries) are included.
    pub fn iter(&self) -> impl Iterator<Item = ListedCode<'data>> {
        // Code is numbered in the order of loads. A number that was seen before therefore belongs to a move.
        let mut next_code = 0;
        self.changes.iter().filter_map(move |change| {
            let time = match change.kind {
                ChangeKind::Load | ChangeKind::Move => Some(change.time),
                ChangeKind::Untimed => None,
                // These events bring no code into memory.
                ChangeKind::Gone | ChangeKind::Hidden | ChangeKind::Nothing => return None,
            };
            let is_move = change.code.0 < next_code;
            next_code = next_code.max(change.code.0 + 1);
            Some(ListedCode { time, pid: change.pid, code: self.codes.get(change.code), is_move })
        })
    }

    /// The process and the address range of each untimed entry.
    pub fn untimed(&self) -> impl Iterator<Item = (Pid, Range<Addr>)> + '_ {
        let untimed = self.changes.iter().filter(|change| change.kind == ChangeKind::Untimed);
        untimed.map(|change| (change.pid, change.start..change.end))
    }

    /// Appends an event that cancels untimed entries of process `pid` in this address range. It only affects entries
    /// that come before it, in this list or in an earlier one given to [`CodeMap::build`](super::CodeMap::build).
    pub fn hide_untimed(&mut self, pid: Pid, Range { start, end }: Range<Addr>) {
        let (time, code, kind) = (Nanos(0), CodeId(0), ChangeKind::Hidden);
        self.changes.push(Change { time, start, end, code, pid, order: 0, kind, fills_in: false });
    }

    /// Marks all entries so far as gap-filling: they count only where no other source has code.
    pub fn fill_in(&mut self) {
        for change in &mut self.changes {
            change.fills_in = true;
        }
    }

    /// The names of all loaded code, in the order of loads.
    pub fn names(&self) -> impl Iterator<Item = &'data [u8]> {
        self.codes.packed.iter().map(|code| code.name)
    }

    /// Replaces each name by the one that `to_authored` returns. Also lets `lines` translate the code's source lines to
    /// lines of the authored files.
    pub fn use_authored(&mut self, to_authored: impl Fn(&'data [u8]) -> &'data [u8], lines: &'data dyn AuthoredLines) {
        for code in &mut self.codes.packed {
            code.name = to_authored(code.name);
        }
        for (code_lines, _) in &mut self.codes.details {
            code_lines.authored = Some(lines);
        }
    }

    /// Calls `find_lines` for each load and stores the source lines that it returns. Returns how many loads got lines.
    /// Moves are left out, because moved code keeps the lines of its load.
    pub fn take_lines(&mut self, mut find_lines: impl FnMut(&ListedCode<'data>) -> Option<Lines<'data>>) -> usize {
        let loads = self.iter().filter(|listed| !listed.is_move);
        let found: Vec<Option<Lines<'data>>> = loads.map(|listed| find_lines(&listed)).collect();
        let mut taken = 0;
        // Code is numbered in the order of loads, so the results belong to codes 0, 1, 2 and so on.
        for (lines, id) in found.into_iter().zip(0..) {
            if let Some(lines) = lines {
                self.codes.set_lines(CodeId(id), lines);
                taken += 1;
            }
        }
        taken
    }

    /// The times of all timed loads, in the order of the source.
    pub fn load_times(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.changes.iter().filter(|change| change.kind == ChangeKind::Load).map(|change| change.time)
    }

    /// Corrects the times of the first `count` timed loads in the list. `date` gets the address range and time of a
    /// load, and returns the corrected time, or `None` to leave the time unchanged.
    pub fn date_loads(&mut self, count: usize, mut date: impl FnMut(Range<Addr>, Nanos) -> Option<Nanos>) {
        let loads = self.changes.iter_mut().filter(|change| change.kind == ChangeKind::Load);
        for change in loads.take(count) {
            change.time = date(change.start..change.end, change.time).unwrap_or(change.time);
        }
    }

    /// The number of events, including those that have no effect.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if there are no events.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The number of loads, each of which has its own code.
    pub fn code_count(&self) -> usize {
        self.codes.len()
    }

    /// Corrects the line tables of all code that is in the list so far: subtracts `bias` from each address in them.
    pub fn unbias_lines(&mut self, bias: u64) {
        for (lines, _) in &mut self.codes.details {
            lines.base = lines.base.saturating_add(bias);
        }
    }

    /// Appends all events of another source. Each code of the other source gets a new number: its number there plus the
    /// number of codes that are already in this list.
    pub(super) fn append(&mut self, other: Self) {
        if self.changes.is_empty() {
            *self = other;
            return;
        }
        let first_code = self.codes.len() as u32;
        self.codes.append(other.codes);
        for mut change in other.changes {
            change.code.0 = change.code.0.saturating_add(first_code);
            self.changes.push(change);
        }
    }
}

/// All pieces of JIT code that were ever loaded, in the order of their load events. The index of a piece in this order
/// is its [`CodeId`].
#[derive(Debug, Default)]
pub(super) struct Codes<'data> {
    packed: Vec<PackedCode<'data>>,
    /// Source lines and unwind information. Only code that has at least one of the two has an entry here.
    details: Vec<(Lines<'data>, Option<Unwind<'data>>)>,
}

#[derive(Debug, Clone, Copy)]
struct PackedCode<'data> {
    name: &'data [u8],
    body: EventBody<'data>,
    addr: Addr,
    origin: OriginId,
    /// The index of the code's details in [`Codes::details`]; [`NO_DETAILS`] if it has none.
    details: u32,
}

const NO_DETAILS: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
enum EventBody<'data> {
    Bytes(&'data [u8]),
    Size(u64),
}

impl<'data> Codes<'data> {
    /// Stores a piece of code and returns its number. Lines and unwind information, which few pieces of code have, go
    /// to `details`.
    pub(super) fn push(&mut self, code: &Code<'data>) -> CodeId {
        let Code { name, addr, size, bytes, lines, unwind, origin } = *code;
        let mut details = NO_DETAILS;
        if !lines.raw.is_empty() || unwind.is_some() {
            details = self.details.len() as u32;
            self.details.push((lines, unwind));
        }
        let body = bytes.map_or(EventBody::Size(size), EventBody::Bytes);
        self.packed.push(PackedCode { name, body, addr, origin, details });
        CodeId(self.packed.len() as u32 - 1)
    }

    /// Replaces the source lines of a piece of code.
    fn set_lines(&mut self, id: CodeId, lines: Lines<'data>) {
        let Some(code) = self.packed.get_mut(id.0 as usize) else { return };
        match self.details.get_mut(code.details as usize) {
            Some((old_lines, _)) => *old_lines = lines,
            // The code has no details yet: `code.details` is `NO_DETAILS`, which is no index.
            None => {
                code.details = self.details.len() as u32;
                self.details.push((lines, None));
            }
        }
    }

    /// Appends all code of `other`. The number of each of them ([`CodeId`]) becomes its number in `other` plus the
    /// number of pieces of code that are already stored here.
    fn append(&mut self, other: Self) {
        let first_details = self.details.len() as u32;
        self.details.extend(other.details);
        for mut code in other.packed {
            if code.details != NO_DETAILS {
                code.details += first_details;
            }
            self.packed.push(code);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.packed.len()
    }

    pub(super) fn name(&self, id: CodeId) -> &'data [u8] {
        self.packed[id.0 as usize].name
    }

    pub(super) fn addr(&self, id: CodeId) -> Addr {
        self.packed[id.0 as usize].addr
    }

    pub(super) fn size(&self, id: CodeId) -> u64 {
        match self.packed[id.0 as usize].body {
            EventBody::Bytes(bytes) => bytes.len() as u64,
            EventBody::Size(size) => size,
        }
    }

    /// The piece of code with this number, put together from its packed form and its details.
    pub(super) fn get(&self, id: CodeId) -> Code<'data> {
        let PackedCode { name, body, addr, origin, details } = self.packed[id.0 as usize];
        let bytes = match body {
            EventBody::Bytes(bytes) => Some(bytes),
            EventBody::Size(_) => None,
        };
        let (lines, unwind) = self.details.get(details as usize).copied().unwrap_or_default();
        Code { name, addr, size: self.size(id), bytes, lines, unwind, origin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_stays_small() {
        assert_eq!(size_of::<PackedCode<'_>>(), 48);
        assert_eq!(size_of::<Change>(), 40);
    }

    #[test]
    fn a_list_shows_loads_from_moves_whether_they_have_times_or_not() {
        let code = |name| Code::new(name, Addr(0x10), b"\xc3", OriginId(0));
        for time in [Some(Nanos(7)), None] {
            let mut list = CodeList::default();
            list.load(Pid(5), time, &code(b"a"));
            list.move_to(Pid(5), time, 9, Addr(0x80));
            list.load(Pid(5), time, &code(b"b"));
            list.move_to(Pid(5), time, 0, Addr(0x80));
            list.move_to(Pid(5), time, 2, Addr(0x80));
            list.load(Pid(5), time, &code(b"c"));
            let found: Vec<_> = list.iter().map(|listed| (listed.code.name, listed.is_move, listed.time)).collect();
            let expected: [(&[u8], bool); 5] =
                [(b"a", false), (b"b", false), (b"a", true), (b"b", true), (b"c", false)];
            assert_eq!(found, expected.map(|(name, is_move)| (name, is_move, time)));
        }
    }

    #[test]
    fn a_packed_value_comes_out_again() {
        let lines = Lines { raw: b"raw", count: 1, base: 0x10, size: 2, ..Lines::default() };
        let unwind = Some(Unwind { eh_frame: b"cfi", eh_frame_hdr: b"", mapped_size: 0 });
        let plain = Code {
            name: b"plain",
            addr: Addr(0x10),
            size: 5,
            bytes: None,
            lines: Lines::default(),
            unwind: None,
            origin: OriginId(0),
        };
        let full =
            Code { name: b"full", size: 2, bytes: Some(b"\x90\xc3"), lines, unwind, origin: OriginId(1), ..plain };
        let mut codes = Codes::default();
        codes.push(&full);
        let mut more = Codes::default();
        more.push(&plain);
        more.push(&full);
        codes.append(more);
        let shown = |id| format!("{:?}", codes.get(CodeId(id)));
        assert_eq!([shown(0), shown(1), shown(2)], [full, plain, full].map(|code| format!("{code:?}")));
        assert_eq!((codes.size(CodeId(0)), codes.size(CodeId(1)), codes.addr(CodeId(2))), (2, 5, Addr(0x10)));
        assert_eq!((codes.len(), codes.details.len()), (3, 2));
    }
}
