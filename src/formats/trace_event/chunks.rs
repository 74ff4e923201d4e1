//! The document in chunks that start and end between events, so that they can be parsed apart from each other.
//!
//! The start of an event is a guess: only a reader of everything before it can distinguish an event from an object
//! within one, or from text that looks like one. The reader holds each guess against where the chunk before ended, and
//! reads on its own what was guessed wrongly. A bad guess costs time, never an event.

use super::event::TraceEvent;
use super::events::{ChunkEvents, Seen};
use crate::error::Result;
use std::io::Read;
use std::sync::{Arc, Mutex};

/// The amount that is parsed at once. `stats` of 200 MB on two threads took longer with smaller chunks, and no less
/// time with larger ones, of which several are in memory for each thread.
const CHUNK: usize = 1 << 19;

/// The number of bytes that are looked at to find an event at the end of a chunk. Events are mostly some 100 bytes
/// long; where they are so long that none is found, the chunk ends anywhere.
const LOOK: usize = 1 << 17;

/// A stretch of the document.
#[derive(Debug)]
pub(super) struct TraceChunk(Room);

/// A chunk, and the events that were found in it on the guess that one begins where it does.
#[derive(Debug)]
pub(super) struct ParsedChunk {
    room: Room,
    pub(super) events: ChunkEvents,
}

impl TraceChunk {
    /// Finds its events. `compat`: what [`super::spans::join_spans`] is reported.
    pub(super) fn parse(mut self, compat: bool) -> ParsedChunk {
        let seen = std::mem::take(&mut self.0.seen);
        let events = ChunkEvents::of(&self.0.bytes, seen, compat);
        ParsedChunk { room: self.0, events }
    }

    /// For tests: from these bytes.
    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut room = Rooms::default().take();
        room.bytes.extend_from_slice(bytes);
        Self(room)
    }
}

impl ParsedChunk {
    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.room.bytes
    }
}

impl Drop for ParsedChunk {
    fn drop(&mut self) {
        self.room.seen = std::mem::take(&mut self.events.seen);
    }
}

/// Cuts a document.
#[derive(Debug)]
pub(super) struct TraceChunks<R> {
    input: R,
    size: usize,
    /// The bytes after the last cut.
    rest: Vec<u8>,
    at_end: bool,
    rooms: Rooms,
}

impl<R: Read> TraceChunks<R> {
    /// From the document's first byte.
    pub(super) fn new(input: R) -> Self {
        Self::of_size(input, CHUNK)
    }

    pub(super) fn of_size(input: R, size: usize) -> Self {
        Self { input, size, rest: Vec::new(), at_end: false, rooms: Rooms::default() }
    }

    /// Reads until there are as many bytes as a chunk has.
    fn fill(&mut self, chunk: &mut Vec<u8>) -> Result<()> {
        let room = (self.size - chunk.len()) as u64;
        let read = self.input.by_ref().take(room).read_to_end(chunk);
        self.at_end = !read.as_ref().is_ok_and(|&read| read as u64 == room);
        read?;
        Ok(())
    }
}

impl<R: Read> Iterator for TraceChunks<R> {
    type Item = Result<TraceChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut room = self.rooms.take();
        let chunk = &mut room.bytes;
        chunk.reserve(self.size);
        chunk.append(&mut self.rest);
        if let Err(error) = self.fill(chunk) {
            return Some(Err(error));
        }
        if !self.at_end
            && let Some(cut) = last_event(chunk)
        {
            self.rest.extend_from_slice(&chunk[cut..]);
            chunk.truncate(cut);
        }
        (!chunk.is_empty()).then_some(Ok(TraceChunk(room)))
    }
}

/// The apparent start of the last whole event. Anything that is not an event has no phase, and rarely follows a comma.
fn last_event(bytes: &[u8]) -> Option<usize> {
    let (mut end, mut look, mut event) = (bytes.len(), LOOK, TraceEvent::default());
    while let Some(at) = memchr::memrchr(b'{', &bytes[..end]) {
        look = look.checked_sub(bytes.len() - at)?;
        end = at;
        if bytes[..at].trim_ascii_end().last() == Some(&b',') && event.scan(bytes, at).is_ok() && event.phase != 0 {
            return Some(at);
        }
    }
    None
}

/// Rooms of chunks that are done with: memory that was just used is in a cache and need not be allocated.
#[derive(Debug, Default, Clone)]
struct Rooms(Arc<Mutex<Vec<SpareRoom>>>);

/// For bytes, and for events.
type SpareRoom = (Vec<u8>, Vec<Seen>);

/// Goes back to the others when it is done with.
#[derive(Debug)]
struct Room {
    bytes: Vec<u8>,
    seen: Vec<Seen>,
    home: Rooms,
}

impl Rooms {
    /// An empty one.
    fn take(&self) -> Room {
        let spare = self.0.lock().ok().and_then(|mut rooms| rooms.pop());
        let (bytes, seen) = spare.unwrap_or_default();
        Room { bytes, seen, home: self.clone() }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let (mut bytes, mut seen) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.seen));
        bytes.clear();
        seen.clear();
        if let Ok(mut rooms) = self.home.0.lock() {
            rooms.push((bytes, seen));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_begin_with_events_where_any_are_to_be_seen() {
        let event =
            |name: &str| format!(r#"{{"ph":"X","args":{{"a":[{{"b":1}},{{"c":2}}],"t":"}},{{"}},"name":"{name}"}}"#);
        for separator in [",", ",\n", " ,\r\n\t"] {
            let all: Vec<String> = (0..50).map(|number| event(&number.to_string())).collect();
            let json = format!("[{}]", all.join(separator));
            let chunks: Vec<Vec<u8>> =
                TraceChunks::of_size(json.as_bytes(), 256).map(|chunk| chunk.unwrap().0.bytes.clone()).collect();
            assert!(chunks.len() > 10);
            assert!(chunks[1..].iter().all(|chunk| chunk.starts_with(br#"{"ph":"X""#)));
            assert_eq!(chunks.concat(), json.as_bytes());
        }
    }

    #[test]
    fn a_chunk_ends_anywhere_if_no_event_is_visible() {
        let json = "[".repeat(1000);
        let chunks: Vec<Vec<u8>> =
            TraceChunks::of_size(json.as_bytes(), 256).map(|chunk| chunk.unwrap().0.bytes.clone()).collect();
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 256, 232]);
    }
}
