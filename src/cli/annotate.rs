//! The flags of `jitgraft annotate`.

use super::common::one_of;
use super::input::{InputArgs, OutputArgs, WeightArgs};
use super::output::check_name;
use super::removed;
use crate::annotate::{AnnotateFormat, AnnotateOptions, CodeGrouping, CodeOptions, FunctionPattern, TextOptions};
use crate::commands::annotate;
use crate::contract::format::Detail;
use crate::error::{Error, Result};
use crate::io::{self, InPath, OutPath, Terminal};
use crate::pipeline::open::default_input;
use crate::pipeline::recording::RecordingOptions;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::disasm::Syntax;
use crate::symbolize::symbols::SymbolOptions;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// The number of functions that are listed if neither FUNCTION nor --limit is given.
const HOTTEST: usize = 10;

/// The number of versions that are listed of each function if neither FUNCTION nor --merge is given. Some functions are
/// compiled a hundred times.
const CODES: usize = 8;

/// Flags of `annotate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft annotate\n  jitgraft annotate 'scan' -i perf.data --whole | less\n  \
    jitgraft annotate --merge --by line main\n  jitgraft annotate --limit 50 --to json -i perf.data -o hot.json\n  \
    jitgraft annotate callgrind.out.4711  # from valgrind with --dump-instr=yes")]
pub(super) struct AnnotateArgs {
    /// Function name or regular expression [default: hottest]
    #[arg(value_name = "FUNCTION")]
    function: Option<String>,
    /// Include source text from source maps in JSON
    ///
    /// Make sure that you may share this text.
    #[arg(long, hide_short_help = true)]
    source_text: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// Maximum number of functions; 0: all [default: 10]
    ///
    /// With FUNCTION, the default is all matches.
    #[arg(long, value_name = "N", hide_short_help = true)]
    limit: Option<usize>,
    /// Lines shown around each line with samples
    #[arg(long, value_name = "N", default_value_t = 3)]
    context: usize,
    /// Show whole functions
    ///
    /// With --by line, this shows everything from the first to the last line with samples.
    #[arg(long, conflicts_with = "context")]
    whole: bool,
    /// Merge the compiled versions of a function
    ///
    /// Equal versions become one listing; different ones are merged by source line.
    #[arg(long)]
    merge: bool,
    /// List costs by instruction or by source line
    #[arg(long = "by", value_parser = one_of(granularities()), default_value = "instruction", value_name = "WHAT")]
    #[arg(action = clap::ArgAction::Set)]
    by_line: bool,
    /// Trust the source paths in the recording
    ///
    /// A recording may name any file as a source. By default, jitgraft takes the sources of a packed
    /// recording only from its archive and, when root runs it, shows only files that everybody can read.
    #[arg(long, hide_short_help = true)]
    trust_sources: bool,
    /// Assembly syntax for x86
    #[arg(long, value_parser = one_of(syntaxes()), default_value = "att", value_name = "HOW", hide_short_help = true)]
    syntax: Syntax,
    /// Format [default: by the output's name, else text]
    #[arg(long, visible_alias = "format", value_enum, value_name = "FORMAT")]
    to: Option<FormatName>,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    weight: WeightArgs,
}

/// The values of `--by`, with `true` for costs by source line.
fn granularities() -> [(PossibleValue, bool); 2] {
    let (instruction, line) = (PossibleValue::new("instruction"), PossibleValue::new("line"));
    [(instruction.help("Each instruction"), false), (line.help("Source lines only"), true)]
}

fn syntaxes() -> [(PossibleValue, Syntax); 2] {
    let (att, intel) = (PossibleValue::new("att"), PossibleValue::new("intel"));
    let att = att.help("AT&T, as in perf and objdump: source operand first");
    [(att, Syntax::Att), (intel.help("Intel: destination operand first"), Syntax::Intel)]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// For people
    Text,
    /// For programs: all instructions, with bytes
    Json,
}

impl FormatName {
    /// The format that the output's file name implies: JSON for `.json`, otherwise text.
    fn from_output(output: &OutPath) -> Self {
        let OutPath::Path(path) = output else { return Self::Text };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }
}

impl AnnotateArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        // `false`: listings don't distinguish CPUs.
        let (given, mut load) = self.inputs.into_options(Detail::Names, false);
        // Source maps are used unless the user turned them off.
        load.sources.source_maps.usual = true;
        let (input, function) = input_and_function(self.function, given)?;
        let output: OutPath = self.output.into();
        let context = (!self.whole).then_some(self.context);
        if let OutPath::Path(path) = &output
            && self.to.is_none()
            && let Some(refusal) = removed::refused_page(path)
        {
            return Err(Error::usage(refusal));
        }
        if self.to.is_none() {
            check_name(&output, "annotate", &["json", "txt"])?;
        }
        let format = match self.to.unwrap_or_else(|| FormatName::from_output(&output)) {
            FormatName::Json => AnnotateFormat::Json,
            FormatName::Text => {
                let terminal = Terminal::from_output(&output);
                let width = terminal.map(|terminal| terminal.columns);
                let color = terminal.is_some_and(|terminal| terminal.color);
                AnnotateFormat::Text(TextOptions { context, width, color })
            }
        };
        load.sources.source_maps.text = self.source_text || matches!(format, AnnotateFormat::Text(_));
        load.symbols.search.trust_sources = self.trust_sources;
        let recording = load.recording();
        // An inlined call has no machine code to list. So inlined calls aren't resolved, and their samples count for
        // the function that they were inlined into.
        let symbols = SymbolOptions { inlines: false, ..recording.symbols };
        // Listings show where samples were taken, so the innermost frame of each stack is enough.
        let recording = RecordingOptions { max_stack: Some(1), branch_stack: false, symbols, ..recording };
        let options = AnnotateOptions {
            input,
            output,
            code: CodeOptions {
                // The user who names functions, or merges their code ranges, wants all code ranges. `--limit 0` means
                // no limit.
                codes: if function.is_some() || self.merge { usize::MAX } else { CODES },
                limit: self.limit.or(function.is_none().then_some(HOTTEST)).filter(|&functions| functions > 0),
                function,
                by_name: true,
                weight: self.weight.weight,
                syntax: self.syntax,
            },
            recording,
            grouping: CodeGrouping { merge: self.merge, by_line: self.by_line },
            format,
        };
        annotate::run(&options, job)
    }
}

/// The input and the pattern for functions. If the only word on the command line is the name of an existing file, it is
/// the input, as in all other commands.
fn input_and_function(word: Option<String>, given: Vec<InPath>) -> Result<(InPath, Option<FunctionPattern>)> {
    if given.len() > 1 {
        return Err(Error::usage("annotate reads one recording at a time; pass a single input"));
    }
    // `into_options` returns the default input if the user named none. It then counts as not named.
    let named = given.into_iter().next().filter(|given| *given != default_input());
    let (input, word) = match (named, word) {
        (None, Some(word)) if io::is_file(Path::new(&word)) => (InPath::from(PathBuf::from(word)), None),
        (named, word) => (named.unwrap_or_else(default_input), word),
    };
    // Other commands expect FILE first, but this one expects FUNCTION FILE. If the first word is a file and the second
    // isn't, the user has mixed them up.
    if let (InPath::Path(path), Some(word)) = (&input, &word)
        && io::is_file(Path::new(word))
        && !io::is_there(path)
    {
        let function = path.display();
        let remedy = format!("jitgraft annotate {function} -i {word}");
        let message = format!(
            "there is no file {function}; if that is the function, swap the two: FUNCTION comes first, then the file"
        );
        return Err(Error::usage(message).with_remedy(Some(remedy)));
    }
    let Some(word) = word else { return Ok((input, None)) };
    let pattern = FunctionPattern::new(&word)
        .map_err(|error| Error::usage(format!("'{word}' is too long to search for")).because(error))?;
    Ok((input, Some(pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_states_by_its_name_how_it_is_written() {
        for (name, expected) in
            [("/tmp/x.json", FormatName::Json), ("x.txt", FormatName::Text), ("json", FormatName::Text)]
        {
            assert_eq!(FormatName::from_output(&OutPath::Path(name.into())), expected, "{name}");
        }
        assert_eq!(FormatName::from_output(&OutPath::Stdout), FormatName::Text);
    }

    #[test]
    fn a_lone_word_that_is_a_file_is_the_recording() {
        let interpret = |word: &str, named: Option<&str>| {
            let given = named.map_or_else(default_input, |named| InPath::from(PathBuf::from(named)));
            let (input, function) = input_and_function(Some(word.to_owned()), vec![given]).unwrap();
            (input, function.map(|function| function.text))
        };
        let file = InPath::from(PathBuf::from("Cargo.toml"));
        assert_eq!(interpret("Cargo.toml", None), (file.clone(), None));
        assert_eq!(interpret("Cargo.toml", Some("Cargo.toml")), (file, Some("Cargo.toml".to_owned())));
        assert_eq!(interpret("no.such.file", None), (default_input(), Some("no.such.file".to_owned())));
        assert_eq!(interpret("f(", None), (default_input(), Some("f(".to_owned())));
    }
}
