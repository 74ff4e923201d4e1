//! Reads and writes the positions of cost lines: their columns, and relative positions.
//!
//! Each column is absolute (`0x…` or decimal) or relative to the same column of an earlier position, which is called
//! the base here: `+n`, `-n`, `*`. Writers disagree about the base. In valgrind's files it is the last *cost* line of
//! the block; the lines after `calls=` and `jump=` don't count. Readers that follow the manual count every line with a
//! position. In files of pprof, the first position of a function is relative to the last one of the function before it.
//! What we write means the same to all readers: where they disagree about the base, we write absolute positions.

use super::numbers::number;
use crate::bytes::decimal::push_decimal;
use crate::error::{Error, Result};

/// The position columns of cost lines, as a `positions:` line declares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Columns {
    /// Index of the column with the instruction address (`--dump-instr=yes`); `None` if there is none.
    pub(in super::super) instr: Option<usize>,
    /// Index of the column with the source line; `None` if there is none.
    pub(in super::super) line: Option<usize>,
    /// Number of columns, at most [`MAX_COLUMNS`].
    pub(in super::super) count: usize,
    /// Bit set of the columns that hold addresses.
    addresses: u8,
}

/// The maximum number of position columns: no file has more than `instr bb line`.
pub(in super::super) const MAX_COLUMNS: usize = 3;

/// Without a `positions:` line, the only column is the source line.
impl Default for Columns {
    fn default() -> Self {
        Self { instr: None, line: Some(0), count: 1, addresses: 0 }
    }
}

impl Columns {
    /// The columns of `positions: instr line`.
    pub(in super::super) const INSTR_LINE: Self = Self { instr: Some(0), line: Some(1), count: 2, addresses: 1 };

    /// Parses the value of a `positions:` line. `None` if it lists no columns, or more than [`MAX_COLUMNS`].
    pub(in super::super) fn parse(value: &[u8]) -> Option<Self> {
        let mut columns = Self { instr: None, line: None, count: 0, addresses: 0 };
        for word in value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            if columns.count == MAX_COLUMNS {
                return None;
            }
            match word {
                b"instr" | b"addr" => {
                    columns.instr = Some(columns.count);
                    columns.addresses |= 1 << columns.count;
                }
                b"line" => columns.line = Some(columns.count),
                // Any other column, such as `bb`, holds addresses too.
                _ => columns.addresses |= 1 << columns.count,
            }
            columns.count += 1;
        }
        if columns.count == 0 { None } else { Some(columns) }
    }

    /// Like [`Self::parse`], with an error instead of `None`.
    pub(in super::super) fn required(value: &[u8]) -> Result<Self> {
        Self::parse(value)
            .ok_or_else(|| Error::new("the positions: line must list from one to three columns (instr, bb, line)"))
    }

    /// True if a column holds addresses, which are written in hexadecimal.
    pub(super) fn is_address(self, column: usize) -> bool {
        self.addresses & (1 << column) != 0
    }
}

/// An absolute position: one number per column. Columns that the file doesn't have are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Position(pub(in super::super) [u64; MAX_COLUMNS]);

/// Decodes the positions of cost lines, and keeps the base: the position to which relative positions refer.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct PositionDecoder {
    pub(in super::super) columns: Columns,
    /// True if the position of the line after `calls=` or `jump=` also becomes the base, as the manual says.
    pub(in super::super) every_line_is_base: bool,
    /// The base: the position to which the next relative position refers. `None` before the first position.
    base: Option<Position>,
    /// True if any position so far was relative.
    pub(in super::super) saw_relative: bool,
}

/// A line with a position and costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct CostLine<'a> {
    /// `None` if the position is malformed, or relative to a position that is missing.
    pub(in super::super) position: Option<Position>,
    /// The text of the costs, which may be fewer than the file has events.
    pub(in super::super) costs: &'a [u8],
}

impl PositionDecoder {
    pub(in super::super) fn new(columns: Columns, every_line_is_base: bool) -> Self {
        Self { columns, every_line_is_base, base: None, saw_relative: false }
    }

    /// Sets the position columns. Forgets the base, because its numbers belong to the columns before.
    pub(super) fn set_columns(&mut self, columns: Columns) {
        self.columns = columns;
        self.base = None;
    }

    /// Reads a line of self cost.
    pub(super) fn read_self_cost<'a>(&mut self, text: &'a [u8]) -> CostLine<'a> {
        let line = self.peek(text);
        self.base = line.position.or(self.base);
        line
    }

    /// Reads the cost line after `calls=` or `jump=`, whose position is that of the calling or jumping instruction.
    pub(super) fn read_site<'a>(&mut self, text: &'a [u8]) -> CostLine<'a> {
        let line = self.peek(text);
        // The very first position becomes the base in any case, because a relative position after it can't refer to
        // anything else.
        if self.every_line_is_base || self.base.is_none() {
            self.base = line.position.or(self.base);
        }
        line
    }

    /// Reads a position and the text after it, which are the costs if there are any. The position doesn't become the
    /// base of later ones, so this also reads the targets of `calls=`, `jump=` and `jcnd=`.
    pub(super) fn peek<'a>(&mut self, text: &'a [u8]) -> CostLine<'a> {
        let (mut position, mut is_valid) = (Position::default(), true);
        let mut rest = text;
        for column in 0..self.columns.count {
            rest = rest.trim_ascii_start();
            let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            match self.parse_column(column, &rest[..len]) {
                Some(value) => position.0[column] = value,
                None => is_valid = false,
            }
            rest = &rest[len..];
        }
        CostLine { position: if is_valid { Some(position) } else { None }, costs: rest.trim_ascii_start() }
    }

    /// Parses one number of a position. It may be relative to the same column of the base: `+3`, `-3`, or `*` for the
    /// same number. `None` if it isn't a number, or if it is relative and there is no base.
    fn parse_column(&mut self, column: usize, word: &[u8]) -> Option<u64> {
        let (&first, digits) = word.split_first()?;
        if !matches!(first, b'+' | b'-' | b'*') {
            return number(word);
        }
        // Remembered for the rewriter, which writes relative positions only in blocks that have some in the input.
        self.saw_relative = true;
        let base = self.base?.0[column];
        match first {
            b'*' if digits.is_empty() => Some(base),
            b'*' => None,
            b'+' => base.checked_add(number(digits)?),
            _ => base.checked_sub(number(digits)?),
        }
    }
}

/// Writes the positions in a function's block, and keeps the base: the position to which relative positions refer.
#[derive(Debug, Clone)]
pub(in super::super) struct PositionEncoder {
    columns: Columns,
    /// The position of the last cost line; `None` before the first one.
    base: Option<Position>,
    /// True if valgrind and other readers would disagree about the base of the next position, which is therefore
    /// written as absolute.
    disputed: bool,
}

impl PositionEncoder {
    /// Creates an encoder for the start of a function's block.
    pub(in super::super) fn new(columns: Columns) -> Self {
        Self { columns, base: None, disputed: false }
    }

    pub(in super::super) fn columns(&self) -> Columns {
        self.columns
    }

    /// Writes the position of a cost line. With `compress`, this and the other functions write relative positions where
    /// possible.
    pub(in super::super) fn write_cost(&mut self, position: Position, compress: bool, out: &mut Vec<u8>) {
        self.write_target(position, compress, out);
        self.base = Some(position);
        self.disputed = false;
    }

    /// Writes the position of the line after `calls=` or `jump=`. Readers disagree about whether it becomes the base.
    /// So unless it equals the base, the next position is written as absolute.
    pub(in super::super) fn write_site(&mut self, position: Position, compress: bool, out: &mut Vec<u8>) {
        self.write_target(position, compress, out);
        self.disputed |= self.base != Some(position);
    }

    /// Writes the position of a call's or jump's target. It doesn't become the base: later relative positions still
    /// refer to the last cost line.
    pub(in super::super) fn write_target(&self, position: Position, compress: bool, out: &mut Vec<u8>) {
        let base = self.base.filter(|_| compress && !self.disputed);
        for column in 0..self.columns.count {
            if column > 0 {
                out.push(b' ');
            }
            // Nothing is written relative to 0, which mostly stands for an unknown number.
            let base = base.map(|base| base.0[column]).filter(|&base| base > 0);
            write_column(position.0[column], base, self.columns.is_address(column), out);
        }
    }
}

/// Writes one column of a position. It is relative to `base` for distances below 100, as in valgrind (`fprint_apos` in
/// callgrind/dump.c).
fn write_column(value: u64, base: Option<u64>, is_address: bool, out: &mut Vec<u8>) {
    if let Some(base) = base {
        let distance = value.abs_diff(base);
        if distance == 0 {
            return out.push(b'*');
        }
        if distance < 100 {
            out.push(if value > base { b'+' } else { b'-' });
            return push_decimal(distance, out);
        }
    }
    if is_address {
        push_address(value, out);
    } else {
        push_decimal(value, out);
    }
}

/// Appends an address as `0x…`. `format!` would take several times as long, and addresses are much of the output.
fn push_address(value: u64, out: &mut Vec<u8>) {
    let mut text = *b"0x0000000000000000";
    let digits = value.checked_ilog2().unwrap_or(0) as usize / 4 + 1;
    for (index, digit) in text[2..2 + digits].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(value >> (4 * index) & 0xf) as usize];
    }
    out.extend_from_slice(&text[..2 + digits]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_read_back_by_both_rules() {
        let columns = Columns::parse(b"instr line").unwrap();
        let at = |addr, line| Position([addr, line, 0]);
        let steps = [
            (true, at(0x1000, 7)),
            (true, at(0x1003, 6)),
            (false, at(0x1050, 9)),
            (true, at(0x1060, 9)),
            (true, at(0x2000, 0)),
        ];
        let mut encoder = PositionEncoder::new(columns);
        let mut texts = Vec::new();
        for (cost, position) in steps {
            let mut text = Vec::new();
            if cost {
                encoder.write_cost(position, true, &mut text)
            } else {
                encoder.write_site(position, true, &mut text)
            }
            texts.push(text);
        }
        assert_eq!(texts.join(&b"|"[..]), b"0x1000 7|+3 -1|+77 +3|0x1060 9|0x2000 -9");
        for rule in [false, true] {
            let mut decoder = PositionDecoder::new(columns, rule);
            for ((cost, position), text) in steps.iter().zip(&texts) {
                let read = if *cost { decoder.read_self_cost(text) } else { decoder.read_site(text) };
                assert_eq!(read.position, Some(*position));
            }
        }
    }

    #[test]
    fn addresses_of_every_length() {
        for value in (0..64).map(|shift| u64::MAX >> shift).chain([0, 0x10, 0xabc0_1234]) {
            let mut text = Vec::new();
            push_address(value, &mut text);
            assert_eq!(text, format!("{value:#x}").into_bytes());
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let mut decoder = PositionDecoder::new(Columns::parse(b"instr bb line").unwrap(), true);
        let mut read = |text| decoder.read_self_cost(text);
        assert_eq!(read(b"+1 2 3 4"), CostLine { position: None, costs: b"4" }, "relative to nothing");
        let all = CostLine { position: Some(Position([16, 16, 3])), costs: b"44 5" };
        assert_eq!(read(b"0x10 0x10 3 44 5"), all);
        assert_eq!(read(b"-17 * * 1"), CostLine { position: None, costs: b"1" }, "below zero");
        assert_eq!(read(b"* *"), CostLine { position: None, costs: b"" }, "too short");
        assert_eq!(read(b"+0x10 * * 1").position, Some(Position([32, 16, 3])), "the base is still there");
        assert!(Columns::parse(b"instr bb line line").is_none());
        assert_eq!(Columns::parse(b"line"), Some(Columns::default()));
    }
}
