//! Parses `code-source-info` records.

use super::records::{Fields, hexadecimal};
use crate::bytes::digits::decimal;

/// A `code-source-info` record. Its lists are parsed on demand.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceInfo<'a> {
    /// The address of the code that the record describes.
    pub(super) addr: u64,
    /// The ID of the script that contains the function.
    pub(super) script: u64,
    /// The undecoded list of positions; empty if the record has none.
    pub(super) positions: &'a [u8],
    inlined_calls: &'a [u8],
    functions: &'a [u8],
}

/// States which offset in the script the code from `code_offset` on was compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) code_offset: u64,
    /// The offset in the script, in UTF-16 units; `None` if the number is missing or negative.
    pub(super) script_offset: Option<u32>,
    /// Index of the inlined call that the code belongs to; `None` if it belongs to the function itself.
    pub(super) inlined: Option<u32>,
}

/// A call that was inlined, as the record lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InlinedEntry {
    /// Index of the called function in the record's list of functions; `None` if it is missing.
    pub(super) function: Option<u32>,
    /// Offset of the call in the script of its caller; `None` if it is missing or negative.
    pub(super) call_offset: Option<u32>,
    /// Index of the inlined call that contains this one; `None` if the call is in the code's own function.
    pub(super) parent: Option<u32>,
}

impl<'a> SourceInfo<'a> {
    /// Parses the fields of a `code-source-info` record. The error says what is wrong with them.
    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, &'static str> {
        let addr = fields.next().and_then(hexadecimal).ok_or("the record has no hexadecimal address")?;
        let script = fields.next().and_then(decimal).ok_or("the record has no valid script ID")?;
        // Where the function starts and ends in the script isn't needed.
        fields.next().and_then(decimal).ok_or("the record does not say where the function starts in the script")?;
        fields.next().and_then(decimal).ok_or("the record does not say where the function ends in the script")?;
        let positions = fields.next().ok_or("the record ends before its list of positions")?;
        let inlined_calls = fields.next().ok_or("the record ends before its list of inlined calls")?;
        let functions = fields.next().ok_or("the record ends before its list of inlined functions")?;
        Ok(Self { addr, script, positions, inlined_calls, functions })
    }

    /// The positions in the order of the log, up to the first damage. Each consists of `C` and an offset in the code,
    /// `O` and an offset in the script, and perhaps `I` and the index of an inlined call.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> + use<'a> {
        let mut list = PositionList(self.positions);
        std::iter::from_fn(move || {
            let code_offset = list.number(b'C')??;
            let script_offset = to_u32(list.number(b'O')?);
            // `I` and its number are left out if the code belongs to the function itself.
            let inlined = to_u32(list.number(b'I').flatten());
            Some(Position { code_offset, script_offset, inlined })
        })
    }

    /// The inlined calls in the order of the log, up to the first damage. Each consists of `F` and the index of the
    /// called function, `O` and the offset of the call in the script, and perhaps `I` and the index of the inlined call
    /// that contains this one.
    pub(super) fn inlined_calls(&self) -> impl Iterator<Item = InlinedEntry> + use<'a> {
        let mut list = PositionList(self.inlined_calls);
        std::iter::from_fn(move || {
            let function = to_u32(list.number(b'F')?);
            let call_offset = to_u32(list.number(b'O')?);
            let parent = to_u32(list.number(b'I').flatten());
            Some(InlinedEntry { function, call_offset, parent })
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
    /// Reads the given letter and the number after it. `None` if something other than the letter comes next;
    /// `Some(None)` if the number is missing or negative.
    fn number(&mut self, letter: u8) -> Option<Option<u64>> {
        let rest = self.0.strip_prefix(&[letter])?;
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        let (digits, rest) = rest.split_at(len);
        self.0 = rest;
        Some(decimal(digits))
    }
}
