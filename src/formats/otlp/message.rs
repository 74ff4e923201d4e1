//! A decoded message: the dictionary that its profiles share, its resources, and the samples in them.

use super::dictionary::Dictionary;
use super::version::{Notation, refuse_old};
use crate::bytes::protobuf::{FieldValue, Fields, inner};
use crate::error::{Error, Result};

/// A `ProfilesData` message. Resources stay encoded.
#[derive(Debug)]
pub(super) struct Message<'d> {
    pub(super) dictionary: Dictionary<'d>,
    pub(super) resources: Vec<&'d [u8]>,
}

impl<'d> Message<'d> {
    /// Decodes a message. Fails if it is damaged or uses an older version of the protocol.
    pub(super) fn read(bytes: &'d [u8], notation: Notation) -> Result<Self> {
        let (mut dictionary, mut resources) = (Dictionary::default(), Vec::new());
        for field in Fields::new(bytes) {
            match field? {
                (1, value) => resources.push(value.bytes()),
                (2, value) => dictionary.add(value.bytes())?,
                _ => {}
            }
        }
        if dictionary.strings.is_empty() && !resources.is_empty() {
            return Err(Error::new(
                "has no dictionary; it is another OpenTelemetry signal, or a profile of a protocol version before 1.7",
            ));
        }
        let profiles = resources.iter().flat_map(|resource| messages(resource, 2)).flat_map(|scope| messages(scope, 2));
        refuse_old(profiles, dictionary.attributes.len(), notation)?;
        Ok(Self { dictionary, resources })
    }
}

/// The submessages in the field `tag`.
pub(super) fn messages(message: &[u8], tag: u32) -> impl Iterator<Item = &[u8]> {
    inner(message).filter(move |(number, _)| *number == tag).map(|(_, value)| value.bytes())
}

/// A decoded `Sample`.
#[derive(Debug, Default)]
pub(super) struct Sample<'d> {
    pub(super) stack: u64,
    pub(super) values: Vec<i64>,
    pub(super) link: u64,
    /// The fields that hold attribute indices, undecoded.
    pub(super) attributes: Vec<FieldValue<'d>>,
    times: Vec<FieldValue<'d>>,
}

impl<'d> Sample<'d> {
    pub(super) fn read(message: &'d [u8]) -> Result<Self> {
        let mut sample = Self::default();
        for field in Fields::new(message) {
            let (tag, value) = field?;
            match tag {
                1 => sample.stack = value.number(),
                2 => sample.attributes.push(value),
                3 => sample.link = value.number(),
                4 => sample.values.extend(value.numbers().map(|value| value as i64)),
                5 => sample.times.push(value),
                _ => {}
            }
        }
        Ok(sample)
    }

    /// Whether two samples have the same stack, attributes, link and times, and the same number of values.
    pub(super) fn matches_sample(&self, other: &Self) -> bool {
        (self.stack, self.link) == (other.stack, other.link)
            && (&self.attributes, &self.times) == (&other.attributes, &other.times)
            && self.values.len() == other.values.len()
    }

    /// Timestamps in nanoseconds since 1970.
    pub(super) fn times(&self) -> Vec<u64> {
        self.times.iter().flat_map(|field| field.fixed()).collect()
    }
}
