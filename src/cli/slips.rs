//! Recognizes common mistakes on the command line, and suggests what the user most likely meant.

use crate::contract::format::Format;
use crate::formats;
use crate::runtimes::is_misspelled;
use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words that users type as a command, although there is no such command. Each has a hint.
const COMMANDS: &[(&str, &str)] = &[
    ("diff", "compare two profiles with jitgraft report --diff BEFORE AFTER (flamegraph and view have --diff, too)"),
    ("compare", "compare two profiles with jitgraft report --diff BEFORE AFTER"),
    ("convert", "jitgraft export --to FORMAT converts a profile"),
    ("perfetto", "jitgraft export --to chrome writes a file that Perfetto opens"),
    ("top", "jitgraft report lists the hottest functions"),
    ("list", "jitgraft report lists the hottest functions"),
    ("flame", "jitgraft flamegraph draws a flame graph"),
    ("svg", "jitgraft flamegraph draws a flame graph"),
    ("fold", "jitgraft collapse folds stacks"),
    ("folded", "jitgraft collapse folds stacks"),
    ("stackcollapse", "jitgraft collapse folds stacks"),
    ("html", "jitgraft view writes a page"),
    ("csv", "jitgraft report --to csv and jitgraft export --to csv write CSV"),
    ("json", "jitgraft report --to json and jitgraft export --to json write JSON"),
    ("pprof", "jitgraft export --to pprof writes a profile for pprof"),
    ("speedscope", "jitgraft export --to speedscope writes a profile for speedscope"),
    ("firefox", "jitgraft export --to firefox writes a profile for the Firefox Profiler"),
    ("add", "jitgraft merge adds up profiles"),
    ("archive", "jitgraft pack packs a recording with its symbols"),
    ("buildid-list", "perf buildid-list works on the output of jitgraft inject"),
    ("annotation", "jitgraft annotate lists hot code"),
    ("check", "jitgraft doctor finds out why frames are unnamed"),
    ("why", "jitgraft doctor finds out why frames are unnamed"),
    ("version", "jitgraft --version prints the version"),
    ("serve", "jitgraft view writes a page that needs no server"),
];

/// Words that users type as a format (`--to`), although there is no such format. Each has a hint.
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

/// Flags that users pass to a command that lacks them, because other commands or tools have them. Each has a hint.
const FLAGS: &[(&str, &str)] = &[
    ("--to", "the output's name (-o FILE) determines its format; jitgraft export --to FORMAT converts profiles"),
    ("--format", "the output's name (-o FILE) determines its format; jitgraft export --to FORMAT converts profiles"),
    ("-F", "table columns cannot be chosen (--to csv has all); -F selects fields in script, and the rate in record"),
    ("--fields", "table columns cannot be chosen (--to csv has all); in script, --fields selects fields"),
    ("--pid", "--pid works with jitgraft export and all commands that show profiles"),
    ("--json", "use --to json, or an output's name that ends in .json"),
    ("--csv", "use --to csv, or an output's name that ends in .csv"),
    ("--top", "to list the N hottest functions, use jitgraft report --limit N"),
    ("--head", "to list the N hottest functions, use jitgraft report --limit N"),
    ("--lines", "to list costs by source line, use jitgraft report --by line"),
    ("--svg", "jitgraft flamegraph -o FILE.svg draws a flame graph"),
    ("--open", "view -o FILE.html writes a page that any browser opens"),
    ("--html", "jitgraft view -o FILE.html writes a page"),
    ("--stdio", "jitgraft report prints text; view writes a page"),
    ("--map", "use --perf-map FILE"),
    ("--perfmap", "use --perf-map FILE"),
    ("--dump", "use --jitdump FILE"),
    ("--jit-dump", "use --jitdump FILE"),
    ("--log", "use --jit-log FILE"),
    ("--verify", "jitgraft doctor checks a recording"),
    ("--name", "jitgraft stats --sub NAME and report --name NAME select spans by name"),
    ("--from", "use --time FROM,TO"),
    ("--group-by", "use --by"),
];

/// Words that users type as a key (`--by`, `--sort`), although there is no such key. Each has a hint.
const KEYS: &[(&str, &str)] = &[
    ("file", "--by dso groups by program or library, and --by line by source line"),
    ("library", "--by dso groups by program or library"),
    ("process", "--by pid groups by process, and --by comm by the name of the thread"),
    ("command", "--by comm groups by the name of the thread"),
    ("thread", "--by tid groups by thread, and --by comm by the name of the thread"),
    ("core", "--by cpu groups by processor"),
    ("processor", "--by cpu groups by processor"),
    ("address", "report --addrs lists unnamed functions by address"),
    ("event", "--event NAME selects an event"),
    ("count", "--sort self and --sort total sort by cost"),
    ("time", "--sort self and --sort total sort by cost"),
    ("name", "--by sym groups by function"),
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

/// A hint that says what the user probably meant, for an error of the command line. `words` is the whole command line,
/// and `cli` describes all commands. `None` if there is no hint.
pub(super) fn hint(error: &clap::Error, words: &[String], cli: &Command) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = find_text(error, ContextKind::InvalidSubcommand)?;
            match find_hint(COMMANDS, word) {
                Some(hint) => Some(hint.to_owned()),
                // clap proposes a command of similar spelling.
                None if error.get(ContextKind::SuggestedSubcommand).is_some() => None,
                None => Some(format!("there is no command or file named {word}")),
            }
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let flag = find_text(error, ContextKind::InvalidArg)?;
            let word = find_text(error, ContextKind::InvalidValue)?;
            let flag = flag.split([' ', '=']).next().unwrap_or(flag);
            if ["--by", "--group-by", "--sort"].contains(&flag) {
                return find_hint(KEYS, word).map(str::to_owned);
            }
            if ["--pid", "--tid"].contains(&flag) && word.chars().any(char::is_alphabetic) {
                return Some(format!("--comm {word} selects processes and threads by name"));
            }
            if flag != "--to" {
                return None;
            }
            let lower = word.to_ascii_lowercase();
            // `formats::FORMATS` is the table of all formats; `FORMATS` is the list of wrong words in this file.
            if formats::FORMATS.iter().any(|format| format.name == lower && format.write.is_some()) {
                if words.iter().any(|word| ["export", "merge"].contains(&&word[..])) {
                    return Some(format!("names of formats are in lower case: --to {lower}"));
                }
                return Some(format!("jitgraft export --to {lower} writes that format"));
            }
            // If the word resembles a format that can be written, clap proposes that one. So don't look for a similar
            // word in `FORMATS`, which may have a worse proposal.
            let is_format = |format: &Format| format.write.is_some() && is_misspelled(&lower, format.name);
            let similar = if formats::FORMATS.iter().any(is_format) { None } else { find_similar(FORMATS, word) };
            find_hint(FORMATS, word).or(similar).map(str::to_owned)
        }
        ErrorKind::UnknownArgument => {
            let word = find_text(error, ContextKind::InvalidArg)?;
            let flag = word.split('=').next().unwrap_or(word);
            if let Some(hint) = hint_for_late_command(flag, words, cli) {
                return Some(hint);
            }
            if let Some(hint) = find_hint(FLAGS, flag) {
                return Some(hint.to_owned());
            }
            if let Some(commands) = commands_with_flag(flag, cli) {
                return Some(format!("{flag} is a flag of {commands}"));
            }
            // A word that isn't a flag is one input too many, probably meant as the output.
            let takes_one_input = |word: &String| ["inject", "script", "callgrind", "pack"].contains(&&word[..]);
            if word.starts_with('-') || !words.iter().any(takes_one_input) {
                return None;
            }
            Some(format!("use -o for the output: -o {word}"))
        }
        _ => None,
    }
}

/// The commands that have a flag, for use in a sentence. `None` if no command has it.
fn commands_with_flag(flag: &str, cli: &Command) -> Option<String> {
    /// The maximum number of commands to name.
    const SHOWN: usize = 3;
    let long = flag.strip_prefix("--")?;
    let mut names = Vec::new();
    for command in cli.get_subcommands().filter(|command| !command.is_hide_set()) {
        if command.get_arguments().any(|arg| arg.get_long() == Some(long) && !arg.is_hide_set()) {
            names.push(format!("jitgraft {}", command.get_name()));
        }
    }
    if names.is_empty() {
        return None;
    }
    let others = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    Some(format!("{}{more}", names.join(", ")))
}

/// The hint for a command that comes after the unknown flag or after a file. `None` if the command comes first.
fn hint_for_late_command(flag: &str, words: &[String], cli: &Command) -> Option<String> {
    let position = words.iter().skip(1).position(|word| cli.find_subcommand(word).is_some())? + 1;
    let (before, command) = (&words[1..position], &words[position]);
    if before.iter().any(|word| word.split('=').next() == Some(flag)) {
        return Some(format!("the command comes before its flags: jitgraft {command} {flag} …"));
    }
    let is_file_first = before.first().is_some_and(|word| !word.starts_with('-'));
    is_file_first.then(|| format!("the command comes first: jitgraft {command} FILE"))
}

/// If an error is about an unknown flag or command, removes those of clap's tips that would mislead the user. clap
/// proposes to pass such a word as a value after `--`, but nobody means an input file of that name. clap also proposes
/// the flag or command with the most similar spelling; if jitgraft has a hint of its own (`has_hint`), that proposal
/// would contradict it. `words` is the whole command line, and `cli` describes all commands.
pub(super) fn remove_misleading_tips(error: &mut clap::Error, has_hint: bool, words: &[String], cli: &Command) {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return;
    }
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !has_hint && !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    if has_hint {
        error.remove(ContextKind::SuggestedArg);
        // clap's usage line contains the flag that it proposes, so replace it by the usage of the command.
        if let Some(usage) = usage_of_command(words, cli) {
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
    }
}

/// The usage line of the command that was typed. `None` if no command was typed.
fn usage_of_command(words: &[String], cli: &Command) -> Option<StyledStr> {
    let mut cli = cli.clone();
    cli.build();
    let name = words.iter().skip(1).find(|word| cli.find_subcommand(word).is_some())?;
    Some(cli.find_subcommand_mut(name)?.render_usage())
}

/// A text that clap stored in an error, such as the word that it doesn't know. `None` if the error has no text of this
/// kind.
pub(super) fn find_text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Finds the hint for a word that the user typed, in upper or lower case. `None` if there is none.
fn find_hint<'h>(hints: &[(&str, &'h str)], word: &str) -> Option<&'h str> {
    let (_, hint) = hints.iter().find(|(typed, _)| typed.eq_ignore_ascii_case(word))?;
    Some(*hint)
}

/// Finds the hint for a word that is a likely misspelling of what the user typed, such as `perfetto` for `perfeto`.
/// `None` if there is none.
fn find_similar<'h>(hints: &[(&str, &'h str)], word: &str) -> Option<&'h str> {
    let typed = word.to_ascii_lowercase();
    let (_, hint) = hints.iter().find(|(known, _)| is_misspelled(&typed, known))?;
    Some(*hint)
}

/// The message of an error about an invalid number, in plainer words than those of Rust's number parsers, which clap
/// prints. `None` for other errors.
pub(super) fn about_number(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = error.render().to_string();
    let is_negative = find_text(error, ContextKind::InvalidValue).is_some_and(|value| value.starts_with('-'));
    // clap's text is like `error: invalid value '0' for '--limit <N>': 0 is not in 1..=9`, followed by lines of help.
    if let Some((before, range)) = text.split_once(" is not in ") {
        let (range, help) = range.split_once('\n').unwrap_or((range, ""));
        let (least, most) = range.split_once("..")?;
        let before = before.rsplit_once(": ").map_or(before, |(before, _)| before);
        let bounds = match most.trim_start_matches('=') {
            "" => format!("must be at least {least}"),
            most => format!("must be from {least} to {most}"),
        };
        return Some(format!("{before}: {bounds}\n{help}"));
    }
    let phrases = [
        ("number would be zero for non-zero type", "must be at least 1"),
        ("invalid digit found in string", if is_negative { "must not be negative" } else { "must be a whole number" }),
        ("cannot parse integer from empty string", "must be a whole number"),
        ("number too large to fit in target type", "is too large"),
        ("number too small to fit in target type", "is too small"),
        ("invalid float literal", "must be a number"),
    ];
    let (of_parser, plain) = phrases.into_iter().find(|(of_parser, _)| text.contains(of_parser))?;
    Some(text.replace(of_parser, plain))
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use clap::CommandFactory;

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
            ("export --to perfeto x", Some("--to chrome")),
            ("export --to Perfteto x", Some("--to chrome")),
            ("export --to perfettoo x", Some("--to chrome")),
            ("export --to sqlit x", Some("--to csv")),
            ("merge --to htlm x", Some("jitgraft view")),
            ("export --to sq x", None),
            ("export --to perfoto-2 x", None),
            ("svg x", Some("jitgraft flamegraph")),
            ("Fold x", Some("jitgraft collapse")),
            ("report --json x", Some("--to json")),
            ("report --top 5 x", Some("--limit N")),
            ("collapse --dump jit-7.dump x", Some("--jitdump FILE")),
            ("report --by thread x", Some("--by tid")),
            ("report --by sym,File x", Some("--by dso")),
            ("report --sort time x", Some("--sort self")),
            ("report --by nonsense x", None),
            ("flamegraph --by process x", Some("--by pid")),
            ("pack in out.tar.zst", Some("-o out.tar.zst")),
            ("export --to arrow x", None),
            ("export --to Arrow x", None),
            ("export --to PARQUET x", Some("--to parquet")),
            ("inject in out", Some("-o out")),
            ("flamegraph --to svg in", Some("(-o FILE) determines its format")),
            ("view --format=html in", Some("(-o FILE) determines its format")),
            ("report -F overhead,sym in", Some("--to csv has all")),
            ("inject --pid 7 in", Some("--pid works with jitgraft export")),
            ("collapse --group-by pid in", Some("use --by")),
            ("report --no-such-flag", None),
            ("annotate f --percent-limit 5", Some("--percent-limit is a flag of jitgraft report")),
            ("collapse x --minwidth 1", Some("--minwidth is a flag of jitgraft flamegraph")),
            ("pack x --callers f", Some("--callers is a flag of jitgraft report")),
            ("flamegraf x", None),
            ("reprot x", None),
            ("-o flame.svg flamegraph perf.data", Some("jitgraft flamegraph -o")),
            ("--limit=3 report perf.data", Some("jitgraft report --limit")),
            ("report --pid node perf.data", Some("--comm node")),
            ("view --tid main perf.data", Some("--comm main")),
            ("report --pid 1.5 perf.data", None),
        ] {
            let words: Vec<String> = ["jitgraft"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
            let error = Cli::from_words(words.iter().map(Into::into)).unwrap_err();
            let said = super::hint(&error, &words, &Cli::command());
            assert_eq!(said.is_some(), hint.is_some(), "{line}: {said:?}");
            let said = said.unwrap_or_default();
            assert!(said.contains(hint.unwrap_or_default()), "{line}");
            assert!(!cfg!(feature = "tables") || !said.contains("--features"), "{line}: {said}");
        }
    }

    #[test]
    fn an_unknown_flag_gets_no_misleading_tip() {
        for line in [
            "inject --pid 7 in",
            "report --no-such-flag in",
            "report --percentlimit 2 in",
            "collapse --from 1 in",
            "flamegraph --format svg in",
        ] {
            let words: Vec<String> = ["jitgraft"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
            let mut error = Cli::from_words(words.iter().map(Into::into)).unwrap_err();
            let has_hint = super::hint(&error, &words, &Cli::command()).is_some();
            super::remove_misleading_tips(&mut error, has_hint, &words, &Cli::command());
            let text = error.to_string();
            assert!(!text.contains("as a value") && !text.contains("\n\n\n"), "{line}: {text}");
            assert_eq!(text.contains("a similar argument exists"), line.contains("percentlimit"), "{line}: {text}");
            assert!(!has_hint || text.contains(" [OPTIONS]"), "{line}: {text}");
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
