//! `jitgraft inject`

use super::common::SourceArgs;
use crate::commands::inject::{self, BuildIdMode, InjectOptions, KnownBuildIds};
use crate::error::{Error, Result};
use crate::io::{InPath, OutPath};
use crate::pipeline::open::default_input;
use crate::pipeline::{Job, Outcome};
use crate::sources::SourceOptions;
use clap::Args;
use std::path::PathBuf;

/// Flags of `inject`. Those of perf inject mean the same.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "Examples:\n  perf record -k mono -g -- node --perf-prof app.js\n  \
    jitgraft inject perf.data -o perf.jit.data && perf report -i perf.jit.data\n  \
    perf record -k mono -g -o - -- node --perf-prof app.js | jitgraft inject > perf.jit.data\n  \
    jitgraft inject -i cpu.pb.gz -o named.pb.gz --perf-map perf-4711.map"
)]
pub(super) struct InjectArgs {
    /// The recording, or a pprof, OpenTelemetry or Firefox profile with bare addresses; - is standard input [default: standard input if it is a pipe, else perf.data]
    #[arg(value_name = "INPUT", conflicts_with = "input")]
    recording: Option<PathBuf>,
    /// The recording, as perf inject takes it
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Where to write: a file, or - for standard output in pipe form
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Inject JIT code (always done, unless only build IDs are asked for)
    #[arg(short, long)]
    jit: bool,
    /// Put all functions of a dump into its image, not only those that samples touch
    #[arg(long)]
    all_functions: bool,
    /// Directory for the images jitted-PID.so [default: beside the output, or the current one]
    #[arg(long, value_name = "DIR")]
    image_dir: Option<PathBuf>,
    /// Put the images into the build-ID cache (~/.debug), too, so that perf archive packs them
    #[arg(long)]
    cache: bool,
    /// Turn copies of user stacks (--call-graph dwarf) into plain call chains
    #[arg(long)]
    convert_callchain: bool,
    /// Give JIT code addresses of its own, for hotspot and others that take every file for one loaded once; copies of
    /// user stacks become plain call chains
    #[arg(long)]
    relocate: bool,
    /// Take the entries out of call chains for which perf drops the chains whole (PHP's JIT code leaves such)
    #[arg(long)]
    drop_bad_chain_entries: bool,
    #[command(flatten)]
    build_ids: BuildIdArgs,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// Where the files are that ran.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where names of native code come from (OpenTelemetry profiles)")]
struct FileArgs {
    /// Look for files below this directory
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,
    /// Look for files by their build IDs, and for debugging information, here, before /usr/lib/debug (repeatable)
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
}

/// Build IDs of files that are no JIT code.
#[derive(Debug, Args)]
#[command(next_help_heading = "Build IDs of other files")]
struct BuildIdArgs {
    /// Of files with samples, as records of their own
    #[arg(short, long, group = "build_id_mode")]
    build_ids: bool,
    /// Of all mapped files, as records of their own
    #[arg(long, group = "build_id_mode")]
    buildid_all: bool,
    /// Of files with samples, in their mapping records (those of other files stay, too)
    #[arg(short = 'B', long, group = "build_id_mode")]
    mmap2_buildids: bool,
    /// Of all mapped files, in their mapping records
    #[arg(long, group = "build_id_mode")]
    mmap2_buildid_all: bool,
    /// Build IDs of paths, asked before the files themselves; FILE has one `ID PATH` on each line
    #[arg(long, value_name = "ID PATH[,ID PATH…]|file://FILE")]
    known_build_ids: Option<String>,
}

impl BuildIdArgs {
    fn mode(&self) -> BuildIdMode {
        match (self.build_ids, self.buildid_all, self.mmap2_buildids, self.mmap2_buildid_all) {
            (true, ..) => BuildIdMode::Hit,
            (_, true, ..) => BuildIdMode::All,
            (_, _, true, _) => BuildIdMode::HitMappings,
            (.., true) => BuildIdMode::AllMappings,
            _ => BuildIdMode::None,
        }
    }
}

/// Options of perf inject that jitgraft does not have: they are known, so that they can be refused by name.
#[derive(Debug, Args)]
struct ForeignArgs {
    /// Not supported
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    itrace: Option<Option<String>>,
    /// Not supported
    #[arg(long, hide = true)]
    strip: bool,
    /// Not supported
    #[arg(short, long, hide = true)]
    sched_stat: bool,
    /// Not supported
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    vm_time_correlation: Option<Option<String>>,
    /// Not supported
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    guest_data: Option<Option<String>>,
    /// Not supported
    #[arg(long, hide = true)]
    guestmount: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    unwind_style: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    aslr: bool,
    /// Not supported
    #[arg(short = 'k', long, hide = true)]
    vmlinux: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    ignore_vmlinux: bool,
    /// Not supported
    #[arg(long, hide = true)]
    kallsyms: Option<String>,
}

impl ForeignArgs {
    fn refuse(&self) -> Result<()> {
        let given = [
            ("--itrace", self.itrace.is_some()),
            ("--strip", self.strip),
            ("--sched-stat (-s)", self.sched_stat),
            ("--vm-time-correlation", self.vm_time_correlation.is_some()),
            ("--guest-data", self.guest_data.is_some()),
            ("--guestmount", self.guestmount.is_some()),
            ("--unwind-style", self.unwind_style.is_some()),
            ("--aslr", self.aslr),
            ("--vmlinux (-k)", self.vmlinux.is_some()),
            ("--ignore-vmlinux", self.ignore_vmlinux),
            ("--kallsyms", self.kallsyms.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Error::usage(format!(
                "{name} is an option of perf inject that jitgraft does not have: use perf for it"
            ))),
            None => Ok(()),
        }
    }
}

impl InjectArgs {
    pub(super) fn run(self, job: &Job) -> Result<Outcome> {
        self.foreign.refuse()?;
        let build_ids = self.build_ids.mode();
        let mut sources = SourceOptions::from(self.sources);
        (sources.search.symfs, sources.search.debug_dirs) = (self.files.symfs, self.files.debug_dir);
        let options = InjectOptions {
            input: self.input.or(self.recording).map_or_else(default_input, InPath::from),
            output: OutPath::from(self.output),
            image_dir: self.image_dir,
            all_functions: self.all_functions,
            cache: self.cache,
            convert_callchain: self.convert_callchain,
            relocate: self.relocate,
            drop_bad_chain_entries: self.drop_bad_chain_entries,
            // perf inject does one or the other; who asks for build IDs alone gets them alone.
            jit: self.jit || build_ids == BuildIdMode::None,
            build_ids,
            known_build_ids: self.build_ids.known_build_ids.as_deref().map(KnownBuildIds::from),
            sources,
        };
        inject::run(&options, job)
    }
}
