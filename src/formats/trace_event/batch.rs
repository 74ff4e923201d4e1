//! Copies of events, so that one thread can read events while another thread processes them.

use super::event::{Owner, TraceEvent};
use std::borrow::Cow;

/// Consecutive events of a document.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    events: Vec<StoredEvent>,
    /// Name, category, scope, ID and arguments of each event, one after the other.
    texts: String,
    /// The JSON of each event, one after the other.
    raw: Vec<u8>,
}

/// An event without its texts.
#[derive(Debug)]
struct StoredEvent {
    ends: TextEnds,
    /// Where the event's JSON ends in [`EventBatch::raw`].
    raw_end: usize,
    has_cat: bool,
    has_scope: bool,
    phase: u8,
    time: Option<i64>,
    duration: Option<i64>,
    pid: Option<Owner<'static>>,
    tid: Option<Owner<'static>>,
    id_is_text: bool,
    id_is_local: bool,
    has_stack: bool,
    offset: u64,
}

/// Where an event's texts end in [`EventBatch::texts`]. Each starts where the one before it ends.
#[derive(Debug, Clone, Copy)]
struct TextEnds {
    name: usize,
    cat: usize,
    scope: usize,
    id: usize,
    args: usize,
}

impl EventBatch {
    /// The length of the events' JSON in bytes.
    pub(super) fn size(&self) -> usize {
        self.raw.len()
    }

    /// Adds an event.
    pub(super) fn push(&mut self, event: &TraceEvent<'_>) {
        let ends = TextEnds {
            name: self.push_text(&event.name),
            cat: self.push_text(event.cat.as_deref().unwrap_or_default()),
            scope: self.push_text(event.scope.as_deref().unwrap_or_default()),
            id: self.push_text(event.id),
            args: self.push_text(event.args),
        };
        self.raw.extend_from_slice(event.raw);
        self.events.push(StoredEvent {
            ends,
            raw_end: self.raw.len(),
            has_cat: event.cat.is_some(),
            has_scope: event.scope.is_some(),
            phase: event.phase,
            time: event.time,
            duration: event.duration,
            pid: event.pid.as_ref().map(Owner::to_owned),
            tid: event.tid.as_ref().map(Owner::to_owned),
            id_is_text: event.id_is_text,
            id_is_local: event.id_is_local,
            has_stack: event.has_stack,
            offset: event.offset,
        });
    }

    /// Appends a text and returns where it ends.
    fn push_text(&mut self, text: &str) -> usize {
        self.texts.push_str(text);
        self.texts.len()
    }

    /// The events in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = TraceEvent<'_>> {
        let (mut start, mut raw_start) = (0, 0);
        self.events.iter().map(move |stored| {
            let StoredEvent { ends, raw_end, .. } = *stored;
            let event = TraceEvent {
                name: Cow::Borrowed(&self.texts[start..ends.name]),
                cat: stored.has_cat.then(|| Cow::Borrowed(&self.texts[ends.name..ends.cat])),
                phase: stored.phase,
                time: stored.time,
                duration: stored.duration,
                pid: stored.pid.as_ref().map(Owner::borrow),
                tid: stored.tid.as_ref().map(Owner::borrow),
                scope: stored.has_scope.then(|| Cow::Borrowed(&self.texts[ends.cat..ends.scope])),
                id: &self.texts[ends.scope..ends.id],
                id_is_text: stored.id_is_text,
                id_is_local: stored.id_is_local,
                args: &self.texts[ends.id..ends.args],
                has_stack: stored.has_stack,
                raw: &self.raw[raw_start..raw_end],
                offset: stored.offset,
            };
            (start, raw_start) = (ends.args, raw_end);
            event
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::EventReader;

    #[test]
    fn events_come_out_as_they_went_in() {
        let json = r#"[{"ph":"X","name":"a\u0041","cat":"","ts":1.5,"dur":2,"pid":1,"tid":"main","args":{"x":"\ud83d\ude00"}},
            {"ph":"b","id":"0x1","scope":"s","name":"b","ts":2,"stack":[1]},{"ph":"e","id2":{"local":7},"ts":3,"pid":"p"},
            {"ph":"M","name":"tab	in it","args":[1]},{}]"#;
        let mut read = Vec::new();
        let reader = EventReader::new(json.as_bytes());
        reader
            .for_each(|event| {
                read.push(format!("{event:?}"));
                Ok(())
            })
            .unwrap();
        assert_eq!(read.len(), 5);
        let mut reader = EventReader::new(json.as_bytes());
        let batch = reader.next_batch().unwrap().unwrap();
        assert_eq!(batch.iter().map(|event| format!("{event:?}")).collect::<Vec<_>>(), read);
        assert!(reader.next_batch().unwrap().is_none());
    }
}
