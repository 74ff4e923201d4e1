//! A message as the file has it: what all of its profiles share, its resources, and the samples in them.

use super::dictionary::Dictionary;
use super::version::Version;
use crate::bytes::protobuf::{FieldValue, Fields, inner};
use crate::error::{Error, Result};

/// A `ProfilesData`.
#[derive(Debug)]
pub(super) struct Message<'d> {
    pub(super) dictionary: Dictionary<'d>,
    pub(super) version: Version,
    pub(super) resources: Vec<&'d [u8]>,
}

impl<'d> Message<'d> {
    /// Reads all of it: what is damaged is an error. `version`, if that is known.
    pub(super) fn read(bytes: &'d [u8], version: Option<Version>) -> Result<Self> {
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
        let version = version.unwrap_or_else(|| Version::of(profiles, dictionary.attributes.len()));
        Ok(Self { dictionary, version, resources })
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
    /// The start of its locations among those of the profile, and their number, up to protocol 1.7.
    pub(super) range: Option<[u64; 2]>,
    pub(super) values: Vec<i64>,
    pub(super) link: u64,
    /// The fields that hold the numbers of its attributes.
    pub(super) attributes: Vec<FieldValue<'d>>,
    times: Vec<FieldValue<'d>>,
}

impl<'d> Sample<'d> {
    pub(super) fn read(message: &'d [u8], version: &Version) -> Result<Self> {
        let mut sample = Self::default();
        for field in Fields::of(message) {
            let (tag, value) = field?;
            match (tag, version.range) {
                (tag, _) if tag == version.stack => sample.stack = value.number(),
                (tag, _) if tag == version.values => sample.values.extend(value.numbers().map(|value| value as i64)),
                (tag, _) if tag == version.attributes => sample.attributes.push(value),
                (tag, _) if tag == version.link => sample.link = value.number(),
                (tag, _) if tag == version.times => sample.times.push(value),
                (tag, Some([start, _])) if tag == start => sample.range.get_or_insert_default()[0] = value.number(),
                (tag, Some([_, length])) if tag == length => sample.range.get_or_insert_default()[1] = value.number(),
                _ => {}
            }
        }
        Ok(sample)
    }

    /// True if another is of the same stack, thread and span, and has as many values and the same times.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        (self.stack, self.range, self.link) == (other.stack, other.range, other.link)
            && (&self.attributes, &self.times) == (&other.attributes, &other.times)
            && self.values.len() == other.values.len()
    }

    /// When it was observed, in nanoseconds since 1970.
    pub(super) fn times(&self, version: &Version) -> Vec<u64> {
        let fields = self.times.iter();
        match version.fixed_times {
            true => fields.flat_map(|field| field.fixed()).collect(),
            false => fields.flat_map(|field| field.numbers()).collect(),
        }
    }
}
