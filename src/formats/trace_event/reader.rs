//! The events of a document, in its order: chunks that were parsed apart are joined where the guess about their start
//! was right; everything else is read here. Only as much of the document is in memory as a few chunks take, or as one
//! event does.

use super::chunks::ParsedChunk;
use super::event::TraceEvent;
use super::events::ChunkEvents;
use super::json::ScanStop;
use crate::error::{Error, Result, Skipped};

/// The place of the next byte in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentPart {
    Start,
    /// Between events; `object` if the list is a member of an object.
    Events {
        object: bool,
    },
    /// Before a member of the outermost object.
    Members,
    End,
}

/// Joins chunks.
#[derive(Debug)]
pub(super) struct EventReader<I> {
    chunks: I,
    compat: bool,
    /// The rest of the chunks that were taken.
    buffer: Vec<u8>,
    at: usize,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    place: DocumentPart,
    /// True if the list of events was found.
    found: bool,
    /// The number of bytes that were looked at in vain behind damage.
    wasted: u64,
    skipped: Skipped,
}

/// An event that is longer than this has no end: all of it is in memory until its end is found.
const LONGEST: usize = 1 << 26;

/// The number of bytes behind damage that are looked at in vain, beside a multiple of the document so far, before only
/// lines are looked at.
const WASTE: u64 = 1 << 20;

impl<I: Iterator<Item = Result<ParsedChunk>>> EventReader<I> {
    /// From the document's first chunk. `compat`: as the chunks were parsed.
    pub(super) fn new(chunks: I, compat: bool) -> Self {
        let skipped = Skipped::new("trace event");
        Self {
            chunks,
            compat,
            buffer: Vec::new(),
            at: 0,
            base: 0,
            place: DocumentPart::Start,
            found: false,
            wasted: 0,
            skipped,
        }
    }

    /// Calls `each` with all events, many at a time, the bytes in which they stand, and the offset of these. Gives
    /// what could not be read.
    pub(super) fn for_each(mut self, mut each: impl FnMut(&ChunkEvents, &[u8], u64) -> Result<()>) -> Result<Skipped> {
        loop {
            match self.place {
                DocumentPart::Start => self.start()?,
                DocumentPart::Members => self.member()?,
                DocumentPart::End => return Ok(self.skipped),
                DocumentPart::Events { object } => {
                    self.events(&mut each)?;
                    match self.rest().first() {
                        None => {}
                        Some(b'{') => self.no_event()?,
                        Some(b']') => {
                            self.at += 1;
                            if self.goes_on()? {
                                self.skip("the list of events ends before it, and goes on");
                            } else {
                                self.place = if object { DocumentPart::Members } else { DocumentPart::End };
                            }
                        }
                        Some(_) => self.resync("an event is expected here")?,
                    }
                }
            }
        }
    }

    /// Takes the events before whatever is none.
    fn events(&mut self, each: &mut impl FnMut(&ChunkEvents, &[u8], u64) -> Result<()>) -> Result<()> {
        if self.rest().is_empty() {
            // Here is the end of an event, and here the next chunk begins: the guess was right.
            let Some(chunk) = self.chunks.next().transpose()? else {
                self.place = DocumentPart::End;
                return Ok(());
            };
            self.forget(self.at);
            each(&chunk.events, chunk.bytes(), self.base)?;
            self.base += chunk.events.len as u64;
            self.buffer.extend_from_slice(&chunk.bytes()[chunk.events.len..]);
        } else {
            let events = ChunkEvents::of(&self.buffer[self.at..], Vec::new(), self.compat);
            each(&events, &self.buffer[self.at..], self.base + self.at as u64)?;
            self.at += events.len;
        }
        Ok(())
    }

    /// True if more events follow the list's end; a comma is taken.
    fn goes_on(&mut self) -> Result<bool> {
        if self.next_byte()? == Some(b',') {
            self.at += 1;
        }
        Ok(self.next_byte()? == Some(b'{'))
    }

    /// At an object that was not a complete event so far.
    fn no_event(&mut self) -> Result<()> {
        let rest = self.rest().len();
        match TraceEvent::default().scan(&self.buffer, self.at) {
            Ok(_) => {}
            Err(ScanStop::Short) if rest > LONGEST => {
                self.resync("it is longer than any event: a bracket is missing")?
            }
            // Twice as much each time, so that a long event is not looked at for each chunk of it.
            Err(ScanStop::Short) if self.more_than(2 * rest)? => {}
            // If it lacks a bracket, others follow.
            Err(ScanStop::Short) => self.resync("the file ends inside it")?,
            Err(ScanStop::Wrong(_, message)) => self.resync(message)?,
        }
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        while self.buffer.len() < 3 && self.more()? {}
        if self.rest().starts_with(b"\xEF\xBB\xBF") {
            self.at += 3;
        }
        self.place = match self.next_byte()? {
            Some(b'[') => DocumentPart::Events { object: false },
            Some(b'{') => DocumentPart::Members,
            Some(_) => return Err(self.error("neither an array of events nor an object with traceEvents")),
            None => DocumentPart::End,
        };
        self.found = matches!(self.place, DocumentPart::Events { .. });
        self.at += usize::from(self.place != DocumentPart::End);
        Ok(())
    }

    /// Walks over one member of the outermost object, or into `traceEvents`.
    fn member(&mut self) -> Result<()> {
        match self.next_byte()? {
            Some(b',') => self.at += 1,
            Some(b'"') => {
                let key = self.skip_value()?;
                if self.next_byte()? == Some(b':') {
                    self.at += 1;
                }
                if key && self.next_byte()? == Some(b'[') {
                    self.at += 1;
                    self.place = DocumentPart::Events { object: true };
                    self.found = true;
                } else if self.next_byte()?.is_some() {
                    self.skip_value()?;
                }
            }
            Some(b'}') | None if self.found => self.place = DocumentPart::End,
            Some(b'}') => return Err(self.error("the object ends and has no traceEvents: it is not a trace")),
            None => return Err(self.error("the file ends before traceEvents: it is cut off, or no trace")),
            Some(_) => return Err(self.error("the object that contains traceEvents is not JSON here")),
        }
        Ok(())
    }

    /// Walks over a value of any size without keeping it. True if it is the string `traceEvents`.
    fn skip_value(&mut self) -> Result<bool> {
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        let mut spelled = 0;
        const KEY: &[u8] = b"\"traceEvents\"";
        loop {
            let Some(&byte) = self.buffer.get(self.at) else {
                if self.more()? {
                    continue;
                }
                return Ok(false);
            };
            if !in_string && depth == 0 && spelled > 0 && matches!(byte, b',' | b'}' | b']') {
                return Ok(false);
            }
            let matches = KEY.get(spelled) == Some(&byte);
            spelled = if matches || spelled >= KEY.len() { spelled + 1 } else { KEY.len() + 1 };
            self.at += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 && !in_string && !escaped {
                return Ok(spelled == KEY.len());
            }
        }
    }

    /// Counts what is not an event as unreadable, and goes on at the next line that starts with an object, or the next
    /// event behind a comma.
    fn resync(&mut self, message: &'static str) -> Result<()> {
        self.skip(message);
        self.at += 1;
        let mut behind_comma = false;
        loop {
            let Some(found) = memchr::memchr2(b'\n', b'{', self.rest()) else {
                behind_comma = ends_with_comma(self.rest(), behind_comma);
                self.at = self.buffer.len();
                if self.more()? {
                    continue;
                }
                self.place = DocumentPart::End;
                return Ok(());
            };
            behind_comma = ends_with_comma(&self.rest()[..found], behind_comma);
            self.at += found;
            if self.rest()[0] == b'\n' {
                if matches!(self.next_byte()?, Some(b'{' | b']') | None) {
                    return Ok(());
                }
            } else if behind_comma && self.is_event()? {
                return Ok(());
            } else {
                behind_comma = false;
                self.at += 1;
            }
        }
    }

    /// True if a whole event begins here: an object that has a phase.
    fn is_event(&mut self) -> Result<bool> {
        loop {
            if self.wasted > WASTE + 4 * (self.base + self.at as u64) {
                return Ok(false);
            }
            let mut event = TraceEvent::default();
            let (stop, rest) = (event.scan(&self.buffer, self.at).map(|_| event.phase != 0), self.rest().len());
            self.wasted += match stop {
                Ok(is_event) => return Ok(is_event),
                Err(ScanStop::Wrong(at, _)) => at.saturating_sub(self.at) as u64,
                Err(ScanStop::Short) => rest as u64,
            };
            if !matches!(stop, Err(ScanStop::Short)) || !self.more_than(2 * rest)? {
                return Ok(false);
            }
        }
    }

    fn skip(&mut self, message: &str) {
        let error = self.error(message);
        self.skipped.add(error);
    }

    fn error(&self, message: &str) -> Error {
        Error::new(message).at(self.base + self.at as u64)
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// The next byte that is not a blank.
    fn next_byte(&mut self) -> Result<Option<u8>> {
        loop {
            let blanks = self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += blanks;
            if let Some(&byte) = self.rest().first() {
                return Ok(Some(byte));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// Takes the next chunk's bytes behind what is there; what lies before `at` is dropped. False at the end of the
    /// file.
    fn more(&mut self) -> Result<bool> {
        let Some(chunk) = self.chunks.next().transpose()? else { return Ok(false) };
        self.forget(self.at);
        self.buffer.extend_from_slice(chunk.bytes());
        Ok(true)
    }

    /// Takes chunks until there are this many bytes. False if none is left.
    fn more_than(&mut self, len: usize) -> Result<bool> {
        let more = self.more()?;
        while more && self.rest().len() < len && self.more()? {}
        Ok(more)
    }

    fn forget(&mut self, len: usize) {
        self.buffer.drain(..len);
        self.base += len as u64;
        self.at = 0;
    }
}

/// True if the last byte that is not a blank is a comma; `before` if absent.
fn ends_with_comma(bytes: &[u8], before: bool) -> bool {
    bytes.trim_ascii_end().last().map_or(before, |last| *last == b',')
}

#[cfg(test)]
mod tests {
    use super::super::chunks::TraceChunk;
    use super::*;

    /// Cut anywhere, as if each guess were wrong.
    fn parsed(json: &[u8], size: usize) -> impl Iterator<Item = Result<ParsedChunk>> {
        json.chunks(size).map(|bytes| Ok(TraceChunk::of(bytes).parse(false)))
    }

    fn cut(json: &[u8], size: usize) -> (Vec<String>, u64) {
        let mut found = Vec::new();
        let skipped = EventReader::new(parsed(json, size), false).for_each(|events, bytes, _| {
            for seen in &events.seen {
                let event = TraceEvent::find(bytes, seen.at as u64).unwrap();
                found.push(String::from_utf8_lossy(&event.name.text()).into_owned());
            }
            Ok(())
        });
        (found, skipped.unwrap().count())
    }

    fn names(json: &[u8]) -> (Vec<String>, u64) {
        let whole = cut(json, json.len().max(1));
        for size in 1..json.len() {
            assert_eq!(cut(json, size), whole, "in chunks of {size} bytes");
        }
        whole
    }

    #[test]
    fn both_forms_and_their_habits() {
        let all = |json: &str| names(json.as_bytes());
        let ab = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(all(r#"[{"name":"a"},{"name":"b"}]"#), (ab.clone(), 0));
        assert_eq!(all("\u{feff} [\n{\"name\":\"a\"},\n{\"name\":\"b\"},\n"), (ab.clone(), 0));
        assert_eq!(all(r#"[{"name":"a"},{"name":"b"},{"na"#), (ab.clone(), 1));
        let object = r#"{"x":[1,"]}\""],"k":-1.5,"traceEvents":[{"name":"a"},,{"name":"b"}],"m":{"traceEvents":[{"name":"c"}]}}"#;
        assert_eq!(all(object), (ab.clone(), 0));
        assert_eq!(all(r#"{"y":"traceEvents","traceEvents":[{"name":"a"},{"name":"b"}"#), (ab.clone(), 0));
        assert_eq!(all("[{\"name\":\"a\"},\n{\"name\" \"x\"},\n{\"name\":\"b\"}]"), (ab, 1));
        assert_eq!(all(""), (vec![], 0));
        assert_eq!(all("[]"), (vec![], 0));
        assert!(EventReader::new(parsed(b"nonsense", 8), false).for_each(|_, _, _| Ok(())).is_err());
    }

    #[test]
    fn behind_damage_within_a_line_the_rest_is_found() {
        let event = |name: &str| format!(r#"{{"name":"{name}","ph":"X","ts":1,"args":{{"a":[1,{{"b":2}}]}}}}"#);
        let damaged = [
            r#"{"name" "x"}"#,
            r#"{"name":"x","ph":"X","args":{"l":[1,{"c":1},2}"#,
            r#"{"name":"x,"ph":"X"}"#,
            r#"{"name":"x","args":{"c":{}"#,
            "\u{1}\u{2}garbage",
            r#"{"name":"x","ph":["X","args":{"a":[1]}}"#,
            "}",
            "]",
        ];
        let names_of = |json: &str| names(json.as_bytes());
        for damage in damaged {
            for separator in [",", " , "] {
                let json = format!("[{}]", [event("a"), damage.to_owned(), event("b"), event("c")].join(separator));
                assert_eq!(names_of(&json), (["a", "b", "c"].map(str::to_owned).to_vec(), 1), "{json}");
                let object = format!(r#"{{"traceEvents":{json},"z":1}}"#);
                assert_eq!(names_of(&object), (["a", "b", "c"].map(str::to_owned).to_vec(), 1), "{object}");
            }
        }
    }

    #[test]
    fn a_document_of_beginnings_is_one_damage() {
        let json = format!("[x{}", r#",{"a":[{"#.repeat(40_000));
        assert_eq!(cut(json.as_bytes(), 1 << 16), (vec![], 1));
    }

    #[test]
    fn an_object_without_events_is_an_error() {
        for (json, said) in [(r#"{"a":1}"#, "no traceEvents"), (r#"{"a":[1,2"#, "ends before traceEvents")] {
            let read = EventReader::new(parsed(json.as_bytes(), 4), false).for_each(|_, _, _| Ok(()));
            assert!(read.unwrap_err().to_string().contains(said), "{json}");
        }
    }

    #[test]
    fn an_event_longer_than_many_chunks() {
        let long = "x".repeat(30_000);
        let json = format!(r#"[{{"name":"a","args":{{"v":"{long}"}}}},{{"name":"b"}}]"#);
        assert_eq!(cut(json.as_bytes(), 100), (vec!["a".to_owned(), "b".to_owned()], 0));
    }
}
