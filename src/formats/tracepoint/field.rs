//! Parses the declarations of a tracepoint's fields.

/// A field of a tracepoint: where it is in the raw data of a sample, and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// Offset of the field in the raw data, in bytes.
    pub(super) offset: usize,
    /// Size of the field in bytes. If its data are elsewhere, this is the size of the reference to them.
    pub(super) size: usize,
    pub(super) is_signed: bool,
    pub(super) is_pointer: bool,
    /// True if the type contains the word `long`. perf prints such a field in hexadecimal, unless it is signed and has
    /// eight bytes.
    pub(super) is_long: bool,
    pub(super) is_array: bool,
    /// True for an array of characters.
    pub(super) is_text: bool,
    /// Whether the data is in the field or elsewhere.
    pub(super) place: Place,
    /// Size in bytes of an element if the field is an array; otherwise the size of the field.
    pub(super) element_size: usize,
}

/// Where the data of a field is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The data is in the field itself.
    Inline,
    /// The data is elsewhere in the raw data. The lower half of the field's value is its offset, the upper half its
    /// length in bytes (`__data_loc`).
    AtOffset,
    /// Like [`Self::AtOffset`], but the offset is relative to the end of the field (`__rel_loc`).
    AfterField,
}

impl Field {
    /// Parses the description of a field, such as `__data_loc char[] name; offset:8; size:4; signed:1;`. `long_size` is
    /// the size of a `long` in bytes. `None` if it has no name, offset or size.
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
        let Declaration { place, kind, name, length } = Declaration::parse(declaration)?;
        let is_array = length.is_some();
        let is_text = is_array && ["char", "u8", "s8"].iter().any(|word| kind.contains(word));
        let element_size = match length {
            // Not an array: the field is its own only element.
            None => size,
            Some(length) => match length.parse::<usize>() {
                Ok(count) if count > 0 => size / count,
                // From here on, the brackets have no usable number: they are empty, for example, or have a constant of
                // the kernel's source. Characters in the field itself have one byte each, even if `type_size` doesn't
                // know the exact type. Otherwise, the size of an element follows from the type.
                _ if is_text && place == Place::Inline => 1,
                _ => type_size(kind, long_size),
            },
        };
        Some(Self {
            name: name.to_owned(),
            offset,
            size,
            is_signed,
            is_pointer: kind.contains('*'),
            is_long: kind.split_whitespace().any(|word| word == "long"),
            is_array,
            is_text,
            place,
            element_size,
        })
    }
}

/// The C declaration of a field.
struct Declaration<'a> {
    place: Place,
    /// The type, without the brackets of an array.
    kind: &'a str,
    name: &'a str,
    /// The text in the brackets of an array; `None` if the field isn't an array.
    length: Option<&'a str>,
}

impl<'a> Declaration<'a> {
    /// Parses a declaration such as `char comm[16]`, `unsigned long ip` or `__data_loc char[] name`. `None` if it has
    /// no type or no name.
    fn parse(text: &'a str) -> Option<Self> {
        // The data is in the field itself (`Inline`) or elsewhere. In the second case, the field states where the data
        // is: relative to the start of the raw data (`AtOffset`) or to the end of the field (`AfterField`).
        let place = match text.split_whitespace().next()? {
            "__data_loc" => Place::AtOffset,
            "__rel_loc" => Place::AfterField,
            _ => Place::Inline,
        };
        if place != Place::Inline {
            // The brackets follow the type: `char[] name`.
            let text = text.trim_start_matches("__data_loc").trim_start_matches("__rel_loc").trim();
            let (kind, name) = text.rsplit_once([' ', ']'])?;
            // The data is always an array, whose length differs from sample to sample. An empty length stands for that.
            return Some(Self { place, kind: kind.split('[').next()?, name, length: Some("") });
        }
        // The brackets follow the name: `char comm[16]`.
        let (before_brackets, length) = match text.split_once('[') {
            Some((before_brackets, length)) => (before_brackets.trim(), Some(length.trim_end_matches(']'))),
            None => (text, None),
        };
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // The name is the last word. Everything before it is the type, including a `*` directly before the name.
        let name_start = before_brackets.rfind(|c| !is_in_name(c)).map_or(0, |last_other| last_other + 1);
        let (kind, name) = before_brackets.split_at(name_start);
        Some(Self { place, kind: kind.trim(), name, length })
    }
}

/// Size of a C type in bytes. `unsigned` alone means an `int`. Unknown types are assumed to have the size of a `long`
/// (`long_size`).
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
