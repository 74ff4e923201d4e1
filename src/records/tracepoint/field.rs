//! The fields of a tracepoint, as its format declares them.

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

impl Field {
    /// `__data_loc char[] name; offset:8; size:4; signed:1;`
    pub(super) fn parse(text: &str, long_size: usize) -> Option<Self> {
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
