//! Reads the text output of `perf script` and of simpleperf's `report_sample.py`, and rewrites it frame by frame.
//!
//! ```text
//! node 15670   477.666805:    1001001 cpu-clock:
//! ⇥    7f710cede099 [unknown] (/tmp/perf-15670.map)
//! ⇥           2724a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!
//! ```
//!
//! What to know about the format:
//! * The fields of a sample's first line (the header) depend on `-F`. Without `pid`, the number is a *thread* ID.
//!   Command names may contain spaces and digits.
//! * Times are truncated to microseconds unless `--ns` was given.
//! * perf up to at least 6.1 prints addresses in files relative to the file, 7.x prints them absolute. Addresses in
//!   anonymous memory and unknown objects (`[unknown]`) are always absolute.
//! * Nothing is quoted: a symbol may contain anything, including spaces and parentheses.
//!
//! | files | for |
//! |---|---|
//! | `layout`, `lines`, `header`, `frame`, `fields`, `record_lines` | recognizing the fields of a text, its kinds of lines, and what each line contains |
//! | `read` | text → stacks |
//! | `rewrite` | text → the same text with names |
//! | `sample_memo` | what both remember of samples that repeat |
//! | `output_fields`, `write`, `measured`, `registers`, `branches` | printing samples of perf.data as perf script does (`-F`) |
//!
//! Printed by `tools/perf/builtin-script.c` and `tools/perf/util/evsel_fprintf.c`.

pub mod branches;
mod fields;
mod frame;
mod header;
pub mod layout;
mod lines;
pub mod measured;
mod output_fields;
pub mod read;
pub mod record_lines;
pub mod registers;
pub mod rewrite;
mod sample_memo;
pub mod write;

pub use layout::{Layout, has_lines, may_be_text, sniff};
pub use lines::{cut, cut_without_source_lines};
