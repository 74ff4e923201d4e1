//! Lists hot code instruction by instruction, from a recording and its jitdumps, for the commands `annotate` and
//! `view`.
//!
//! ```text
//! samples          recorded.rs     each has a place: an offset in a JIT code range, or an address in a file
//! → functions      functions.rs    places in the same code range or symbol, with the cost of each address
//! → names          names.rs        the code ranges of one name: a runtime may compile a function many times
//! → hottest        hot.rs          selects the functions to list
//! → listings       lister.rs       machine code from the jitdump or the ELF file, disassembled
//! → targets        lister.rs       what branches lead to, in the process and at the time of the last sample
//! → source lines   sources.rs      from the jitdump or DWARF; their text if the source file is available
//! → grouping       together.rs     versions of a function merged, or costs by source line only
//! → text, JSON     text/, json.rs
//! ```
//!
//! A callgrind file has no samples but the exact cost of each address; `counted/` turns these costs into functions and
//! listings.
//!
//! `annotate` opens the recording through `recorded`. Callers that have already read a recording use `hot::hot_code`,
//! which also returns the instruction that each sample hit.

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
