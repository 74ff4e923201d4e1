//! The events of a stretch of bytes, as numbers: what a worker can find out without knowing what came before.

use super::event::{FRAME, OwnerText, TraceEvent, is_span};
use super::json::Text;
use crate::analysis::timeline::{NO_NAME, NameNo};
use crate::model::texts::TextList;
use rustc_hash::{FxHashMap, FxHasher};
use std::borrow::Cow;
use std::hash::Hasher;

/// Roughly how long an event is: for how many there is room before there has to be more.
const EVENT_LEN: usize = 128;

/// Events in the file's order, up to the first byte that is not as it should be.
#[derive(Debug, Default)]
pub(super) struct ChunkEvents {
    /// The events.
    pub(super) seen: Vec<Seen>,
    /// The names, by number; by first appearance, like the threads.
    pub(super) texts: TextList,
    /// Process and thread.
    pub(super) threads: Vec<(OwnerId, OwnerId)>,
    /// The number of bytes that the events take, with the blanks and commas around them.
    pub(super) len: usize,
}

/// An event. Numbers of names and threads hold within its [`ChunkEvents`] only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// `None` if it has no time, or is not a part of a span.
    pub(super) time: Option<i64>,
    pub(super) duration: i64,
    /// Meaningless for events of a thread's own track.
    pub(super) id: i128,
    /// Its place in the bytes.
    pub(super) at: usize,
    pub(super) name: NameNo,
    pub(super) cat: NameNo,
    pub(super) sub: NameNo,
    pub(super) thread: u32,
    pub(super) phase: u8,
    pub(super) id_is_local: bool,
}

/// A process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OwnerId {
    Number(i64),
    Named(NameNo),
}

impl ChunkEvents {
    /// Finds the events that are at the start of some bytes. `seen`: room for them, empty.
    pub(super) fn of(bytes: &[u8], mut seen: Vec<Seen>, compat: bool) -> Self {
        seen.reserve(bytes.len() / EVENT_LEN);
        let mut finder = EventFinder::new(compat, seen);
        let mut event = TraceEvent::default();
        let mut at = 0;
        loop {
            while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',') = bytes.get(at) {
                at += 1;
            }
            if bytes.get(at) != Some(&b'{') {
                break;
            }
            let Ok(end) = event.scan(bytes, at) else { break };
            finder.event(&event, at);
            at = end;
        }
        Self { len: at, ..finder.events }
    }
}

/// The number of names that are looked for among the recent ones; a power of two.
const RECENT: usize = 1024;

struct EventFinder<'a> {
    compat: bool,
    events: ChunkEvents,
    names: FxHashMap<Cow<'a, [u8]>, NameNo>,
    /// Names without escapes that were met last, by a part of their hash.
    recent: Vec<(&'a [u8], NameNo)>,
    numbers: FxHashMap<(OwnerId, OwnerId), u32>,
    last_thread: Option<((OwnerText<'a>, OwnerText<'a>), u32)>,
    last_cat: Option<(Text<'a>, NameNo)>,
}

impl<'a> EventFinder<'a> {
    fn new(compat: bool, seen: Vec<Seen>) -> Self {
        let events = ChunkEvents { seen, ..ChunkEvents::default() };
        Self {
            compat,
            events,
            names: FxHashMap::default(),
            recent: vec![(b"", NO_NAME); RECENT],
            numbers: FxHashMap::default(),
            last_thread: None,
            last_cat: None,
        }
    }

    #[inline]
    fn event(&mut self, event: &TraceEvent<'a>, at: usize) {
        let mut seen = Seen {
            time: None,
            duration: event.duration.unwrap_or(0).max(0),
            id: 0,
            at,
            name: NO_NAME,
            cat: NO_NAME,
            sub: NO_NAME,
            thread: 0,
            phase: event.phase,
            id_is_local: event.id_is_local,
        };
        if is_span(event.phase) && event.time.is_some() {
            seen.time = event.time;
            if !event.name.raw.is_empty() {
                seen.name = self.name(event.name);
            }
            if let Some(cat) = event.cat {
                seen.cat = self.cat(cat);
            }
            seen.sub = self.sub(event);
            seen.thread = self.thread(event);
            if matches!(event.phase, b'b' | b'e' | b'n' | b'S' | b'F') {
                seen.id = number(event.id);
            }
        } else if event.phase == b'M' {
            seen.thread = self.thread(event);
        }
        self.events.seen.push(seen);
    }

    /// The number of a name. Traces have a few hundred of them, thousands of times each.
    #[inline]
    fn name(&mut self, name: Text<'a>) -> NameNo {
        if name.escaped {
            return self.number(name.text());
        }
        let raw = name.raw;
        let mut hasher = FxHasher::default();
        hasher.write(raw);
        let place = hasher.finish() as usize % RECENT;
        let (known, number) = self.recent[place];
        if number != NO_NAME && known == raw {
            return number;
        }
        let number = self.number(Cow::Borrowed(raw));
        self.recent[place] = (raw, number);
        number
    }

    fn number(&mut self, text: Cow<'a, [u8]>) -> NameNo {
        if let Some(&number) = self.names.get(&text) {
            return number;
        }
        let number = self.events.texts.len() as NameNo;
        self.events.texts.push(&text);
        self.names.insert(text, number);
        number
    }

    /// Mostly the same as that of the event before.
    #[inline]
    fn cat(&mut self, cat: Text<'a>) -> NameNo {
        if let Some((last, number)) = self.last_cat
            && last == cat
        {
            return number;
        }
        let number = self.number(cat.text());
        self.last_cat = Some((cat, number));
        number
    }

    /// The action of the event, by the argument that is called like the event itself. A span states it when it begins;
    /// Perfetto reads it at its end, too.
    #[inline]
    fn sub(&mut self, event: &TraceEvent<'a>) -> NameNo {
        if !self.compat && !matches!(event.phase, b'B' | b'b' | b'X' | b'S') {
            return NO_NAME;
        }
        let may_be_message = !self.compat && event.name.is(FRAME);
        let sub = event.argument(&event.name.text());
        let sub = sub.or_else(|| may_be_message.then(|| event.argument(b"message"))?);
        sub.map_or(NO_NAME, |sub| self.number(sub))
    }

    #[inline]
    fn thread(&mut self, event: &TraceEvent<'a>) -> u32 {
        let owners = (event.pid, event.tid);
        if let Some((last, number)) = &self.last_thread
            && *last == owners
        {
            return *number;
        }
        let who = (self.owner(event.pid), self.owner(event.tid));
        let number = *self.numbers.entry(who).or_insert_with(|| {
            self.events.threads.push(who);
            (self.events.threads.len() - 1) as u32
        });
        self.last_thread = Some((owners, number));
        number
    }

    fn owner(&mut self, who: OwnerText<'a>) -> OwnerId {
        match who {
            OwnerText::Number(number) => OwnerId::Number(number),
            OwnerText::Named(name) => OwnerId::Named(self.number(name.text())),
        }
    }
}

/// An id as a number: decimal, maybe negative, or hexadecimal; anything else by its hash, beyond all numbers.
fn number(id: &[u8]) -> i128 {
    let text = std::str::from_utf8(id).unwrap_or_default();
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse::<i64>().ok().map(i128::from).or_else(|| text.parse::<u64>().ok().map(i128::from)),
    };
    parsed.unwrap_or_else(|| {
        let mut hasher = FxHasher::default();
        hasher.write(id);
        i128::from(hasher.finish()) + (1 << 64)
    })
}
