//! What every command does with a profile: open an input, detect its format, survey it, read or symbolize it, filter,
//! merge.
//!
//! | file | contents |
//! |---|---|
//! | [`inputs`] | the inputs of a job; the first one may already be open |
//! | [`open`] | opens and decompresses an input and detects its format |
//! | `archive` | archives of `jitgraft pack`: a recording with the files that name its code |
//! | [`any`] | reads any input into rows of stacks and pushes them into a sink |
//! | `complete` | what is done to every profile after reading: demangling (`demangled`), source maps (`authored`), filters |
//! | `bare_addresses` | names the addresses of profiles without names, such as pprof's |
//! | `mistaken`, `nothing_left` | hints about files that aren't profiles, and about filters that leave no samples |
//! | `listed`, `merging`, `texts`, `merged_about` | merge thousands of inputs, skipping those that can't be read |
//! | [`sink`] | what happens to rows that were read: add them up, keep them in order, or pass them on in batches |
//! | `row_feeder` | passes rows of any input to a writer as they are read |
//! | `repack` | compresses an output like its input |
//! | [`recording`] | reads perf.data and symbolizes its samples |
//! | [`script_text`] | names frames in perf script's text, and reads it as stacks |
//! | `blocks`, `lines`, `readers` | cut a text into blocks, read them in parallel, and combine the results |
//! | `running` | a running process: its command, mappings and files |
//! | `spans` | passes inputs with time spans to the readers of their formats |
//! | `outputs` | writes one output per event |
//! | [`table`] | writes rows of cells as text, CSV or JSON |

pub mod any;
pub(crate) mod archive;
mod authored;
pub(crate) mod bare_addresses;
mod blocks;
pub(crate) mod callgrind;
mod complete;
mod demangled;
mod estimate;
pub mod inputs;
mod job;
mod lines;
pub(crate) mod listed;
mod merged_about;
pub(crate) mod merging;
pub(crate) mod mistaken;
mod nothing_left;
pub mod open;
pub(crate) mod outputs;
#[cfg_attr(not(feature = "cli"), path = "no_progress.rs")]
pub(crate) mod progress;
mod readers;
pub mod recording;
pub(crate) mod repack;
pub(crate) mod row_feeder;
pub(crate) mod running;
pub mod script_text;
pub mod sink;
pub(crate) mod spans;
pub mod table;
pub(crate) mod terminal;
mod texts;
pub(crate) mod writers;

pub use job::{Job, Outcome};
