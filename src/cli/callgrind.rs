//! `jitgraft callgrind`

use super::common::SourceArgs;
use crate::commands::callgrind::{self, CallgrindOptions};
use crate::error::Result;
use crate::model::Pid;
use crate::pipeline::{Job, Outcome};
use clap::Args;
use std::path::PathBuf;

/// Flags of `callgrind`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    env MVM_JIT_PERF_MAP=1 valgrind --tool=callgrind --dump-instr=yes -- rakudo-m program.raku\n  \
    jitgraft callgrind callgrind.out.4711\n  kcachegrind callgrind.out.4711.jit\n\n  \
    jitgraft callgrind massif.out.4711 -o - | ms_print /dev/stdin\n\n\
Names come from perf-PID.map or jit-PID.dump of the same run. Reports of massif, DHAT, memcheck, helgrind and DRD \
(text and XML) get names, too; cachegrind's cannot: they hold no addresses.")]
pub(super) struct CallgrindArgs {
    /// callgrind.out.PID, or a report of another of valgrind's tools; `-` is standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Where to write; `-` is standard output [default: INPUT.jit]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where to write the code as an ELF object, for KCachegrind's machine-code view [default: jitted-PID.elf beside
    /// the output]
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// The process that was profiled [default: as the file or its name says]
    #[arg(long, value_name = "PID", help_heading = "Where names come from")]
    pid: Option<i32>,
    /// A directory of raw machine code: MoarVM's (MVM_JIT_DUMP_BYTECODE=1; the i-th file belongs to the i-th line of
    /// the perf map), or files named by address [default: moar-jit.PID beside the map or in /tmp]
    #[arg(long, value_name = "DIR", help_heading = "Where names come from")]
    bytecode_dir: Option<PathBuf>,
    #[command(flatten)]
    sources: SourceArgs,
}

impl CallgrindArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        let options = CallgrindOptions {
            input: self.input.into(),
            output: self.output.map(Into::into),
            object: self.object,
            pid: self.pid.map(Pid),
            bytecode_dir: self.bytecode_dir,
            sources: self.sources.into(),
        };
        callgrind::run(&options, job)
    }
}
