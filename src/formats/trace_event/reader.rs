//! Reads the events of a document in order, as a stream. Only about two reads' worth of the document, or a single
//! event, is in memory at once. After damage, reading continues with the next event that is intact.

use super::event::TraceEvent;
use super::repair::{Unrepairable, repair};
use super::samples::{SampleRecord, StackFrameRecord, TraceSamples};
use crate::error::{Error, Result, Skipped};
use serde::de::DeserializeOwned;
use std::io::Read;

/// The number of bytes per read.
const READ_SIZE: usize = 1 << 19;

/// The number of bytes that are checked for valid UTF-8 at once, before the events in them are parsed.
const CHECKED_AT_ONCE: usize = 1 << 16;

/// The maximum length of an event. A longer one is considered unterminated, because an event must be in memory as a
/// whole.
const MAX_EVENT_LEN: usize = 1 << 26;

/// The maximum length of an event that is repaired if it isn't valid JSON.
const MAX_REPAIRED_LEN: usize = 1 << 20;

/// Limits the time that is spent on a damaged document. Repairs of events, and searches for the next event after
/// damage, may examine this many bytes in vain, plus four times the number of bytes read so far. Beyond that, events
/// aren't repaired any more, and only a line that starts with an object is taken for the next event.
const WASTE: u64 = 1 << 20;

/// In which part of the document's structure the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DocumentPart {
    /// Before the first byte.
    Start,
    /// Between events. `object` is true if the list of events is a value in an object.
    Events {
        object: bool,
    },
    /// Before a key of the outermost object.
    Members,
    End,
}

/// What a document contains besides its events.
#[derive(Debug)]
pub(super) struct DocumentRest {
    /// The parts that could not be read.
    pub(super) skipped: Skipped,
    /// The samples that the outermost object has beside its events (`samples` and `stackFrames`).
    pub(super) samples: TraceSamples,
}

/// Reads the events of a document from a stream.
#[derive(Debug)]
pub(super) struct EventReader<R> {
    input: R,
    /// The number of bytes per read.
    size: usize,
    buffer: Vec<u8>,
    /// The index of the next byte in the buffer.
    position: usize,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    /// True if the end of the input has been read into the buffer.
    at_end: bool,
    part: DocumentPart,
    /// True if the list of events has been found.
    found_events: bool,
    /// The number of bytes that repairs of events and searches for the next event have examined in vain; see [`WASTE`].
    wasted: u64,
    /// What was read so far besides events.
    rest: DocumentRest,
}

/// The result of trying to parse an event.
enum Attempt {
    /// The event was passed on.
    Found,
    /// The buffer ends inside the event: read more and try again.
    Short,
    /// The text isn't an event, and can't be repaired to be one. Holds the reason.
    Damaged(&'static str),
}

impl<R: Read> EventReader<R> {
    /// Reads from the document's first byte.
    pub(super) fn new(input: R) -> Self {
        Self::with_read_size(input, READ_SIZE)
    }

    /// Reads from the document's first byte, `size` bytes at a time.
    fn with_read_size(input: R, size: usize) -> Self {
        Self {
            input,
            size,
            buffer: Vec::new(),
            position: 0,
            base: 0,
            at_end: false,
            part: DocumentPart::Start,
            found_events: false,
            wasted: 0,
            rest: DocumentRest { skipped: Skipped::new("trace event"), samples: TraceSamples::default() },
        }
    }

    /// Calls `each` for every event.
    pub(super) fn for_each(mut self, mut each: impl FnMut(&TraceEvent<'_>) -> Result<()>) -> Result<DocumentRest> {
        while self.part != DocumentPart::End {
            self.step(&mut each)?;
        }
        Ok(self.rest)
    }

    /// Reads the next part of the document: its start, a member of the outermost object, or events up to the first one
    /// that is incomplete or damaged.
    fn step(&mut self, each: &mut impl FnMut(&TraceEvent<'_>) -> Result<()>) -> Result<()> {
        match self.part {
            DocumentPart::Start => self.read_start(),
            DocumentPart::Members => self.read_member(),
            DocumentPart::End => Ok(()),
            DocumentPart::Events { object } => {
                // `read_intact_events` reads the intact events that come next, and returns the byte after them, which
                // is at `position`.
                match self.read_intact_events(each)? {
                    None => self.part = DocumentPart::End,
                    Some(b',') => self.position += 1,
                    Some(b'{') => self.read_event(each)?,
                    // The list ends here, unless this bracket is misplaced and more objects follow.
                    Some(b']') => {
                        self.position += 1;
                        if self.list_continues()? {
                            self.count_damage("the list of events is closed here, but more events follow");
                        } else {
                            self.part = if object { DocumentPart::Members } else { DocumentPart::End };
                        }
                    }
                    Some(_) => self.resync("expected an event here")?,
                }
                Ok(())
            }
        }
    }

    /// Reads consecutive events that are complete and valid, as far as the buffer has them. Most events are read by
    /// this fast function. Returns the next byte that isn't white space; `None` at the end of the file. If an event
    /// begins at that byte, [`Self::read_event`] must read the event.
    fn read_intact_events(&mut self, each: &mut impl FnMut(&TraceEvent<'_>) -> Result<()>) -> Result<Option<u8>> {
        let unread = &self.buffer[self.position..];
        // Stops before the first byte that isn't valid UTF-8.
        let text = valid_prefix(&unread[..unread.len().min(CHECKED_AT_ONCE)]);
        // The part of `text` whose events weren't read yet.
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            if !rest.starts_with('{') {
                break;
            }
            // If this fails, the event is damaged, or `text` ends within it. `read_event` handles either case.
            let Ok((mut event, len)) = TraceEvent::parse(rest) else { break };
            let index = self.position + text.len() - rest.len();
            event.offset = self.base + index as u64;
            each(&event)?;
            rest = &rest[len..];
        }
        self.position += text.len() - rest.len();
        self.next_byte()
    }

    /// Reads the event that starts here, even if it is incomplete or damaged.
    fn read_event(&mut self, each: &mut impl FnMut(&TraceEvent<'_>) -> Result<()>) -> Result<()> {
        loop {
            let unread = self.unread().len();
            match self.try_event(each)? {
                Attempt::Found => return Ok(()),
                Attempt::Short if unread > MAX_EVENT_LEN => {
                    return self.resync("the event is implausibly long; a closing bracket is probably missing");
                }
                // More could be read, so try again. The buffer is doubled each time, so that a long event isn't parsed
                // again after each read.
                Attempt::Short if self.read_up_to_len(2 * unread)? => {}
                // Nothing more could be read. The event probably lacks a closing bracket, and the events after it may
                // be intact.
                Attempt::Short => return self.resync("the file ends within the event"),
                Attempt::Damaged(message) => return self.resync(message),
            }
        }
    }

    /// Tries to parse the event that starts here, repairs it if it isn't valid JSON, and passes it to `each`. Counts
    /// the bytes that a repair has examined in vain (`wasted`): if there are too many ([`WASTE`]), nothing is repaired.
    fn try_event(&mut self, each: &mut impl FnMut(&TraceEvent<'_>) -> Result<()>) -> Result<Attempt> {
        let offset = self.base + self.position as u64;
        let bytes = &self.buffer[self.position..];
        let error = match TraceEvent::parse_bytes(bytes) {
            Ok((event, len)) => {
                each(&TraceEvent { offset, ..event })?;
                self.position += len;
                return Ok(Attempt::Found);
            }
            Err(error) => error,
        };
        if error.is_eof() {
            return Ok(Attempt::Short);
        }
        let damaged = Attempt::Damaged(error_kind(&error));
        if self.has_wasted_enough() {
            return Ok(damaged);
        }
        // Repairing takes much longer than parsing, so longer events aren't repaired.
        let repairable = &bytes[..bytes.len().min(MAX_REPAIRED_LEN)];
        match repair(repairable) {
            Ok((json, len)) => {
                if let Ok((event, _)) = TraceEvent::parse(&json) {
                    each(&TraceEvent { offset, ..event })?;
                    self.position += len;
                    return Ok(Attempt::Found);
                }
                self.wasted += len as u64;
                Ok(damaged)
            }
            // The event isn't complete. More bytes may help, unless it is too long to be repaired or the file ends.
            Err(Unrepairable::Short) if repairable.len() < MAX_REPAIRED_LEN && !self.at_end => Ok(Attempt::Short),
            Err(Unrepairable::Short) => {
                self.wasted += repairable.len() as u64;
                Ok(damaged)
            }
            Err(Unrepairable::Damaged(message, len)) => {
                self.wasted += len as u64;
                Ok(Attempt::Damaged(message))
            }
        }
    }

    /// True if repairs of events and searches for the next event have examined too many bytes in vain ([`WASTE`]).
    fn has_wasted_enough(&self) -> bool {
        self.wasted > WASTE + 4 * (self.base + self.position as u64)
    }

    /// True if another object follows although the list has ended. Skips a comma before it.
    fn list_continues(&mut self) -> Result<bool> {
        if self.next_byte()? == Some(b',') {
            self.position += 1;
        }
        Ok(self.next_byte()? == Some(b'{'))
    }

    /// Reads up to the first event, or to the first key of the outermost object.
    fn read_start(&mut self) -> Result<()> {
        // Skip a byte order mark, which has three bytes.
        while self.buffer.len() < 3 && self.read_more()? {}
        if self.unread().starts_with(b"\xEF\xBB\xBF") {
            self.position += 3;
        }
        self.part = match self.next_byte()? {
            Some(b'[') => DocumentPart::Events { object: false },
            Some(b'{') => DocumentPart::Members,
            Some(_) => return Err(self.error("the file has neither an array of events nor an object with traceEvents")),
            None => DocumentPart::End,
        };
        self.found_events = matches!(self.part, DocumentPart::Events { .. });
        if self.part != DocumentPart::End {
            self.position += 1; // the bracket
        }
        Ok(())
    }

    /// Reads one key and value of the outermost object. Of `traceEvents`, reads only the key and the bracket; the
    /// events follow in later steps. Fails if the object ends with neither events nor samples.
    fn read_member(&mut self) -> Result<()> {
        match self.next_byte()? {
            Some(b',') => self.position += 1,
            Some(b'"') => {
                // The key with its quotes, or the first bytes of a long one.
                let key = self.skip_value()?;
                if self.next_byte()? == Some(b':') {
                    self.position += 1;
                }
                match (&key[..], self.next_byte()?) {
                    (b"\"traceEvents\"", Some(b'[')) => {
                        self.position += 1;
                        self.part = DocumentPart::Events { object: true };
                        self.found_events = true;
                    }
                    (b"\"samples\"", Some(b'[')) => self.read_samples()?,
                    (b"\"stackFrames\"", Some(b'{')) => self.read_stack_frames()?,
                    (_, Some(_)) => drop(self.skip_value()?),
                    (_, None) => {}
                }
            }
            Some(b'}') | None if self.found_events => self.part = DocumentPart::End,
            // A document that only has samples is a valid trace.
            Some(b'}') if !self.rest.samples.is_empty() => self.part = DocumentPart::End,
            Some(b'}') => return Err(self.error("the outermost object has no traceEvents, so the file is not a trace")),
            None => return Err(self.error("the file ends before traceEvents; it is truncated or not a trace")),
            Some(_) => {
                return Err(
                    self.error("the outermost object, which should contain traceEvents, is not valid JSON here")
                );
            }
        }
        Ok(())
    }

    /// Reads the list of samples that starts here.
    fn read_samples(&mut self) -> Result<()> {
        self.position += 1; // the opening bracket
        loop {
            match self.next_byte()? {
                Some(b',') => self.position += 1,
                Some(b'{') => match self.read_value::<SampleRecord>()? {
                    Some(sample) => self.rest.samples.add(&sample),
                    None => {
                        self.count_damage("the sample is malformed");
                        self.skip_value()?; // a sample that couldn't be read wasn't consumed
                    }
                },
                Some(b']') => {
                    self.position += 1;
                    return Ok(());
                }
                _ => {
                    // The list of samples is damaged here, or the file ends. `read_member` goes on with the outermost
                    // object.
                    self.count_damage("expected a sample here");
                    return Ok(());
                }
            }
        }
    }

    /// Reads the object of stack frames that starts here. Its keys are the frames' IDs.
    fn read_stack_frames(&mut self) -> Result<()> {
        self.position += 1; // the opening brace
        loop {
            match self.next_byte()? {
                Some(b',') => self.position += 1,
                Some(b'"') => {
                    let id = self.read_value::<String>()?;
                    if self.next_byte()? == Some(b':') {
                        self.position += 1;
                    }
                    self.next_byte()?; // skips white space
                    match (id, self.read_value::<StackFrameRecord>()?) {
                        (Some(id), Some(frame)) => self.rest.samples.add_frame(id, frame),
                        _ => {
                            self.count_damage("the stack frame is malformed");
                            // A frame that couldn't be read wasn't consumed, so skip it.
                            self.skip_value()?;
                        }
                    }
                }
                Some(b'}') => {
                    self.position += 1;
                    return Ok(());
                }
                _ => {
                    // The object of stack frames is damaged here, or the file ends. `read_member` goes on with the
                    // outermost object.
                    self.count_damage("expected a stack frame here");
                    return Ok(());
                }
            }
        }
    }

    /// Reads the value that starts here, reading more of the file if necessary. `None` if it has another type, isn't
    /// JSON or is incomplete; it isn't consumed then.
    fn read_value<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        loop {
            let len = self.unread().len();
            let mut values = serde_json::Deserializer::from_slice(self.unread()).into_iter::<T>();
            let is_short = match values.next() {
                Some(Ok(value)) => {
                    self.position += values.byte_offset();
                    return Ok(Some(value));
                }
                Some(Err(error)) => error.is_eof(),
                None => true,
            };
            if !is_short || len > MAX_EVENT_LEN || !self.read_up_to_len(2 * len)? {
                return Ok(None);
            }
        }
    }

    /// Skips a JSON value of any size, which needn't fit in memory. Returns its first bytes, which are enough to
    /// recognize a key.
    fn skip_value(&mut self) -> Result<Vec<u8>> {
        /// The number of bytes to return: enough for the longest key that matters, with its quotes.
        const KEPT: usize = 16;
        // `depth` is the number of open brackets. `in_string` is true within a string, `escaped` after a backslash in
        // it.
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        let mut first_bytes = Vec::new();
        loop {
            let Some(&byte) = self.buffer.get(self.position) else {
                if self.read_more()? {
                    continue;
                }
                return Ok(first_bytes);
            };
            // A number or word ends before a comma or closing bracket, which isn't consumed.
            if !in_string && depth == 0 && !first_bytes.is_empty() && matches!(byte, b',' | b'}' | b']') {
                return Ok(first_bytes);
            }
            if first_bytes.len() < KEPT {
                first_bytes.push(byte);
            }
            self.position += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
                _ => continue,
            }
            // If nothing is open now, the byte closed the value: a string, an object or a list.
            if depth == 0 && !in_string && !escaped {
                return Ok(first_bytes);
            }
        }
    }

    /// Counts the data here as damaged, and searches for the place from which to read on: the next line that starts
    /// with an object or the end of the list, or the next event after a comma within a line, whichever comes first.
    fn resync(&mut self, message: &'static str) -> Result<()> {
        self.count_damage(message);
        self.position += 1;
        // True if the last byte before `position` that isn't white space is a comma.
        let mut is_after_comma = false;
        loop {
            // The distance to the next line feed or object.
            let Some(distance) = memchr::memchr2(b'\n', b'{', self.unread()) else {
                is_after_comma = ends_with_comma(self.unread(), is_after_comma);
                self.position = self.buffer.len();
                if self.read_more()? {
                    continue;
                }
                self.part = DocumentPart::End;
                return Ok(());
            };
            is_after_comma = ends_with_comma(&self.unread()[..distance], is_after_comma);
            self.position += distance;
            if self.unread()[0] == b'\n' {
                // An object, the end of the list, or the end of the file must follow the line feed. `next_byte` moves
                // past white space, so past the line feed, and returns the byte after it without consuming that byte.
                if matches!(self.next_byte()?, Some(b'{' | b']') | None) {
                    return Ok(());
                }
                continue;
            }
            // An object that follows a comma in the middle of a line may be inside an event's arguments. So reading
            // goes on there only if the object is a whole event.
            if is_after_comma && self.is_event()? {
                return Ok(());
            }
            is_after_comma = false;
            self.position += 1;
        }
    }

    /// True if a whole event, of any phase, starts here: an object that has a phase. Reads more of the file if the
    /// object isn't complete, unless too many bytes were examined in vain ([`WASTE`]).
    fn is_event(&mut self) -> Result<bool> {
        loop {
            if self.has_wasted_enough() {
                return Ok(false);
            }
            let rest = self.unread();
            let len = rest.len();
            let error = match TraceEvent::parse_bytes(rest) {
                Ok((event, _)) => return Ok(event.phase != 0),
                Err(error) => error,
            };
            if !error.is_eof() {
                self.wasted += error_offset(&error, rest) as u64;
                return Ok(false);
            }
            self.wasted += len as u64;
            if !self.read_up_to_len(2 * len)? {
                return Ok(false);
            }
        }
    }

    /// Counts a part of the document as not read, for this reason. Doesn't change the position.
    fn count_damage(&mut self, message: &str) {
        let error = self.error(message);
        self.rest.skipped.add(error);
    }

    /// An error at the current position.
    fn error(&self, message: &str) -> Error {
        Error::new(message).at_offset(self.base + self.position as u64)
    }

    /// The bytes in the buffer that weren't consumed yet.
    fn unread(&self) -> &[u8] {
        &self.buffer[self.position..]
    }

    /// The next byte that isn't white space, without consuming it. `None` at the end of the file.
    fn next_byte(&mut self) -> Result<Option<u8>> {
        loop {
            let blanks = self.unread().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.position += blanks;
            if let Some(&byte) = self.unread().first() {
                return Ok(Some(byte));
            }
            if !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Reads more bytes into the buffer and drops those before `position`. False at the end of the file.
    fn read_more(&mut self) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        self.buffer.drain(..self.position);
        self.base += self.position as u64;
        self.position = 0;
        let read = self.input.by_ref().take(self.size as u64).read_to_end(&mut self.buffer)?;
        self.at_end = read < self.size;
        Ok(read > 0)
    }

    /// Reads until the buffer holds at least this many unread bytes, or the file ends. False if nothing could be read.
    fn read_up_to_len(&mut self, len: usize) -> Result<bool> {
        let more = self.read_more()?;
        while more && self.unread().len() < len && self.read_more()? {}
        Ok(more)
    }
}

/// The start of the bytes, up to the first that is not valid UTF-8.
fn valid_prefix(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The kind of an error, without quoting the file's contents.
fn error_kind(error: &serde_json::Error) -> &'static str {
    if error.is_data() { "the object is not a trace event" } else { "the event is not valid JSON" }
}

/// The offset in the text at which an error was found.
fn error_offset(error: &serde_json::Error, text: &[u8]) -> usize {
    // serde counts lines from 1, so `line - 2` is the index of the line break that ends the line before.
    let line_start = match error.line() {
        0 | 1 => 0,
        line => memchr::memchr_iter(b'\n', text).nth(line - 2).map_or(text.len(), |line_break| line_break + 1),
    };
    (line_start + error.column()).min(text.len())
}

/// True if the last byte that isn't white space is a comma. If all bytes are white space, returns `before`, the result
/// for the bytes before these.
fn ends_with_comma(bytes: &[u8], before: bool) -> bool {
    bytes.trim_ascii_end().last().map_or(before, |last| *last == b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the events, and the number of damaged parts, if each read returns this many bytes.
    fn names_by_reads_of(json: &[u8], size: usize) -> (Vec<String>, u64) {
        let mut found = Vec::new();
        let rest = EventReader::with_read_size(json, size).for_each(|event| {
            found.push(event.name.to_string());
            Ok(())
        });
        (found, rest.unwrap().skipped.count())
    }

    /// The names of the events, and the number of damaged parts. They must not depend on the size of reads.
    fn names(json: &[u8]) -> (Vec<String>, u64) {
        let whole = names_by_reads_of(json, json.len().max(1));
        for size in 1..json.len() {
            assert_eq!(names_by_reads_of(json, size), whole, "in chunks of {size} bytes");
        }
        whole
    }

    #[test]
    fn every_field_is_the_same_for_any_size_of_reads() {
        let json = r#"[{"ph":"X","name":"a\u0041","cat":"","ts":1.5,"dur":2,"pid":1,"tid":"main","args":{"x":"\ud83d\ude00"}},
            {"ph":"b","id":"0x1","scope":"s","name":"b","ts":2,"stack":[1]},{"ph":"e","id2":{"local":7},"ts":3,"pid":"p"},
            {"ph":"M","name":"tab	in it","args":[1]},{}]"#;
        let read = |size: usize| {
            let mut events = Vec::new();
            let reader = EventReader::with_read_size(json.as_bytes(), size);
            reader
                .for_each(|event| {
                    events.push(format!("{event:?}"));
                    Ok(())
                })
                .unwrap();
            events
        };
        let whole = read(json.len());
        assert_eq!(whole.len(), 5);
        for size in 1..json.len() {
            assert_eq!(read(size), whole, "in chunks of {size} bytes");
        }
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
        assert!(EventReader::new(&b"nonsense"[..]).for_each(|_| Ok(())).is_err());
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
        for damage in damaged {
            for separator in [",", " , "] {
                let json = format!("[{}]", [event("a"), damage.to_owned(), event("b"), event("c")].join(separator));
                assert_eq!(names(json.as_bytes()), (["a", "b", "c"].map(str::to_owned).to_vec(), 1), "{json}");
                let object = format!(r#"{{"traceEvents":{json},"z":1}}"#);
                assert_eq!(names(object.as_bytes()), (["a", "b", "c"].map(str::to_owned).to_vec(), 1), "{object}");
            }
        }
    }

    #[test]
    fn a_document_of_beginnings_is_one_damage() {
        let json = format!("[x{}", r#",{"a":[{"#.repeat(40_000));
        assert_eq!(names_by_reads_of(json.as_bytes(), 1 << 16), (vec![], 1));
    }

    #[test]
    fn an_object_without_events_is_an_error() {
        for (json, said) in [(r#"{"a":1}"#, "no traceEvents"), (r#"{"a":[1,2"#, "ends before traceEvents")] {
            let read = EventReader::new(json.as_bytes()).for_each(|_| Ok(()));
            assert!(read.unwrap_err().to_string().contains(said), "{json}");
        }
    }

    #[test]
    fn an_event_longer_than_many_chunks() {
        let long = "x".repeat(30_000);
        let json = format!(r#"[{{"name":"a","args":{{"v":"{long}"}}}},{{"name":"b"}}]"#);
        assert_eq!(names_by_reads_of(json.as_bytes(), 100), (vec!["a".to_owned(), "b".to_owned()], 0));
    }
}
