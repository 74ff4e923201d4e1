//! Passes inputs that contain time spans to the readers of their formats.

use super::job::Job;
use super::open::Opened;
use super::progress::Progress;
use crate::contract::spans::{Done, SpanInput};
use crate::error::Result;

/// Calls `reader` with an opened input. The reader of a whole input reports each part that it is done with (`done`).
/// Then the progress bar advances, and the memory of this part is released.
pub(crate) fn read_spans<T>(opened: Opened, job: &Job, reader: impl FnOnce(SpanInput<'_>) -> Result<T>) -> Result<T> {
    match opened {
        Opened::Whole(input) => {
            let (release, progress) = (input.bytes.releaser(), Progress::new(input.bytes.len() as u64, job));
            let done = Done::new(move |range| {
                progress.done(range.len() as u64);
                release(range);
            });
            reader(SpanInput::Whole { bytes: &input.bytes, done })
        }
        Opened::Stream { reader: stream, .. } => reader(SpanInput::Stream(stream)),
    }
}
