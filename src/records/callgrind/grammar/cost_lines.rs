//! Reads runs of cost lines that can be copied unchanged.
//!
//! Nearly all of a file is cost lines, and nearly all of them would be written again byte for byte. They are read once,
//! only to make sure of this, and then handled as one item. [`ShortLine`] and the other optimizations for this format
//! together save a quarter of the CPU time of `jitgraft callgrind` (130 MB, two threads, dist build).

use super::positions::{Columns, Position, PositionDecoder};
use super::statements::lines;
use std::ops::Range;

/// A cost with more digits than this ends a run, so that the costs of a run can be added without overflow.
const DIGITS: usize = 13;

/// The maximum number of lines in a run. Even the costs of 8 runs of 2^16 lines add up to less than 2^63.
const LONGEST: usize = 1 << 16;

/// A run of consecutive cost lines whose addresses belong to the same code. Each line but the first is exactly what
/// `PositionEncoder` would write after the line before it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CostLines<'a> {
    /// Position of the first line; its costs are in `first_costs`.
    pub(in super::super) first: Position,
    pub(in super::super) first_costs: &'a [u8],
    /// All lines after the first, each with its line feed.
    pub(in super::super) others: &'a [u8],
    /// Position of the last line in the run.
    pub(in super::super) last: Position,
    /// Position of the line with the lowest address, and its cost in the first event. If several lines have this
    /// address, the first of them counts.
    pub(in super::super) lowest: (Position, u64),
    /// Sum of the lines' costs in the first event.
    pub(in super::super) cost: u64,
    /// Number of lines in the run.
    pub(in super::super) count: usize,
    /// True if a line other than the first has an absolute position although a relative one was possible.
    pub(in super::super) in_full: bool,
    columns: Columns,
}

/// A function that returns the range around an address in which all addresses belong to the same code.
pub(in super::super) type FindRange<'f> = dyn FnMut(u64) -> Range<u64> + 'f;

/// Caches the last range that [`FindRange`] returned.
pub(super) struct CachedRange<'f, 'g> {
    find_range: &'f mut FindRange<'g>,
    last: Range<u64>,
}

impl<'f, 'g> CachedRange<'f, 'g> {
    pub(super) fn new(find_range: &'f mut FindRange<'g>) -> Self {
        Self { find_range, last: 0..0 }
    }

    fn get(&mut self, addr: u64) -> Range<u64> {
        if !self.last.contains(&addr) {
            self.last = (self.find_range)(addr);
        }
        self.last.clone()
    }
}

impl<'a> CostLines<'a> {
    /// Reads as many lines at the start of `text` as can be copied. Returns the run and its length in bytes, or `None`
    /// if the first line is invalid or can't be copied.
    pub(super) fn read(
        text: &'a [u8],
        decoder: &mut PositionDecoder,
        ranges: &mut CachedRange<'_, '_>,
    ) -> Option<(Self, usize)> {
        let columns = decoder.columns();
        let first = PlainLine::read(text, columns, decoder.base())?;
        let of_instr = |position: Position| columns.instr.map(|column| position.0[column]);
        let around = of_instr(first.position).map_or(0..0, |addr| ranges.get(addr));
        let lowest_by = columns.instr.unwrap_or(0);
        let mut run = Self {
            first: first.position,
            first_costs: &text[first.costs..first.len - 1],
            others: &[],
            last: first.position,
            lowest: (first.position, first.cost),
            cost: first.cost,
            count: 1,
            in_full: false,
            columns,
        };
        let (mut relative, mut end) = (first.relative, first.len);
        let mut before = AddressText::of(text, first.position.0[0]);
        while run.count < LONGEST {
            if let Some(before) = before.as_ref().filter(|_| columns == Columns::INSTR_LINE) {
                end += run.take_short(&text[end..], before, &around);
            }
            let rest = &text[end..];
            let Some(line) = PlainLine::read(rest, columns, Some(run.last)) else { break };
            if of_instr(line.position).is_some_and(|addr| !around.contains(&addr)) {
                break;
            }
            before = AddressText::of(rest, line.position.0[0]);
            if line.position.0[lowest_by] < run.lowest.0.0[lowest_by] {
                run.lowest = (line.position, line.cost);
            }
            relative |= line.relative;
            run.in_full |= line.in_full;
            run.last = line.position;
            run.cost += line.cost;
            run.count += 1;
            end += line.len;
        }
        run.others = &text[first.len..end];
        decoder.move_to(run.last, relative);
        Some((run, end))
    }

    /// Fast path for the most frequent kind of line: an absolute address that differs little from the previous one, a
    /// line number, and the cost of a single event. Adds such lines to the run and returns their total length in bytes.
    #[inline(always)]
    fn take_short(&mut self, text: &[u8], before: &AddressText, around: &Range<u64>) -> usize {
        let (mut end, mut last, mut count, mut cost) = (0, 0, self.count, self.cost);
        // Leaves room for one more line, which [`Self::read`] adds.
        while count < LONGEST - 1 {
            let Some((line, len)) = ShortLine::read(&text[end..], before) else { break };
            if !around.contains(&line.addr) {
                break;
            }
            if !self.in_full {
                let position = line.position();
                let could_be_relative =
                    |column: usize| self.last.0[column] > 0 && self.last.0[column].abs_diff(position.0[column]) < 100;
                self.in_full = could_be_relative(0) | could_be_relative(1);
                self.last = position;
            }
            let value = line.cost.value();
            if line.addr < self.lowest.0.0[0] {
                self.lowest = (line.position(), value);
            }
            cost += value;
            count += 1;
            last = end;
            end += len;
        }
        if end > 0
            && let Some((line, _)) = ShortLine::read(&text[last..], before)
        {
            self.last = line.position();
        }
        (self.count, self.cost) = (count, cost);
        end
    }

    /// Iterates over all lines of the run: position and costs of each.
    pub(in super::super) fn each(&self) -> impl Iterator<Item = (Position, &'a [u8])> + use<'a> {
        let mut decoder = PositionDecoder::new(self.columns, false);
        decoder.move_to(self.first, false);
        let others = lines(self.others).filter_map(move |(_, text)| decoder.cost(text));
        std::iter::once((self.first, self.first_costs)).chain(others)
    }
}

/// True if the costs of this many lines can be added without checking for overflow, provided that they are short
/// ([`are_short`]).
pub(in super::super) fn cannot_overflow(count: usize) -> bool {
    count <= 8 * LONGEST
}

/// True if all costs of a line are decimal numbers of at most [`DIGITS`] digits.
pub(in super::super) fn are_short(costs: &[u8]) -> bool {
    costs.split(|&byte| byte == b' ').all(|word| word.len() <= DIGITS && word.iter().all(u8::is_ascii_digit))
}

/// A line exactly as valgrind and our encoder would write it: columns separated by one blank, numbers without leading
/// zeros, and relative positions for distances below 100.
struct PlainLine {
    position: Position,
    /// True if a column is relative to an earlier line.
    relative: bool,
    /// True if a column is absolute but could be relative.
    in_full: bool,
    /// Offset of the costs in the line.
    costs: usize,
    /// The line's cost in the first event.
    cost: u64,
    /// Length of the line with its line feed.
    len: usize,
}

/// The text of an address, to compare it with the next line's. Most addresses differ from the one before only in their
/// last two hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct AddressText {
    /// The first 16 bytes of the line, as a little-endian number.
    bytes: u128,
    /// Bit mask for `bytes` that selects everything before the last two digits of the address.
    mask: u128,
    /// Length in bytes of the whole address, including `0x`.
    len: usize,
    /// The address with its last two hexadecimal digits set to zero.
    value: u64,
}

impl AddressText {
    /// Reads the absolute address at the start of `text`. `None` if there is none or it can't be compared.
    pub(in super::super) fn read(text: &[u8]) -> Option<Self> {
        Self::of(text, address(text)?.0)
    }

    /// Stores the text of an address whose value is known. `None` if the address isn't absolute, is below 0x100, or if
    /// fewer than 16 bytes are left.
    fn of(text: &[u8], value: u64) -> Option<Self> {
        let bytes = u128::from_le_bytes(*text.first_chunk()?);
        if bytes as u16 != u16::from_le_bytes(*b"0x") || value < 0x100 {
            return None;
        }
        let digits = (67 - value.leading_zeros() as usize) / 4;
        Some(Self { bytes, mask: u128::MAX >> (128 - 8 * digits), len: 2 + digits, value: value & !0xff })
    }

    /// Reads the address at the start of `text` if it differs from this one at most in the last two digits, and a blank
    /// follows. Otherwise returns `None`.
    #[inline(always)]
    pub(in super::super) fn read_similar(&self, text: &[u8]) -> Option<u64> {
        self.is_like(text.first_chunk()?).then_some(())?;
        self.with_two_digits(text.get(self.len - 2..)?.first_chunk()?)
    }

    #[inline(always)]
    fn is_like(&self, text: &[u8; 16]) -> bool {
        (u128::from_le_bytes(*text) ^ self.bytes) & self.mask == 0
    }

    #[inline(always)]
    fn with_two_digits(&self, &[high, low, behind]: &[u8; 3]) -> Option<u64> {
        let (high, low) = (HEX_DIGITS[high as usize], HEX_DIGITS[low as usize]);
        ((high | low) < 16 && behind == b' ').then_some(self.value | u64::from(high) << 4 | u64::from(low))
    }
}

/// A line with the cost of a single event, whose address differs from the previous one only in its last two digits.
struct ShortLine {
    addr: u64,
    number: FewDigits,
    cost: FewDigits,
}

impl ShortLine {
    /// Reads the line at the start of `text`. Returns it and its length in bytes, or `None` if it is any other kind of
    /// line.
    #[inline(always)]
    fn read(text: &[u8], before: &AddressText) -> Option<(Self, usize)> {
        let is_like = before.is_like(text.first_chunk()?);
        // The text from the last two digits of the address on: two numbers with a blank before each, a line feed, and
        // the bytes that are loaded along with them.
        let tail: &[u8; 24] = text.get(before.len - 2..)?.first_chunk()?;
        let [high, low, blank, ..] = *tail;
        let addr = before.with_two_digits(&[high, low, blank]).filter(|_| is_like)?;
        let number = FewDigits::read(&tail[3..])?;
        let cost_at = 4 + number.len();
        let cost = FewDigits::read(tail.get(cost_at..)?)?;
        let end = cost_at + cost.len();
        let is_plain = number.len() == 1 || tail[3] != b'0';
        let is_short = is_plain & (*tail.get(cost_at - 1)? == b' ') & (*tail.get(end)? == b'\n');
        is_short.then_some((Self { addr, number, cost }, before.len - 1 + end))
    }

    fn position(&self) -> Position {
        Position([self.addr, self.number.value(), 0])
    }
}

impl PlainLine {
    fn read(text: &[u8], columns: Columns, base: Option<Position>) -> Option<Self> {
        let (mut position, mut relative, mut in_full, mut at) = (Position::default(), false, false, 0);
        for column in 0..columns.count {
            let base = base.map(|base| base.0[column]).filter(|&base| base > 0);
            let rest = &text[at..];
            let (value, len) = match *rest.first()? {
                b'*' | b'+' | b'-' => {
                    relative = true;
                    // After a position of 0, valgrind writes the next position in full.
                    relative_to(base?, rest)?
                }
                _ => {
                    let found = if columns.is_address(column) { address(rest)? } else { decimal(rest)? };
                    in_full |= base.is_some_and(|base| base.abs_diff(found.0) < 100);
                    found
                }
            };
            position.0[column] = value;
            at += len;
            if *text.get(at)? != b' ' {
                return None;
            }
            at += 1;
        }
        let costs = at;
        let (cost, len) = cost(&text[at..])?;
        at += len;
        while *text.get(at)? != b'\n' {
            if text[at] != b' ' {
                return None;
            }
            at += 1 + self::cost(&text[at + 1..])?.1;
        }
        Some(Self { position, relative, in_full, costs, cost, len: at + 1 })
    }
}

/// Reads a number relative to `base`: `*`, `+n` or `-n`. Returns the absolute number and the length of its text.
fn relative_to(base: u64, text: &[u8]) -> Option<(u64, usize)> {
    let sign = *text.first()?;
    if sign == b'*' {
        return Some((base, 1));
    }
    let (number, len) = decimal(&text[1..])?;
    if !(1..100).contains(&number) {
        return None;
    }
    let value = if sign == b'+' { base.checked_add(number) } else { base.checked_sub(number) };
    Some((value?, 1 + len))
}

/// Reads `0x…` without leading zeros. Returns the address and the length of its text.
fn address(text: &[u8]) -> Option<(u64, usize)> {
    let digits = text.strip_prefix(b"0x")?;
    let (mut value, mut len) = (0, 0);
    while let Some(digit) = digits.get(len).and_then(|&byte| hex_digit(byte)) {
        value = value << 4 | digit;
        len += 1;
        if len > 16 {
            return None;
        }
    }
    let is_plain = len == 1 || len > 1 && digits[0] != b'0';
    is_plain.then_some((value, 2 + len))
}

/// Value of a lower-case hexadecimal digit.
#[inline]
fn hex_digit(byte: u8) -> Option<u64> {
    let value = HEX_DIGITS[byte as usize];
    (value < 16).then_some(u64::from(value))
}

/// The value of each byte as a hexadecimal digit. A table avoids unpredictable branches.
const HEX_DIGITS: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Reads a decimal number without leading zeros. Returns it and the length of its text.
#[inline]
fn decimal(text: &[u8]) -> Option<(u64, usize)> {
    let (value, len) = cost(text)?;
    (len == 1 || text[0] != b'0').then_some((value, len))
}

/// Reads a number of at most [`DIGITS`] digits. Returns it and the length of its text.
#[inline]
fn cost(text: &[u8]) -> Option<(u64, usize)> {
    if let Some(few) = FewDigits::read(text) {
        return Some((few.value(), few.len()));
    }
    let (mut value, mut len) = (0, 0);
    while let Some(digit) = text.get(len).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value * 10 + u64::from(digit);
        len += 1;
        if len > DIGITS {
            return None;
        }
    }
    (len > 0).then_some((value, len))
}

/// A number of up to 7 digits, read at once without branching on its length, which is unpredictable.
#[derive(Clone, Copy)]
struct FewDigits {
    /// The digits, the first one in the lowest byte, followed by arbitrary bytes.
    digits: u64,
    bits: u32,
}

impl FewDigits {
    #[inline(always)]
    fn read(text: &[u8]) -> Option<Self> {
        const EACH: u64 = 0x0101_0101_0101_0101;
        let digits = u64::from_le_bytes(*text.first_chunk()?) ^ (0x30 * EACH);
        // Sets the high bit of each byte that is no digit. A carry only affects bytes after the first such byte.
        let others = (digits.wrapping_add(0x76 * EACH) | digits) & (0x80 * EACH);
        let bits = others.trailing_zeros() & !7;
        (bits > 0 && bits < 64).then_some(Self { digits, bits })
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.bits as usize / 8
    }

    #[inline(always)]
    fn value(self) -> u64 {
        // Pad to 8 digits with leading zeros, the first one in the lowest byte; then combine pairs, fours, and all
        // eight.
        let padded = self.digits << (64 - self.bits);
        let pairs = (padded.wrapping_mul(10).wrapping_add(padded >> 8)) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
        fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a run from `text`, with code ranges of 0x100 bytes. Returns the run and its length in bytes.
    fn read(text: &str, base: Option<Position>) -> Option<(CostLines<'_>, usize)> {
        let mut decoder = PositionDecoder::new(Columns::INSTR_LINE, false);
        if let Some(base) = base {
            decoder.move_to(base, false);
        }
        let find_range = &mut |addr: u64| addr & !0xff..(addr & !0xff).saturating_add(0x100);
        CostLines::read(text.as_bytes(), &mut decoder, &mut CachedRange::new(find_range))
    }

    #[test]
    fn lines_of_a_stretch_are_one_run() {
        let text = "0x1010 7 5 1\n+3 * 6\n-5 +2 9 2\n0x10a0 200 1\n0x1100 7 1\n";
        let (run, len) = read(text, None).unwrap();
        assert_eq!((len, run.count, run.cost), (text.len() - "0x1100 7 1\n".len(), 4, 21));
        assert_eq!((run.first.0, run.last.0, run.in_full), ([0x1010, 7, 0], [0x10a0, 200, 0], false));
        assert_eq!(run.lowest, (Position([0x100e, 9, 0]), 9));
        let each: Vec<_> = run.each().map(|(position, costs)| (position.0[0], position.0[1], costs)).collect();
        let expected = [(0x1010, 7, &b"5 1"[..]), (0x1013, 7, b"6"), (0x100e, 9, b"9 2"), (0x10a0, 200, b"1")];
        assert_eq!(each, expected);
    }

    #[test]
    fn addresses_in_full_are_distinguished_to_the_last_digit() {
        let text = "0x7f0000001000 1 1\n0x7f0000001003 1 1\n0x7f00000010ff 1 1\n0x7f000000100 1 1\n";
        let (run, len) = read(text, None).unwrap();
        let addrs: Vec<u64> = run.each().map(|(position, _)| position.0[0]).collect();
        assert_eq!(addrs, [0x7f00_0000_1000, 0x7f00_0000_1003, 0x7f00_0000_10ff]);
        assert!(run.in_full && text[len..].starts_with("0x7f000000100 "));
    }

    #[test]
    fn lines_that_would_be_written_in_another_way_are_left() {
        let base = Some(Position([0x1000, 0, 0]));
        assert!(read("+4 5 1\n", base).is_some() && read("+4 * 1\n", base).is_none(), "behind a 0 in full");
        for text in [
            "0x01000 1 1\n",
            "0x100A 1 1\n",
            "0x1000  1 1\n",
            "0x1000 1\n",
            "0x1000 1 \n",
            "0x1000 1 1 \n",
            "0x1000 01 1\n",
            "0x1000 1 1\r\n",
            "0x1000 1 0x5\n",
            "0x1000 1 1",
            "0x1000 1 12345678901234\n",
            "+100 1 1\n",
            "+0 1 1\n",
            "+04 1 1\n",
            "-4097 1 1\n",
            "4096 1 1\n",
            "0x11111111111111111 1 1\n",
        ] {
            assert!(read(text, base).is_none(), "{text:?}");
        }
    }
}
