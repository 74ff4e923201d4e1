//! Formats that hold spans of time, read in every way.

use crate::analysis::timeline::{OtherEvent, SpanFile, SpanHead, SpanRecord, SpanSink, SpanWriter};
use crate::contract::options::ReadOptions;
use crate::contract::spans::{SpanInput, Spans};
use crate::error::{Result, Warnings};
use crate::formats::{measureme as mm, trace_event as trace};
use std::io::Read;

pub(super) fn measureme(bytes: &[u8]) {
    let _ = mm::sniff(bytes);
    in_every_way(&mm::SPANS, bytes);
}

pub(super) fn trace_event(bytes: &[u8]) {
    let _ = trace::sniff(bytes);
    in_every_way(&trace::SPANS, bytes);
}

fn in_every_way(of: &Spans, bytes: &[u8]) {
    let (options, warnings) = (ReadOptions::default(), &mut Warnings::new());
    let compat = ReadOptions { perfetto_compat: true, ..options.clone() };
    let whole = (of.stacks)(SpanInput::whole(bytes), &options, warnings).map(|profile| profile.stack_count());
    let streamed = (of.stacks)(in_small_pieces(bytes), &options, warnings).map(|profile| profile.stack_count());
    assert_eq!(whole.ok(), streamed.ok(), "a stream tells what the whole does");
    let _ = of.summary.map(|summarize| summarize(SpanInput::whole(bytes), warnings));
    let _ = (of.timeline)(SpanInput::whole(bytes), &compat, warnings);
    let _ = (of.timeline)(SpanInput::whole(bytes), &options, warnings);
    let _ = written(of, bytes, warnings);
}

/// The same as a stream that gives a few bytes at a time.
fn in_small_pieces(bytes: &[u8]) -> SpanInput<'_> {
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let most = into.len().min(61);
            self.0.read(&mut into[..most])
        }
    }
    SpanInput::Stream(Box::new(Slow(bytes)))
}

/// Writes every span of the sink's files.
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

/// All spans as a trace, which can be read again.
fn written(of: &Spans, bytes: &[u8], warnings: &mut Warnings) -> Result<()> {
    let mut out = Vec::new();
    let mut sink = PassAll(trace::start_spans(&mut out)?);
    (of.emit)(SpanInput::whole(bytes), &mut sink, warnings)?;
    sink.0.finish()?;
    drop(sink);
    let again = (trace::SPANS.stacks)(SpanInput::whole(&out), &ReadOptions::default(), &mut Warnings::new());
    assert!(again.is_ok(), "what was written is read: {:?}", again.err());
    Ok(())
}
