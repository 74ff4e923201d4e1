//! Lists hot code instruction by instruction, from a recording and its jitdumps, for the commands `annotate` and
//! `view`.
//!
//! ```text
//! samples          recorded.rs     each stands at one place: so far into a piece of JIT code, or at an address of a file
//! → functions      functions.rs    places of one piece of code, or of one symbol, with what each address cost
//! → names          names.rs        the codes of one name: a runtime compiles a function again and again
//! → hottest        hot.rs          which of them are listed
//! → listings       lister.rs       bytes from the dump or the ELF file, decoded for the address they had
//! → targets        lister.rs       what branches lead to, in the process and at the time of the last sample
//! → source lines   sources.rs      the dump's entries, DWARF; text where the file is here
//! → grouping       together.rs     versions of one function merged, or costs by source line only
//! → text, JSON     text/, json.rs
//! ```
//!
//! A callgrind file has no samples but the exact cost of each address; `counted/` turns these costs into functions and
//! listings.
//!
//! `annotate` opens the recording through `recorded`. Callers that have already read a recording use `hot::hot_code`,
//! which also returns the instruction of each sample.

mod annotated;
mod costs;
pub(crate) mod counted;
mod functions;
pub(crate) mod hot;
pub(crate) mod json;
mod lister;
mod names;
mod options;
pub(crate) mod recorded;
mod sources;
pub(crate) mod text;
mod together;

pub use annotated::{
    Annotation, Calls, Code, EventTotal, Inclusive, Line, LineTarget, Listing, NameSummary, Precision, SourceFile,
    SourceLine, SourceLineCosts, TargetPlace, Version,
};
pub use costs::{Cost, Costs};
pub use hot::{EventSpots, HotCode, Spot};
pub use options::{AnnotateFormat, AnnotateOptions, CodeGrouping, CodeOptions, FunctionPattern, TextOptions};
