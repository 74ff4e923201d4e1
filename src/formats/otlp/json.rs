//! Converts JSON to protocol buffers and back, driven by the schema.
//!
//! This is the standard JSON mapping of protocol buffers (<https://protobuf.dev/programming-guides/json/>) with OTLP's
//! exceptions: trace and span IDs are hexadecimal instead of base64, and unknown fields are ignored. The reader is
//! lenient: it accepts numbers as strings and strings as numbers, and field names in camel case or with underscores.

use super::schema::{Field, Kind, PROFILES_DATA, Schema};
use crate::bytes::digits::hex_bytes;
use crate::bytes::protobuf::{FieldValue, Fields, put_field};
use crate::error::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use prost::encoding;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::fmt;
use std::io::Write;

/// A `ProfilesData` message converted from JSON to a protocol buffer. Its repeated numbers are not packed.
#[derive(Debug)]
pub(super) struct Transcoded(pub(super) Vec<u8>);

impl<'de> de::Deserialize<'de> for Transcoded {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let mut bytes = Vec::new();
        json.deserialize_map(MessageVisitor { schema: PROFILES_DATA, out: &mut bytes })?;
        Ok(Self(bytes))
    }
}

/// Converts a JSON object to the fields of a message.
struct MessageVisitor<'o> {
    schema: Schema,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for MessageVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key_seed(KeySeed(self.schema))? {
            match field {
                Some(field) => map.next_value_seed(FieldSeed { field, out: self.out })?,
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// Finds a field by its name; `None` if the schema has no such field.
struct KeySeed(Schema);

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Option<&'static Field>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Option<&'static Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        // A name with underscores: compare it without them, ignoring case.
        if name.contains('_') {
            let letters = name.replace('_', "");
            return Ok(self.0.iter().find(|field| field.name.eq_ignore_ascii_case(&letters)));
        }
        Ok(self.0.iter().find(|field| field.name == name))
    }
}

/// Converts the value of a field, or each value of its list.
struct FieldSeed<'o> {
    field: &'static Field,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl FieldSeed<'_> {
    /// Encodes a number. Negative numbers come as their two's complement.
    fn number<E: de::Error>(self, number: u64) -> Result<(), E> {
        let tag = self.field.tag;
        match self.field.kind {
            Kind::Fixed => encoding::fixed64::encode(tag, &number, self.out),
            Kind::Double => encoding::double::encode(tag, &(number as f64), self.out),
            Kind::Small | Kind::Flag | Kind::Signed | Kind::Unsigned => {
                encoding::uint64::encode(tag, &number, self.out)
            }
            Kind::Text | Kind::Bytes | Kind::Id | Kind::Message(_) => return Err(self.unfit("a number")),
        }
        Ok(())
    }

    fn unfit<E: de::Error>(&self, what: &str) -> E {
        E::custom(format_args!("{} is {what}", self.field.name))
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value of {}", self.field.name)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<(), E> {
        self.number(flag.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<(), E> {
        self.number(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<(), E> {
        match self.field.kind {
            Kind::Double => self.visit_f64(number as f64),
            _ => self.number(number as u64),
        }
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<(), E> {
        match self.field.kind {
            Kind::Double => encoding::double::encode(self.field.tag, &number, self.out),
            // JSON may spell a whole number as 1e9. Beyond 2^53, a double is no longer exact.
            _ if number.fract() == 0.0 && number.abs() < 9e15 => return self.number(number as i64 as u64),
            _ => return Err(self.unfit("a number with a fraction")),
        }
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let tag = self.field.tag;
        match self.field.kind {
            Kind::Text => put_field(tag, &[text.as_bytes()], self.out),
            Kind::Bytes => {
                let bytes = decode_base64(text).ok_or_else(|| self.unfit("not base64"))?;
                put_field(tag, &[&bytes], self.out);
            }
            Kind::Id => {
                let bytes = id_from_digits(text).or_else(|| decode_base64(text));
                put_field(tag, &[&bytes.ok_or_else(|| self.unfit("not base64"))?], self.out);
            }
            Kind::Double => match text.parse::<f64>() {
                Ok(number) => encoding::double::encode(tag, &number, self.out),
                Err(_) => return Err(self.unfit("not a number")),
            },
            Kind::Small | Kind::Flag | Kind::Signed | Kind::Unsigned | Kind::Fixed => {
                let signed = text.parse::<i64>().map(|number| number as u64);
                let number = text.parse::<u64>().or(signed);
                return match number {
                    Ok(number) => self.number(number),
                    Err(_) => Err(self.unfit("not a number")),
                };
            }
            Kind::Message(_) => return Err(self.unfit("a text")),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(FieldSeed { field: self.field, out: self.out })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let Kind::Message(schema) = self.field.kind else { return Err(self.unfit("an object")) };
        let mut message = Vec::new();
        MessageVisitor { schema, out: &mut message }.visit_map(map)?;
        put_field(self.field.tag, &[&message], self.out);
        Ok(())
    }
}

/// Decodes a trace or span ID, which has 32 or 16 hexadecimal digits, or none; `None` for other lengths.
fn id_from_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if ![0, 16, 32].contains(&digits.len()) {
        return None;
    }
    hex_bytes(digits)
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// Writes a `ProfilesData` message as one JSON object. The elements of each repeated field must be adjacent, as
/// encoders write them.
pub(super) fn write(message: &[u8], out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer(out, &ShownMessage { message, schema: PROFILES_DATA })
        .map_err(|error| if error.is_io() { std::io::Error::from(error).into() } else { Error::new(error.to_string()) })
}

/// A message that serializes as a JSON object.
struct ShownMessage<'m> {
    message: &'m [u8],
    schema: Schema,
}

impl Serialize for ShownMessage<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let mut fields = Fields::new(self.message).map_while(Result::ok).peekable();
        while let Some((tag, value)) = fields.next() {
            let Some(field) = self.schema.iter().find(|field| field.tag == tag) else { continue };
            if field.repeated {
                let mut values = vec![value];
                while let Some((_, value)) = fields.next_if(|(next, _)| *next == tag) {
                    values.push(value);
                }
                map.serialize_entry(field.name, &ShownList { field, values: &values })?;
            } else {
                map.serialize_entry(field.name, &ShownValue { field, value })?;
            }
        }
        map.end()
    }
}

/// The values of a repeated field, which serialize as a JSON array.
struct ShownList<'m> {
    field: &'static Field,
    values: &'m [FieldValue<'m>],
}

impl Serialize for ShownList<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(None)?;
        let field = self.field;
        for &value in self.values {
            let mut put = |value| list.serialize_element(&ShownValue { field, value });
            match field.kind {
                Kind::Fixed => value.fixed().try_for_each(|number| put(FieldValue::Number(number)))?,
                Kind::Text | Kind::Bytes | Kind::Id | Kind::Message(_) => put(value)?,
                Kind::Small | Kind::Flag | Kind::Signed | Kind::Unsigned | Kind::Double => {
                    value.numbers().try_for_each(|number| put(FieldValue::Number(number)))?;
                }
            }
        }
        list.end()
    }
}

/// One value of a field.
struct ShownValue<'m> {
    field: &'static Field,
    value: FieldValue<'m>,
}

impl Serialize for ShownValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (number, bytes) = (self.value.number(), self.value.bytes());
        match self.field.kind {
            Kind::Small => to.serialize_i32(number as i32),
            Kind::Flag => to.serialize_bool(number != 0),
            Kind::Signed => to.collect_str(&(number as i64)),
            Kind::Unsigned | Kind::Fixed => to.collect_str(&number),
            Kind::Double => to.serialize_f64(f64::from_bits(number)),
            Kind::Text => to.serialize_str(&String::from_utf8_lossy(bytes)),
            Kind::Bytes => to.serialize_str(&STANDARD.encode(bytes)),
            Kind::Id => to.serialize_str(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            Kind::Message(schema) => ShownMessage { message: bytes, schema }.serialize(to),
        }
    }
}
