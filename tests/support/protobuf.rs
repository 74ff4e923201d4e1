//! Reads and writes protocol buffers without a schema: plain fields, in the order of the bytes.

/// A field: its number and its value.
pub(crate) type Field = (u64, Value);

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Value {
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            other => panic!("{other:?} is not text and no message"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Splits a message into its fields.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    let take = |bytes: &mut &[u8], len: usize| {
        let (taken, rest) = bytes.split_at(len);
        *bytes = rest;
        taken.to_vec()
    };
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Fixed(take(&mut bytes, 8)),
            2 => {
                let len = varint(&mut bytes) as usize;
                Value::Bytes(take(&mut bytes, len))
            }
            5 => Value::Fixed(take(&mut bytes, 4)),
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// Encodes a message with these fields.
pub(crate) fn encode(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, value) in fields {
        let wire = match value {
            Value::Number(_) => 0,
            Value::Fixed(bytes) if bytes.len() == 8 => 1,
            Value::Fixed(_) => 5,
            Value::Bytes(_) => 2,
        };
        put_varint(tag << 3 | wire, &mut out);
        match value {
            Value::Number(number) => put_varint(*number, &mut out),
            Value::Fixed(bytes) => out.extend(bytes),
            Value::Bytes(bytes) => {
                put_varint(bytes.len() as u64, &mut out);
                out.extend(bytes);
            }
        }
    }
    out
}

/// The value of a number field, or 0 if it is missing.
pub(crate) fn number(fields: &[Field], tag: u64) -> u64 {
    fields.iter().rev().find(|(field, _)| *field == tag).map_or(0, |(_, value)| value.number())
}

/// All fields with this number, as the bytes of a message or text.
pub(crate) fn all(fields: &[Field], tag: u64) -> impl Iterator<Item = &[u8]> {
    fields.iter().filter(move |(field, _)| *field == tag).map(|(_, value)| value.bytes())
}
