//! Decodes UTF-16 to UTF-8 in pieces of any length.

use std::borrow::Cow;

/// The byte order of UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Low byte first.
    Little,
    /// High byte first.
    Big,
}

/// Decodes a text piece by piece. Unpaired surrogates become U+FFFD.
#[derive(Debug)]
pub struct Utf16Decoder {
    order: ByteOrder,
    /// The first byte of a 16-bit unit, if the last piece ended between its two bytes.
    first_byte: Option<u8>,
    /// A high surrogate whose low surrogate hasn't been read yet.
    high_surrogate: Option<u16>,
}

impl Utf16Decoder {
    /// Starts at the beginning of a text.
    pub fn new(order: ByteOrder) -> Self {
        Self { order, first_byte: None, high_surrogate: None }
    }

    /// Decodes the next piece and appends the result to `out`.
    pub fn decode(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for &byte in piece {
            // The first byte of a unit is kept until the second one comes, which may be in the next piece.
            let Some(first) = self.first_byte.take() else {
                self.first_byte = Some(byte);
                continue;
            };
            let unit = match self.order {
                ByteOrder::Little => u16::from_le_bytes([first, byte]),
                ByteOrder::Big => u16::from_be_bytes([first, byte]),
            };
            self.add(unit, out);
        }
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.high_surrogate.take().is_some() | self.first_byte.take().is_some() {
            push(out, char::REPLACEMENT_CHARACTER);
        }
    }

    /// Decodes one 16-bit unit. A high surrogate is kept until the low surrogate that belongs to it arrives.
    fn add(&mut self, unit: u16, out: &mut Vec<u8>) {
        if let Some(high) = self.high_surrogate.take() {
            if let Some(Ok(character)) = char::decode_utf16([high, unit]).next() {
                return push(out, character);
            }
            // The kept high surrogate stands alone. The new unit is still to be decoded.
            push(out, char::REPLACEMENT_CHARACTER);
        }
        match char::decode_utf16([unit]).next() {
            Some(Ok(character)) => push(out, character),
            // The unit is a surrogate. Those before the first low one are high ones.
            _ if unit < FIRST_LOW_SURROGATE => self.high_surrogate = Some(unit),
            // A low surrogate without a high one.
            _ => push(out, char::REPLACEMENT_CHARACTER),
        }
    }
}

/// True if a text starts with the byte order mark of UTF-16.
pub fn has_utf16_mark(text: &[u8]) -> bool {
    text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff])
}

/// Removes a byte order mark from the start of a whole text. If it is that of UTF-16, also converts the text to UTF-8.
/// A text without a mark is returned unchanged.
pub fn strip_mark(text: &[u8]) -> Cow<'_, [u8]> {
    let (order, units) = match text {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Cow::Borrowed(rest),
        [0xff, 0xfe, units @ ..] => (ByteOrder::Little, units),
        [0xfe, 0xff, units @ ..] => (ByteOrder::Big, units),
        _ => return Cow::Borrowed(text),
    };
    let (mut decoder, mut decoded) = (Utf16Decoder::new(order), Vec::with_capacity(units.len() / 2));
    decoder.decode(units, &mut decoded);
    decoder.finish(&mut decoded);
    Cow::Owned(decoded)
}

/// The first low surrogate. Smaller surrogates are high ones, which begin a pair.
const FIRST_LOW_SURROGATE: u16 = 0xdc00;

fn push(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(units: &[u16], order: ByteOrder, piece: usize) -> String {
        let bytes: Vec<u8> = match order {
            ByteOrder::Little => units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
            ByteOrder::Big => units.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
        };
        let (mut decoder, mut out) = (Utf16Decoder::new(order), Vec::new());
        bytes.chunks(piece).for_each(|piece| decoder.decode(piece, &mut out));
        decoder.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn any_cut_gives_the_same_text() {
        let text = "main;wörk;\u{1f600}\u{1d11e} 5\r\n";
        let units: Vec<u16> = text.encode_utf16().collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for piece in 1..9 {
                assert_eq!(decoded(&units, order, piece), text, "{order:?}, {piece}");
            }
        }
    }

    #[test]
    fn a_mark_tells_the_encoding_of_a_whole_text() {
        let little: Vec<u8> = "\u{feff}ä\u{1f600}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}ä\u{1f600}\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for text in [&little, &big, "\u{feff}ä\u{1f600}\n".as_bytes(), "ä\u{1f600}\n".as_bytes()] {
            assert_eq!(*strip_mark(text), *"ä\u{1f600}\n".as_bytes());
        }
        assert_eq!(*strip_mark(b"\xff\xfe"), *b"");
        assert_eq!(*strip_mark(b"\xff\xfea"), *"\u{fffd}".as_bytes());
        assert_eq!(*strip_mark(b"\xff"), *b"\xff");
    }

    #[test]
    fn lone_surrogates_and_half_units_are_replaced() {
        for (units, text) in [
            (&[0x61, 0xd83d, 0x62][..], "a\u{fffd}b"),
            (&[0xde00, 0x62], "\u{fffd}b"),
            (&[0xd83d, 0xd83d, 0xde00], "\u{fffd}\u{1f600}"),
            (&[0xd83d], "\u{fffd}"),
        ] {
            for piece in 1..5 {
                assert_eq!(decoded(units, ByteOrder::Little, piece), text, "{units:x?}");
            }
        }
        let (mut decoder, mut out) = (Utf16Decoder::new(ByteOrder::Little), Vec::new());
        decoder.decode(b"a\0b", &mut out);
        decoder.finish(&mut out);
        assert_eq!(out, "a\u{fffd}".as_bytes());
    }
}
