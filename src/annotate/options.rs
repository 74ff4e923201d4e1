//! The options of `annotate`.

use crate::io::{InPath, OutPath};
use crate::model::stacks::Weight;
use crate::pipeline::recording::RecordingOptions;
use crate::symbolize::disasm::Syntax;
use regex::Regex;

/// What to annotate, and how to show it.
#[derive(Debug)]
pub struct AnnotateOptions {
    /// The file to read: a recording or a callgrind file.
    pub input: InPath,
    /// Where to write the listings.
    pub output: OutPath,
    /// Which code to list, and in which form.
    pub code: CodeOptions,
    /// How to read a recording. Annotating only needs the innermost frame of each stack, so reading can be limited to
    /// that.
    pub recording: RecordingOptions,
    /// Whether to merge versions of a function, or instructions of a line.
    pub grouping: CodeGrouping,
    /// The output format: text or JSON.
    pub format: AnnotateFormat,
}

/// How to combine the listings of single code ranges: by function, by source line, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CodeGrouping {
    /// Merge all versions of a function into one listing.
    pub merge: bool,
    /// Show costs by source line, without instructions.
    pub by_line: bool,
}

/// A name or regular expression that selects functions. If there are functions with exactly this name, only these are
/// selected; otherwise, all functions whose names match the expression.
#[derive(Debug, Clone)]
pub struct FunctionPattern {
    /// The text that the user typed.
    pub text: String,
    /// The text as a regular expression. If it isn't a valid one, it matches literally.
    pub regex: Regex,
}

impl FunctionPattern {
    /// Parses what the user typed. Only fails if the regular expression is too large.
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        let regex = Regex::new(text).or_else(|_| Regex::new(&regex::escape(text)))?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

/// Which code to list, and how.
#[derive(Debug)]
pub struct CodeOptions {
    /// List the functions that match this. `None`: list the hottest functions.
    pub function: Option<FunctionPattern>,
    /// The maximum number of functions (with `by_name`) or of code ranges to list. `None` means all.
    pub limit: Option<usize>,
    /// Select functions by name and list all their code ranges. Otherwise, each code range is selected on its own.
    pub by_name: bool,
    /// The maximum number of code ranges to list for each function, with `by_name`.
    pub codes: usize,
    /// Which measure to sum: the samples' weights or their number.
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
    /// How many instructions (or source lines) to show before and after each one that has costs. `None` means all.
    pub context: Option<usize>,
    /// The width of the terminal in columns. `None` means unlimited.
    pub width: Option<usize>,
    /// Use colors.
    pub color: bool,
}
