//! Parses `code-source-info` records.

use super::records::{Fields, hexadecimal};
use crate::bytes::digits::decimal;

/// A `code-source-info` record. Its lists are parsed on demand.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceInfo<'a> {
    pub(super) addr: u64,
    pub(super) script: u64,
    /// The undecoded list of positions; empty if the record has none.
    pub(super) positions: &'a [u8],
    inlined: &'a [u8],
    functions: &'a [u8],
}

/// States that the code from offset `code` on was compiled from offset `script` in the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) code: u64,
    pub(super) script: Option<u32>,
    /// Index of the inlined call that the code belongs to; `None` if it belongs to the function itself.
    pub(super) inlined: Option<u32>,
}

/// A call that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inlined {
    /// Index of the called function in the record's list of functions; `None` if it is missing.
    pub(super) function: Option<u32>,
    /// Offset of the call in the script of its caller.
    pub(super) script: Option<u32>,
    /// Index of the inlined call that contains this one; `None` if the call is in the code's own function.
    pub(super) parent: Option<u32>,
}

impl<'a> SourceInfo<'a> {
    /// Parses the fields of a `code-source-info` record. The error says what is wrong with them.
    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, &'static str> {
        let addr = fields.next().and_then(hexadecimal).ok_or("has no hexadecimal address")?;
        let script = fields.next().and_then(decimal).ok_or("has no script")?;
        fields.next().and_then(decimal).ok_or("has no start")?;
        fields.next().and_then(decimal).ok_or("has no end")?;
        let positions = fields.next().ok_or("is incomplete")?;
        let inlined = fields.next().ok_or("is incomplete")?;
        let functions = fields.next().ok_or("is incomplete")?;
        Ok(Self { addr, script, positions, inlined, functions })
    }

    /// The positions in log order, up to any damage.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> + use<'a> {
        let mut list = PositionList(self.positions);
        std::iter::from_fn(move || {
            let code = list.number(b'C')??;
            let script = to_u32(list.number(b'O')?);
            let inlined = to_u32(list.number(b'I').flatten());
            Some(Position { code, script, inlined })
        })
    }

    /// The inlined calls in log order, up to any damage.
    pub(super) fn inlined(&self) -> impl Iterator<Item = Inlined> + use<'a> {
        let mut list = PositionList(self.inlined);
        std::iter::from_fn(move || {
            let function = to_u32(list.number(b'F')?);
            let script = to_u32(list.number(b'O')?);
            let parent = to_u32(list.number(b'I').flatten());
            Some(Inlined { function, script, parent })
        })
    }

    /// The SharedFunctionInfo addresses of the inlined functions.
    pub(super) fn functions(&self) -> impl Iterator<Item = u64> + use<'a> {
        let texts = self.functions.split(|byte| *byte == b'S').filter(|text| !text.is_empty());
        texts.map_while(hexadecimal)
    }
}

fn to_u32(number: Option<u64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// A list of numbers, each preceded by a letter.
#[derive(Debug, Clone, Copy)]
struct PositionList<'a>(&'a [u8]);

impl PositionList<'_> {
    /// Reads the number after this letter. The inner `None` means that the number is missing or negative, the outer one
    /// that something other than the letter comes next.
    fn number(&mut self, letter: u8) -> Option<Option<u64>> {
        let rest = self.0.strip_prefix(&[letter])?;
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        let (digits, rest) = rest.split_at(len);
        self.0 = rest;
        Some(decimal(digits))
    }
}
