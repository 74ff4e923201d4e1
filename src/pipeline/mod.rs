//! The way of a profile, for every job alike: open · detect · survey · read or resolve · filter · merge.
//!
//! | file | what it is for |
//! |---|---|
//! | [`inputs`] | the inputs of a job, of which the first may be open |
//! | [`open`] | opens an input, takes off what it is packed in, finds its format |
//! | `archive` | a recording with all that names its code, in one file |
//! | [`any`] | any input → rows of stacks, pushed into a sink |
//! | `authored` | names and lines of generated scripts → those of their authors, for inputs that came with names |
//! | `demangled` | linker names → readable ones, for inputs that came with names |
//! | `mistaken`, `nothing_left` | what was meant by an input that is not a profile, or by a filter that leaves nothing
//! |
//! | `listed`, `merging`, `texts`, `merged_about` | thousands of inputs → one sum; what cannot be read is left out |
//! | [`sink`] | what a job does with rows: sums, order of time, batches |
//! | `rows` | any input → a writer of rows, as they are read |
//! | `repack` | an output that is packed as its input was |
//! | [`recording`] | perf.data → samples whose addresses have names |
//! | [`script_text`] | perf script's text → the same text with names, or its stacks |
//! | `lines`, `readers` | texts that are read in blocks side by side → what their parts hold together |
//! | `running` | a process that runs now: its command, what it has mapped, its files |
//! | `sorted` | folded stacks → their sums, sorted, where no more is needed |
//! | `spans` | inputs that hold spans of time → whatever their format reads of them |
//! | `outputs` | stacks → one output for each event |
//! | [`table`] | rows of cells → text, CSV or JSON |

pub mod any;
pub(crate) mod archive;
mod authored;
pub(crate) mod callgrind;
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
pub(crate) mod rows;
pub(crate) mod running;
pub mod script_text;
pub mod sink;
pub(crate) mod sorted;
pub(crate) mod spans;
pub(crate) mod spare;
pub mod table;
pub(crate) mod terminal;
mod texts;
pub(crate) mod writers;

pub use job::{Job, Outcome};
