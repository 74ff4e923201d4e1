//! Parses the description of a tracepoint: its fields and its print format.

use super::expression::{Argument, Parser};
use super::field::Field;

/// The format of a tracepoint.
#[derive(Debug)]
pub(super) struct TracepointFormat {
    /// The tracepoint's own fields, without those that all tracepoints have (`common_…`).
    pub(super) fields: Vec<Field>,
    /// The tracepoint's own fields, then those that all tracepoints have. The print format may refer to any of them.
    pub(super) all_fields: Vec<Field>,
    /// The print format; `None` if it is missing or not understood.
    pub(super) print: Option<PrintLine>,
}

/// A print format, split into texts and `printf` conversions with their arguments.
#[derive(Debug)]
pub(super) struct PrintLine {
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(super) enum Piece {
    Text(Vec<u8>),
    /// A conversion, and the argument that it formats.
    Value(Conversion, Argument),
}

/// A `printf` conversion.
#[derive(Debug, Default)]
pub(super) struct Conversion {
    /// The flag `-`: blanks are added to the right of the text, not to the left.
    pub(super) left: bool,
    /// The flag `+`: numbers that aren't negative get a plus sign.
    pub(super) plus: bool,
    /// The flag that is a blank: numbers that aren't negative get a blank in place of the sign.
    pub(super) space: bool,
    /// The flag `#`: hexadecimal numbers start with `0x`, octal ones with `0`.
    pub(super) alternate: bool,
    /// The flag `0`: numbers are filled up with zeros instead of blanks.
    pub(super) zeros: bool,
    pub(super) width: Size,
    pub(super) precision: Option<Size>,
    /// Size of the printed number in bits; higher bits of the value are ignored.
    pub(super) bits: u32,
    /// The letter of the conversion (`d`, `s`, …) or, for those of the kernel, a letter that [`Conversion::parse`]
    /// assigns.
    pub(super) kind: u8,
}

/// The width or precision of a conversion.
#[derive(Debug, Default)]
pub(super) enum Size {
    /// The conversion states none.
    #[default]
    None,
    Fixed(usize),
    /// Stated as `*`: the value of this argument.
    Value(Argument),
}

impl TracepointFormat {
    /// Parses a format file, and also returns the tracepoint's ID. `None` if there is no ID or a field can't be parsed.
    /// A print format that isn't understood is left out.
    pub(super) fn parse(text: &str, long_size: u64) -> Option<(u64, Self)> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        // The fields that all tracepoints have, such as `common_pid`, and the tracepoint's own.
        let (mut common, mut fields) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let line = line.trim();
            let Some(field) = line.strip_prefix("field:").or_else(|| line.strip_prefix("field special:")) else {
                continue;
            };
            // Without one of its fields, the tracepoint couldn't be printed as perf does, so it is given up.
            let field = Field::parse(field, long_size as usize)?;
            if field.name.starts_with("common_") {
                common.push(field);
            } else {
                fields.push(field);
            }
        }
        let all_fields: Vec<Field> = fields.iter().chain(&common).cloned().collect();
        let print = match text.split_once("print fmt:") {
            Some((_, line)) => PrintLine::parse(line.trim(), &all_fields),
            None => None,
        };
        Some((id, Self { fields, all_fields, print }))
    }
}

impl PrintLine {
    /// Parses a print format such as `"comm=%s pid=%d", REC->comm, REC->pid`. `None` if any of it isn't understood, or
    /// if there are fewer arguments than conversions; further arguments are ignored.
    fn parse(line: &str, fields: &[Field]) -> Option<Self> {
        let mut parser = Parser::new(line, fields)?;
        let format = parser.parse_texts()?;
        let mut arguments = parser.parse_arguments()?.into_iter();
        let (mut pieces, mut text) = (Vec::new(), Vec::new());
        let mut rest = &format[..];
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match (byte, rest.first()) {
                // `%%` prints a percent sign.
                (b'%', Some(b'%')) => {
                    text.push(b'%');
                    rest = &rest[1..];
                }
                (b'%', _) => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    let conversion = Conversion::parse(&mut rest, &mut arguments)?;
                    pieces.push(Piece::Value(conversion, arguments.next()?));
                }
                _ => text.push(byte),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Some(Self { pieces })
    }
}

impl Conversion {
    /// Parses a conversion after its percent sign, and takes the arguments for its width and precision. `None` if the
    /// conversion isn't understood, such as most of the kernel's own (`%p…`).
    fn parse(rest: &mut &[u8], arguments: &mut impl Iterator<Item = Argument>) -> Option<Self> {
        // Without a length such as `l`, the argument is an `int`. A `kind` of 0 means that there is none yet.
        let mut conversion = Self { bits: 32, ..Self::default() };
        loop {
            let (&byte, after) = rest.split_first()?;
            match byte {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternate = true,
                b'0' => conversion.zeros = true,
                _ => break,
            }
            *rest = after;
        }
        conversion.width = Size::parse(rest, arguments)?;
        if let Some(after) = rest.strip_prefix(b".") {
            *rest = after;
            conversion.precision = Some(Size::parse(rest, arguments)?);
        }
        loop {
            let (&byte, after) = rest.split_first()?;
            *rest = after;
            match byte {
                // C only knows `h` and `hh`. A damaged recording may have more, but a number has at least 8 bits.
                b'h' => conversion.bits = (conversion.bits / 2).max(8),
                b'l' | b'z' | b'Z' | b'j' | b'L' | b't' | b'q' => conversion.bits = 64,
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b's' => conversion.kind = byte,
                // A plain `%p` prints a pointer. So does `%pB`, which perf doesn't know; the `B` is printed as text.
                b'p' if rest.first().is_none_or(|next| *next == b'B' || !next.is_ascii_alphanumeric()) => {
                    (conversion.kind, conversion.bits) = (byte, 64);
                }
                // The argument is the address of a function, whose name is printed. `S` and `F` also print the offset
                // in the function.
                b'p' if matches!(rest.first(), Some(b's' | b'S' | b'f' | b'F')) => {
                    conversion.kind = if rest[0].is_ascii_uppercase() { b'F' } else { b'f' };
                    *rest = &rest[1..];
                }
                // The argument is a hardware address, an IP address or a UUID.
                b'p' => {
                    let (word, kind) = ADDRESSES.iter().find(|(word, _)| rest.starts_with(word))?;
                    *rest = &rest[word.len()..];
                    // Another letter asks for a variant, such as `%pI4h`, which isn't supported.
                    if rest.first().is_some_and(u8::is_ascii_alphanumeric) {
                        return None;
                    }
                    conversion.kind = *kind;
                }
                _ => return None,
            }
            // Without a kind, the letter was a length, such as `l`, and more letters follow.
            if conversion.kind != 0 {
                return Some(conversion);
            }
        }
    }
}

/// What follows `%p` for addresses and UUIDs stored as byte arrays, and the value of [`Conversion::kind`] for each.
/// `ISpc` is an address with a port (`struct sockaddr`). UUIDs have two byte orders (see [`UUID`]), in lower and upper
/// case.
const ADDRESSES: &[(&[u8], u8)] = &[
    (b"M", b'M'),
    (b"m", b'm'),
    (b"I4", b'4'),
    (b"i4", b'4'),
    (b"I6c", b'6'),
    (b"ISpc", b'S'),
    (b"UL", GUID_UPPER),
    (b"Ul", GUID),
    (b"UB", UUID_UPPER),
    (b"Ub", UUID),
    (b"U", UUID),
];

/// The kind of conversion that prints a UUID in the order of its bytes, in lower case.
pub(super) const UUID: u8 = b'U';
/// Like [`UUID`], in upper case.
pub(super) const UUID_UPPER: u8 = b'V';
/// The kind of conversion that prints a UUID whose first three numbers are little-endian, in lower case.
pub(super) const GUID: u8 = b'G';
/// Like [`GUID`], in upper case.
pub(super) const GUID_UPPER: u8 = b'H';

impl Size {
    /// Parses a width or a precision at the start of `rest`: digits, or `*`, which takes the next argument. `None` if
    /// there is no such argument.
    fn parse(rest: &mut &[u8], arguments: &mut impl Iterator<Item = Argument>) -> Option<Self> {
        if let Some(after) = rest.strip_prefix(b"*") {
            *rest = after;
            return Some(Self::Value(arguments.next()?));
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, after) = rest.split_at(digits);
        *rest = after;
        if digits == 0 {
            return Some(Self::None);
        }
        // No sensible format asks for more than 4096 columns.
        let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some(Self::Fixed(number.min(4096)))
    }
}
