//! Hot code, instruction by instruction, straight from a recording and its dumps: what `annotate` and `view` list.
//!
//! ```text
//! samples          recorded.rs     each stands at one place: so far into a piece of JIT code, or at an address of a file
//! → functions      functions.rs    places of one piece of code, or of one symbol, with what each address cost
//! → names          names.rs        the codes of one name: a runtime compiles a function again and again
//! → hottest        hot.rs          which of them are listed
//! → listings       lister.rs       bytes from the dump or the ELF file, decoded for the address they had
//! → targets        lister.rs       what branches lead to, in the process and at the time of the last sample
//! → source lines   sources.rs      the dump's entries, DWARF; text where the file is here
//! → told            together.rs    codes of one name together, or by source line alone
//! → text, JSON      text/, json.rs
//! ```
//!
//! A callgrind file has no samples but exact costs of addresses: `counted/` makes functions and listings of them.
//!
//! Those who have read a recording themselves ask `hot::hot_code`, which reports each sample, too, where it stands.

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
