//! Writes trace events that viewers open: complete spans, the outer ones first if times are equal.

use crate::analysis::timeline::{Arguments, NumberOrName, OtherEvent, SpanId, SpanRecord, SpanWriter};
use crate::bytes::escapes::utf16_letter;
use crate::error::Result;
use std::fmt;
use std::io::Write;

/// Starts a trace to which spans will be written.
pub fn start_spans(out: &mut dyn Write) -> Result<Box<dyn SpanWriter + '_>> {
    Ok(Box::new(TraceWriter::new(out)?))
}

/// Writes events as the `traceEvents` list of an object. Most viewers also open a plain list, but VizTracer's needs an
/// object, and Chromium's shows nanoseconds only if an object requests it.
pub(super) struct TraceWriter<'o> {
    out: &'o mut dyn Write,
    /// The text of the event that is being written.
    line: Vec<u8>,
    /// The number of events written so far.
    count: u64,
}

impl SpanWriter for TraceWriter<'_> {
    /// Writes a span as one event or, if its track has an ID, as one event for its start and one for its end.
    fn span(&mut self, span: &SpanRecord<'_>) -> Result<()> {
        let phase = phase(span);
        self.begin_event(span.name, span.cat, phase);
        self.write_time("ts", span.start);
        if phase == "X"
            && let Some(duration) = span.duration
        {
            self.write_time("dur", duration);
        }
        self.write_owner(span);
        self.write_arguments(span.args);
        self.end_event()?;
        // A negative duration means that the span has no end.
        if span.id.is_some()
            && let Some(duration @ 0..) = span.duration
        {
            self.begin_event(span.name, span.cat, "e");
            self.write_time("ts", span.start.saturating_add(duration));
            self.write_owner(span);
            self.end_event()?;
        }
        Ok(())
    }

    fn process_name(&mut self, pid: i64, name: &str) -> Result<()> {
        self.write_metadata("process_name", pid, 0, name)
    }

    fn thread_name(&mut self, pid: i64, tid: i64, name: &str) -> Result<()> {
        self.write_metadata("thread_name", pid, tid, name)
    }

    /// Copies an event from another trace.
    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()> {
        self.begin_line();
        let raw = without_surrogates(event.json);
        // Events may span several lines in the input. In the output, each is on one line.
        self.line.extend(raw.iter().map(|byte| if *byte == b'\n' || *byte == b'\r' { b' ' } else { *byte }));
        self.write_line()
    }

    fn finish(&mut self) -> Result<()> {
        Ok(self.out.write_all(b"\n]}\n")?)
    }
}

/// The phase (`ph`) of a span's first event. Without a duration, the span is an instant (`n` on an async track, or
/// `i`). Otherwise it is a span on an async track (`b`), a span that never ended (`B`, with a negative duration) or
/// a complete span (`X`).
fn phase(span: &SpanRecord<'_>) -> &'static str {
    match (span.duration, span.id) {
        (None, Some(_)) => "n",
        (None, None) => "i",
        (Some(_), Some(_)) => "b",
        (Some(..0), None) => "B",
        (Some(_), None) => "X",
    }
}

impl fmt::Debug for TraceWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceWriter({} events)", self.count)
    }
}

impl<'o> TraceWriter<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, line: Vec::new(), count: 0 })
    }

    /// Completes the file with metadata about the whole trace.
    pub(super) fn finish_with_metadata(self, metadata: &serde_json::Value) -> Result<()> {
        Ok(writeln!(self.out, "\n],\"otherData\":{metadata}}}")?)
    }

    /// Writes an event that names a process or thread.
    fn write_metadata(&mut self, what: &str, pid: i64, tid: i64, name: &str) -> Result<()> {
        self.begin_event(what.as_bytes(), None, "M");
        self.line.extend(format!(",\"pid\":{pid},\"tid\":{tid}").bytes());
        self.write_arguments(Arguments::Texts(&[(b"name", name.as_bytes())]));
        self.end_event()
    }

    /// Starts the line of an event, with the comma after the previous event.
    fn begin_line(&mut self) {
        self.line.clear();
        if self.count > 0 {
            self.line.extend(b",\n");
        }
    }

    /// Starts an event with the fields that all events have. More fields may follow.
    fn begin_event(&mut self, name: &[u8], cat: Option<&[u8]>, phase: &str) {
        self.begin_line();
        self.line.extend(b"{\"name\":");
        quote(&mut self.line, name);
        if let Some(cat) = cat {
            self.line.extend(b",\"cat\":");
            quote(&mut self.line, cat);
        }
        self.line.extend(format!(",\"ph\":\"{phase}\"").bytes());
    }

    /// Writes a time in microseconds, with as many decimals as needed for nanoseconds.
    fn write_time(&mut self, key: &str, nanos: i64) {
        let sign = if nanos < 0 { "-" } else { "" };
        let (micros, decimals) = (nanos.unsigned_abs() / 1000, nanos.unsigned_abs() % 1000);
        let text = match decimals {
            0 => format!(",\"{key}\":{sign}{micros}"),
            _ => format!(",\"{key}\":{sign}{micros}.{decimals:03}"),
        };
        self.line.extend(text.bytes());
    }

    /// Writes the process and the thread of a span, and the ID of its track if it isn't on the thread's own track.
    fn write_owner(&mut self, span: &SpanRecord<'_>) {
        for (key, owner) in [("pid", &span.pid), ("tid", &span.tid)] {
            self.line.extend(format!(",\"{key}\":").bytes());
            match owner {
                NumberOrName::Number(number) => self.line.extend(number.to_string().bytes()),
                NumberOrName::Name(name) => quote(&mut self.line, name),
            }
        }
        let Some(SpanId { text, is_text, is_local, scope }) = span.id else { return };
        let key = if is_local { ",\"id2\":{\"local\":" } else { ",\"id\":" };
        self.line.extend(key.bytes());
        if is_text {
            quote(&mut self.line, text);
        } else {
            self.line.extend(text);
        }
        if is_local {
            self.line.push(b'}');
        }
        if let Some(scope) = scope {
            self.line.extend(b",\"scope\":");
            quote(&mut self.line, scope);
        }
    }

    /// Writes the field `args`, unless there are no arguments.
    fn write_arguments(&mut self, args: Arguments<'_>) {
        match args {
            Arguments::Json([]) => {}
            Arguments::Json(raw) => {
                self.line.extend(b",\"args\":");
                self.line.extend(without_surrogates(raw));
            }
            Arguments::Texts([]) => {}
            Arguments::Texts(texts) => {
                for (index, (key, text)) in texts.iter().enumerate() {
                    self.line.extend(if index == 0 { &b",\"args\":{"[..] } else { b"," });
                    quote(&mut self.line, key);
                    self.line.push(b':');
                    quote(&mut self.line, text);
                }
                self.line.push(b'}');
            }
        }
    }

    /// Closes the event's object, and writes it.
    fn end_event(&mut self) -> Result<()> {
        self.line.push(b'}');
        self.write_line()
    }

    /// Writes the event's line to the output.
    fn write_line(&mut self) -> Result<()> {
        self.count += 1;
        Ok(self.out.write_all(&self.line)?)
    }
}

/// Writes a JSON string. Bytes that aren't UTF-8 become U+FFFD.
pub(super) fn quote(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'"');
    for chunk in text.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'"' | b'\\' => line.extend([b'\\', byte]),
                0..0x20 => line.extend(format!("\\u{byte:04x}").bytes()),
                _ => line.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            line.extend("\u{fffd}".bytes());
        }
    }
    line.push(b'"');
}

/// Replaces escaped surrogates: a pair by its character, and a lone one by U+FFFD. An escaped surrogate makes Perfetto
/// reject the whole trace.
fn without_surrogates(json: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = memchr::memchr(b'\\', rest) {
        written.extend_from_slice(&rest[..start]);
        let escape = &rest[start..];
        // Surrogates are `\ud800` to `\udfff`.
        let is_surrogate = matches!(escape, [_, b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
        if !is_surrogate {
            // Skip the escaped character together with its backslash, because it may be another backslash.
            let (escape, after_escape) = escape.split_at(escape.len().min(2));
            written.extend_from_slice(escape);
            rest = after_escape;
            continue;
        }
        // A pair of surrogates takes two escapes of 6 bytes, `\ud83d\ude00`.
        let longest = if matches!(escape, [_, _, _, _, _, _, b'\\', b'u', ..]) { 12 } else { 6 };
        let pair = &escape[..longest.min(escape.len())];
        // `utf16_letter` decodes both escapes if they are a pair. Otherwise it only reads the first one, and `letter`
        // is `None`; the second one is handled in the next round. Escapes with invalid digits are replaced, too.
        let (letter, len) = utf16_letter(pair).unwrap_or((None, pair.len()));
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        written.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &escape[len..];
    }
    written.extend_from_slice(rest);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_are_written_out() {
        let shown = |json: &str| String::from_utf8(without_surrogates(json.as_bytes())).unwrap();
        assert_eq!(
            shown(r#"{"a\\ud83d":"\ud83d\ude00\n\u00e9\"","b":"\uD83D"}"#),
            "{\"a\\\\ud83d\":\"😀\\n\\u00e9\\\"\",\"b\":\"\u{fffd}\"}"
        );
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        let mut out = Vec::new();
        let mut writer = TraceWriter::new(&mut out).unwrap();
        let (pid, tid) = (NumberOrName::Number(1), NumberOrName::Name(b"t".into()));
        let args = Arguments::Texts(&[(b"arg0", b"a\"b\n")]);
        let span =
            SpanRecord { name: b"f", cat: Some(b"c"), start: -1_500, duration: Some(13), pid, tid, id: None, args };
        writer.span(&span).unwrap();
        writer
            .span(&SpanRecord { duration: None, cat: None, args: Arguments::Json(b""), start: 2000, ..span })
            .unwrap();
        writer.finish().unwrap();
        let want = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":\"f\",\"cat\":\"c\",\"ph\":\"X\",\"ts\":-1.500,\"dur\":0.013,\"pid\":1,\"tid\":\"t\",\"args\":{\"arg0\":\"a\\\"b\\u000a\"}},\n\
            {\"name\":\"f\",\"ph\":\"i\",\"ts\":2,\"pid\":1,\"tid\":\"t\"}\n]}\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn spans_on_tracks_by_id_and_unfinished_ones_keep_their_form() {
        let written = |duration, is_text, is_local| {
            let mut out = Vec::new();
            let mut writer = TraceWriter::new(&mut out).unwrap();
            let number = || NumberOrName::Number(1);
            let (id, args) =
                (Some(SpanId { text: b"7", is_text, is_local, scope: None }), Arguments::Json(b"{\"a\":1}"));
            let span = SpanRecord { name: b"f", cat: None, start: 0, duration, pid: number(), tid: number(), id, args };
            writer.span(&span).unwrap();
            writer.span(&SpanRecord { id: None, args: Arguments::Json(b""), ..span }).unwrap();
            String::from_utf8(out).unwrap().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let begin = r#"{"name":"f","ph":"b","ts":0,"pid":1,"tid":1,"id":7,"args":{"a":1}},"#;
        let end = r#"{"name":"f","ph":"e","ts":2,"pid":1,"tid":1,"id":7},"#;
        let whole = r#"{"name":"f","ph":"X","ts":0,"dur":2,"pid":1,"tid":1}"#;
        assert_eq!(written(Some(2000), false, false), [begin, end, whole]);
        let begin = r#"{"name":"f","ph":"b","ts":0,"pid":1,"tid":1,"id2":{"local":"7"},"args":{"a":1}},"#;
        assert_eq!(written(Some(-1), true, true), [begin, r#"{"name":"f","ph":"B","ts":0,"pid":1,"tid":1}"#]);
        let instant = r#"{"name":"f","ph":"n","ts":0,"pid":1,"tid":1,"id":"7","args":{"a":1}},"#;
        assert_eq!(written(None, true, false), [instant, r#"{"name":"f","ph":"i","ts":0,"pid":1,"tid":1}"#]);
    }
}
