//! A list of questions about spans, in text form. It can be kept in a file and used for other traces.
//!
//! ```text
//! # one question or setting a line
//! spans                    count, sum and spread of the top-level spans, by name
//! all                      count and sum of all spans, by name
//! sub borrow_tracker       what the spans of a name did
//! by-arg detail            time by an argument of the spans
//! gaps                     the times without any span, the longest first
//! exclude frame step       names that are no top-level spans
//! from 1ms                 only spans that end after this time
//! to 2.5s                  only spans that begin before this time
//! ```

use crate::analysis::filter::{Bound, TimeRange};
use crate::error::{Error, Result};
use crate::model::Nanos;

/// A question about spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A table with count, sum and spread of the top-level spans, by name.
    Spans,
    /// A table with count and sum of all spans, by name.
    All,
    /// A table of what the spans with this name did, by the value of their argument of the same name. Miri states a
    /// span's action in such an argument.
    Action(String),
    /// A table of the time of spans, by the value of the argument with this name.
    ByArg(String),
    /// A table of the longest times without any span.
    Gaps,
}

/// A list of questions, and the selection of spans that they are about. It comes from options on the command line, from
/// a file, or from a built-in list ([`MIRI`], [`CLANG`]).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preset {
    /// The questions, in the order in which they are answered.
    pub questions: Vec<Question>,
    /// Names of spans that are not top-level spans but merely enclose them. `None` means the default: the spans of
    /// interpreted calls in Miri's traces, and no spans in other traces.
    pub exclude: Option<Vec<String>>,
    /// Only count spans that overlap one of these ranges. If there are no ranges, spans of all times are counted.
    pub times: Vec<TimeRange>,
    /// How many of the first `questions` come from a list for many traces: a file or a built-in list. If a trace can't
    /// answer one of them, a line mentions it. The other questions are the user's own about this trace, so it is a
    /// failure if the trace can't answer one of those.
    pub optional: usize,
}

/// The questions from Miri's documentation (`doc/tracing.md`).
pub const MIRI: &str = "\
exclude frame step
spans
all
sub frame
sub step
sub borrow_tracker
sub data_race
sub layouting
sub resolve
sub validate_operand
gaps
";

/// Questions about a compilation by clang, for the trace that `-ftime-trace` writes.
pub const CLANG: &str = "\
by-arg detail
spans
all
";

impl Preset {
    /// The span arguments that [`Question::ByArg`] questions ask about.
    pub fn by_args(&self) -> Vec<String> {
        let keys = self.questions.iter().filter_map(|question| match question {
            Question::ByArg(key) => Some(key.clone()),
            _ => None,
        });
        keys.collect()
    }

    /// Parses a list of questions and settings, one per line, such as `gaps`, `by-arg KEY` or `from TIME`. The text
    /// from `#` to the end of a line is ignored. `time` parses a time and returns nanoseconds, or what is wrong with
    /// the text. Errors contain the number of the line.
    pub fn parse(text: &str, time: impl Fn(&str) -> Result<u64, String>) -> Result<Self> {
        let mut preset = Self::default();
        let mut limits = TimeRange { from: None, to: None };
        for (number, line) in text.lines().enumerate() {
            let line_error = |message: String| Error::usage(format!("line {}: {message}", number + 1));
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(keyword) = words.next() else { continue };
            let arguments: Vec<&str> = words.collect();
            let parse_bound = |text: &str| time(text).map_err(line_error).map(|time| Some(Bound::At(Nanos(time))));
            match (keyword, &arguments[..]) {
                ("spans", []) => preset.questions.push(Question::Spans),
                ("all", []) => preset.questions.push(Question::All),
                ("gaps", []) => preset.questions.push(Question::Gaps),
                ("sub", [name]) => preset.questions.push(Question::Action((*name).to_owned())),
                ("by-arg", [key]) => preset.questions.push(Question::ByArg((*key).to_owned())),
                ("exclude", names) => {
                    preset.exclude.get_or_insert_default().extend(names.iter().map(|name| (*name).to_owned()));
                }
                ("from", [text]) => limits.from = parse_bound(text)?,
                ("to", [text]) => limits.to = parse_bound(text)?,
                _ => {
                    let valid_lines = "spans, all, gaps, sub NAME, by-arg KEY, exclude NAME…, from TIME, to TIME";
                    return Err(line_error(format!("{line:?} is not one of: {valid_lines}")));
                }
            }
        }
        if limits.from.is_some() || limits.to.is_some() {
            preset.times.push(limits);
        }
        Ok(preset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Preset> {
        Preset::parse(text, |text| text.parse().map_err(|_| format!("{text} is no time")))
    }

    #[test]
    fn questions_line_by_line() {
        let preset = parse("# of mine\nexclude frame step\n\nspans # all of them\nsub x\nfrom 5\n").unwrap();
        assert_eq!(preset.questions, [Question::Spans, Question::Action("x".into())]);
        assert_eq!(preset.exclude.map(|names| names.len()), Some(2));
        assert_eq!(preset.times, [TimeRange { from: Some(Bound::At(Nanos(5))), to: None }]);
        assert_eq!(parse(CLANG).unwrap().by_args(), ["detail"]);
        assert_eq!(parse("spans").unwrap().exclude, None);
        assert_eq!(parse(MIRI).unwrap().questions.len(), 10);
        let error = parse("spans\nsub\n").unwrap_err();
        assert!(error.is_usage() && error.to_string().starts_with("line 2: \"sub\" is not one of"), "{error}");
        assert_eq!(parse("from x").unwrap_err().to_string(), "line 1: x is no time");
    }
}
