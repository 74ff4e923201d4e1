//! The grammar of `code-source-info`.

use super::records::{Fields, hexadecimal};
use crate::bytes::digits::decimal;

/// The content of a `code-source-info`, its lists not yet read.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceInfo<'a> {
    pub(super) addr: u64,
    pub(super) script: u64,
    /// Empty if it reports none.
    pub(super) positions: &'a [u8],
    inlined: &'a [u8],
    functions: &'a [u8],
}

/// From this byte of the code on, it is of this place in the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) code: u64,
    pub(super) script: Option<u32>,
    /// The inlined call.
    pub(super) inlined: Option<u32>,
}

/// A call that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inlined {
    /// The called function.
    pub(super) function: Option<u32>,
    /// The place in the caller's script.
    pub(super) script: Option<u32>,
    /// The inlined call; `None` in the code's own function.
    pub(super) parent: Option<u32>,
}

impl<'a> SourceInfo<'a> {
    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, &'static str> {
        let addr = fields.next().and_then(hexadecimal).ok_or("has no hexadecimal address")?;
        let script = fields.next().and_then(decimal).ok_or("has no script")?;
        fields.next().and_then(decimal).ok_or("has no start")?;
        fields.next().and_then(decimal).ok_or("has no end")?;
        let mut list = || fields.next().ok_or("is cut");
        Ok(Self { addr, script, positions: list()?, inlined: list()?, functions: list()? })
    }

    /// In the order of the log, up to damage.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> + use<'a> {
        let mut list = PositionList(self.positions);
        std::iter::from_fn(move || {
            let code = list.number(b'C')??;
            let script = place(list.number(b'O')?);
            Some(Position { code, script, inlined: place(list.number(b'I').flatten()) })
        })
    }

    /// The same of inlined calls.
    pub(super) fn inlined(&self) -> impl Iterator<Item = Inlined> + use<'a> {
        let mut list = PositionList(self.inlined);
        std::iter::from_fn(move || {
            let function = place(list.number(b'F')?);
            let script = place(list.number(b'O')?);
            Some(Inlined { function, script, parent: place(list.number(b'I').flatten()) })
        })
    }

    /// The functions that were inlined.
    pub(super) fn functions(&self) -> impl Iterator<Item = u64> + use<'a> {
        let texts = self.functions.split(|byte| *byte == b'S').filter(|text| !text.is_empty());
        texts.map_while(hexadecimal)
    }
}

fn place(number: Option<u64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// Numbers behind letters.
#[derive(Debug, Clone, Copy)]
struct PositionList<'a>(&'a [u8]);

impl PositionList<'_> {
    /// The number behind this letter, `Some(None)` if absent or it is negative; `None` if another letter or damage
    /// comes next.
    fn number(&mut self, letter: u8) -> Option<Option<u64>> {
        let rest = self.0.strip_prefix(&[letter])?;
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        let (digits, rest) = rest.split_at(len);
        self.0 = rest;
        Some(decimal(digits))
    }
}
