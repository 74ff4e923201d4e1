//! The intervals one by one, with all that is reported about each, in one pass backwards: callers before what they
//! called.

use super::event::{Payload, RawEvent};
use super::labels::Labels;
use super::profile::MeasuremeFile;
use crate::analysis::timeline::{Arguments, SpanFile, SpanHead, SpanRecord, SpanSink};
use crate::contract::spans::SpanInput;
use crate::error::{Result, Warnings};
use crate::model::stacks::Track;
use crate::model::{Pid, Tid};

/// Reports the intervals while they are read, so that the size of the file does not matter.
pub(super) fn tell(input: SpanInput<'_>, sink: &mut dyn SpanSink, warnings: &mut Warnings) -> Result<()> {
    let (bytes, done) = input.bytes.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let metadata = profile.metadata();
    let pid = metadata.process_id.unwrap_or(0);
    sink.file(&SpanFile {
        first: 0,
        last: profile.last_time().cast_signed(),
        since_1970: Some(metadata.start_time.unwrap_or(0)),
        process: Some((i64::from(pid), metadata.crate_name().unwrap_or(metadata.program()))),
        threads: &[],
    })?;
    let mut teller = Teller {
        profile: &profile,
        pid: Pid(pid as i32),
        labels: Labels::new(profile.strings()),
        kinds: Labels::new(profile.strings()),
    };
    let mut told = Ok(());
    profile.backwards(
        |event| {
            if told.is_ok() {
                told = teller.event(event, sink);
            }
        },
        |range| done.with(range),
    );
    told?;
    drop(teller);
    warnings.extend(profile.into_skipped().into_warning());
    Ok(())
}

struct Teller<'p, 'data> {
    profile: &'p MeasuremeFile<'data>,
    pid: Pid,
    labels: Labels<'p, 'data>,
    kinds: Labels<'p, 'data>,
}

impl Teller<'_, '_> {
    fn event(&mut self, event: RawEvent, sink: &mut dyn SpanSink) -> Result<()> {
        let Payload::Interval { start, end } = event.payload else { return Ok(()) };
        let (label, kind) = (self.labels.of(event.id), self.kinds.of(event.kind));
        let thread = Track { pid: Some(self.pid), tid: Some(Tid(event.thread as i32)), ..Track::default() };
        let head = SpanHead {
            thread_no: event.thread,
            thread: &thread,
            name_no: label,
            name: self.labels.text(label),
            sub: None,
            start: start.cast_signed(),
            duration: Some((end - start).cast_signed()),
        };
        if !sink.wants(&head) {
            return Ok(());
        }
        let arguments = self.profile.strings().event(event.id).map(|(_, arguments)| arguments).unwrap_or_default();
        let keys: Vec<String> = (0..arguments.len()).map(|number| format!("arg{number}")).collect();
        let args: Vec<_> = keys.iter().map(String::as_bytes).zip(arguments.iter().map(Vec::as_slice)).collect();
        let cat = Some(self.kinds.text(kind));
        sink.span(&head, &SpanRecord { cat, args: Arguments::Texts(&args), ..SpanRecord::of(&head) })
    }
}
