//! The flags of `jitgraft callgrind`.

use super::common::{FileArgs, SourceArgs};
use super::output::check_name;
use crate::commands::callgrind::{self, CallgrindOptions};
use crate::error::{Error, Result, Warnings};
use crate::io::{self, InPath, OutPath};
use crate::jit::SourceOptions;
use crate::model::Pid;
use crate::pipeline::open::default_input;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::{Path, PathBuf};

/// Flags of `callgrind`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    env MVM_JIT_PERF_MAP=1 valgrind --tool=callgrind --dump-instr=yes -- rakudo-m program.raku\n  \
    jitgraft callgrind callgrind.out.4711\n  kcachegrind callgrind.out.4711.jit\n\n  \
    jitgraft callgrind massif.out.4711 -o - | ms_print /dev/stdin\n\n\
Names come from perf-PID.map or jit-PID.dump of the same run. Reports of massif, DHAT, memcheck, helgrind and DRD \
(text and XML) work, too. Those of cachegrind don't: they contain no addresses.")]
pub(super) struct CallgrindArgs {
    /// callgrind.out.PID, or a report of another valgrind tool; `-` is stdin
    #[arg(value_name = "INPUT", conflicts_with = "input")]
    profile: Option<PathBuf>,
    /// The input, as a flag
    #[arg(short, long, value_name = "FILE", hide_short_help = true)]
    input: Option<PathBuf>,
    /// Output file; `-` is standard output [default: INPUT.jit]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// ELF object with machine code, for KCachegrind [default: jitted-PID.elf next to the output]
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// The profiled process [default: from the file or its name]
    #[arg(long, value_name = "PID", help_heading = "Names of JIT code")]
    pid: Option<i32>,
    /// Directory of raw machine code [default: moar-jit.PID]
    ///
    /// MoarVM writes it with MVM_JIT_DUMP_BYTECODE=1: its i-th file belongs to the i-th line of the perf map. Files
    /// named by address are read, too. The default is looked for beside the map and in /tmp.
    #[arg(long, value_name = "DIR", help_heading = "Names of JIT code")]
    bytecode_dir: Option<PathBuf>,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    files: FileArgs,
}

/// The input if the user names none: standard input if data is piped in. Otherwise fails, because there may be several
/// callgrind profiles in the current directory, and jitgraft doesn't choose one. The error mentions the first of them.
fn piped_input() -> Result<InPath> {
    if default_input() == InPath::Stdin {
        return Ok(InPath::Stdin);
    }
    let mut profiles = Vec::new();
    for name in io::typed_names(Path::new(".")).into_iter().flatten() {
        if let Ok(name) = name.into_string()
            && name.starts_with("callgrind.out")
            // Outputs of `jitgraft callgrind` have this extension.
            && !name.ends_with(".jit")
        {
            profiles.push(name);
        }
    }
    let hint = match profiles.iter().min() {
        Some(first) => format!("the current directory contains {first}"),
        None => "valgrind writes callgrind.out.PID to its current directory".to_owned(),
    };
    Err(Error::usage(format!("no input given; run jitgraft callgrind FILE ({hint})")))
}

impl CallgrindArgs {
    /// Checks the flags, and runs the command.
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let output = self.output.map(OutPath::from);
        if let Some(output) = &output {
            check_name(output, "callgrind", &["callgrind", "json", "txt", "xml"])?;
        }
        let mut sources = SourceOptions::from(self.sources);
        let mut warnings = Warnings::new();
        // callgrind.out has no costs of the kernel, so flags about kernel symbols get a warning.
        sources.search = self.files.into_search_options(sources.force, "callgrind", false, &mut warnings);
        let options = CallgrindOptions {
            input: match self.profile.or(self.input) {
                Some(path) => path.into(),
                None => piped_input()?,
            },
            output,
            object: self.object,
            pid: self.pid.map(Pid),
            bytecode_dir: self.bytecode_dir,
            sources,
        };
        let mut outcome = callgrind::run(&options, job)?;
        outcome.warnings.append(warnings);
        Ok(outcome)
    }
}
