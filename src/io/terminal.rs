//! The properties of the terminal that an output goes to.

use super::OutPath;
use std::io::IsTerminal;

/// A terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The number of characters that a line holds.
    pub columns: usize,
    /// The number of lines that it shows.
    pub rows: usize,
    /// True if it understands colors, and nobody forbade them (no-color.org).
    pub colour: bool,
}

impl Terminal {
    /// That of an output, if it goes to one.
    pub fn of(output: &OutPath) -> Option<Self> {
        let stdout = std::io::stdout();
        if *output != OutPath::Stdout || !stdout.is_terminal() {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let is_unset = |name| std::env::var_os(name).is_none_or(|value| value.is_empty());
        let of = |length: Option<u16>, usual| length.map(usize::from).filter(|length| *length > 0).unwrap_or(usual);
        Some(Self {
            columns: of(size.map(|size| size.ws_col), 80),
            rows: of(size.map(|size| size.ws_row), 24),
            colour: is_unset("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        })
    }
}
