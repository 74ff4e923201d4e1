//! The protocol that a message is of. The fields of samples and profiles moved three times while the format was in
//! development, under one name for all versions (`v1development`), so that a message itself must show it:
//!
//! | protocol | `Sample`: stack, values, attributes, link, times | `Profile`: time, duration, period type, period |
//! |---|---|---|
//! | 1.7 | 1 and 2 (a range of `Profile.location_indices`, 3), 3, 4, 5, 6 | 4, 5, 6, 7 |
//! | 1.8, 1.9 | 1, 2, 3, 4, 5 | 3, 4, 5, 6 |
//! | 1.10, 1.11 | 1, 4, 2, 3, 5 | 3, 4, 5, 6 |
//!
//! Only the last are read: others are refused by name. In JSON fields have names, and those of 1.9 are the same.

use super::schema::OLD_SAMPLES;
use crate::bytes::protobuf::{FieldValue, inner};
use crate::error::{Error, Result};

/// The way a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Protobuf,
    Json,
}

/// The signs of its protocol in the profiles of a message.
#[derive(Debug, Default)]
struct Signs {
    v1_7: bool,
    v1_9: bool,
    current: bool,
}

/// Refuses a message of an older protocol, by its profiles and the number of attributes in its dictionary.
///
/// Samples that have neither attributes nor links, and a value for each time, could be of 1.9 with values or of 1.10
/// with attributes. They are taken for 1.10 if all of these numbers are those of different attributes.
pub(super) fn refuse_old<'d>(
    profiles: impl Iterator<Item = &'d [u8]>,
    attributes: usize,
    notation: Notation,
) -> Result<()> {
    let mut signs = Signs::default();
    for profile in profiles {
        for (tag, value) in inner(profile) {
            if tag == OLD_SAMPLES {
                return Err(old("1.7 or 1.8"));
            }
            if notation == Notation::Json {
                continue;
            }
            match (tag, value) {
                (2, FieldValue::Bytes(sample)) => signs.add_sample(sample, attributes),
                // A list of locations; a duration; the type of a period.
                (3 | 6, FieldValue::Bytes(_)) | (5, FieldValue::Number(_)) => signs.v1_7 = true,
                _ => {}
            }
        }
        if signs.v1_7 {
            return Err(old("1.7"));
        }
    }
    if signs.v1_9 && !signs.current { Err(old("1.8 or 1.9")) } else { Ok(()) }
}

fn old(version: &str) -> Error {
    Error::new(format!(
        "is of OpenTelemetry's protocol {version}, which is no longer read: record with a profiler or Collector of \
         protocol 1.10 or later"
    ))
}

impl Signs {
    fn add_sample(&mut self, sample: &[u8], attributes: usize) {
        let (mut second, mut times) = (None, 0);
        for (tag, value) in inner(sample) {
            match (tag, value) {
                // The length of a range.
                (2, FieldValue::Number(_)) => self.v1_7 = true,
                (2, FieldValue::Bytes(_)) => second = Some(value),
                // Attributes, or a link.
                (3, FieldValue::Bytes(_)) | (4, FieldValue::Number(_)) => self.v1_9 = true,
                // A link, or values.
                (3, FieldValue::Number(_)) | (4, FieldValue::Bytes(_)) => self.current = true,
                (5, value) => times = value.fixed().count(),
                _ => {}
            }
        }
        if let Some(second) = second {
            let mut numbers: Vec<u64> = second.numbers().collect();
            let of_attributes = numbers.iter().all(|number| (1..attributes as u64).contains(number));
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            // Without times there are values.
            let are_attributes = times > 0 && of_attributes && numbers.len() == count;
            self.v1_9 |= !are_attributes && !self.current;
        }
    }
}
