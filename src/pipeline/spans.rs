//! A trace's spans, the document's pieces parsed side by side.

use super::job::Job;
use crate::error::{Result, Warnings};
use crate::formats::trace_event::{Event, Piece, Pieces, join_spans, warn};
use crate::model::timeline::Timeline;
use std::io::Read;

/// Reads a trace and says what does not fit. `compat` and `other` are those of [`join_spans`].
pub(crate) fn spans(
    input: impl Read + Send,
    compat: bool,
    job: &Job,
    warnings: &mut Warnings,
    other: impl FnMut(&Event<'_>) -> Result<()>,
) -> Result<Timeline> {
    let parse = |piece: Result<Piece>| Ok(piece?.parse(compat));
    let joined = job.pool.ordered(Pieces::new(input), parse, |parsed| join_spans(parsed, compat, other));
    let (timeline, skipped) = joined?;
    warnings.extend(skipped.into_warning());
    warn(&timeline, warnings);
    Ok(timeline)
}
