//! Columns of numbers and strings, encoded as JSON as they are filled. A table with a million rows is then written in a
//! few large pieces and takes no more memory than its text.

use crate::bytes::decimal::push_decimal;
use serde::Serialize;
use std::io::{self, Write};

/// A column: the text between the brackets of a JSON array.
#[derive(Debug, Default)]
pub(super) struct Column(Vec<u8>);

impl Column {
    /// An empty column with room for this many cells of `len` bytes each.
    pub(super) fn with_capacity(cells: usize, len: usize) -> Self {
        Self(Vec::with_capacity(cells * (len + 1)))
    }

    /// A column with the same word in every cell.
    pub(super) fn repeated(word: &str, cells: u32) -> Self {
        let mut column = Self::with_capacity(cells as usize, word.len());
        (0..cells).for_each(|_| column.word(word));
        column
    }

    /// Adds `null`, `true` or another word that needs no quotes.
    pub(super) fn word(&mut self, word: &str) {
        self.next();
        self.0.extend_from_slice(word.as_bytes());
    }

    /// Adds an integer.
    #[inline]
    pub(super) fn number(&mut self, number: impl Into<u64>) {
        self.next();
        push_decimal(number.into(), &mut self.0);
    }

    /// Adds an integer, or `null` for `None`.
    #[inline]
    pub(super) fn number_or_null(&mut self, number: Option<u32>) {
        match number {
            Some(number) => self.number(number),
            None => self.word("null"),
        }
    }

    /// Adds an integer, or -1 for `None`.
    pub(super) fn number_or_minus_one(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.number(number),
            None => self.word("-1"),
        }
    }

    /// Adds nanoseconds as milliseconds, spelled like the result of [`millis`](super::writing::millis).
    #[inline]
    pub(super) fn millis(&mut self, nanos: u64) {
        // serde spells a floating-point number with as few digits as possible. If the exact value has at most 15
        // digits, these are its own digits, so they can be written directly. Larger numbers are left to serde, and so
        // are tiny ones, which are spelled with an exponent.
        if !(1_000..1_000_000_000_000_000).contains(&nanos) {
            return self.json(&super::writing::millis(nanos));
        }
        self.next();
        push_decimal(nanos / 1_000_000, &mut self.0);
        // The six digits of the fraction are filled in from the last to the first. `len` is the length of the fraction
        // without trailing zeros, but with the point and at least one digit.
        let mut fraction = [b'.', b'0', b'0', b'0', b'0', b'0', b'0'];
        let (mut rest, mut len) = (nanos % 1_000_000, 2);
        for index in (1..fraction.len()).rev() {
            let digit = rest % 10;
            (fraction[index], rest) = (b'0' + digit as u8, rest / 10);
            if digit != 0 && index >= len {
                len = index + 1;
            }
        }
        self.0.extend_from_slice(&fraction[..len]);
    }

    /// Adds a count, spelled like a floating-point number: `3.0`.
    pub(super) fn count(&mut self, count: u64) {
        if count >= 1_000_000_000_000_000 {
            return self.json(&(count as f64));
        }
        self.number(count);
        self.0.extend_from_slice(b".0");
    }

    /// Adds any value, serialized as JSON.
    pub(super) fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        self.next();
        // Writing to memory can't fail, and neither can serializing the values that are used here.
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    #[inline]
    fn next(&mut self) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
    }
}

/// A JSON object that is being written.
pub(super) struct Object<'o> {
    out: &'o mut dyn Write,
    /// What to write before the next field: the opening brace or a comma.
    before: &'static [u8],
}

impl<'o> Object<'o> {
    /// Writes an object; `fields` writes its fields.
    pub(super) fn write(
        out: &'o mut dyn Write,
        fields: impl FnOnce(&mut Object<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut object = Object { out, before: b"{" };
        fields(&mut object)?;
        object.out.write_all(b"}")
    }

    /// Writes a field with any value.
    pub(super) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        let out = self.field_name(name)?;
        Ok(serde_json::to_writer(out, value)?)
    }

    /// Writes a field, or nothing for `None`.
    pub(super) fn optional_field(&mut self, name: &str, value: Option<impl Serialize>) -> io::Result<()> {
        match value {
            Some(value) => self.field(name, &value),
            None => Ok(()),
        }
    }

    /// Writes a column as a field.
    pub(super) fn column(&mut self, name: &str, column: &Column) -> io::Result<()> {
        let out = self.field_name(name)?;
        out.write_all(b"[")?;
        out.write_all(&column.0)?;
        out.write_all(b"]")
    }

    /// Writes a field whose value is an object.
    pub(super) fn object(
        &mut self,
        name: &str,
        fields: impl FnOnce(&mut Object<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        Object::write(self.field_name(name)?, fields)
    }

    /// Writes the name of a field. The caller must write the value next.
    pub(super) fn field_name(&mut self, name: &str) -> io::Result<&mut dyn Write> {
        self.out.write_all(std::mem::replace(&mut self.before, b","))?;
        write!(self.out, "\"{name}\":")?;
        Ok(&mut *self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::writing::millis;
    use super::*;
    use proptest::prelude::*;

    /// The text of a column that `fill` has filled.
    fn filled(fill: impl FnOnce(&mut Column)) -> String {
        let mut column = Column::default();
        fill(&mut column);
        String::from_utf8(column.0).unwrap()
    }

    fn assert_same_as_json(nanos: u64) {
        assert_eq!(filled(|column| column.millis(nanos)), serde_json::to_string(&millis(nanos)).unwrap());
        assert_eq!(filled(|column| column.count(nanos)), serde_json::to_string(&(nanos as f64)).unwrap());
        assert_eq!(filled(|column| column.number(nanos)), serde_json::to_string(&nanos).unwrap());
    }

    #[test]
    fn numbers_at_the_edges_are_spelled_as_json_spells_them() {
        for at in (0..20).map(|digits| 10_u64.pow(digits)) {
            [at - 1, at, at.saturating_add(1), at / 2 * 3].into_iter().for_each(assert_same_as_json);
        }
        assert_same_as_json(u64::MAX);
    }

    proptest! {
        #[test]
        fn numbers_are_spelled_as_json_spells_them(number in any::<u64>(), shift in 0..64) {
            assert_same_as_json(number >> shift);
        }
    }

    #[test]
    fn an_object_is_json() {
        let mut column = Column::default();
        column.number_or_null(None);
        column.number_or_null(Some(7));
        column.number_or_minus_one(None);
        column.json("\"");
        let mut out = Vec::new();
        Object::write(&mut out, |object| {
            object.column("cells", &column)?;
            object.field("text", "a")?;
            object.object("inner", |inner| inner.column("none", &Column::default()))?;
            object.object("empty", |inner| inner.column("words", &Column::repeated("null", 2)))
        })
        .unwrap();
        let expected = r#"{"cells":[null,7,-1,"\""],"text":"a","inner":{"none":[]},"empty":{"words":[null,null]}}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
