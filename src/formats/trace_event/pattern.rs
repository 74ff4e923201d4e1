//! Events that are written alike: a writer puts the same members in the same order, with the same bytes between their
//! values, and many values are those of the event before. Where an event has the bytes of one that was read before, but
//! for some values, only these are read.
//!
//! Nothing is guessed: the scanner of JSON would have come to every value in the same state, and bytes that differ
//! anywhere else are left to it.

use super::event::{Argument, Member, TraceEvent, nanoseconds_at};
use super::json::{JsonValue, Scanner};

/// An event that was read, as a form for others.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    /// The event; values that differ are those of the one read last. Its arguments are in `args`, if they could be told
    /// apart, and `raw` is not kept.
    pub(super) event: TraceEvent<'a>,
    /// The arguments by their keys; `None` if they are none that can be told apart.
    pub(super) args: Option<Vec<Argument<'a>>>,
    /// What stands before each value that differs, and how it is read.
    steps: Vec<PatternStep>,
    /// What stands behind the last one.
    tail: SameBytes,
    shape: EventShape<'a>,
}

#[derive(Debug)]
struct PatternStep {
    before: SameBytes,
    member: SlotMember,
    kind: ValueKind,
}

/// All values of an event, and the bytes between them.
#[derive(Debug)]
struct EventShape<'a> {
    /// The event, from brace to brace.
    bytes: &'a [u8],
    slots: Vec<ValueSlot>,
}

/// A value.
#[derive(Debug, Clone, Copy)]
struct ValueSlot {
    member: SlotMember,
    kind: ValueKind,
    /// Where it stands in its event, without quotes.
    start: usize,
    end: usize,
    /// Whether it differs from event to event.
    varies: bool,
}

/// What a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotMember {
    Event(Member),
    /// The arguments' member of that number.
    Argument(usize),
}

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Text,
    Word,
    Nested,
}

/// More members than that are no event that is worth it.
const MOST_MEMBERS: usize = 64;

impl<'a> EventShape<'a> {
    /// Of the event that was found whole in `bytes`; `None` if it has what only the scanner knows to tell: a key with
    /// escapes, or one twice (`id` and `id2` are one).
    fn of(bytes: &'a [u8]) -> Option<(Self, Option<Vec<Argument<'a>>>)> {
        let place = |raw: &[u8]| raw.as_ptr().addr() - bytes.as_ptr().addr();
        let slot = |member: SlotMember, value: JsonValue<'a>, varies: bool| {
            let (kind, raw) = match value {
                JsonValue::Text(text) => (ValueKind::Text, text.raw()),
                JsonValue::Word(raw) => (ValueKind::Word, raw),
                JsonValue::Nested(raw) => (ValueKind::Nested, raw),
            };
            ValueSlot { member, kind, start: place(raw), end: place(raw) + raw.len(), varies }
        };
        let (mut slots, mut args, mut met, mut odd) = (Vec::new(), None, Vec::<Member>::new(), false);
        let scanned = Scanner::new(bytes, 0).members(|key, value| {
            let member = Member::of(key);
            let said_by = |known: Member| if known == Member::Id2 { Member::Id } else { known };
            odd |= key.is_escaped() || (member != Member::Other && met.contains(&said_by(member)));
            met.push(said_by(member));
            if let (Member::Args, JsonValue::Nested(raw)) = (member, value)
                && let Some(members) = arguments(raw)
            {
                let numbered = members.iter().enumerate();
                slots.extend(numbered.map(|(at, &(_, value))| slot(SlotMember::Argument(at), value, true)));
                args = Some(members);
            } else {
                let same = matches!(member, Member::Cat | Member::Phase | Member::Pid | Member::Tid);
                slots.push(slot(SlotMember::Event(member), value, !same));
            }
        });
        let fits = scanned.is_ok() && !odd && slots.len() <= MOST_MEMBERS;
        fits.then_some((Self { bytes, slots }, args))
    }

    /// Whether nothing but values differs.
    fn is_like(&self, other: &Self) -> bool {
        let same = |one: &ValueSlot, other: &ValueSlot| one.member == other.member && one.kind == other.kind;
        self.slots.len() == other.slots.len()
            && self.slots.iter().zip(&other.slots).all(|(one, other)| same(one, other))
            && self.between().eq(other.between())
    }

    /// The bytes before, between and behind the values.
    fn between(&self) -> impl Iterator<Item = &'a [u8]> {
        let starts = self.slots.iter().map(|slot| slot.start).chain([self.bytes.len()]);
        let ends = [0].into_iter().chain(self.slots.iter().map(|slot| slot.end));
        starts.zip(ends).map(|(start, end)| &self.bytes[end..start])
    }

    fn value(&self, slot: &ValueSlot) -> &'a [u8] {
        &self.bytes[slot.start..slot.end]
    }

    /// Knows of the values that differ from those of an event of the same shape.
    fn differ_from(&mut self, other: &Self) {
        for at in 0..self.slots.len() {
            let differs = self.value(&self.slots[at]) != other.value(&other.slots[at]);
            self.slots[at].varies |= other.slots[at].varies || differs;
        }
    }
}

/// The members of the arguments, if each is one of its own.
fn arguments(raw: &[u8]) -> Option<Vec<Argument<'_>>> {
    let (mut members, mut escaped) = (Vec::new(), false);
    let scanned = Scanner::new(raw, 0).members(|key, value| {
        escaped |= key.is_escaped();
        members.push((key.raw(), value));
    });
    (scanned.is_ok() && !escaped).then_some(members)
}

impl<'a> Pattern<'a> {
    /// From a shape, and what the scanner made of it.
    fn new(shape: EventShape<'a>, args: Option<Vec<Argument<'a>>>, event: TraceEvent<'a>) -> Self {
        let (mut steps, mut start) = (Vec::new(), 0);
        for slot in shape.slots.iter().filter(|slot| slot.varies) {
            let before = SameBytes::new(&shape.bytes[start..slot.start]);
            steps.push(PatternStep { before, member: slot.member, kind: slot.kind });
            start = slot.end;
        }
        let tail = SameBytes::new(&shape.bytes[start..]);
        Self { event, args, steps, tail, shape }
    }

    /// Takes the values of the event at `at`, if it is one of this form; gives the place behind it.
    #[inline]
    fn read(&mut self, bytes: &'a [u8], at: usize) -> Option<usize> {
        let mut scanner = Scanner::new(bytes, at);
        for step in &self.steps {
            scanner.at = step.before.behind(bytes, scanner.at)?;
            let value = match step.kind {
                ValueKind::Text => {
                    let text = scanner.rest_of_string().ok()?;
                    // The quote is a byte of what stands behind the value.
                    scanner.at -= 1;
                    JsonValue::Text(text)
                }
                ValueKind::Word => match step.member {
                    SlotMember::Event(member @ (Member::Time | Member::Duration))
                        if let Some((time, end)) = nanoseconds_at(bytes, scanner.at) =>
                    {
                        self.event.take_time(member, time);
                        scanner.at = end;
                        continue;
                    }
                    _ => JsonValue::Word(scanner.word().ok().filter(|word| !word.is_empty())?),
                },
                ValueKind::Nested if matches!(bytes.get(scanner.at)?, b'{' | b'[') => {
                    JsonValue::Nested(scanner.nested().ok()?)
                }
                ValueKind::Nested => return None,
            };
            match (step.member, &mut self.args) {
                (SlotMember::Event(Member::Id2), _) => {
                    self.event.forget_id();
                    self.event.take(Member::Id2, value);
                }
                (SlotMember::Event(member), _) => self.event.take(member, value),
                (SlotMember::Argument(number), Some(args)) => args[number].1 = value,
                (SlotMember::Argument(_), None) => {}
            }
        }
        self.tail.behind(bytes, scanner.at)
    }
}

/// Bytes that have to stand somewhere. They are a dozen or two: comparing them here is faster than a call.
#[derive(Debug)]
struct SameBytes {
    /// Eight at a time, and which bits of them count.
    words: Vec<(u64, u64)>,
    len: usize,
}

impl SameBytes {
    fn new(bytes: &[u8]) -> Self {
        let word = |eight: &[u8]| {
            let number = eight.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            (number, u64::MAX >> (64 - 8 * eight.len()))
        };
        Self { words: bytes.chunks(8).map(word).collect(), len: bytes.len() }
    }

    /// The place behind them, if they stand at `at`. Not found where fewer than eight bytes follow the last ones.
    #[inline(always)]
    fn behind(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut there = bytes.get(at..)?;
        for (word, counts) in &self.words {
            let (eight, rest) = there.split_first_chunk()?;
            if (u64::from_le_bytes(*eight) ^ word) & counts != 0 {
                return None;
            }
            there = rest;
        }
        Some(at + self.len)
    }
}

/// Patterns of a stretch of the document.
#[derive(Debug)]
pub(super) struct Patterns<'a> {
    known: Vec<KnownValue<'a>>,
    /// The number of the one that fitted last.
    last: usize,
    /// Which one is replaced next.
    oldest: usize,
    /// What may still be spent on patterns: each event that fits one earns some of what they cost.
    credit: u32,
}

#[derive(Debug)]
struct KnownValue<'a> {
    pattern: Pattern<'a>,
    /// The number of the one that fitted the next event the last time.
    next: usize,
}

/// How many patterns there are at most.
const MOST_PATTERNS: usize = 16;

/// What it costs to make a pattern, in events that it makes faster.
const COST: u32 = 8;

/// So much may be spent before anything is earned; no more is kept, so that what fits no longer is given up soon.
const CREDIT: u32 = 256;

impl<'a> Patterns<'a> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { known: Vec::new(), last: 0, oldest: 0, credit: CREDIT }
    }

    /// The event at `at` and the place behind it, if it is like one before.
    #[inline]
    pub(super) fn read(&mut self, bytes: &'a [u8], at: usize) -> Option<(&Pattern<'a>, usize)> {
        let expected = self.known.get(self.last)?.next;
        let mut found = self.known.get_mut(expected)?.pattern.read(bytes, at).map(|end| (expected, end));
        if found.is_none() && self.credit > 0 {
            let others = self.known.iter_mut().enumerate().filter(|(number, _)| *number != expected);
            found = { others }.find_map(|(number, known)| Some((number, known.pattern.read(bytes, at)?)));
            self.credit -= u32::from(found.is_none());
        }
        let (number, end) = found?;
        self.credit = CREDIT.min(self.credit + 1);
        if number != expected {
            self.known[self.last].next = number;
        }
        self.last = number;
        Some((&self.known[number].pattern, end))
    }

    /// Keeps an event that the scanner had to read, with its braces.
    pub(super) fn learn(&mut self, event: &TraceEvent<'a>) {
        let Some(credit) = self.credit.checked_sub(COST) else { return };
        self.credit = credit;
        let Some((mut shape, args)) = EventShape::of(event.raw) else { return };
        let like = self.known.iter().position(|known| known.pattern.shape.is_like(&shape));
        if let Some(like) = like {
            shape.differ_from(&self.known[like].pattern.shape);
        }
        let number = like.unwrap_or(if self.known.len() < MOST_PATTERNS {
            self.known.len()
        } else {
            self.oldest = (self.oldest + 1) % MOST_PATTERNS;
            self.oldest
        });
        let known = KnownValue { pattern: Pattern::new(shape, args, *event), next: number };
        match self.known.get_mut(number) {
            Some(place) => *place = KnownValue { next: place.next, ..known },
            None => self.known.push(known),
        }
        if let Some(last) = self.known.get_mut(self.last) {
            last.next = number;
        }
        self.last = number;
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::said;
    use super::*;

    /// Holds every event that is read by a pattern against what the scanner finds. Gives how many were.
    fn read_alike(json: &[u8]) -> usize {
        let (mut patterns, mut at, mut alike) = (Patterns::new(), 0, 0);
        while let Some(brace) = memchr::memchr(b'{', &json[at..]) {
            at += brace;
            let mut event = TraceEvent::default();
            let scanned = event.scan(json, at);
            let Some((pattern, end)) = patterns.read(json, at) else {
                if scanned.is_ok() {
                    patterns.learn(&event);
                }
                at = scanned.unwrap_or(at + 1);
                continue;
            };
            let shown = String::from_utf8_lossy(json);
            assert_eq!(scanned, Ok(end), "{shown}");
            let args = if pattern.args.is_some() { event.args } else { pattern.event.args };
            let read = TraceEvent { args, raw: event.raw, ..pattern.event };
            assert_eq!(format!("{read:?}"), format!("{event:?}"), "{shown}");
            for (key, _) in pattern.args.iter().flatten() {
                let last = pattern.args.iter().flatten().rfind(|(known, _)| known == key);
                assert_eq!(last.map(|(_, value)| said(*value)), event.argument(key), "{shown}");
            }
            (alike, at) = (alike + 1, end);
        }
        alike
    }

    fn document() -> String {
        let mut json = String::from("[");
        for at in 0..6 {
            json += &format!(
                r#"{{"name":"n{at}","cat":"c","ph":"X","ts":{at}00000000.{at},"dur":{at},"pid":7,"tid":{},"args":{{"n":{at},"n3":"a\"{at}","o":[{at},{{}}]}}}},"#,
                at / 3
            );
            json += &format!(
                "\n{{\"ph\": \"b\", \"id\": \"0x{at}\", \"ts\": {at}.5e1, \"s\": null, \"args\": [{at}], \"tid\": \"t\"}},"
            );
            json += &format!(r#"{{"ph":"e","id2":{{"local":"0x{at}"}},"ts":"{at}","name":"\u0041{at}"}},"#);
        }
        json + "]        "
    }

    #[test]
    fn most_events_are_like_others() {
        // The first of each form; where a constant turned out to be none, another one.
        assert_eq!(read_alike(document().as_bytes()), 18 - 4);
    }

    #[test]
    fn whatever_a_pattern_reads_the_scanner_reads_too() {
        let mut state = 1u64;
        let mut dice = move |sides: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % sides
        };
        let alphabet = br#"{}[]",:\ 019-.enu"#;
        let mut alike = 0;
        for _ in 0..3000 {
            let mut json = document().into_bytes();
            for _ in 0..=dice(3) {
                let (at, byte) = (dice(json.len()), alphabet[dice(alphabet.len())]);
                match dice(4) {
                    0 => json[at] = byte,
                    1 => json.insert(at, byte),
                    2 => drop(json.remove(at)),
                    _ => json.truncate(at.max(1)),
                }
            }
            alike += read_alike(&json);
        }
        assert!(alike > 10_000, "{alike}");
    }

    #[test]
    fn what_costs_more_than_it_brings_is_given_up() {
        let keys: String = (0..3000).map(|at| format!(r#"{{"ph":"X","k{at}":1}},"#)).collect();
        let mut patterns = Patterns::new();
        let mut at = 0;
        while let Some(brace) = memchr::memchr(b'{', &keys.as_bytes()[at..]) {
            assert!(patterns.read(keys.as_bytes(), at + brace).is_none());
            let mut event = TraceEvent::default();
            at = event.scan(keys.as_bytes(), at + brace).unwrap();
            patterns.learn(&event);
        }
        assert!(patterns.known.len() <= MOST_PATTERNS && patterns.credit < COST);
    }
}
