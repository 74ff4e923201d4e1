//! A message as the file has it: what all of its profiles share, its resources, and the samples in them.

use super::dictionary::Dictionary;
use super::version::{Notation, refuse_old};
use crate::bytes::protobuf::{FieldValue, Fields, inner};
use crate::error::{Error, Result};

/// A `ProfilesData`.
#[derive(Debug)]
pub(super) struct Message<'d> {
    pub(super) dictionary: Dictionary<'d>,
    pub(super) resources: Vec<&'d [u8]>,
}

impl<'d> Message<'d> {
    /// Reads all of it: what is damaged, or of an older protocol, is an error.
    pub(super) fn read(bytes: &'d [u8], notation: Notation) -> Result<Self> {
        let (mut dictionary, mut resources) = (Dictionary::default(), Vec::new());
        for field in Fields::of(bytes) {
            match field? {
                (1, value) => resources.push(value.bytes()),
                (2, value) => dictionary.add(value.bytes())?,
                _ => {}
            }
        }
        if dictionary.strings.is_empty() && !resources.is_empty() {
            return Err(Error::new(
                "has no dictionary: it is another OpenTelemetry signal, or a profile of a protocol version before 1.7",
            ));
        }
        let profiles = resources.iter().flat_map(|resource| messages(resource, 2)).flat_map(|scope| messages(scope, 2));
        refuse_old(profiles, dictionary.attributes.len(), notation)?;
        Ok(Self { dictionary, resources })
    }
}

/// The messages of the field of that number.
pub(super) fn messages(message: &[u8], tag: u32) -> impl Iterator<Item = &[u8]> {
    inner(message).filter(move |(of, _)| *of == tag).map(|(_, value)| value.bytes())
}

/// A sample as the file has it.
#[derive(Debug, Default)]
pub(super) struct Sample<'d> {
    pub(super) stack: u64,
    pub(super) values: Vec<i64>,
    pub(super) link: u64,
    /// The fields that hold the numbers of its attributes.
    pub(super) attributes: Vec<FieldValue<'d>>,
    times: Vec<FieldValue<'d>>,
}

impl<'d> Sample<'d> {
    pub(super) fn read(message: &'d [u8]) -> Result<Self> {
        let mut sample = Self::default();
        for field in Fields::of(message) {
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

    /// True if another is of the same stack, thread and span, and has as many values and the same times.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        (self.stack, self.link) == (other.stack, other.link)
            && (&self.attributes, &self.times) == (&other.attributes, &other.times)
            && self.values.len() == other.values.len()
    }

    /// When it was observed, in nanoseconds since 1970.
    pub(super) fn times(&self) -> Vec<u64> {
        self.times.iter().flat_map(|field| field.fixed()).collect()
    }
}
