//! Splits an input into messages with their framing, so that each can be passed through as it is or replaced.

use crate::error::{Error, Result};
use crate::formats::otlp::framing::{ZSTD, behind_length, has_lengths, is_json, is_message, unpack};
use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

/// A message of the input with its framing.
#[derive(Debug)]
pub(super) struct Framed<'d> {
    /// The message with everything around it, such as its length. Concatenated, these slices are the whole input.
    pub(super) whole: &'d [u8],
    /// Where the message is in `whole`.
    message: Range<usize>,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    BehindLength,
    /// JSON, to which names can't be added.
    Json,
    /// Not a complete message.
    Damaged,
}

/// A decompressed message.
#[derive(Debug)]
pub(super) struct Opened<'d> {
    pub(super) message: Cow<'d, [u8]>,
    is_packed: bool,
}

impl<'d> Framed<'d> {
    pub(super) fn open(&self) -> Result<Opened<'d>> {
        let bytes = self.whole.get(self.message.clone()).unwrap_or_default();
        if self.form == Form::Damaged {
            return Err(Error::new("is not a complete message"));
        }
        let is_packed = self.form == Form::BehindLength && bytes.starts_with(ZSTD);
        let mut bytes = Cow::Borrowed(bytes);
        if is_packed {
            let mut unpacked = Vec::new();
            unpack(&bytes, &mut unpacked)?;
            bytes = Cow::Owned(unpacked);
        }
        if self.form == Form::Json || self.form == Form::BehindLength && is_json(&bytes) {
            let why = "is an OpenTelemetry profile in JSON, which inject cannot rewrite; convert it first with \
                       jitgraft export FILE -o x.otlp";
            return Err(Error::new(why));
        }
        Ok(Opened { message: bytes, is_packed })
    }

    /// Writes `message` in place of the original, with the same framing and compression.
    pub(super) fn write(&self, message: &[u8], opened: &Opened<'_>, out: &mut dyn Write) -> Result<()> {
        if self.form == Form::BehindLength {
            let packed =
                if opened.is_packed { zstd::encode_all(message, zstd::DEFAULT_COMPRESSION_LEVEL)? } else { Vec::new() };
            return behind_length(if opened.is_packed { &packed } else { message }, out);
        }
        out.write_all(self.whole.get(..self.message.start).unwrap_or_default())?;
        out.write_all(message)?;
        Ok(out.write_all(self.whole.get(self.message.end..).unwrap_or_default())?)
    }
}

/// Splits a complete input into messages.
pub(super) fn frames(bytes: &[u8]) -> impl Iterator<Item = Framed<'_>> {
    let (json, lengths) = (is_json(bytes), !is_message(bytes) && has_lengths(bytes));
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (form, message, end) = match (json, lengths) {
            (true, _) => (Form::Json, 0..rest.len(), rest.len()),
            (_, true) => next_behind_length(rest),
            _ => (Form::Plain, 0..rest.len(), rest.len()),
        };
        let (whole, behind) = rest.split_at(end.clamp(1, rest.len()));
        rest = behind;
        Some(Framed { whole, message, form })
    })
}

fn next_behind_length(rest: &[u8]) -> (Form, Range<usize>, usize) {
    let len = rest.first_chunk().and_then(|len| usize::try_from(u32::from_be_bytes(*len)).ok());
    match len.and_then(|len| len.checked_add(4)).filter(|end| *end <= rest.len()) {
        Some(end) => (Form::BehindLength, 4..end, end),
        None => (Form::Damaged, 0..0, rest.len()),
    }
}
