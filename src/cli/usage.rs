//! Prints texts about the command line itself: shell completions, manual pages, and the page of `help inputs`.

use crate::contract::format::Read;
use crate::error::{Error, Result};
use crate::formats::FORMATS;
use crate::io::{self, OutDirectory};
use crate::pipeline::Outcome;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

/// Flags of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jitgraft completions bash > ~/.local/share/bash-completion/completions/jitgraft\n  \
    jitgraft completions zsh > ~/.zfunc/_jitgraft\n  jitgraft completions fish > \
    ~/.config/fish/completions/jitgraft.fish"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft man ~/.local/share/man/man1\n  man jitgraft-inject")]
pub(super) struct ManArgs {
    /// Directory for jitgraft.1 and a page for each command; created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// The page of `help inputs`.
#[derive(Debug, Args)]
pub(super) struct InputsArgs {}

impl CompletionsArgs {
    /// Prints the completions. `command` describes the whole command line of jitgraft.
    pub(super) fn run(self, mut command: Command) -> Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "jitgraft", &mut script);
        print(&script)
    }
}

impl ManArgs {
    /// Writes the manual pages. `command` describes the whole command line of jitgraft.
    pub(super) fn run(self, command: Command) -> Result<Outcome> {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let written = write_pages(&OutDirectory::make(&self.directory)?, &command);
        written.map_err(|error| Error::new("cannot write there").because(error).in_file(&self.directory))?;
        Ok(Outcome { written: vec![self.directory], ..Outcome::default() })
    }
}

/// Writes the manual pages of a command and, recursively, of its subcommands.
fn write_pages(directory: &OutDirectory, command: &Command) -> std::io::Result<()> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| write_pages(directory, command))?;
    // For an option that the short help hides, clap_mangen prints only the long help. So an option without a long help
    // gets its short help as such.
    let page = clap_mangen::Man::new(command.clone().mut_args(set_long_help));
    let mut file = directory.create(0o666)?;
    page.render(file.file_mut())?;
    file.persist(page.get_filename().as_ref())
}

fn set_long_help(arg: Arg) -> Arg {
    match (arg.get_long_help(), arg.get_help().cloned()) {
        (None, Some(help)) => arg.long_help(help),
        _ => arg,
    }
}

impl InputsArgs {
    /// Prints the page of `help inputs`. `command` describes the whole command line of jitgraft.
    pub(super) fn run(self, mut command: Command) -> Result<Outcome> {
        let page = command.find_subcommand_mut("inputs").map(|page| page.render_long_help().to_string());
        print(page.unwrap_or_else(inputs).as_bytes())
    }
}

fn print(text: &[u8]) -> Result<Outcome> {
    io::print(|out| Ok(out.write_all(text)?))?;
    Ok(Outcome::default())
}

/// The text of `help inputs`.
pub(super) fn inputs() -> String {
    let readable = FORMATS.iter().filter(|format| !matches!(format.read, Read::No));
    let formats: String = readable.map(|format| format!("  {:<14} {}\n", format.name, format.about)).collect();
    format!("{WHAT_IS_READ}{formats}{WHERE_NAMES_ARE}")
}

const WHAT_IS_READ: &str = "\
Finding inputs, dumps and maps

INPUT, or -i FILE: one or more files, which are merged; `-` is standard input. The default is standard input if it is \
a pipe or a file, else perf.data. Files may be compressed with gzip or zstd. A directory must be one that perf record \
--threads or -o DIR wrote. An archive made by jitgraft pack is read like the recording in it. The format is detected \
from the content, not the name:

";

const WHERE_NAMES_ARE: &str = "
Names of JIT code come from jitdumps (jit-PID.dump), perf maps (perf-PID.map), and logs and core dumps (`jitgraft \
formats` lists them). A log next to a dump adds inlined calls and missing code. jitgraft looks for them in this order:

  1. --jitdump, --perf-map and --jit-log: files or directories; FILE@PID is for that process
  2. /proc/PID/root of the recorded process, if it still runs, with the PID it has in its container
  3. the path where the process mapped its jitdump, as recorded
  4. the directory of the input (for standard input, the current directory)
  5. /tmp, the current directory, $JITDUMPDIR, ~/.debug/jit; for core dumps also /var/lib/systemd/coredump
  6. the memory of the recorded process, if it still runs (code registered with GDB's JIT interface)

If no recorded process has the PID in a file's name (such as perf-1.map from a container), two things must show that \
the file is from this run: samples at the addresses of its code, and one more fact, such as its time. Otherwise the \
file is not used, and jitgraft prints the option to use it anyway.

Files that belong to other users are used only with --force. Dumps contain times, which tell apart functions that had \
the same address one after the other; this needs perf record -k mono. --map-pid INNER=OUTER states the PID that a \
process has in its container. `jitgraft \
runtimes` lists what each runtime writes.

Names of native code come from the recorded files, if their build IDs match, and from debugging information next to \
them, in /usr/lib/debug and in each --debug-dir. Paths are looked up below --symfs. Kernel symbols come from \
/proc/kallsyms if the recorded \
kernel is running, or from --kallsyms and --vmlinux.

Unnamed functions are shown as [unknown], or as their module's name in brackets. `jitgraft doctor INPUT` explains why.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_inputs_names_all_that_is_read() {
        let page = inputs();
        let readable = FORMATS.iter().filter(|format| !matches!(format.read, Read::No));
        readable.for_each(|format| assert!(page.contains(format.about), "{}", format.name));
    }
}
