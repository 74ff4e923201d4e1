//! Trace events (JSON): what Chromium, node, clang, crate tracing-chrome, Miri's tracing and many others write.
//!
//! An array of events, or an object whose `traceEvents` is one. The array's end may be missing after a crash. Times are
//! microseconds, with decimals. The meaning of an event is the business of its phase, `ph`:
//!
//! | phase | |
//! |---|---|
//! | `B` `E` | start and end of a span on a thread |
//! | `X` | a whole span, with its duration |
//! | `b` `e` `n` | begin, end, instant on a track of its own, by category and `id` |
//! | `i` `I` | an instant |
//! | `M` | metadata: names of processes and threads |
//! | `P` | V8's own samples: `Profile`, `ProfileChunk`, `CpuProfile` |
//! | `C` and others | counters, flows, memory dumps: they take no time and are left out |
//!
//! The object may have `samples` and `stackFrames` beside its events. The document is streamed: memory is taken by the
//! spans, not by the text.
//!
//! What one producer does is applied to that producer's traces only:
//!
//! | producer | known by | rule |
//! |---|---|---|
//! | Miri | spans `frame` with a message, `step` with a step | these lie on tracks of their own and are nested by time |
//! | clang `-ftime-trace` | sums `Total …`, the process's name | the sums are left out; `args.detail` says what a span did |
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

mod batch;
mod event;
mod laid_out;
mod mend;
mod read;
mod reader;
mod samples;
mod spans;
mod stack;
mod stacks;
mod write;

pub use stacks::write;
pub use write::start_spans;

use crate::contract::spans::{Spans, Wants};

/// The questions about a trace.
pub const SPANS: Spans =
    Spans { wants: Wants::Stream, stacks: read::stacks, timeline: read::timeline, tell: read::tell, summary: None };

/// True if it is an object that goes on behind these bytes: other members may precede the events, and no other format
/// begins so. The reader reports it if no events follow.
fn is_open(head: &[u8]) -> bool {
    event::TraceEvent::parse_bytes(head).is_err_and(|error| error.is_eof())
}

/// True if an input starts as one of ours.
pub fn sniff(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    let has = |key: &str| memchr::memmem::find(head, key.as_bytes()).is_some();
    match head {
        [b'[', rest @ ..] => has("\"ph\"") || matches!(rest.trim_ascii_start(), b"" | b"]"),
        [b'{', ..] => {
            let keys = ["traceEvents", "displayTimeUnit", "beginningOfTime", "stackFrames"];
            keys.iter().any(|key| has(&format!("\"{key}\""))) || is_open(head)
        }
        _ => false,
    }
}
