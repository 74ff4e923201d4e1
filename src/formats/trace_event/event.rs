//! Parses one event of a trace with serde. Strings are borrowed from the file's bytes.

use super::repair::lenient_text;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// An event. Times are in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct TraceEvent<'a> {
    /// The event's name (`name`); empty if absent.
    pub(super) name: Cow<'a, str>,
    /// The category (`cat`); `None` if absent. A start and an end match if their categories are equal or one has none.
    pub(super) cat: Option<Cow<'a, str>>,
    /// The phase: the first byte of `ph`; 0 if absent.
    pub(super) phase: u8,
    /// The time (`ts`); `None` if absent.
    pub(super) time: Option<i64>,
    /// The duration (`dur`); `None` if absent.
    pub(super) duration: Option<i64>,
    /// The duration in CPU time of the thread (`tdur`); `None` if absent.
    pub(super) cpu_duration: Option<i64>,
    /// The process (`pid`); `None` if absent.
    pub(super) pid: Option<Owner<'a>>,
    /// The thread (`tid`); `None` if absent.
    pub(super) tid: Option<Owner<'a>>,
    /// The ID of the async track (`id`, or the ID in `id2`), as the file spells it: `1`, `-2` or `0x10`, for example.
    /// Empty if absent.
    pub(super) id: &'a str,
    /// True if `id` is written as a string.
    pub(super) id_is_text: bool,
    /// True if the ID is only unique within its process (`id2.local`).
    pub(super) id_is_local: bool,
    /// `scope`: equal IDs in different scopes identify different tracks. `None` if absent.
    pub(super) scope: Option<Cow<'a, str>>,
    /// The arguments (`args`) as JSON, including the braces; empty if absent.
    pub(super) args: &'a str,
    /// True if the event has a call stack of its own (`stack`, `sf`).
    pub(super) has_stack: bool,
    /// The whole event as JSON.
    pub(super) raw: &'a [u8],
    /// The offset of the object in the file.
    pub(super) offset: u64,
}

/// A process or thread. Some writers have names instead of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    /// Identified by number.
    Number(i64),
    /// Identified by name.
    Named(Cow<'a, str>),
}

/// True if events of this phase are part of spans.
pub(super) fn is_span_phase(phase: u8) -> bool {
    matches!(phase, b'B' | b'E' | b'X' | b'i' | b'I' | b'R' | b'b' | b'e' | b'n' | b'S' | b'F')
}

/// True for phases of the format that aren't part of spans: samples, counters, flows, steps, objects, memory dumps,
/// clocks, contexts and metadata.
pub(super) fn is_other_phase(phase: u8) -> bool {
    matches!(
        phase,
        b'P' | b'C'
            | b's'
            | b't'
            | b'f'
            | b'T'
            | b'p'
            | b'N'
            | b'O'
            | b'D'
            | b'M'
            | b'V'
            | b'v'
            | b'c'
            | b'('
            | b')'
            | b'='
            | b'a'
    )
}

impl<'a> TraceEvent<'a> {
    /// Parses the event at the start of a text. Returns it with its length in bytes.
    pub(super) fn parse(text: &'a str) -> serde_json::Result<(Self, usize)> {
        let mut event = Self::default();
        let len = event.read(serde_json::Deserializer::from_str(text))?;
        event.raw = &text.as_bytes()[..len];
        Ok((event, len))
    }

    /// Like [`Self::parse`], for bytes that may not be UTF-8. Each string is checked.
    pub(super) fn parse_bytes(bytes: &'a [u8]) -> serde_json::Result<(Self, usize)> {
        let mut event = Self::default();
        let len = event.read(serde_json::Deserializer::from_slice(bytes))?;
        event.raw = &bytes[..len];
        Ok((event, len))
    }

    /// Reads the fields of the event at the start of an input, and returns the event's length in bytes. An event is
    /// large, so it is filled in place instead of being passed on by each layer of the parser.
    fn read<R: serde_json::de::Read<'a>>(
        &mut self,
        mut deserializer: serde_json::Deserializer<R>,
    ) -> serde_json::Result<usize> {
        deserializer.deserialize_map(EventVisitor(self))?;
        Ok(deserializer.into_iter::<IgnoredAny>().byte_offset())
    }

    /// True if the event is an instant, or the start of a span, on a track that is identified by an ID instead of a
    /// thread. False for ends of such spans.
    pub(super) fn is_by_id(&self) -> bool {
        matches!(self.phase, b'b' | b'n' | b'S')
    }

    /// The thread. If the event states none, this is the thread whose ID is the process ID.
    pub(super) fn thread(&self) -> Owner<'a> {
        self.tid.clone().unwrap_or_else(|| self.process())
    }

    /// The process; 0 if the event doesn't state it.
    pub(super) fn process(&self) -> Owner<'a> {
        self.pid.clone().unwrap_or(Owner::Number(0))
    }

    /// The text of an argument; `None` if it is absent. Quotes around strings are removed, and so is one more pair
    /// inside of them (Rust's debug format).
    pub(super) fn argument(&self, name: &str) -> Option<Cow<'a, str>> {
        let [found] = self.arguments([name]);
        found
    }

    /// The names of all arguments. Empty if they can't be parsed.
    pub(super) fn argument_names(&self) -> Vec<String> {
        if self.args.is_empty() {
            return Vec::new();
        }
        let all: serde_json::Result<HashMap<String, IgnoredAny>> = serde_json::from_str(self.args);
        all.map_or_else(|_| Vec::new(), |all| all.into_keys().collect())
    }

    /// The texts of several arguments; `None` for those that are absent.
    pub(super) fn arguments<const N: usize>(&self, names: [&str; N]) -> [Option<Cow<'a, str>>; N] {
        let mut find = FindMembers { names, found: [None; N] };
        if !self.args.is_empty() {
            // If the JSON is malformed, the arguments that were found before the error count.
            let _ = (&mut find).deserialize(&mut serde_json::Deserializer::from_str(self.args));
        }
        find.found.map(|value| {
            let text = value_text(value?.get());
            // Remove quotes that are part of the text, too, such as those of a Rust string that was formatted with
            // `{:?}`.
            match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
                Some(inner) => Some(Cow::Owned(inner.to_owned())),
                None => Some(text),
            }
        })
    }
}

/// The contents of a JSON string; the JSON text of any other value.
fn value_text(json: &str) -> Cow<'_, str> {
    match json.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) if inner.contains('\\') => {
            serde_json::from_str(json).map_or_else(|_| Cow::Owned(lenient_text(json)), Cow::Owned)
        }
        Some(inner) => Cow::Borrowed(inner),
        None => Cow::Borrowed(json),
    }
}

/// The JSON text of a value, without the quotes of a string.
fn strip_quotes(json: &str) -> &str {
    json.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(json)
}

/// Parses a process or thread: a number, or else a name.
fn parse_owner(text: Cow<'_, str>) -> Owner<'_> {
    match text.parse() {
        Ok(number) => Owner::Number(number),
        Err(_) => Owner::Named(text),
    }
}

/// Reads the fields of an event. If a field occurs twice, the last one counts.
struct EventVisitor<'e, 'a>(&'e mut TraceEvent<'a>);

impl<'de> Visitor<'de> for EventVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace event")
    }

    /// Reads the members of an event that matter, in any order, and skips the others.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let event = self.0;
        while let Some(member) = map.next_key()? {
            match member {
                Member::Name => event.name = map.next_value::<Text<'_>>()?.0,
                Member::Cat => event.cat = Some(map.next_value::<Text<'_>>()?.0),
                Member::Ph => event.phase = map.next_value::<Text<'_>>()?.0.bytes().next().unwrap_or(0),
                Member::Ts => event.time = nanoseconds(strip_quotes(next_raw(&mut map)?)),
                Member::Dur => event.duration = nanoseconds(strip_quotes(next_raw(&mut map)?)),
                Member::Tdur => event.cpu_duration = nanoseconds(strip_quotes(next_raw(&mut map)?)),
                Member::Pid => event.pid = map.next_value::<PerhapsOwner<'_>>()?.0,
                Member::Tid => event.tid = map.next_value::<PerhapsOwner<'_>>()?.0,
                Member::Id => {
                    let id = next_raw(&mut map)?;
                    (event.id, event.id_is_text) = (strip_quotes(id), id.starts_with('"'));
                }
                Member::Id2 => {
                    // An ID of an unexpected type is ignored.
                    let id: LocalOrGlobal<'_> = serde_json::from_str(next_raw(&mut map)?).unwrap_or_default();
                    let text = id.local.or(id.global).map_or("", RawValue::get);
                    event.id_is_local = id.local.is_some();
                    (event.id, event.id_is_text) = (strip_quotes(text), text.starts_with('"'));
                }
                Member::Scope => event.scope = Some(map.next_value::<Text<'_>>()?.0),
                Member::Args => {
                    let args = next_raw(&mut map)?;
                    // Arguments of another type, such as a text, count as none.
                    event.args = if args.starts_with(['{', '[']) { args } else { "" };
                }
                Member::Stack | Member::Sf => {
                    event.has_stack = true;
                    map.next_value::<IgnoredAny>()?;
                }
                Member::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The JSON text of the next value.
fn next_raw<'de, A: MapAccess<'de>>(map: &mut A) -> Result<&'de str, A::Error> {
    Ok(map.next_value::<&'de RawValue>()?.get())
}

/// The value of `id2`: an ID that is unique within its process, or one that is unique in the trace.
#[derive(Deserialize, Default)]
#[serde(default)]
struct LocalOrGlobal<'a> {
    #[serde(borrow)]
    local: Option<&'a RawValue>,
    #[serde(borrow)]
    global: Option<&'a RawValue>,
}

/// The fields of an event that are read.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Name,
    Cat,
    Ph,
    Ts,
    Dur,
    Tdur,
    Pid,
    Tid,
    Id,
    Id2,
    Scope,
    Args,
    Stack,
    Sf,
    #[serde(other)]
    Other,
}

/// A process or thread; `None` if it is `null`, a list or an object.
struct PerhapsOwner<'a>(Option<Owner<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for PerhapsOwner<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OwnerVisitor).map(PerhapsOwner)
    }
}

struct OwnerVisitor;

impl<'de> Visitor<'de> for OwnerVisitor {
    type Value = Option<Owner<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a process or thread")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(i64::try_from(number).map_or_else(|_| parse_owner(Cow::Owned(number.to_string())), Owner::Number)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(Owner::Number(number)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(parse_owner(Cow::Owned(number.to_string()))))
    }

    fn visit_bool<E>(self, word: bool) -> Result<Self::Value, E> {
        Ok(Some(parse_owner(Cow::Owned(word.to_string()))))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(parse_owner(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(parse_owner(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// A text. Numbers and words such as `true` are taken as written; other values become an empty text.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_bool<E>(self, word: bool) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(if word { "true" } else { "false" }))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cow::Borrowed(""))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::Borrowed(""))
    }
}

/// Finds fields of an object by name. If a field occurs twice, the last one counts. `found` has the JSON of each field,
/// in the order of `names`.
struct FindMembers<'n, 'de, const N: usize> {
    names: [&'n str; N],
    found: [Option<&'de RawValue>; N],
}

impl<'de, const N: usize> DeserializeSeed<'de> for &mut FindMembers<'_, 'de, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for &mut FindMembers<'_, 'de, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    /// Stores the JSON text of each wanted member in `found`, and skips the other members.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(index) = map.next_key_seed(FindName(&self.names))? {
            match index {
                Some(index) => self.found[index] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Recognizes one of several field names: its index, or `None` if it is another name.
struct FindName<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for FindName<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FindName<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an argument")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

/// Converts microseconds with any number of decimals to nanoseconds, rounded to the nearest; `None` if the text isn't a
/// number or the result is too large. Parses digits directly, because a floating-point number can't hold microseconds
/// since 1970 with nanosecond precision.
pub(super) fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    // The number is read as if it ended after three decimals, which makes it nanoseconds; the fourth is only used to
    // round.
    let (mut nanos, mut decimals, mut has_point) = (0i64, 0, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' if decimals < 3 => {
                nanos = nanos.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals += u32::from(has_point);
            }
            b'0'..=b'9' if decimals == 3 => {
                nanos += i64::from(byte >= b'5');
                decimals += 1;
            }
            b'0'..=b'9' => {}
            b'.' if !has_point => has_point = true,
            _ => return nanoseconds_from_float(text),
        }
    }
    // The text has no digit, but at most a sign and a point.
    if digits.len() == usize::from(has_point) {
        return None;
    }
    // Fewer than three decimals: scale the number up to nanoseconds.
    for _ in decimals..3 {
        nanos = nanos.checked_mul(10)?;
    }
    Some(if negative { -nanos } else { nanos })
}

/// Converts microseconds in other notations, such as `1.5e3`, to nanoseconds.
fn nanoseconds_from_float(text: &str) -> Option<i64> {
    let micros: f64 = text.parse().ok()?;
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
            assert_eq!(nanoseconds(text), Some(nanos), "{text}");
        }
        for wrong in ["", ".", "x", "NaN", "1e99", "99999999999999999999"] {
            assert_eq!(nanoseconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn members_in_any_order_numbers_as_strings() {
        let json = br#"{"args":{"message":"\"f\"","n":3},"tid":"main","ts":"40.25","id2":{"local":"0x1"},"pid":7,"ph":"b","n\u0061me":"frame"} rest"#;
        let (event, len) = TraceEvent::parse(str::from_utf8(json).unwrap()).unwrap();
        assert_eq!((len, event.raw), (json.len() - 5, &json[..json.len() - 5]));
        assert_eq!((event.time, event.phase, event.id, event.id_is_local), (Some(40_250), b'b', "0x1", true));
        assert_eq!((&*event.name, event.thread()), ("frame", Owner::Named("main".into())));
        assert_eq!(event.argument("message").as_deref(), Some("f"));
        assert_eq!(event.argument("n").as_deref(), Some("3"));
        assert_eq!(event.argument("x"), None);
    }

    #[test]
    fn an_event_without_a_thread_belongs_to_that_of_the_process() {
        fn thread(json: &str) -> Owner<'_> {
            TraceEvent::parse(json).unwrap().0.thread()
        }
        assert_eq!(thread(r#"{"pid":7}"#), Owner::Number(7));
        assert_eq!(thread(r#"{"pid":"a","tid":null}"#), Owner::Named("a".into()));
        assert_eq!(thread(r#"{"pid":7,"tid":0}"#), Owner::Number(0));
        assert_eq!(thread(r#"{"pid":7,"tid":"-12"}"#), Owner::Number(-12));
        assert_eq!(thread(r#"{"pid":7,"tid":18446744073709551615}"#), Owner::Named("18446744073709551615".into()));
        assert_eq!(thread(r#"{"pid":7,"tid":[1]}"#), Owner::Number(7));
        assert_eq!(thread(r#"{"name":{"a":[1]},"cat":[{}],"ph":null}"#), Owner::Number(0));
    }

    #[test]
    fn values_of_any_depth_are_passed_over() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let json = format!(r#"{{"x":{deep},"name":{deep},"args":{{"a":{deep},"b":"c"}},"ph":"X"}}"#);
        let (event, len) = TraceEvent::parse(&json).unwrap();
        assert_eq!((len, event.phase, event.argument("b").as_deref()), (json.len(), b'X', Some("c")));
    }
}
