//! Reads the fields of a Protocol Buffers message one by one, in the order in which they are stored.

use crate::error::{Error, Result, Skipped};
use prost::DecodeError;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldValue<'d> {
    /// A number of any width.
    Number(u64),
    /// A string, a message, or a packed list of numbers.
    Bytes(&'d [u8]),
}

impl<'d> FieldValue<'d> {
    /// The value as a number; 0 if it is bytes.
    pub fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    /// The value as bytes; empty if it is a number.
    pub fn bytes(self) -> &'d [u8] {
        match self {
            Self::Number(_) => &[],
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The numbers in one occurrence of a repeated varint field, which holds either one number or a packed list. A
    /// damaged number ends the list.
    pub fn numbers(self) -> impl Iterator<Item = u64> + 'd {
        let (mut single, mut packed) = match self {
            Self::Number(number) => (Some(number), &[][..]),
            Self::Bytes(bytes) => (None, bytes),
        };
        std::iter::from_fn(move || {
            if single.is_some() {
                return single.take();
            }
            if packed.is_empty() { None } else { varint(&mut packed).ok() }
        })
    }

    /// The numbers in one occurrence of a repeated 64-bit fixed-width field, which holds either one number or a packed
    /// list.
    pub fn fixed(self) -> impl ExactSizeIterator<Item = u64> + 'd {
        let (single, packed) = match self {
            Self::Number(number) => (Some(number), &[][..]),
            Self::Bytes(bytes) => (None, bytes),
        };
        let (packed, _) = packed.as_chunks::<8>();
        let count = packed.len() + usize::from(single.is_some());
        (0..count).map(move |index| single.unwrap_or_else(|| u64::from_le_bytes(packed[index])))
    }
}

/// Reads a varint. For speed, the usual length of one byte is handled first.
#[inline]
fn varint(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    match *bytes {
        [number @ 0..0x80, rest @ ..] => {
            *bytes = rest;
            Ok((*number).into())
        }
        _ => decode_varint(bytes),
    }
}

/// Reads a field's key: its number and wire type. For speed, keys of one byte are handled first; in profiles, most are.
#[inline]
fn key(bytes: &mut &[u8]) -> Result<(u32, WireType), DecodeError> {
    // The lowest three bits are the wire type, the others the field's number, which is at least 1. So the lowest key
    // is 8.
    let wire = match *bytes {
        [key @ 8..0x80, ..] if key & 7 == WireType::Varint as u8 => WireType::Varint,
        [key @ 8..0x80, ..] if key & 7 == WireType::LengthDelimited as u8 => WireType::LengthDelimited,
        _ => return decode_key(bytes),
    };
    varint(bytes).map(|key| ((key >> 3) as u32, wire))
}

/// Iterates over the fields of a message. Ends after the first error.
#[derive(Debug, Clone)]
pub struct Fields<'d> {
    message: &'d [u8],
    rest: &'d [u8],
}

impl<'d> Fields<'d> {
    /// Creates an iterator over the fields of this message.
    pub fn new(message: &'d [u8]) -> Self {
        Self { message, rest: message }
    }

    /// How many bytes of the message were read.
    pub fn offset(&self) -> usize {
        self.message.len() - self.rest.len()
    }

    /// If the message ends within a length-delimited field, returns the field's number and those of its bytes that are
    /// there. `None` if the next field is complete, or isn't length-delimited.
    pub fn cut(&self) -> Option<(u32, &'d [u8])> {
        let mut rest = self.rest;
        let (tag, wire) = key(&mut rest).ok()?;
        let len = varint(&mut rest).ok().filter(|_| wire == WireType::LengthDelimited)?;
        (len > rest.len() as u64).then_some((tag, rest))
    }

    /// Reads the next field: its number and value.
    fn field(&mut self) -> Result<(u32, FieldValue<'d>)> {
        let invalid = |error| Error::new("is not a Protocol Buffers message").because(error);
        let (tag, wire_type) = key(&mut self.rest).map_err(invalid)?;
        let value = match wire_type {
            WireType::Varint => FieldValue::Number(varint(&mut self.rest).map_err(invalid)?),
            WireType::LengthDelimited => {
                let len = varint(&mut self.rest).map_err(invalid)?;
                FieldValue::Bytes(self.take(len)?)
            }
            WireType::SixtyFourBit => FieldValue::Number(self.fixed::<8>().map(u64::from_le_bytes)?),
            WireType::ThirtyTwoBit => FieldValue::Number(self.fixed::<4>().map(u32::from_le_bytes)?.into()),
            WireType::StartGroup | WireType::EndGroup => {
                return Err(Error::new(format!("field {tag} is a Protocol Buffers group, which profiles do not use")));
            }
        };
        Ok((tag, value))
    }

    fn take(&mut self, len: u64) -> Result<&'d [u8]> {
        let split = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let too_long = || Error::new(format!("a field needs {len} bytes, but only {} are left", self.rest.len()));
        let (bytes, rest) = split.ok_or_else(too_long)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N as u64)?;
        Ok(std::array::from_fn(|at| bytes[at]))
    }
}

impl<'d> Iterator for Fields<'d> {
    type Item = Result<(u32, FieldValue<'d>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.offset() as u64;
        let field = self.field().map_err(|error| error.at_offset(offset));
        // After an error, it isn't known where the next field would begin.
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// The fields of a nested message, up to the first damaged one. Errors aren't returned: a truncated nested message is
/// noticed when the outer message is read.
pub fn inner(message: &[u8]) -> impl Iterator<Item = (u32, FieldValue<'_>)> {
    Fields::new(message).map_while(Result::ok)
}

/// Appends a length-delimited field with the number `tag`. Its content is `parts`, joined.
pub fn put_field(tag: u32, parts: &[&[u8]], out: &mut Vec<u8>) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(len as u64, out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Which fields a message type has. A file may contain other fields, which [`Self::find_unknown`] finds.
#[derive(Debug)]
pub struct MessageSchema {
    /// The name of the message type, for warnings.
    pub name: &'static str,
    /// The highest field number. All lower ones exist, too.
    pub last_field: u32,
    /// The numbers of the fields that hold messages, each with the schema of these messages.
    pub messages: &'static [(u32, &'static Self)],
}

/// How many levels of nested messages are searched for unknown fields. Decoders have the same limit.
const DEEPEST: usize = 100;

impl MessageSchema {
    /// Adds the unknown fields of a message of this type, and of all messages in it, to `unknown`. Decoders skip such
    /// fields, so they are missing when the message is encoded again.
    pub fn find_unknown(&self, message: &[u8], unknown: &mut Skipped) {
        self.find_unknown_within(message, DEEPEST, unknown);
    }

    /// Like [`Self::find_unknown`], but searches only `depth` levels of messages that are nested in this one.
    fn find_unknown_within(&self, message: &[u8], depth: usize, unknown: &mut Skipped) {
        for (tag, value) in inner(message) {
            if tag > self.last_field {
                unknown.add(Error::new(format!("field {tag} of {}", self.name)));
                continue;
            }
            let field = self.messages.iter().find(|(number, _)| *number == tag);
            if let Some((_, schema)) = field
                && depth > 0
            {
                schema.find_unknown_within(value.bytes(), depth - 1, unknown);
            }
        }
    }
}
