//! Passes inputs that contain time spans to the readers of their formats.

use super::job::Job;
use super::open::Opened;
use super::progress::Progress;
use crate::contract::spans::{Done, SpanBytes, SpanInput, TakeOutputs, Task, Workers};
use crate::error::Result;
use crate::parallel::Pool;

/// Calls `reader` with an opened input and the worker threads of the job.
pub(crate) fn read_spans<T>(opened: Opened, job: &Job, reader: impl FnOnce(SpanInput<'_>) -> Result<T>) -> Result<T> {
    let workers = &job.pool;
    match opened {
        Opened::Whole(input) => {
            let (release, progress) = (input.bytes.releaser(), Progress::new(input.bytes.len() as u64, job));
            let done = Done::new(move |range| {
                progress.done(range.len() as u64);
                release(range);
            });
            reader(SpanInput { bytes: SpanBytes::Whole { bytes: &input.bytes, done }, workers })
        }
        Opened::Stream { reader: stream, .. } => reader(SpanInput { bytes: SpanBytes::Stream(stream), workers }),
    }
}

impl Workers for Pool {
    fn count(&self) -> usize {
        self.threads()
    }

    fn do_in_order<'t>(&self, tasks: &mut (dyn Iterator<Item = Task<'t>> + Send + '_), take: &mut TakeOutputs<'_>) {
        self.ordered(tasks, |task| task(), |outputs| take(outputs));
    }
}
