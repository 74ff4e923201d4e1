//! Properties of the terminal that an output goes to.

use super::OutPath;
use std::io::IsTerminal;

/// The terminal that an output goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The width in characters.
    pub columns: usize,
    /// The height in lines.
    pub rows: usize,
    /// True if the terminal supports colors and the environment doesn't forbid them (no-color.org, CLICOLOR=0).
    pub color: bool,
}

/// True if the environment requests colors in files and pipes, too (CLICOLOR_FORCE=1).
pub fn is_color_forced() -> bool {
    is_unset("NO_COLOR") && std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0")
}

fn is_unset(name: &str) -> bool {
    std::env::var_os(name).is_none_or(|value| value.is_empty())
}

/// A size that the user set in the environment variable COLUMNS or LINES; `None` if unset or invalid.
fn size_set(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.trim().parse().ok().filter(|size| *size > 0)
}

impl Terminal {
    /// The terminal that an output goes to; `None` if it goes elsewhere.
    pub fn from_output(output: &OutPath) -> Option<Self> {
        let stdout = std::io::stdout();
        if *output != OutPath::Stdout || !stdout.is_terminal() {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let is_allowed = is_unset("NO_COLOR") && std::env::var_os("CLICOLOR").is_none_or(|value| value != "0");
        let of = |length: Option<u16>, usual| length.map(usize::from).filter(|length| *length > 0).unwrap_or(usual);
        Some(Self {
            columns: size_set("COLUMNS").unwrap_or_else(|| of(size.map(|size| size.ws_col), 80)),
            rows: size_set("LINES").unwrap_or_else(|| of(size.map(|size| size.ws_row), 24)),
            color: is_color_forced() || is_allowed && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        })
    }
}
