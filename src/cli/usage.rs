//! What the command line tells of itself: completions, manual pages, the page on inputs.

use crate::contract::format::Read;
use crate::error::{Error, Result};
use crate::formats::FORMATS;
use crate::io::{self, OutDirectory};
use crate::pipeline::Outcome;
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

/// Flags of `completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jitgraft completions bash > ~/.local/share/bash-completion/completions/jitgraft\n  \
    jitgraft completions zsh > ~/.zfunc/_jitgraft\n  jitgraft completions fish > ~/.config/fish/completions/jitgraft.fish"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  jitgraft man ~/.local/share/man/man1\n  man jitgraft-inject")]
pub(super) struct ManArgs {
    /// The directory where jitgraft.1 and a page for each command are written; made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// What `help inputs` shows.
#[derive(Debug, Args)]
pub(super) struct InputsArgs {}

impl CompletionsArgs {
    /// `command` is the whole command line.
    pub(super) fn run(self, mut command: Command) -> Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "jitgraft", &mut script);
        print(&script)
    }
}

impl ManArgs {
    /// `command` is the whole command line.
    pub(super) fn run(self, command: Command) -> Result<Outcome> {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let written = write_pages(&OutDirectory::make(&self.directory)?, &command);
        written.map_err(|error| Error::new("cannot write there").because(error).in_file(&self.directory))?;
        Ok(Outcome::default())
    }
}

/// The page of a command, and those of its subcommands.
fn write_pages(directory: &OutDirectory, command: &Command) -> std::io::Result<()> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| write_pages(directory, command))?;
    let page = clap_mangen::Man::new(command.clone());
    let mut file = directory.create(0o666)?;
    page.render(file.file_mut())?;
    file.persist(page.get_filename().as_ref())
}

impl InputsArgs {
    /// `command` is the whole command line.
    pub(super) fn run(self, mut command: Command) -> Result<Outcome> {
        let page = command.find_subcommand_mut("inputs").map(|page| page.render_long_help().to_string());
        print(page.unwrap_or_else(inputs).as_bytes())
    }
}

fn print(text: &[u8]) -> Result<Outcome> {
    io::print(|out| Ok(out.write_all(text)?))?;
    Ok(Outcome::default())
}

/// The page on inputs.
pub(super) fn inputs() -> String {
    let readable = FORMATS.iter().filter(|format| !matches!(format.read, Read::No));
    let formats: String = readable.map(|format| format!("  {:<14} {}\n", format.name, format.about)).collect();
    format!("{WHAT_IS_READ}{formats}{WHERE_NAMES_ARE}")
}

const WHAT_IS_READ: &str = "\
What is read, and how it is found

INPUT, or -i FILE: one or more files, merged; `-` is standard input. Without any, standard input if it is a pipe or a \
file, else perf.data. Packed files (gzip, zstd) are unpacked. A directory is what perf record --threads or -o DIR made. \
The format is found by the content, not by the name:

";

const WHERE_NAMES_ARE: &str = "
Names of JIT code come from jitdumps (jit-PID.dump), perf maps (perf-PID.map), logs of engines and core dumps (jitgraft \
formats lists them; beside a dump logs tell of inlined calls, and of code that it lacks), looked for in this order:

  1. --jitdump, --perf-map and --jit-log: files, or directories of them; FILE@PID is for that process
  2. below /proc/PID/root, if the recorded process still runs, in a container, by the number it has there
  3. where the recording says that a jitdump was
  4. beside the input
  5. /tmp, the current directory, $JITDUMPDIR, ~/.debug/jit; core dumps in /var/lib/systemd/coredump, too
  6. the memory of the recorded process, if it still runs, for code that is registered with GDB's JIT interface

A file that goes by no recorded number (perf-1.map, brought from a container) is used if its code is where a process was \
sampled and a second sign says that it is of this run (its times, when it was written), and that is said; else it is \
told with the option that takes it.

A file that belongs to somebody else than root or you is used with --force only. Dumps have times, by which code is told \
from other code at the same address: record with -k mono. --map-pid \
INNER=OUTER tells the number that a process has in its container. jitgraft runtimes says what each runtime leaves.

Names of native code come from the recorded files, if their build IDs are those recorded, and from their debugging \
information: beside them, in /usr/lib/debug, in each --debug-dir, all below --symfs. The kernel's come from \
/proc/kallsyms if it is the recorded one, or from --kallsyms and --vmlinux.

What has no name is [unknown], or the name of its module in brackets. jitgraft doctor INPUT says why.
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
