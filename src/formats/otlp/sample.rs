//! `Sample`: what was observed in one stack of one thread.

use super::version::Version;
use crate::bytes::protobuf::{FieldValue, Fields};
use crate::error::Result;

/// When it was observed, in nanoseconds since 1970.
pub(super) type Times = Vec<u64>;

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

    pub(super) fn times(&self, version: &Version) -> Times {
        let fields = self.times.iter();
        match version.fixed_times {
            true => fields.flat_map(|field| field.fixed()).collect(),
            false => fields.flat_map(|field| field.numbers()).collect(),
        }
    }
}
