//! One event, as it is in the file.

use super::json::{JsonValue, ScanStop, Scanner, Text};
use std::borrow::Cow;

/// The members that time depends on; the others are only found when asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TraceEvent<'a> {
    /// `name`
    pub(super) name: Text<'a>,
    /// `cat`; `None` matches any category.
    pub(super) cat: Option<Text<'a>>,
    /// The first byte of `ph`; 0 if absent.
    pub(super) phase: u8,
    /// `ts` in nanoseconds.
    pub(super) time: Option<i64>,
    /// `dur` in nanoseconds.
    pub(super) duration: Option<i64>,
    /// `pid`
    pub(super) pid: OwnerText<'a>,
    /// `tid`
    pub(super) tid: OwnerText<'a>,
    /// `id`, or the one in `id2`, as written: `1`, `-2`, `0x10`. Empty if absent.
    pub(super) id: &'a [u8],
    /// True if the id holds within the process only (`id2.local`).
    pub(super) id_is_local: bool,
    /// `args` with its braces; empty if absent.
    pub(super) args: &'a [u8],
    /// True if `id` is written as a string.
    pub(super) id_is_text: bool,
    /// The whole object.
    pub(super) raw: &'a [u8],
    /// The offset of the object in the file.
    pub(super) offset: u64,
}

/// Miri's spans of interpreted calls: what they do is in their message.
pub(super) const FRAME: &[u8] = b"frame";

/// True if events of this phase are part of spans.
pub(super) fn is_span(phase: u8) -> bool {
    matches!(phase, b'B' | b'E' | b'X' | b'i' | b'I' | b'R' | b'b' | b'e' | b'n' | b'S' | b'F')
}

/// The members that [`TraceEvent`] has.
const KEYS: &[&[u8]] = &[b"name", b"cat", b"ph", b"ts", b"dur", b"pid", b"tid", b"id", b"id2", b"args"];

/// A process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerText<'a> {
    /// By number; 0 if the event does not state.
    Number(i64),
    /// By name: some writers have no numbers.
    Named(Text<'a>),
}

impl Default for OwnerText<'_> {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl<'a> TraceEvent<'a> {
    /// True if it is on a track of its own and begins something there.
    pub(super) fn is_by_id(&self) -> bool {
        matches!(self.phase, b'b' | b'n' | b'S')
    }

    /// The event that is in these bytes from `at` on.
    pub(super) fn find(bytes: &'a [u8], at: u64) -> Option<Self> {
        let mut event = Self::default();
        event.scan(bytes, usize::try_from(at).ok().filter(|at| *at < bytes.len())?).ok()?;
        Some(Self { offset: at, ..event })
    }

    /// Becomes the event at `at`; gives the place behind it.
    #[inline]
    pub(super) fn scan(&mut self, bytes: &'a [u8], at: usize) -> Result<usize, ScanStop> {
        *self = Self::default();
        let mut scanner = Scanner::new(bytes, at);
        scanner.members(|key, value| self.take(key, value))?;
        self.raw = &bytes[at..scanner.at];
        Ok(scanner.at)
    }

    /// Takes the value of a member.
    #[inline(always)]
    fn take(&mut self, key: Text<'a>, value: JsonValue<'a>) {
        match key.one_of(KEYS) {
            b"name" => self.name = plain(value),
            b"cat" => self.cat = Some(plain(value)),
            b"ph" => self.phase = plain(value).raw.first().copied().unwrap_or(0),
            b"ts" => self.time = nanoseconds(plain(value).raw),
            b"dur" => self.duration = nanoseconds(plain(value).raw),
            b"pid" => self.pid = who(value),
            b"tid" => self.tid = who(value),
            b"id" => self.take_id(value),
            b"id2" => self.take_id2(value),
            b"args" => self.args = if let JsonValue::Nested(args) = value { args } else { b"" },
            _ => {}
        }
    }

    fn take_id(&mut self, value: JsonValue<'a>) {
        self.id = plain(value).raw;
        self.id_is_text = matches!(value, JsonValue::Text(_));
    }

    #[inline(never)]
    fn take_id2(&mut self, value: JsonValue<'a>) {
        let JsonValue::Nested(object) = value else { return };
        // Found whole before: it can only be an array, which has no members.
        let _ = Scanner::new(object, 0).members(|key, value| {
            self.id_is_local = key.is(b"local");
            self.take_id(value);
        });
    }

    /// The text of an argument: strings without quotes; one pair may be inside, too (Rust's debug form).
    pub(super) fn argument(&self, name: &[u8]) -> Option<Cow<'a, [u8]>> {
        let mut found = None;
        if !self.args.is_empty() {
            let _ = Scanner::new(self.args, 0).members(|key, value| {
                if key.is(name) {
                    found = Some(value);
                }
            });
        }
        found.map(argument_text)
    }
}

/// The text of an argument's value.
fn argument_text(value: JsonValue<'_>) -> Cow<'_, [u8]> {
    match value {
        JsonValue::Text(text) => unquoted(text.text()),
        JsonValue::Word(raw) | JsonValue::Nested(raw) => Cow::Borrowed(raw),
    }
}

fn unquoted(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match &*text {
        [b'"', inner @ .., b'"'] => Cow::Owned(inner.to_vec()),
        _ => text,
    }
}

fn plain(value: JsonValue<'_>) -> Text<'_> {
    match value {
        JsonValue::Text(text) => text,
        JsonValue::Word(raw) | JsonValue::Nested(raw) => Text::plain(raw),
    }
}

fn who(value: JsonValue<'_>) -> OwnerText<'_> {
    let text = plain(value);
    if let [digit @ b'0'..=b'9'] = text.raw {
        return OwnerText::Number(i64::from(digit - b'0'));
    }
    match std::str::from_utf8(text.raw).ok().and_then(|text| text.parse().ok()) {
        Some(number) => OwnerText::Number(number),
        None if text.raw == b"null" => OwnerText::Number(0),
        None => OwnerText::Named(text),
    }
}

/// Microseconds, with any number of decimals, to the nearest nanosecond. Decimal digits are taken as they are: a
/// floating-point number of microseconds since 1970 could not hold them.
pub(super) fn nanoseconds(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let (mut nanos, mut decimals, mut point) = (0i64, 0, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' if decimals < 3 => {
                nanos = nanos.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals += u32::from(point);
            }
            b'0'..=b'9' if decimals == 3 => {
                nanos += i64::from(byte >= b'5');
                decimals += 1;
            }
            b'0'..=b'9' => {}
            b'.' if !point => point = true,
            _ => return floating(text),
        }
    }
    if digits.len() == usize::from(point) {
        return None;
    }
    for _ in decimals..3 {
        nanos = nanos.checked_mul(10)?;
    }
    Some(if negative { -nanos } else { nanos })
}

/// `1.5e3` and the like.
fn floating(text: &[u8]) -> Option<i64> {
    let micros: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let nanos = (micros * 1000.0).round();
    (nanos.abs() < 9.2e18).then_some(nanos as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_decimal() {
        let cases = [
            ("2", 2_000),
            ("2.013", 2_013),
            ("5.0004", 5_000),
            ("5.0005", 5_001),
            ("-1.5", -1_500),
            ("1795223170240880.123", 1_795_223_170_240_880_123),
            ("1.5e3", 1_500_000),
            (".5", 500),
        ];
        for (text, nanos) in cases {
            assert_eq!(nanoseconds(text.as_bytes()), Some(nanos), "{text}");
        }
        for wrong in ["", ".", "x", "NaN", "1e99", "99999999999999999999"] {
            assert_eq!(nanoseconds(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn members_in_any_order_numbers_as_strings() {
        let json = br#"{"args":{"message":"\"f\"","n":3},"tid":"main","ts":"40.25","id2":{"local":"0x1"},"pid":7,"ph":"b","n\u0061me":"frame"}"#;
        let mut event = TraceEvent::default();
        assert_eq!(event.scan(json, 0), Ok(json.len()));
        assert_eq!((event.time, event.phase, event.id, event.id_is_local), (Some(40_250), b'b', &b"0x1"[..], true));
        assert!(event.name.is(b"frame") && matches!(event.tid, OwnerText::Named(tid) if tid.is(b"main")));
        assert_eq!(event.argument(b"message").as_deref(), Some(&b"f"[..]));
        assert_eq!(event.argument(b"n").as_deref(), Some(&b"3"[..]));
        assert_eq!(event.argument(b"x"), None);
    }
}
