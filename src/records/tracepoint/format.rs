//! The format of a tracepoint: its fields, and the print line.

use super::expression::{Argument, Parser};

/// A tracepoint's format.
#[derive(Debug)]
pub struct TracepointFormat {
    /// Its fields, without those that all tracepoints have.
    pub(super) fields: Vec<Field>,
    /// All fields: the print line may ask for any.
    pub(super) all: Vec<Field>,
    /// The print line; `None` if it is not understood.
    pub(super) print: Option<PrintLine>,
}

/// A field in the raw data of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) is_signed: bool,
    pub(super) is_pointer: bool,
    pub(super) is_long: bool,
    pub(super) is_array: bool,
    /// True if it is an array of characters.
    pub(super) is_text: bool,
    pub(super) place: Place,
    /// The size of an element of an array, else its own.
    pub(super) element: usize,
}

/// Where the data of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the field.
    Inline,
    /// At an offset that the field gives in its lower half; the upper half is the length (`__data_loc`).
    At,
    /// The same, counted from the end of the field (`__rel_loc`).
    Behind,
}

/// What a print line prints: texts, and arguments in a `printf` format.
#[derive(Debug)]
pub(super) struct PrintLine {
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Value(Conversion, Argument),
}

/// A conversion of `printf`.
#[derive(Debug, Default)]
pub(super) struct Conversion {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zeros: bool,
    pub(super) width: Size,
    pub(super) precision: Option<Size>,
    /// Bits of the number that count.
    pub(super) bits: u32,
    pub(super) kind: u8,
}

/// A width or a precision.
#[derive(Debug, Default)]
pub(super) enum Size {
    #[default]
    None,
    Fixed(usize),
    Value(Argument),
}

impl TracepointFormat {
    /// Parses a format file; gives the event's number, too. `None` if it has none.
    pub(super) fn parse(text: &str, long_size: u64) -> Option<(u64, Self)> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let (mut common, mut fields) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let line = line.trim();
            let Some(field) = line.strip_prefix("field:").or_else(|| line.strip_prefix("field special:")) else {
                continue;
            };
            let field = Field::parse(field, long_size as usize)?;
            if field.name.starts_with("common_") {
                common.push(field);
            } else {
                fields.push(field);
            }
        }
        let print = text.split_once("print fmt:").map(|(_, line)| line.trim());
        let all: Vec<Field> = fields.iter().chain(&common).cloned().collect();
        let print = print.and_then(|line| PrintLine::parse(line, &all));
        Some((id, Self { fields, all, print }))
    }
}

impl Field {
    /// `__data_loc char[] name;	offset:8;	size:4;	signed:1;`
    fn parse(text: &str, long_size: usize) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next()?;
        let (mut offset, mut size, mut is_signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", number)) => offset = number.parse().ok(),
                Some(("size", number)) => size = number.parse().ok(),
                Some(("signed", number)) => is_signed = number == "1",
                _ => {}
            }
        }
        let (offset, size): (usize, usize) = (offset?, size?);
        let place = match declaration.split_whitespace().next()? {
            "__data_loc" => Place::At,
            "__rel_loc" => Place::Behind,
            _ => Place::Inline,
        };
        let declaration = declaration.trim_start_matches("__data_loc").trim_start_matches("__rel_loc").trim();
        let (kind, name, length) = match place {
            // The brackets are behind the type: `char[] name`.
            Place::At | Place::Behind => {
                let (kind, name) = declaration.rsplit_once([' ', ']'])?;
                (kind.split('[').next()?, name, Some(""))
            }
            Place::Inline => {
                let (named, length) = match declaration.split_once('[') {
                    Some((named, length)) => (named.trim(), Some(length.trim_end_matches(']'))),
                    None => (declaration, None),
                };
                let start = named.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
                (named[..start].trim(), &named[start..], length)
            }
        };
        let is_array = length.is_some();
        let is_text = is_array && ["char", "u8", "s8"].iter().any(|word| kind.contains(word));
        let is_long = kind.split_whitespace().any(|word| word == "long");
        let element = match length {
            None => size,
            Some(_) if place != Place::Inline => type_size(kind, long_size),
            Some(length) => match length.parse::<usize>() {
                Ok(count) if count > 0 => size / count,
                _ if is_text => 1,
                _ => type_size(kind, long_size),
            },
        };
        Some(Self {
            name: name.to_owned(),
            offset,
            size,
            is_signed,
            is_pointer: kind.contains('*'),
            is_long,
            is_array,
            is_text,
            place,
            element,
        })
    }
}

/// The size of a C type; of one that is not known, a `long`'s.
pub(super) fn type_size(kind: &str, long_size: usize) -> usize {
    let words: Vec<&str> =
        kind.split_whitespace().filter(|word| !["unsigned", "signed", "const"].contains(word)).collect();
    match words[..] {
        ["char" | "u8" | "s8" | "__u8" | "__s8" | "bool"] => 1,
        ["short" | "u16" | "s16" | "__u16" | "__s16" | "__le16" | "__be16"] => 2,
        ["int" | "u32" | "s32" | "__u32" | "__s32" | "__le32" | "__be32" | "pid_t"] | [] => 4,
        ["u64" | "s64" | "__u64" | "__s64" | "__le64" | "__be64"] | ["long", "long"] => 8,
        _ => long_size,
    }
}

impl PrintLine {
    /// `"comm=%s pid=%d", REC->comm, REC->pid`
    fn parse(line: &str, fields: &[Field]) -> Option<Self> {
        let mut parser = Parser::new(line, fields)?;
        let format = parser.texts()?;
        let mut arguments = parser.arguments()?.into_iter();
        let (mut pieces, mut text) = (Vec::new(), Vec::new());
        let mut rest = &format[..];
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match (byte, rest.first()) {
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
    /// Behind the percent sign. `None` for most of the kernel's own conversions of pointers.
    fn parse(rest: &mut &[u8], arguments: &mut impl Iterator<Item = Argument>) -> Option<Self> {
        let mut conversion = Self { bits: 32, ..Self::default() };
        loop {
            let (&byte, behind) = rest.split_first()?;
            match byte {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternate = true,
                b'0' => conversion.zeros = true,
                _ => break,
            }
            *rest = behind;
        }
        conversion.width = Size::parse(rest, arguments)?;
        if let Some(behind) = rest.strip_prefix(b".") {
            *rest = behind;
            conversion.precision = Some(Size::parse(rest, arguments)?);
        }
        loop {
            let (&byte, behind) = rest.split_first()?;
            *rest = behind;
            match byte {
                b'h' => conversion.bits /= 2,
                b'l' | b'z' | b'Z' | b'j' | b'L' | b't' | b'q' => conversion.bits = 64,
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b's' => conversion.kind = byte,
                b'p' if rest.first().is_none_or(|next| !next.is_ascii_alphanumeric()) => {
                    (conversion.kind, conversion.bits) = (byte, 64);
                }
                // The name of the function at an address.
                b'p' if matches!(rest.first(), Some(b's' | b'S' | b'f' | b'F' | b'B')) => {
                    *rest = &rest[1..];
                    (conversion.kind, conversion.bits) = (b'f', 64);
                }
                // Hardware and IP addresses.
                b'p' => {
                    let (word, kind) = ADDRESSES.iter().find(|(word, _)| rest.starts_with(word))?;
                    *rest = &rest[word.len()..];
                    if rest.first().is_some_and(u8::is_ascii_alphanumeric) {
                        return None;
                    }
                    conversion.kind = *kind;
                }
                _ => return None,
            }
            if conversion.kind != 0 {
                return Some(conversion);
            }
        }
    }
}

/// What follows `%p` for addresses that are arrays of bytes, and what the conversion is called here.
const ADDRESSES: &[(&[u8], u8)] = &[(b"M", b'M'), (b"m", b'm'), (b"I4", b'4'), (b"i4", b'4')];

impl Size {
    fn parse(rest: &mut &[u8], arguments: &mut impl Iterator<Item = Argument>) -> Option<Self> {
        if let Some(behind) = rest.strip_prefix(b"*") {
            *rest = behind;
            return Some(Self::Value(arguments.next()?));
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, behind) = rest.split_at(digits);
        *rest = behind;
        if digits == 0 {
            return Some(Self::None);
        }
        // Nobody wants a wider field than that.
        let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some(Self::Fixed(number.min(4096)))
    }
}
