//! Splits an input into messages: it holds either one message or many, as the Collector's `file` exporter writes them.
//!
//! | form | messages |
//! |---|---|
//! | protocol buffer | one |
//! | length-prefixed | many, each after its length (four bytes, big endian); the exporter may compress each with zstd |
//! | JSON | one, or one per line |
//!
//! The exporter: <https://github.com/open-telemetry/opentelemetry-collector-contrib>, `exporter/fileexporter`.

use super::messages::ProfilesData;
use crate::bytes::protobuf::{FieldValue, Fields};
use crate::error::{Error, Result, Skipped, Warning, Warnings};
use prost::bytes::Bytes;
use std::io::{BufRead, BufReader, Cursor, Read, Write};

/// Upper limit for a message, in bytes: no protocol buffer may be longer.
const LONGEST: u64 = (1 << 31) - 1;

/// Upper limit for a decompressed message, in bytes. Collectors accept at most 20 MB by default.
const LONGEST_UNPACKED: u64 = 256 << 20;

/// How many bytes at the start of an input are examined to recognize its form.
const HEAD: u64 = 1 << 16;

/// The magic number of a zstd frame.
pub(super) const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Whether an input looks like an OpenTelemetry profile: a protocol buffer, length-prefixed messages or JSON.
pub fn sniff(head: &[u8]) -> bool {
    is_json(head) || is_message(head) || has_lengths(head)
}

pub(super) fn is_json(head: &[u8]) -> bool {
    match first_key(head) {
        Some((b"resourceProfiles" | b"resource_profiles", _)) => true,
        Some((b"dictionary", value)) => first_key(value).is_some_and(|(table, _)| is_table(table)),
        _ => false,
    }
}

/// The first key of a JSON object, and the text after its colon.
fn first_key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let object = text.trim_ascii_start().strip_prefix(b"{")?;
    let key = object.trim_ascii_start().strip_prefix(b"\"")?;
    let end = key.iter().position(|byte| *byte == b'"')?;
    let value = key[end + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some((&key[..end], value))
}

/// Whether a table of the dictionary has this name in JSON.
fn is_table(name: &[u8]) -> bool {
    const TABLES: &[&str] = &["mapping", "location", "function", "link", "string", "attribute", "stack"];
    let table = name.strip_suffix(b"Table").or_else(|| name.strip_suffix(b"_table"));
    table.is_some_and(|table| TABLES.iter().any(|known| known.as_bytes() == table))
}

/// Whether these bytes start a `ProfilesData` message: none of their fields contradicts that, and at least one is
/// typical of it.
pub(super) fn is_message(head: &[u8]) -> bool {
    // The first field must be the resources or the dictionary; otherwise lines of text would pass as a message.
    let is_first_field_known = matches!(first_tag(head), Some(1 | 2));
    is_first_field_known && examine(head, examine_data_field) == Evidence::Proof
}

/// The number of a message's first field, even if the field is cut off; `None` if the message is empty or damaged.
fn first_tag(message: &[u8]) -> Option<u32> {
    if let Some((tag, _)) = Fields::new(message).cut() {
        return Some(tag);
    }
    let (tag, _) = Fields::new(message).next()?.ok()?;
    Some(tag)
}

/// What a field or a message says about whether the input is a `ProfilesData` message. The variants are in the order of
/// their strength: of several values, the greatest one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// The field or message occurs in inputs of other formats, too.
    Nothing,
    /// Hardly any input in another format has such a field or message.
    Proof,
    /// No `ProfilesData` message has such a field or message.
    Contradiction,
}

impl Evidence {
    fn proof_if(is_proof: bool) -> Self {
        if is_proof { Self::Proof } else { Self::Nothing }
    }
}

/// Examines the fields of a message and returns the strongest evidence: a contradiction counts more than proof. If the
/// message is cut off within its last field, the part of that field that exists is examined, too.
fn examine(message: &[u8], examine_field: fn(u32, FieldValue<'_>) -> Evidence) -> Evidence {
    let (mut fields, mut evidence) = (Fields::new(message), Evidence::Nothing);
    loop {
        // If the message ends within its next field, `cut` is the field's number and what exists of its bytes;
        // otherwise `None`.
        let cut = fields.cut();
        let (tag, value) = match (cut, fields.next()) {
            (Some((tag, rest)), _) => (tag, FieldValue::Bytes(rest)),
            (None, Some(Ok(field))) => field,
            // A field that can't be read proves nothing, because the message may end within its tag or number.
            (None, Some(Err(_)) | None) => return evidence,
        };
        evidence = evidence.max(examine_field(tag, value));
        if cut.is_some() || evidence == Evidence::Contradiction {
            return evidence;
        }
    }
}

/// What a field says about whether its message is a `ProfilesData` of OTLP. Unknown fields are no evidence, here and in
/// the messages within, because later versions of the protocol may add some.
fn examine_data_field(tag: u32, value: FieldValue<'_>) -> Evidence {
    match (tag, value) {
        (1, FieldValue::Bytes(resource)) => examine(resource, examine_resource_profiles_field),
        (2, FieldValue::Bytes(dictionary)) => examine(dictionary, examine_dictionary_field),
        (1 | 2, FieldValue::Number(_)) => Evidence::Contradiction,
        _ => Evidence::Nothing,
    }
}

/// What a field says about whether its message is a `ProfilesDictionary` of OTLP, in which each element of table n (1
/// to 7) is a field with the number n. Mappings have number 1, and strings 5. An empty mapping is proof, because the
/// table of mappings starts with one, and other inputs hardly have an empty field 1. Other mappings prove nothing,
/// because their fields changed from version to version.
fn examine_dictionary_field(tag: u32, value: FieldValue<'_>) -> Evidence {
    match (tag, value) {
        (1, FieldValue::Bytes(mapping)) => Evidence::proof_if(mapping.is_empty()),
        (5, FieldValue::Bytes(text)) => examine_text(text),
        (1..=7, FieldValue::Number(_)) => Evidence::Contradiction,
        _ => Evidence::Nothing,
    }
}

/// What a field says about whether its message is a `ResourceProfiles` of OTLP: field 1 is the resource (whose field 1
/// is an attribute), 2 a `ScopeProfiles`, and 3 the URL of a schema.
fn examine_resource_profiles_field(tag: u32, value: FieldValue<'_>) -> Evidence {
    match (tag, value) {
        (1, FieldValue::Bytes(resource)) => examine(resource, |tag, value| match tag {
            1 => examine_attribute(value),
            _ => Evidence::Nothing,
        }),
        (2, FieldValue::Bytes(scope)) => examine(scope, examine_scope_profiles_field),
        (3, FieldValue::Bytes(url)) => examine_text(url),
        (1..=3, FieldValue::Number(_)) => Evidence::Contradiction,
        _ => Evidence::Nothing,
    }
}

/// What a field says about whether its message is a `ScopeProfiles` of OTLP: field 1 is the scope (name, version and
/// attributes), 2 a profile, and 3 the URL of a schema.
fn examine_scope_profiles_field(tag: u32, value: FieldValue<'_>) -> Evidence {
    match (tag, value) {
        (1, FieldValue::Bytes(scope)) => examine(scope, |tag, value| match (tag, value) {
            (1 | 2, FieldValue::Bytes(text)) => examine_text(text),
            (1 | 2, FieldValue::Number(_)) => Evidence::Contradiction,
            (3, attribute) => examine_attribute(attribute),
            _ => Evidence::Nothing,
        }),
        (2, FieldValue::Bytes(profile)) => examine_profile(profile),
        (3, FieldValue::Bytes(url)) => examine_text(url),
        (1..=3, FieldValue::Number(_)) => Evidence::Contradiction,
        _ => Evidence::Nothing,
    }
}

/// Examines a field that should be an attribute of a resource or scope: a key (field 1) and an `AnyValue` (field 2).
fn examine_attribute(value: FieldValue<'_>) -> Evidence {
    match value {
        FieldValue::Number(_) => Evidence::Contradiction,
        FieldValue::Bytes(attribute) => examine(attribute, |tag, value| match (tag, value) {
            // A key has no control characters. Without this rule, a long run of line feeds would pass as a message,
            // because the byte 0x0a is also the tag of field 1, and the length 10.
            (1, FieldValue::Bytes(key)) if !is_text(key) || key.iter().any(|byte| *byte < b' ') => {
                Evidence::Contradiction
            }
            (1, FieldValue::Bytes(key)) => Evidence::proof_if(!key.is_empty()),
            (2, FieldValue::Bytes(any_value)) => examine(any_value, |tag, value| match (tag, value) {
                // Field 1 of an `AnyValue` is the value if that is text.
                (1, FieldValue::Bytes(text)) => examine_text(text),
                (1, FieldValue::Number(_)) => Evidence::Contradiction,
                _ => Evidence::Nothing,
            }),
            (1 | 2, FieldValue::Number(_)) => Evidence::Contradiction,
            _ => Evidence::Nothing,
        }),
    }
}

/// Examines a text field. Text that isn't UTF-8 is a contradiction. UTF-8 is no evidence, because programs and services
/// may have any name.
fn examine_text(text: &[u8]) -> Evidence {
    if is_text(text) { Evidence::Nothing } else { Evidence::Contradiction }
}

/// Whether this is UTF-8, except that the last character may be cut off.
fn is_text(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Examines the first field of a `Profile` message. Field 1 is the value type, a message with nothing but numbers in
/// its fields 1 to 3: anything else in field 1 is a contradiction. So is the field number 0, which no field has. Fields
/// with higher numbers are no evidence.
fn examine_profile(profile: &[u8]) -> Evidence {
    match Fields::new(profile).next() {
        Some(Ok((1, FieldValue::Bytes(value_type)))) => {
            let mut fields = Fields::new(value_type);
            let is_value_type = fields.all(|field| matches!(field, Ok((..=3, FieldValue::Number(_)))));
            if is_value_type { Evidence::proof_if(!value_type.is_empty()) } else { Evidence::Contradiction }
        }
        Some(Ok((..=1, _))) => Evidence::Contradiction,
        None | Some(Ok(_) | Err(_)) => Evidence::Nothing,
    }
}

/// Whether the input starts with a length that is followed by a message, compressed or not.
pub(super) fn has_lengths(head: &[u8]) -> bool {
    let Some((len, rest)) = head.split_first_chunk() else { return false };
    let len = usize::try_from(u32::from_be_bytes(*len)).unwrap_or(usize::MAX);
    let message = &rest[..len.min(rest.len())];
    // Even a message with only one short field has two bytes: a tag and a value.
    len > 1 && (message.starts_with(ZSTD) || is_json(message) || is_message(message))
}

/// A callback that gets each message of an input.
pub(super) type Take<'t> = dyn FnMut(ProfilesData) -> Result<()> + 't;

/// Calls `take` with each message of an input. Unreadable messages are skipped; if none is readable, that is an error.
pub(super) fn each_message(input: &mut dyn Read, warnings: &mut Warnings, take: &mut Take<'_>) -> Result<()> {
    let mut head = Vec::new();
    (&mut *input).take(HEAD).read_to_end(&mut head)?;
    let is_json = is_json(&head);
    // The first bytes of a message may also look like a length, so a valid message is never taken for a length prefix.
    let is_length_prefixed = !is_message(&head) && has_lengths(&head);
    let mut input = BufReader::new(Cursor::new(head).chain(input));
    let mut messages = Messages { take, taken: 0, skipped: Skipped::new("message"), first_error: None };
    if is_json {
        messages.read_json(&mut input)?;
    } else if is_length_prefixed {
        messages.read_length_prefixed(&mut input, warnings)?;
    } else {
        let mut message = Vec::new();
        read_up_to(&mut input, LONGEST, &mut message)?;
        messages.add_binary(message);
    }
    messages.finish(warnings)
}

/// Reads the rest of the input; more than `longest` bytes are an error.
fn read_up_to(input: &mut dyn Read, longest: u64, out: &mut Vec<u8>) -> Result<()> {
    input.take(longest + 1).read_to_end(out)?;
    if out.len() as u64 > longest {
        return Err(Error::new(format!("has an OpenTelemetry message longer than {longest} bytes")));
    }
    Ok(())
}

/// Passes messages on to `take` and counts those that can't be read.
struct Messages<'m, 't> {
    take: &'m mut Take<'t>,
    taken: u64,
    skipped: Skipped,
    /// The error of the very first message, if that one could not be read. Errors of later messages go into `skipped`.
    first_error: Option<Error>,
}

impl<'t> Messages<'_, 't> {
    /// Calls `read`, which passes a message on to `take` or fails, and counts the result.
    fn add(&mut self, read: impl FnOnce(&mut Take<'t>) -> Result<()>) {
        match read(self.take) {
            Ok(()) => self.taken += 1,
            // No message was read or failed before, so this is the very first one.
            Err(error) if self.first_error.is_none() && self.taken == 0 => self.first_error = Some(error),
            Err(error) => self.skipped.add(error),
        }
    }

    /// Ends reading. If there were messages, but none could be read, fails with the error of the very first one.
    /// Otherwise warns about the messages that were skipped. `first_error` is the error of the very first message, if
    /// that one could not be read. `skipped` has the errors of later messages, and can only become a warning. The first
    /// error is kept apart from it because it may have to be returned.
    fn finish(mut self, warnings: &mut Warnings) -> Result<()> {
        match self.first_error {
            // No message could be read.
            Some(error) if self.taken == 0 => return Err(error),
            // Later messages could be read, so the first one only counts as skipped. The warning quotes the error that
            // was added first, so the first message's error is put before the others.
            Some(error) => {
                let mut skipped = Skipped::new("message");
                skipped.add(error);
                skipped.append(self.skipped);
                self.skipped = skipped;
            }
            None => {}
        }
        warnings.extend(self.skipped.into_warning());
        Ok(())
    }

    /// Reads one message per line. An object that doesn't end on its line is taken for pretty-printed JSON: from this
    /// line on, reads the rest as a sequence of objects that may span lines. This also applies to a line longer than
    /// [`LONGEST`], because the part of it that is read first is an incomplete object.
    fn read_json(&mut self, input: &mut impl BufRead) -> Result<()> {
        loop {
            let mut line = Vec::new();
            let is_at_end = input.take(LONGEST).read_until(b'\n', &mut line)? == 0;
            if is_at_end {
                return Ok(());
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<ProfilesData>(&line) {
                // The object doesn't end on its line.
                Err(error) if error.is_eof() => {
                    self.read_pretty_json(Cursor::new(line).chain(input));
                    return Ok(());
                }
                result => self.add_json(result),
            }
        }
    }

    /// Reads a sequence of JSON objects. Each is a message and may span several lines.
    fn read_pretty_json(&mut self, input: impl Read) {
        for message in serde_json::Deserializer::from_reader(input).into_iter::<ProfilesData>() {
            self.add_json(message);
        }
    }

    fn add_json(&mut self, message: serde_json::Result<ProfilesData>) {
        self.add(|take| take(message.map_err(not_a_profile)?.checked()?));
    }

    fn add_binary(&mut self, message: Vec<u8>) {
        self.add(|take| take(ProfilesData::from_bytes(Bytes::from(message))?));
    }

    /// Reads messages, each of which has its length (four bytes, big endian) in front of it.
    fn read_length_prefixed(&mut self, input: &mut impl Read, warnings: &mut Warnings) -> Result<()> {
        loop {
            let mut prefix = Vec::new();
            input.take(4).read_to_end(&mut prefix)?;
            let Some(len) = prefix.first_chunk().map(|len| u64::from(u32::from_be_bytes(*len))) else {
                if !prefix.is_empty() {
                    warnings.push(Warning::new("is truncated: it ends within the length of a message"));
                }
                return Ok(());
            };
            let mut message = Vec::new();
            input.take(len).read_to_end(&mut message)?;
            if (message.len() as u64) < len {
                let have = message.len();
                self.add(|_| Err(Error::new(format!("is truncated: its last message has only {have} of {len} bytes"))));
                return Ok(());
            }
            self.add_packed(message);
        }
    }

    /// Adds a message that followed its length: a protocol buffer or JSON, either of which may be compressed with zstd.
    fn add_packed(&mut self, mut message: Vec<u8>) {
        if message.starts_with(ZSTD) {
            let mut unpacked = Vec::new();
            if let Err(error) = unpack(&message, &mut unpacked) {
                return self.add(|_| Err(error));
            }
            message = unpacked;
        }
        if is_json(&message) {
            self.add_json(serde_json::from_slice(&message));
        } else {
            self.add_binary(message);
        }
    }
}

/// The error for JSON that is not an OpenTelemetry profile.
fn not_a_profile(error: serde_json::Error) -> Error {
    Error::new("is not an OpenTelemetry profile in JSON").because(error)
}

/// Decompresses a zstd-compressed message into `out`. Fails if the result is longer than [`LONGEST_UNPACKED`].
pub(super) fn unpack(message: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let decoder = zstd::stream::read::Decoder::with_buffer(message);
    let mut decoder = decoder.map_err(|error| Error::new("cannot decompress a message (zstd)").because(error))?;
    read_up_to(&mut decoder, LONGEST_UNPACKED, out)
}

/// Writes the length of a message (four bytes, big endian), then the message.
pub(super) fn write_with_length(message: &[u8], out: &mut dyn Write) -> Result<()> {
    let len = u32::try_from(message.len());
    let len = len.map_err(|_| Error::new("has a sample of more than 4 GB, too large for a message"))?;
    out.write_all(&len.to_be_bytes())?;
    Ok(out.write_all(message)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_hold_values_are_known_however_deep_they_are() {
        let field = |tag: u8, bytes: &[u8]| {
            let mut out = vec![tag << 3 | 2];
            prost::encoding::encode_varint(bytes.len() as u64, &mut out);
            [out, bytes.to_vec()].concat()
        };
        let mut value = field(1, b"inside");
        for _ in 0..3000 {
            // Wrap the value in a map, and the map in a list.
            value = field(5, &field(1, &field(6, &field(1, &[field(1, b"key"), field(2, &value)].concat()))));
        }
        let attribute = [field(1, b"service.name"), field(2, &value)].concat();
        assert!(is_message(&field(1, &field(1, &field(1, &attribute)))));
    }

    /// We once failed to recognize our own output for a program whose name contained a zero byte.
    #[test]
    fn a_zero_in_a_value_is_text_and_one_in_a_key_is_not() {
        let message = |key: &[u8], value: &[u8]| {
            let field = |tag: u8, bytes: &[u8]| [&[tag << 3 | 2, bytes.len() as u8], bytes].concat();
            let attribute = [field(1, key), field(2, &field(1, value))].concat();
            field(1, &field(1, &field(1, &attribute)))
        };
        assert!(is_message(&message(b"service.name", b"shop")));
        assert!(is_message(&message(b"service.name", b"\0de")));
        assert!(!is_message(&message(b"\0ervice.name", b"shop")));
        assert!(!is_message(&message(b"service.name", b"\xff\xfe")));
    }
}
