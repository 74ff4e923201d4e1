//! Decodes messages, and refuses those of other signals and of old protocol versions.
//!
//! While the format was in development, the fields of samples and profiles were renumbered three times, but the package
//! is called `v1development` in all versions. The version must therefore be recognized from the message itself:
//!
//! | protocol | `Sample`: stack, values, attributes, link, times | `Profile`: time, duration, period type, period |
//! |---|---|---|
//! | 1.7 | 1 and 2 (a range of `Profile.location_indices`, 3), 3, 4, 5, 6 | 4, 5, 6, 7 |
//! | 1.8, 1.9 | 1, 2, 3, 4, 5 | 3, 4, 5, 6 |
//! | 1.10, 1.11 | 1, 4, 2, 3, 5 | 3, 4, 5, 6 |
//!
//! Only 1.10 and later are read; the error for others names the version. JSON has field names instead of numbers, and
//! the names in 1.9 are the same as in 1.10, so JSON of protocol 1.9 is read, too.

use super::messages::{ProfileMessage, ProfilesData};
use crate::bytes::protobuf::{FieldValue, Fields, inner};
use crate::error::{Error, Result};
use prost::Message;
use prost::bytes::Bytes;

impl ProfilesData {
    /// Decodes a message in the binary form. Fails if it is damaged or uses an older version of the protocol.
    pub(super) fn from_bytes(bytes: Bytes) -> Result<Self> {
        let (mut resources, mut dictionaries) = (Vec::new(), Vec::new());
        for field in Fields::new(&bytes) {
            match field? {
                (1, value) => resources.push(value.bytes()),
                (2, value) => dictionaries.push(value.bytes()),
                _ => {}
            }
        }
        // A message may have its dictionary in several parts. Decoding joins their tables, so the sizes are added up
        // here.
        let count = |table| dictionaries.iter().map(|dictionary| submessages(dictionary, table).count()).sum::<usize>();
        // The dictionary's field 5 is the table of strings, field 6 that of attributes.
        let (strings, attributes) = (count(5), count(6));
        // Every dictionary has at least the empty string, so this message has no dictionary.
        if strings == 0 && !resources.is_empty() {
            return Err(no_dictionary());
        }
        // Old versions have to be recognized before the message is decoded, because they have fields of other types
        // with the same numbers. Profiles are in field 2 of scopes, and scopes in field 2 of resources.
        let scopes = resources.into_iter().flat_map(|resource| submessages(resource, 2));
        let profiles = scopes.flat_map(|scope| submessages(scope, 2));
        refuse_old(profiles, attributes)?;
        Self::decode(bytes).map_err(|error| Error::new("cannot decode an OpenTelemetry message").because(error))
    }

    /// Checks a message that was read from JSON. Fails if it uses an older version of the protocol.
    pub(super) fn checked(self) -> Result<Self> {
        let strings = self.dictionary.as_ref().map_or(&[][..], |dictionary| &dictionary.string_table);
        if strings.is_empty() && !self.resource_profiles.is_empty() {
            return Err(no_dictionary());
        }
        let scopes = self.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        refuse_old_json(scopes.flat_map(|scope| &scope.profiles))?;
        Ok(self)
    }
}

fn no_dictionary() -> Error {
    Error::new(
        "has no dictionary: it is either a profile from before protocol version 1.7, or other OpenTelemetry data, \
         such as traces or logs",
    )
}

/// The encoded messages or strings in the field `tag`.
fn submessages(message: &[u8], tag: u32) -> impl Iterator<Item = &[u8]> {
    inner(message).filter(move |(number, _)| *number == tag).map(|(_, value)| value.bytes())
}

/// Which protocol versions the fields of profiles and samples point to. `v1_9` stands for 1.8 as well, and `current`
/// for 1.10 and later.
#[derive(Debug, Default)]
struct Signs {
    v1_7: bool,
    v1_9: bool,
    current: bool,
}

/// Returns an error if encoded profiles are of an older protocol. `attributes` is the size of the dictionary's
/// attribute table.
///
/// A sample may have neither field 3 nor field 4. Its version is then ambiguous, because field 2 holds values in 1.9
/// but attributes in 1.10. Such a sample is taken for 1.10 if it has timestamps, and the numbers in field 2 are
/// distinct and valid attribute indices.
fn refuse_old<'d>(profiles: impl Iterator<Item = &'d [u8]>, attributes: usize) -> Result<()> {
    let mut signs = Signs::default();
    for profile in profiles {
        for (tag, value) in inner(profile) {
            match (tag, value) {
                (2, FieldValue::Bytes(sample)) => signs.add_sample(sample, attributes),
                // Only 1.7 has fields of these types: the list of locations (3), the period type (6) and the duration
                // (5).
                (3 | 6, FieldValue::Bytes(_)) | (5, FieldValue::Number(_)) => signs.v1_7 = true,
                _ => {}
            }
        }
        if signs.v1_7 {
            return Err(old_protocol("1.7"));
        }
    }
    if signs.v1_9 && !signs.current { Err(old_protocol("1.8 or 1.9")) } else { Ok(()) }
}

/// Returns an error if profiles that were read from JSON are of an older protocol.
fn refuse_old_json<'d>(mut profiles: impl Iterator<Item = &'d ProfileMessage>) -> Result<()> {
    if profiles.any(|profile| !profile.old_samples.is_empty()) { Err(old_protocol("1.7 or 1.8")) } else { Ok(()) }
}

fn old_protocol(version: &str) -> Error {
    Error::new(format!(
        "uses OpenTelemetry protocol {version}, which jitgraft no longer reads; record with a profiler or Collector \
         of protocol 1.10 or later"
    ))
}

impl Signs {
    /// Collects evidence from an encoded sample. `attributes` is the size of the dictionary's attribute table.
    fn add_sample(&mut self, sample: &[u8], attributes: usize) {
        let (mut field_2, mut times) = (None, 0);
        for (tag, value) in inner(sample) {
            match (tag, value) {
                // A number in field 2 exists only in 1.7: the length of a location range.
                (2, FieldValue::Number(_)) => self.v1_7 = true,
                (2, FieldValue::Bytes(_)) => field_2 = Some(value),
                // In versions 1.8 and 1.9 of the protocol, field 3 holds attributes (bytes), and field 4 a link (a
                // number).
                (3, FieldValue::Bytes(_)) | (4, FieldValue::Number(_)) => self.v1_9 = true,
                // In version 1.10, field 3 holds a link, and field 4 values.
                (3, FieldValue::Number(_)) | (4, FieldValue::Bytes(_)) => self.current = true,
                // Timestamps, which have eight bytes each.
                (5, value) => times = value.fixed().count(),
                _ => {}
            }
        }
        // Field 2 holds values in 1.8 and 1.9, but attributes in 1.10. If its numbers can't be attributes and no sample
        // so far points to 1.10, the version is 1.8 or 1.9.
        if let Some(field_2) = field_2 {
            let mut numbers: Vec<u64> = field_2.numbers().collect();
            // Index 0 means "no attribute", so no sample refers to it.
            let are_indices = numbers.iter().all(|number| (1..attributes as u64).contains(number));
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            let are_distinct = numbers.len() == count;
            // A sample without timestamps must have values. If they are in field 4, as in 1.10, that has made `current`
            // true, and `are_attributes` doesn't matter. Otherwise they are in field 2, so this field can't hold
            // attributes.
            let are_attributes = times > 0 && are_indices && are_distinct;
            self.v1_9 |= !are_attributes && !self.current;
        }
    }
}
