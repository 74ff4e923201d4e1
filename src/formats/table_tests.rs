//! Tests that every format in the table must pass.

use crate::analysis::timeline::{
    OtherEvent, SliceKind, SpanFile, SpanHead, SpanRecord, SpanSink, SpanWriter, Timeline,
};
use crate::contract::format::{Read, ReadOptions, StartSpansFn, WriteOptions};
use crate::contract::spans::{SpanInput, Spans};
use crate::error::{Result, Skipped, Warnings};
use crate::formats::{FORMATS, detect, find_format, find_format_for_file};
use crate::model::stacks::Profile;
use crate::test_effort::is_thorough;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

#[test]
fn names_are_unique_words() {
    let mut seen = HashSet::new();
    for format in FORMATS {
        assert!(seen.insert(format.name), "{} twice", format.name);
        assert!(format.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit()));
        assert!(!format.about.is_empty() && !format.about.ends_with('.'), "{}: {}", format.name, format.about);
        assert_eq!(find_format(format.name).map(|found| found.about), Some(format.about));
        let reads = !matches!(format.read, Read::No);
        assert!(reads || format.write.is_some(), "{} does nothing", format.name);
    }
}

#[test]
fn every_format_that_is_written_has_files_of_its_own() {
    let mut seen = HashSet::new();
    for format in FORMATS {
        assert_eq!(format.files.is_empty(), format.write.is_none(), "{}", format.name);
        for pattern in format.files {
            assert!(seen.insert(pattern), "{pattern} twice");
            assert!(pattern.matches('*').count() <= 1, "{pattern}");
            let found = find_format_for_file(pattern.replace('*', "x.y").as_bytes());
            assert_eq!(found.map(|found| found.name), Some(format.name), "{pattern}");
        }
    }
    let format_for = |name: &str| find_format_for_file(name.as_bytes()).map(|format| format.name);
    let names = [
        "a.json",
        "a.speedscope.json",
        "callgrind.out",
        "callgrind.out.77",
        "a.svg",
        "a.pb.gz",
        "a.csv",
        "a.otlp",
        "a.otlp.json",
    ];
    let formats = ["json", "speedscope", "callgrind", "callgrind", "flamegraph", "pprof", "csv", "otlp", "otlp-json"];
    assert_eq!(names.map(format_for), formats.map(Some));
    assert_eq!(["svg", ".svg", "a.gz", "a", "json", "a.svg.bak"].map(format_for), [None; 6]);
}

/// The small inputs of all test fixtures, decompressed.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for folder in fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_input = path.file_name().unwrap().to_str().unwrap().starts_with("input.");
            if is_input && fs::metadata(&path).unwrap().len() < 64 << 10 {
                found.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Reads an input in any format, except for formats that need other files. Damage may cause an error but never a panic.
fn read(bytes: &[u8]) {
    let (options, warnings) = (ReadOptions::default(), &mut Warnings::new());
    let _ = match detect(bytes).map(|format| format.read) {
        Some(Read::Stacks(read)) => read(bytes, &options, warnings).map(|_| ()),
        Some(Read::Script) => crate::formats::perf_script::read::read(bytes, &options, warnings).map(|_| ()),
        Some(Read::Stream(read)) => read(&mut &bytes[..], &options, warnings).map(|_| ()),
        Some(Read::Lines { open, .. }) => {
            open(&options, bytes).read(bytes, &mut Skipped::new("line"));
            Ok(())
        }
        Some(Read::Spans(reader)) => read_spans(&reader, bytes, &options, warnings),
        Some(Read::Addresses | Read::No) | None => Ok(()),
    };
}

/// Reads an input of spans in all possible ways.
fn read_spans(reader: &Spans, bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<()> {
    let input = || SpanInput::whole(bytes);
    let _ = (reader.stacks)(input(), options, warnings);
    let _ = reader.summary.map(|summarize| summarize(input(), warnings));
    let _ = written(reader, bytes, warnings, span_writer());
    (reader.timeline)(input(), &ReadOptions { perfetto_compat: true, ..options.clone() }, warnings)?;
    (reader.timeline)(input(), options, warnings).map(|_| ())
}

/// A sink that writes every span it is given.
#[derive(Debug)]
struct PassAll<'w>(Box<dyn SpanWriter + 'w>);

impl SpanSink for PassAll<'_> {
    fn file(&mut self, file: &SpanFile<'_>) -> Result<()> {
        file.process.map_or(Ok(()), |(pid, name)| self.0.process_name(pid, name))
    }

    fn wants(&mut self, _: &SpanHead<'_>) -> bool {
        true
    }

    fn span(&mut self, _: &SpanHead<'_>, record: &SpanRecord<'_>) -> Result<()> {
        self.0.span(record)
    }

    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()> {
        self.0.other(event)
    }
}

/// Converts all spans of an input to another format.
fn written(reader: &Spans, bytes: &[u8], warnings: &mut Warnings, start: StartSpansFn) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut sink = PassAll(start(&mut out)?);
    (reader.emit)(SpanInput::whole(bytes), &mut sink, warnings)?;
    sink.0.finish()?;
    drop(sink);
    Ok(out)
}

/// The writer of the first format that spans can be written in.
fn span_writer() -> StartSpansFn {
    FORMATS.iter().find_map(|format| format.write?.spans).unwrap()
}

#[test]
fn cut_and_changed_inputs_do_no_harm() {
    let inputs = inputs();
    assert!(!inputs.is_empty());
    for (name, bytes) in inputs {
        let detected = detect(&bytes).unwrap_or_else(|| panic!("{name} is of no known format"));
        // Only some positions, evenly spread: trying all of them would take minutes.
        let positions = if is_thorough() { 500 } else { 15 };
        let step = (bytes.len() / positions).max(1);
        for at in (0..bytes.len()).step_by(step) {
            read(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            read(&changed);
        }
        assert!(!matches!(detected.read, Read::No), "{name}: {} is detected but cannot be read", detected.name);
    }
}

/// More nested frames than the call stack could hold if a reader were recursive.
const DEEP: usize = 100_000;

#[test]
fn deep_stacks_are_read_without_going_down_them() {
    let list = |of: &dyn Fn(usize) -> String| (0..DEEP).map(of).collect::<Vec<_>>().join(",");
    let zeros = list(&|_| "0".to_owned());
    let schema = r#""$schema":"https://www.speedscope.app/file-format-schema.json""#;
    let frames = r#""shared":{"frames":[{"name":"f"}]}"#;
    let opens = list(&|at| format!(r#"{{"type":"O","frame":0,"at":{at}}}"#));
    let prefixes = list(&|at| at.checked_sub(1).map_or_else(|| "null".to_owned(), |caller| caller.to_string()));
    let last = DEEP - 1;
    let inputs = [
        (
            "speedscope",
            format!(r#"{{{schema},{frames},"profiles":[{{"unit":"none","samples":[[{zeros}]],"weights":[1]}}]}}"#),
        ),
        ("speedscope", format!(r#"{{{schema},{frames},"profiles":[{{"unit":"none","events":[{opens}]}}]}}"#)),
        (
            "firefox",
            format!(
                r#"{{"meta":{{"preprocessedProfileVersion":58}},"shared":{{"stringArray":["f"],"frameTable":{{"func":[0]}},
                "funcTable":{{"name":[0]}},"stackTable":{{"frame":[{zeros}],"prefix":[{prefixes}]}}}},
                "threads":[{{"name":"a","samples":{{"stack":[{last}]}}}}]}}"#
            ),
        ),
        ("dtrace", format!("\n\n{}  1\n", "  a`f+0x1\n".repeat(DEEP))),
        (
            "xctrace",
            format!(
                "<trace-query-result><row><backtrace id=\"1\"><frame id=\"2\" name=\"f\"/>{}</backtrace></row>",
                "<frame ref=\"2\"/>".repeat(last)
            ),
        ),
    ];
    for (name, text) in inputs {
        let Some(Read::Stacks(read)) = detect(&text.as_bytes()[..1 << 16]).map(|format| format.read) else {
            panic!("{name} is not detected")
        };
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let read = move || {
            let warnings = &mut Warnings::new();
            let profile = read(text.as_bytes(), &ReadOptions::default(), warnings).unwrap();
            assert_eq!(warnings.iter().count(), 0);
            let deepest = profile.series[0].rows.last().map(|row| profile.frames_up(row.stack).count());
            (profile.stack_count(), deepest.unwrap())
        };
        let (stacks, deepest) = small.spawn(read).unwrap().join().unwrap();
        assert!(stacks == DEEP && deepest >= DEEP - 1, "{name}: {stacks} stacks, {deepest} deep");
    }
}

/// The spans that have a duration: their names, starts and durations, sorted.
fn spans_of(timeline: &Timeline) -> Vec<(String, i64, i64)> {
    let mut spans = Vec::new();
    for slice in timeline.slices.iter().filter(|slice| slice.kind != SliceKind::Instant) {
        let name = String::from_utf8_lossy(timeline.names.text(slice.name)).into_owned();
        spans.push((name, slice.start, slice.duration));
    }
    spans.sort();
    spans
}

#[test]
fn every_format_of_spans_states_the_same_in_every_way() {
    let (inputs, options) = (inputs(), ReadOptions::default());
    for format in FORMATS {
        let Read::Spans(reader) = format.read else { continue };
        let is_input = |bytes: &[u8]| detect(bytes).is_some_and(|detected| detected.name == format.name);
        let input = inputs.iter().find(|(_, bytes)| is_input(bytes));
        let (name, bytes) =
            input.unwrap_or_else(|| panic!("no fixtures/*/input.* of less than 64 KiB is {}", format.name));
        let warnings = &mut Warnings::new();
        let spans = spans_of(&(reader.timeline)(SpanInput::whole(bytes), &options, warnings).unwrap());
        assert!(!spans.is_empty(), "{name}: no spans");

        let streamed = (reader.timeline)(SpanInput::Stream(Box::new(&bytes[..])), &options, warnings).unwrap();
        assert!(spans_of(&streamed) == spans, "{name}: depends on how it is read");

        let stacks = (reader.stacks)(SpanInput::whole(bytes), &options, warnings).unwrap();
        let calls: u64 = stacks.series.iter().flat_map(|series| &series.rows).map(|row| row.count).sum();
        assert_eq!(calls, spans.len() as u64, "{name}: its stacks have other spans");

        if let Some(summarize) = reader.summary {
            let summary = summarize(SpanInput::whole(bytes), warnings).unwrap();
            let calls: u64 = summary.labels.values().map(|totals| totals.count).sum();
            assert_eq!(calls, spans.len() as u64, "{name}: its summary has other spans");
        }

        for writer in FORMATS.iter().filter(|writer| writer.write.is_some_and(|write| write.spans.is_some())) {
            let out = written(&reader, bytes, warnings, writer.write.unwrap().spans.unwrap()).unwrap();
            let Read::Spans(again) = detect(&out).unwrap().read else { panic!("{} is read as no spans", writer.name) };
            let again = (again.timeline)(SpanInput::whole(&out), &options, warnings).unwrap();
            assert!(spans_of(&again) == spans, "{name}: {} holds other spans", writer.name);
        }
    }
}

#[test]
fn an_empty_profile_is_written_or_refused_without_a_panic() {
    for format in FORMATS {
        let Some(writer) = format.write else { continue };
        if let Err(error) = (writer.run)(&Profile::new(), &WriteOptions::default(), &mut Vec::new()) {
            assert!(error.to_string().contains("no samples"), "{}: {error}", format.name);
        }
    }
}
