//! Trace events (JSON): what Chromium, node, clang, crate tracing-chrome, Miri's tracing and many others write.
//!
//! A trace is an array of events, or an object whose `traceEvents` is such an array. The end of the array may be
//! missing after a crash. Times are in microseconds, with decimals. The phase of an event (`ph`) determines its
//! meaning:
//!
//! | phase | meaning |
//! |---|---|
//! | `B` `E` | start and end of a span on a thread |
//! | `X` | a complete span with its duration |
//! | `b` `e` `n` | start, end and instant on a track that is identified by category and `id` |
//! | `i` `I` | an instant |
//! | `M` | metadata: names of processes and threads |
//! | `P` | V8's samples: `Profile`, `ProfileChunk`, `CpuProfile` |
//! | `C` and others | counters, flows, memory dumps: they take no time and are ignored |
//!
//! The object may have `samples` and `stackFrames` in addition to its events. The document is read as a stream: memory
//! grows with the number of spans, not with the size of the text.
//!
//! Some rules only apply to traces of a certain producer:
//!
//! | producer | recognized by | rule |
//! |---|---|---|
//! | Miri | spans `frame` with a message, `step` with a step | they are on separate tracks and are nested by time |
//! | clang `-ftime-trace` | sums named `Total …`, the process name | sums are ignored; `args.detail` is the action |
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

mod event;
mod layout;
mod read;
mod reader;
mod repair;
mod samples;
mod spans;
mod stack;
mod stacks;
mod write;

pub use stacks::write;
pub use write::start_spans;

use crate::contract::spans::{Spans, Wants};

/// The functions that read spans of traces.
pub const SPANS: Spans =
    Spans { wants: Wants::Stream, stacks: read::stacks, timeline: read::timeline, emit: read::emit, summary: None };

/// True if the input begins with a JSON object that is cut off before it shows whether it has events. Other keys may
/// precede them, and no other format starts like this. The reader fails if no events follow.
fn is_incomplete(head: &[u8]) -> bool {
    event::TraceEvent::parse_bytes(head).is_err_and(|error| error.is_eof())
}

/// True if an input starts like a trace: an array of events, or an object with one of the format's keys.
pub fn sniff(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    let has = |key: &str| memchr::memmem::find(head, key.as_bytes()).is_some();
    match head {
        // An empty array is a trace, too, even if its end is missing.
        [b'[', rest @ ..] => has("\"ph\"") || matches!(rest.trim_ascii_start(), b"" | b"]"),
        [b'{', ..] => {
            let keys = ["\"traceEvents\"", "\"displayTimeUnit\"", "\"beginningOfTime\"", "\"stackFrames\""];
            // If `head` ends within the object, one of the keys may still follow.
            keys.into_iter().any(has) || is_incomplete(head)
        }
        _ => false,
    }
}
