//! Prints messages to stderr, line by line.
//!
//! If stderr can't be written, for example because its reader has exited, messages are lost but the command goes on.
//! Names and paths in messages may contain any bytes, so control characters are made visible before they reach a
//! terminal.

use super::slips;
use crate::error::Error;
use crate::io::guard;
use crate::model::printable::{printable, readable};
use clap::Command;
use clap::error::ErrorKind;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Prints one line.
pub fn say(line: impl Display) {
    let line = line.to_string();
    let _ = writeln!(std::io::stderr(), "{}", readable(line.as_bytes()));
}

/// Prints an error and, on a second line, its remedy if it has one.
pub fn say_error(error: &Error) {
    say(format_args!("error: {}", error.without_remedy()));
    if let Some(remedy) = error.remedy() {
        say(format_args!("hint: {remedy}"));
    }
}

/// Prints an error of the command line, or the help or version that the user requested; clap returns these as an error,
/// too. `cli` describes all commands. Returns clap's exit code, or 1 if help couldn't be written.
pub fn say_usage(mut usage: clap::Error, cli: &Command) -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let hint = slips::hint(&usage, &words, cli);
    slips::remove_misleading_tips(&mut usage, hint.is_some(), &words, cli);
    // clap quotes words of the command line without escaping control characters in them. If there are any, the text is
    // printed by `say`, which escapes them.
    let is_printable = std::env::args_os().all(|word| matches!(printable(word.as_encoded_bytes()), Cow::Borrowed(_)));
    let written = if let Some(text) = slips::about_number(&usage) {
        text.lines().for_each(say);
        Ok(())
    } else if is_printable {
        usage.print()
    } else {
        usage.render().to_string().lines().for_each(say);
        Ok(())
    };
    if let Some(hint) = hint {
        say(format_args!("hint: {hint}"));
    }
    // The exit code is clap's, except if help was requested and couldn't be written. A reader that closes the pipe
    // early is no failure.
    let is_help = matches!(usage.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let written = written.and_then(|()| std::io::stdout().flush());
    match written {
        Ok(()) if is_help && guard::stdout_was_closed() => ExitCode::FAILURE,
        Err(error) if is_help && error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2)),
    }
}
