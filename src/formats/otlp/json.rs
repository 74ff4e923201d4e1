//! The JSON form of fields, for serde.
//!
//! This is the standard JSON mapping of protocol buffers (<https://protobuf.dev/programming-guides/json/>) with OTLP's
//! exceptions: trace and span IDs are hexadecimal instead of base64, and unknown fields are ignored. 64-bit integers
//! are written as strings; numbers and strings are both read. `null` means that a field isn't set.

use super::messages::{AnyValue, ProfilesData, SampleMessage, ValueType};
use crate::bytes::digits::hex_bytes;
use crate::error::{Error, Result};
use prost::Message;
use prost::bytes::Bytes;
use serde::de::{self, Deserializer, IgnoredAny, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write;
use std::marker::PhantomData;

/// Writes a `ProfilesData` message as one JSON object.
pub(super) fn write(message: Vec<u8>, out: &mut dyn Write) -> Result<()> {
    let data = ProfilesData::decode(Bytes::from(message));
    let data = data.map_err(|error| Error::new("the profile cannot be written as JSON").because(error))?;
    serde_json::to_writer(out, &data)
        .map_err(|error| if error.is_io() { std::io::Error::from(error).into() } else { Error::new(error.to_string()) })
}

/// Whether a field has its default value. Such fields are left out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads `null` as the default value.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(json: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

/// A whole number, spelled as a number or a string. All types of numbers in the protocol fit.
struct WholeNumber(i128);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(WholeNumberVisitor)
    }
}

struct WholeNumberVisitor;

impl Visitor<'_> for WholeNumberVisitor {
    type Value = WholeNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<WholeNumber, E> {
        Ok(WholeNumber(number.into()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<WholeNumber, E> {
        Ok(WholeNumber(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<WholeNumber, E> {
        // JSON may spell a whole number as 1e9. Beyond 2^53, a double is no longer exact.
        if number.fract() != 0.0 || number.abs() > 9e15 {
            return Err(E::custom("a number has a fraction or is too large"));
        }
        Ok(WholeNumber(number as i128))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WholeNumber, E> {
        text.parse().map(WholeNumber).map_err(|_| E::custom("expected a whole number, as a JSON number or a string"))
    }
}

impl WholeNumber {
    fn fit<T: TryFrom<i128>, E: de::Error>(self) -> Result<T, E> {
        T::try_from(self.0).map_err(|_| E::custom("a number is out of range"))
    }
}

/// Reads an integer, which JSON may spell as a number or a string. `null` gives 0. Fails if it doesn't fit into `T`.
pub(super) fn number<'de, D: Deserializer<'de>, T: TryFrom<i128> + Default>(json: D) -> Result<T, D::Error> {
    match Option::<WholeNumber>::deserialize(json)? {
        Some(number) => number.fit(),
        None => Ok(T::default()),
    }
}

/// Reads a list of integers, each of which JSON may spell as a number or a string. `null` gives an empty list.
pub(super) fn numbers<'de, D: Deserializer<'de>, T: TryFrom<i128>>(json: D) -> Result<Vec<T>, D::Error> {
    or_default::<_, Vec<WholeNumber>>(json)?.into_iter().map(WholeNumber::fit).collect()
}

/// Reads and writes a 64-bit integer, which is a string in JSON.
pub(super) mod long {
    use super::{Result, Serializer, fmt};

    pub(in super::super) use super::number as deserialize;

    pub(in super::super) fn serialize<S: Serializer>(number: &impl fmt::Display, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }
}

/// Reads and writes an optional 64-bit integer. A missing or `null` field is `None`.
pub(super) mod some_long {
    use super::{Deserialize, Deserializer, Result, Serialize, Serializer, WholeNumber};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Option<i64>, D::Error> {
        Option::<WholeNumber>::deserialize(json)?.map(WholeNumber::fit).transpose()
    }

    pub(in super::super) fn serialize<S: Serializer>(number: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
        number.map(|number| number.to_string()).serialize(to)
    }
}

/// Reads and writes a list of 64-bit integers, which are strings in JSON.
pub(super) mod longs {
    use super::{Result, Serializer, fmt};

    pub(in super::super) use super::numbers as deserialize;

    pub(in super::super) fn serialize<S: Serializer>(numbers: &[impl fmt::Display], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(numbers.iter().map(ToString::to_string))
    }
}

/// Reads and writes text. Invalid UTF-8 is replaced when it is written.
pub(super) mod text {
    use super::{Bytes, Deserializer, Result, Serializer, or_default};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Bytes, D::Error> {
        Ok(Bytes::from(or_default::<_, String>(json)?))
    }

    pub(in super::super) fn serialize<S: Serializer>(text: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(text))
    }
}

/// Reads and writes optional text. A missing or `null` field is `None`.
pub(super) mod some_text {
    use super::{Bytes, Deserialize, Deserializer, Result, Serialize, Serializer};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Bytes>, D::Error> {
        Ok(Option::<String>::deserialize(json)?.map(Bytes::from))
    }

    pub(in super::super) fn serialize<S: Serializer>(text: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        text.as_ref().map(|text| String::from_utf8_lossy(text)).serialize(to)
    }
}

/// Reads and writes a list of texts.
pub(super) mod texts {
    use super::{Bytes, Deserializer, Result, Serializer, or_default};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Bytes>, D::Error> {
        Ok(or_default::<_, Vec<String>>(json)?.into_iter().map(Bytes::from).collect())
    }

    pub(in super::super) fn serialize<S: Serializer>(texts: &[Bytes], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(texts.iter().map(|text| String::from_utf8_lossy(text)))
    }
}

/// Reads and writes bytes as base64. The standard and the URL-safe alphabet are read; the standard one is written.
pub(super) mod base64 {
    use super::{Bytes, Deserializer, Result, Serializer, de, or_default};
    use ::base64::Engine;
    use ::base64::engine::general_purpose::{STANDARD, URL_SAFE};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Bytes, D::Error> {
        decode(&or_default::<_, String>(json)?)
    }

    pub(super) fn decode<E: de::Error>(text: &str) -> Result<Bytes, E> {
        let bytes = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text));
        bytes.map(Bytes::from).map_err(|_| E::custom("a string is not base64"))
    }

    pub(in super::super) fn serialize<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }
}

/// Reads and writes optional bytes as base64. A missing or `null` field is `None`.
pub(super) mod some_base64 {
    use super::{Bytes, Deserialize, Deserializer, Result, Serializer, base64};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Bytes>, D::Error> {
        Option::<String>::deserialize(json)?.map(|text| base64::decode(&text)).transpose()
    }

    pub(in super::super) fn serialize<S: Serializer>(bytes: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => base64::serialize(bytes, to),
            None => to.serialize_none(),
        }
    }
}

/// Reads and writes the ID of a trace or span: 32 or 16 hexadecimal digits. Base64 is read as well, since plain
/// protocol-buffer JSON uses it.
pub(super) mod id {
    use super::{Bytes, Deserializer, Result, Serializer, base64, hex_bytes, or_default};

    /// Reads an ID that is written as hexadecimal digits or in Base64.
    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Bytes, D::Error> {
        let text: String = or_default(json)?;
        // Hexadecimal digits may also be valid Base64. If there are as many of them as in an ID, they are read as
        // hexadecimal.
        if [0, 16, 32].contains(&text.len())
            && let Some(bytes) = hex_bytes(text.as_bytes())
        {
            return Ok(Bytes::from(bytes));
        }
        base64::decode(&text)
    }

    pub(in super::super) fn serialize<S: Serializer>(id: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

/// Reads and writes the samples of a profile. In memory, they stay encoded as protocol buffers.
pub(super) mod samples {
    use super::{Bytes, Deserializer, Encoded, Result, SampleMessage, Serializer, or_default};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Bytes>, D::Error> {
        let samples: Vec<Encoded<SampleMessage>> = or_default(json)?;
        Ok(samples.into_iter().map(|sample| sample.bytes).collect())
    }

    pub(in super::super) fn serialize<S: Serializer>(samples: &[Bytes], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(samples.iter().map(|sample| Encoded::<SampleMessage>::new(sample.clone())))
    }
}

/// Reads and writes the value of an attribute. In memory, it stays encoded as a protocol buffer.
pub(super) mod value {
    use super::{AnyValue, Bytes, Deserialize, Deserializer, Encoded, Result, Serialize, Serializer};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Bytes>, D::Error> {
        let value: Option<Encoded<AnyValue>> = Option::deserialize(json)?;
        Ok(value.map(|value| value.bytes))
    }

    pub(in super::super) fn serialize<S: Serializer>(value: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        value.clone().map(Encoded::<AnyValue>::new).serialize(to)
    }
}

/// A message that stays encoded as a protocol buffer in memory, and is an object in JSON.
struct Encoded<M> {
    bytes: Bytes,
    message: PhantomData<M>,
}

impl<M> Encoded<M> {
    fn new(bytes: Bytes) -> Self {
        Self { bytes, message: PhantomData }
    }
}

impl<'de, M: Message + Deserialize<'de>> Deserialize<'de> for Encoded<M> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        Ok(Self::new(Bytes::from(M::deserialize(json)?.encode_to_vec())))
    }
}

impl<M: Message + Default + Serialize> Serialize for Encoded<M> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        M::decode(self.bytes.clone()).unwrap_or_default().serialize(to)
    }
}

/// Reads the value type of a profile. In protocol 1.7 this is a list, which gives `None`; such a message is refused
/// later, because of the old name of its samples.
pub(super) fn sample_type<'de, D: Deserializer<'de>>(json: D) -> Result<Option<ValueType>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrList {
        List(#[expect(dead_code, reason = "only that it is a list counts")] Vec<IgnoredAny>),
        One(Option<ValueType>),
    }
    match OneOrList::deserialize(json)? {
        OneOrList::One(value_type) => Ok(value_type),
        OneOrList::List(_) => Ok(None),
    }
}

/// Reads the samples of JSON in protocols 1.7 and 1.8, where the field is called `sample`. They aren't decoded: a
/// message that has any is refused.
pub(super) mod old_samples {
    use super::{Bytes, Deserializer, IgnoredAny, Result, Serializer, or_default};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Bytes>, D::Error> {
        let samples: Vec<IgnoredAny> = or_default(json)?;
        Ok(vec![Bytes::new(); samples.len()])
    }

    pub(in super::super) fn serialize<S: Serializer>(samples: &[Bytes], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(samples.iter().map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in both spellings, numbers as strings and with an exponent, `null`, unknown fields.
    #[test]
    fn all_spellings_of_json_are_read() {
        let json = r#"{"resource_profiles": [{"resource": null, "later": {"x": [1]}, "scopeProfiles": [{"profiles": [
            {"sampleType": {"typeStrindex": "1", "unitStrindex": 2}, "time_unix_nano": 1e9, "period": "-7",
             "samples": [{"stackIndex": 3, "values": ["-1", 2, 3e2], "timestampsUnixNano": ["18446744073709551615"]},
                         {"linkIndex": null}],
             "originalPayload": "-_8=", "attributeIndices": null}]}]}],
            "dictionary": {"stringTable": ["", "\u00e9"], "linkTable": [{"traceId": "0123456789abcdef0123456789ABCDEF"}],
             "attributeTable": [{"keyStrindex": 1, "value": {"arrayValue": {"values": [{"intValue": "9"}]}}}]}}"#;
        let data: ProfilesData = serde_json::from_str(json).unwrap();
        let profile = &data.resource_profiles[0].scope_profiles[0].profiles[0];
        assert_eq!(profile.sample_type, Some(ValueType { type_strindex: 1, unit_strindex: 2 }));
        assert_eq!((profile.time_unix_nano, profile.period), (1_000_000_000, -7));
        assert_eq!(profile.original_payload, &[0xfb, 0xff][..]);
        let samples: Vec<_> =
            profile.samples.iter().map(|sample| SampleMessage::decode(sample.clone()).unwrap()).collect();
        assert_eq!((samples[0].stack_index, &*samples[0].values), (3, &[-1, 2, 300][..]));
        assert_eq!(samples[0].timestamps_unix_nano, [u64::MAX]);
        assert_eq!(samples[1], SampleMessage::default());
        let dictionary = data.dictionary.as_ref().unwrap();
        assert_eq!(dictionary.string_table[1], "é");
        assert_eq!(dictionary.link_table[0].trace_id[..2], [0x01, 0x23]);
        let value = AnyValue::decode(dictionary.attribute_table[0].value.clone().unwrap()).unwrap();
        assert_eq!(value.array_value.unwrap().values[0].int_value, Some(9));

        let mut written = Vec::new();
        write(data.encode_to_vec(), &mut written).unwrap();
        assert_eq!(serde_json::from_slice::<ProfilesData>(&written).unwrap(), data);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for profile in [
            r#"{"period": "x"}"#,
            r#"{"period": 1.5}"#,
            r#"{"durationNano": -1}"#,
            r#"{"samples": [{"stackIndex": 4294967296}]}"#,
            r#"{"profileId": "!"}"#,
            r#"{"samples": 3}"#,
        ] {
            assert!(serde_json::from_str::<super::super::messages::ProfileMessage>(profile).is_err(), "{profile}");
        }
    }
}
