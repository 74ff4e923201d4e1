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
//! | `C` and others | counters, flows, samples, memory dumps: they take no time and are left out |
//!
//! The document is streamed: memory is taken by the spans, not by the text. Its chunks can be parsed side by side and
//! are joined in order.
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

mod chunks;
mod event;
mod events;
mod json;
mod laid_out;
mod read;
mod reader;
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
    matches!(event::TraceEvent::default().scan(head, 0), Err(json::ScanStop::Short))
}

/// True if an input starts as one of ours.
pub fn sniff(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    let has = |key: &str| memchr::memmem::find(head, key.as_bytes()).is_some();
    match head {
        [b'[', rest @ ..] => has("\"ph\"") || matches!(rest.trim_ascii_start(), b"" | b"]"),
        [b'{', ..] => {
            let keys = ["traceEvents", "displayTimeUnit", "beginningOfTime"];
            keys.iter().any(|key| has(&format!("\"{key}\""))) || is_open(head)
        }
        _ => false,
    }
}
