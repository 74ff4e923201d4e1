//! What the user asks of annotate.

use crate::io::{InPath, OutPath};
use crate::model::stacks::Weight;
use crate::pipeline::recording::RecordingOptions;
use crate::resolve::disasm::Syntax;
use regex::Regex;

/// What to list, and how.
#[derive(Debug)]
pub struct AnnotateOptions {
    /// What to read.
    pub input: InPath,
    /// Where to write.
    pub output: OutPath,
    /// Which code.
    pub code: CodeOptions,
    /// How to read; of each stack only the innermost frame is needed, and as recorded.
    pub recording: RecordingOptions,
    /// What of the code is told.
    pub told: Told,
    /// How it is written.
    pub format: AnnotateFormat,
}

/// What of the code is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Whether the codes of one name are told together.
    pub merge: bool,
    /// Whether costs are told of source lines, not of instructions.
    pub by_line: bool,
}

/// Which functions are listed: the one with exactly this name, or else those whose names match.
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

/// Which code is listed, and how it is spelled.
#[derive(Debug)]
pub struct CodeOptions {
    /// Which functions, by name; `None`: the hottest.
    pub function: Option<FunctionPattern>,
    /// How many functions, or pieces of code, at most.
    pub limit: Option<usize>,
    /// Whether a function is listed with all of its codes and counts once; else each piece of code is by itself.
    pub by_name: bool,
    /// How many codes of one function at most, if `by_name`.
    pub codes: usize,
    /// What is summed.
    pub weight: Weight,
    /// How instructions are spelled.
    pub syntax: Syntax,
}

/// How listings are written.
#[derive(Debug, Clone, Copy)]
pub enum AnnotateFormat {
    /// For people.
    Text(TextOptions),
    /// A page of everything, of which so many instructions on either side of a hot one are seen at first, `None`: all.
    Html(Option<usize>),
    /// For programs: everything.
    Json,
}

/// What a text shows.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// So many instructions are shown on either side of one with samples; `None`: all of them.
    pub context: Option<usize>,
    /// Columns of the terminal; `None`: lines may be of any length.
    pub width: Option<usize>,
    /// Whether colours are wanted.
    pub colour: bool,
}
