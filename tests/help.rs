//! Help fits where people read it, and starts with what a command does.

use clap::{Command, CommandFactory};
use jitgraft::cli::Cli;

/// The terminal that `-h` must fit.
const COLUMNS: usize = 80;
const ROWS: usize = 45;

fn commands() -> impl Iterator<Item = Command> {
    let mut all = Cli::command().term_width(COLUMNS);
    all.build();
    let commands: Vec<Command> =
        all.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect();
    assert!(commands.len() > 10);
    [all].into_iter().chain(commands).map(|command| command.term_width(COLUMNS))
}

#[test]
fn short_help_fits_one_screen() {
    for mut command in commands().filter(|command| command.get_name() != "inputs") {
        let help = command.render_help().to_string();
        let rows = help.lines().count();
        assert!(rows <= ROWS, "{} -h has {rows} lines:\n{help}", command.get_name());
    }
}

#[test]
fn a_command_is_described_in_one_line_by_what_it_does() {
    let help = Cli::command().term_width(COLUMNS).render_help().to_string();
    let list = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()).unwrap();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let (name, about) = line.trim().split_once(' ').unwrap_or_else(|| panic!("'{line}' continues the line above"));
        let verb = about.trim().split(' ').next().unwrap();
        assert!(verb.starts_with(char::is_uppercase) && !verb.ends_with('s'), "{name}: '{verb}' is not an imperative");
    }
}

#[test]
fn every_flag_has_one_short_line_and_no_full_stop() {
    for command in commands() {
        for flag in command.get_arguments() {
            let help =
                flag.get_help().unwrap_or_else(|| panic!("{} {}", command.get_name(), flag.get_id())).to_string();
            assert!(help.len() <= 110 && !help.ends_with('.'), "{} {}: {help}", command.get_name(), flag.get_id());
        }
    }
}
