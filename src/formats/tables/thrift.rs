//! Walks over Thrift's compact protocol, in which Parquet files describe themselves, along the fields that are known.
//!
//! The crate that reads Parquet believes that a known field is of its type, whatever the file states, and takes no byte
//! for a boolean in a list that it passes over: a list of lists of them in a few bytes is hours of work. So it gets to
//! read only what was walked over here: copies without fields that are not needed, or, where the bytes must stay, bytes
//! in which it has no such list to pass over.
//!
//! Spec: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

use crate::error::{Error, Result};

/// The content of a known field.
#[derive(Debug)]
pub(super) enum Kind {
    Bool,
    Byte,
    /// A number of at most 32 bits.
    Int,
    Long,
    Binary,
    Struct(&'static [Field]),
    /// A structure of one field. Without a known one it is left out.
    Union(&'static [Field]),
    List(&'static Self),
}

/// A known field: its number and what it holds.
pub(super) type Field = (i16, Kind);

/// Is called for each number, with the numbers of the fields that lead to it, and at the end of each structure.
pub(super) type NumberVisitor<'t> = &'t mut dyn FnMut(&[i16], Option<i64>) -> Result<()>;

/// Types as they are in the bytes.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const UUID: u8 = 13;
}

/// Unknown fields are not nested any deeper.
const MAX_DEPTH: u32 = 32;

/// A copy of the structure that bytes begin with, of its known fields alone.
pub(super) fn copy(bytes: &[u8], fields: &[Field], told: NumberVisitor<'_>) -> Result<Vec<u8>> {
    let mut walk = Walk { bytes, left: bytes, copy: Some(Vec::with_capacity(bytes.len())), path: Vec::new(), told };
    walk.fields(fields)?;
    Ok(walk.copy.unwrap_or_default())
}

/// The length of the structure that bytes begin with.
pub(super) fn check(bytes: &[u8], fields: &[Field], told: NumberVisitor<'_>) -> Result<usize> {
    let mut walk = Walk { bytes, left: bytes, copy: None, path: Vec::new(), told };
    walk.fields(fields)?;
    Ok(walk.at())
}

struct Walk<'b, 't> {
    bytes: &'b [u8],
    left: &'b [u8],
    /// The copy; `None` if the crate reads the bytes themselves.
    copy: Option<Vec<u8>>,
    path: Vec<i16>,
    told: NumberVisitor<'t>,
}

impl Walk<'_, '_> {
    fn at(&self) -> usize {
        self.bytes.len() - self.left.len()
    }

    fn error(&self, message: &str) -> Error {
        Error::new(format!("its description is damaged: at its byte {}, {message}", self.at()))
    }

    /// Goes over a structure.
    fn fields(&mut self, fields: &[Field]) -> Result<()> {
        let (mut last, mut last_copied) = (0, 0);
        while let Some((id, of)) = self.field(last)? {
            last = id;
            let Some((_, kind)) = fields.iter().find(|(known, _)| *known == id) else {
                self.skip(of, MAX_DEPTH)?;
                continue;
            };
            self.path.push(id);
            let before = self.copy.as_ref().map(Vec::len);
            self.write_field(last_copied, id, of);
            let is_empty_union = self.value(kind, of)? && matches!(kind, Kind::Union(_));
            match (&mut self.copy, before) {
                (Some(copy), Some(before)) if is_empty_union => copy.truncate(before),
                _ => last_copied = id,
            }
            self.path.pop();
        }
        self.write(&[0]);
        (self.told)(&self.path, None)
    }

    /// Goes over what a known field holds; whether that is a structure without known fields.
    fn value(&mut self, kind: &Kind, of: u8) -> Result<bool> {
        let start = self.left;
        match (kind, of) {
            (Kind::Bool, kind::TRUE | kind::FALSE) => (self.told)(&self.path, Some(i64::from(of == kind::TRUE)))?,
            (Kind::Byte, kind::BYTE) => drop(self.bytes(1)?),
            (Kind::Int, kind::I16 | kind::I32) | (Kind::Long, kind::I16 | kind::I32 | kind::I64) => {
                let number = self.number()?;
                if matches!(kind, Kind::Int) && i32::try_from(number).is_err() {
                    return Err(self.error("a number is too large"));
                }
                (self.told)(&self.path, Some(number))?;
            }
            (Kind::Binary, kind::BINARY) => {
                let len = self.varint()?;
                self.bytes(len)?;
            }
            (Kind::Struct(fields) | Kind::Union(fields), kind::STRUCT) => {
                let before = self.copy.as_ref().map_or(0, Vec::len);
                self.fields(fields)?;
                return Ok(self.copy.as_ref().is_some_and(|copy| copy.len() == before + 1));
            }
            (Kind::List(element), kind::LIST | kind::SET) => return self.list(element).map(|()| false),
            _ => return Err(self.error("a field is of another type than it should be")),
        }
        self.write(&start[..start.len() - self.left.len()]);
        Ok(false)
    }

    fn list(&mut self, element: &Kind) -> Result<()> {
        let start = self.left;
        let (of, len) = self.list_start()?;
        self.write(&start[..start.len() - self.left.len()]);
        for _ in 0..len {
            // A boolean, which is a byte here, is in no list that is known.
            self.value(element, of)?;
        }
        Ok(())
    }

    /// The number and the type of the next field; `None` at the end of a structure.
    fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>> {
        let head = self.byte()?;
        let (of, delta) = (head & 0x0f, head >> 4);
        if of == 0 {
            return Ok(None);
        }
        let id = match delta {
            0 => i16::try_from(self.number()?).ok(),
            delta => last.checked_add(i16::from(delta)),
        };
        id.map(|id| Some((id, of))).ok_or_else(|| self.error("a field's number is too large"))
    }

    /// The type of the elements of a list, and how many follow: each takes a byte at least.
    fn list_start(&mut self) -> Result<(u8, u64)> {
        let head = self.byte()?;
        let len = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        if len > self.left.len() as u64 {
            return Err(self.error("a list has more elements than bytes follow"));
        }
        Ok((head & 0x0f, len))
    }

    /// Passes over what is not known.
    fn skip(&mut self, of: u8, depth: u32) -> Result<()> {
        let Some(depth) = depth.checked_sub(1) else { return Err(self.error("too much is nested")) };
        match of {
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => drop(self.bytes(1)?),
            kind::I16 | kind::I32 | kind::I64 => drop(self.varint()?),
            kind::DOUBLE => drop(self.bytes(8)?),
            kind::UUID => drop(self.bytes(16)?),
            kind::BINARY => {
                let len = self.varint()?;
                self.bytes(len)?;
            }
            kind::STRUCT => {
                while let Some((_, of)) = self.field(0)? {
                    self.skip(of, depth)?;
                }
            }
            kind::LIST | kind::SET => {
                let (of, len) = self.list_start()?;
                self.elements([of].into_iter(), len, depth)?;
            }
            kind::MAP => {
                let len = self.varint()?;
                if len > self.left.len() as u64 {
                    return Err(self.error("a map has more entries than bytes follow"));
                }
                if len > 0 {
                    let of = self.byte()?;
                    self.elements([of >> 4, of & 0x0f].into_iter(), len, depth)?;
                }
            }
            _ => return Err(self.error("a type is unknown")),
        }
        Ok(())
    }

    /// Passes over the elements of a list or a map.
    fn elements(&mut self, of: impl Iterator<Item = u8> + Clone, len: u64, depth: u32) -> Result<()> {
        for _ in 0..len {
            for of in of.clone() {
                match of {
                    kind::TRUE | kind::FALSE if self.copy.is_some() => drop(self.bytes(1)?),
                    kind::TRUE | kind::FALSE => return Err(self.error("it has a list of booleans")),
                    of => self.skip(of, depth)?,
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(copy) = &mut self.copy {
            copy.extend(bytes);
        }
    }

    /// Writes what a field begins with.
    fn write_field(&mut self, last: i16, id: i16, of: u8) {
        match id.checked_sub(last).and_then(|delta| u8::try_from(delta).ok()).filter(|delta| (1..=15).contains(delta)) {
            Some(delta) => self.write(&[delta << 4 | of]),
            None => {
                // Known fields have small numbers: two bytes hold them.
                let zigzag = (id << 1 ^ id >> 15).cast_unsigned();
                self.write(&[of, (zigzag & 0x7f) as u8 | 0x80, (zigzag >> 7 & 0x7f) as u8]);
            }
        }
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn bytes(&mut self, len: u64) -> Result<&[u8]> {
        let split = usize::try_from(len).ok().and_then(|len| self.left.split_at_checked(len));
        let (bytes, left) = split.ok_or_else(|| self.error("it ends early"))?;
        self.left = left;
        Ok(bytes)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number is too large"))
    }

    fn number(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}
