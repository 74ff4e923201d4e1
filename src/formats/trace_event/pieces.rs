//! The document in pieces that begin and end between events, so that they can be parsed apart from each other.
//!
//! Where an event begins is a guess: only who knows everything before it can tell an event from an object within
//! one, or from text that looks like one. The reader holds each guess against where the piece before ended, and
//! reads on its own what was guessed wrongly. A bad guess costs time, never an event.

use super::event::Event;
use super::events::Events;
use crate::error::Result;
use std::io::Read;

/// How much is parsed at once. `stats` of 200 MB on two threads took longer with smaller pieces, and no less time with
/// larger ones, of which several are in memory for each thread.
const PIECE: usize = 1 << 19;

/// How many bytes are looked at to find an event at the end of a piece. Events are mostly some 100 bytes long; where
/// they are so long that none is found, the piece ends anywhere.
const LOOK: usize = 1 << 17;

/// A stretch of the document.
#[derive(Debug)]
pub(super) struct Piece(pub(super) Vec<u8>);

/// A piece, and the events that were found in it on the guess that one begins where it does.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) bytes: Vec<u8>,
    pub(super) events: Events,
}

impl Piece {
    /// Finds its events. `compat`: what [`super::spans::join_spans`] is told.
    pub(super) fn parse(self, compat: bool) -> Parsed {
        let events = Events::of(&self.0, compat);
        Parsed { bytes: self.0, events }
    }
}

/// Cuts a document.
#[derive(Debug)]
pub(super) struct Pieces<R> {
    input: R,
    size: usize,
    /// What stands behind the last cut.
    rest: Vec<u8>,
    at_end: bool,
}

impl<R: Read> Pieces<R> {
    /// From the document's first byte.
    pub(super) fn new(input: R) -> Self {
        Self::of_size(input, PIECE)
    }

    pub(super) fn of_size(input: R, size: usize) -> Self {
        Self { input, size, rest: Vec::new(), at_end: false }
    }

    /// Reads until there are as many bytes as a piece has.
    fn fill(&mut self, piece: &mut Vec<u8>) -> Result<()> {
        let room = (self.size - piece.len()) as u64;
        let read = self.input.by_ref().take(room).read_to_end(piece);
        self.at_end = !read.as_ref().is_ok_and(|&read| read as u64 == room);
        read?;
        Ok(())
    }
}

impl<R: Read> Iterator for Pieces<R> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut piece = Vec::with_capacity(self.size);
        piece.append(&mut self.rest);
        if let Err(error) = self.fill(&mut piece) {
            return Some(Err(error));
        }
        if !self.at_end
            && let Some(cut) = last_event(&piece)
        {
            self.rest.extend_from_slice(&piece[cut..]);
            piece.truncate(cut);
        }
        (!piece.is_empty()).then_some(Ok(Piece(piece)))
    }
}

/// Where the last whole event seems to begin. What is no event has no phase, and stands rarely behind a comma.
fn last_event(bytes: &[u8]) -> Option<usize> {
    let (mut end, mut look, mut event) = (bytes.len(), LOOK, Event::default());
    while let Some(at) = memchr::memrchr(b'{', &bytes[..end]) {
        look = look.checked_sub(bytes.len() - at)?;
        end = at;
        if bytes[..at].trim_ascii_end().last() == Some(&b',') && event.scan(bytes, at).is_ok() && event.phase != 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_begin_with_events_where_any_are_to_be_seen() {
        let event =
            |name: &str| format!(r#"{{"ph":"X","args":{{"a":[{{"b":1}},{{"c":2}}],"t":"}},{{"}},"name":"{name}"}}"#);
        for separator in [",", ",\n", " ,\r\n\t"] {
            let all: Vec<String> = (0..50).map(|number| event(&number.to_string())).collect();
            let json = format!("[{}]", all.join(separator));
            let pieces: Vec<Vec<u8>> = Pieces::of_size(json.as_bytes(), 256).map(|piece| piece.unwrap().0).collect();
            assert!(pieces.len() > 10);
            assert!(pieces[1..].iter().all(|piece| piece.starts_with(br#"{"ph":"X""#)));
            assert_eq!(pieces.concat(), json.as_bytes());
        }
    }

    #[test]
    fn where_no_event_is_to_be_seen_a_piece_ends_anywhere() {
        let json = "[".repeat(1000);
        let pieces: Vec<Vec<u8>> = Pieces::of_size(json.as_bytes(), 256).map(|piece| piece.unwrap().0).collect();
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 256, 232]);
    }
}
