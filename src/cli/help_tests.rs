//! Tests of the help texts. They must fit a terminal and describe each command in one line.

use super::Cli;
use clap::{Command, CommandFactory};

/// The size of a terminal in which `-h` must fit.
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
fn a_command_is_described_in_one_line() {
    let help = Cli::command().term_width(COLUMNS).render_help().to_string();
    let list = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()).unwrap();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let is_command = line.starts_with("  ") && !line.starts_with("   ");
        assert!(is_command, "'{line}' continues the line above");
    }
}
