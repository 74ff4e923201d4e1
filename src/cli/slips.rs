//! Recognizes common mistakes on the command line, and suggests what the user most likely meant.

use crate::formats;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words that users mistake for a command, each with a hint.
const COMMANDS: &[(&str, &str)] = &[
    ("diff", "compare two profiles with jitgraft report --diff BEFORE AFTER (flamegraph and view have --diff, too)"),
    ("compare", "compare two profiles with jitgraft report --diff BEFORE AFTER"),
    ("convert", "jitgraft export --to FORMAT converts a profile"),
    ("perfetto", "jitgraft export --to chrome writes a file that Perfetto opens"),
    ("top", "jitgraft report lists the hottest functions"),
    ("list", "jitgraft report lists the hottest functions"),
    ("flame", "jitgraft flamegraph draws a flame graph"),
    ("serve", "jitgraft view writes a page that needs no server"),
];

/// Words that users mistake for a format, each with a hint.
const FORMATS: &[(&str, &str)] = &[
    ("perfetto", "--to chrome writes a file that Perfetto opens"),
    ("trace", "--to chrome writes a file that trace viewers open"),
    ("sql", SQL),
    ("sqlite", "--to csv writes a file that SQLite imports"),
    ("duckdb", DUCKDB),
    ("parquet", "--to parquet needs a build with --features tables"),
    ("svg", "jitgraft flamegraph -o FILE.svg draws a flame graph"),
    ("html", "jitgraft view writes a page"),
    ("collapsed", "--to folded writes folded stacks"),
    ("hotspot", "hotspot opens the perf.data that jitgraft inject --relocate writes"),
];

/// Flags of other commands or tools that users pass to a command which lacks them, each with a hint.
const FLAGS: &[(&str, &str)] = &[
    ("--to", "this command's output is chosen by its name (-o); jitgraft export --to FORMAT converts profiles"),
    ("--format", "this command's output is chosen by its name (-o); jitgraft export --to FORMAT converts profiles"),
    (
        "-F",
        "the columns of tables cannot be chosen (--to csv has all); -F chooses fields in script, and the rate in record",
    ),
    ("--fields", "the columns of tables cannot be chosen (--to csv has all); --fields chooses fields in script"),
    ("--pid", "jitgraft export --pid PID keeps some processes, and so do all commands that show profiles"),
    ("--name", "jitgraft stats --sub NAME and report --name NAME select spans by name"),
    ("--from", "use --time FROM,TO"),
    ("--group-by", "use --by"),
];

const SQL: &str = if cfg!(feature = "tables") {
    "for SQL, --to csv and --to parquet write one line per sample"
} else {
    "for SQL, --to csv writes one line per sample; --to parquet needs a build with --features tables"
};

const DUCKDB: &str = if cfg!(feature = "tables") {
    "DuckDB reads what --to csv and --to parquet write"
} else {
    "DuckDB reads what --to csv writes; --to parquet needs a build with --features tables"
};

/// A hint for an error of the command line. `words` is the whole command line. `None` if there is no hint.
pub(super) fn hint(error: &clap::Error, words: &[String]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = find_text(error, ContextKind::InvalidSubcommand)?;
            match find_hint(COMMANDS, word) {
                Some(hint) => Some(hint.to_owned()),
                None => Some(format!("there is no command or file named {word}")),
            }
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let flag = find_text(error, ContextKind::InvalidArg)?;
            if !flag.starts_with("--to") {
                return None;
            }
            let word = find_text(error, ContextKind::InvalidValue)?;
            let lower = word.to_ascii_lowercase();
            if formats::FORMATS.iter().any(|format| format.name == lower && format.write.is_some()) {
                if words.iter().any(|word| ["export", "merge"].contains(&&word[..])) {
                    return Some(format!("names of formats are in lower case: --to {lower}"));
                }
                return Some(format!("jitgraft export --to {lower} writes that format"));
            }
            find_hint(FORMATS, word).map(str::to_owned)
        }
        ErrorKind::UnknownArgument => {
            let word = find_text(error, ContextKind::InvalidArg)?;
            let flag = word.split('=').next().unwrap_or(word);
            if let Some(hint) = find_hint(FLAGS, flag) {
                return Some(hint.to_owned());
            }
            let is_rewriter = words.iter().any(|word| ["inject", "script", "callgrind"].contains(&&word[..]));
            if word.starts_with('-') || !is_rewriter {
                return None;
            }
            Some(format!("use -o for the output: -o {word}"))
        }
        _ => None,
    }
}

/// A text that clap stored in an error, by its kind. `None` if the error has no text of this kind.
pub(super) fn find_text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Finds the hint for a word that the user typed. `None` if there is none.
fn find_hint<'h>(hints: &[(&str, &'h str)], word: &str) -> Option<&'h str> {
    let (_, hint) = hints.iter().find(|(typed, _)| typed.eq_ignore_ascii_case(word))?;
    Some(*hint)
}

/// An error message about an invalid number, phrased better than the number parser does. `None` for other errors.
pub(super) fn about_number(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = error.render().to_string();
    let is_negative = find_text(error, ContextKind::InvalidValue).is_some_and(|value| value.starts_with('-'));
    if let Some((before, range)) = text.split_once(" is not in ") {
        let (range, behind) = range.split_once('\n').unwrap_or((range, ""));
        let (least, most) = range.split_once("..")?;
        let before = before.rsplit_once(": ").map_or(before, |(before, _)| before);
        let bounds = match most.trim_start_matches('=') {
            "" => format!("must be at least {least}"),
            most => format!("must be from {least} to {most}"),
        };
        return Some(format!("{before}: {bounds}\n{behind}"));
    }
    let said = [
        ("number would be zero for non-zero type", "must be at least 1"),
        ("invalid digit found in string", if is_negative { "must not be negative" } else { "must be a whole number" }),
        ("cannot parse integer from empty string", "must be a whole number"),
        ("number too large to fit in target type", "is too large"),
        ("number too small to fit in target type", "is too small"),
        ("invalid float literal", "must be a number"),
    ];
    let (parser, people) = said.into_iter().find(|(parser, _)| text.contains(parser))?;
    Some(text.replace(parser, people))
}

#[cfg(test)]
mod tests {
    use super::super::Cli;

    #[test]
    fn slips_lead_on() {
        for (line, hint) in [
            ("diff a b", Some("report --diff BEFORE AFTER")),
            ("frobnicate", Some("no command or file named")),
            ("export --to perfetto x", Some("--to chrome")),
            ("export --to sql x", Some("--to csv")),
            ("export --to DuckDB x", Some("--to csv")),
            ("export --to FireFox x", Some("in lower case: --to firefox")),
            ("report --to folded x", Some("export --to folded")),
            ("report --format speedscope x", Some("export --to speedscope")),
            ("doctor --to SVG x", Some("jitgraft flamegraph -o FILE.svg")),
            ("stats --to perfetto x", Some("--to chrome")),
            ("export --to arrow x", None),
            ("export --to Arrow x", None),
            ("export --to PARQUET x", Some("--to parquet")),
            ("inject in out", Some("-o out")),
            ("flamegraph --to svg in", Some("chosen by its name (-o)")),
            ("view --format=html in", Some("chosen by its name (-o)")),
            ("report -F overhead,sym in", Some("--to csv has all")),
            ("inject --pid 7 in", Some("export --pid")),
            ("collapse --group-by pid in", Some("use --by")),
            ("report --no-such-flag", None),
        ] {
            let words: Vec<String> = ["jitgraft"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
            let error = Cli::from_words(words.iter().map(Into::into)).unwrap_err();
            let said = super::hint(&error, &words);
            assert_eq!(said.is_some(), hint.is_some(), "{line}: {said:?}");
            let said = said.unwrap_or_default();
            assert!(said.contains(hint.unwrap_or_default()), "{line}");
            assert!(!cfg!(feature = "tables") || !said.contains("--features"), "{line}: {said}");
        }
    }

    #[test]
    fn numbers_are_refused_in_words() {
        for (line, said) in [
            ("report --limit x a", "must be a whole number"),
            ("report --max-stack 0 a", "must be at least 1"),
            ("report --threads 99999999999999999999999 a", "is too large"),
            ("report --limit -1 a", "must not be negative"),
            ("report --threads -3 a", "must not be negative"),
            ("report --percent-limit -3 a", "expected 0 to 100"),
            ("report --tid 99999999999 a", "must be from -2147483648 to 2147483647"),
            ("report --width 3 a", "must be from 20 to 65535"),
            ("flamegraph --width 0 a", "must be from 100 to"),
        ] {
            let words = ["jitgraft"].into_iter().chain(line.split(' ')).map(Into::into);
            let error = Cli::from_words(words).unwrap_err();
            let text = super::about_number(&error).unwrap_or_else(|| error.to_string());
            assert!(text.contains(said), "{line}: {text}");
        }
    }
}
