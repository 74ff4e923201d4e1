//! The events of a stream, one after the other: only as much of the document is in memory as one event takes.

use super::event::Event;
use super::json::Stop;
use crate::error::{Error, Result, Skipped};
use std::io::Read;

/// How much is read at once, so that it stays in the processor's cache; an event that is longer gets more.
const BUFFER: usize = 1 << 18;

/// Where in the document the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// Between events; `object` if the list is a member of an object.
    Events {
        object: bool,
    },
    /// Before a member of the outermost object.
    Members,
    End,
}

/// Reads events.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    place: Place,
    at_end: bool,
    skipped: Skipped,
}

impl<R: Read> Reader<R> {
    /// From the document's first byte.
    pub fn new(input: R) -> Self {
        let buffer = vec![0; BUFFER];
        let skipped = Skipped::new("trace event");
        Self { input, buffer, at: 0, filled: 0, base: 0, place: Place::Start, at_end: false, skipped }
    }

    /// The next event; `None` at the end of the list, or where the file was cut.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>> {
        let Some((start, end)) = self.find_event()? else { return Ok(None) };
        // Found a moment ago: it is there.
        let offset = self.base + start as u64;
        Ok(Event::scan(&self.buffer[..end], start).ok().map(|(event, _)| Event { offset, ..event }))
    }

    /// Calls `each` with every event.
    pub fn for_each(mut self, mut each: impl FnMut(&Event<'_>) -> Result<()>) -> Result<Skipped> {
        loop {
            // As many as the buffer holds, without moving anything.
            while let Place::Events { .. } = self.place
                && self.skip_blanks_and_commas() == Some(b'{')
                && let Ok((event, end)) = Event::scan(&self.buffer[..self.filled], self.at)
            {
                let offset = self.base + self.at as u64;
                self.at = end;
                each(&Event { offset, ..event })?;
            }
            match self.next_event()? {
                Some(event) => each(&event)?,
                None => return Ok(self.skipped),
            }
        }
    }

    /// Events that could not be read.
    pub fn into_skipped(self) -> Skipped {
        self.skipped
    }

    /// Where the next event starts and ends in the buffer; the reader stands behind it then.
    fn find_event(&mut self) -> Result<Option<(usize, usize)>> {
        loop {
            match self.place {
                Place::Start => self.start()?,
                Place::Members => self.member()?,
                Place::End => return Ok(None),
                Place::Events { object } => match self.skip_blanks_and_commas() {
                    None if self.more()? => {}
                    None => self.place = Place::End,
                    Some(b'{') => {
                        if let Some(found) = self.event()? {
                            return Ok(Some(found));
                        }
                    }
                    Some(b']') => {
                        self.at += 1;
                        self.place = if object { Place::Members } else { Place::End };
                    }
                    Some(_) => self.resync("an event is expected here")?,
                },
            }
        }
    }

    fn event(&mut self) -> Result<Option<(usize, usize)>> {
        let end = Event::scan(&self.buffer[..self.filled], self.at).map(|(_, end)| end);
        match end {
            Ok(end) => {
                let start = std::mem::replace(&mut self.at, end);
                Ok(Some((start, end)))
            }
            Err(Stop::Short) if self.more()? => Ok(None),
            Err(Stop::Short) => {
                self.skip("the file ends inside it");
                self.place = Place::End;
                Ok(None)
            }
            Err(Stop::Wrong(_, message)) => self.resync(message).map(|()| None),
        }
    }

    fn start(&mut self) -> Result<()> {
        while self.filled < 3 && self.more()? {}
        if self.rest().starts_with(b"\xEF\xBB\xBF") {
            self.at += 3;
        }
        self.place = match self.next_byte()? {
            Some(b'[') => Place::Events { object: false },
            Some(b'{') => Place::Members,
            Some(_) => return Err(self.error("neither an array of events nor an object with traceEvents")),
            None => Place::End,
        };
        self.at += usize::from(self.place != Place::End);
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
                    self.place = Place::Events { object: true };
                } else if self.next_byte()?.is_some() {
                    self.skip_value()?;
                }
            }
            Some(b'}') | None => self.place = Place::End,
            Some(_) => return Err(self.error("the object that holds traceEvents is no JSON here")),
        }
        Ok(())
    }

    /// Walks over a value of any size without keeping it. True if it is the string `traceEvents`.
    fn skip_value(&mut self) -> Result<bool> {
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        let mut spelled = 0;
        const KEY: &[u8] = b"\"traceEvents\"";
        loop {
            let Some(&byte) = self.buffer[..self.filled].get(self.at) else {
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

    /// Counts an event as unreadable, and goes on at the next line that starts with an object.
    fn resync(&mut self, message: &'static str) -> Result<()> {
        self.skip(message);
        self.at += 1;
        loop {
            let Some(found) = memchr::memchr2(b'\n', b'{', self.rest()) else {
                self.at = self.filled;
                if self.more()? {
                    continue;
                }
                self.place = Place::End;
                return Ok(());
            };
            self.at += found + 1;
            if self.buffer[self.at - 1] == b'\n' && matches!(self.next_byte()?, Some(b'{' | b']') | None) {
                return Ok(());
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
        &self.buffer[self.at..self.filled]
    }

    #[inline]
    fn skip_blanks_and_commas(&mut self) -> Option<u8> {
        while let Some(&byte) = self.buffer[..self.filled].get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// The next byte that is no blank.
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

    /// Reads more behind what is there; what lies before `at` is forgotten. False at the end of the file.
    fn more(&mut self) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.copy_within(self.at..self.filled, 0);
        self.base += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let read = loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.filled += read;
        self.at_end = read == 0;
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time: every state is entered at every place.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            to[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn names(json: &[u8]) -> (Vec<String>, u64) {
        let mut found = Vec::new();
        let keep = |event: &Event<'_>| {
            found.push(String::from_utf8_lossy(&event.name.text()).into_owned());
            Ok(())
        };
        let skipped = Reader::new(json).for_each(keep).unwrap().count();
        let mut dripped = Vec::new();
        let mut reader = Reader::new(Drip(json));
        while let Some(event) = reader.next_event().unwrap() {
            dripped.push(String::from_utf8_lossy(&event.name.text()).into_owned());
        }
        assert_eq!((&dripped, reader.into_skipped().count()), (&found, skipped));
        (found, skipped)
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
        assert!(Reader::new(&b"nonsense"[..]).next_event().is_err());
    }

    #[test]
    fn an_event_longer_than_the_buffer() {
        let long = "x".repeat(3 * BUFFER);
        let json = format!(r#"[{{"name":"a","args":{{"v":"{long}"}}}},{{"name":"b"}}]"#);
        let mut found = 0;
        Reader::new(json.as_bytes())
            .for_each(|_| {
                found += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(found, 2);
    }
}
