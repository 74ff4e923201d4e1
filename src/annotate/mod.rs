//! Lists hot code instruction by instruction, from a recording and its jitdumps or from a callgrind file, for the
//! commands `annotate` and `view`.
//!
//! ```text
//! recording    samples    functions with the cost of each address: a code range of JIT code, or a symbol in a file
//! callgrind               the same from exact costs; the file also states source lines and calls
//! → names                 the code ranges of one name (a runtime may compile a function many times); which to list
//! → machine_code          where the bytes of a function are read from
//! → lister                machine code, disassembled; names of what it refers to
//! → source_lines          from the input, the jitdump or DWARF; their text if the source file is available
//! → grouping              versions of a function merged, or costs by source line only
//! → text, json            written from the rows of the listings; so is the section of `view`
//! ```
//!
//! `annotate` opens the recording through `recording::annotate`. Callers that have already read a recording use
//! `recording::hot_code`, which also returns the instruction that each sample hit.

pub(crate) mod callgrind;
mod costs;
mod functions;
mod grouping;
pub(crate) mod json;
mod lister;
mod listing;
mod machine_code;
mod names;
mod options;
mod overview;
pub(crate) mod recording;
mod samples;
mod source_lines;
pub(crate) mod text;

pub use costs::{Cost, Costs};
pub use listing::{
    Callee, Calls, Code, Inclusive, Instruction, Listing, Row, SourceFile, SourceLine, Target, TargetOwner, Version,
};
pub use options::{AnnotateFormat, AnnotateOptions, CodeGrouping, CodeOptions, FunctionPattern, TextOptions};
pub use overview::{Annotation, EventTotal, NameSummary, Precision};
pub use recording::{HotCode, InstructionIndex, SampledInstructions};
