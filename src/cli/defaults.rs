//! Reads default flags from the environment: `JITGRAFT_OPTS="--jit-names pretty --colors js"`.
//!
//! The default flags are inserted before the flags that the user typed, so that the typed ones override them. A default
//! flag that the current command lacks is ignored if another command has it: one list works for all commands.

use super::removed;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::ffi::OsString;

/// The name of the environment variable with default flags.
pub(super) const VARIABLE: &str = "JITGRAFT_OPTS";

/// Inserts the flags of `defaults` after the command's name in `typed`, the words of the command line. Leaves out flags
/// that this command lacks or that conflict with typed ones. Fails if one of them isn't a flag of any command.
pub(super) fn insert_defaults(
    command: &Command,
    typed: Vec<OsString>,
    defaults: &str,
) -> Result<Vec<OsString>, clap::Error> {
    let Some((index, chosen)) = find_subcommand(command, &typed) else { return Ok(typed) };
    let mut words = typed;
    for flag in split_flags(command, defaults)? {
        if find(command, chosen, &flag[0]).is_none() {
            // The chosen command lacks the flag, but another command has it: one list of defaults is for all commands.
            continue;
        }
        let mut more = words.clone();
        more.splice(index + 1..index + 1, flag.into_iter().map(OsString::from));
        // A default that conflicts with a typed flag is left out, rather than making the command line an error.
        let parsed = command.clone().try_get_matches_from(&more);
        // With any other error, the default stays: the error is reported when the whole command line is parsed.
        if !parsed.is_err_and(|error| error.kind() == ErrorKind::ArgumentConflict) {
            words = more;
        }
    }
    Ok(words)
}

/// Finds the first word that is the name of a command. Returns the word's index and the command.
fn find_subcommand<'c>(command: &'c Command, words: &[OsString]) -> Option<(usize, &'c Command)> {
    for (index, word) in words.iter().enumerate().skip(1) {
        if let Some(word) = word.to_str()
            && let Some(chosen) = command.find_subcommand(word)
        {
            return Some((index, chosen));
        }
    }
    None
}

/// Mentions the environment variable in an error if its flags caused the error: without them, the command line is
/// valid.
pub(super) fn explain(command: &Command, typed: Vec<OsString>, error: clap::Error) -> clap::Error {
    if error.exit_code() == 0 || command.clone().try_get_matches_from(typed).is_err() {
        return error;
    }
    let text = error.render().to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text);
    clap::Error::raw(error.kind(), format!("{VARIABLE}: {message}"))
}

/// Splits `defaults` into flags, each with its value. The last flag comes first, because each flag will be inserted
/// before those that were already inserted.
fn split_flags(command: &Command, defaults: &str) -> Result<Vec<Vec<String>>, clap::Error> {
    let mut flags: Vec<Vec<String>> = Vec::new();
    let mut words = defaults.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let known = command.get_subcommands().find_map(|subcommand| find(command, subcommand, word));
        let Some(known) = known else {
            let flag = word.split('=').next().unwrap_or(word);
            let message = match removed::refusal(flag, None) {
                Some(refusal) => refusal,
                None => format!("{VARIABLE} contains {word}, but no command has that flag"),
            };
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, message + "\n"));
        };
        let mut flag = vec![word.to_owned()];
        // True if the word contains the value, too, as in `--to=folded` and `-ofile`.
        let contains_value = word.contains('=') || !word.starts_with("--") && word.len() > 2;
        if known.get_action().takes_values() && !contains_value {
            let value = words.next();
            let is_optional = known.get_num_args().is_some_and(|values| values.min_values() == 0);
            if value.is_none() && !is_optional {
                // Reject a flag without its value: it would take the first word of the command line as its value.
                let message = format!("{VARIABLE}: {word} needs a value\n");
                return Err(clap::Error::raw(ErrorKind::InvalidValue, message));
            }
            flag.extend(value.map(str::to_owned));
        }
        flags.insert(0, flag);
    }
    Ok(flags)
}

/// Finds the flag that a word stands for, among the flags of this command and those of all commands.
pub(super) fn find<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let global = root.get_arguments().filter(|arg| arg.is_global_set());
    command.get_arguments().chain(global).find(|arg| is_named(arg, word))
}

/// True if a word of the command line, such as `--to=folded` or `-ofile`, stands for this flag.
fn is_named(arg: &Arg, word: &str) -> bool {
    if let Some(long) = word.strip_prefix("--") {
        let long = long.split('=').next().unwrap_or(long);
        return arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long));
    }
    match word.strip_prefix('-').and_then(|short| short.chars().next()) {
        Some(short) => arg.get_short() == Some(short),
        None => false,
    }
}
