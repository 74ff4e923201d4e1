//! Writing trace events that viewers open: whole spans, the outer ones first where times are equal.

use super::{Event, Text};
use crate::error::Result;
use crate::formats::format::WriteOptions;
use crate::model::stacks::{Profile, Row, StackId, TrackId, Unit};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes events one after the other, as the list of an object: most viewers read a plain list, too, but VizTracer's
/// only an object, and Chromium's shows nanoseconds only if asked to.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    line: Vec<u8>,
    count: u64,
}

/// A span that is known whole. Times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Complete<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its category.
    pub cat: Option<&'a [u8]>,
    /// When it begins.
    pub start: i64,
    /// How long it took; `None` for an instant.
    pub duration: Option<i64>,
    /// The process.
    pub pid: i64,
    /// The thread.
    pub tid: i64,
    /// Its arguments.
    pub args: Arguments<'a>,
}

/// The arguments of an event.
#[derive(Debug, Clone, Copy)]
pub enum Arguments<'a> {
    /// Names and texts.
    Texts(&'a [(&'a [u8], &'a [u8])]),
    /// As they stand in another trace, braces included; empty for none.
    Raw(&'a [u8]),
}

impl<W: Write> Writer<W> {
    /// Starts the list.
    pub fn new(mut out: W) -> Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, line: Vec::new(), count: 0 })
    }

    /// How many events were written.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends the list; gives back what it was written to.
    pub fn finish(mut self) -> Result<W> {
        self.out.write_all(b"\n]}\n")?;
        Ok(self.out)
    }

    /// Writes a span or an instant.
    pub fn complete(&mut self, span: &Complete<'_>) -> Result<()> {
        self.begin(span.name, span.cat, if span.duration.is_some() { "X" } else { "i" });
        self.time("ts", span.start);
        match span.duration {
            Some(duration) => self.time("dur", duration),
            None => self.line.extend(b",\"s\":\"t\""),
        }
        self.line.extend(format!(",\"pid\":{},\"tid\":{}", span.pid, span.tid).bytes());
        self.arguments(span.args);
        self.end()
    }

    /// Writes a span of another trace under a name of its own choice: as it was if it stood on a track by id, else
    /// whole. `duration` is `None` for an instant; a negative one never ended.
    pub fn span_of(&mut self, event: &Event<'_>, name: &[u8], start: i64, duration: Option<i64>) -> Result<()> {
        let cat = event.cat.map(Text::text);
        let by_id = matches!(event.phase, b'b' | b'n' | b'S');
        let phase = match duration {
            None if by_id => "n",
            None => "i",
            Some(duration) if by_id || duration < 0 => {
                if by_id {
                    "b"
                } else {
                    "B"
                }
            }
            Some(_) => "X",
        };
        self.begin(name, cat.as_deref(), phase);
        self.time("ts", start);
        if phase == "X" {
            self.time("dur", duration.unwrap_or(0));
        }
        self.who(event);
        self.arguments(Arguments::Raw(event.args));
        self.end()?;
        if let (true, Some(duration @ 0..)) = (by_id, duration) {
            self.begin(name, cat.as_deref(), "e");
            self.time("ts", start.saturating_add(duration));
            self.who(event);
            self.end()?;
        }
        Ok(())
    }

    /// Passes an event of another trace on.
    pub fn pass(&mut self, event: &Event<'_>) -> Result<()> {
        self.separate();
        let raw = without_surrogates(event.raw);
        // An event may stand on several lines; here each has one.
        self.line.extend(raw.iter().map(|byte| if *byte == b'\n' || *byte == b'\r' { b' ' } else { *byte }));
        self.flush()
    }

    /// Writes a name or another property of a process or thread.
    pub fn metadata(&mut self, what: &str, pid: i64, tid: i64, key: &str, value: &str) -> Result<()> {
        self.begin(what.as_bytes(), None, "M");
        self.line.extend(format!(",\"pid\":{pid},\"tid\":{tid}").bytes());
        self.arguments(Arguments::Texts(&[(key.as_bytes(), value.as_bytes())]));
        self.end()
    }

    fn separate(&mut self) {
        self.line.clear();
        if self.count > 0 {
            self.line.extend(b",\n");
        }
    }

    fn begin(&mut self, name: &[u8], cat: Option<&[u8]>, phase: &str) {
        self.separate();
        self.line.extend(b"{\"name\":");
        quote(&mut self.line, name);
        if let Some(cat) = cat {
            self.line.extend(b",\"cat\":");
            quote(&mut self.line, cat);
        }
        self.line.extend(format!(",\"ph\":\"{phase}\"").bytes());
    }

    /// Microseconds with as many decimals as nanoseconds need.
    fn time(&mut self, key: &str, nanos: i64) {
        let (sign, size) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
        let (whole, part) = (size / 1000, size % 1000);
        let text = match part {
            0 => format!(",\"{key}\":{sign}{whole}"),
            _ => format!(",\"{key}\":{sign}{whole}.{part:03}"),
        };
        self.line.extend(text.bytes());
    }

    fn who(&mut self, event: &Event<'_>) {
        for (key, who) in [("pid", event.pid), ("tid", event.tid)] {
            self.line.extend(format!(",\"{key}\":").bytes());
            match who {
                super::Who::Number(number) => self.line.extend(number.to_string().bytes()),
                super::Who::Named(name) => quote(&mut self.line, &name.text()),
            }
        }
        if !matches!(event.phase, b'b' | b'n' | b'S') {
            return;
        }
        let key = if event.id_is_local { ",\"id2\":{\"local\":" } else { ",\"id\":" };
        self.line.extend(key.bytes());
        if event.id_is_text {
            quote(&mut self.line, event.id);
        } else {
            self.line.extend(event.id);
        }
        self.line.extend(event.id_is_local.then_some(b'}'));
    }

    fn arguments(&mut self, args: Arguments<'_>) {
        match args {
            Arguments::Raw([]) => {}
            Arguments::Raw(raw) => {
                self.line.extend(b",\"args\":");
                self.line.extend(without_surrogates(raw));
            }
            Arguments::Texts([]) => {}
            Arguments::Texts(texts) => {
                for (at, (key, text)) in texts.iter().enumerate() {
                    self.line.extend(if at == 0 { &b",\"args\":{"[..] } else { b"," });
                    quote(&mut self.line, key);
                    self.line.push(b':');
                    quote(&mut self.line, text);
                }
                self.line.push(b'}');
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        self.line.push(b'}');
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        self.count += 1;
        Ok(self.out.write_all(&self.line)?)
    }
}

/// A JSON string. Bytes that are no UTF-8 become U+FFFD.
fn quote(line: &mut Vec<u8>, text: &[u8]) {
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

/// JSON with the characters that are escaped as two halves written out: Perfetto refuses a whole trace for one.
fn without_surrogates(json: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr::memmem::find(rest, b"\\") {
        written.extend_from_slice(&rest[..at]);
        let escape = &rest[at..];
        let is_half = matches!(escape, [_, b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
        let len = match (is_half, escape) {
            (true, [_, _, _, _, _, _, b'\\', b'u', ..]) => 12,
            (true, _) => 6,
            _ => 2,
        };
        let escape = &escape[..len.min(escape.len())];
        let text = if is_half { Text::escaped(escape).text() } else { escape.into() };
        written.extend_from_slice(&text);
        rest = &rest[at + escape.len()..];
    }
    written.extend_from_slice(rest);
    written
}

/// Writes one event of a profile: each thread's call tree laid out in time, callees after each other in the order in
/// which they are first seen. One unit of weight that is not time is a microsecond.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let mut writer = Writer::new(out)?;
    if let Some(series) = profile.series.get(options.series) {
        let unit = if series.unit == Unit::Nanos { 1 } else { 1000 };
        let mut tracks = BTreeMap::<TrackId, Vec<&Row>>::new();
        for row in &series.rows {
            tracks.entry(row.track).or_default().push(row);
        }
        for (number, (track, rows)) in tracks.into_iter().enumerate() {
            Layout::new(profile, options, &rows, unit).write(track, number as i64, &mut writer)?;
        }
    }
    writer.finish().map(|_| ())
}

/// The call tree of one thread: sums of each stack, and what is called from it.
struct Layout<'p> {
    profile: &'p Profile,
    sums: BTreeMap<StackId, i64>,
    callees: BTreeMap<Option<StackId>, Vec<StackId>>,
}

impl<'p> Layout<'p> {
    fn new(profile: &'p Profile, options: &WriteOptions, rows: &[&Row], unit: u64) -> Self {
        let mut layout = Self { profile, sums: BTreeMap::new(), callees: BTreeMap::new() };
        for row in rows {
            let weight = options.weight.of(row).saturating_mul(unit);
            let weight = i64::try_from(weight).unwrap_or(i64::MAX);
            let mut next = row.stack;
            while let Some(stack) = next {
                let (parent, _) = profile.stack_of(stack);
                let callees = &mut layout.callees;
                let sum = layout.sums.entry(stack).or_insert_with(|| {
                    callees.entry(parent).or_default().push(stack);
                    0
                });
                *sum = sum.saturating_add(weight);
                next = parent;
            }
        }
        layout
    }

    fn write(&self, track: TrackId, number: i64, writer: &mut Writer<&mut dyn Write>) -> Result<()> {
        let track = self.profile.track_of(track);
        let pid = track.pid.map_or(1, |pid| i64::from(pid.0));
        let tid = track.tid.map_or(number + 1, |tid| i64::from(tid.0));
        writer.metadata("thread_name", pid, tid, "name", &String::from_utf8_lossy(&track.comm))?;
        let roots = |callees: Option<&Vec<StackId>>| callees.into_iter().flatten().rev().copied().collect::<Vec<_>>();
        let mut waiting: Vec<(StackId, Option<StackId>)> =
            roots(self.callees.get(&None)).into_iter().map(|stack| (stack, None)).collect();
        // Where the next callee of each stack begins.
        let mut free = BTreeMap::<Option<StackId>, i64>::new();
        while let Some((stack, parent)) = waiting.pop() {
            let duration = self.sums.get(&stack).copied().unwrap_or(0);
            let start = *free.entry(parent).or_insert(0);
            free.insert(parent, start.saturating_add(duration));
            free.insert(Some(stack), start);
            let (_, frame) = self.profile.stack_of(stack);
            let name = self.profile.name_of(self.profile.frame_of(frame).name);
            let args = Arguments::Texts(&[]);
            writer.complete(&Complete { name, cat: None, start, duration: Some(duration), pid, tid, args })?;
            waiting.extend(roots(self.callees.get(&Some(stack))).into_iter().map(|callee| (callee, Some(stack))));
        }
        Ok(())
    }
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
        let mut writer = Writer::new(&mut out).unwrap();
        let args = Arguments::Texts(&[(b"arg0", b"a\"b\n")]);
        let span = Complete { name: b"f", cat: Some(b"c"), start: -1_500, duration: Some(13), pid: 1, tid: 2, args };
        writer.complete(&span).unwrap();
        writer
            .complete(&Complete { duration: None, cat: None, args: Arguments::Raw(b""), start: 2000, ..span })
            .unwrap();
        writer.finish().unwrap();
        let want = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":\"f\",\"cat\":\"c\",\"ph\":\"X\",\"ts\":-1.500,\"dur\":0.013,\"pid\":1,\"tid\":2,\"args\":{\"arg0\":\"a\\\"b\\u000a\"}},\n\
            {\"name\":\"f\",\"ph\":\"i\",\"ts\":2,\"s\":\"t\",\"pid\":1,\"tid\":2}\n]}\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
