//! The options of annotate.

use crate::io::{InPath, OutPath};
use crate::model::stacks::Weight;
use crate::pipeline::recording::RecordingOptions;
use crate::resolve::disasm::Syntax;
use regex::Regex;

/// The functions to list, and the layout.
#[derive(Debug)]
pub struct AnnotateOptions {
    /// The input.
    pub input: InPath,
    /// The output.
    pub output: OutPath,
    /// The code to list.
    pub code: CodeOptions,
    /// How to read; of each stack only the innermost frame is needed, and as recorded.
    pub recording: RecordingOptions,
    /// The parts of the code that are reported.
    pub told: CodeGrouping,
    /// The way it is written.
    pub format: AnnotateFormat,
}

/// The parts of the code that are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CodeGrouping {
    /// True if the code ranges of one name are reported together.
    pub merge: bool,
    /// True if costs are reported for source lines, not of instructions.
    pub by_line: bool,
}

/// The functions that are listed: the one with exactly this name, or else those whose names match.
#[derive(Debug, Clone)]
pub struct FunctionPattern {
    /// The name as typed.
    pub text: String,
    /// The same as a regular expression; of a text that is not one, its letters.
    pub regex: Regex,
}

impl FunctionPattern {
    /// From what was typed.
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        let regex = Regex::new(text).or_else(|_| Regex::new(&regex::escape(text)))?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

/// The code that listed, and its spelling.
#[derive(Debug)]
pub struct CodeOptions {
    /// The functions, by name; `None`: the hottest.
    pub function: Option<FunctionPattern>,
    /// The number of functions, or code ranges, at most.
    pub limit: Option<usize>,
    /// True if a function is listed with all of its code ranges and counts once; else each code range is by itself.
    pub by_name: bool,
    /// The number of versions of one function at most, if `by_name`.
    pub codes: usize,
    /// The weight that is summed.
    pub weight: Weight,
    /// The way instructions are spelled.
    pub syntax: Syntax,
}

/// The way listings are written.
#[derive(Debug, Clone, Copy)]
pub enum AnnotateFormat {
    /// For people.
    Text(TextOptions),
    /// For programs: everything.
    Json,
}

/// The parts of a text.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// The number of instructions that are shown on either side of one with samples; `None`: all of them.
    pub context: Option<usize>,
    /// Columns of the terminal; `None`: lines may be of any length.
    pub width: Option<usize>,
    /// True if colors are wanted.
    pub colour: bool,
}
