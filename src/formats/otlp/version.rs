//! The fields of samples and profiles. They moved three times while the format was in development, under one name for
//! all versions (`v1development`), so that a message itself must show which one it is of:
//!
//! | protocol | `Sample`: stack, values, attributes, link, times | `Profile`: time, duration, period type, period |
//! |---|---|---|
//! | 1.7 | 1 and 2 (a range of `Profile.location_indices`, 3), 3, 4, 5, 6 | 4, 5, 6, 7 |
//! | 1.8, 1.9 | 1, 2, 3, 4, 5 | 3, 4, 5, 6 |
//! | 1.10, 1.11 | 1, 4, 2, 3, 5 | 3, 4, 5, 6 |

use super::schema::{PROFILE_LOCATIONS, SAMPLE_LENGTH, SAMPLE_START};
use crate::bytes::protobuf::{FieldValue, inner};

/// The numbers of the fields that moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    /// `Sample.stack_index`
    pub(super) stack: u32,
    /// `Sample.locations_start_index` and `locations_length`: a range of the next.
    pub(super) range: Option<[u32; 2]>,
    /// `Profile.location_indices`
    pub(super) locations: u32,
    /// `Sample.values`
    pub(super) values: u32,
    /// `Sample.attribute_indices`
    pub(super) attributes: u32,
    /// `Sample.link_index`
    pub(super) link: u32,
    /// `Sample.timestamps_unix_nano`
    pub(super) times: u32,
    /// True if these have eight bytes each.
    pub(super) fixed_times: bool,
    /// `Profile.time_unix_nano`; duration, type of the period and period are the next three.
    pub(super) profile_time: u32,
    /// `Profile.attribute_indices`
    pub(super) profile_attributes: u32,
    /// `Location.attribute_indices`
    pub(super) location_attributes: u32,
}

/// No field has it.
const NONE: u32 = 0;

/// 1.10 and 1.11.
pub(super) const CURRENT: Version = Version {
    stack: 1,
    range: None,
    locations: NONE,
    values: 4,
    attributes: 2,
    link: 3,
    times: 5,
    fixed_times: true,
    profile_time: 3,
    profile_attributes: 11,
    location_attributes: 4,
};

/// The version that JSON is converted to.
pub(super) const OF_JSON: Version =
    Version { range: Some([SAMPLE_START, SAMPLE_LENGTH]), locations: PROFILE_LOCATIONS, ..CURRENT };

/// 1.8 and 1.9.
const V1_9: Version = Version { values: 2, attributes: 3, link: 4, ..CURRENT };

/// 1.7.
const V1_7: Version = Version {
    stack: NONE,
    range: Some([1, 2]),
    locations: 3,
    values: 3,
    attributes: 4,
    link: 5,
    times: 6,
    fixed_times: false,
    profile_time: 4,
    profile_attributes: 14,
    location_attributes: 5,
};

/// The signs of its version in the profiles of a message.
#[derive(Debug, Default)]
struct Signs {
    v1_7: bool,
    v1_9: bool,
    current: bool,
}

impl Version {
    /// That of a message with these profiles and this many attributes in its dictionary.
    ///
    /// Samples that have neither attributes nor links, and a value for each time, could be of 1.9 with values or of 1.10
    /// with attributes. They are taken for 1.10 if all of these numbers are those of different attributes.
    pub(super) fn of<'d>(profiles: impl Iterator<Item = &'d [u8]>, attributes: usize) -> Self {
        let mut signs = Signs::default();
        for profile in profiles {
            for (tag, value) in inner(profile) {
                match (tag, value) {
                    (2, FieldValue::Bytes(sample)) => signs.sample(sample, attributes),
                    // A list of locations; a duration; the type of a period.
                    (3 | 6, FieldValue::Bytes(_)) | (5, FieldValue::Number(_)) => signs.v1_7 = true,
                    _ => {}
                }
                if signs.v1_7 {
                    return V1_7;
                }
            }
        }
        if signs.v1_9 && !signs.current { V1_9 } else { CURRENT }
    }
}

impl Signs {
    fn sample(&mut self, sample: &[u8], attributes: usize) {
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
