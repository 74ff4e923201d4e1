//! The options of `annotate`.

use crate::io::{InPath, OutPath};
use crate::model::stacks::Weight;
use crate::pipeline::recording::RecordingOptions;
use crate::resolve::disasm::Syntax;
use regex::Regex;

/// What to annotate, and how to show it.
#[derive(Debug)]
pub struct AnnotateOptions {
    /// A recording or a callgrind file.
    pub input: InPath,
    /// Where to write the listings.
    pub output: OutPath,
    /// Which code to list.
    pub code: CodeOptions,
    /// How to read a recording. Only the innermost frame of each stack is needed, as recorded.
    pub recording: RecordingOptions,
    /// How to group the listings.
    pub told: CodeGrouping,
    /// Text or JSON.
    pub format: AnnotateFormat,
}

/// How to group the listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CodeGrouping {
    /// Merge all versions of a function into one listing.
    pub merge: bool,
    /// Show costs by source line, without instructions.
    pub by_line: bool,
}

/// Selects functions: the one with exactly this name or, if there is none, those whose names match.
#[derive(Debug, Clone)]
pub struct FunctionPattern {
    /// The name as typed.
    pub text: String,
    /// The same as a regular expression. Text that isn't a valid expression is taken literally.
    pub regex: Regex,
}

impl FunctionPattern {
    /// Parses what the user typed. Fails only if the expression is too large.
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        let regex = Regex::new(text).or_else(|_| Regex::new(&regex::escape(text)))?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

/// Which code to list, and how.
#[derive(Debug)]
pub struct CodeOptions {
    /// Only these functions. `None` means the hottest ones.
    pub function: Option<FunctionPattern>,
    /// Maximum number of functions (with `by_name`) or code ranges to list. `None` means all.
    pub limit: Option<usize>,
    /// List functions with all their code ranges. Otherwise each code range stands alone.
    pub by_name: bool,
    /// Maximum number of code ranges per function, with `by_name`.
    pub codes: usize,
    /// Which weight of the samples to sum.
    pub weight: Weight,
    /// The assembly syntax.
    pub syntax: Syntax,
}

/// The output format.
#[derive(Debug, Clone, Copy)]
pub enum AnnotateFormat {
    /// Text for people.
    Text(TextOptions),
    /// JSON with all data.
    Json,
}

/// The options for text output.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// How many instructions to show before and after each one with samples. `None` means all.
    pub context: Option<usize>,
    /// The width of the terminal in columns. `None` means unlimited.
    pub width: Option<usize>,
    /// Use colors.
    pub colour: bool,
}
