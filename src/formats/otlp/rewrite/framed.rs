//! Splits an input into messages with their framing, so that each can be passed through as it is or replaced.

use crate::error::{Error, Result};
use crate::formats::otlp::framing::{ZSTD, has_lengths, is_json, is_message, unpack, write_with_length};
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
    LengthPrefixed,
    /// JSON, to which names can't be added.
    Json,
    /// Cut off before the end of the message.
    Damaged,
}

/// A decompressed message.
#[derive(Debug)]
pub(super) struct Opened<'d> {
    pub(super) message: Cow<'d, [u8]>,
    /// True if the message was compressed, so that a replacement has to be compressed, too.
    is_packed: bool,
}

impl<'d> Framed<'d> {
    /// Decompresses the message if necessary. Fails if it is damaged, or if it is JSON, which can't be rewritten.
    pub(super) fn open(&self) -> Result<Opened<'d>> {
        let bytes = self.whole.get(self.message.clone()).unwrap_or_default();
        if self.form == Form::Damaged {
            return Err(Error::new("the last OpenTelemetry message is incomplete"));
        }
        // Only messages that follow their length may be compressed: see `framing`.
        let is_packed = self.form == Form::LengthPrefixed && bytes.starts_with(ZSTD);
        let mut bytes = Cow::Borrowed(bytes);
        if is_packed {
            let mut unpacked = Vec::new();
            unpack(&bytes, &mut unpacked)?;
            bytes = Cow::Owned(unpacked);
        }
        if self.form == Form::Json || self.form == Form::LengthPrefixed && is_json(&bytes) {
            let why = "is an OpenTelemetry profile in JSON, which inject cannot rewrite; convert it first with \
                       jitgraft export FILE -o x.otlp";
            return Err(Error::new(why));
        }
        Ok(Opened { message: bytes, is_packed })
    }

    /// Writes `message` in place of the original, with the same framing and compression.
    pub(super) fn write(&self, message: &[u8], opened: &Opened<'_>, out: &mut dyn Write) -> Result<()> {
        if self.form == Form::LengthPrefixed {
            if opened.is_packed {
                let packed = zstd::encode_all(message, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                return write_with_length(&packed, out);
            }
            return write_with_length(message, out);
        }
        // Without a length prefix, what surrounds the message is copied: unlike a length, it doesn't depend on the
        // message.
        out.write_all(self.whole.get(..self.message.start).unwrap_or_default())?;
        out.write_all(message)?;
        Ok(out.write_all(self.whole.get(self.message.end..).unwrap_or_default())?)
    }
}

/// Splits a complete input into its messages. A length-prefixed input may have several, any other input has one. JSON
/// counts as one message even if it has one per line, because it can't be rewritten.
pub(super) fn split_messages(bytes: &[u8]) -> impl Iterator<Item = Framed<'_>> {
    let is_json = is_json(bytes);
    let is_length_prefixed = !is_json && !is_message(bytes) && has_lengths(bytes);
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let framed = if is_length_prefixed {
            next_length_prefixed(rest)
        } else {
            Framed { whole: rest, message: 0..rest.len(), form: if is_json { Form::Json } else { Form::Plain } }
        };
        rest = &rest[framed.whole.len()..];
        Some(framed)
    })
}

/// The first message of `rest`, which follows its length (four bytes, big endian). If it is cut off, it is marked as
/// damaged and takes up all of `rest`.
fn next_length_prefixed(rest: &[u8]) -> Framed<'_> {
    if let Some(len) = rest.first_chunk()
        && let Ok(len) = usize::try_from(u32::from_be_bytes(*len))
        && let Some(end) = len.checked_add(4)
        && let Some(whole) = rest.get(..end)
    {
        return Framed { whole, message: 4..end, form: Form::LengthPrefixed };
    }
    Framed { whole: rest, message: 0..0, form: Form::Damaged }
}
