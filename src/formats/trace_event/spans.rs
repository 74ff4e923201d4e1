//! Events → spans: begins find their ends.
//!
//! The rules are those of Perfetto's trace processor: an end closes the innermost open span of its name and category;
//! spans that are still open inside it end with it once time has passed. Its answers that depend on chance are not
//! followed unless asked for: it gives thread 0 of a process the track of the thread whose number is the process's, and
//! drops whole spans that overlap others.

use super::chunks::ParsedChunk;
use super::event::{TraceEvent, is_span};
use super::events::{ChunkEvents, OwnerId, Seen};
use super::reader::EventReader;
use super::stack::{Open, Stack};
use crate::analysis::timeline::{NO_NAME, NameNo, Slice, SliceKind, Timeline, UNFINISHED};
use crate::error::{Result, Skipped};
use crate::model::stacks::Track;
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The number of events of a thread wait for one that was written late. Writers are a few events out of order where an
/// end and a start fall together, not thousands.
const WINDOW: usize = 64;

/// The number of ends on tracks by id that wait for a start that was written later.
const EARLY_ENDS: usize = 1 << 16;

/// Joins the chunks of one document, in its order; memory is taken by the spans only. `compat` counts exactly as
/// Perfetto's trace processor does, for which all events of the threads are kept and sorted. `other` gets the events
/// that are not part of a span: metadata, counters, flows and the like.
pub(super) fn join_spans(
    chunks: impl Iterator<Item = Result<ParsedChunk>>,
    compat: bool,
    mut other: impl FnMut(&TraceEvent<'_>) -> Result<()>,
) -> Result<(Timeline, Skipped)> {
    let mut builder = SpanBuilder { compat, ..SpanBuilder::default() };
    let skipped = EventReader::new(chunks, compat).for_each(|events, bytes, base| {
        builder.know(events);
        for seen in &events.seen {
            if is_span(seen.phase) {
                builder.event(events, seen, base);
                continue;
            }
            // Found a moment ago: it is there.
            let Some(event) = TraceEvent::find(bytes, seen.at as u64) else { continue };
            let event = TraceEvent { offset: base + event.offset, ..event };
            if seen.phase == b'M' {
                builder.metadata(events, seen, &event);
            }
            other(&event)?;
        }
        Ok(())
    })?;
    Ok((builder.finish(), skipped))
}

#[derive(Debug, Default)]
struct SpanBuilder {
    compat: bool,
    timeline: Timeline,
    threads: Vec<ThreadSpans>,
    numbers: FxHashMap<(i64, i64), u32>,
    /// The numbers, in the timeline, of the names in the current events.
    known_names: Vec<NameNo>,
    /// The same of their threads, once they were met.
    known_threads: Vec<Option<u32>>,
    processes: FxHashMap<i64, Box<[u8]>>,
    by_id: FxHashMap<Id, Stack>,
    /// Empty stacks: most of those by id have one span only.
    spare: Vec<Stack>,
    early_ends: FxHashMap<Id, Vec<(NameNo, i64)>>,
}

#[derive(Debug, Default)]
struct ThreadSpans {
    who: (i64, i64),
    name: Option<Box<[u8]>>,
    waiting: VecDeque<WaitingEvent>,
    passed: Option<i64>,
    stack: Stack,
    /// True if it has whole spans: their place among the others is only known at the end.
    has_whole: bool,
}

/// An event of a thread's own track, until it is its turn.
#[derive(Debug, Clone, Copy)]
struct WaitingEvent {
    time: i64,
    duration: i64,
    name: NameNo,
    cat: NameNo,
    sub: NameNo,
    phase: u8,
    origin: u64,
}

/// A track by category and id, within a process or all over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Id {
    cat: NameNo,
    pid: Option<i64>,
    id: i128,
}

impl SpanBuilder {
    /// Adds the names of some events.
    fn know(&mut self, events: &ChunkEvents) {
        self.known_names.clear();
        self.known_names.extend(events.texts.iter().map(|text| self.timeline.names.number(text)));
        self.known_threads.clear();
        self.known_threads.resize(events.threads.len(), None);
    }

    #[inline]
    fn event(&mut self, events: &ChunkEvents, seen: &Seen, base: u64) {
        let Some(time) = seen.time else {
            self.timeline.oddities.timeless += 1;
            return;
        };
        let name_of = |name: NameNo| self.known_names.get(name as usize).copied().unwrap_or(NO_NAME);
        let (name, cat, sub) = (name_of(seen.name), name_of(seen.cat), name_of(seen.sub));
        let origin = base + seen.at as u64;
        let thread = self.thread(events, seen);
        match seen.phase {
            phase @ (b'b' | b'e' | b'n' | b'S' | b'F') => {
                let pid = seen.id_is_local.then(|| self.threads[thread as usize].who.0);
                self.by_id(phase, Id { cat, pid, id: seen.id }, (thread, name, sub, time, origin));
            }
            phase => {
                self.wait(thread, WaitingEvent { time, duration: seen.duration, name, cat, sub, phase, origin });
            }
        }
    }

    fn who(&self, owner: OwnerId) -> i64 {
        match owner {
            OwnerId::Number(number) => number,
            // Far from any number that a system gives.
            OwnerId::Named(name) => i64::MIN + i64::from(self.known_names[name as usize]),
        }
    }

    #[inline]
    fn thread(&mut self, events: &ChunkEvents, seen: &Seen) -> u32 {
        if let Some(number) = self.known_threads[seen.thread as usize] {
            return number;
        }
        let (pid, tid) = events.threads[seen.thread as usize];
        let (pid, mut tid) = (self.who(pid), self.who(tid));
        if self.compat && tid == 0 && pid != 0 {
            tid = pid;
        }
        let number = *self.numbers.entry((pid, tid)).or_insert_with(|| {
            self.threads.push(ThreadSpans { who: (pid, tid), ..ThreadSpans::default() });
            (self.threads.len() - 1) as u32
        });
        self.known_threads[seen.thread as usize] = Some(number);
        number
    }

    fn metadata(&mut self, events: &ChunkEvents, seen: &Seen, event: &TraceEvent<'_>) {
        let Some(name) = event.argument(b"name") else { return };
        if event.name.is(b"thread_name") {
            let thread = self.thread(events, seen);
            self.threads[thread as usize].name = Some((*name).into());
        } else if event.name.is(b"process_name") {
            let (pid, _) = events.threads[seen.thread as usize];
            self.processes.insert(self.who(pid), (*name).into());
        }
    }

    /// Puts an event in its place among the last ones of its thread, and takes the first of them.
    #[inline]
    fn wait(&mut self, number: u32, event: WaitingEvent) {
        let thread = &mut self.threads[number as usize];
        if event.phase == b'X' && !self.compat {
            thread.has_whole = true;
            let WaitingEvent { time: start, duration, name, sub, origin, .. } = event;
            let whole = Slice { start, duration, name, sub, track: number, depth: 0, kind: SliceKind::Span, origin };
            return self.timeline.slices.push(whole);
        }
        thread.waiting.push_back(event);
        if self.compat {
            return;
        }
        let mut at = thread.waiting.len() - 1;
        while at > 0 && thread.waiting[at - 1].time > thread.waiting[at].time {
            thread.waiting.swap(at - 1, at);
            at -= 1;
        }
        if thread.waiting.len() > WINDOW
            && let Some(first) = thread.waiting.pop_front()
        {
            self.take(number, first);
        }
    }

    fn take(&mut self, number: u32, event: WaitingEvent) {
        let WaitingEvent { time, name, cat, sub, origin, .. } = event;
        let thread = &mut self.threads[number as usize];
        if thread.passed.is_some_and(|passed| passed > time) {
            self.timeline.oddities.late += 1;
        }
        thread.passed = thread.passed.max(Some(time));
        let Timeline { slices, oddities, .. } = &mut self.timeline;
        oddities.misplaced_ends += thread.stack.pass(time, slices);
        if event.phase == b'E' {
            match thread.stack.end(time, name, cat, slices) {
                Some(slice) if sub != NO_NAME => slices[slice].sub = sub,
                Some(_) => {}
                None => oddities.unmatched_ends += 1,
            }
            return;
        }
        let depth = thread.stack.depth();
        if self.compat && depth >= COMPAT_DEPTH {
            return;
        }
        let (kind, duration) = match event.phase {
            b'B' => (SliceKind::Span, UNFINISHED),
            b'X' => (SliceKind::Span, event.duration),
            _ => (SliceKind::Instant, 0),
        };
        if event.phase == b'X' && thread.stack.top_ends_before(time.saturating_add(duration)) {
            oddities.overlaps += 1;
            return;
        }
        thread.stack.begin(Open::new(slices.len(), name, cat, time, duration));
        slices.push(Slice { start: time, duration, name, sub, track: number, depth, kind, origin });
    }

    fn by_id(&mut self, phase: u8, id: Id, (thread, name, sub, time, origin): (u32, NameNo, NameNo, i64, u64)) {
        let Timeline { slices, oddities, .. } = &mut self.timeline;
        if matches!(phase, b'e' | b'F') {
            let Some(stack) = self.by_id.get_mut(&id) else { return self.end_too_early(id, name, time) };
            oddities.misplaced_ends += stack.pass(time, slices);
            let ended = stack.end(time, name, id.cat, slices);
            if stack.depth() == 0 {
                self.spare.extend(self.by_id.remove(&id));
            }
            return match ended {
                Some(slice) if sub != NO_NAME => slices[slice].sub = sub,
                Some(_) => {}
                None => self.end_too_early(id, name, time),
            };
        }
        let stack = self.by_id.entry(id).or_insert_with(|| self.spare.pop().unwrap_or_default());
        oddities.misplaced_ends += stack.pass(time, slices);
        let depth = stack.depth();
        let (mut duration, kind) = if phase == b'n' { (0, SliceKind::Instant) } else { (UNFINISHED, SliceKind::Async) };
        if kind == SliceKind::Async
            && let Some(end) = take_early(&mut self.early_ends, id, name, time)
        {
            duration = end - time;
            oddities.unmatched_ends -= 1;
        } else {
            stack.begin(Open::new(slices.len(), name, id.cat, time, duration));
        }
        if stack.depth() == 0 {
            self.spare.extend(self.by_id.remove(&id));
        }
        slices.push(Slice { start: time, duration, name, sub, track: thread, depth, kind, origin });
    }

    fn end_too_early(&mut self, id: Id, name: NameNo, time: i64) {
        self.timeline.oddities.unmatched_ends += 1;
        if self.early_ends.len() < EARLY_ENDS {
            self.early_ends.entry(id).or_default().push((name, time));
        }
    }

    fn finish(mut self) -> Timeline {
        for number in 0..self.threads.len() {
            let mut waiting = std::mem::take(&mut self.threads[number].waiting);
            waiting.make_contiguous().sort_by_key(|event| event.time);
            for event in waiting {
                self.take(number as u32, event);
            }
        }
        let whole: Vec<bool> = self.threads.iter().map(|thread| thread.has_whole).collect();
        self.timeline.tracks = self.threads.iter().map(|thread| self.track(thread)).collect();
        self.timeline.nest(&whole);
        self.timeline
    }

    fn track(&self, thread: &ThreadSpans) -> Track {
        let text = |number: i64| {
            let name = NameNo::try_from(number.wrapping_sub(i64::MIN)).ok();
            name.filter(|_| number < 0).map(|name| self.timeline.names.text(name).to_vec())
        };
        let (pid, tid) = thread.who;
        let named = thread.name.as_deref().or_else(|| self.processes.get(&pid).map(|name| &**name));
        let comm = named.map(<[u8]>::to_vec).or_else(|| text(tid)).or_else(|| text(pid));
        let comm = comm.unwrap_or_else(|| b"thread".to_vec());
        Track { comm, pid: Some(Pid(pid as i32)), tid: Some(Tid(tid as i32)), ..Track::default() }
    }
}

/// Perfetto keeps no more spans in each other.
const COMPAT_DEPTH: u16 = 512;

fn take_early(ends: &mut FxHashMap<Id, Vec<(NameNo, i64)>>, id: Id, name: NameNo, from: i64) -> Option<i64> {
    if ends.is_empty() {
        return None;
    }
    let early = ends.get_mut(&id)?;
    let at = early.iter().position(|&(ended, time)| ended == name && time >= from)?;
    let (_, time) = early.swap_remove(at);
    if early.is_empty() {
        ends.remove(&id);
    }
    Some(time)
}

#[cfg(test)]
mod tests {
    use super::super::chunks::TraceChunk;
    use super::*;

    #[test]
    fn the_cuts_of_chunks_make_no_difference() {
        let json = br#"[{"ph":"M","name":"process_name","pid":"p","args":{"name":"late \u0041"}},
            {"ph":"B","name":"a","cat":"c","pid":"p","tid":"x","ts":1,"args":{"a":"\"b\""}},
            {"ph":"b","name":"frame","id":-1,"pid":1,"tid":2,"ts":2,"args":{"message":"f"}},
            {"ph":"X","name":"y","pid":1,"tid":"x","ts":3,"dur":2,"args":{"calls":[1,{"ph":"X","name":"z","ts":1,"dur":1}]}},
            {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"t"}},
            {"ph":"e","name":"frame","id":-1,"pid":1,"tid":2,"ts":6},
            {"ph":"E","pid":"p","tid":"x","ts":7.5},{"ph":"C","ts":8}]"#;
        let of_size = |size: usize| {
            let mut others = Vec::new();
            let chunks = json.chunks(size).map(|bytes| Ok(TraceChunk::of(bytes).parse(false)));
            let joined = join_spans(chunks, false, |event| {
                others.push((event.phase, event.offset));
                Ok(())
            });
            let (timeline, skipped) = joined.unwrap();
            assert_eq!(skipped.count(), 0);
            let texts: Vec<Vec<u8>> = (0..9).map(|number| timeline.names.text(number).to_vec()).collect();
            (timeline.slices, timeline.tracks, texts, timeline.oddities, others)
        };
        let whole = of_size(json.len());
        assert_eq!((whole.0.len(), whole.1.len(), whole.4.len()), (3, 3, 3));
        for size in 1..json.len() {
            assert_eq!(of_size(size), whole, "in chunks of {size} bytes");
        }
    }
}
