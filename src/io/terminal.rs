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
fn size_from_environment(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.trim().parse().ok().filter(|size| *size > 0)
}

impl Terminal {
    /// The terminal that an output goes to; `None` if it goes elsewhere. The size is that in `COLUMNS` and `LINES`, or
    /// the terminal's own, or 80 by 24. Color is used unless `NO_COLOR` is set, `CLICOLOR` is 0 or `TERM` is `dumb`;
    /// forcing color overrides these.
    pub fn from_output(output: &OutPath) -> Option<Self> {
        let stdout = std::io::stdout();
        if *output != OutPath::Stdout || !stdout.is_terminal() {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let is_set_to = |name: &str, value: &str| std::env::var_os(name).is_some_and(|set| set == value);
        let is_color_allowed = is_unset("NO_COLOR") && !is_set_to("CLICOLOR", "0") && !is_set_to("TERM", "dumb");
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        let rows = size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
        Some(Self {
            columns: size_from_environment("COLUMNS").or(columns).unwrap_or(80),
            rows: size_from_environment("LINES").or(rows).unwrap_or(24),
            color: is_color_forced() || is_color_allowed,
        })
    }
}
